// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/plan_buffers.h"

#include <collet/memory_planner.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

using memory::PlacedInterval;

/// The offset of a value, relative to the memory of its own computation.
struct Place {
  enum Kind : uint8_t { None, Slot, Argument, Result } kind = None;
  uint32_t index = 0;
};

enum class Use : uint8_t { Entry, Condition, Body, Branch, Shared };

/// An op that calls computations, and the slot that holds the memory of these computations.
struct NestedOp {
  InstrId op;
  uint32_t slot;
};

struct Region {
  CompId id = CompId::None;
  Use use = Use::Branch;
  std::vector<PlacedInterval> slots;
  std::unordered_map<Leaf, Place, LeafHash> places;
  std::vector<NestedOp> nests;
  uint64_t height = 0;
};

class Planner {
 public:
  Planner(const Module& module, uint32_t alignment) : module_(module) { plan_.alignment = alignment; }

  Expected<BufferPlan> run() {
    const std::vector<CompId> order = flow_computations(module_);
    find_uses(order);
    for (CompId c : order) build(c);
    // Callers come before callees here, because a caller determines where the memory of its callees begins.
    uint64_t top = regions_.at(index_of(module_.entry())).height;
    for (const auto& [id, use] : uses_)
      if (use == Use::Shared) {
        bases_[id] = top;
        top += regions_.at(id).height;
      }
    bases_[index_of(module_.entry())] = 0;
    for (size_t i = order.size(); i-- > 0;) settle(regions_.at(index_of(order[i])));
    plan_.bytes = top;
    return std::move(plan_);
  }

 private:
  void find_uses(const std::vector<CompId>& order) {
    const auto use = [&](CompId c, Use how) {
      auto [it, fresh] = uses_.try_emplace(index_of(c), how);
      if (!fresh) it->second = Use::Shared;
    };
    use(module_.entry(), Use::Entry);
    for (CompId c : order)
      for (InstrId id : module_[c].order) {
        const Instruction& instr = module_[id];
        if (!is_flow(instr)) continue;
        for (size_t i = 0; i < instr.called.size(); ++i)
          use(instr.called[i], instr.op != Op::WHILE ? Use::Branch : i == 0 ? Use::Condition : Use::Body);
      }
  }

  // ---- one computation ----

  void build(CompId c) {
    Region& region = regions_[index_of(c)];
    region.id = c;
    region.use = uses_.at(index_of(c));
    const auto& order = module_[c].order;
    last_.clear();
    time_of_root_ = static_cast<int64_t>(order.size());
    for (size_t t = 0; t < order.size(); ++t) {
      const Instruction& instr = module_[order[t]];
      if (is_transparent(instr)) continue;
      for (const Leaf& leaf : operand_leaves(module_, instr)) last_[leaf] = static_cast<int64_t>(t);
    }
    root_ = leaves_of(module_, module_[c].root);
    root_index_.clear();
    for (uint32_t i = 0; i < root_.size(); ++i) {
      last_[root_[i]] = time_of_root_;
      auto [it, fresh] = root_index_.try_emplace(root_[i], i);
      if (!fresh) it->second = UINT32_MAX;
    }
    arguments_.clear();
    for (InstrId p : module_[c].parameters) {
      const auto n = static_cast<uint32_t>(module_[p].shape.leaf_count());
      for (uint32_t i = 0; i < n; ++i) arguments_.push_back({p, i});
    }
    for (uint32_t i = 0; i < arguments_.size(); ++i) {
      if (region.use == Use::Entry || bytes_of(arguments_[i]) == 0) continue;
      if (region.use == Use::Shared)
        region.places[arguments_[i]] = new_slot(region, bytes_of(arguments_[i]), -1, time_of_root_);
      else
        region.places[arguments_[i]] = {Place::Argument, i};
    }
    for (size_t t = 0; t < order.size(); ++t) define(region, order[t], static_cast<int64_t>(t));
    region.height = memory::place_intervals(region.slots, plan_.alignment);
  }

  uint64_t bytes_of(Leaf leaf) const {
    return static_cast<uint64_t>(std::max<int64_t>(0, leaf_shape(module_[leaf.instr].shape, leaf.index).byte_size()));
  }

  static Place new_slot(Region& region, uint64_t bytes, int64_t first, int64_t last) {
    region.slots.push_back({first, last, bytes, 0});
    return {Place::Slot, static_cast<uint32_t>(region.slots.size() - 1)};
  }

  int64_t last_use(Leaf leaf, int64_t otherwise) const {
    auto it = last_.find(leaf);
    return it == last_.end() ? otherwise : it->second;
  }

  void define(Region& region, InstrId id, int64_t t) {
    const Instruction& instr = module_[id];
    if (is_transparent(instr) || instr.op == Op::PARAMETER || instr.op == Op::CONSTANT) return;
    if (is_flow(instr)) {
      uint64_t bytes = 0;
      for (CompId c : instr.called)
        if (uses_.at(index_of(c)) != Use::Shared) bytes = std::max(bytes, regions_.at(index_of(c)).height);
      const Place slot = new_slot(region, bytes, t, t);
      region.nests.push_back({id, slot.index});
    }
    const auto n = static_cast<uint32_t>(instr.shape.leaf_count());
    taken_.clear();
    operands_ = operand_leaves(module_, instr);
    times_.clear();
    for (const Leaf& operand : operands_) ++times_[operand];
    for (uint32_t i = 0; i < n; ++i) {
      const Leaf leaf{id, i};
      if (bytes_of(leaf) == 0) continue;
      const Place place = choose(region, instr, leaf, t);
      if (place.kind != Place::None) region.places[leaf] = place;
    }
  }

  Place choose(Region& region, const Instruction& instr, Leaf leaf, int64_t t) {
    const int64_t last = last_use(leaf, t);
    auto at_root = root_index_.find(leaf);
    const bool is_root = at_root != root_index_.end();
    if (is_root && region.use == Use::Entry && !is_flow(instr)) return {};
    if (is_root && at_root->second != UINT32_MAX) {
      if (region.use == Use::Branch) return {Place::Result, at_root->second};
      if (region.use == Use::Body && may_lie_on_argument(instr, leaf, at_root->second, t))
        return {Place::Argument, at_root->second};
    }
    for (const Leaf& operand : in_place_operands(instr, leaf)) {
      auto it = region.places.find(operand);
      if (it == region.places.end() || it->second.kind != Place::Slot || last_use(operand, t) != t) continue;
      if (bytes_of(operand) != bytes_of(leaf)) continue;
      if (!taken_.insert(it->second.index).second) continue;
      region.slots[it->second.index].last = last;
      return it->second;
    }
    return new_slot(region, bytes_of(leaf), t, last);
  }

  // True if `leaf`, made at time t, may share the memory of state element `index`: that element is not read after t, or
  // `leaf` is computed from it in place.
  bool may_lie_on_argument(const Instruction& instr, Leaf leaf, uint32_t index, int64_t t) const {
    if (index >= arguments_.size()) return false;
    const Leaf argument = arguments_[index];
    if (bytes_of(argument) != bytes_of(leaf)) return false;
    const int64_t last = last_use(argument, -1);
    if (last < t) return true;
    if (last > t) return false;
    const std::span<const Leaf> operands = in_place_operands(instr, leaf);
    return std::find(operands.begin(), operands.end(), argument) != operands.end();
  }

  // Returns those of operands_ that `leaf` of the instruction may overwrite while it is computed.
  std::span<const Leaf> in_place_operands(const Instruction& instr, Leaf leaf) const {
    const std::span<const Leaf> operands = operands_;
    if (instr.op == Op::WHILE || instr.op == Op::DYNAMIC_UPDATE_SLICE) {
      const size_t at = instr.op == Op::WHILE ? leaf.index : 0;
      return times_.at(operands[at]) == 1 ? operands.subspan(at, 1) : std::span<const Leaf>();
    }
    // A fusion or map may read other elements of an operand than the one that it writes.
    return is_elementwise(instr.op) && instr.op != Op::MAP ? operands : std::span<const Leaf>();
  }

  // ---- all computations ----

  struct OuterOffsets {
    std::vector<uint64_t> arguments, results;
  };

  uint64_t absolute(const Region& region, const Place& place) const {
    const auto from = [&](const std::vector<uint64_t>& list) {
      return place.index < list.size() ? list[place.index] : BufferPlan::kNone;
    };
    switch (place.kind) {
      case Place::None:
        break;
      case Place::Slot:
        return bases_.at(index_of(region.id)) + region.slots[place.index].offset;
      case Place::Argument:
      case Place::Result: {
        auto it = outer_offsets_.find(index_of(region.id));
        if (it == outer_offsets_.end()) break;
        return from(place.kind == Place::Argument ? it->second.arguments : it->second.results);
      }
    }
    return BufferPlan::kNone;
  }

  void settle(const Region& region) {
    for (const auto& [leaf, place] : region.places) {
      const uint64_t offset = absolute(region, place);
      if (offset != BufferPlan::kNone) plan_.offsets[leaf] = offset;
    }
    for (const NestedOp& nest : region.nests) {
      const Instruction& instr = module_[nest.op];
      const uint64_t base = bases_.at(index_of(region.id)) + region.slots[nest.slot].offset;
      std::vector<uint64_t> results, operands;
      for (uint32_t i = 0; i < instr.shape.leaf_count(); ++i) results.push_back(plan_.offset({nest.op, i}));
      size_t next = 0;
      for (size_t k = 0; k < instr.operands.size(); ++k) {
        if (instr.op == Op::CONDITIONAL && k == 0) continue;  // operand 0 is the selector
        OuterOffsets s;
        for (const Leaf& leaf : leaves_of(module_, instr.operand(k))) operands.push_back(plan_.offset(leaf));
        if (instr.op == Op::CALL && k + 1 < instr.operands.size()) continue;
        s.arguments = std::exchange(operands, {});
        s.results = results;
        if (instr.op == Op::WHILE) {
          s.arguments = results;
          for (CompId c : instr.called) enclose(c, base, s);
        } else {
          enclose(instr.called[next++], base, s);
        }
      }
      if (instr.op == Op::CALL && instr.operands.empty()) enclose(instr.called[0], base, {{}, results});
    }
  }

  void enclose(CompId c, uint64_t base, const OuterOffsets& s) {
    if (uses_.at(index_of(c)) == Use::Shared) return;
    bases_[index_of(c)] = base;
    outer_offsets_[index_of(c)] = s;
  }

  const Module& module_;
  BufferPlan plan_;
  std::map<uint32_t, Use> uses_;
  std::unordered_map<uint32_t, Region> regions_;
  std::unordered_map<uint32_t, uint64_t> bases_;
  std::unordered_map<uint32_t, OuterOffsets> outer_offsets_;

  // State for the computation that is being planned.
  std::unordered_map<Leaf, int64_t, LeafHash> last_;
  std::unordered_map<Leaf, uint32_t, LeafHash> root_index_;
  std::vector<Leaf> root_, arguments_;
  // State for the current op: its operands, how often each occurs, and the slots that its results reuse.
  std::vector<Leaf> operands_;
  std::unordered_map<Leaf, uint32_t, LeafHash> times_;
  std::unordered_set<uint32_t> taken_;
  int64_t time_of_root_ = 0;
};

}  // namespace

Expected<BufferPlan> plan_buffers(const Module& module, uint32_t alignment) {
  return Planner(module, alignment).run();
}

}  // namespace collet::hlo
