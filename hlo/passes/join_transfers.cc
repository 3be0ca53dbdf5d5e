// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "hlo/ops/transfers.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

/// A send and the recv-done that gets what it sends.
struct Transfer {
  InstrId send = InstrId::None, done = InstrId::None;
  std::vector<std::pair<int64_t, int64_t>> pairs;
};

const Instruction* recv_of(const Module& module, const Instruction& done) {
  const Instruction& operand = module[done.operand(0)];
  return operand.op == Op::RECV ? &operand : nullptr;
}

// True if a permute can have these pairs: nobody sends twice, or receives twice.
bool is_permutation(const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  std::set<int64_t> sources, targets;
  for (const auto& [source, target] : pairs)
    if (!sources.insert(source).second || !targets.insert(target).second) return false;
  return true;
}

// Returns the transfers of a computation whose channel has one send and one recv-done there, with the same pairs.
std::vector<Transfer> transfers_of(const Module& module, CompId computation) {
  std::map<int64_t, std::vector<InstrId>> sends, dones;
  for (const InstrId id : module[computation].order) {
    const Instruction& instr = module[id];
    if (instr.op == Op::SEND && !instr.as<ChannelAttrs>().host_transfer)
      sends[instr.as<ChannelAttrs>().channel].push_back(id);
    if (instr.op != Op::RECV_DONE) continue;
    const Instruction* const recv = recv_of(module, instr);
    if (recv && !recv->as<ChannelAttrs>().host_transfer) dones[recv->as<ChannelAttrs>().channel].push_back(id);
  }
  std::vector<Transfer> out;
  for (const auto& [channel, ids] : sends) {
    const auto found = dones.find(channel);
    if (ids.size() != 1 || found == dones.end() || found->second.size() != 1) continue;
    Transfer one{ids[0], found->second[0], transfer_pairs(module[ids[0]])};
    const Instruction& done = module[one.done];
    const bool same = module[module[one.send].operand(0)].shape.compatible(done.shape.element(0));
    if (same && one.pairs == transfer_pairs(*recv_of(module, done)) && is_permutation(one.pairs)) out.push_back(one);
  }
  return out;
}

/// The order of a computation in which what is sent comes before the recv-done that gets it.
class Order {
 public:
  Order(const Module& module, CompId computation) : module_(module), computation_(computation) {}

  // Makes the recv-done come after what is sent; false if the recv-done comes first by data.
  bool add(const Transfer& transfer) {
    const InstrId sent = module_[transfer.send].operand(0);
    std::unordered_set<uint32_t> seen{index_of(sent)};
    std::vector<InstrId> left{sent};
    while (!left.empty()) {
      const InstrId id = left.back();
      left.pop_back();
      if (id == transfer.done) return false;
      for (const InstrId one : before(id))
        if (seen.insert(index_of(one)).second) left.push_back(one);
    }
    sent_[index_of(transfer.done)] = sent;
    return true;
  }

  // Returns the instructions in that order.
  std::vector<InstrId> sorted() const {
    std::vector<InstrId> out;
    std::unordered_set<uint32_t> placed, begun;
    for (const InstrId root : module_[computation_].order) {
      std::vector<InstrId> stack{root};
      while (!stack.empty()) {
        const InstrId id = stack.back();
        if (begun.insert(index_of(id)).second) {
          for (const InstrId one : before(id))
            if (!placed.contains(index_of(one))) stack.push_back(one);
          continue;
        }
        stack.pop_back();
        if (placed.insert(index_of(id)).second) out.push_back(id);
      }
    }
    return out;
  }

 private:
  std::vector<InstrId> before(InstrId id) const {
    const Instruction& instr = module_[id];
    std::vector<InstrId> out(instr.operands.begin(), instr.operands.end());
    if (instr.extras)
      out.insert(out.end(), instr.extras->control_predecessors.begin(), instr.extras->control_predecessors.end());
    if (const auto it = sent_.find(index_of(id)); it != sent_.end()) out.push_back(it->second);
    return out;
  }

  const Module& module_;
  CompId computation_;
  std::unordered_map<uint32_t, InstrId> sent_;  // by recv-done
};

}  // namespace

Expected<bool> join_transfers(Module& module, PassContext& context) {
  // The numbers of transfers count replicas and partitions, those of a permute either of them.
  if (context.replica_count > 1 && context.partition_count > 1) return false;
  bool changed = false;
  for (const CompId computation : post_order(module)) {
    std::map<InstrId, Transfer> by_done;
    std::map<InstrId, const Transfer*> by_send;
    Order order(module, computation);
    for (Transfer& one : transfers_of(module, computation))
      if (order.add(one)) by_done.emplace(one.done, std::move(one));
    if (by_done.empty()) continue;
    std::set<InstrId> recvs;
    for (const auto& [done, one] : by_done) {
      by_send[one.send] = &one;
      recvs.insert(module[done].operand(0));
    }
    module[computation].order = order.sorted();
    std::set<InstrId> tuples;  // in place of transfers
    Rewriter rewriter(module, computation);
    Builder& b = rewriter.builder();
    for (const InstrId id : rewriter.instructions()) {
      const Instruction& instr = rewriter.enter(id);
      if (recvs.contains(id)) continue;  // only its recv-done uses it
      if (const auto sent = by_send.find(id); sent != by_send.end()) {
        rewriter.replace(id, b.tuple(std::array{instr.operand(0), b.scalar(Type::U32, 0), instr.operand(1)}));
        tuples.insert(rewriter.now(id));
        continue;
      }
      if ((instr.op == Op::SEND_DONE || instr.op == Op::GET_TUPLE_ELEMENT) && tuples.contains(instr.operand(0))) {
        const auto index = instr.op == Op::SEND_DONE ? 2 : static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
        rewriter.replace(id, module[instr.operand(0)].operand(index));
        continue;
      }
      const auto found = by_done.find(id);
      if (found == by_done.end()) {
        rewriter.keep(id);
        continue;
      }
      InstrId value = rewriter.now(module[found->second.send].operand(0));
      if (!found->second.pairs.empty()) {
        auto* attributes = module.make<CollectivePermuteAttrs>();
        std::vector<int64_t> pairs;
        for (const auto& [source, target] : found->second.pairs) pairs.insert(pairs.end(), {source, target});
        attributes->pairs = module.arena().list(pairs);
        attributes->channel = context.partition_count > 1 ? instr.as<ChannelAttrs>().channel : 0;
        value = b.op(Op::COLLECTIVE_PERMUTE, instr.shape.element(0), {value}, attributes);
      }
      const Instruction& recv = module[instr.operand(0)];
      rewriter.replace(id, b.tuple(std::array{value, recv.operand(0)}));
      tuples.insert(rewriter.now(id));
    }
    rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
    changed = true;
  }
  return changed;
}

}  // namespace collet::hlo
