// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/materializer.h"

// Materialisation of custom calls: sharding constraints, the markers around manual computations (which the program has
// written for one partition), and ops that one device runs alone.

namespace collet::hlo::spmd {
namespace {

InstrId zeros(Builder& b, const Shape& shape) {
  if (shape.is_array()) return b.fill(shape, 0);
  if (!shape.is_tuple()) return b.op(Op::AFTER_ALL, shape, {});
  std::vector<InstrId> parts;
  for (const Shape& element : shape.elements()) parts.push_back(zeros(b, element));
  return b.tuple(parts);
}

std::vector<ArraySharding> replicated_leaves(size_t count, const std::vector<ArraySharding>& like) {
  std::vector<ArraySharding> out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(like[i].dimensions.size());
  return out;
}

}  // namespace

Expected<TiledValue> Materializer::custom_call(InstrId id, const Instruction& instr, const Operands& in) {
  if (is_custom_call(instr, kEnterManual)) return enter_manual(id, instr, in);
  if (is_custom_call(instr, kLeaveManual)) return leave_manual(id, instr, in);
  const std::string_view target = instr.as<CustomCallAttrs>().target;
  if (is_constraint(instr)) return in[0];  // the operand has been resharded to the sharding in the table
  if (in.size() == 1 && target == "annotate_device_placement" &&
      instr.shape.same_without_layout(m_[instr.operand(0)].shape))
    return in[0];  // the same value in another memory space
  if (in.size() == 1 && target == kEnterManualTile) {
    if (in[0].leaves.size() != 1) return unimplemented(quoted(instr.name) + " takes a tuple");
    const std::array<ArraySharding, 1> reduced = {ArraySharding(in[0].leaves[0].dimensions)};
    TiledValue out = reshard(in[0], m_[instr.operand(0)].shape, reduced);
    if (!m_[out.id].shape.compatible(instr.shape))
      return unimplemented(quoted(instr.name) + ": the tile is " + m_[out.id].shape.to_string() + ", not " +
                           instr.shape.to_string());
    out.manual = true;
    // From here on the value is each partition's own, not the tile of an array.
    out.leaves = replicated_leaves(1, out.leaves);
    return out;
  }
  if (in.size() == 1 && target == kLeaveManualTile) {
    const ArraySharding& to = shardings(id)[0];
    if (!m_[in[0].id].shape.compatible(tile_shape(instr.shape, to)))
      return unimplemented(quoted(instr.name) + ": a value of each partition is no tile of " + instr.shape.to_string());
    return TiledValue{in[0].id, {to}, false};
  }
  const bool manual = std::any_of(in.begin(), in.end(), [](const TiledValue& v) { return v.manual; });
  if (!manual && groups_.all_together()) {
    if (const auto device = context_.regions.one_device(instr)) {
      return alone(instr, in, *device);
    }
    // An op with effects must run once, not in every partition. An op that only constrains the order of ops may run in
    // every partition.
    const bool order = target == "control_dep" || target == "dce_sink";
    if (instr.as<CustomCallAttrs>().has_side_effect && !order)
      return unimplemented(quoted(instr.name) + " (" + std::string(target) +
                           ") has a side effect, and no sharding says which device has it");
  }
  TiledValue out = replicated(instr, in);
  out.manual = manual;
  return out;
}

Expected<TiledValue> Materializer::alone(const Instruction& instr, const Operands& in, int64_t device) {
  if (device < 0 || device >= static_cast<int64_t>(groups_.partitions()) || instr.shape.has_dynamic())
    return unimplemented(quoted(instr.name) + ": on device " + std::to_string(device) + " alone");
  Operands whole;
  for (size_t k = 0; k < in.size(); ++k) whole.push_back(replicate(in[k], m_[instr.operand(k)].shape));
  return on_one_device(instr, whole, device);
}

// Runs an op on partition `device` only, and sends its results to the others.
TiledValue Materializer::on_one_device(const Instruction& instr, const Operands& in, int64_t device) {
  std::vector<InstrId> operands;
  std::vector<Shape> shapes;
  for (const TiledValue& v : in) {
    operands.push_back(v.id);
    shapes.push_back(b_.shape(v.id));
  }
  const Shape taken = Shape::tuple(shapes);
  const auto branch = [&](std::string_view stem, const auto& make) {
    const CompId c = m_.add_computation(m_.unique_computation_name(stem));
    Builder b(m_, c);
    b.set_origin(&instr);
    const InstrId argument = m_.append_parameter(c, 0, taken);
    m_[c].root = make(b, argument);
    return c;
  };
  const CompId does = branch("on_one_device", [&](Builder& b, InstrId argument) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < shapes.size(); ++i) parts.push_back(b.get(argument, static_cast<int64_t>(i)));
    const std::vector<CompId> called(instr.called.begin(), instr.called.end());
    return b.op(instr.op, instr.shape.without_layout(), parts, instr.attrs, called);
  });
  const CompId waits = branch("on_other_devices", [&](Builder& b, InstrId) { return zeros(b, instr.shape); });
  const InstrId mine = b_.compare(t_.partition_id(), Direction::EQ, b_.scalar_int(Type::U32, device));
  const InstrId argument = b_.tuple(operands);
  const InstrId result = b_.op(Op::CONDITIONAL, instr.shape.without_layout(), {mine, argument, argument}, nullptr,
                               std::array{does, waits});
  TiledValue out{t_.broadcast_from(result, device, groups_.partitions()), {}, false};
  for (int64_t i = 0; i < instr.shape.leaf_count(); ++i) out.leaves.emplace_back();
  if (instr.shape.is_array()) out.leaves = {ArraySharding(static_cast<size_t>(instr.shape.rank()))};
  if (instr.shape.is_tuple()) {
    size_t at = 0;
    const auto collect = [&](const auto& self, const Shape& shape) -> void {
      if (!shape.is_tuple()) {
        out.leaves[at++] = ArraySharding(static_cast<size_t>(shape.is_array() ? shape.rank() : 0));
        return;
      }
      for (const Shape& element : shape.elements()) self(self, element);
    };
    collect(collect, instr.shape);
  }
  return out;
}

Expected<TiledValue> Materializer::enter_manual(InstrId id, const Instruction& instr, const Operands& in) {
  TiledValue out;
  std::vector<InstrId> parts;
  for (size_t i = 0; i < in.size(); ++i) {
    const Shape& shape = m_[instr.operand(i)].shape;
    if (!shape.is_array()) {
      parts.push_back(in[i].id);
      out.leaves.insert(out.leaves.end(), in[i].leaves.begin(), in[i].leaves.end());
      continue;
    }
    COLLET_ASSIGN(const ManualSplit split, context_.regions.manual_split(instr, i, static_cast<size_t>(shape.rank())));
    const ArraySharding& inside = shardings(id)[out.leaves.size()];
    const std::array<ArraySharding, 1> to = {ArraySharding(split.outer(inside.dimensions), split.unreduced)};
    parts.push_back(reshard(in[i], shape, to).id);
    out.leaves.push_back(inside);
  }
  out.id = parts.size() == 1 && !instr.shape.is_tuple() ? parts[0] : b_.tuple(parts);
  return out;
}

Expected<TiledValue> Materializer::leave_manual(InstrId id, const Instruction& instr, const Operands& in) {
  COLLET_ASSIGN(const DeviceGroups inside, context_.regions.manual_groups(instr, groups_));
  Materializer within(context_, t_, inside);
  TiledValue out;
  std::vector<InstrId> parts;
  for (size_t i = 0; i < in.size(); ++i) {
    const Shape& tile = m_[instr.operand(i)].shape;
    if (!tile.is_array()) {
      parts.push_back(in[i].id);
      out.leaves.insert(out.leaves.end(), in[i].leaves.begin(), in[i].leaves.end());
      continue;
    }
    COLLET_ASSIGN(const ManualSplit split, context_.regions.manual_split(instr, i, static_cast<size_t>(tile.rank())));
    const ArraySharding& outside = shardings(id)[out.leaves.size()];
    std::array<ArraySharding, 1> to = {ArraySharding(outside.dimensions.size())};
    for (size_t d = 0; d < outside.dimensions.size(); ++d)
      to[0].dimensions[d] = minor_part(outside.dimensions[d], outside.dimensions[d].count() / split.manual[d].count());
    parts.push_back(within.reshard(in[i], tile, to).id);
    out.leaves.push_back(outside);
  }
  out.id = parts.size() == 1 && !instr.shape.is_tuple() ? parts[0] : b_.tuple(parts);
  return out;
}

}  // namespace collet::hlo::spmd
