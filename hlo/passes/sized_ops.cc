// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/sized_ops.h"

#include "hlo/passes/sized_rules.h"

namespace collet::hlo {

SizedResult SizedRules::run() {
  switch (instr_.op) {
    case Op::GET_DIMENSION_SIZE:
      return {size(0, dimension()), {{}}};
    case Op::SET_DIMENSION_SIZE:
      return set_size();
    case Op::BROADCAST:
      return broadcast();
    case Op::TRANSPOSE:
      return transpose();
    case Op::RESHAPE:
    case Op::DYNAMIC_RESHAPE:
      return reshape();
    case Op::SLICE:
      return slice();
    case Op::DYNAMIC_SLICE:
      return dynamic_slice();
    case Op::DYNAMIC_UPDATE_SLICE:
      return dynamic_update_slice();
    case Op::CONCATENATE:
      return concatenate();
    case Op::PAD:
      return pad();
    case Op::REVERSE:
      return reverse();
    case Op::REDUCE:
      return reduce();
    case Op::REDUCE_WINDOW:
      return reduce_window();
    case Op::DOT:
      return dot();
    case Op::SORT:
      return sort();
    case Op::GATHER:
      return gather();
    case Op::SCATTER:
      return scatter();
    case Op::IOTA:
      return {same(), {{}}};
    case Op::CUSTOM_CALL:
      return custom_call();
    default:
      break;
  }
  const bool alone = !instr_.shape.is_tuple() && !operands_.empty();
  if (is_elementwise(instr_.op) || instr_.op == Op::COPY || instr_.op == Op::BITCAST_CONVERT ||
      (instr_.op == Op::ALL_REDUCE && alone) || (instr_.op == Op::COLLECTIVE_PERMUTE && alone))
    return elementwise();
  return fail("a dynamic dimension");
}

SizedResult SizedRules::fail(const std::string& what) {
  b_.fail(unimplemented("'" + std::string(instr_.name) + "': " + std::string(op_info(instr_.op).text) + " with " +
                        what + " (" + instr_.shape.to_string() + ") is not supported"));
  return {};
}

// Returns the smaller of two sizes.
InstrId SizedRules::smaller(InstrId a, InstrId c) {
  if (a == InstrId::None || a == c) return c;
  return c == InstrId::None ? a : b_.min(a, c);
}

SizedResult SizedRules::elementwise() {
  Sizes out(static_cast<size_t>(instr_.shape.rank()), InstrId::None);
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (rank(i) != out.size()) {
      if (any(op_.sizes[i])) return fail("a dynamic dimension that it changes");
      continue;
    }
    for (size_t d = 0; d < out.size(); ++d) out[d] = smaller(out[d], at(op_.sizes[i], d));
  }
  return {same(), {out}};
}

SizedResult SizedRules::set_size() {
  const size_t d = dimension();
  Sizes out = op_.sizes[0];
  out.resize(rank(0), InstrId::None);
  const InstrId wanted = b_.convert(operands_[1], Type::S32);
  out[d] = clamp(wanted, number(0), number(b_.dims(operands_[0])[d]));
  return {operands_[0], {out}};
}

Shape at_bounds(const Shape& shape) {
  if (!shape.is_tuple()) return shape.has_dynamic() ? shape.to_static() : shape;
  std::vector<Shape> elements;
  for (const Shape& element : shape.elements()) elements.push_back(at_bounds(element));
  return Shape::tuple(std::move(elements));
}

InstrId size_or_bound(Builder& b, InstrId x, const Sizes& sizes, size_t d) {
  return at(sizes, d) != InstrId::None ? sizes[d] : b.scalar_int(Type::S32, b.dims(x)[d]);
}

InstrId mask_outside(Builder& b, InstrId x, const Sizes& sizes, InstrId pad) {
  if (!any(sizes) || !b.status().ok()) return x;
  const std::vector<int64_t> dims(b.dims(x).begin(), b.dims(x).end());
  const InstrId padding = b.broadcast(pad, dims, {});
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == InstrId::None) continue;
    const InstrId place = b.iota(Shape::array(Type::S32, dims), static_cast<int64_t>(d));
    x = b.select(b.compare(place, Direction::LT, b.broadcast(sizes[d], dims, {})), x, padding);
  }
  return x;
}

SizedResult build_sized(Builder& b, const SizedOp& op) {
  return SizedRules(b, op).run();
}

}  // namespace collet::hlo
