// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parts of the depth of a product outside of which factor `a` is zero, as in the padding of a convolution: micro-kernels
/// leave them out.

#include <utility>
#include <vector>

#include "sdk/codegen/matmul/blocked_product.h"
#include "sdk/codegen/matmul/matmul.h"
#include "sdk/codegen/matmul/product_loops.h"

namespace collet::codegen {

/// Conditions under which all elements of a row of `a` are zero in a step of the first loop of the depth. They depend on the loops of
/// the rows.
class ZeroConditions {
 public:
  explicit ZeroConditions(const ProductLoops& loops) : l_(loops) {}

  /// Finds the conditions in the expression of `a`.
  void find();
  bool empty() const { return conditions_.empty(); }
  /// Returns the number of adjacent rows for which the conditions are the same; 0 if there are no conditions.
  int64_t rows_together() const;
  /// Returns the steps of the depth, [first, end), in which one of the rows [first, last] may have elements other than zero; at least one
  /// iteration of the first loop.
  std::pair<int64_t, int64_t> part_of(int64_t first, int64_t last) const;

 private:
  ExprId zero_unless(ExprId t) const;
  void add(ExprId t);

  const ProductLoops& l_;
  std::vector<const Expr*> conditions_;
};

/// Returns, for each batch, the segments of the depth [first, end) that are not in a border of zeros of `a`, which is read in segments.
/// Returns nothing if no batch has such segments.
std::vector<std::pair<int64_t, int64_t>> parts_of_batches(const ZeroBorder& border, const Product& product);

/// Returns the kernel that stores in `finite`, a pred, whether all factors of b are finite: what is left out because a is zero there would
/// be NaN otherwise. `b` is the value that the product reads; its elements have 32 bits.
KernelPlan finite_kernel(const Product& product, const BlockedProduct& blocked, ValueId b, ValueId finite);

}  // namespace collet::codegen
