// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <span>

#include "conformance/oracle/functions.h"
#include "hlo/ir/ops.h"

/// \file
/// Elementary functions of complex numbers, part by part, from MPFR's functions of real ones: with the error of each step bounded, and
/// the precision doubled until both parts are known to 2^-106 of themselves.

namespace collet::conformance {

struct ExactComplex {
  ExactResult real, imaginary;
  /// How far each part moves, to first order, where every part x of the operands moves by |x|: for a result f of z = x + iy, |x Re f'| +
  /// |y Im f'| of the real and |x Im f'| + |y Re f'| of the imaginary one, and the same of a second operand on top.
  double real_slope = 0, imaginary_slope = 0;
  /// False where the result is not finite, an operand is none, or the op leaves its value open (zero to a complex power).
  bool is_known = false;
};

/// Whether exact_complex_functions knows the op. `abs` has its result in the real part.
bool has_exact_complex_function(hlo::Op op);
/// op(a[i]), or op(a[i], b[i]), for each i; `b` is empty for functions of one operand. Principal values, as docs/ops.md has them.
void exact_complex_functions(hlo::Op op, std::span<const std::complex<double>> a,
                             std::span<const std::complex<double>> b, std::span<ExactComplex> out);

}  // namespace collet::conformance
