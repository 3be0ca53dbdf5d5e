// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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
bool is_passed_on(const Module& module, CompId computation, const UserMap& users, const Transfer& transfer) {
  for (const InstrId start : {transfer.send, transfer.recv}) {
    if (start == module[computation].root) return true;
    for (const InstrId user : users.users(start))
      if (!is_done(module[user]) && module[user].op != Op::GET_TUPLE_ELEMENT) return true;
  }
  return false;
}

/// The order of a computation in which what is sent comes before the recv. It is kept sorted while such edges are added, by the
/// algorithm of Pearce and Kelly (A dynamic topological sort algorithm for directed acyclic graphs, 2006): an edge costs only what
/// lies between its ends.
class Order {
 public:
  Order(const Module& module, CompId computation) : module_(module) {
    for (const InstrId id : module[computation].order) {
      const auto node = static_cast<uint32_t>(instrs_.size());
      nodes_[index_of(id)] = node;
      instrs_.push_back(id);
      rank_.push_back(node);
    }
    before_.resize(instrs_.size());
    after_.resize(instrs_.size());
    for (uint32_t node = 0; node < instrs_.size(); ++node) {
      const Instruction& instr = module[instrs_[node]];
      for (const InstrId one : instr.operands) connect(nodes_.at(index_of(one)), node);
      if (!instr.extras) continue;
      for (const InstrId one : instr.extras->control_predecessors) connect(nodes_.at(index_of(one)), node);
    }
  }

  // Makes the recv come after what is sent; false if the recv comes first by data.
  bool add(const Transfer& transfer) {
    const uint32_t first = nodes_.at(index_of(module_[transfer.send].operand(0)));
    const uint32_t second = nodes_.at(index_of(transfer.recv));
    if (first == second) return false;
    if (rank_[first] > rank_[second]) {
      std::vector<uint32_t> sources = reached(first, before_, rank_[second], rank_[first]);
      const std::vector<uint32_t> targets = reached(second, after_, rank_[second], rank_[first]);
      if (std::find(targets.begin(), targets.end(), first) != targets.end()) return false;
      // The places of both sets, in order, are given to what the sent value depends on, then to what depends on the recv.
      sources.insert(sources.end(), targets.begin(), targets.end());
      std::vector<uint32_t> ranks;
      for (const uint32_t node : sources) ranks.push_back(rank_[node]);
      std::sort(ranks.begin(), ranks.end());
      for (size_t i = 0; i < sources.size(); ++i) rank_[sources[i]] = ranks[i];
    }
    connect(first, second);
    return true;
  }

  // Returns the instructions in that order.
  std::vector<InstrId> sorted() const {
    std::vector<InstrId> out(instrs_.size());
    for (size_t node = 0; node < instrs_.size(); ++node) out[rank_[node]] = instrs_[node];
    return out;
  }

 private:
  using Edges = std::vector<std::vector<uint32_t>>;

  void connect(uint32_t first, uint32_t second) {
    before_[second].push_back(first);
    after_[first].push_back(second);
  }

  // Returns the nodes with ranks from `low` to `high` that `from` reaches by the edges, sorted by rank.
  std::vector<uint32_t> reached(uint32_t from, const Edges& edges, uint32_t low, uint32_t high) const {
    std::unordered_set<uint32_t> seen{from};
    std::vector<uint32_t> out{from};
    for (size_t i = 0; i < out.size(); ++i)
      for (const uint32_t next : edges[out[i]])
        if (rank_[next] >= low && rank_[next] <= high && seen.insert(next).second) out.push_back(next);
    std::sort(out.begin(), out.end(), [&](uint32_t a, uint32_t b) { return rank_[a] < rank_[b]; });
    return out;
  }

  const Module& module_;
  std::unordered_map<uint32_t, uint32_t> nodes_;  // by instruction
  std::vector<InstrId> instrs_;                   // by node
  std::vector<uint32_t> rank_;                    // by node: its place in the order
  Edges before_, after_;
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
    if (!all) {
      const UserMap users(module, computation);
      std::erase_if(transfers, [&](const Transfer& one) { return is_passed_on(module, computation, users, one); });
    }
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
