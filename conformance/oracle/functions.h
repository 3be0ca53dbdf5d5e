// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "hlo/ir/ops.h"
#include "hlo/ir/shape.h"

/// \file
/// Computes elementary functions of real numbers by MPFR, independently of the evaluator.

namespace collet::conformance {

/// A result as the sum of two numbers: the nearest f64 and the remainder. Their sum has a relative error of at most
/// 2^-100. The remainder is 0 if the value is not finite.
struct ExactResult {
  double value = 0, rest = 0;
  /// Returns the exact result rounded to odd: the f64 itself if it is exact, otherwise the neighbouring f64 whose last
  /// bit is set. Rounding this to a format with at least two bits less is the same as rounding the exact result once.
  double rounded_to_odd() const;
  /// Returns an f64 that, when stored as an element (or a part of one) of `type`, gives the exact result rounded once.
  double to_store_as(hlo::Type type) const;
};

/// True if exact_functions supports the op.
bool has_exact_function(hlo::Op op);
/// Computes op(a[i]), or op(a[i], b[i]), for each i; `b` is empty for unary functions. Results for zeros, infinities
/// and NaN are those of docs/ops.md.
void exact_functions(hlo::Op op, std::span<const double> a, std::span<const double> b, std::span<ExactResult> out);

}  // namespace collet::conformance
