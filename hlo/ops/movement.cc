// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Expected<Shape> infer_broadcast(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const Dims& map = in.as<BroadcastAttrs>().dimensions;
  COLLET_TRY(expect_array(in, 0, "the operand"));
  if (map.size() != static_cast<size_t>(operand.rank()))
    return broken(in.op, "C2", "dimensions ", map, " must name one result dimension for each of ", operand);
  if (!in.declared) {
    if (map.empty()) return operand.without_layout();
    return broken(in.op, "", "the result's shape must be stated");
  }
  const Shape& result = *in.declared;
  if (!result.is_array()) return broken(in.op, "", "the result must be an array, but is ", result);
  if (result.type() != operand.type())
    return broken(in.op, "C1", "element types differ: operand is ", operand, ", result is ", result);
  if (const int64_t i = first_outside(map, result.rank()); i >= 0)
    return broken(in.op, "C3", "dimension ", map[static_cast<size_t>(i)], " lies outside of the result ", result);
  if (has_repeats(map)) return broken(in.op, "C4", "dimensions ", map, " name one twice");
  for (size_t i = 0; i < map.size(); ++i) {
    const int64_t from = operand.dim(static_cast<int>(i)), to = result.dim(static_cast<int>(map[i]));
    if (!sizes_agree(from, to))
      return broken(in.op, "C5", "operand dim ", i, " is ", Size{from}, ", result dim ", map[i], " is ", Size{to});
  }
  return result.without_layout();
}

Expected<Shape> infer_concatenate(const InferInput& in) {
  const Shape& first = in.operand(0);
  COLLET_TRY(expect_array(in, 0, "operand 0"));
  const int64_t along = in.as<DimensionAttrs>().dimension;
  if (along < 0 || along >= first.rank()) return broken(in.op, "C4", "dimension ", along, " lies outside of ", first);
  const auto axis = static_cast<int>(along);
  Type type = first.type();
  DimList dims = DimList::of(first);
  for (size_t i = 1; i < in.operands.size(); ++i) {
    COLLET_TRY(expect_array(in, i));
    const Shape& next = in.operand(i);
    if (!types_agree(type, next.type()))
      return broken(in.op, "C1", "element types differ: operand 0 is ", first, ", operand ", i, " is ", next);
    type = wider_type(type, next.type());
    if (next.rank() != first.rank())
      return broken(in.op, "C2", "ranks differ: operand 0 is ", first, ", operand ", i, " is ", next);
    for (int d = 0; d < first.rank(); ++d) {
      const auto at = static_cast<size_t>(d);
      const int64_t have = dims[at], more = next.dim(d);
      const bool dynamic = dims.is_dynamic(at) || next.is_dynamic(d);
      if (d == axis) {
        int64_t sum = kUnbounded;
        if (have != kUnbounded && more != kUnbounded && !add_fits(have, more, sum))
          return broken(in.op, "C6", "the size of dimension ", along, " overflows");
        dims.set(at, sum, dynamic);
      } else if (!sizes_agree(have, more)) {
        return broken(in.op, "C2", "operand 0 is ", first, ", operand ", i, " is ", next, ": they differ in dimension ",
                      d, " too, and not only in dimension ", along);
      } else if (have == kUnbounded) {
        dims.set(at, more, next.is_dynamic(d));
      } else if (more != kUnbounded) {
        dims.set(at, have, dynamic);
      }
    }
  }
  return dims.shape(type);
}

Expected<Shape> infer_slice(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const SliceRanges& s = in.as<SliceAttrs>().slice;
  COLLET_TRY(expect_array(in, 0, "the operand"));
  const auto rank = static_cast<size_t>(operand.rank());
  if (s.start.size() != rank || s.limit.size() != rank || (s.stride.size() != rank && !s.stride.empty()))
    return broken(in.op, "C2", "start, limit and stride must have one entry for each dimension of ", operand);
  DimList dims;
  for (size_t i = 0; i < rank; ++i) {
    const auto d = static_cast<int>(i);
    const int64_t start = s.start[i], limit = s.limit[i], stride = s.stride.empty() ? 1 : s.stride[i];
    if (start < 0 || start > limit || (operand.dim(d) != kUnbounded && limit > operand.dim(d)))
      return broken(in.op, "C3", "[", start, ":", limit, "] does not lie in dimension ", i, " of ", operand);
    if (stride <= 0) return broken(in.op, "C4", "stride ", stride, " of dimension ", i, " is not positive");
    const int64_t size = limit == start ? 0 : (limit - start - 1) / stride + 1;
    dims.push(size, size != 1 && operand.is_dynamic(d) && operand.dim(d) != kUnbounded);
  }
  return dims.shape(operand.type());
}

// Checks the start indices of dynamic-slice and dynamic-update-slice: one scalar for each dimension, or one list with
// all.
Status check_starts(const InferInput& in, size_t first, const Shape& operand, std::string_view size_label,
                    std::string_view type_label) {
  const size_t count = in.operands.size() - first;
  const auto rank = static_cast<size_t>(operand.rank());
  if (count == 1 && in.operand(first).is_array() && in.operand(first).rank() > 0) {
    const Shape& list = in.operand(first);
    if (list.rank() != 1)
      return broken(in.op, "", "start indices in one array must be a list, but the array is ", list);
    if (!is_integer(list.type())) return broken(in.op, "", "start indices must be integers, but are ", list);
    if (!sizes_agree(list.dim(0), operand.rank()))
      return broken(in.op, size_label, "there must be ", rank, " start indices, but there are ", Size{list.dim(0)});
    return ok_status();
  }
  if (count != rank) return broken(in.op, size_label, "there must be ", rank, " start indices, but there are ", count);
  for (size_t i = first; i < in.operands.size(); ++i) {
    const Shape& start = in.operand(i);
    if (!start.is_scalar() || !is_integer(start.type()))
      return broken(in.op, "", "start index ", i - first, " must be an integer scalar, but is ", start);
    if (start.type() != in.operand(first).type())
      return broken(in.op, type_label, "start indices must have one type, but are ", in.operand(first), " and ", start);
  }
  return ok_status();
}

Expected<Shape> infer_dynamic_slice(const InferInput& in) {
  const Shape& operand = in.operand(0);
  COLLET_TRY(expect_array(in, 0, "the operand"));
  COLLET_TRY(check_starts(in, 1, operand, "C2", "C3"));
  const Dims& sizes = in.as<DynamicSliceAttrs>().sizes;
  if (sizes.size() != static_cast<size_t>(operand.rank()))
    return broken(in.op, "C2", "slice sizes ", sizes, " must have one entry for each dimension of ", operand);
  DimList dims;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto d = static_cast<int>(i);
    if (sizes[i] < 0 || (operand.dim(d) != kUnbounded && sizes[i] > operand.dim(d)))
      return broken(in.op, "C4", "slice size ", sizes[i], " does not fit dimension ", i, " of ", operand);
    dims.push(sizes[i], operand.is_dynamic(d) && sizes[i] > 1 && sizes[i] == operand.dim(d));
  }
  return dims.shape(operand.type());
}

Expected<Shape> infer_dynamic_update_slice(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const Shape& update = in.operand(1);
  COLLET_TRY(expect_array(in, 0, "the operand"));
  COLLET_TRY(expect_array(in, 1, "the update"));
  COLLET_TRY(check_starts(in, 2, operand, "C4", "C5"));
  if (!types_agree(operand.type(), update.type()))
    return broken(in.op, "C2", "element types differ: operand is ", operand, ", update is ", update);
  if (operand.rank() != update.rank())
    return broken(in.op, "C3", "ranks differ: operand is ", operand, ", update is ", update);
  DimList dims = DimList::of(operand);
  for (int d = 0; d < operand.rank(); ++d) {
    const int64_t have = operand.dim(d), size = update.dim(d);
    if (have != kUnbounded && size != kUnbounded && size > have)
      return broken(in.op, "C6", "update ", update, " does not fit in operand ", operand);
    dims.set(static_cast<size_t>(d), have, operand.is_dynamic(d) || (update.is_dynamic(d) && size == have));
  }
  return dims.shape(operand.type());
}

Expected<Shape> infer_pad(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const Shape& value = in.operand(1);
  const Padding& p = in.as<PadAttrs>().padding;
  COLLET_TRY(expect_array(in, 0, "the operand"));
  if (!value.is_scalar()) return broken(in.op, "", "the padding value must be a scalar, but is ", value);
  if (!types_agree(operand.type(), value.type()))
    return broken(in.op, "C1", "element types differ: operand is ", operand, ", padding value is ", value);
  const auto rank = static_cast<size_t>(operand.rank());
  if (p.low.size() != rank || p.high.size() != rank || (p.interior.size() != rank && !p.interior.empty()))
    return broken(in.op, "C2", "the padding must have one entry for each dimension of ", operand);
  DimList dims;
  for (size_t i = 0; i < rank; ++i) {
    const auto d = static_cast<int>(i);
    const int64_t interior = p.interior.empty() ? 0 : p.interior[i];
    if (interior < 0) return broken(in.op, "C3", "interior padding ", interior, " of dimension ", i, " is negative");
    int64_t size = operand.dim(d);
    if (size != kUnbounded) {
      int64_t inside;
      if (!multiply_fits(std::max<int64_t>(size - 1, 0), interior, inside) || !add_fits(size, inside, inside) ||
          !edges_fit(inside, p.low[i], p.high[i]) || !add_fits(inside + p.low[i], p.high[i], size))
        return broken(in.op, "C4", "the size of dimension ", i, " overflows");
      if (size < 0) return broken(in.op, "C4", "dimension ", i, " of the result would have size ", size);
    }
    dims.push(size, operand.is_dynamic(d));
  }
  return dims.shape(wider_type(operand.type(), value.type()));
}

Expected<Shape> infer_reshape(const InferInput& in) {
  const Shape& operand = in.operand(0);
  COLLET_TRY(expect_array(in, 0, "the operand"));
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  const Shape& result = *in.declared;
  if (!result.is_array()) return broken(in.op, "", "the result must be an array, but is ", result);
  if (result.type() != operand.type())
    return broken(in.op, "C1", "element types differ: operand is ", operand, ", result is ", result);
  if (!operand.has_unbounded() && !result.has_unbounded() && operand.element_count() != result.element_count())
    return broken(in.op, "C2", "operand ", operand, " and result ", result, " have different numbers of elements");
  return result.without_layout();
}

Expected<Shape> infer_reverse(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const Dims& dimensions = in.as<DimensionsAttrs>().dimensions;
  COLLET_TRY(expect_array(in, 0, "the operand"));
  if (has_repeats(dimensions)) return broken(in.op, "C2", "dimensions ", dimensions, " name one twice");
  if (first_outside(dimensions, operand.rank()) >= 0)
    return broken(in.op, "C3", "dimensions ", dimensions, " do not lie in ", operand);
  return operand.without_layout();
}

Expected<Shape> infer_transpose(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const Dims& order = in.as<DimensionsAttrs>().dimensions;
  COLLET_TRY(expect_array(in, 0, "the operand"));
  if (order.size() != static_cast<size_t>(operand.rank()) || has_repeats(order) ||
      first_outside(order, operand.rank()) >= 0)
    return broken(in.op, "C2", "dimensions ", order, " are no permutation of those of ", operand);
  DimList dims;
  for (int64_t d : order) dims.push(operand, d);
  return dims.shape(operand.type());
}

Expected<Shape> infer_iota(const InferInput& in) {
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  const Shape& result = *in.declared;
  if (!result.is_array() || !in_type_set(op_info(in.op).types, result.type()))
    return broken(in.op, "", "the result must be an array of ", type_set_text(op_info(in.op).types), " type, but is ",
                  result);
  const int64_t along = in.as<IotaAttrs>().dimension;
  if (along < 0 || along >= result.rank())
    return broken(in.op, "C1", "iota_dimension ", along, " lies outside of ", result);
  return result.without_layout();
}

Expected<Shape> infer_bitcast(const InferInput& in) {
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  return in.declared->without_layout();
}

// Returns the total number of bits of the elements; -1 if it is not known or too large.
int64_t packed_bits(const Shape& shape) {
  int64_t bits;
  if (shape.has_unbounded() || !multiply_fits(shape.element_count(), type_info(shape.type()).bits, bits)) return -1;
  return bits;
}

}  // namespace

Expected<Shape> infer_movement(const InferInput& in) {
  switch (in.op) {
    case Op::BITCAST:
      return infer_bitcast(in);
    case Op::BROADCAST:
      return infer_broadcast(in);
    case Op::CONCATENATE:
      return infer_concatenate(in);
    case Op::COPY:
      return in.operand(0).without_layout();
    case Op::DYNAMIC_SLICE:
      return infer_dynamic_slice(in);
    case Op::DYNAMIC_UPDATE_SLICE:
      return infer_dynamic_update_slice(in);
    case Op::IOTA:
      return infer_iota(in);
    case Op::PAD:
      return infer_pad(in);
    case Op::RESHAPE:
      return infer_reshape(in);
    case Op::REVERSE:
      return infer_reverse(in);
    case Op::SLICE:
      return infer_slice(in);
    case Op::TRANSPOSE:
      return infer_transpose(in);
    default:
      return unimplemented(concat("no shape inference for ", op_info(in.op).text));
  }
}

Status verify_movement(const Module& module, const Instruction& instr) {
  if (instr.op != Op::BITCAST) return ok_status();
  const Shape& from = module[instr.operand(0)].shape;
  const Shape& to = instr.shape;
  if (from.is_array() != to.is_array()) return broken(instr.op, "", "cannot view ", from, " as ", to);
  if (!from.is_array()) {
    if (from.compatible(to)) return ok_status();
    return broken(instr.op, "", "cannot view ", from, " as ", to);
  }
  const int64_t have = packed_bits(from), want = packed_bits(to);
  if (have == want || have < 0 || want < 0) return ok_status();
  return broken(instr.op, "", "operand ", from, " and result ", to, " have different sizes");
}

}  // namespace collet::hlo
