// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "hlo/ir/ops.h"
#include "hlo/ir/shape.h"

/// \file
/// Elementary functions of real numbers by MPFR, independent of the evaluator.

namespace collet::conformance {

/// A result as the sum of two numbers: the nearest f64, and what is missing to the exact result. Their sum is within 2^-100 of
/// it, relatively. The rest is 0 where the value is no finite number.
struct ExactResult {
  double value = 0, rest = 0;
  /// The f64 next to the exact result of which the last bit is set, unless it is exact: rounding that to a format with at least
  /// two bits less rounds the exact result once.
  double rounded_to_odd() const;
  /// The f64 that becomes the exact result, rounded once, where it is stored as an element, or a part of one, of `type`.
  double to_store_as(hlo::Type type) const;
};

/// Whether exact_functions knows the op.
bool has_exact_function(hlo::Op op);
/// op(a[i]), or op(a[i], b[i]), for each i; `b` is empty for functions of one operand. Zeros, infinities and NaN are as docs/ops.md
/// has them.
void exact_functions(hlo::Op op, std::span<const double> a, std::span<const double> b, std::span<ExactResult> out);

}  // namespace collet::conformance
