// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Functions of real and complex numbers that use f64 where f32 is too short, as templates over the value types of
/// <collet/elementary.hpp>. In addition, such a type has widen(x) and narrow(x), which convert f32 to f64 and back, and what
/// <collet/complex_functions.hpp> asks for.

#include <collet/complex_functions.hpp>

#include <cstdint>

namespace collet::codegen {

/// The first bits of 2 / pi after the binary point, 64 in a word: enough for the largest exponent of a double, and 128
/// bits more.
inline constexpr uint64_t kTwoOverPi[] = {
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D,
};

/// Returns base^exponent. `constant` is the exponent if it is known when the code is generated, else NaN.
template <class F>
F power_of(F base, F exponent, double constant) {
  using elementary::kInfinity;
  if (constant == 0.5 || constant == -0.5 || constant == 1.5) {
    // Unlike its root, a power of -infinity is not NaN, and one of -0 not negative.
    const F raised = elementary::select_number(base == -kInfinity, kInfinity, base + 0.0);
    return constant == 0.5 ? root(raised) : constant == 1.5 ? raised * root(raised) : 1.0 / root(raised);
  }
  if (base.wide() || base.fuses()) return elementary::power(base, exponent);
  // In f64 one product is accurate enough, and cheaper than products in twice the precision.
  const F logarithm = elementary::log(widen(magnitude(base)));
  const F inside = elementary::at_least(elementary::at_most(exponent, 1e30), -1e30);
  return elementary::power_specials(base, exponent, narrow(elementary::exp(widen(inside) * logarithm)));
}

/// Returns sqrt(x * x + y * y) without overflow.
template <class F>
F hypotenuse(F x, F y) {
  using elementary::kInfinity;
  if (x.wide()) return elementary::hypot(x, y);
  const F p = widen(x), q = widen(y);
  const F r = elementary::select_number(is_nan(x) || is_nan(y), elementary::kNaN, narrow(root(p * p + q * q)));
  return elementary::select_number(magnitude(x) == kInfinity || magnitude(y) == kInfinity, kInfinity, r);
}

namespace detail {

/// The arc sine and arc cosine of a complex number, by the formulas of Hull, Fairgrieve and Tang. Their special cases for
/// very large arguments are replaced by log.
template <class F>
struct InverseSine {
  elementary::Complex<F> sine, cosine;
};

template <class F>
InverseSine<F> inverse_sine(elementary::Complex<F> x) {
  constexpr double kLn2 = 6.93147180559945286227e-01, kPi = 3.14159265358979323846;
  const bool f64 = x.re.wide();
  const auto widened = [&](F v) { return f64 ? v : widen(v); };
  const F a = magnitude(widened(x.re)), c = magnitude(widened(x.im));
  const F r = elementary::hypot(a + 1.0, c), s = elementary::hypot(a - 1.0, c);
  const F p = 0.5 * (r + s), q = a / p, rp = r + (a + 1.0), c2 = c * c;
  const F above = s + (a - 1.0), below = s + (1.0 - a);
  const F small_a = 0.5 * (p + a) * (c2 / rp + below);
  // The square of c may be 0 though c is not, so c stands outside of roots where it can.
  const F cross = select(a <= 1.0, root(small_a), root(0.5 * (p + a) / rp + 0.5 * (p + a) / above) * c);
  const auto crossed = q > 0.6417;
  const F near_one = elementary::at_most(q, 1.0);
  F real_sine = select(crossed, elementary::atan2(a, cross), elementary::asin(near_one));
  F real_cosine = select(crossed, elementary::atan2(cross, a), elementary::acos(near_one));
  // Twice what p exceeds 1 by.
  const F small_beyond = elementary::select_number(c == 0.0, 0.0, c2 / rp + c2 / below);
  const F beyond = select(a < 1.0, small_beyond, c2 / rp + above);
  const F to_log = 0.5 * beyond + root(beyond * (0.5 * (p + 1.0)));
  const auto flat = a < 1.0 && c < 1e-150;
  const F near = select(flat, c / root((1.0 - a) * (1.0 + a)), elementary::log1p(to_log));
  const F far = elementary::log(p + root(p * p - 1.0));
  F imag = select(p <= 1.5, near, far);
  // For very large operands p^2 would overflow, or the difference would cancel.
  const auto huge = a > 1e150 || c > 1e150;
  imag = select(huge, elementary::log(elementary::hypot(0.5 * a, 0.5 * c)) + 2.0 * kLn2, imag);
  real_sine = select(huge, elementary::atan2(a, c), real_sine);
  real_cosine = select(huge, elementary::atan2(c, a), real_cosine);
  const auto back = [&](F v) { return f64 ? v : narrow(v); };
  const auto left = bits(x.re) < 0;
  return {{with_sign_of(magnitude(back(real_sine)), x.re), with_sign_of(magnitude(back(imag)), x.im)},
          {select(left, back(kPi - real_cosine), back(real_cosine)), -with_sign_of(magnitude(back(imag)), x.im)}};
}

}  // namespace detail

template <class F>
elementary::Complex<F> complex_arc_sine(elementary::Complex<F> x) {
  return elementary::arc_sine_specials(x, detail::inverse_sine(x).sine);
}

template <class F>
elementary::Complex<F> complex_arc_cosine(elementary::Complex<F> x) {
  return elementary::arc_cosine_specials(x, detail::inverse_sine(x).cosine);
}

template <class F>
elementary::Complex<F> complex_arc_hyperbolic_sine(elementary::Complex<F> x) {
  return elementary::times_minus_i(complex_arc_sine(elementary::times_i(x)));
}

/// acosh(x) is acos(x) times i or -i, whichever has a real part that is not negative.
template <class F>
elementary::Complex<F> complex_arc_hyperbolic_cosine(elementary::Complex<F> x) {
  const elementary::Complex<F> y = complex_arc_cosine(x);
  return elementary::choose(bits(y.im) < 0, elementary::times_i(y), elementary::times_minus_i(y));
}

/// (log1p(x) - log1p(-x)) / 2, in f64 for operands of f32.
template <class F>
elementary::Complex<F> complex_arc_hyperbolic_tangent(elementary::Complex<F> x) {
  constexpr double kLn2 = 6.93147180559945286227e-01, kHalfPi = 1.57079632679489661923;
  const bool f64 = x.re.wide();
  const F r = f64 ? x.re : widen(x.re), c = f64 ? x.im : widen(x.im), a = magnitude(r), b = magnitude(c);
  // Real part: log1p(4 a / ((1 - a)^2 + c^2)) / 4. Imaginary part: atan2(2 c, (1 - a)(1 + a) - c^2) / 2.
  const F gap = 1.0 - a, d = gap * gap + c * c;
  F re = 0.25 * elementary::log1p(4.0 * a / d);
  F im = 0.5 * elementary::atan2(2.0 * c, gap * (1.0 + a) - c * c);
  // Close to the pole the squares would underflow, and far from it they would overflow; there the result is close to 1 / z and a
  // quarter turn.
  re = select(d < 1e-280, 0.5 * (kLn2 - elementary::log(elementary::hypot(gap, c))), re);
  const auto flat = a > b;
  const F most = select(flat, a, b), ratio = select(flat, b, a) / most;
  const F inverse = 1.0 / most / (1.0 + ratio * ratio);
  const auto is_far = most > 1e150;
  re = with_sign_of(select(is_far, select(flat, inverse, ratio * inverse), re), r);
  im = select(is_far, with_sign_of(im.like(kHalfPi), c), im);
  return elementary::arc_tanh_specials(
      x, f64 ? elementary::Complex<F>{re, im} : elementary::Complex<F>{narrow(re), narrow(im)});
}

template <class F>
elementary::Complex<F> complex_arc_tangent(elementary::Complex<F> y, elementary::Complex<F> x) {
  const elementary::Complex<F> r = elementary::square_root(x * x + y * y);
  return elementary::times_minus_i(elementary::logarithm(elementary::divide(x + elementary::times_i(y), r)));
}

}  // namespace collet::codegen
