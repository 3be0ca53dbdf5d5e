// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/literal.h"
#include "hlo/ops/eval/gemm.h"
#include "hlo/ops/eval/pack.h"

namespace collet::hlo::eval {

/// True if sums of `k` products of these integer types are exact in double, which is faster than integer arithmetic.
bool fits_doubles(Type a, Type b, int64_t k);

/// Computes sums of products for a result of some type: in words, doubles (long doubles for few f64 products) or
/// complex doubles. Operands of a wider kind than the result are multiplied and added as they are: products of complex
/// numbers have real parts that those of the real parts alone have not.
class Product {
 public:
  /// `work`: number of products in total; `k`: number of products in one sum. Short sums (see is_short) are rounded at
  /// each step to the precision of the result, or to f32 if that is wider; long ones are rounded at the end. With
  /// `other` it is the reverse, to test that callers accept both.
  Product(Type a, Type b, Type result, int64_t work, int64_t k, bool other);
  Wide wide() const { return wide_; }
  /// Computes c[m, n] += a[m, k] * b[k, n], from the given offsets of arrays of kind wide().
  void add(int64_t m, int64_t n, int64_t k, WideArray& a, int64_t a_at, WideArray& b, int64_t b_at, WideArray& c,
           int64_t c_at) const;
  /// Converts the sums to the result's kind of lanes: the real part of a complex number, a real number rounded toward zero.
  WideArray finish(WideArray sums) const;

 private:
  Wide wide_;
  Type result_;
  bool precise_ = false, narrow_ = false;
  bool through_doubles_ = false;
};

}  // namespace collet::hlo::eval
