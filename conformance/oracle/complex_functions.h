// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <span>

#include "conformance/oracle/functions.h"
#include "hlo/ir/ops.h"

/// \file
/// Computes elementary functions of complex numbers, part by part, from MPFR's functions of real numbers. The error of
/// each step is bounded, and the precision is doubled until both parts have a relative error of at most 2^-106.

namespace collet::conformance {

struct ExactComplex {
  ExactResult real, imaginary;
  /// How far each part moves, to first order, if every part x of the operands moves by |x|: for a result f of z = x +
  /// iy, |x Re f'| + |y Im f'| for the real part and |x Im f'| + |y Re f'| for the imaginary part, plus the same terms
  /// of a second operand.
  double real_slope = 0, imaginary_slope = 0;
  /// False if the result is not finite, an operand is not finite, or the op does not define its value (zero to a
  /// complex power).
  bool is_known = false;
};

/// True if exact_complex_functions supports the op. `abs` has its result in the real part.
bool has_exact_complex_function(hlo::Op op);
/// Computes op(a[i]), or op(a[i], b[i]), for each i; `b` is empty for unary functions. Branch cuts are those of
/// docs/ops.md.
void exact_complex_functions(hlo::Op op, std::span<const std::complex<double>> a,
                             std::span<const std::complex<double>> b, std::span<ExactComplex> out);

}  // namespace collet::conformance
