// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/propagation.h"

#include <algorithm>
#include <array>
#include <memory>

#include "hlo/passes/spmd/sharding_graph.h"
#include "hlo/passes/spmd/strategy.h"

namespace collet::hlo::spmd {
namespace {

constexpr int kMostRounds = 32;       // rounds per level of propagation; a round is forward and backward
constexpr int kMostSweeps = 4;        // passes over all values that change shardings by cost
constexpr size_t kMostTwice = 20000;  // instructions of a module for which the search starts more than once
// A value with more users keeps its sharding, because evaluating a change takes time per user.
constexpr size_t kMostUsers = 64;

using Kind = ShardingRule::Kind;

// How the search for shardings starts.
struct SearchOptions {
  bool uneven = true;     // stated dimensions that do not split evenly are split
  bool propagate = true;  // what is stated is propagated; else only what lowers bytes is split
};

struct Found {
  ShardingTable table;
  double cost = 0;
};

class Propagator {
 public:
  Propagator(const Module& module, const ProgramRegions& regions, const ShardingGraph& graph,
             const SearchOptions& options)
      : m_(module), regions_(regions), options_(options), g_(graph) {}

  Found run() {
    for (ShardingSlot& slot : slots_)
      for (size_t d = 0; d < slot.closed.size() && !options_.uneven; ++d)
        if (!slot.closed[d]) slot.now.dimensions[d] = even_sharding(slot).dimensions[d];
    find_hints();
    std::vector<ArraySharding> stated;
    for (const ShardingSlot& slot : slots_) stated.push_back(slot.now);
    for (int level = 0; level <= 2; ++level) to_fixed_point(level);
    keep_updates();
    for (size_t s = 0; s < slots_.size() && !options_.propagate; ++s) slots_[s].now = stated[s];
    for (int sweep = 0; sweep < kMostSweeps; ++sweep)
      if (!lower_cost((sweep % 2 == 0) == options_.propagate)) break;
    unreduced(regions_.all()[0]);
    Found out;
    for (const ShardingNode& node : nodes_) out.cost += cost(node);
    for (const Region& region : regions_.all())
      for (InstrId id : m_[region.computation].order) {
        std::vector<ArraySharding> leaves;
        for (uint32_t s : rows_[index_of(id)]) leaves.push_back(slots_[s].now);
        out.table.set(id, std::move(leaves));
      }
    return out;
  }

 private:
  using Row = ShardingGraph::Row;

  // A result that is a new version of a parameter must not be split only to save bytes: the next call would gather it.
  void keep_updates() {
    for (const ShardingNode& node : nodes_)
      if (node.kind == ShardingNode::Kind::Result && slots_[node.from[0]].updates_parameter)
        slots_[node.from[0]].propagated = even_sharding(slots_[node.from[0]]);
  }

  // --- Propagation to a fixed point.

  bool accepts(const ShardingSlot& slot, size_t d, const DimensionSharding& s) const {
    if (slot.closed[d] || !s.is_split() || s == slot.now.dimensions[d]) return false;
    const bool at_least = !slot.least.empty() && slot.least[d].is_split();
    if (at_least ? slot.now.dimensions[d] != slot.least[d] || !refines(s, slot.least[d])
                 : slot.now.dimensions[d].is_split())
      return false;
    if (slot.shape.dim(static_cast<int>(d)) < s.count()) return false;
    std::vector<DimensionSharding> all = slot.now.dimensions;
    all[d] = s;
    all.push_back(slot.hint.is_split() ? slot.hint : slot.now.unreduced);
    return are_independent(all, *slot.groups);
  }

  bool spread(const std::vector<DimensionSharding>& from, uint32_t to) {
    ShardingSlot& slot = slots_[to];
    bool changed = false;
    for (size_t d = 0; d < slot.closed.size() && d < from.size(); ++d)
      if (accepts(slot, d, from[d])) {
        slot.now.dimensions[d] = from[d];
        changed = true;
      }
    return changed;
  }

  void to_fixed_point(int level) {
    for (int round = 0; round < kMostRounds; ++round) {
      bool changed = false;
      for (const ShardingNode& node : nodes_) changed = transfer(node, level) || changed;
      for (size_t n = nodes_.size(); n-- > 0;) changed = transfer(nodes_[n], level) || changed;
      if (!changed) return;
    }
  }

  bool transfer(const ShardingNode& node, int level) {
    if (node.level > level) return false;
    switch (node.kind) {
      case ShardingNode::Kind::Copy: {
        const bool forward = spread(slots_[node.from[0]].now.dimensions, node.to[0]);
        return spread(slots_[node.to[0]].now.dimensions, node.from[0]) || forward;
      }
      case ShardingNode::Kind::Manual: {
        const uint32_t outer = node.enters ? node.from[0] : node.to[0], inner = node.enters ? node.to[0] : node.from[0];
        const std::vector<DimensionSharding> down = inside(node.split, slots_[outer].now.dimensions);
        const bool entered = spread(down, inner);
        const std::vector<DimensionSharding> up = node.split.outer(slots_[inner].now.dimensions);
        return spread(up, outer) || entered;
      }
      case ShardingNode::Kind::Op:
        return by_rule(node, level);
      case ShardingNode::Kind::Result:
        return false;
    }
    return false;
  }

  // Returns the shardings along the free axes of an array that `split` divides along the manual axes.
  static std::vector<DimensionSharding> inside(const ManualSplit& split, const std::vector<DimensionSharding>& outer) {
    std::vector<DimensionSharding> out(outer.size());
    for (size_t d = 0; d < outer.size(); ++d)
      if (refines(outer[d], split.manual[d])) out[d] = minor_part(outer[d], outer[d].count() / split.manual[d].count());
    return out;
  }

  bool by_rule(const ShardingNode& node, int level) {
    const Instruction& instr = m_[node.instr];
    const ShardingRule& rule = rules_.at(index_of(node.instr));
    // The arrays of the node, the largest first: if two suggest different shardings of a factor, that of the larger
    // array is used.
    struct Source {
      uint32_t slot;
      const ShardingRule::Array* array;
      int64_t size;
    };
    std::vector<Source> sources;
    for (size_t r = 0; r < node.to.size() && r < rule.results.size(); ++r)
      sources.push_back({node.to[r], &rule.results[r], slots_[node.to[r]].shape.element_count()});
    for (size_t k = 0; k < node.from.size(); ++k)
      sources.push_back({node.from[k], &rule.operands[k], slots_[node.from[k]].shape.element_count()});
    std::stable_sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.size > b.size; });
    std::vector<DimensionSharding> factors(rule.factors.size());
    bool any = false;
    for (const Source& source : sources)
      for (size_t d = 0; d < source.array->size(); ++d) {
        const DimensionSharding& s = slots_[source.slot].now.dimensions[d];
        if (!s.is_split()) continue;
        const auto parts = shardings_of_factors(rule, (*source.array)[d], s);
        for (size_t i = 0; i < parts.size(); ++i) {
          const auto f = static_cast<size_t>((*source.array)[d][i]);
          const Kind kind = rule.factors[f].kind;
          if (factors[f].is_split() || !parts[i].is_split() || kind == Kind::Selected) continue;
          if ((kind == Kind::Windowed || kind == Kind::WindowReduced) && level < 2) continue;
          if (!can_split_factor(m_, instr, rule, f, parts[i])) continue;
          factors[f] = parts[i];
          if (are_independent(factors, *slots_[node.to[0]].groups))
            any = true;
          else
            factors[f] = DimensionSharding();
        }
      }
    if (!any) return false;
    drop_inner_factors(rule, factors);
    bool changed = false;
    for (const Source& source : sources)
      changed = spread(sharding_by_factors(*source.array, factors), source.slot) || changed;
    return changed;
  }

  // --- Lower cost.

  std::vector<ArraySharding> gathered(const std::vector<uint32_t>& slots) const {
    std::vector<ArraySharding> out;
    for (uint32_t s : slots) out.push_back(slots_[s].now);
    return out;
  }

  OpStrategy strategy(const ShardingNode& node, bool free_results) const {
    return choose_strategy(m_, m_[node.instr], rules_.at(index_of(node.instr)), gathered(node.from),
                           free_results ? std::vector<ArraySharding>() : gathered(node.to), *slots_[node.to[0]].groups);
  }

  // `moved` is set to the bytes that are sent, which are a part of the cost.
  double cost(const ShardingNode& node, double* moved = nullptr) const {
    switch (node.kind) {
      case ShardingNode::Kind::Op: {
        const OpStrategy chosen = strategy(node, false);
        if (moved) *moved += node.weight * chosen.bytes;
        return node.weight * chosen.cost();
      }
      default: {
        const double bytes = node.weight * bytes_between(node);
        if (moved) *moved += bytes;
        return bytes;
      }
    }
  }

  // Returns the bytes to send for a node that is not an op, with the current shardings of its two slots.
  double bytes_between(const ShardingNode& node) const {
    const ShardingSlot& from = slots_[node.from[0]];
    switch (node.kind) {
      case ShardingNode::Kind::Op:
        return 0;
      case ShardingNode::Kind::Copy:
        return reshard_bytes(from.shape, from.now, slots_[node.to[0]].now, *from.groups);
      case ShardingNode::Kind::Manual: {
        const ShardingSlot& to = slots_[node.to[0]];
        if (node.enters) return reshard_bytes(from.shape, from.now, outside(node, to.now), *from.groups);
        return reshard_bytes(from.shape, from.now, inside_of(node, to.now), *groups_of_inside(node));
      }
      case ShardingNode::Kind::Result: {
        if (!node.may_split)
          return reshard_bytes(from.shape, from.now, ArraySharding(from.closed.size()), *from.groups);
        const double undone = from.propagated ? reshard_bytes(from.shape, from.now, *from.propagated, *from.groups) : 0;
        return std::max(undone, reshard_bytes(from.shape, from.now, even_sharding(from), *from.groups));
      }
    }
    return 0;
  }

  ArraySharding outside(const ShardingNode& node, const ArraySharding& inner) const {
    return {node.split.outer(inner.dimensions), node.split.unreduced};
  }
  ArraySharding inside_of(const ShardingNode& node, const ArraySharding& outer) const {
    return ArraySharding(inside(node.split, outer.dimensions));
  }
  const DeviceGroups* groups_of_inside(const ShardingNode& node) const { return slots_[node.from[0]].groups; }

  double cost_around(const ShardingSlot& slot, double* moved = nullptr) const {
    double sum = 0;
    for (uint32_t n : slot.nodes) sum += cost(nodes_[n], moved);
    return sum;
  }

  // Returns the shardings that the nodes around slot `s` would give it.
  std::vector<std::vector<DimensionSharding>> candidates(uint32_t s) {
    std::vector<std::vector<DimensionSharding>> out;
    const auto add = [&](const std::vector<DimensionSharding>& dims) {
      if (dims.size() != slots_[s].closed.size()) return;
      std::vector<DimensionSharding> open = slots_[s].now.dimensions;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (slots_[s].closed[d]) continue;
        open[d] = dims[d];
        if (!slots_[s].least.empty() && !refines(open[d], slots_[s].least[d])) return;
        if (slots_[s].shape.dim(static_cast<int>(d)) < dims[d].count()) return;
      }
      std::vector<DimensionSharding> all = open;
      all.push_back(slots_[s].hint.is_split() ? slots_[s].hint : slots_[s].now.unreduced);
      if (!are_independent(all, *slots_[s].groups)) return;
      if (std::find(out.begin(), out.end(), open) == out.end()) out.push_back(std::move(open));
    };
    add(slots_[s].now.dimensions);
    for (uint32_t n : slots_[s].nodes) {
      const ShardingNode& node = nodes_[n];
      switch (node.kind) {
        case ShardingNode::Kind::Op: {
          const bool gives = std::find(node.to.begin(), node.to.end(), s) != node.to.end();
          const OpStrategy chosen = strategy(node, gives);
          for (size_t r = 0; r < node.to.size() && r < chosen.results.size(); ++r)
            if (node.to[r] == s) add(chosen.results[r].dimensions);
          for (size_t k = 0; k < node.from.size(); ++k)
            if (node.from[k] == s) add(chosen.operands[k].dimensions);
          if (!gives) {
            // Computes the strategy as if the slot had no sharding, to see what the other operands and the result suggest.
            const ArraySharding had = slots_[s].now;
            slots_[s].now.dimensions.assign(had.dimensions.size(), DimensionSharding());
            const OpStrategy without = strategy(node, false);
            slots_[s].now = had;
            for (size_t k = 0; k < node.from.size(); ++k)
              if (node.from[k] == s) add(without.operands[k].dimensions);
          }
          break;
        }
        case ShardingNode::Kind::Copy:
          add(slots_[node.from[0] == s ? node.to[0] : node.from[0]].now.dimensions);
          break;
        case ShardingNode::Kind::Manual: {
          const bool outer = (node.from[0] == s) == node.enters;
          const auto& other = slots_[node.from[0] == s ? node.to[0] : node.from[0]].now.dimensions;
          add(outer ? node.split.outer(other) : inside(node.split, other));
          break;
        }
        case ShardingNode::Kind::Result:
          add(even_sharding(slots_[s]).dimensions);
          if (slots_[s].propagated) add(slots_[s].propagated->dimensions);
          break;
      }
    }
    add(std::vector<DimensionSharding>(slots_[s].closed.size()));
    return out;
  }

  static double parallel(const std::vector<DimensionSharding>& dims) {
    double out = 1;
    for (const DimensionSharding& d : dims) out *= static_cast<double>(d.count());
    return out;
  }

  bool lower_cost(bool backward) {
    bool changed = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const auto s = static_cast<uint32_t>(backward ? slots_.size() - 1 - i : i);
      if (slots_[s].nodes.empty() || slots_[s].all_closed() || slots_[s].nodes.size() > kMostUsers) continue;
      double moved = 0;
      const double had = cost_around(slots_[s], &moved);
      if (moved == 0) continue;
      const auto list = candidates(s);
      const std::vector<DimensionSharding> before = slots_[s].now.dimensions;
      std::vector<DimensionSharding> best = before;
      double least = had;
      for (const auto& dims : list) {
        if (dims == before) continue;
        slots_[s].now.dimensions = dims;
        const double now = cost_around(slots_[s]);
        if (now < least - 1e-6 || (now < least + 1e-6 && best != before && parallel(dims) > parallel(best))) {
          least = now;
          best = dims;
        }
      }
      slots_[s].now.dimensions = best;
      changed = changed || best != before;
    }
    return changed;
  }

  // --- Unreduced values.

  // Marks values that a constraint directly after them states as unreduced.
  void find_hints() {
    for (const ShardingNode& node : nodes_) {
      if (node.kind != ShardingNode::Kind::Copy || !is_constraint(m_[node.instr])) continue;
      ShardingSlot& from = slots_[node.from[0]];
      const DimensionSharding& wants = slots_[node.to[0]].now.unreduced;
      if (wants.is_split() && !from.unreduced_fixed && !from.hint.is_split()) from.hint = wants;
    }
    // The state of loops whose initial value is unreduced.
    for (const ShardingNode& node : nodes_) {
      if (node.kind != ShardingNode::Kind::Copy || m_[node.instr].op != Op::WHILE) continue;
      const ShardingSlot& from = slots_[node.from[0]];
      ShardingSlot& to = slots_[node.to[0]];
      if (!to.unreduced_fixed) to.hint = from.hint.is_split() ? from.hint : from.now.unreduced;
    }
  }

  bool leave_unreduced(ShardingSlot& slot, const DimensionSharding& along) {
    if (!along.is_split() || !is_consistent({slot.now.dimensions, along}, *slot.groups)) return false;
    slot.now.unreduced = along;
    return true;
  }

  // Decides in program order which values are unreduced.
  void unreduced(const Region& region) {
    for (InstrId id : m_[region.computation].order) {
      const Instruction& instr = m_[id];
      if (instr.op == Op::WHILE && !regions_.is_copied(id)) {
        const Row &init = row(instr.operand(0)), &state = row(id), &root = row(m_[instr.called[1]].root);
        for (size_t i = 0; i < state.size(); ++i)
          if (!slots_[state[i]].unreduced_fixed && slots_[state[i]].hint.is_split())
            leave_unreduced(slots_[state[i]], slots_[init[i]].now.unreduced);
        const Region& body = *regions_.of(instr.called[1]);
        unreduced(body);
        for (bool changed = true; changed;) {
          changed = false;
          for (size_t i = 0; i < state.size(); ++i) {
            ShardingSlot& slot = slots_[state[i]];
            if (slot.unreduced_fixed || !slot.now.unreduced.is_split() ||
                same_split(slot.now.unreduced, slots_[root[i]].now.unreduced))
              continue;
            slot.now.unreduced = DimensionSharding();
            changed = true;
          }
          if (changed) unreduced(body);
        }
        continue;
      }
      for (CompId c : instr.called)
        if (const Region* inner = regions_.of(c); inner && !regions_.is_copied(id)) unreduced(*inner);
      const auto rule = rules_.find(index_of(id));
      if (rule == rules_.end() || row(id).size() != 1) continue;
      ShardingSlot& slot = slots_[row(id)[0]];
      if (slot.unreduced_fixed) continue;
      slot.now.unreduced = DimensionSharding();
      if (!slot.hint.is_split()) continue;
      if (instr.op == Op::SCATTER)
        if (auto terms = sharding_rule(m_, instr, true)) rule->second = std::move(*terms);
      const ArraySharding had = slot.now;
      if (!leave_unreduced(slot, slot.hint)) continue;
      std::vector<ArraySharding> operands;
      for (InstrId operand : instr.operands) operands.push_back(slots_[row(operand)[0]].now);
      const OpStrategy chosen = choose_strategy(m_, instr, rule->second, operands, std::array{slot.now}, *slot.groups);
      slot.now = had;
      if (rule->second.adds(m_)) leave_unreduced(slot, chosen.results[0].unreduced);
    }
  }

  const Row& row(InstrId id) const { return g_.row(id); }

  const Module& m_;
  const ProgramRegions& regions_;
  const SearchOptions options_;
  ShardingGraph g_;
  std::vector<ShardingSlot>& slots_ = g_.slots;
  const std::vector<ShardingNode>& nodes_ = g_.nodes;
  const std::vector<Row>& rows_ = g_.rows;
  std::unordered_map<uint32_t, ShardingRule>& rules_ = g_.rules;
};

}  // namespace

Expected<ShardingTable> propagate_shardings(const Module& module, const ProgramRegions& regions) {
  COLLET_ASSIGN(const ShardingGraph graph, ShardingGraph::build(module, regions));
  Found best = Propagator(module, regions, graph, {}).run();
  if (module.instruction_count() > kMostTwice) return std::move(best.table);
  for (const bool uneven : {true, false})
    for (const bool propagate : {true, false}) {
      if ((uneven && propagate) || (!uneven && !graph.has_uneven)) continue;
      Found other = Propagator(module, regions, graph, {uneven, propagate}).run();
      if (other.cost < best.cost - 1e-6) best = std::move(other);
    }
  return std::move(best.table);
}

}  // namespace collet::hlo::spmd
