// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/complex_ops.h"

#include <limits>

#include "sdk/codegen/llvm/math.h"
#include "sdk/codegen/llvm/math_notation.h"

namespace collet::codegen {
namespace {

using math::F;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 6.93147180559945286227e-01;

/// A complex value with operators.
struct C {
  F re;
  F im;
};

C arg(Ir& ir, const ScalarOp& op, size_t i = 0) {
  return {{ir, op.args[i].v}, {ir, op.args[i].im}};
}
Val val(C x) {
  return {x.re.v, x.im.v};
}
C operator+(C x, C y) {
  return {x.re + y.re, x.im + y.im};
}
C operator-(C x, C y) {
  return {x.re - y.re, x.im - y.im};
}
C operator-(C x) {
  return {-x.re, -x.im};
}
C times_i(C x) {
  return {-x.im, x.re};
}
C times_minus_i(C x) {
  return {x.im, -x.re};
}
C select(llvm::Value* c, C x, C y) {
  return {math::select(c, x.re, y.re), math::select(c, x.im, y.im)};
}

C operator*(C x, C y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

F call(math::Function f, F x) {
  return {*x.ir, f(*x.ir, x.v)};
}
F magnitude(C x) {
  return {*x.re.ir, math::hypot(*x.re.ir, x.re.v, x.im.v)};
}
F angle(C x) {
  return {*x.re.ir, math::atan2(*x.re.ir, x.im.v, x.re.v)};
}

/// Divides after scaling by the larger part of the divisor, so that no intermediate result overflows.
C operator/(C x, C y) {
  Ir& ir = *x.re.ir;
  llvm::Value* flat = magnitude(y.re) >= magnitude(y.im);
  F big = math::select(flat, y.re, y.im);
  F small = math::select(flat, y.im, y.re);
  F ratio = small / big;
  F d = multiply_add(small, ratio, big);
  F re = math::select(flat, multiply_add(x.im, ratio, x.re), multiply_add(x.re, ratio, x.im));
  F im = math::select(flat, multiply_add(-x.re, ratio, x.im), multiply_add(x.im, ratio, -x.re));
  C q{re / d, im / d};
  // Annex G of the C standard defines division by zero and by infinite numbers.
  auto& b = ir.b;
  llvm::Value* zero = b.CreateAnd(y.re == 0.0, y.im == 0.0);
  F inf = with_sign_of(x.re.like(kInfinity), y.re);
  q = select(zero, {inf * x.re, inf * x.im}, q);
  llvm::Value* infinite = b.CreateOr(magnitude(y.re) == kInfinity, magnitude(y.im) == kInfinity);
  llvm::Value* finite = b.CreateAnd(magnitude(x.re) < x.re.like(kInfinity), magnitude(x.im) < x.re.like(kInfinity));
  F one_re = with_sign_of(math::select(magnitude(y.re) == kInfinity, 1.0, x.re.like(0.0)), y.re);
  F one_im = with_sign_of(math::select(magnitude(y.im) == kInfinity, 1.0, x.re.like(0.0)), y.im);
  C none{0.0 * multiply_add(x.re, one_re, x.im * one_im), 0.0 * multiply_add(x.im, one_re, -(x.re * one_im))};
  return select(b.CreateAnd(infinite, finite), none, q);
}

void sin_cos(F x, F& s, F& c) {
  llvm::Value* sine = nullptr;
  llvm::Value* cosine = nullptr;
  math::sincos(*x.ir, x.v, sine, cosine);
  s = {*x.ir, sine};
  c = {*x.ir, cosine};
}

/// Returns k * x, but 0 if x is 0, even if k is infinite or NaN.
F times_unless_zero(F k, F x) {
  return math::select(x == 0.0, x, k * x);
}

C exp_of(C x) {
  F s = x.im;
  F c = x.im;
  sin_cos(x.im, s, c);
  // Multiplies by e^(x / 2) twice, because e^x may overflow although the product does not.
  F e = call(math::exp, 0.5 * x.re);
  C y{(e * c) * e, (e * times_unless_zero(e, s))};
  llvm::Value* down = x.re == -kInfinity;
  y = select(down, {x.re.like(0.0), x.re.like(0.0)}, y);
  return {y.re, math::select(x.im == 0.0, x.im, y.im)};
}

C log_of(C x) {
  Ir& ir = *x.re.ir;
  F a = magnitude(x.re);
  F c = magnitude(x.im);
  llvm::Value* swap = a < c;
  F big = math::select(swap, c, a);
  F small = math::select(swap, a, c);
  // For |x| near 1, log |x| = log1p((big - 1)(big + 1) + small^2) / 2 loses no digits.
  F near = 0.5 * call(math::log1p, multiply_add(big - 1.0, big + 1.0, small * small));
  F far = call(math::log, magnitude(x));
  llvm::Value* is_near = ir.b.CreateAnd(big > 0.5, big < 2.0);
  const double huge = a.wide() ? 1e300 : 1e37;
  F halved = call(math::log, magnitude({0.25 * x.re, 0.25 * x.im})) + 2.0 * kLn2;
  F re = math::select(is_near, near, math::select(big > huge, halved, far));
  return {re, angle(x)};
}

C sqrt_of(C x) {
  Ir& ir = *x.re.ir;
  const bool f64 = x.re.wide();
  F a = magnitude(x.re);
  F c = magnitude(x.im);
  // Operands whose squares would overflow or underflow are scaled by a power of 4.
  llvm::Value* large = ir.b.CreateOr(a > (f64 ? 1e300 : 1e37), c > (f64 ? 1e300 : 1e37));
  llvm::Value* tiny = ir.b.CreateAnd(a < (f64 ? 1e-290 : 1e-30), c < (f64 ? 1e-290 : 1e-30));
  F scale = math::select(large, 0.0625, math::select(tiny, f64 ? 0x1p200 : 0x1p60, a.like(1.0)));
  F back = math::select(large, 4.0, math::select(tiny, f64 ? 0x1p-100 : 0x1p-30, a.like(1.0)));
  F re = a * scale;
  F im = c * scale;
  F m = magnitude({re, im});
  F t = root(0.5 * (m + re));
  F other = 0.5 * (im / t);
  other = math::select(t == 0.0, 0.0, other);
  llvm::Value* right = x.re >= 0.0;
  C y{math::select(right, t, other) * back, math::select(right, other, t) * back};
  y.im = with_sign_of(magnitude(y.im), x.im);
  llvm::Value* im_infinite = c == kInfinity;
  llvm::Value* re_infinite = a == kInfinity;
  C at_infinity{math::select(x.re > 0.0, kInfinity, a.like(0.0)),
                with_sign_of(math::select(x.re > 0.0, 0.0, a.like(kInfinity)), x.im)};
  at_infinity.im = math::select(is_nan(x.im), x.im, at_infinity.im);
  y = select(re_infinite, at_infinity, y);
  return select(im_infinite, {a.like(kInfinity), x.im}, y);
}

C expm1_of(C x) {
  F s = x.im;
  F c = x.im;
  sin_cos(x.im, s, c);
  F half_s = call(math::sin, 0.5 * x.im);
  F e1 = call(math::expm1, x.re);
  F e = call(math::exp, x.re);
  // e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2)
  F re = multiply_add(e1, c, -2.0 * half_s * half_s);
  return {re, math::select(x.im == 0.0, x.im, e * s)};
}

C log1p_of(C x) {
  Ir& ir = *x.re.ir;
  F one = x.re + 1.0;
  C shifted{one, x.im};
  // |1 + x|^2 - 1 = re (2 + re) + im^2
  F square = multiply_add(x.re, 2.0 + x.re, x.im * x.im);
  F near = 0.5 * call(math::log1p, square);
  F far = log_of(shifted).re;
  llvm::Value* is_near = ir.b.CreateAnd(magnitude(x.re) < 0.5, magnitude(x.im) < 0.5);
  return {math::select(is_near, near, far), angle(shifted)};
}

C sinh_of(C x) {
  F s = x.im;
  F c = x.im;
  sin_cos(x.im, s, c);
  F sh = call(math::sinh, x.re);
  F ch = call(math::cosh, x.re);
  return {times_unless_zero(c, sh), times_unless_zero(ch, s)};
}

C cosh_of(C x) {
  F s = x.im;
  F c = x.im;
  sin_cos(x.im, s, c);
  F sh = call(math::sinh, x.re);
  F ch = call(math::cosh, x.re);
  F im = sh * s;
  im = math::select((*x.re.ir).b.CreateOr(x.re == 0.0, x.im == 0.0), x.re * x.im * 0.0, im);
  return {ch * c, im};
}

/// Computes tanh(x + i y) as (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y).
C tanh_of(C x) {
  F s = x.im;
  F c = x.im;
  sin_cos(x.im, s, c);
  F a = magnitude(x.re);
  F limit = at_most(a, 20.0);
  F sh = call(math::sinh, limit);
  F ch = call(math::cosh, limit);
  F d = multiply_add(sh, sh, c * c);
  C y{with_sign_of(magnitude(sh * ch / d), x.re), s * c / d};
  F e = call(math::exp, -a);
  C far{with_sign_of(x.re.like(1.0), x.re), 4.0 * s * c * e * e};
  llvm::Value* is_far = a > 20.0;
  return select(is_far, far, y);
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
  return as;
}

C acos_of(C x) {
  C as = x;
  C ac = x;
  inverse_sine(x, as, ac);
  return ac;
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
  return f64 ? C{re, im} : C{math::narrow(re), math::narrow(im)};
}

C power_of(C x, C y) {
  Ir& ir = *x.re.ir;
  C r = exp_of(y * log_of(x));
  llvm::Value* base_zero = ir.b.CreateAnd(x.re == 0.0, x.im == 0.0);
  llvm::Value* exponent_zero = ir.b.CreateAnd(y.re == 0.0, y.im == 0.0);
  C none{x.re.like(0.0), x.re.like(0.0)};
  C one{x.re.like(1.0), x.re.like(0.0)};
  r = select(ir.b.CreateAnd(base_zero, y.re > 0.0), none, r);
  return select(exponent_zero, one, r);
}

}  // namespace

Val complex_abs(Ir& ir, const ScalarOp& op) {
  return {magnitude(arg(ir, op)).v};
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
COLLET_COMPLEX2(complex_divide, x / y)
COLLET_COMPLEX1(complex_negate, -x)
Val complex_real(Ir&, const ScalarOp& op) {
  return {op.args[0].v};
}
Val complex_imag(Ir&, const ScalarOp& op) {
  return {op.args[0].im};
}
COLLET_COMPLEX1(complex_exp, exp_of(x))
COLLET_COMPLEX1(complex_expm1, expm1_of(x))
COLLET_COMPLEX1(complex_log, log_of(x))
COLLET_COMPLEX1(complex_log1p, log1p_of(x))
COLLET_COMPLEX1(complex_sqrt, sqrt_of(x))
COLLET_COMPLEX1(complex_sine, times_minus_i(sinh_of(times_i(x))))
COLLET_COMPLEX1(complex_cosine, cosh_of(times_i(x)))
COLLET_COMPLEX1(complex_sinh, sinh_of(x))
COLLET_COMPLEX1(complex_cosh, cosh_of(x))
COLLET_COMPLEX1(complex_tanh, tanh_of(x))
COLLET_COMPLEX1(complex_tan, times_minus_i(tanh_of(times_i(x))))
COLLET_COMPLEX1(complex_asin, asin_of(x))
COLLET_COMPLEX1(complex_acos, acos_of(x))
COLLET_COMPLEX1(complex_asinh, times_minus_i(asin_of(times_i(x))))
COLLET_COMPLEX1(complex_atanh, atanh_of(x))

Val complex_acosh(Ir& ir, const ScalarOp& op) {
  C y = acos_of(arg(ir, op));  // acosh(x) is acos(x) times i or -i, whichever has a real part that is not negative
  llvm::Value* up = bits(y.im) < 0;
  return val(select(up, times_i(y), times_minus_i(y)));
}

Val complex_atan2(Ir& ir, const ScalarOp& op) {
  C y = arg(ir, op);
  C x = arg(ir, op, 1);
  C r = sqrt_of(x * x + y * y);
  return val(times_minus_i(log_of((x + times_i(y)) / r)));
}

/// With e = e^-|x| and t = y / 2, 1 / (1 + e^-z) is (m + 2 e cos^2 t, 2 e sin t cos t) / (m^2 + 4 e cos^2 t), where
/// m = 1 - e; for negative x the real part of the numerator is e (2 cos^2 t - m). Near the poles, where e is near 1 and
/// cos t near 0, neither m nor cos t loses digits.
Val complex_logistic(Ir& ir, const ScalarOp& op) {
  C x = arg(ir, op);
  F a = magnitude(x.re);
  F e = call(math::exp, -a);
  F m = -call(math::expm1, -a);
  F s = x.im;
  F c = x.im;
  sin_cos(0.5 * x.im, s, c);
  F twice = 2.0 * c * c;
  F d = multiply_add(m, m, 2.0 * e * twice);
  llvm::Value* right = x.re >= 0.0;
  F re = math::select(right, multiply_add(e, twice, m), e * (twice - m));
  C y{re / d, (2.0 * e) * (s * c) / d};
  C limit{math::select(right, 1.0, x.re.like(0.0)), with_sign_of(x.re.like(0.0), x.im)};
  return val(select(a == kInfinity, limit, y));
}

COLLET_COMPLEX2(complex_power, power_of(x, y))

Val complex_rsqrt(Ir& ir, const ScalarOp& op) {
  C x = arg(ir, op);
  C one{x.re.like(1.0), x.re.like(0.0)};
  return val(one / sqrt_of(x));
}

Val complex_sign(Ir& ir, const ScalarOp& op) {
  C x = arg(ir, op);
  F m = magnitude(x);
  C y{x.re / m, x.im / m};
  return val(select(m == 0.0, {x.re.like(0.0), x.re.like(0.0)}, y));
}

}  // namespace collet::codegen
