// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/sharding_graph.h"

#include "hlo/passes/spmd/reshard.h"
#include "hlo/program/leaves.h"

namespace collet::hlo::spmd {
namespace {

Status refuse(const Instruction& parameter, const std::string& why) {
  return invalid_argument("parameter " + quoted(parameter.name) + " (" + parameter.shape.to_string() + "): " + why);
}

}  // namespace

// Builds the graph, beginning with the entry.
class GraphBuilder {
 public:
  GraphBuilder(const Module& module, const ProgramRegions& regions, ShardingGraph& out)
      : m_(module), regions_(regions), g_(out) {}

  Status run() {
    rows_.resize(m_.instruction_limit());
    COLLET_TRY(collect(regions_.all()[0]));
    results();
    find_updates();
    for (size_t n = 0; n < nodes_.size(); ++n)
      for (const auto* list : {&nodes_[n].from, &nodes_[n].to})
        for (uint32_t s : *list)
          if (slots_[s].nodes.empty() || slots_[s].nodes.back() != n)
            slots_[s].nodes.push_back(static_cast<uint32_t>(n));
    return ok_status();
  }

 private:
  using Row = ShardingGraph::Row;

  uint32_t new_slot(const Shape& shape, const Region& region, bool closed) {
    ShardingSlot slot;
    const auto rank = static_cast<size_t>(shape.is_array() ? shape.rank() : 0);
    slot.now = ArraySharding(rank);
    slot.shape = shape;
    slot.groups = &region.groups;
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

  void add_node(ShardingNode node) { nodes_.push_back(std::move(node)); }
  void copy_node(InstrId instr, uint32_t from, uint32_t to, double weight) {
    if (from != to) add_node({ShardingNode::Kind::Copy, instr, {from}, {to}, weight, {}, false, false, 0});
  }
  void copy_nodes(InstrId instr, const Row& from, const Row& to, double weight) {
    for (size_t i = 0; i < from.size() && i < to.size(); ++i) copy_node(instr, from[i], to[i], weight);
  }

  const Row& row(InstrId id) const { return rows_[index_of(id)]; }

  // Requires replicated operands for an op that every partition runs on whole arrays.
  void replicate_operands(InstrId id, const Region& region) {
    for (InstrId operand : m_[id].operands)
      for (uint32_t s : row(operand)) {
        if (slots_[s].all_closed() && slots_[s].now.is_replicated()) continue;
        const Shape shape = slots_[s].shape;
        copy_node(id, s, new_slot(shape, region, true), region.weight);
      }
  }

  // Fixes the shardings that `instr` states for its leaves.
  void fix_stated(const Instruction& instr, const Row& slots) {
    for (size_t i = 0; i < slots.size(); ++i) {
      ShardingSlot& slot = slots_[slots[i]];
      const auto stated = regions_.constraint(instr, slot.shape, i, *slot.groups);
      if (!stated) continue;
      slot.now = stated->sharding;
      // A dimension that does not split evenly is not fixed: padding may cost more than it saves.
      for (size_t d = 0; d < slot.closed.size(); ++d) {
        DimensionSharding& now = slot.now.dimensions[d];
        const bool is_even = slot.shape.dim(static_cast<int>(d)) % now.count() == 0;
        slot.closed[d] = (!stated->open[d] || now.is_split()) && is_even;
        g_.has_uneven = g_.has_uneven || !is_even;
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

  // Adds the values of a region to the graph. The slots of its parameters have been set when its caller was added.
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

  // Adds a called computation whose parameters have these slots; returns the slots of its root.
  Expected<Row> collect_called(CompId c, std::vector<Row> arguments) {
    arguments_[index_of(c)] = std::move(arguments);
    COLLET_TRY(collect(*regions_.of(c)));
    return row(m_[c].root);
  }

  // A parameter has exactly the sharding that the program states: its caller splits it that way.
  Status parameter(const Instruction& instr, const Row& own) {
    for (size_t i = 0; i < own.size(); ++i) {
      ShardingSlot& slot = slots_[own[i]];
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
    const bool collective = is_collective(instr.op) && !instr.shape.has_dynamic();
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
    ShardingNode node{ShardingNode::Kind::Op, id, {}, row(id), region.weight, {}, false, false, level_of(instr)};
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

  // A collective of the program itself, in a manual computation, works on tiles as it does on whole arrays; only the
  // dimension that it gathers, scatters or exchanges must not be split.
  void through_collective(InstrId id, const Region& region) {
    const Instruction& instr = m_[id];
    int64_t dimension = -1;
    if (instr.op == Op::ALL_GATHER || instr.op == Op::REDUCE_SCATTER)
      dimension = instr.as<CollectiveDimAttrs>().dimension;
    if (instr.op == Op::ALL_TO_ALL && !instr.as<AllToAllAttrs>().dimension.empty())
      dimension = instr.as<AllToAllAttrs>().dimension[0];
    for (size_t i = 0; i < row(id).size(); ++i) {
      ShardingSlot& slot = slots_[row(id)[i]];
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
        return invalid_argument(quoted(instr.name) + " has " + std::to_string(n) + " results for " +
                                std::to_string(instr.operands.size()) + " operands");
      COLLET_ASSIGN(DeviceGroups inside, regions_.manual_groups(instr, region.groups));
      g_.groups_.push_back(std::make_shared<const DeviceGroups>(std::move(inside)));
      for (size_t i = 0; i < n; ++i) COLLET_TRY(border(id, i, shape_of(i), region, enters));
      return ok_status();
    }
    if (is_constraint(instr) || is_custom_call(instr, "annotate_device_placement")) {
      const Shape& operand = m_[instr.operand(0)].shape;
      if (!instr.shape.same_without_layout(operand)) {
        if (is_constraint(instr))
          return invalid_argument(quoted(instr.name) + " gives " + instr.shape.to_string() + " of " +
                                  operand.to_string());
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
        return unimplemented(quoted(instr.name) + ": its sharding is not understood");
      fix_stated(instr, row(id));
      ShardingSlot& slot = slots_[row(id)[0]];
      slot.closed.assign(slot.closed.size(), true);
      const Shape& tile = m_[instr.operand(0)].shape;
      if (!tile.compatible(tile_shape(instr.shape, slot.now))) slot.now = even_sharding(slot);
    }
    return ok_status();
  }

  static Status mismatch(const Instruction& instr, size_t i, const Shape& from, const Shape& to) {
    return invalid_argument(quoted(instr.name) + ": by its sharding result " + std::to_string(i) + " cannot be " +
                            to.to_string() + " where operand " + std::to_string(i) + " is " + from.to_string());
  }

  // Adds the node for array `i`, which enters or leaves a manual computation.
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
      return invalid_argument(quoted(instr.name) + ": dimension " + std::to_string(d) + " of " + whole.to_string() +
                              " does not split into " + std::to_string(split.manual[d].count()));
    }
    if (!tile_shape(whole, ArraySharding(split.manual)).same_without_layout(tile))
      return mismatch(instr, i, operand, result);
    const std::string which = enters ? "operand " : "result ";
    // The free axes split the tiles along the manual axes further.
    for (size_t d = 0; d < split.free.size(); ++d)
      if (tile.dim(static_cast<int>(d)) % split.free[d].count()) split.free[d] = DimensionSharding();
    if (!are_independent(split.outer(split.free), region.groups)) {
      if (enters)
        return invalid_argument(quoted(instr.name) + ": the sharding of " + which + std::to_string(i) +
                                " uses an axis that is manual already");
      split.free.assign(split.free.size(), DimensionSharding());
    }
    if (!is_consistent({split.outer(split.free), split.unreduced}, region.groups))
      return invalid_argument(quoted(instr.name) + ": the sharding of " + which + std::to_string(i) +
                              " splits by an axis along which it is to be summed");
    own.push_back(new_slot(result, region, false));
    ShardingSlot& slot = slots_[own.back()];
    if (enters) {
      slot.groups = g_.groups_.back().get();
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
    ShardingNode node{ShardingNode::Kind::Manual,
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
      add_node({ShardingNode::Kind::Result, root, {own[i]}, {}, 1, {}, false, may_split_result(m_, i), 0});
    }
  }

  // Marks values that are updated versions of parameters.
  void find_updates() {
    for (InstrId id : m_.entry_computation().parameters)
      for (uint32_t s : row(id))
        slots_[s].updates_parameter =
            m_[id].extras && (m_[id].extras->sharding || !frontend_attribute(m_[id], "xla.sdy.sharding").empty());
    for (const ShardingNode& node : nodes_) {  // in the order of the program
      if (node.kind != ShardingNode::Kind::Copy &&
          (node.kind != ShardingNode::Kind::Op || !is_elementwise(m_[node.instr].op)))
        continue;
      ShardingSlot& to = slots_[node.to[0]];
      for (uint32_t s : node.from)
        if (slots_[s].updates_parameter && slots_[s].shape.same_without_layout(to.shape)) to.updates_parameter = true;
    }
  }

  const Module& m_;
  const ProgramRegions& regions_;
  ShardingGraph& g_;
  std::vector<ShardingSlot>& slots_ = g_.slots;
  std::vector<ShardingNode>& nodes_ = g_.nodes;
  std::vector<Row>& rows_ = g_.rows;
  std::unordered_map<uint32_t, ShardingRule>& rules_ = g_.rules;
  std::unordered_map<uint32_t, std::vector<Row>> arguments_;  // by computation: the slots of its parameters
};

Expected<ShardingGraph> ShardingGraph::build(const Module& module, const ProgramRegions& regions) {
  ShardingGraph out;
  COLLET_TRY(GraphBuilder(module, regions, out).run());
  return out;
}

ArraySharding even_sharding(const ShardingSlot& slot) {
  ArraySharding out = slot.now;
  for (size_t d = 0; d < out.dimensions.size(); ++d)
    if (slot.shape.dim(static_cast<int>(d)) % out.dimensions[d].count()) out.dimensions[d] = DimensionSharding();
  return out;
}

}  // namespace collet::hlo::spmd
