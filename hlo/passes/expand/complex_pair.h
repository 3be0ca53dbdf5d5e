// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/passes/expand/arithmetic.h"

/// \file
/// Complex expressions over arrays as pairs of real ones.

namespace collet::hlo {

struct Pair {
  Real re, im;
};

inline Real call(Op op, Real x) {
  return x.of(x.b->unary(op, x.id));
}
inline Real larger(Real x, Real y) {
  return x.of(x.b->max(x.id, y.id));
}
inline Real smaller(Real x, Real y) {
  return x.of(x.b->min(x.id, y.id));
}
/// The angle of the point (x, y).
inline Real angle_of(Real y, Real x) {
  return x.of(x.b->binary(Op::ATAN2, y.id, x.id));
}
/// Returns |z| without intermediate overflow; infinite if one part is infinite, even if the other part is NaN.
Real hypotenuse(Pair z);
Pair times(Pair x, Pair y);
Pair plus(Pair x, Pair y);
/// Divides x by y with Smith's method, which scales by the larger part of the divisor.
Pair over(Pair x, Pair y);
Pair square_root(Pair z);

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
