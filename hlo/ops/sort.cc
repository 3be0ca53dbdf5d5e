// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Status check_comparator(const InferInput& in) {
  COLLET_ASSIGN(const Signature compare, signature(in.module, in.op, in.called[0]));
  if (compare.parameters.size() != 2 * in.operands.size())
    return broken(in.op, "C5", compare.name, " must take ", 2 * in.operands.size(), " parameters, but takes ",
                  compare.parameters.size());
  for (size_t i = 0; i < compare.parameters.size(); ++i) {
    const Shape& parameter = *compare.parameters[i];
    if (!parameter.is_scalar() || !types_agree(parameter.type(), in.operand(i / 2).type()))
      return broken(in.op, "C5", "parameter ", i, " of ", compare.name, " is ", parameter, ", but must be a scalar of ",
                    in.operand(i / 2).type());
  }
  if (!is_scalar_of(*compare.result, Type::PRED))
    return broken(in.op, "C5", compare.name, " must give pred[], but gives ", *compare.result);
  return ok_status();
}

Expected<Shape> infer_topk(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const int64_t k = in.as<TopKAttrs>().k;
  COLLET_TRY(expect_array(in, 0, "the operand"));
  if (operand.rank() == 0) return broken(in.op, "", "the operand must have a dimension, but is ", operand);
  if (is_complex(operand.type())) return broken(in.op, "", "complex numbers have no order: the operand is ", operand);
  const int last = operand.rank() - 1;
  if (k < 0 || (operand.dim(last) != kUnbounded && k > operand.dim(last)))
    return broken(in.op, "", "k ", k, " does not fit the last dimension of ", operand);
  DimList dims = DimList::of(operand);
  dims.set(static_cast<size_t>(last), k, false);
  return Shape::tuple({dims.shape(operand.type()), dims.shape(Type::S32)});
}

}  // namespace

Expected<Shape> infer_sort(const InferInput& in) {
  if (in.op == Op::TOPK) return infer_topk(in);
  const Shape& first = in.operand(0);
  for (size_t i = 0; i < in.operands.size(); ++i) {
    COLLET_TRY(expect_array(in, i));
    if (!dims_agree(first, in.operand(i)))
      return broken(in.op, "C3", "operand shapes differ: operand 0 is ", first, ", operand ", i, " is ", in.operand(i));
  }
  const int64_t along = in.as<SortAttrs>().dimension;
  if (along < 0 || along >= first.rank()) return broken(in.op, "C4", "dimension ", along, " lies outside of ", first);
  COLLET_TRY(check_comparator(in));
  if (in.operands.size() == 1) return first.without_layout();
  std::vector<Shape> results;
  for (const Shape* operand : in.operands) results.push_back(operand->without_layout());
  return Shape::tuple(std::move(results));
}

Status verify_sort(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
