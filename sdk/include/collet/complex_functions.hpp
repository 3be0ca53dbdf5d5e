/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_COMPLEX_FUNCTIONS_HPP
#define COLLET_COMPLEX_FUNCTIONS_HPP

/** \file
 * Functions of complex numbers, written once over real arithmetic that the user supplies. The SDK instantiates them with HLO
 * instructions, to expand what a device does not compute, with LLVM's, to generate code, and with numbers of the host, to
 * evaluate programs.
 *
 * A value type `V` is as in <collet/elementary.hpp>. In addition, it has, found by the usual name lookup:
 *
 *     compute(f, x)            the real function f of x: a Function
 *     sine_and_cosine_of(x)    SineAndCosine<V>
 *     length(x, y)             sqrt(x^2 + y^2), without intermediate overflow; infinite if one part is, even if the other is NaN
 *     angle(y, x)              the angle of the point (x, y), with the special values of C's atan2
 *
 * Special values are those of C's annex G (C17, G.5.1 and G.6) for quotients, conjugation-symmetric functions and their
 * branch cuts. Annex G leaves powers open (G.6.4.1 allows exp(w log z) with spurious NaNs); here, 0 * infinity counts as 0 in
 * the product w log z, and z^0 is 1. The sign of a zero part decides the side of a branch cut. Products are the plain
 * formula, as in XLA: (infinity + NaN i) * 1 is not recovered.
 */

#include <collet/elementary.hpp>

namespace collet {
namespace elementary {

/** The real functions that complex ones are made of. */
enum class Function { kExp, kExpm1, kLog, kLog1p, kSin, kSinh, kCosh };

/** A complex number, or an array of them. */
template <class V>
struct Complex {
  V re, im;
};

template <class V>
Complex<V> operator+(Complex<V> x, Complex<V> y) {
  return {x.re + y.re, x.im + y.im};
}
template <class V>
Complex<V> operator-(Complex<V> x, Complex<V> y) {
  return {x.re - y.re, x.im - y.im};
}
template <class V>
Complex<V> operator-(Complex<V> x) {
  return {-x.re, -x.im};
}
/** Returns the product by the plain formula. */
template <class V>
Complex<V> operator*(Complex<V> x, Complex<V> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
/** Returns i * x. */
template <class V>
Complex<V> times_i(Complex<V> x) {
  return {-x.im, x.re};
}
/** Returns -i * x. */
template <class V>
Complex<V> times_minus_i(Complex<V> x) {
  return {x.im, -x.re};
}
/** Returns x where the condition holds, else y. */
template <class V>
Complex<V> choose(typename V::Mask condition, Complex<V> x, Complex<V> y) {
  return {select(condition, x.re, y.re), select(condition, x.im, y.im)};
}

namespace detail {

template <class V>
typename V::Mask is_finite(V x) {
  return magnitude(x) < kInfinity;
}
template <class V>
typename V::Mask is_infinite(V x) {
  return magnitude(x) == kInfinity;
}
/** Returns 1 with the sign of x where x is infinite, else 0 with the sign of x. */
template <class V>
V infinite_part(V x) {
  return with_sign_of(select(is_infinite(x), x.like(1), x.like(0)), x);
}
/** Returns k * x, but x where x is 0 and k is infinite or NaN. */
template <class V>
V times_unless_zero(V k, V x) {
  return select(x == 0 && !is_finite(k), x, k * x);
}
/** Returns x * y, but 0 where one factor is 0 and the other is infinite or NaN. */
template <class V>
V product_or_zero(V x, V y) {
  return select_number((x == 0 && !is_finite(y)) || (y == 0 && !is_finite(x)), 0, x * y);
}
/** A number beyond which the square of |z| may overflow. */
template <class V>
double largest_part(V x) {
  return x.wide() ? 1e300 : 1e37;
}
/** A number below which |z| may be subnormal. */
template <class V>
double least_part(V x) {
  return x.wide() ? 1e-290 : 1e-30;
}
/** A power of 4 that makes subnormal numbers normal, its root and its logarithm. */
template <class V>
double lifting(V x) {
  return x.wide() ? 0x1p200 : 0x1p60;
}
template <class V>
double root_of_lifting(V x) {
  return x.wide() ? 0x1p100 : 0x1p30;
}
template <class V>
double log_of_lifting(V x) {
  return x.wide() ? 138.629436111989061883 : 41.5888308335967185650;
}

}  // namespace detail

/** x / y. It is divided after scaling by the larger part of the divisor, so that intermediate results overflow only where a part of x or
 * of y is above half of the largest number (R. Smith, 1962). */
template <class V>
Complex<V> divide(Complex<V> x, Complex<V> y) {
  const auto flat = magnitude(y.re) >= magnitude(y.im);
  const V big = select(flat, y.re, y.im), small = select(flat, y.im, y.re);
  const V ratio = small / big;
  const V d = multiply_add(small, ratio, big);
  const V re = select(flat, multiply_add(x.im, ratio, x.re), multiply_add(x.re, ratio, x.im));
  const V im = select(flat, multiply_add(-x.re, ratio, x.im), multiply_add(x.im, ratio, -x.re));
  const Complex<V> q{re / d, im / d};
  // Where both parts are NaN, annex G recovers quotients by zero, by infinite numbers, and of infinite numbers.
  const auto lost = is_nan(q.re) && is_nan(q.im);
  const auto by_zero = y.re == 0 && y.im == 0;
  const auto x_infinite = detail::is_infinite(x.re) || detail::is_infinite(x.im);
  const auto y_infinite = detail::is_infinite(y.re) || detail::is_infinite(y.im);
  const auto x_finite = detail::is_finite(x.re) && detail::is_finite(x.im);
  const auto y_finite = detail::is_finite(y.re) && detail::is_finite(y.im);
  const V pole = with_sign_of(x.re.like(kInfinity), y.re);
  const Complex<V> grown = choose<V>(by_zero, {pole, x.re.like(0)}, y);
  // The direction of x where x is infinite, and that of y where y is.
  const Complex<V> a = choose<V>(x_infinite, {detail::infinite_part(x.re), detail::infinite_part(x.im)}, x);
  const Complex<V> b = choose<V>(y_infinite, {detail::infinite_part(y.re), detail::infinite_part(y.im)}, grown);
  const V factor = select(x_infinite, x.re.like(kInfinity), x.re.like(0));
  const Complex<V> turned{multiply_add(a.re, b.re, a.im * b.im), multiply_add(a.im, b.re, -(a.re * b.im))};
  const Complex<V> limit{factor * turned.re, factor * turned.im};
  const Complex<V> pole_values{pole * x.re, pole * x.im};
  const auto has_limit = (x_infinite && y_finite) || (y_infinite && x_finite);
  return choose<V>(by_zero, pole_values, choose<V>(lost && has_limit, limit, q));
}

namespace detail {

/** Returns e^z, given sine and cosine of the imaginary part. */
template <class V>
Complex<V> turned_exponential(Complex<V> z, SineAndCosine<V> turn) {
  // Far from 0, multiplies by e^(x / 2) twice, because e^x may overflow although the product does not. Elsewhere one
  // multiplication rounds less, so that e^x is that of the real function where the angle is 0.
  const auto is_far = magnitude(z.re) > 64;
  const V e = compute(Function::kExp, select(is_far, z.re * 0.5, z.re));
  const V again = select(is_far, e, z.re.like(1));
  const auto aimless = !detail::is_finite(z.im);
  const auto down = aimless && z.re == -kInfinity;
  V re = (e * turn.cosine) * again;
  re = select_number(aimless && z.re == kInfinity, kInfinity, re);
  const V im = select(z.im == 0, z.im, (e * turn.sine) * again);
  return {select_number(down, 0, re), select(down, with_sign_of(z.re.like(0), z.im), im)};
}

}  // namespace detail

/** e^z */
template <class V>
Complex<V> exponential(Complex<V> z) {
  return detail::turned_exponential(z, sine_and_cosine_of(z.im));
}

/** e^z - 1 */
template <class V>
Complex<V> exponential_minus_one(Complex<V> z) {
  const SineAndCosine<V> turn = sine_and_cosine_of(z.im);
  const Complex<V> e = detail::turned_exponential(z, turn);
  const V half = compute(Function::kSin, z.im * 0.5);
  // e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2)
  const V near = multiply_add(compute(Function::kExpm1, z.re), turn.cosine, half * half * -2);
  const auto far = magnitude(z.re) > 40;
  return {select(far, e.re - 1, near), e.im};
}

/** The logarithm; its branch cut is the negative real axis. */
template <class V>
Complex<V> logarithm(Complex<V> z) {
  const V a = magnitude(z.re), c = magnitude(z.im);
  const auto swap = a < c;
  const V big = select(swap, c, a), small = select(swap, a, c);
  // For |z| near 1, log |z| = log1p((big - 1)(big + 1) + small^2) / 2 loses no digits.
  const V near = compute(Function::kLog1p, multiply_add(big - 1, big + 1, small * small)) * 0.5;
  // Parts are scaled where |z| may overflow or is subnormal, and so has few digits.
  const auto large = big > detail::largest_part(a), tiny = big < detail::least_part(a);
  const V one = a.like(1), zero = a.like(0);
  const V scale = select(large, a.like(0.25), select(tiny, a.like(detail::lifting(a)), one));
  const V shift = select(large, a.like(1.38629436111989061883), select(tiny, a.like(-detail::log_of_lifting(a)), zero));
  const V far = compute(Function::kLog, length(z.re * scale, z.im * scale)) + shift;
  const V re = select(big > 0.5 && big < 2, near, far);
  return {re, angle(z.im, z.re)};
}

/** log(1 + z) */
template <class V>
Complex<V> logarithm_plus_one(Complex<V> z) {
  const Complex<V> shifted{z.re + 1, z.im};
  // |1 + z|^2 - 1 = x (2 + x) + y^2
  const V square = multiply_add(z.re, z.re + 2, z.im * z.im);
  const V near = compute(Function::kLog1p, square) * 0.5;
  const auto is_near = magnitude(z.re) < 0.5 && magnitude(z.im) < 0.5;
  return {select(is_near, near, logarithm(shifted).re), angle(shifted.im, shifted.re)};
}

/** The square root with a real part that is not negative; its branch cut is the negative real axis. */
template <class V>
Complex<V> square_root(Complex<V> z) {
  const V a = magnitude(z.re), c = magnitude(z.im);
  // Operands whose squares would overflow or underflow are scaled by a power of 4.
  const double high = detail::largest_part(a), low = detail::least_part(a);
  const auto large = a > high || c > high, tiny = a < low && c < low;
  const V one = a.like(1);
  const V scale = select(large, a.like(0.0625), select(tiny, a.like(detail::lifting(a)), one));
  const V back = select(large, a.like(4), select(tiny, a.like(1 / detail::root_of_lifting(a)), one));
  const V re = a * scale, im = c * scale;
  const V t = root((length(re, im) + re) * 0.5);
  const V other = select_number(t == 0, 0, im / t * 0.5);
  const auto right = z.re >= 0;
  Complex<V> y{select(right, t, other) * back, select(right, other, t) * back};
  y.im = with_sign_of(magnitude(y.im), z.im);
  const auto up = z.re > 0;
  const V infinity = a.like(kInfinity), zero = a.like(0);
  const V at_side = select(up, select(is_nan(z.im), z.im, with_sign_of(zero, z.im)), with_sign_of(infinity, z.im));
  const V at_end = select(up, infinity, select(is_nan(z.im), z.im, zero));
  y = choose<V>(a == kInfinity, {at_end, at_side}, y);
  return choose<V>(c == kInfinity, {infinity, z.im}, y);
}

/** 1 / sqrt(z) */
template <class V>
Complex<V> inverse_root(Complex<V> z) {
  const Complex<V> y = divide<V>({z.re.like(1), z.re.like(0)}, square_root(z));
  // A part of the root that is subnormal, or close to it, may become a normal part of the result. Then it is computed as conj(sqrt(z)) /
  // |z|, of a larger operand.
  const V a = magnitude(z.re), c = magnitude(z.im), low = a.like(detail::least_part(a));
  const double few = a.wide() ? 1e90 : 1e10;
  const auto lifted = a < few && c < few && (a < low || c < low) && !(a == 0 && c == 0);
  const Complex<V> x{z.re * detail::lifting(a), z.im * detail::lifting(a)};
  const Complex<V> root = square_root(x);
  const V factor = a.like(detail::root_of_lifting(a)) / length(x.re, x.im);
  return choose<V>(lifted, {root.re * factor, -(root.im * factor)}, y);
}

namespace detail {

/** The hyperbolic sine and cosine of a complex number. */
template <class V>
struct Hyperbolic {
  Complex<V> sine, cosine;
};

template <class V>
Hyperbolic<V> hyperbolic(Complex<V> z) {
  const SineAndCosine<V> turn = sine_and_cosine_of(z.im);
  // Where the real function would overflow, although the product may not, it is computed of an argument that is smaller by
  // `shift`, and the product is multiplied by e^shift.
  const bool wide = z.re.wide();
  const double shift = wide ? 350 : 40, grown = wide ? 1.00709088702807975982e152 : 2.35385266837019985408e17;
  const auto far = magnitude(z.re) > (wide ? 700 : 80);
  const V x = select(far, z.re - with_sign_of(z.re.like(shift), z.re), z.re);
  const V boost = select(far, z.re.like(grown), z.re.like(1));
  const V sh = compute(Function::kSinh, x), ch = compute(Function::kCosh, x);
  const auto aimless = !is_finite(z.im);
  // A zero part stays zero where the other factor is infinite or NaN.
  const V sine_re = times_unless_zero(turn.cosine, sh) * boost;
  const V sine_im = times_unless_zero(ch, turn.sine) * boost;
  const V cosine_im = select(turn.sine == 0 && !is_finite(sh), turn.sine, times_unless_zero(turn.sine, sh)) * boost;
  const auto endless = aimless && is_infinite(z.re);
  return {{select(endless, z.re, sine_re), sine_im},
          {select(endless, magnitude(z.re), ch * turn.cosine * boost), cosine_im}};
}

}  // namespace detail

/** The hyperbolic sine. */
template <class V>
Complex<V> hyperbolic_sine(Complex<V> z) {
  return detail::hyperbolic(z).sine;
}
/** The hyperbolic cosine. */
template <class V>
Complex<V> hyperbolic_cosine(Complex<V> z) {
  return detail::hyperbolic(z).cosine;
}
/** The sine. */
template <class V>
Complex<V> sine(Complex<V> z) {
  return times_minus_i(hyperbolic_sine(times_i(z)));
}
/** The cosine. */
template <class V>
Complex<V> cosine(Complex<V> z) {
  return hyperbolic_cosine(times_i(z));
}
/** The hyperbolic tangent, (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y). */
template <class V>
Complex<V> hyperbolic_tangent(Complex<V> z) {
  const SineAndCosine<V> turn = sine_and_cosine_of(z.im);
  const V s = turn.sine, c = turn.cosine, a = magnitude(z.re);
  const V limit = at_most(a, 20);
  const V sh = compute(Function::kSinh, limit), ch = compute(Function::kCosh, limit);
  const V d = multiply_add(sh, sh, c * c);
  const Complex<V> near{with_sign_of(magnitude(sh * ch / d), z.re), s * c / d};
  const V e = compute(Function::kExp, -a);
  const auto aimless = !detail::is_finite(z.im), endless = a == kInfinity;
  const V one = with_sign_of(a.like(1), z.re), zero = with_sign_of(a.like(0), z.im);
  const V unknown = a.like(kNaN);
  const Complex<V> far{select(aimless && !endless, unknown, one), select(aimless && endless, zero, s * c * 4 * e * e)};
  Complex<V> y = choose<V>(a > 20, far, near);
  // On the axes one part is exact, even where the other is NaN.
  y.re = select(z.re == 0, z.re, y.re);
  y.im = select(z.im == 0, z.im, y.im);
  return y;
}
/** The tangent. */
template <class V>
Complex<V> tangent(Complex<V> z) {
  return times_minus_i(hyperbolic_tangent(times_i(z)));
}

/** 1 / (1 + e^-z). With e = e^-|x| and t = y / 2, it is (m + 2 e cos^2 t, 2 e sin t cos t) / (m^2 + 4 e cos^2 t), where m = 1 -
 * e; for negative x the real part of the numerator is e (2 cos^2 t - m). Near the poles, where e is near 1 and cos t near 0,
 * neither m nor cos t loses digits. */
template <class V>
Complex<V> logistic_of(Complex<V> z) {
  const V a = magnitude(z.re);
  const V e = compute(Function::kExp, -a), m = -compute(Function::kExpm1, -a);
  const SineAndCosine<V> turn = sine_and_cosine_of(z.im * 0.5);
  const V twice = turn.cosine * turn.cosine * 2;
  const V d = multiply_add(m, m, e * twice * 2);
  const auto right = z.re >= 0;
  const V re = select(right, multiply_add(e, twice, m), e * (twice - m));
  const Complex<V> y{re / d, (e * 2) * (turn.sine * turn.cosine) / d};
  const Complex<V> limit{select(right, a.like(1), a.like(0)), with_sign_of(a.like(0), z.im)};
  return choose<V>(a == kInfinity, limit, y);
}

/** z / |z|, or 0 for 0. */
template <class V>
Complex<V> direction(Complex<V> z) {
  const V a = magnitude(z.re), c = magnitude(z.im), high = a.like(detail::largest_part(a)),
          low = a.like(detail::least_part(a));
  const V lift = a.like(detail::lifting(a));
  const V factor = select(a > high || c > high, a.like(0.25), select(a < low && c < low, lift, a.like(1)));
  const Complex<V> x{z.re * factor, z.im * factor};
  const V size = length(x.re, x.im);
  const auto none = size == 0;
  return {select_number(none, 0, x.re / size), select_number(none, 0, x.im / size)};
}

/** z^w = exp(w log z), where 0 times infinity is 0; 1 where w is 0. So 1^w is 1, and powers of infinity and of 0 with a real
 * exponent are infinity, 0, or these in the direction of w times the angle of z. */
template <class V>
Complex<V> power_of(Complex<V> z, Complex<V> w) {
  const Complex<V> l = logarithm(z);
  const Complex<V> product{detail::product_or_zero(w.re, l.re) - detail::product_or_zero(w.im, l.im),
                           detail::product_or_zero(w.re, l.im) + detail::product_or_zero(w.im, l.re)};
  const Complex<V> one{z.re.like(1), z.re.like(0)};
  return choose<V>(w.re == 0 && w.im == 0, one, exponential(product));
}

/** Returns asin(z), given its value for other than special z. */
template <class V>
Complex<V> arc_sine_specials(Complex<V> z, Complex<V> value) {
  return {select(z.re == 0, z.re, value.re), value.im};
}
/** Returns acos(z), given its value for other than special z. */
template <class V>
Complex<V> arc_cosine_specials(Complex<V> z, Complex<V> value) {
  return {select_number(z.re == 0, 1.57079632679489661923, value.re), value.im};
}
/** Returns atanh(z), given its value for other than special z. */
template <class V>
Complex<V> arc_tanh_specials(Complex<V> z, Complex<V> value) {
  const auto endless = detail::is_infinite(z.re) || detail::is_infinite(z.im);
  const V quarter = with_sign_of(z.re.like(1.57079632679489661923), z.im);
  const V zero = with_sign_of(z.re.like(0), z.re);
  return {select(endless, zero, select(z.re == 0, z.re, value.re)),
          select(endless, select(is_nan(z.im), z.im, quarter), value.im)};
}

}  // namespace elementary
}  // namespace collet

#endif
