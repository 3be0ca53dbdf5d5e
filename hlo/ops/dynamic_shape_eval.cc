// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

Ints sizes_of(const Literal& value) {
  const auto sizes = value.dynamic_sizes().empty() ? value.shape().dims() : value.dynamic_sizes();
  return Ints(sizes.begin(), sizes.end());
}

void set_sizes(Literal& value, Ints sizes) {
  const auto bounds = value.shape().dims();
  if (std::equal(sizes.begin(), sizes.end(), bounds.begin(), bounds.end()))
    value.set_dynamic_sizes({});
  else
    value.set_dynamic_sizes(std::move(sizes));
}

// Copies the elements in use, in row-major order, to an array with new sizes and bounds.
Expected<Literal> dynamic_reshape(const EvalInput& in) {
  const Literal& operand = in.operand(0);
  const Shape& shape = in.instr.shape;
  if (in.operand_count() != static_cast<size_t>(shape.rank()) + 1)
    return invalid_argument("dynamic-reshape needs one size for each dimension");
  Ints to(static_cast<size_t>(shape.rank()));
  for (size_t d = 0; d < to.size(); ++d) {
    to[d] = in.operand(d + 1).as_int(0);
    if (to[d] < 0 || (shape.dims()[d] != kUnbounded && to[d] > shape.dims()[d]))
      return invalid_argument("dynamic-reshape to a size of " + std::to_string(to[d]) + ", beyond its bound");
  }
  const Ints from = sizes_of(operand);
  if (product(from) != product(to))
    return invalid_argument("dynamic-reshape from " + std::to_string(product(from)) + " elements to " +
                            std::to_string(product(to)));
  const int bytes = type_info(shape.type()).bytes();
  Literal dense = Literal::uninitialized(Shape::array(shape.type(), to));
  if (dense.element_count() > 0)
    copy_strided(from, operand.bytes(), row_major_strides(operand.shape().dims()), dense.mutable_bytes(),
                 row_major_strides(from), bytes);
  if (shape.has_unbounded()) return dense;
  Literal out = Literal::zeros(shape);
  if (dense.element_count() > 0)
    copy_strided(to, dense.bytes(), row_major_strides(to), out.mutable_bytes(), row_major_strides(shape.dims()), bytes);
  set_sizes(out, std::move(to));
  return out;
}

}  // namespace

Expected<Literal> evaluate_dynamic_shape(const EvalInput& in) {
  if (in.instr.op == Op::DYNAMIC_RESHAPE) return dynamic_reshape(in);
  const Literal& operand = in.operand(0);
  const auto dim = static_cast<size_t>(in.instr.as<DimensionAttrs>().dimension);
  Ints sizes = sizes_of(operand);
  if (in.instr.op == Op::GET_DIMENSION_SIZE) return Literal::scalar_int(Type::S32, sizes[dim]);
  const int64_t size = std::clamp<int64_t>(in.operand(1).as_int(0), 0, operand.shape().dims()[dim]);
  const bool is_dynamic = in.instr.shape.is_dynamic(static_cast<int>(dim));
  if (!is_dynamic && size != operand.shape().dims()[dim])
    return invalid_argument("the size of dimension " + std::to_string(dim) + " is " + std::to_string(size) +
                            ", but the result " + in.instr.shape.to_string() + " is declared without dynamic sizes");
  sizes[dim] = size;
  Literal out = operand.reshaped(in.instr.shape);
  set_sizes(out, std::move(sizes));
  return out;
}

}  // namespace collet::hlo
