// SPDX-License-Identifier: Apache-2.0
#include "hlo/eval/dynamic.h"

#include <algorithm>

#include "hlo/ops/eval/strided.h"
#include "hlo/ops/rules.h"

namespace collet::hlo {
namespace {

bool is_array_op(const Instruction& instr) {
  switch (op_info(instr.op).family) {
    case Family::structure:
    case Family::control_flow:
    case Family::asynchronous:
    case Family::collective:
    case Family::host_io:
    case Family::custom_call:
    case Family::dynamic_shape:
      return false;
    default:
      return instr.op != Op::COPY;
  }
}

bool needs_sizes(const EvalInput& in) {
  if (!is_array_op(in.instr)) return false;
  if (in.instr.shape.has_dynamic()) return true;
  for (const Literal& operand : in.operands)
    if (!operand.dynamic_sizes().empty() || operand.shape().has_dynamic()) return true;
  return false;
}

/// Returns the run-time shape of a reshape: its one dynamic dimension follows from the number of elements and the other
/// sizes.
Expected<Shape> reshaped(const Shape& declared, int64_t elements) {
  std::vector<int64_t> dims(declared.dims().begin(), declared.dims().end());
  int dynamic = -1;
  int64_t others = 1;
  for (int d = 0; d < declared.rank(); ++d) {
    if (declared.is_dynamic(d) && dynamic < 0)
      dynamic = d;
    else
      others *= declared.dim(d);
  }
  if (dynamic >= 0 && others > 0 && elements % others == 0) dims[static_cast<size_t>(dynamic)] = elements / others;
  const Shape out = Shape::array(declared.type(), dims);
  if (out.element_count() != elements)
    return unimplemented("a reshape to " + declared.to_string() + " of " + std::to_string(elements) + " elements");
  return out;
}

/// Adjusts a slice: a limit at the bound of a dynamic dimension becomes the run-time size.
const SliceAttrs* clipped(const SliceAttrs& attrs, const Shape& operand, SliceAttrs& storage,
                          std::vector<int64_t>& limits, Arena& arena) {
  limits.assign(attrs.slice.limit.begin(), attrs.slice.limit.end());
  std::vector<int64_t> starts(attrs.slice.start.begin(), attrs.slice.start.end());
  for (size_t d = 0; d < limits.size(); ++d) {
    limits[d] = std::min(limits[d], operand.dim(static_cast<int>(d)));
    starts[d] = std::min(starts[d], limits[d]);
  }
  storage = attrs;
  storage.slice.limit = arena.list(limits);
  storage.slice.start = arena.list(starts);
  return &storage;
}

/// Returns the static shape of `instr`'s result for operands of these shapes.
Expected<Shape> actual_shape(const EvalInput& in, const Instruction& instr, std::span<const Literal> operands) {
  const Shape& declared = in.instr.shape;
  if (instr.op == Op::RESHAPE) return reshaped(declared, operands[0].element_count());
  if (instr.op == Op::IOTA) return declared.to_static();
  if (instr.op == Op::BROADCAST) {
    std::vector<int64_t> dims(declared.dims().begin(), declared.dims().end());
    const Dims map = instr.as<BroadcastAttrs>().dimensions;
    for (size_t i = 0; i < map.size(); ++i) dims[static_cast<size_t>(map[i])] = operands[0].shape().dims()[i];
    return Shape::array(declared.type(), dims);
  }
  if (instr.op == Op::CONVERT || instr.op == Op::REDUCE_PRECISION || instr.op == Op::BITCAST_CONVERT ||
      instr.op == Op::STOCHASTIC_CONVERT) {
    if (declared.rank() == operands[0].shape().rank()) return operands[0].shape().with_type(declared.type());
  }
  std::vector<Shape> shapes;
  for (const Literal& operand : operands) shapes.push_back(operand.shape());
  std::vector<const Shape*> pointers;
  for (const Shape& shape : shapes) pointers.push_back(&shape);
  const Shape fixed = declared.is_tuple() ? declared : declared.to_static();
  return infer_shape({in.module, instr.op, pointers, instr.attrs, instr.called, &fixed});
}

/// Returns the leading `sizes` elements of each dimension.
Literal cut(const Literal& value, std::span<const int64_t> sizes) {
  const Shape shape = Shape::array(value.type(), sizes);
  Literal out = Literal::uninitialized(shape);
  if (out.element_count() > 0)
    eval::copy_strided(sizes, value.bytes(), eval::row_major_strides(value.shape().dims()), out.mutable_bytes(),
                       eval::row_major_strides(sizes), type_info(shape.type()).bytes());
  return out;
}

/// Elementwise ops on arrays of different sizes work on what all of them have.
void cut_to_common(std::vector<Literal>& operands) {
  std::vector<int64_t> common;
  for (const Literal& operand : operands) {
    const auto dims = operand.shape().dims();
    if (dims.empty()) continue;
    if (common.empty()) common.assign(dims.begin(), dims.end());
    for (size_t d = 0; d < common.size() && d < dims.size(); ++d) common[d] = std::min(common[d], dims[d]);
  }
  for (Literal& operand : operands) {
    const auto dims = operand.shape().dims();
    if (dims.size() == common.size() && !std::equal(dims.begin(), dims.end(), common.begin()))
      operand = cut(operand, common);
  }
}

}  // namespace

Literal cut_to_sizes(const Literal& value) {
  if (value.dynamic_sizes().empty()) {
    return value.shape().is_array() && value.shape().has_dynamic() && !value.shape().has_unbounded()
               ? value.reshaped(value.shape().to_static())
               : value;
  }
  return cut(value, value.dynamic_sizes());
}

Literal pad_to_bounds(const Literal& value, const Shape& shape) {
  if (shape.is_tuple()) {
    std::vector<Literal> elements;
    for (size_t i = 0; i < value.elements().size(); ++i)
      elements.push_back(pad_to_bounds(value.element(i), shape.element(i)));
    return Literal::tuple(std::move(elements));
  }
  if (!shape.is_array() || value.shape().rank() != shape.rank() || shape.has_unbounded()) return value;
  const auto sizes = value.shape().dims();
  if (std::equal(sizes.begin(), sizes.end(), shape.dims().begin())) return value.reshaped(shape);
  Literal out = Literal::zeros(shape);
  std::vector<int64_t> inside(sizes.begin(), sizes.end());
  for (size_t d = 0; d < inside.size(); ++d) inside[d] = std::min(inside[d], shape.dims()[d]);
  if (eval::product(inside) > 0)
    eval::copy_strided(inside, value.bytes(), eval::row_major_strides(sizes), out.mutable_bytes(),
                       eval::row_major_strides(shape.dims()), type_info(shape.type()).bytes());
  bool dynamic = false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape.is_dynamic(d))
      dynamic |= inside[static_cast<size_t>(d)] != shape.dim(d);
    else
      inside[static_cast<size_t>(d)] = shape.dim(d);
  }
  if (dynamic) out.set_dynamic_sizes(std::move(inside));
  return out;
}

Expected<Literal> evaluate_with_sizes(const EvalInput& in) {
  if (!needs_sizes(in)) return evaluate(in);
  std::vector<Literal> operands;
  for (const Literal& operand : in.operands) operands.push_back(cut_to_sizes(operand));
  if (is_elementwise(in.instr.op)) cut_to_common(operands);
  Instruction instr = in.instr;
  SliceAttrs slice;
  std::vector<int64_t> limits;
  Arena arena;
  if (instr.op == Op::SLICE) instr.attrs = clipped(instr.as<SliceAttrs>(), operands[0].shape(), slice, limits, arena);
  COLLET_ASSIGN(instr.shape, actual_shape(in, instr, operands));
  instr.shape = instr.shape.is_array() ? instr.shape.to_static() : instr.shape;
  COLLET_ASSIGN(Literal result, evaluate({in.module, instr, operands, in.context}));
  return pad_to_bounds(result, in.instr.shape);
}

}  // namespace collet::hlo
