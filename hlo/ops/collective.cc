// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/collective.h"

#include <algorithm>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Shape one_or_tuple(std::vector<Shape> shapes) {
  if (shapes.size() == 1) return std::move(shapes[0]);
  return Shape::tuple(std::move(shapes));
}

Expected<std::vector<Shape>> array_operands(const InferInput& in) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < in.operands.size(); ++i) {
    COLLET_TRY(expect_array(in, i));
    shapes.push_back(in.operand(i).without_layout());
  }
  return shapes;
}

// Returns the declared shape of result 0 of all-gather, all-gather-start or reduce-scatter; null if none is declared.
const Shape* declared_result(const InferInput& in) {
  const Shape* shape = in.declared;
  if (!shape) return nullptr;
  if (in.op == Op::ALL_GATHER_START) {
    if (!shape->is_tuple() || shape->elements().size() != 2) return nullptr;
    shape = &shape->element(1);
  }
  if (in.operands.size() > 1) {
    if (!shape->is_tuple() || shape->elements().size() != in.operands.size()) return nullptr;
    shape = &shape->element(0);
  }
  return shape->is_array() ? shape : nullptr;
}

// Returns the number of shards: derived from the declared shape if there is one, else from the groups.
Expected<int64_t> shard_count(const InferInput& in, const CollectiveDimAttrs& a, std::string_view range_label) {
  const Shape& operand = in.operand(0);
  COLLET_TRY(expect_array(in, 0, "operand 0"));
  if (a.dimension < 0 || a.dimension >= operand.rank())
    return broken(in.op, range_label, "dimension ", a.dimension, " lies outside of ", operand);
  const auto axis = static_cast<int>(a.dimension);
  if (const Shape* result = declared_result(in); result && a.dimension < result->rank()) {
    const bool gathers = in.op != Op::REDUCE_SCATTER;
    const int64_t small = gathers ? operand.dim(axis) : result->dim(axis);
    const int64_t large = gathers ? result->dim(axis) : operand.dim(axis);
    if (small == kUnbounded || large == kUnbounded) return int64_t{1};
    if (small > 0) return std::max<int64_t>((large - 1) / small + 1, 1);
  }
  COLLET_ASSIGN(const GroupMode mode, group_mode(in.op, a.channel != 0, a.global_ids));
  return subgroup_size(in.module, mode, a.groups);
}

Expected<Shape> infer_gather(const InferInput& in) {
  const auto& a = in.as<CollectiveDimAttrs>();
  COLLET_ASSIGN(const int64_t shards, shard_count(in, a, "C1"));
  COLLET_ASSIGN(std::vector<Shape> results, array_operands(in));
  for (Shape& result : results) {
    if (a.dimension >= result.rank())
      return broken(in.op, "C1", "dimension ", a.dimension, " lies outside of ", result);
    const auto axis = static_cast<int>(a.dimension);
    int64_t size = result.dim(axis);
    if (size != kUnbounded && !multiply_fits(size, shards, size))
      return broken(in.op, "C6", "the size of dimension ", a.dimension, " overflows");
    DimList dims = DimList::of(result);
    dims.set(static_cast<size_t>(axis), size, result.is_dynamic(axis));
    result = dims.shape(result.type());
  }
  return one_or_tuple(std::move(results));
}

Expected<Shape> infer_gather_start(const InferInput& in) {
  COLLET_ASSIGN(Shape gathered, infer_gather(in));
  COLLET_ASSIGN(std::vector<Shape> operands, array_operands(in));
  return Shape::tuple({one_or_tuple(std::move(operands)), std::move(gathered)});
}

Expected<Shape> infer_reduce_scatter(const InferInput& in) {
  const auto& a = in.as<CollectiveDimAttrs>();
  COLLET_ASSIGN(const int64_t shards, shard_count(in, a, "C2"));
  COLLET_ASSIGN(std::vector<Shape> results, array_operands(in));
  for (Shape& result : results) {
    if (a.dimension >= result.rank())
      return broken(in.op, "C2", "dimension ", a.dimension, " lies outside of ", result);
    const auto axis = static_cast<int>(a.dimension);
    const int64_t size = result.dim(axis);
    if (size != kUnbounded && size % shards)
      return broken(in.op, "C1", "dimension ", a.dimension, " of ", result, " is no multiple of ", shards, " shards");
    DimList dims = DimList::of(result);
    dims.set(static_cast<size_t>(axis), size == kUnbounded ? size : size / shards, result.is_dynamic(axis));
    result = dims.shape(result.type());
  }
  return one_or_tuple(std::move(results));
}

Expected<Shape> infer_all_to_all(const InferInput& in) {
  const auto& a = in.as<AllToAllAttrs>();
  COLLET_ASSIGN(std::vector<Shape> shapes, array_operands(in));
  COLLET_ASSIGN(const GroupMode mode, group_mode(in.op, a.channel != 0, std::nullopt));
  const int64_t parts = subgroup_size(in.module, mode, a.groups);
  if (a.dimension.size() > 1) return broken(in.op, "", "dimensions ", a.dimension, " must name one dimension");
  if (a.dimension.empty()) {
    for (const Shape& shape : shapes)
      if (!shape.same_without_layout(shapes[0]))
        return broken(in.op, "", "operand shapes differ: ", shapes[0], " and ", shape);
    return Shape::tuple(std::move(shapes));
  }
  if (shapes.size() != 1)
    return broken(in.op, "", "with dimensions there must be one operand, but there are ", shapes.size());
  const int64_t axis = a.dimension[0];
  const Shape& shape = shapes[0];
  if (axis < 0 || axis >= shape.rank()) return broken(in.op, "C1", "dimension ", axis, " lies outside of ", shape);
  const int64_t size = shape.dim(static_cast<int>(axis));
  if (size != kUnbounded && size % parts)
    return broken(in.op, "C2", "dimension ", axis, " of ", shape, " is no multiple of the group's size ", parts);
  return shape;
}

// The element type of the result is that of the computation if the text declares it; it may be wider than the
// operand's.
Expected<Shape> infer_all_reduce(const InferInput& in) {
  COLLET_ASSIGN(std::vector<Shape> shapes, array_operands(in));
  COLLET_ASSIGN(const Signature reducer, signature(in.module, in.op, in.called[0]));
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape* stated = in.declared;
    if (stated && shapes.size() > 1)
      stated = stated->elements().size() == shapes.size() ? &stated->element(i) : nullptr;
    if (stated && stated->type() == reducer.result->type() && is_float(stated->type()) && is_float(shapes[i].type()) &&
        wider_type(stated->type(), shapes[i].type()) == stated->type())
      shapes[i] = shapes[i].with_type(stated->type());
  }
  return one_or_tuple(std::move(shapes));
}

Expected<Shape> infer_ragged_all_to_all(const InferInput& in) {
  COLLET_ASSIGN(std::vector<Shape> shapes, array_operands(in));
  const Shape &input = shapes[0], &output = shapes[1];
  if (input.type() != output.type())
    return broken(in.op, "", "element types differ: the input is ", input, ", the output is ", output);
  bool rows = input.rank() == output.rank() && output.rank() > 0;
  for (int d = 1; rows && d < output.rank(); ++d) rows = sizes_agree(input.dim(d), output.dim(d));
  if (!rows)
    return broken(in.op, "", "input and output must differ in dimension 0 alone, but are ", input, " and ", output);
  for (size_t i = 2; i < shapes.size(); ++i) {
    if (shapes[i].rank() != 1 && shapes[i].rank() != 2)
      return broken(in.op, "", "operand ", i, " must have rank 1 or 2, but is ", shapes[i]);
    if (!is_integer(shapes[i].type()))
      return broken(in.op, "", "offsets and sizes must be integers, but operand ", i, " is ", shapes[i]);
    if (!shapes[i].compatible(shapes[2]))
      return broken(in.op, "", "offsets and sizes must have one shape, but are ", shapes[2], " and ", shapes[i]);
  }
  return shapes[1];
}

Expected<Shape> infer_permute(const InferInput& in) {
  if (in.as<CollectivePermuteAttrs>().slice_sizes.empty()) {
    COLLET_ASSIGN(std::vector<Shape> shapes, array_operands(in));
    return one_or_tuple(std::move(shapes));
  }
  if (in.operands.size() != 4)
    return broken(in.op, "", "with slice_sizes there must be 4 operands, but there are ", in.operands.size());
  return in.operand(1).without_layout();
}

Expected<Shape> infer_permute_start(const InferInput& in) {
  std::vector<Shape> shapes;
  if (in.as<CollectivePermuteAttrs>().slice_sizes.empty()) {
    COLLET_ASSIGN(std::vector<Shape> operands, array_operands(in));
    const Shape both = one_or_tuple(std::move(operands));
    shapes = {both, both};
  } else {
    COLLET_ASSIGN(const Shape result, infer_permute(in));
    shapes = {in.operand(0).without_layout(), result};
  }
  // Further elements that an implementation adds to the result tuple are kept as declared.
  if (in.declared && in.declared->is_tuple())
    for (size_t i = 2; i < in.declared->elements().size(); ++i)
      shapes.push_back(in.declared->element(i).without_layout());
  return Shape::tuple(std::move(shapes));
}

Expected<Shape> second_of(const InferInput& in) {
  const Shape& operand = in.operand(0);
  if (!operand.is_tuple() || operand.elements().size() < 2)
    return broken(in.op, "", "the operand must be (operand, result, ...), but is ", operand);
  return operand.element(1).without_layout();
}

// Labels of the constraints on groups: no repeated id, number of ids, range of ids, and that global ids need a channel.
struct GroupLabels {
  std::string_view unique, count, range;
};

Status check_groups(const Module& module, Op op, GroupMode mode, const Groups& groups, bool uniform,
                    const GroupLabels& labels) {
  if (groups.empty()) {
    if (mode != GroupMode::Flattened) return ok_status();
    return broken(op, labels.count, "with use_global_device_ids the groups must be listed");
  }
  int64_t ids = 0;
  for (const Dims& group : groups.groups) {
    if (group.empty()) return broken(op, "", "a replica group is empty");
    if (uniform && group.size() != groups.groups[0].size())
      return broken(op, labels.count, "replica groups differ in size: ", groups.groups[0], " and ", group);
    ids += static_cast<int64_t>(group.size());
  }
  std::vector<bool> seen(static_cast<size_t>(ids));
  for (const Dims& group : groups.groups)
    for (int64_t id : group) {
      if (id < 0 || id >= ids) return broken(op, labels.range, "replica id ", id, " lies outside of [0, ", ids, ")");
      if (seen[static_cast<size_t>(id)]) return broken(op, labels.unique, "replica id ", id, " occurs twice");
      seen[static_cast<size_t>(id)] = true;
    }
  const int64_t expected = participants(module, mode);
  if (expected != 1 && ids != expected)
    return broken(op, labels.count, "the replica groups hold ", ids, " ids, but there are ", expected, " participants");
  return ok_status();
}

// True if the module determines the size of a group. A size of one without groups, or with groups of replicas that
// include all their partitions, may only mean that the header does not give the number of participants.
bool size_is_known(GroupMode mode, const Groups& groups, int64_t size) {
  return size > 1 || (!groups.empty() && mode != GroupMode::CrossReplicaAndPartition);
}

// Checks that the size of the group agrees with the shapes.
Status check_shards(const Module& module, const Instruction& instr, GroupMode mode) {
  const auto& a = instr.as<CollectiveDimAttrs>();
  const Shape& operand = module[instr.operand(0)].shape;
  const Shape* result = &instr.shape;
  if (instr.op == Op::ALL_GATHER_START) result = &result->element(1);
  if (instr.operands.size() > 1) result = &result->element(0);
  const auto axis = static_cast<int>(a.dimension);
  const bool gathers = instr.op != Op::REDUCE_SCATTER;
  const int64_t small = gathers ? operand.dim(axis) : result->dim(axis);
  const int64_t large = gathers ? result->dim(axis) : operand.dim(axis);
  const int64_t group = subgroup_size(module, mode, a.groups);
  if (!size_is_known(mode, a.groups, group) || small == kUnbounded || large == kUnbounded) return ok_status();
  int64_t whole;
  if (multiply_fits(small, group, whole) && whole == large) return ok_status();
  return broken(instr.op, gathers ? "C6" : "C8", "dimension ", a.dimension, " goes from ", operand, " to ", *result,
                ", but a group has ", group, group == 1 ? " participant" : " participants");
}

// Checks the computation that combines operands: from two values to one, all of one type, which the operands also have
// (floats may differ in precision). The values are scalars or, as HLO allows, arrays with the shape of the operands.
Status check_reduction(const Module& module, const Instruction& instr, std::string_view label) {
  COLLET_ASSIGN(const Signature reducer, signature(module, instr.op, instr.called[0]));
  const Shape& result = *reducer.result;
  if (reducer.parameters.size() != 2)
    return broken(instr.op, label, reducer.name, " must take 2 parameters, but takes ", reducer.parameters.size());
  if (!result.is_array()) return broken(instr.op, label, reducer.name, " must give an array, but gives ", result);
  for (size_t i = 0; i < 2; ++i)
    if (!reducer.parameters[i]->compatible(result))
      return broken(instr.op, label, "parameter ", i, " of ", reducer.name, " is ", *reducer.parameters[i],
                    ", but its result is ", result);
  for (size_t i = 0; i < instr.operands.size(); ++i) {
    const Shape& operand = module[instr.operand(i)].shape;
    if (!types_agree(operand.type(), result.type()) || (!result.is_scalar() && !dims_agree(operand, result)))
      return broken(instr.op, label, "operand ", i, " is ", operand, ", but ", reducer.name, " takes ", result);
  }
  return ok_status();
}

Status check_channel(Op op, int64_t channel) {
  return channel >= 0 ? ok_status() : broken(op, "", "channel_id ", channel, " must be greater than 0");
}

Status check_pairs(const Module& module, const Instruction& instr) {
  const auto& a = instr.as<CollectivePermuteAttrs>();
  if (a.pairs.size() % 2) return broken(instr.op, "C1", "source_target_pairs must be pairs");
  COLLET_TRY(check_channel(instr.op, a.channel));
  const int64_t limit = a.channel ? module.header().num_partitions : module.header().replica_count;
  // If the op is in place, a participant may send as many slices as there are offsets.
  int64_t allowed = 1;
  if (!a.slice_sizes.empty()) {
    const Shape* offsets = &module[instr.operand(2)].shape;
    if (!module[instr.operand(0)].shape.is_array() && !offsets->elements().empty()) offsets = &offsets->element(0);
    allowed = std::max<int64_t>(static_cast<int64_t>(offsets->elements().size()), 1);
  }
  for (size_t side = 0; side < 2; ++side) {
    const std::string_view what = side ? "target " : "source ";
    std::vector<int64_t> ids;
    for (size_t i = side; i < a.pairs.size(); i += 2) ids.push_back(a.pairs[i]);
    for (int64_t id : ids)
      if (id < 0 || (limit != 1 && id >= limit))
        return broken(instr.op, "C4", what, id, " lies outside of [0, ", limit, ")");
    std::sort(ids.begin(), ids.end());
    for (size_t i = static_cast<size_t>(allowed); i < ids.size(); ++i)
      if (ids[i] == ids[i - static_cast<size_t>(allowed)])
        return broken(instr.op, side ? "C3" : "C2", what, ids[i], " occurs more than ", allowed,
                      allowed == 1 ? " time" : " times");
  }
  return ok_status();
}

// Checks the offsets of an in-place permutation: a tuple with one scalar for each dimension, or a tuple of such tuples.
Status check_offsets(Op op, const Shape& buffer, const Shape& offsets) {
  if (!offsets.is_tuple()) return broken(op, "", "offsets must be a tuple, but are ", offsets);
  bool arrays = true, tuples = true;
  for (const Shape& element : offsets.elements()) {
    arrays &= element.is_array();
    tuples &= element.is_tuple();
  }
  const auto rank = static_cast<size_t>(buffer.rank());
  bool fits = arrays ? offsets.elements().size() == rank : tuples;
  if (!arrays && tuples)
    for (const Shape& element : offsets.elements()) fits &= element.elements().size() == rank;
  if (fits) return ok_status();
  return broken(op, "", "offsets ", offsets, " do not fit the buffer ", buffer);
}

Status check_in_place(const Module& module, const Instruction& instr) {
  if (instr.as<CollectivePermuteAttrs>().slice_sizes.empty()) return ok_status();
  for (size_t i = 0; i < 2; ++i) {
    const Shape& buffer = module[instr.operand(i)].shape;
    const Shape& offsets = module[instr.operand(i + 2)].shape;
    if (!buffer.is_tuple()) {
      COLLET_TRY(check_offsets(instr.op, buffer, offsets));
      continue;
    }
    if (!offsets.is_tuple() || offsets.elements().size() != buffer.elements().size())
      return broken(instr.op, "", "offsets ", offsets, " do not fit the buffers ", buffer);
    for (size_t k = 0; k < buffer.elements().size(); ++k)
      COLLET_TRY(check_offsets(instr.op, buffer.element(k), offsets.element(k)));
  }
  const Shape& from = module[instr.operand(0)].shape;
  const Shape& to = module[instr.operand(1)].shape;
  if (from.is_tuple() != to.is_tuple() || from.elements().size() != to.elements().size())
    return broken(instr.op, "", "input buffers ", from, " and output buffers ", to, " do not match");
  if (!from.is_array() || !to.is_array()) return ok_status();
  if (from.type() != to.type() || from.rank() != to.rank())
    return broken(instr.op, "", "input buffer ", from, " and output buffer ", to, " do not match");
  for (const Dims& sizes : instr.as<CollectivePermuteAttrs>().slice_sizes) {
    bool fits = sizes.size() == static_cast<size_t>(from.rank());
    for (size_t d = 0; fits && d < sizes.size(); ++d)
      for (int64_t size : {from.dim(static_cast<int>(d)), to.dim(static_cast<int>(d))})
        fits &= sizes[d] >= 0 && (size == kUnbounded || sizes[d] <= size);
    if (!fits) return broken(instr.op, "", "slice_sizes ", sizes, " do not fit the buffers ", from, " and ", to);
  }
  return ok_status();
}

Status verify_gather_or_scatter(const Module& module, const Instruction& instr) {
  const auto& a = instr.as<CollectiveDimAttrs>();
  const bool gathers = instr.op != Op::REDUCE_SCATTER;
  COLLET_TRY(check_channel(instr.op, a.channel));
  COLLET_ASSIGN(const GroupMode mode, group_mode(instr.op, a.channel != 0, a.global_ids));
  COLLET_TRY(check_groups(module, instr.op, mode, a.groups, true,
                          gathers ? GroupLabels{"C2", "C3", "C4"} : GroupLabels{"C3", "C4", "C5"}));
  if (!gathers) COLLET_TRY(check_reduction(module, instr, "C7"));
  return check_shards(module, instr, mode);
}

Status verify_all_reduce(const Module& module, const Instruction& instr) {
  const auto& a = instr.as<CollectiveAttrs>();
  COLLET_TRY(check_channel(instr.op, a.channel));
  COLLET_ASSIGN(const GroupMode mode, group_mode(instr.op, a.channel != 0, a.global_ids));
  COLLET_TRY(check_groups(module, instr.op, mode, a.groups, false, {"C1", "C2", "C3"}));
  return check_reduction(module, instr, "C5");
}

// Groups need not name all participants: those that are in no group get zeros.
Status verify_broadcast(const Module& module, const Instruction& instr) {
  const auto& a = instr.as<CollectiveAttrs>();
  COLLET_TRY(check_channel(instr.op, a.channel));
  COLLET_ASSIGN(const GroupMode mode, group_mode(instr.op, a.channel != 0, std::nullopt));
  const int64_t limit = participants(module, mode);
  std::vector<int64_t> ids;
  for (const Dims& group : a.groups.groups) {
    if (group.empty()) return broken(instr.op, "", "a replica group is empty");
    ids.insert(ids.end(), group.begin(), group.end());
  }
  for (int64_t id : ids)
    if (id < 0 || (limit != 1 && id >= limit))
      return broken(instr.op, "C2", "replica id ", id, " lies outside of [0, ", limit, ")");
  if (has_repeats(ids)) return broken(instr.op, "C1", "a replica id occurs twice in ", std::span<const int64_t>(ids));
  return ok_status();
}

// Checks the operands of ragged-all-to-all: each participant has the same number of slices for each other one.
Status check_ragged(const Module& module, const Instruction& instr, GroupMode mode, int64_t group) {
  const Shape& offsets = module[instr.operand(2)].shape;
  if (!size_is_known(mode, instr.as<AllToAllAttrs>().groups, group) || offsets.has_unbounded()) return ok_status();
  if (offsets.element_count() % group == 0) return ok_status();
  return broken(instr.op, "", "offsets and sizes are ", offsets, ", which is no multiple of the group's size ", group);
}

Status verify_all_to_all(const Module& module, const Instruction& instr) {
  const auto& a = instr.as<AllToAllAttrs>();
  COLLET_TRY(check_channel(instr.op, a.channel));
  COLLET_ASSIGN(const GroupMode mode, group_mode(instr.op, a.channel != 0, std::nullopt));
  COLLET_TRY(check_groups(module, instr.op, mode, a.groups, true, {"C5", "C6", "C7"}));
  const int64_t parts = subgroup_size(module, mode, a.groups);
  if (instr.op == Op::RAGGED_ALL_TO_ALL) return check_ragged(module, instr, mode, parts);
  if (a.dimension.empty() && static_cast<int64_t>(instr.operands.size()) != parts)
    return broken(instr.op, "C8", "there are ", instr.operands.size(), " operands, but a group has ", parts,
                  " participants");
  return ok_status();
}

}  // namespace

Expected<GroupMode> group_mode(Op op, bool has_channel, std::optional<bool> global_ids) {
  if (!has_channel) {
    if (!global_ids.value_or(false)) return GroupMode::CrossReplica;
    return broken(op,
                  op == Op::REDUCE_SCATTER ? "C6"
                  : op == Op::ALL_GATHER   ? "C5"
                                           : "C4",
                  "use_global_device_ids=true needs a channel_id");
  }
  if (!global_ids) return GroupMode::CrossPartition;
  return *global_ids ? GroupMode::Flattened : GroupMode::CrossReplicaAndPartition;
}

int64_t participants(const Module& module, GroupMode mode) {
  const int64_t replicas = std::max<int64_t>(module.header().replica_count, 1);
  const int64_t partitions = std::max<int64_t>(module.header().num_partitions, 1);
  int64_t both;
  switch (mode) {
    case GroupMode::CrossPartition:
      return partitions;
    case GroupMode::Flattened:
      return multiply_fits(replicas, partitions, both) ? both : INT64_MAX;
    default:
      return replicas;
  }
}

int64_t subgroup_size(const Module& module, GroupMode mode, const Groups& groups) {
  const int64_t listed = groups.empty() ? participants(module, mode) : static_cast<int64_t>(groups.groups[0].size());
  if (mode != GroupMode::CrossReplicaAndPartition) return std::max<int64_t>(listed, 1);
  int64_t all;
  if (!multiply_fits(listed, std::max<int64_t>(module.header().num_partitions, 1), all)) return INT64_MAX;
  return std::max<int64_t>(all, 1);
}

Expected<Shape> infer_collective(const InferInput& in) {
  switch (in.op) {
    case Op::ALL_GATHER:
      return infer_gather(in);
    case Op::ALL_GATHER_START:
      return infer_gather_start(in);
    case Op::ALL_GATHER_DONE:
    case Op::COLLECTIVE_PERMUTE_DONE:
      return second_of(in);
    case Op::ALL_REDUCE_DONE:
      return in.operand(0).without_layout();
    case Op::ALL_REDUCE:
    case Op::ALL_REDUCE_START:
      return infer_all_reduce(in);
    case Op::COLLECTIVE_BROADCAST: {
      COLLET_ASSIGN(std::vector<Shape> shapes, array_operands(in));
      return one_or_tuple(std::move(shapes));
    }
    case Op::REDUCE_SCATTER:
      return infer_reduce_scatter(in);
    case Op::ALL_TO_ALL:
      return infer_all_to_all(in);
    case Op::RAGGED_ALL_TO_ALL:
      return infer_ragged_all_to_all(in);
    case Op::COLLECTIVE_PERMUTE:
      return infer_permute(in);
    case Op::COLLECTIVE_PERMUTE_START:
      return infer_permute_start(in);
    default:
      return unimplemented(concat("no shape inference for ", op_info(in.op).text));
  }
}

Status verify_collective(const Module& module, const Instruction& instr) {
  switch (instr.op) {
    case Op::ALL_GATHER:
    case Op::ALL_GATHER_START:
    case Op::REDUCE_SCATTER:
      return verify_gather_or_scatter(module, instr);
    case Op::COLLECTIVE_BROADCAST:
      return verify_broadcast(module, instr);
    case Op::ALL_REDUCE:
    case Op::ALL_REDUCE_START:
      return verify_all_reduce(module, instr);
    case Op::ALL_TO_ALL:
    case Op::RAGGED_ALL_TO_ALL:
      return verify_all_to_all(module, instr);
    case Op::COLLECTIVE_PERMUTE:
    case Op::COLLECTIVE_PERMUTE_START:
      COLLET_TRY(check_in_place(module, instr));
      return check_pairs(module, instr);
    default:
      return ok_status();
  }
}

}  // namespace collet::hlo
