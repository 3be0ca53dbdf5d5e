// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Expected<Shape> infer_reduction(const InferInput& in) {
  COLLET_ASSIGN(const std::vector<Type> types, reduced_types(in, "C3", "C1"));
  const size_t n = types.size();
  const Shape& first = in.operand(0);
  const Dims& dimensions = in.as<DimensionsAttrs>().dimensions;
  if (first_outside(dimensions, first.rank()) >= 0)
    return broken(in.op, "C4", "dimensions ", dimensions, " do not lie in ", first);
  if (has_repeats(dimensions)) return broken(in.op, "C5", "dimensions ", dimensions, " name one twice");
  COLLET_TRY(check_reducer(in.module, in.op, "C6", in.called[0], types, in.operands.subspan(n)));
  DimList dims;
  for (int64_t d = 0; d < first.rank(); ++d)
    if (!contains(dimensions, d)) dims.push(first, d);
  COLLET_ASSIGN(const Signature reducer, signature(in.module, in.op, in.called[0]));
  if (!reducer.result->is_tuple()) return dims.shape(reducer.result->type());
  std::vector<Shape> results;
  for (const Shape& element : reducer.result->elements()) results.push_back(dims.shape(element.type()));
  return Shape::tuple(std::move(results));
}

// Returns the shape of map's result: that of the first operand that is not a scalar.
Expected<Shape> map_shape(const InferInput& in) {
  const Shape* shape = in.operands[0];
  for (size_t i = 0; i < in.operands.size(); ++i) {
    COLLET_TRY(expect_array(in, i));
    const Shape& next = in.operand(i);
    if (dims_agree(*shape, next) || next.is_scalar()) continue;
    if (!shape->is_scalar()) return broken(in.op, "C1", "operand shapes differ: ", *shape, " and ", next);
    shape = &next;
  }
  return *shape;
}

Expected<Shape> infer_map(const InferInput& in) {
  if (in.operands.empty()) return broken(in.op, "C2", "needs at least one operand");
  COLLET_ASSIGN(const Shape shape, map_shape(in));
  const Dims& dimensions = in.as<MapAttrs>().dimensions;
  bool all = dimensions.empty() || dimensions.size() == static_cast<size_t>(shape.rank());
  for (size_t i = 0; i < dimensions.size(); ++i) all &= dimensions[i] == static_cast<int64_t>(i);
  if (!all) return broken(in.op, "C3", "dimensions ", dimensions, " must be all those of ", shape, ", in order");
  COLLET_ASSIGN(const Signature function, signature(in.module, in.op, in.called[0]));
  if (function.parameters.size() != in.operands.size())
    return broken(in.op, "C4", function.name, " takes ", function.parameters.size(), " parameters, but there are ",
                  in.operands.size(), " operands");
  for (size_t i = 0; i < in.operands.size(); ++i) {
    const Shape& parameter = *function.parameters[i];
    if (!parameter.is_scalar() || !types_agree(parameter.type(), in.operand(i).type()))
      return broken(in.op, "C4", "parameter ", i, " of ", function.name, " is ", parameter,
                    ", but must be a scalar of ", in.operand(i).type());
  }
  if (!function.result->is_scalar())
    return broken(in.op, "C4", function.name, " must give a scalar, but gives ", *function.result);
  return with_dims_of(shape, function.result->type());
}

}  // namespace

Expected<Shape> infer_reduce(const InferInput& in) {
  return in.op == Op::MAP ? infer_map(in) : infer_reduction(in);
}

Status verify_reduce(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
