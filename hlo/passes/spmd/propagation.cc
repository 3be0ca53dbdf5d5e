// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/propagation.h"

#include <algorithm>
#include <array>
#include <memory>

#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/strategy.h"
#include "hlo/program/leaves.h"

namespace collet::hlo::spmd {
namespace {

constexpr int kMostRounds = 32;       // of a level of propagation, forward and backward
constexpr int kMostSweeps = 4;        // of changes by cost
constexpr size_t kMostTwice = 20000;  // instructions of a module for which the search starts more than once
constexpr size_t kMostUsers = 64;     // beyond these a change of a value is not considered

using Kind = ShardingRule::Kind;

std::string quoted(const Instruction& instr) {
  return "'" + std::string(instr.name) + "'";
}

Status refuse(const Instruction& parameter, const std::string& why) {
  return invalid_argument("parameter " + quoted(parameter) + " (" + parameter.shape.to_string() + "): " + why);
}

// A value's sharding while it is looked for. Several leaves share a slot: what tuples and control flow only pass on.
struct Slot {
  ArraySharding now;
  Shape shape;
  const DeviceGroups* groups = nullptr;
  double weight = 1;
  std::vector<bool> closed;              // by dimension: stated, or not to be split
  std::vector<DimensionSharding> least;  // what dimensions are split by at least; empty: nothing
  DimensionSharding hint;                // what a constraint behind it wants it to be unreduced along
  bool unreduced_fixed = false;
  bool updates_parameter = false;           // a new version of one with a stated sharding, by elementwise ops
  std::optional<ArraySharding> propagated;  // of such a result: what propagation gave it
  std::vector<uint32_t> nodes;              // that read or give it

  bool all_closed() const {
    return std::all_of(closed.begin(), closed.end(), [](bool c) { return c; });
  }
};

// Something that relates slots.
struct Node {
  enum class Kind : uint8_t {
    Op,      // operands and results by a sharding rule
    Copy,    // from `from` to `to`: one value of two shardings
    Manual,  // the same across the border of a manual computation: `from` outside, `to` inside, or the other way
    Result   // `from` is a result of the program: its tiles must be of one size
  };
  Kind kind = Kind::Op;
  InstrId instr = InstrId::None;
  std::vector<uint32_t> from, to;  // slots
  double weight = 1;
  ManualSplit split;
  bool enters = false;     // of a manual border
  bool may_split = false;  // of a result
  int level = 0;
};

// How the search for shardings starts.
struct SearchOptions {
  bool uneven = true;     // stated dimensions that do not split evenly are split
  bool propagate = true;  // what is stated is propagated; else only what lowers bytes is split
};

struct Found {
  ShardingTable table;
  double cost = 0;
  bool has_uneven = false;  // a dimension is stated that does not split evenly
};

class Propagator {
 public:
  Propagator(const Module& module, const ProgramRegions& regions, const SearchOptions& options)
      : m_(module), regions_(regions), options_(options) {}

  Expected<Found> run() {
    rows_.resize(m_.instruction_limit());
    COLLET_TRY(collect(regions_.all()[0]));
    results();
    find_updates();
    for (size_t n = 0; n < nodes_.size(); ++n)
      for (const auto* list : {&nodes_[n].from, &nodes_[n].to})
        for (uint32_t s : *list)
          if (slots_[s].nodes.empty() || slots_[s].nodes.back() != n)
            slots_[s].nodes.push_back(static_cast<uint32_t>(n));
    find_hints();
    std::vector<ArraySharding> stated;
    for (const Slot& slot : slots_) stated.push_back(slot.now);
    for (int level = 0; level <= 2; ++level) to_fixed_point(level);
    keep_updates();
    for (size_t s = 0; s < slots_.size() && !options_.propagate; ++s) slots_[s].now = stated[s];
    for (int sweep = 0; sweep < kMostSweeps; ++sweep)
      if (!lower_cost((sweep % 2 == 0) == options_.propagate)) break;
    unreduced(regions_.all()[0]);
    Found out;
    out.has_uneven = has_uneven_;
    for (const Node& node : nodes_) out.cost += cost(node);
    for (const Region& region : regions_.all())
      for (InstrId id : m_[region.computation].order) {
        std::vector<ArraySharding> leaves;
        for (uint32_t s : rows_[index_of(id)]) leaves.push_back(slots_[s].now);
        out.table.set(id, std::move(leaves));
      }
    return out;
  }

 private:
  using Row = std::vector<uint32_t>;

  // --- The slots and nodes of the module.

  uint32_t new_slot(const Shape& shape, const Region& region, bool closed) {
    Slot slot;
    const auto rank = static_cast<size_t>(shape.is_array() ? shape.rank() : 0);
    slot.now = ArraySharding(rank);
    slot.shape = shape;
    slot.groups = &region.groups;
    slot.weight = region.weight;
    slot.closed.assign(rank, closed || !shape.is_array() || shape.has_dynamic());
    slots_.push_back(std::move(slot));
    return static_cast<uint32_t>(slots_.size() - 1);
  }

  Row new_row(const Shape& shape, const Region& region, bool closed) {
    std::vector<Shape> shapes;
    append_leaf_shapes(shape, shapes);
    Row row;
    for (const Shape& leaf : shapes) row.push_back(new_slot(leaf, region, closed));
    return row;
  }

  void add_node(Node node) { nodes_.push_back(std::move(node)); }
  void copy_node(InstrId instr, uint32_t from, uint32_t to, double weight) {
    if (from != to) add_node({Node::Kind::Copy, instr, {from}, {to}, weight, {}, false, false, 0});
  }
  void copy_nodes(InstrId instr, const Row& from, const Row& to, double weight) {
    for (size_t i = 0; i < from.size() && i < to.size(); ++i) copy_node(instr, from[i], to[i], weight);
  }

  const Row& row(InstrId id) const { return rows_[index_of(id)]; }

  // Operands of what every partition does with whole arrays.
  void replicate_operands(InstrId id, const Region& region) {
    for (InstrId operand : m_[id].operands)
      for (uint32_t s : row(operand)) {
        if (slots_[s].all_closed() && slots_[s].now.is_replicated()) continue;
        const Shape shape = slots_[s].shape;
        copy_node(id, s, new_slot(shape, region, true), region.weight);
      }
  }

  // Fixes what `instr` states for its leaves.
  void fix_stated(const Instruction& instr, const Row& slots) {
    for (size_t i = 0; i < slots.size(); ++i) {
      Slot& slot = slots_[slots[i]];
      const auto stated = regions_.constraint(instr, slot.shape, i, *slot.groups);
      if (!stated) continue;
      slot.now = stated->sharding;
      // A dimension that does not split evenly is not fixed: padding may cost more than it saves.
      for (size_t d = 0; d < slot.closed.size(); ++d) {
        DimensionSharding& now = slot.now.dimensions[d];
        const bool is_even = slot.shape.dim(static_cast<int>(d)) % now.count() == 0;
        slot.closed[d] = (!stated->open[d] || now.is_split()) && is_even;
        has_uneven_ = has_uneven_ || !is_even;
        if (!is_even && !options_.uneven) now = DimensionSharding();
      }
      slot.unreduced_fixed = true;
    }
  }

  bool states(const Instruction& instr, const Row& slots) const {
    if (!instr.extras || (!instr.shape.is_array() && !instr.extras->sharding)) return false;
    for (size_t i = 0; i < slots.size(); ++i)
      if (regions_.constraint(instr, slots_[slots[i]].shape, i, *slots_[slots[i]].groups)) return true;
    return false;
  }

  // The slots of the arguments that `number` of a region's parameters stands for; set when its caller was collected.
  Status collect(const Region& region) {
    const bool entry = region.computation == m_.entry();
    for (InstrId id : m_[region.computation].order) {
      const Instruction& instr = m_[id];
      Row& own = rows_[index_of(id)];
      if (instr.op == Op::PARAMETER) {
        if (entry) {
          own = new_row(instr.shape, region, true);
          COLLET_TRY(parameter(instr, own));
        } else {
          const auto& given = arguments_[index_of(region.computation)];
          own = given[static_cast<size_t>(instr.as<ParameterAttrs>().number)];
        }
        continue;
      }
      if (regions_.is_manual(id)) {
        own = new_row(instr.shape, region, true);
        if (instr.op == Op::CALL && !regions_.is_copied(id)) {
          COLLET_ASSIGN(rows_[index_of(id)], collect_called(instr.called[0], rows_of(instr.operands)));
        } else if (!is_custom_call(instr, kEnterManualTile)) {
          replicate_operands(id, region);
        }
        continue;
      }
      COLLET_TRY(instruction(id, region));
    }
    return ok_status();
  }

  // The computation that is called, with these slots for its parameters; the slots of its root.
  Expected<Row> collect_called(CompId c, std::vector<Row> arguments) {
    arguments_[index_of(c)] = std::move(arguments);
    COLLET_TRY(collect(*regions_.of(c)));
    return row(m_[c].root);
  }

  // A parameter has exactly the sharding that the program states: its caller splits it that way.
  Status parameter(const Instruction& instr, const Row& own) {
    for (size_t i = 0; i < own.size(); ++i) {
      Slot& slot = slots_[own[i]];
      const auto rank = slot.closed.size();
      const Sharding* s = instr.extras ? instr.extras->sharding : nullptr;
      if (s && s->kind == Sharding::Kind::Tuple) s = s->elements.size() == own.size() ? &s->elements[i] : nullptr;
      const std::string count = std::to_string(regions_.partitions());
      if (!slot.shape.is_array()) continue;
      if (s) {
        auto stated = from_hlo_sharding(*s, rank, regions_.partitions());
        if (!stated)
          return refuse(instr,
                        "the sharding " + s->to_string() + " is none for " + count + " partitions that is understood");
        slot.now = std::move(*stated);
      } else if (auto stated = regions_.stated(instr, slot.shape, i)) {
        slot.now = std::move(stated->sharding);
        if (!is_consistent(slot.now, *slot.groups)) return refuse(instr, "its sharding is none for its mesh");
      } else if (instr.shape.is_array() && !frontend_attribute(instr, "xla.sdy.sharding").empty()) {
        return refuse(instr, "its xla.sdy.sharding is none for " + count + " partitions that is understood");
      } else if (may_shard_parameter(instr)) {
        slot.closed.assign(rank, slot.shape.has_dynamic());
      }
      slot.unreduced_fixed = true;
      if (slot.shape.has_dynamic() && !slot.now.is_whole()) return refuse(instr, "an array of dynamic size is split");
      for (size_t d = 0; d < rank; ++d)
        if (slot.shape.dim(static_cast<int>(d)) % slot.now.dimensions[d].count())
          return refuse(instr, "dimension " + std::to_string(d) + " does not split into " +
                                   std::to_string(slot.now.dimensions[d].count()) +
                                   " equal tiles; padding is not supported");
    }
    return ok_status();
  }

  // allow_spmd_sharding_propagation_to_parameters: one entry for all, or one for each.
  bool may_shard_parameter(const Instruction& instr) const {
    const std::vector<bool>& allowed = m_.header().spmd_to_parameters;
    if (allowed.empty() || !instr.shape.is_array()) return false;
    const auto number = static_cast<size_t>(instr.as<ParameterAttrs>().number);
    return allowed.size() == 1 ? allowed[0] : number < allowed.size() && allowed[number];
  }
  Status instruction(InstrId id, const Region& region) {
    const Instruction& instr = m_[id];
    Row passed;
    bool passes = true;
    switch (instr.op) {
      case Op::TUPLE:
        for (InstrId operand : instr.operands) passed.insert(passed.end(), row(operand).begin(), row(operand).end());
        break;
      case Op::GET_TUPLE_ELEMENT: {
        const Shape& tuple = m_[instr.operand(0)].shape;
        const auto index = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
        size_t first = index;
        const Row& all = row(instr.operand(0));
        if (all.size() != tuple.elements().size()) {
          first = 0;
          for (size_t i = 0; i < index; ++i) first += static_cast<size_t>(tuple.element(i).leaf_count());
        }
        const auto n = static_cast<size_t>(tuple.element(index).leaf_count());
        passed.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                      all.begin() + static_cast<std::ptrdiff_t>(first + n));
        break;
      }
      case Op::CALL: {
        if (regions_.is_copied(id)) {
          passes = false;
          break;
        }
        COLLET_ASSIGN(passed, collect_called(instr.called[0], rows_of(instr.operands)));
        break;
      }
      default:
        passes = false;
    }
    if (passes) {
      if (states(instr, passed)) {
        rows_[index_of(id)] = new_row(instr.shape, region, false);
        fix_stated(instr, row(id));
        copy_nodes(id, passed, row(id), region.weight);
      } else {
        rows_[index_of(id)] = std::move(passed);
      }
      return ok_status();
    }
    if (instr.op == Op::CUSTOM_CALL) return custom_call(id, region);
    if ((instr.op == Op::WHILE || instr.op == Op::CONDITIONAL) && !regions_.is_copied(id)) {
      rows_[index_of(id)] = new_row(instr.shape, region, false);
      fix_stated(instr, row(id));
      if (instr.op == Op::WHILE) {
        copy_nodes(id, row(instr.operand(0)), row(id), region.weight);
        COLLET_TRY(collect_called(instr.called[0], {row(id)}).status());
        COLLET_ASSIGN(const Row root, collect_called(instr.called[1], {row(id)}));
        copy_nodes(id, root, row(id), regions_.of(instr.called[1])->weight);
      } else {
        for (size_t k = 0; k < instr.called.size(); ++k) {
          COLLET_ASSIGN(const Row root, collect_called(instr.called[k], {row(instr.operand(k + 1))}));
          copy_nodes(id, root, row(id), region.weight);
        }
      }
      return ok_status();
    }
    if (instr.op == Op::OPT_BARRIER && !instr.operands.empty()) {
      rows_[index_of(id)] = new_row(instr.shape, region, false);
      copy_nodes(id, row(instr.operand(0)), row(id), region.weight);
      return ok_status();
    }
    const bool collective = is_collective(instr);
    auto rule = collective ? std::nullopt : sharding_rule(m_, instr);
    rows_[index_of(id)] = new_row(instr.shape, region, !rule && !collective);
    fix_stated(instr, row(id));
    if (rule && instr.op == Op::SCATTER && row(id).size() == 1 && slots_[row(id)[0]].now.unreduced.is_split())
      rule = sharding_rule(m_, instr, true);
    if (collective) {
      through_collective(id, region);
      return ok_status();
    }
    if (!rule) {
      replicate_operands(id, region);
      return ok_status();
    }
    Node node{Node::Kind::Op, id, {}, row(id), region.weight, {}, false, false, level_of(instr)};
    for (InstrId operand : instr.operands) node.from.push_back(row(operand)[0]);
    rules_[index_of(id)] = std::move(*rule);
    add_node(std::move(node));
    return ok_status();
  }

  std::vector<Row> rows_of(std::span<const InstrId> operands) const {
    std::vector<Row> out;
    for (InstrId operand : operands) out.push_back(row(operand));
    return out;
  }

  static bool is_collective(const Instruction& instr) {
    switch (instr.op) {
      case Op::ALL_REDUCE:
      case Op::ALL_GATHER:
      case Op::REDUCE_SCATTER:
      case Op::ALL_TO_ALL:
      case Op::COLLECTIVE_PERMUTE:
      case Op::COLLECTIVE_BROADCAST:
        return !instr.shape.has_dynamic();
      default:
        return false;
    }
  }

  // A collective that the program itself has works on tiles as it works on the whole, but for its own dimension.
  void through_collective(InstrId id, const Region& region) {
    const Instruction& instr = m_[id];
    int64_t dimension = -1;
    if (instr.op == Op::ALL_GATHER || instr.op == Op::REDUCE_SCATTER)
      dimension = instr.as<CollectiveDimAttrs>().dimension;
    if (instr.op == Op::ALL_TO_ALL && !instr.as<AllToAllAttrs>().dimension.empty())
      dimension = instr.as<AllToAllAttrs>().dimension[0];
    for (size_t i = 0; i < row(id).size(); ++i) {
      Slot& slot = slots_[row(id)[i]];
      if (dimension >= 0 && !slot.closed.empty()) slot.closed[static_cast<size_t>(dimension)] = true;
      if (i >= instr.operands.size() || row(instr.operand(i)).size() != 1) {
        slot.closed.assign(slot.closed.size(), true);
        continue;
      }
      copy_node(id, row(instr.operand(i))[0], row(id)[i], region.weight);
    }
  }

  static int level_of(const Instruction& instr) {
    switch (instr.op) {
      case Op::TRANSPOSE:
      case Op::RESHAPE:
      case Op::BITCAST_CONVERT:
      case Op::COPY:
      case Op::BROADCAST:
        return 0;
      default:
        return is_elementwise(instr.op) ? 0 : 1;
    }
  }

  Status custom_call(InstrId id, const Region& region) {
    const Instruction& instr = m_[id];
    const auto shape_of = [&](size_t i) -> const Shape& {
      return instr.shape.is_tuple() ? instr.shape.element(i) : instr.shape;
    };
    if (is_custom_call(instr, kEnterManual) || is_custom_call(instr, kLeaveManual)) {
      const bool enters = is_custom_call(instr, kEnterManual);
      const size_t n = instr.shape.is_tuple() ? instr.shape.elements().size() : 1;
      if (n != instr.operands.size())
        return invalid_argument(quoted(instr) + " has " + std::to_string(n) + " results for " +
                                std::to_string(instr.operands.size()) + " operands");
      COLLET_ASSIGN(DeviceGroups inside, regions_.manual_groups(instr, region.groups));
      groups_.push_back(std::make_unique<DeviceGroups>(std::move(inside)));
      for (size_t i = 0; i < n; ++i) COLLET_TRY(border(id, i, shape_of(i), region, enters));
      return ok_status();
    }
    if (is_constraint(instr) || is_custom_call(instr, "annotate_device_placement")) {
      const Shape& operand = m_[instr.operand(0)].shape;
      if (!instr.shape.same_without_layout(operand)) {
        if (is_constraint(instr))
          return invalid_argument(quoted(instr) + " gives " + instr.shape.to_string() + " of " + operand.to_string());
      } else if (is_constraint(instr) && row(instr.operand(0)).size() == 1) {
        rows_[index_of(id)] = new_row(instr.shape, region, false);
        fix_stated(instr, row(id));
        copy_nodes(id, row(instr.operand(0)), row(id), region.weight);
        return ok_status();
      } else {
        rows_[index_of(id)] = row(instr.operand(0));
        return ok_status();
      }
    }
    rows_[index_of(id)] = new_row(instr.shape, region, true);
    if (!is_custom_call(instr, kEnterManualTile) && !is_custom_call(instr, kLeaveManualTile))
      replicate_operands(id, region);
    if (is_custom_call(instr, kLeaveManualTile)) {
      if (!instr.shape.is_array() || !regions_.constraint(instr, instr.shape, 0, region.groups))
        return unimplemented(quoted(instr) + ": its sharding is not understood");
      fix_stated(instr, row(id));
      Slot& slot = slots_[row(id)[0]];
      slot.closed.assign(slot.closed.size(), true);
      const Shape& tile = m_[instr.operand(0)].shape;
      if (!tile.compatible(tile_shape(instr.shape, slot.now))) slot.now = even(slot);
    }
    return ok_status();
  }

  static Status mismatch(const Instruction& instr, size_t i, const Shape& from, const Shape& to) {
    return invalid_argument(quoted(instr) + ": by its sharding result " + std::to_string(i) + " cannot be " +
                            to.to_string() + " where operand " + std::to_string(i) + " is " + from.to_string());
  }

  // Array `i` goes into a manual computation, or comes out of it.
  Status border(InstrId id, size_t i, const Shape& result, const Region& region, bool enters) {
    const Instruction& instr = m_[id];
    const Shape& operand = m_[instr.operand(i)].shape;
    Row& own = rows_[index_of(id)];
    if (!operand.is_array()) {
      if (!result.same_without_layout(operand)) return mismatch(instr, i, operand, result);
      own.insert(own.end(), row(instr.operand(i)).begin(), row(instr.operand(i)).end());
      return ok_status();
    }
    const Shape &whole = enters ? operand : result, &tile = enters ? result : operand;
    COLLET_ASSIGN(ManualSplit split,
                  regions_.manual_split(instr, i, static_cast<size_t>(whole.is_array() ? whole.rank() : 0)));
    for (size_t d = 0; d < split.manual.size(); ++d) {
      if (whole.dim(static_cast<int>(d)) % split.manual[d].count() == 0) continue;
      if (!enters) return mismatch(instr, i, operand, result);
      return invalid_argument(quoted(instr) + ": dimension " + std::to_string(d) + " of " + whole.to_string() +
                              " does not split into " + std::to_string(split.manual[d].count()));
    }
    if (!tile_shape(whole, ArraySharding(split.manual)).same_without_layout(tile))
      return mismatch(instr, i, operand, result);
    const std::string which = enters ? "operand " : "result ";
    // The free axes split what is left.
    for (size_t d = 0; d < split.free.size(); ++d)
      if (tile.dim(static_cast<int>(d)) % split.free[d].count()) split.free[d] = DimensionSharding();
    if (!are_independent(split.outer(split.free), region.groups)) {
      if (enters)
        return invalid_argument(quoted(instr) + ": the sharding of " + which + std::to_string(i) +
                                " uses an axis that is manual already");
      split.free.assign(split.free.size(), DimensionSharding());
    }
    if (!is_consistent({split.outer(split.free), split.unreduced}, region.groups))
      return invalid_argument(quoted(instr) + ": the sharding of " + which + std::to_string(i) +
                              " splits by an axis along which it is to be summed");
    own.push_back(new_slot(result, region, false));
    Slot& slot = slots_[own.back()];
    if (enters) {
      slot.groups = groups_.back().get();
      slot.now.dimensions = split.free;
    } else {
      slot.now.dimensions = split.outer(split.free);
      slot.now.unreduced = split.unreduced;
      slot.least = split.manual;
    }
    for (size_t d = 0; d < split.free.size(); ++d) slot.closed[d] = !split.open[d] || split.free[d].is_split();
    slot.unreduced_fixed = true;
    if (const auto stated = regions_.constraint(instr, result, i, *slot.groups)) {
      slot.now.dimensions = stated->sharding.dimensions;
      slot.closed.assign(slot.closed.size(), true);
    }
    Node node{Node::Kind::Manual,
              id,
              {row(instr.operand(i))[0]},
              {own.back()},
              region.weight,
              std::move(split),
              enters,
              false,
              0};
    add_node(std::move(node));
    return ok_status();
  }

  void results() {
    const InstrId root = m_.entry_computation().root;
    const Row& own = row(root);
    for (size_t i = 0; i < own.size(); ++i) {
      add_node({Node::Kind::Result, root, {own[i]}, {}, 1, {}, false, may_split_result(m_, i), 0});
    }
  }

  void find_updates() {
    for (InstrId id : m_.entry_computation().parameters)
      for (uint32_t s : row(id))
        slots_[s].updates_parameter =
            m_[id].extras && (m_[id].extras->sharding || !frontend_attribute(m_[id], "xla.sdy.sharding").empty());
    for (const Node& node : nodes_) {  // in the order of the program
      if (node.kind != Node::Kind::Copy && (node.kind != Node::Kind::Op || !is_elementwise(m_[node.instr].op)))
        continue;
      Slot& to = slots_[node.to[0]];
      for (uint32_t s : node.from)
        if (slots_[s].updates_parameter && slots_[s].shape.same_without_layout(to.shape)) to.updates_parameter = true;
    }
  }

  // A result that is a new version of a parameter must not be split only to save bytes: the next call would gather it.
  void keep_updates() {
    for (const Node& node : nodes_)
      if (node.kind == Node::Kind::Result && slots_[node.from[0]].updates_parameter)
        slots_[node.from[0]].propagated = even(slots_[node.from[0]]);
  }

  // --- Propagation to a fixed point.

  bool accepts(const Slot& slot, size_t d, const DimensionSharding& s) const {
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
    Slot& slot = slots_[to];
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
      for (const Node& node : nodes_) changed = transfer(node, level) || changed;
      for (size_t n = nodes_.size(); n-- > 0;) changed = transfer(nodes_[n], level) || changed;
      if (!changed) return;
    }
  }

  bool transfer(const Node& node, int level) {
    if (node.level > level) return false;
    switch (node.kind) {
      case Node::Kind::Copy: {
        const bool forward = spread(slots_[node.from[0]].now.dimensions, node.to[0]);
        return spread(slots_[node.to[0]].now.dimensions, node.from[0]) || forward;
      }
      case Node::Kind::Manual: {
        const uint32_t outer = node.enters ? node.from[0] : node.to[0], inner = node.enters ? node.to[0] : node.from[0];
        const std::vector<DimensionSharding> down = inside(node.split, slots_[outer].now.dimensions);
        const bool entered = spread(down, inner);
        const std::vector<DimensionSharding> up = node.split.outer(slots_[inner].now.dimensions);
        return spread(up, outer) || entered;
      }
      case Node::Kind::Op:
        return by_rule(node, level);
      case Node::Kind::Result:
        return false;
    }
    return false;
  }

  // The shardings along free axes of an array that is split by the manual axes as `split` says.
  static std::vector<DimensionSharding> inside(const ManualSplit& split, const std::vector<DimensionSharding>& outer) {
    std::vector<DimensionSharding> out(outer.size());
    for (size_t d = 0; d < outer.size(); ++d)
      if (refines(outer[d], split.manual[d])) out[d] = minor_part(outer[d], outer[d].count() / split.manual[d].count());
    return out;
  }

  bool by_rule(const Node& node, int level) {
    const Instruction& instr = m_[node.instr];
    const ShardingRule& rule = rules_.at(index_of(node.instr));
    // The arrays by size, the largest first: where they do not agree it is taken.
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

  ArraySharding even(const Slot& slot) const {
    ArraySharding out = slot.now;
    for (size_t d = 0; d < out.dimensions.size(); ++d)
      if (slot.shape.dim(static_cast<int>(d)) % out.dimensions[d].count()) out.dimensions[d] = DimensionSharding();
    return out;
  }

  std::vector<ArraySharding> gathered(const std::vector<uint32_t>& slots) const {
    std::vector<ArraySharding> out;
    for (uint32_t s : slots) out.push_back(slots_[s].now);
    return out;
  }

  OpStrategy strategy(const Node& node, bool free_results) const {
    return choose_strategy(m_, m_[node.instr], rules_.at(index_of(node.instr)), gathered(node.from),
                           free_results ? std::vector<ArraySharding>() : gathered(node.to), *slots_[node.to[0]].groups);
  }

  // `moved`: gets the part of it that is bytes.
  double cost(const Node& node, double* moved = nullptr) const {
    switch (node.kind) {
      case Node::Kind::Op: {
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

  // Of a node that is no op.
  double bytes_between(const Node& node) const {
    const Slot& from = slots_[node.from[0]];
    switch (node.kind) {
      case Node::Kind::Op:
        return 0;
      case Node::Kind::Copy:
        return reshard_bytes(from.shape, from.now, slots_[node.to[0]].now, *from.groups);
      case Node::Kind::Manual: {
        const Slot& to = slots_[node.to[0]];
        if (node.enters) return reshard_bytes(from.shape, from.now, outside(node, to.now), *from.groups);
        return reshard_bytes(from.shape, from.now, inside_of(node, to.now), *groups_of_inside(node));
      }
      case Node::Kind::Result: {
        if (!node.may_split)
          return reshard_bytes(from.shape, from.now, ArraySharding(from.closed.size()), *from.groups);
        const double undone = from.propagated ? reshard_bytes(from.shape, from.now, *from.propagated, *from.groups) : 0;
        return std::max(undone, reshard_bytes(from.shape, from.now, even(from), *from.groups));
      }
    }
    return 0;
  }

  ArraySharding outside(const Node& node, const ArraySharding& inner) const {
    return {node.split.outer(inner.dimensions), node.split.unreduced};
  }
  ArraySharding inside_of(const Node& node, const ArraySharding& outer) const {
    return ArraySharding(inside(node.split, outer.dimensions));
  }
  const DeviceGroups* groups_of_inside(const Node& node) const { return slots_[node.from[0]].groups; }

  double cost_around(const Slot& slot, double* moved = nullptr) const {
    double sum = 0;
    for (uint32_t n : slot.nodes) sum += cost(nodes_[n], moved);
    return sum;
  }

  // What the neighbours of slot `s` would like it to be.
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
      const Node& node = nodes_[n];
      switch (node.kind) {
        case Node::Kind::Op: {
          const bool gives = std::find(node.to.begin(), node.to.end(), s) != node.to.end();
          const OpStrategy chosen = strategy(node, gives);
          for (size_t r = 0; r < node.to.size() && r < chosen.results.size(); ++r)
            if (node.to[r] == s) add(chosen.results[r].dimensions);
          for (size_t k = 0; k < node.from.size(); ++k)
            if (node.from[k] == s) add(chosen.operands[k].dimensions);
          if (!gives) {
            // As if it were not there: what the others and the result make of it.
            const ArraySharding had = slots_[s].now;
            slots_[s].now.dimensions.assign(had.dimensions.size(), DimensionSharding());
            const OpStrategy without = strategy(node, false);
            slots_[s].now = had;
            for (size_t k = 0; k < node.from.size(); ++k)
              if (node.from[k] == s) add(without.operands[k].dimensions);
          }
          break;
        }
        case Node::Kind::Copy:
          add(slots_[node.from[0] == s ? node.to[0] : node.from[0]].now.dimensions);
          break;
        case Node::Kind::Manual: {
          const bool outer = (node.from[0] == s) == node.enters;
          const auto& other = slots_[node.from[0] == s ? node.to[0] : node.from[0]].now.dimensions;
          add(outer ? node.split.outer(other) : inside(node.split, other));
          break;
        }
        case Node::Kind::Result:
          add(even(slots_[s]).dimensions);
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

  // A value that a constraint right behind it wants unreduced.
  void find_hints() {
    for (const Node& node : nodes_) {
      if (node.kind != Node::Kind::Copy || !is_constraint(m_[node.instr])) continue;
      Slot& from = slots_[node.from[0]];
      const DimensionSharding& wants = slots_[node.to[0]].now.unreduced;
      if (wants.is_split() && !from.unreduced_fixed && !from.hint.is_split()) from.hint = wants;
    }
    // State of loops that starts unreduced.
    for (const Node& node : nodes_) {
      if (node.kind != Node::Kind::Copy || m_[node.instr].op != Op::WHILE) continue;
      const Slot& from = slots_[node.from[0]];
      Slot& to = slots_[node.to[0]];
      if (!to.unreduced_fixed) to.hint = from.hint.is_split() ? from.hint : from.now.unreduced;
    }
  }

  bool leave_unreduced(Slot& slot, const DimensionSharding& along) {
    if (!along.is_split() || !is_consistent({slot.now.dimensions, along}, *slot.groups)) return false;
    slot.now.unreduced = along;
    return true;
  }

  // Decides in the order of the program which values are unreduced.
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
            Slot& slot = slots_[state[i]];
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
      Slot& slot = slots_[row(id)[0]];
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

  const Module& m_;
  const ProgramRegions& regions_;
  const SearchOptions options_;
  bool has_uneven_ = false;
  std::vector<Slot> slots_;
  std::vector<Node> nodes_;
  std::vector<Row> rows_;
  std::vector<std::unique_ptr<DeviceGroups>> groups_;
  std::unordered_map<uint32_t, ShardingRule> rules_;
  std::unordered_map<uint32_t, std::vector<Row>> arguments_;  // of a computation: its parameters' slots
};

}  // namespace

Expected<ShardingTable> propagate_shardings(const Module& module, const ProgramRegions& regions) {
  COLLET_ASSIGN(Found best, Propagator(module, regions, {}).run());
  const bool has_uneven = best.has_uneven;
  if (module.instruction_count() > kMostTwice) return std::move(best.table);
  for (const bool uneven : {true, false})
    for (const bool propagate : {true, false}) {
      if ((uneven && propagate) || (!uneven && !has_uneven)) continue;
      COLLET_ASSIGN(Found other, Propagator(module, regions, {uneven, propagate}).run());
      if (other.cost < best.cost - 1e-6) best = std::move(other);
    }
  return std::move(best.table);
}

}  // namespace collet::hlo::spmd
