// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/complex_functions.hpp>

#include "hlo/passes/expand/arithmetic.h"

/// \file
/// Complex expressions over arrays as pairs of real ones.

namespace collet::hlo {

using Pair = elementary::Complex<Real>;

inline Real call(Op op, Real x) {
  return x.of(x.b->unary(op, x.id));
}
inline Real larger(Real x, Real y) {
  return x.of(x.b->max(x.id, y.id));
}
inline Real smaller(Real x, Real y) {
  return x.of(x.b->min(x.id, y.id));
}

// What <collet/complex_functions.hpp> asks of its user.
Real compute(elementary::Function f, Real x);
elementary::SineAndCosine<Real> sine_and_cosine_of(Real x);
Real length(Real x, Real y);
inline Real angle(Real y, Real x) {
  return x.of(x.b->binary(Op::ATAN2, y.id, x.id));
}

// Inverse functions, as in Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine functions using
// exception handling" (1997).
Pair arc_sine(Pair z);
Pair arc_cosine(Pair z);
Pair arc_sinh(Pair z);
Pair arc_cosh(Pair z);
Pair arc_tanh(Pair z);
/// -i log((x + i y) / sqrt(x^2 + y^2)).
Pair arc_tangent(Pair y, Pair x);

}  // namespace collet::hlo
