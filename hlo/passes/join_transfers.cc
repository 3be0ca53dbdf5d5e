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

/// A send and the recv of what it sends.
struct Transfer {
  InstrId send = InstrId::None, recv = InstrId::None;
  std::vector<std::pair<int64_t, int64_t>> pairs;
};

bool is_transfer(const Instruction& instr) {
  return (instr.op == Op::SEND || instr.op == Op::RECV) && !instr.as<ChannelAttrs>().host_transfer;
}
bool is_done(const Instruction& instr) {
  return (instr.op == Op::SEND_DONE || instr.op == Op::RECV_DONE) && !instr.as<ChannelAttrs>().host_transfer;
}

// True if a permute can have these pairs: nobody sends twice, or receives twice.
bool is_permutation(const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  std::set<int64_t> sources, targets;
  for (const auto& [source, target] : pairs)
    if (!sources.insert(source).second || !targets.insert(target).second) return false;
  return true;
}

// Returns the transfers of a computation whose channel has one send and one recv there, with the same pairs.
std::vector<Transfer> transfers_of(const Module& module, CompId computation) {
  std::map<int64_t, std::vector<InstrId>> sends, recvs;
  for (const InstrId id : module[computation].order) {
    const Instruction& instr = module[id];
    if (is_transfer(instr)) (instr.op == Op::SEND ? sends : recvs)[instr.as<ChannelAttrs>().channel].push_back(id);
  }
  std::vector<Transfer> out;
  for (const auto& [channel, ids] : sends) {
    const auto found = recvs.find(channel);
    if (ids.size() != 1 || found == recvs.end() || found->second.size() != 1) continue;
    Transfer one{ids[0], found->second[0], transfer_pairs(module[ids[0]])};
    const Instruction& recv = module[one.recv];
    const bool same = module[module[one.send].operand(0)].shape.compatible(recv.shape.element(0));
    if (same && one.pairs == transfer_pairs(recv) && is_permutation(one.pairs)) out.push_back(one);
  }
  return out;
}

// True if the state of a transfer is passed on, for example to the next iteration of a loop. Which of the dones there belongs to it
// is not known.
bool is_passed_on(const Module& module, CompId computation, const Transfer& transfer) {
  const UserMap users(module, computation);
  for (const InstrId start : {transfer.send, transfer.recv}) {
    if (start == module[computation].root) return true;
    for (const InstrId user : users.users(start))
      if (!is_done(module[user]) && module[user].op != Op::GET_TUPLE_ELEMENT) return true;
  }
  return false;
}

/// The order of a computation in which what is sent comes before the recv.
class Order {
 public:
  Order(const Module& module, CompId computation) : module_(module), computation_(computation) {}

  // Makes the recv come after what is sent; false if the recv comes first by data.
  bool add(const Transfer& transfer) {
    const InstrId sent = module_[transfer.send].operand(0);
    std::unordered_set<uint32_t> seen{index_of(sent)};
    std::vector<InstrId> left{sent};
    while (!left.empty()) {
      const InstrId id = left.back();
      left.pop_back();
      if (id == transfer.recv) return false;
      for (const InstrId one : before(id))
        if (seen.insert(index_of(one)).second) left.push_back(one);
    }
    sent_[index_of(transfer.recv)] = sent;
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
  std::unordered_map<uint32_t, InstrId> sent_;  // by recv
};

/// Replaces transfers of one computation.
class Joiner {
 public:
  /// `all`: all transfers of the module are joined, so that each done belongs to one of them.
  Joiner(Module& module, CompId computation, const PassContext& context, const std::vector<Transfer>& transfers,
         bool all)
      : module_(module), context_(context), all_(all), rewriter_(module, computation) {
    for (const Transfer& one : transfers) by_start_[one.send] = by_start_[one.recv] = &one;
  }

  Expected<bool> run() {
    for (const InstrId id : rewriter_.instructions()) {
      const Instruction& instr = rewriter_.enter(id);
      const bool has_tuple = !instr.operands.empty() && tuples_.contains(instr.operand(0));
      if (const auto start = by_start_.find(id); start != by_start_.end())
        begin(id, instr, *start->second);
      else if (is_done(instr) && (all_ || has_tuple))
        end(id, instr);
      else if (instr.op == Op::GET_TUPLE_ELEMENT && has_tuple)
        rewriter_.replace(id, part(instr.operand(0), instr.as<TupleIndexAttrs>().index));
      else
        rewriter_.keep(id);
    }
    const bool changed = rewriter_.finish();
    COLLET_TRY(rewriter_.builder().status());
    return changed;
  }

 private:
  // Puts a tuple of the same shape in place of a send or recv.
  void begin(InstrId id, const Instruction& instr, const Transfer& transfer) {
    const bool sends = instr.op == Op::SEND;
    const InstrId token = instr.operand(sends ? 1 : 0);
    const InstrId value = sends ? instr.operand(0) : received(instr, transfer);
    Builder& b = rewriter_.builder();
    replace(id, b.tuple(std::array{value, b.scalar(Type::U32, 0), token}));
  }

  // Returns what a recv gets.
  InstrId received(const Instruction& recv, const Transfer& transfer) {
    const InstrId sent = rewriter_.now(sent_by(transfer));
    if (transfer.pairs.empty()) return sent;
    auto* attributes = module_.make<CollectivePermuteAttrs>();
    std::vector<int64_t> pairs;
    for (const auto& [source, target] : transfer.pairs) pairs.insert(pairs.end(), {source, target});
    attributes->pairs = module_.arena().list(pairs);
    attributes->channel = context_.partition_count > 1 ? recv.as<ChannelAttrs>().channel : 0;
    return rewriter_.builder().op(Op::COLLECTIVE_PERMUTE, recv.shape.element(0), {sent}, attributes);
  }
  InstrId sent_by(const Transfer& transfer) const { return module_[transfer.send].operand(0); }

  // Puts what a done gives in its place: data and token, or the token alone.
  void end(InstrId id, const Instruction& done) {
    const InstrId state = done.operand(0), token = part(state, 2);
    if (done.op == Op::SEND_DONE) return rewriter_.replace(id, token);
    replace(id, rewriter_.builder().tuple(std::array{part(state, 0), token}));
  }

  void replace(InstrId id, InstrId tuple) {
    rewriter_.replace(id, tuple);
    tuples_.insert(rewriter_.now(id));
  }

  InstrId part(InstrId tuple, int64_t index) {
    if (tuples_.contains(tuple)) return module_[tuple].operand(static_cast<size_t>(index));
    return rewriter_.builder().get(tuple, index);
  }

  Module& module_;
  const PassContext& context_;
  bool all_;
  Rewriter rewriter_;
  std::map<InstrId, const Transfer*> by_start_;
  std::set<InstrId> tuples_;  // in place of sends, recvs and recv-dones
};

}  // namespace

Expected<bool> join_transfers(Module& module, PassContext& context) {
  // The numbers of transfers count replicas and partitions, those of a permute either of them.
  if (context.replica_count > 1 && context.partition_count > 1) return false;
  std::map<CompId, std::vector<Transfer>> found;
  size_t starts = 0, joined = 0;
  const std::vector<CompId> computations = post_order(module);
  for (const CompId computation : computations) {
    Order order(module, computation);
    for (const InstrId id : module[computation].order) starts += is_transfer(module[id]);
    for (Transfer& one : transfers_of(module, computation)) {
      if (!order.add(one)) continue;
      found[computation].push_back(std::move(one));
      joined += 2;
    }
  }
  if (joined == 0) return false;
  const bool all = joined == starts;
  bool changed = false;
  for (const CompId computation : computations) {
    std::vector<Transfer>& transfers = found[computation];
    if (!all) std::erase_if(transfers, [&](const Transfer& one) { return is_passed_on(module, computation, one); });
    if (transfers.empty() && !all) continue;
    Order order(module, computation);
    for (const Transfer& one : transfers) order.add(one);
    module[computation].order = order.sorted();
    COLLET_ASSIGN(const bool one, Joiner(module, computation, context, transfers, all).run());
    changed |= one;
  }
  return changed;
}

}  // namespace collet::hlo
