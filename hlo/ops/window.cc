// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Expected<Shape> infer_reduce_window(const InferInput& in) {
  COLLET_ASSIGN(const std::vector<Type> types, reduced_types(in, "C1", "C2"));
  const size_t n = types.size();
  COLLET_TRY(check_reducer(in.module, in.op, "C13", in.called[0], types, in.operands.subspan(n)));
  std::vector<Shape> results;
  for (size_t i = 0; i < n; ++i) {
    COLLET_ASSIGN(Shape result, windows_over(in.op, in.operand(i), in.as<WindowAttrs>().window,
                                             in.operand(n + i).type(), {"C5", "C7", "C9", "C11", "C4"}));
    results.push_back(std::move(result));
  }
  COLLET_ASSIGN(const Signature reducer, signature(in.module, in.op, in.called[0]));
  if (!reducer.result->is_tuple()) return results[0];
  return Shape::tuple(std::move(results));
}

Status check_select(const InferInput& in) {
  COLLET_ASSIGN(const Signature select, signature(in.module, in.op, in.called[0]));
  if (select.parameters.size() != 2)
    return broken(in.op, "C9", select.name, " must take 2 parameters, but takes ", select.parameters.size());
  for (const Shape* parameter : select.parameters)
    if (!parameter->is_scalar() || !types_agree(parameter->type(), in.operand(0).type()))
      return broken(in.op, "C9", "parameters of ", select.name, " must be scalars of ", in.operand(0).type(),
                    ", but one is ", *parameter);
  if (!is_scalar_of(*select.result, Type::PRED))
    return broken(in.op, "C9", select.name, " must give pred[], but gives ", *select.result);
  return ok_status();
}

}  // namespace

Expected<Shape> infer_window(const InferInput& in) {
  if (in.op == Op::REDUCE_WINDOW) return infer_reduce_window(in);
  const Shape& operand = in.operand(0);
  const Shape& source = in.operand(1);
  COLLET_TRY(expect_array(in, 0, "the operand"));
  COLLET_TRY(expect_array(in, 1, "the source"));
  COLLET_TRY(check_select(in));
  const Type source_type[] = {source.type()};
  const Shape* initial[] = {&in.operand(2)};
  COLLET_TRY(check_reducer(in.module, in.op, "C10", in.called[1], source_type, initial));
  COLLET_ASSIGN(const Shape windows,
                windows_over(in.op, operand, in.as<WindowAttrs>().window, operand.type(), {"C5", "C7", "", "", "C4"}));
  if (!types_agree(source.type(), operand.type()))
    return broken(in.op, "C1", "element types differ: operand is ", operand, ", source is ", source);
  if (!dims_agree(windows, source))
    return broken(in.op, "C2", "the source must have one element for each window, as ", windows, ", but is ", source);
  return operand.without_layout();
}

Status verify_window(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
