// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "hlo/passes/expand/expand.h"

/// \file
/// Steps of algorithms on batches of matrices: arrays [count, rows, columns].

namespace collet::hlo {

/// Views an array as matrices in its last two dimensions; all dimensions before them are merged into one batch
/// dimension.
struct Batch {
  int64_t count = 1, rows, columns;
  explicit Batch(const Shape& shape) : rows(shape.dim(shape.rank() - 2)), columns(shape.dim(shape.rank() - 1)) {
    for (int i = 0; i < shape.rank() - 2; ++i) count *= shape.dim(i);
  }
  Ints dims() const { return {count, rows, columns}; }
};

inline InstrId transposed(Builder& b, InstrId x) {
  return b.transpose(x, Ints{0, 2, 1});
}
inline InstrId conjugated(Builder& b, InstrId x) {
  if (!is_complex(b.type(x))) return x;
  return b.binary(Op::COMPLEX, b.unary(Op::REAL, x), b.neg(b.unary(Op::IMAG, x)));
}
/// Batched product: contracts the last dimension of `a` with dimension `with` of `c`.
inline InstrId product(Builder& b, InstrId a, InstrId c, int64_t with) {
  Module& m = b.module();
  DotAttrs attrs;
  attrs.lhs_batch = attrs.rhs_batch = m.dims({0});
  attrs.lhs_contracting = m.dims({2});
  attrs.rhs_contracting = m.dims({with});
  attrs.precision = m.dims({static_cast<int64_t>(Precision::HIGHEST), static_cast<int64_t>(Precision::HIGHEST)});
  return b.dot(a, c, attrs, b.type(a));
}
/// Returns row (dim 1) or column (dim 2) `i` of each matrix.
inline InstrId cut(Builder& b, InstrId x, InstrId i, int64_t dim) {
  const InstrId zero = b.scalar_int(Type::S32, 0);
  std::vector<InstrId> starts{zero, zero, zero};
  starts[static_cast<size_t>(dim)] = i;
  Ints sizes = to_ints(b.dims(x));
  sizes[static_cast<size_t>(dim)] = 1;
  return b.dynamic_slice(x, starts, sizes);
}
inline InstrId put(Builder& b, InstrId x, InstrId part, InstrId i, int64_t dim) {
  const InstrId zero = b.scalar_int(Type::S32, 0);
  std::vector<InstrId> starts{zero, zero, zero};
  starts[static_cast<size_t>(dim)] = i;
  return b.dynamic_update_slice(x, part, starts);
}

}  // namespace collet::hlo
