// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/passes/expand/arithmetic.h"

/// \file
/// Functions of f32 and f64 arrays in terms of arithmetic, comparisons and integer operations on bits; each within 2 units
/// in the last place (power 4, square root correctly rounded), special values as in C. The polynomials are near-minimax
/// fits, good to some bits beyond the type's precision.

namespace collet::hlo {

Real exp_of(Real x);
/// exp(x) / 2, where exp(x) itself may overflow.
Real half_exp_of(Real x);
Real expm1_of(Real x);
Real log_of(Real x);
Real log1p_of(Real x);
Real sqrt_of(Real x);
Real cbrt_of(Real x);
Real power_of(Real x, Real y);
Real erf_of(Real x);
Real sine_of(Real x);
Real cosine_of(Real x);
Real tangent_of(Real x);
Real atan2_of(Real y, Real x);

}  // namespace collet::hlo
