// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "hlo/ir/limits.h"
#include "hlo/ops/properties.h"
#include "hlo/verify/context.h"

namespace collet::hlo::verify {
namespace {

// The first float type in `shape` that differs from `type`; `type` is set by the first one.
Type other_float(const Shape& shape, Type& type) {
  for (const Shape& element : shape.elements())
    if (const Type other = other_float(element, type); other != Type::Invalid) return other;
  if (!shape.is_array() || !is_float(shape.type())) return Type::Invalid;
  if (type == Type::Invalid) type = shape.type();
  return shape.type() == type ? Type::Invalid : shape.type();
}

void check_precision(Context& context, const Instruction& instr) {
  const Module& m = context.module;
  if (!op_properties(instr.op).mixes_precision) {
    Type type = Type::Invalid;
    for (InstrId o : instr.operands)
      if (const Type other = other_float(m[o].shape, type); other != Type::Invalid)
        return context.complain(
            instr, concat(op_info(instr.op).text, ": floats of different precision meet: ", type, " and ", other));
  }
  if (instr.op == Op::RNG && m[instr.operand(0)].shape.type() != instr.shape.type())
    return context.complain(
        instr, concat("rng C1: operand 0 is ", m[instr.operand(0)].shape, ", but the result is ", instr.shape));
  // The parameters of the called computation must have the types of the operands.
  if (instr.op != Op::REDUCE && instr.op != Op::MAP && instr.op != Op::REDUCE_WINDOW) return;
  const auto& parameters = m[instr.called[0]].parameters;
  for (size_t i = 0; i < instr.operands.size(); ++i)
    if (m[parameters[i]].shape.type() != m[instr.operand(i)].shape.type())
      return context.complain(
          instr, concat(op_info(instr.op).text, ": operand ", i, " is ", m[instr.operand(i)].shape, ", but parameter ",
                        i, " of ", m[instr.called[0]].name, " is ", m[parameters[i]].shape));
}

Status check_sizes(const Shape& shape) {
  if (shape.dims().size() > kMostDimensions)
    return invalid_argument(concat("an array has at most ", kMostDimensions, " dimensions"));
  for (int64_t size : shape.dims())
    if (size < 0 && size != kUnbounded) return invalid_argument(concat("a negative size in ", shape));
  if (!shape.has_unbounded() && shape.byte_size() == INT64_MAX)
    return invalid_argument(concat("more bytes than there are numbers for: ", shape));
  return ok_status();
}

Status check_layout(const Shape& shape) {
  for (const Shape& element : shape.elements()) COLLET_TRY(check_layout(element));
  if (shape.is_array()) COLLET_TRY(check_sizes(shape));
  const Layout* layout = shape.layout();
  if (!layout) return ok_status();
  if (!shape.is_array()) return ok_status();
  if (layout->minor_to_major.size() != static_cast<size_t>(shape.rank()) || has_repeats(layout->minor_to_major) ||
      first_outside(layout->minor_to_major, shape.rank()) >= 0)
    return invalid_argument(concat("the layout ", layout_to_string(*layout), " does not fit ", shape));
  const int64_t bits = type_info(shape.type()).bits;
  const int64_t stated = layout->element_size_bits;
  if (stated && stated != bits && !(bits < 8 && stated == 8))
    return invalid_argument(concat("element size E(", stated, ") does not fit ", shape,
                                   ": only types below 8 bits are packed, to their own width"));
  return ok_status();
}

Status check_accuracy(const Instruction& instr) {
  if (!instr.extras || !instr.extras->result_accuracy) return ok_status();
  const ResultAccuracy& accuracy = *instr.extras->result_accuracy;
  if (!std::isfinite(accuracy.atol) || !std::isfinite(accuracy.rtol))
    return broken(instr.op, "", "has a result_accuracy whose tolerances are no numbers");
  const OpInfo& info = op_info(instr.op);
  if (info.op_class == OpClass::MATH && info.max_operands == 1) return ok_status();
  return broken(instr.op, "", "takes no result_accuracy");
}

// --- sharding ---

int64_t product(std::span<const int64_t> numbers) {
  int64_t out = 1;
  for (int64_t n : numbers)
    if (n < 0 || !multiply_fits(out, n, out)) return -1;
  return out;
}

Status check_devices(const Sharding& s, int64_t limit) {
  if (s.iota) {
    const int64_t count = product(s.tile_dims);
    if (count < 0 || count != product(s.reshape))
      return invalid_argument("sharding: the device list does not fit the tile assignment");
    if (s.permutation.size() != s.reshape.size() || has_repeats(s.permutation) ||
        first_outside(s.permutation, static_cast<int64_t>(s.reshape.size())) >= 0)
      return invalid_argument("sharding: T(...) is no order of the dimensions");
    if (limit > 0 && count > limit)
      return invalid_argument(concat("sharding: ", count, " devices, but there are ", limit));
    return ok_status();
  }
  for (int64_t device : s.devices)
    if (device < 0 || (limit > 0 && device >= limit))
      return invalid_argument(concat("sharding: there is no device ", device));
  if (has_repeats(s.devices)) return invalid_argument("sharding: a device occurs twice");
  if (product(s.tile_dims) != static_cast<int64_t>(s.devices.size()))
    return invalid_argument("sharding: the device list does not fit the tile assignment");
  return ok_status();
}

Status check_sharding(const Sharding& s, const Shape& shape, int64_t limit) {
  if (shape.is_token()) return ok_status();
  if (s.kind == Sharding::Kind::Tuple) return invalid_argument(concat("sharding is a tuple, but the shape is ", shape));
  if (s.kind == Sharding::Kind::Maximal && (s.device < 0 || (limit > 0 && s.device >= limit)))
    return invalid_argument(concat("sharding: there is no device ", s.device));
  if (s.kind != Sharding::Kind::Tiled) return ok_status();
  COLLET_TRY(check_devices(s, limit));
  const size_t groups = s.last_tile_dims.size() + (s.last_tile_dim_replicate ? 1 : 0);
  if (s.tile_dims.size() != static_cast<size_t>(shape.rank()) + groups)
    return invalid_argument(concat("sharding tiles ", s.tile_dims.size() - std::min(groups, s.tile_dims.size()),
                                   " dimensions, but the shape is ", shape));
  return ok_status();
}

void leaves_of(const Shape& shape, std::vector<const Shape*>& out) {
  if (!shape.is_tuple()) return out.push_back(&shape);
  for (const Shape& element : shape.elements()) leaves_of(element, out);
}

Status check_tuple_sharding(const Sharding& s, const Shape& shape, int64_t limit) {
  if (!shape.is_tuple()) return check_sharding(s, shape, limit);
  std::vector<const Shape*> leaves;
  leaves_of(shape, leaves);
  if (s.kind != Sharding::Kind::Tuple) {  // one sharding for all leaves
    for (const Shape* leaf : leaves) COLLET_TRY(check_sharding(s, *leaf, limit));
    return ok_status();
  }
  // An empty tuple counts as one leaf.
  if (leaves.empty() && s.elements.size() <= 1) return ok_status();
  if (leaves.size() != s.elements.size())
    return invalid_argument(
        concat("sharding has ", s.elements.size(), " elements, but ", shape, " has ", leaves.size(), " leaves"));
  for (size_t i = 0; i < leaves.size(); ++i) COLLET_TRY(check_sharding(s.elements[i], *leaves[i], limit));
  return ok_status();
}

const Sharding* sharding_of(const Instruction& instr) {
  return instr.extras ? instr.extras->sharding : nullptr;
}

// Checks that a while has the same sharding as the parameters of its computations and the root of its body, and that a
// conditional has the same sharding as the roots of its branches.
void check_same_sharding(Context& context, const Instruction& instr) {
  const Module& m = context.module;
  std::vector<const Instruction*> parts{&instr};
  if (instr.op == Op::WHILE) {
    for (CompId called : instr.called) parts.push_back(&m[m[called].parameters[0]]);
    parts.push_back(&m[m[instr.called[1]].root]);
  } else {
    for (CompId called : instr.called) parts.push_back(&m[m[called].root]);
  }
  const Instruction* first = nullptr;
  for (const Instruction* part : parts) {
    if (!sharding_of(*part)) continue;
    if (!first) first = part;
    if (!(*sharding_of(*part) == *sharding_of(*first)))
      return context.complain(
          instr, concat(op_info(instr.op).text, ": ", first->name, " and ", part->name, " are sharded differently"));
  }
}

}  // namespace

void verify_annotations(Context& context) {
  const Module& m = context.module;
  const int64_t partitions = m.header().num_partitions;
  const int64_t limit = partitions > 1 ? partitions : 0;
  for (CompId c : m.computations())
    for (InstrId id : m[c].order) {
      if (context.full()) return;
      const Instruction& instr = m[id];
      if (!context.options.allow_mixed_precision) check_precision(context, instr);
      if (!context.options.allow_unbounded && instr.shape.has_unbounded())
        context.complain(instr, concat("unknown sizes are not allowed here: ", instr.shape));
      context.check(instr, check_layout(instr.shape));
      context.check(instr, check_accuracy(instr));
      if (const Sharding* sharding = sharding_of(instr))
        context.check(instr, check_tuple_sharding(*sharding, instr.shape, limit));
      if (instr.op == Op::WHILE || instr.op == Op::CONDITIONAL) check_same_sharding(context, instr);
    }
}

}  // namespace collet::hlo::verify
