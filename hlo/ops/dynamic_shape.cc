// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Expected<int> axis_of(const InferInput& in) {
  const Shape& operand = in.operand(0);
  COLLET_TRY(expect_array(in, 0, "the operand"));
  const int64_t along = in.as<DimensionAttrs>().dimension;
  if (along < 0 || along >= operand.rank())
    return broken(in.op, "C1", "dimension ", along, " lies outside of ", operand);
  if (operand.dim(static_cast<int>(along)) > INT32_MAX)
    return broken(in.op, "", "dimension ", along, " of ", operand, " does not fit in s32");
  return static_cast<int>(along);
}

Expected<Shape> infer_set_size(const InferInput& in) {
  COLLET_ASSIGN(const int axis, axis_of(in));
  if (!is_scalar_of(in.operand(1), Type::S32))
    return broken(in.op, "", "the size must be s32[], but is ", in.operand(1));
  DimList dims = DimList::of(in.operand(0));
  dims.set(static_cast<size_t>(axis), in.operand(0).dim(axis), true);
  return dims.shape(in.operand(0).type());
}

Expected<Shape> infer_dynamic_reshape(const InferInput& in) {
  const Shape& operand = in.operand(0);
  COLLET_TRY(expect_array(in, 0, "the operand"));
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  const Shape& result = *in.declared;
  if (!result.is_array() || result.type() != operand.type())
    return broken(in.op, "C1", "element types differ: operand is ", operand, ", result is ", result);
  if (!operand.has_unbounded() && !result.has_unbounded() && operand.element_count() != result.element_count())
    return broken(in.op, "C2", "operand ", operand, " and result ", result, " have different numbers of elements");
  if (in.operands.size() != static_cast<size_t>(result.rank()) + 1)
    return broken(in.op, "C4", "the result ", result, " needs one size for each dimension, but there are ",
                  in.operands.size() - 1);
  for (size_t i = 1; i < in.operands.size(); ++i)
    if (!is_scalar_of(in.operand(i), Type::S32))
      return broken(in.op, "", "size ", i - 1, " must be s32[], but is ", in.operand(i));
  return result.without_layout();
}

}  // namespace

Expected<Shape> infer_dynamic_shape(const InferInput& in) {
  if (in.op == Op::SET_DIMENSION_SIZE) return infer_set_size(in);
  if (in.op == Op::DYNAMIC_RESHAPE) return infer_dynamic_reshape(in);
  COLLET_TRY(axis_of(in).status());
  return Shape::scalar(Type::S32);
}

Status verify_dynamic_shape(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
