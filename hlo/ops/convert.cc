// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Expected<Type> target_type(const InferInput& in) {
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  if (!in.declared->is_array()) return broken(in.op, "", "the result must be an array, but is ", *in.declared);
  return in.declared->type();
}

Expected<Shape> infer_bitcast_convert(const InferInput& in, Type to) {
  const Shape& operand = in.operand(0);
  const Type from = operand.type();
  if (is_complex(from) != is_complex(to))
    return broken(in.op, "C2", "complex and real types do not mix: from ", from, " to ", to);
  const int64_t old_bits = type_info(from).bits, new_bits = type_info(to).bits;
  const int64_t large = std::max(old_bits, new_bits), small = std::min(old_bits, new_bits);
  if (small == 0 || large % small) return broken(in.op, "C1", "widths do not divide: from ", from, " to ", to);
  DimList dims = DimList::of(operand);
  if (old_bits > new_bits) dims.push(large / small, false);
  if (old_bits >= new_bits) return dims.shape(to);
  const int rank = operand.rank();
  if (rank == 0 || !sizes_agree(operand.dim(rank - 1), large / small))
    return broken(in.op, "C1", "the last dimension of ", operand, " must be ", large / small, " to make ", to);
  DimList shorter;
  for (int i = 0; i + 1 < rank; ++i) shorter.push(operand, i);
  return shorter.shape(to);
}

Expected<Shape> infer_stochastic(const InferInput& in, Type to) {
  const Shape& operand = in.operand(0);
  const Shape& random = in.operand(1);
  COLLET_TRY(expect_array(in, 1, "the random bits"));
  if (!is_unsigned(random.type())) return broken(in.op, "", "the random bits must be unsigned, but are ", random);
  if (type_info(random.type()).bits != type_info(operand.type()).bits)
    return broken(in.op, "", "operand and random bits must have the same width, but are ", operand, " and ", random);
  if (!is_integer(to) && !is_float(to))
    return broken(in.op, "", "the result must be of integer or float type, but is ", to);
  if (!dims_agree(operand, random))
    return broken(in.op, "", "operand and random bits must have the same shape, but are ", operand, " and ", random);
  return with_dims_of(operand, to);
}

}  // namespace

Expected<Shape> infer_convert(const InferInput& in) {
  COLLET_TRY(expect_array(in, 0, "the operand"));
  if (in.op == Op::REDUCE_PRECISION) {
    const auto& a = in.as<ReducePrecisionAttrs>();
    if (a.exponent_bits < 1) return broken(in.op, "C2", "exponent_bits must be at least 1, but is ", a.exponent_bits);
    if (a.mantissa_bits < 0) return broken(in.op, "C3", "mantissa_bits must be at least 0, but is ", a.mantissa_bits);
    return in.operand(0).without_layout();
  }
  COLLET_ASSIGN(const Type to, target_type(in));
  if (in.op == Op::BITCAST_CONVERT) return infer_bitcast_convert(in, to);
  if (in.op == Op::STOCHASTIC_CONVERT) return infer_stochastic(in, to);
  return with_dims_of(in.operand(0), to);
}

Status verify_convert(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
