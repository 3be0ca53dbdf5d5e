// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/expand/complex_pair.h"

#include <limits>

namespace collet::hlo {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLn2 = 0.69314718055994530942;

// For larger parts the squares in the general formula could overflow; and 1 is negligible in sqrt(1 - z^2), so a
// simpler formula is exact.
double huge(Real x) {
  return x.type() == Type::F64 ? 0x1p500 : 0x1p60;
}
// For smaller |z| the term z^3 of the series is less than half an ulp of z, so z itself is the result.
double tiny(Real x) {
  return x.type() == Type::F64 ? 0x1p-30 : 0x1p-14;
}

/// Intermediate results that asin and acos have in common, for z = x + iy with x, y >= 0.
struct Arc {
  Real height;  ///< |Im asin z| = |Im acos z|
  Real width;   ///< Re asin z = atan2(x, width), Re acos z = atan2(width, x)
};

Arc arc_of(Real x, Real y) {
  const Real r = length(x + 1, y), s = length(x - 1, y), a = (r + s) * 0.5;
  const BoolArray inside = !(x > 1);
  const Real right = r + (x + 1), left = s + (1.0 - x), beyond = s + (x - 1), sum = a + x;
  const Real near = call(Op::SQRT, sum * 0.5 * (y * y / right + left));
  const Real far = y * call(Op::SQRT, (sum / right + sum / beyond) * 0.5);
  const Real outside = select(y == 0, 0, far);
  // over_one is a - 1, computed without cancellation.
  const Real over_one = select(x < 1, y * y / right + y * y / left, y * y / right + beyond) * 0.5;
  const Real low = call(Op::LOG_PLUS_ONE, over_one + call(Op::SQRT, over_one * (a + 1)));
  const Real high = call(Op::LOG, a + call(Op::SQRT, a * a - 1));
  const Real most = larger(x, y), least = smaller(x, y);
  const Real ratio = select(least == kInfinity, 1, least / most);
  const Real top = call(Op::LOG, most) + call(Op::LOG_PLUS_ONE, ratio * ratio) * 0.5 + kLn2;
  const BoolArray big = most > huge(x);
  return {select(big, top, select(a < 1.5, low, high)), select(big, y, select(inside, near, outside))};
}

}  // namespace

Real compute(elementary::Function f, Real x) {
  switch (f) {
    case elementary::Function::kExp:
      return call(Op::EXPONENTIAL, x);
    case elementary::Function::kExpm1:
      return call(Op::EXPONENTIAL_MINUS_ONE, x);
    case elementary::Function::kLog:
      return call(Op::LOG, x);
    case elementary::Function::kLog1p:
      return call(Op::LOG_PLUS_ONE, x);
    case elementary::Function::kSin:
      return call(Op::SINE, x);
    case elementary::Function::kSinh:
      return call(Op::SINH, x);
    case elementary::Function::kCosh:
      return call(Op::COSH, x);
  }
  return x;
}

elementary::SineAndCosine<Real> sine_and_cosine_of(Real x) {
  return {call(Op::SINE, x), call(Op::COSINE, x)};
}

Real length(Real x, Real y) {
  const Real a = magnitude(x), c = magnitude(y), most = larger(a, c), least = smaller(a, c);
  const Real ratio = select(most == 0, 0, least / most);
  const Real product = most * call(Op::SQRT, ratio * ratio + 1);
  return select((a == kInfinity) || (c == kInfinity), kInfinity, product);
}

Pair arc_sine(Pair z) {
  const Real x = magnitude(z.re), y = magnitude(z.im);
  const Arc arc = arc_of(x, y);
  const BoolArray small = larger(x, y) < tiny(x);
  const Real re = with_sign_of(angle(x, arc.width), z.re), im = with_sign_of(arc.height, z.im);
  return elementary::arc_sine_specials(z, elementary::choose(small, z, {re, im}));
}
Pair arc_cosine(Pair z) {
  const Arc arc = arc_of(magnitude(z.re), magnitude(z.im));
  return elementary::arc_cosine_specials<Real>(z, {angle(arc.width, z.re), with_sign_of(arc.height, -z.im)});
}
Pair arc_sinh(Pair z) {
  const Pair turned = arc_sine({z.im, z.re});
  return {turned.im, turned.re};
}
Pair arc_cosh(Pair z) {
  const Pair turned = arc_cosine(z);
  return {magnitude(turned.im), with_sign_of(turned.re, z.im)};
}
Pair arc_tanh(Pair z) {
  const Real limit = z.re.like(huge(z.re));
  const Real x = smaller(magnitude(z.re), limit), y = smaller(magnitude(z.im), limit);
  const Real gap = 1.0 - x, below = gap * gap + y * y;
  const Real plain = call(Op::LOG_PLUS_ONE, x * 4.0 / below) * 0.25;
  // Close to the pole the square of the distance would underflow, so its logarithm is taken from the distance itself.
  const Real pole = (call(Op::LOG, length(gap, y)) * -1.0 + kLn2) * 0.5;
  const BoolArray close = below < (x.type() == Type::F64 ? 0x1p-900 : 0x1p-100);
  const Real re = select(close, pole, plain);
  const Real im = angle(y * 2.0, gap * (x + 1) - y * y) * 0.5;
  return elementary::arc_tanh_specials<Real>(z, {with_sign_of(magnitude(re), z.re), with_sign_of(im, z.im)});
}
// The angle is twice the arc tangent of y / (s + x) with s^2 = x^2 + y^2, or of (s - x) / y if s + x would cancel.
Pair arc_tangent(Pair y, Pair x) {
  const Pair s = elementary::square_root(x * x + y * y);
  const BoolArray left = x.re < 0;
  const auto pick = [&](Real p, Real q) { return select(left, p, q); };
  const Pair above = {pick(s.re - x.re, y.re), pick(s.im - x.im, y.im)};
  const Pair below = {pick(y.re, s.re + x.re), pick(y.im, s.im + x.im)};
  const Pair u = elementary::divide(above, below);
  const Pair half = arc_tanh({-u.im, u.re});
  const BoolArray straight = left && (y.re == 0) && (y.im == 0);
  return {select(straight, kPi, half.im * 2.0), select(straight, 0, half.re * -2.0)};
}

}  // namespace collet::hlo
