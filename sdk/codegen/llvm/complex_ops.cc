// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/complex_ops.h"

#include <collet/complex_functions.hpp>

#include "sdk/codegen/llvm/math.h"
#include "sdk/codegen/llvm/math_notation.h"

namespace collet::codegen {
namespace math {

// What <collet/complex_functions.hpp> asks of its user. The functions are static rather than in an unnamed namespace, where
// lookup by arguments would not find them.

static F compute(elementary::Function f, F x) {
  const auto call = [&](math::Function g) { return F(*x.ir, g(*x.ir, x.v)); };
  switch (f) {
    case elementary::Function::kExp:
      return call(math::exp);
    case elementary::Function::kExpm1:
      return call(math::expm1);
    case elementary::Function::kLog:
      return call(math::log);
    case elementary::Function::kLog1p:
      return call(math::log1p);
    case elementary::Function::kSin:
      return call(math::sin);
    case elementary::Function::kSinh:
      return call(math::sinh);
    case elementary::Function::kCosh:
      return call(math::cosh);
  }
  return x;
}
static elementary::SineAndCosine<F> sine_and_cosine_of(F x) {
  llvm::Value* sine = nullptr;
  llvm::Value* cosine = nullptr;
  math::sincos(*x.ir, x.v, sine, cosine);
  return {{*x.ir, sine}, {*x.ir, cosine}};
}
static F length(F x, F y) {
  return {*x.ir, math::hypot(*x.ir, x.v, y.v)};
}
static F angle(F y, F x) {
  return {*x.ir, math::atan2(*x.ir, y.v, x.v)};
}

}  // namespace math

namespace {

using elementary::times_i;
using elementary::times_minus_i;
using math::F;
using C = elementary::Complex<F>;

constexpr double kLn2 = 6.93147180559945286227e-01;

C arg(Ir& ir, const ScalarOp& op, size_t i = 0) {
  return {{ir, op.args[i].v}, {ir, op.args[i].im}};
}
Val val(C x) {
  return {x.re.v, x.im.v};
}
F call(math::Function f, F x) {
  return {*x.ir, f(*x.ir, x.v)};
}

/// Computes asin and acos by the formulas of Hull, Fairgrieve and Tang. Their special cases for very large arguments
/// are replaced by log.
void inverse_sine(C x, C& as, C& ac) {
  Ir& ir = *x.re.ir;
  const bool f64 = x.re.wide();
  auto widened = [&](F v) { return f64 ? v : math::widen(v); };
  F a = magnitude(widened(x.re));
  F c = magnitude(widened(x.im));
  F r = {ir, math::hypot(ir, (a + 1.0).v, c.v)};
  F s = {ir, math::hypot(ir, (a - 1.0).v, c.v)};
  F p = 0.5 * (r + s);
  F q = a / p;
  F rp = r + (a + 1.0);
  F c2 = c * c;
  F above = s + (a - 1.0);
  F below = s + (1.0 - a);
  F small_a = 0.5 * (p + a) * (c2 / rp + below);
  F large_a = (0.5 * (p + a) / rp + 0.5 * (p + a) / above) * c2;
  F cross = root(math::select(a <= 1.0, small_a, large_a));
  llvm::Value* crossed = q > 0.6417;
  auto arctan2 = [&](F y, F z) { return F(ir, math::atan2(ir, y.v, z.v)); };
  F real_sine = math::select(crossed, arctan2(a, cross), call(math::asin, elementary::at_most(q, 1.0)));
  F real_cosine = math::select(crossed, arctan2(cross, a), call(math::acos, elementary::at_most(q, 1.0)));
  F am1_small = 0.5 * (c2 / rp + c2 / below);
  F am1_large = 0.5 * (c2 / rp + above);
  am1_small = math::select(c == 0.0, 0.0, am1_small);
  F am1 = math::select(a < 1.0, am1_small, am1_large);
  F near = call(math::log1p, am1 + root(am1 * (p + 1.0)));
  F far = call(math::log, p + root(p * p - 1.0));
  F imag = math::select(p <= 1.5, near, far);
  // For very large operands p^2 would overflow, or the difference would cancel.
  llvm::Value* huge = ir.b.CreateOr(a > 1e150, c > 1e150);
  F huge_imag = call(math::log, F(ir, math::hypot(ir, (0.5 * a).v, (0.5 * c).v))) + 2.0 * kLn2;
  imag = math::select(huge, huge_imag, imag);
  F huge_angle = arctan2(a, c);
  real_sine = math::select(huge, huge_angle, real_sine);
  real_cosine = math::select(huge, arctan2(c, a), real_cosine);
  auto back = [&](F v) { return f64 ? v : math::narrow(v); };
  constexpr double kPi = 3.14159265358979323846;
  llvm::Value* left = bits(x.re) < 0;
  as = {with_sign_of(magnitude(back(real_sine)), x.re), with_sign_of(magnitude(back(imag)), x.im)};
  F left_cosine = back(kPi - real_cosine);
  ac = {math::select(left, left_cosine, back(real_cosine)), -with_sign_of(magnitude(back(imag)), x.im)};
}

C asin_of(C x) {
  C as = x;
  C ac = x;
  inverse_sine(x, as, ac);
  return elementary::arc_sine_specials(x, as);
}

C acos_of(C x) {
  C as = x;
  C ac = x;
  inverse_sine(x, as, ac);
  return elementary::arc_cosine_specials(x, ac);
}

/// Computes (log1p(x) - log1p(-x)) / 2, in f64 for operands of f32.
C atanh_of(C x) {
  const bool f64 = x.re.wide();
  C w = f64 ? x : C{math::widen(x.re), math::widen(x.im)};
  F a = w.re;
  F c = w.im;
  // Real part: log1p(4 a / ((1 - a)^2 + c^2)) / 4. Imaginary part: atan2(2 c, (1 - a)(1 + a) - c^2) / 2.
  F d = (1.0 - a) * (1.0 - a) + c * c;
  F re = 0.25 * call(math::log1p, 4.0 * a / d);
  F other = -0.25 * call(math::log1p, -4.0 * a / ((1.0 + a) * (1.0 + a) + c * c));
  re = math::select(a >= 0.0, re, other);
  F im = 0.5 * F(*a.ir, math::atan2(*a.ir, (2.0 * c).v, ((1.0 - a) * (1.0 + a) - c * c).v));
  return elementary::arc_tanh_specials(x, f64 ? C{re, im} : C{math::narrow(re), math::narrow(im)});
}

}  // namespace

Val complex_abs(Ir& ir, const ScalarOp& op) {
  const C x = arg(ir, op);
  return {length(x.re, x.im).v};
}
// Define an op that is a function of one or of two complex numbers.
#define COLLET_COMPLEX1(name, ...)       \
  Val name(Ir& ir, const ScalarOp& op) { \
    const C x = arg(ir, op);             \
    return val(__VA_ARGS__);             \
  }
#define COLLET_COMPLEX2(name, ...)       \
  Val name(Ir& ir, const ScalarOp& op) { \
    const C x = arg(ir, op);             \
    const C y = arg(ir, op, 1);          \
    return val(__VA_ARGS__);             \
  }
COLLET_COMPLEX2(complex_add, x + y)
COLLET_COMPLEX2(complex_subtract, x - y)
COLLET_COMPLEX2(complex_multiply, x* y)
COLLET_COMPLEX2(complex_divide, elementary::divide(x, y))
COLLET_COMPLEX1(complex_negate, -x)
Val complex_real(Ir&, const ScalarOp& op) {
  return {op.args[0].v};
}
Val complex_imag(Ir&, const ScalarOp& op) {
  return {op.args[0].im};
}
COLLET_COMPLEX1(complex_exp, elementary::exponential(x))
COLLET_COMPLEX1(complex_expm1, elementary::exponential_minus_one(x))
COLLET_COMPLEX1(complex_log, elementary::logarithm(x))
COLLET_COMPLEX1(complex_log1p, elementary::logarithm_plus_one(x))
COLLET_COMPLEX1(complex_sqrt, elementary::square_root(x))
COLLET_COMPLEX1(complex_sine, elementary::sine(x))
COLLET_COMPLEX1(complex_cosine, elementary::cosine(x))
COLLET_COMPLEX1(complex_sinh, elementary::hyperbolic_sine(x))
COLLET_COMPLEX1(complex_cosh, elementary::hyperbolic_cosine(x))
COLLET_COMPLEX1(complex_tanh, elementary::hyperbolic_tangent(x))
COLLET_COMPLEX1(complex_tan, elementary::tangent(x))
COLLET_COMPLEX1(complex_asin, asin_of(x))
COLLET_COMPLEX1(complex_acos, acos_of(x))
COLLET_COMPLEX1(complex_asinh, times_minus_i(asin_of(times_i(x))))
COLLET_COMPLEX1(complex_atanh, atanh_of(x))

Val complex_acosh(Ir& ir, const ScalarOp& op) {
  C y = acos_of(arg(ir, op));  // acosh(x) is acos(x) times i or -i, whichever has a real part that is not negative
  llvm::Value* up = bits(y.im) < 0;
  return val(elementary::choose(math::Mask{&ir, up}, times_i(y), times_minus_i(y)));
}

Val complex_atan2(Ir& ir, const ScalarOp& op) {
  C y = arg(ir, op);
  C x = arg(ir, op, 1);
  C r = elementary::square_root(x * x + y * y);
  return val(times_minus_i(elementary::logarithm(elementary::divide(x + times_i(y), r))));
}

COLLET_COMPLEX1(complex_logistic, elementary::logistic_of(x))
COLLET_COMPLEX1(complex_rsqrt, elementary::inverse_root(x))
COLLET_COMPLEX1(complex_sign, elementary::direction(x))
COLLET_COMPLEX2(complex_power, elementary::power_of(x, y))

}  // namespace collet::codegen
