/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_ELEMENTARY_HPP
#define COLLET_ELEMENTARY_HPP

/** \file
 * Elementary functions of f32 and f64, written once over an arithmetic that the user supplies: the SDK instantiates them with
 * HLO instructions, to expand what a device does not compute, and with LLVM's, to generate code; a backend with a compiler
 * or an assembler of its own may instantiate them with its own.
 *
 * A value type `V` is a number, a vector or an array of numbers of one float type. It has, found by the usual name lookup:
 *
 *     V::Mask, V::Bits               truth values, and signed integers of V's width, one for each number
 *     bool x.wide()                  whether V holds f64, else f32
 *     bool x.fuses()                 whether fused_multiply_add is one instruction
 *     V x.like(double c)             the constant c
 *     x + y, x - y, x * y, x / y, -x rounded to nearest
 *     x < y, x > y, x <= y, x >= y, x == y    Mask; false where either is not a number
 *     is_nan(x)                      Mask
 *     p && q, p || q, !p, exclusive_or(p, q)  of masks
 *     select(p, x, y), select(p, i, j)        of V, of Bits
 *     multiply_add(x, y, z)          x * y + z, rounded once or twice
 *     fused_multiply_add(x, y, z)    x * y + z, rounded once; called where x.fuses()
 *     magnitude(x)                   |x|
 *     with_sign_of(x, y)             x, which is not negative, with the sign bit of y
 *     root(x)                        the square root, correctly rounded
 *     floor(x)
 *     power_of_two(n)                2^n for whole n, where that is a normal number
 *     scale(x, n)                    x * 2^n for whole n of at most four digits; may overflow or underflow
 *     bits(x), from_bits(x, i)       the encoding of x, and the V with the type of x whose encoding is i
 *     to_number(x, i)                the V with the type of x nearest to the integer i
 *     i + j, i - j, i + c, i - c, i & c, i | c, i ^ j, i << k, i >> k, divide(i, c)  of Bits; c: int64_t, k: int.
 *                                    Shifts to the right keep the sign; divide is for i >= 0
 *     i < c, i == c                  Mask
 *     reduce_quarter(x)              Quarter<V>: reduce_small where |x| <= small_limit(x), and of as good a quality beyond
 *
 * It may have at_most(x, c) and at_least(x, c) of its own, where they cost less than a comparison and a selection.
 *
 * Derive V from Operators<V> to have the forms of its operators in which one side is a number.
 *
 * Errors, in units in the last place of the result, largest found: docs/elementary_functions.md. Special values are those of
 * C's annex F. Subnormal arguments and results are exact as far as the arithmetic keeps subnormal numbers.
 *
 * The methods are those of the literature: reduction of the argument to a small interval in extended precision (W. Cody,
 * W. Waite, Software Manual for the Elementary Functions, 1980), near-minimax polynomials there, and error-free
 * transformations (T. Dekker, 1971; O. Møller, D. Knuth) where one float is too short.
 */

#include <cstddef>
#include <cstdint>
#include <limits>

namespace collet {
namespace elementary {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/** Operators of V with a number on one side. */
template <class V>
struct Operators {
  friend V operator+(V x, double c) { return x + x.like(c); }
  friend V operator+(double c, V x) { return x.like(c) + x; }
  friend V operator-(V x, double c) { return x - x.like(c); }
  friend V operator-(double c, V x) { return x.like(c) - x; }
  friend V operator*(V x, double c) { return x * x.like(c); }
  friend V operator*(double c, V x) { return x.like(c) * x; }
  friend V operator/(V x, double c) { return x / x.like(c); }
  friend V operator/(double c, V x) { return x.like(c) / x; }
  friend auto operator<(V x, double c) { return x < x.like(c); }
  friend auto operator>(V x, double c) { return x > x.like(c); }
  friend auto operator<=(V x, double c) { return x <= x.like(c); }
  friend auto operator>=(V x, double c) { return x >= x.like(c); }
  friend auto operator==(V x, double c) { return x == x.like(c); }
};

/** Returns select(p, c, x) for a number c. */
template <class V>
V select_number(typename V::Mask p, double c, V x) {
  return select(p, x.like(c), x);
}

/** Returns the lesser of x and c; x if it is NaN. */
template <class V>
V at_most(V x, double c) {
  return select(x > c, x.like(c), x);
}
/** Returns the greater of x and c; x if it is NaN. */
template <class V>
V at_least(V x, double c) {
  return select(x < c, x.like(c), x);
}

/** Returns c[0] + c[1] x + c[2] x^2 + ... */
template <class V, size_t N>
V polynomial(V x, const double (&c)[N]) {
  V sum = x.like(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) sum = multiply_add(sum, x, x.like(c[i]));
  return sum;
}
/** Evaluates the polynomial for the width of x. */
template <class V, size_t N, size_t M>
V polynomial(V x, const double (&f32)[N], const double (&f64)[M]) {
  return x.wide() ? polynomial(x, f64) : polynomial(x, f32);
}

/** An unevaluated sum of two numbers: twice the precision. */
template <class V>
struct Sum {
  V high, low;
};

/** Returns x + y exactly. */
template <class V>
Sum<V> two_sum(V x, V y) {
  const V s = x + y, t = s - x;
  return {s, (x - (s - t)) + (y - t)};
}
/** Returns x + y exactly, provided that |x| >= |y|. */
template <class V>
Sum<V> fast_two_sum(V x, V y) {
  const V s = x + y;
  return {s, y - (s - x)};
}
/** Returns x as a sum of two numbers with half the digits each. */
template <class V>
Sum<V> split(V x) {
  const V high = from_bits(x, bits(x) & (x.wide() ? ~int64_t{0x7FFFFFF} : ~int64_t{0xFFF}));
  return {high, x - high};
}
/** Returns x * y exactly, unless it overflows or underflows. */
template <class V>
Sum<V> two_product(V x, V y) {
  const V p = x * y;
  if (x.fuses()) return {p, fused_multiply_add(x, y, -p)};
  const Sum<V> a = split(x), b = split(y);
  return {p, ((a.high * b.high - p) + a.high * b.low + a.low * b.high) + a.low * b.low};
}

namespace detail {

/** Returns 1.5 times the power of two whose unit in the last place is 1. Adding it to a number of less than half its size
 * rounds that number to an integer. */
template <class V>
double rounder(V x) {
  return x.wide() ? 0x1.8p52 : 0x1.8p23;
}
/** Returns x * c, rounded to an integer. */
template <class V>
V whole_product(V x, double c) {
  return multiply_add(x, x.like(c), x.like(rounder(x))) - rounder(x);
}
template <class V>
typename V::Mask is_negative(V x) {
  return bits(x) < 0;
}
/** Returns the least normal number. */
template <class V>
double least_normal(V x) {
  return x.wide() ? 0x1p-1022 : 0x1p-126;
}

/** ln 2 as a sum of two parts. The first part is so short that its product with an exponent is exact. */
struct Ln2 {
  double high, low;
};
template <class V>
Ln2 ln2(V x) {
  return x.wide() ? Ln2{0.69314718036912381649, 1.9082149292705878161e-10} : Ln2{0.693359375, -2.12194440054690583e-4};
}

/** Coefficients of (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2. */
constexpr double kExp32[] = {0.500000008410019122,   0.166666668302451582,   0.0416662506576570879,
                             0.00833327047601589234, 0.00139473876322791808, 0.000199154017865253426};
constexpr double kExp64[] = {0.5,
                             0.166666666666666667,
                             0.0416666666666667178,
                             0.00833333333333334061,
                             0.00138888888888618931,
                             0.000198412698412391798,
                             0.0000248015873671586209,
                             2.75573192865178828e-6,
                             2.75572387127451729e-7,
                             2.50520417061221284e-8,
                             2.09253748303601046e-9,
                             1.60948530518053979e-10};

/** The decomposition x = n ln 2 + r with an integer n and |r| <= ln(2) / 2, for finite x of moderate size. */
template <class V>
struct Reduced {
  V r, n;
};
/** Returns x - n ln 2. */
template <class V>
V reduced_exponent(V x, V n) {
  return multiply_add(n, x.like(-ln2(x).low), multiply_add(n, x.like(-ln2(x).high), x));
}
template <class V>
Reduced<V> reduce_exponential(V x) {
  const V n = whole_product(x, 1.4426950408889634);
  return {reduced_exponent(x, n), n};
}
/** Returns e^r - 1 for |r| <= ln(2) / 2. */
template <class V>
V small_expm1(V r) {
  return multiply_add(r * r, polynomial(r, kExp32, kExp64), r);
}
/** Returns e^x 2^offset. */
template <class V>
V exponential(V x, int offset) {
  // Beyond these bounds the result is infinite or zero; NaN passes through.
  const V inside = at_least(at_most(x, x.wide() ? 711 : 90), x.wide() ? -746 : -105);
  const Reduced<V> d = reduce_exponential(inside);
  return scale(small_expm1(d.r) + 1, offset == 0 ? d.n : d.n + offset);
}

/** The decomposition x = 2^n m with sqrt(1/2) <= m < sqrt(2), for finite x > 0. */
template <class V>
struct Parts {
  V m, n;
};
template <class V>
Parts<V> take_apart(V x) {
  const bool wide = x.wide();
  const int digits = wide ? 52 : 23;
  const auto tiny = x < least_normal(x);
  const V lifted = select(tiny, x * (wide ? 0x1p54 : 0x1p25), x);
  const auto i = bits(lifted);
  const auto n = (i - (wide ? 0x3FE6A09E667F3BCD : 0x3F3504F3)) >> digits;
  const V exponent = to_number(x, n);
  return {from_bits(x, i - (n << digits)), select(tiny, exponent - (wide ? 54 : 25), exponent)};
}

/** Coefficients of (log(1 + f) - f + f^2 / 2) / f^3. */
constexpr double kLog32[] = {3.3333331174e-1,  -2.4999993993e-1, 2.0000714765e-1,  -1.6668057665e-1, 1.4249322787e-1,
                             -1.2420140846e-1, 1.1676998740e-1,  -1.1514610310e-1, 7.0376836292e-2};
/** Coefficients of R(z) / z, where log((1 + s) / (1 - s)) = 2 s + s R(s^2). */
constexpr double kLog64[] = {0.66666666666666661,  0.400000000000062634, 0.285714285690807628, 0.222222226475574736,
                             0.181817756050884637, 0.153870933887738851, 0.132500589162971481, 0.132518673160795569};

/** Returns n ln 2 + log(1 + f) + extra, where `extra` is small and sqrt(1/2) <= 1 + f < sqrt(2). */
template <class V>
V log_of_parts(V f, V n, V extra) {
  const V low = multiply_add(n, f.like(ln2(f).low), extra);
  if (!f.wide()) {
    const V z = f * f;
    const V y = multiply_add(z, f.like(-0.5), multiply_add(f * z, polynomial(f, kLog32), low));
    return multiply_add(n, f.like(ln2(f).high), f + y);
  }
  const V s = f / (f + 2), z = s * s, half = f * f * 0.5;
  const V tail = multiply_add(s, half + z * polynomial(z, kLog64), low);
  return multiply_add(n, f.like(ln2(f).high), f - (half - tail));
}
/** Returns `result`, or the logarithm's special values: it has a pole at `pole` and is NaN below. */
template <class V>
V log_specials(V result, V x, double pole) {
  const V at_pole = select_number(x == pole, -kInfinity, result);
  const V below = select_number(x < pole, kNaN, at_pole);
  return select(is_nan(x) || x == kInfinity, x, below);
}

}  // namespace detail

/** e^x */
template <class V>
V exp(V x) {
  return detail::exponential(x, 0);
}
/** Returns e^x / 2, also if e^x would overflow. */
template <class V>
V half_exp(V x) {
  return detail::exponential(x, -1);
}
/** e^x - 1 */
template <class V>
V expm1(V x) {
  // 2^n (expm1(r) + (1 - 2^-n)).
  const V inside = at_least(at_most(x, x.wide() ? 711 : 90), -60);
  const detail::Reduced<V> d = detail::reduce_exponential(inside);
  const V back = power_of_two(-at_most(d.n, x.wide() ? 1000 : 120));
  const V y = scale(detail::small_expm1(d.r) + (1 - back), d.n);
  return select(x == 0, x, y);
}
/** The natural logarithm. */
template <class V>
V log(V x) {
  const detail::Parts<V> p = detail::take_apart(x);
  return detail::log_specials(detail::log_of_parts(p.m - 1, p.n, x.like(0)), x, 0);
}
/** log(1 + x) */
template <class V>
V log1p(V x) {
  const V u = x + 1;
  const detail::Parts<V> p = detail::take_apart(u);
  // The rounding error of 1 + x, relative to u. If u needs no exponent, x itself is f.
  const V lost = select(x > 1, 1 - (u - x), x - (u - 1)) / u;
  const auto near = p.n == 0;
  const V y = detail::log_of_parts(select(near, x, p.m - 1), p.n, select_number(near, 0, lost));
  return select(x == 0, x, detail::log_specials(y, x, -1));
}
/** 1 / (1 + e^-x) */
template <class V>
V logistic(V x) {
  const V e = exp(-magnitude(x));
  return select_number(x >= 0, 1, e) / (e + 1);
}

namespace detail {

/** Coefficients of (R(z) / z - 2/3) / z, with R as for kLog64. */
constexpr double kLogTail32[] = {0.3999999817461559, 0.285718739650849195, 0.221850047435047003, 0.194680113671598382};
constexpr double kLogTail64[] = {0.399999999999999774, 0.285714285714451474, 0.222222222175292425,
                                 0.181818188710652753, 0.153845568267793525, 0.133363189162003471,
                                 0.116747912547640499, 0.119892204216709727};

/** Returns log(x) with half again as many digits, for finite x > 0. */
template <class V>
Sum<V> long_log(V x) {
  const Parts<V> p = take_apart(x);
  const bool wide = x.wide();
  const V f = p.m - 1;
  // s = f / (2 + f) with twice the digits.
  const Sum<V> below = fast_two_sum(x.like(2), f);
  const V s = f / below.high;
  const Sum<V> back = two_product(s, below.high);
  const V s_low = (((f - back.high) - back.low) - s * below.low) / below.high;
  const Sum<V> square = two_product(s, s);
  const V z = square.high, z_low = square.low + s * s_low * 2;
  // s (2 + z (2/3 + z tail))
  const V tail = z * polynomial(z, kLogTail32, kLogTail64);
  const double third = wide ? 0.66666666666666663 : static_cast<double>(0.66666667f);
  const double third_low = wide ? 3.7007434154171886e-17 : 2.0 / 3.0 - third;
  Sum<V> c = fast_two_sum(x.like(third), tail);
  c.low = c.low + third_low;
  const Sum<V> zc = two_product(z, c.high);
  const Sum<V> q = fast_two_sum(zc.high, zc.low + (z * c.low + z_low * c.high));
  const Sum<V> sq = two_product(s, q.high);
  const V sq_low = sq.low + (s * q.low + s_low * q.high);
  // n ln 2 + 2 s + s q, where n times the first part of ln 2 is exact.
  const Sum<V> sum = two_sum(p.n * ln2(x).high, s * 2);
  const Sum<V> all = two_sum(sum.high, sq.high);
  const V low = (all.low + sum.low) + (sq_low + (s_low * 2 + p.n * ln2(x).low));
  return fast_two_sum(all.high, low);
}

/** Returns |x|^y for finite x other than 0. */
template <class V>
V positive_power(V x, V y) {
  const bool wide = x.wide();
  const Sum<V> l = long_log(magnitude(x));
  // y log|x|. y is clamped to the range beyond which the result is 0, 1 or infinite, so that products stay finite.
  const V exponent = at_least(at_most(y, wide ? 0x1p80 : 0x1p40), wide ? -0x1p80 : -0x1p40);
  const Sum<V> product = two_product(exponent, l.high);
  const Sum<V> e = fast_two_sum(product.high, product.low + exponent * l.low);
  const V inside = at_least(at_most(e.high, wide ? 720 : 100), wide ? -760 : -120);
  const Reduced<V> d = reduce_exponential(inside);
  const V tail = select(inside == e.high, e.low, x.like(0));
  const V grown = small_expm1(d.r);
  return scale(grown + multiply_add(tail, grown, tail) + 1, d.n);
}

}  // namespace detail

/** Returns x^y, where `positive` is |x|^y for finite x other than 0. */
template <class V>
V power_specials(V x, V y, V positive) {
  const double whole_from = x.wide() ? 0x1p53 : 0x1p24;
  const V x_size = magnitude(x), y_size = magnitude(y);
  const auto whole = y_size >= whole_from || floor(y) == y;
  const V halved = y * 0.5;
  const auto odd = whole && y_size < whole_from && !(floor(halved) == halved);
  const auto flips = detail::is_negative(x) && odd;
  const auto grows = y > 0;
  // 0 and infinity to a power.
  V out = positive;
  out = select(x_size == 0, select(grows, x.like(0), x.like(kInfinity)), out);
  out = select(x_size == kInfinity, select(grows, x.like(kInfinity), x.like(0)), out);
  // An infinite power.
  const V at_infinity = select(exclusive_or(x_size > 1, grows), x.like(0), x.like(kInfinity));
  out = select(y_size == kInfinity, select_number(x_size == 1, 1, at_infinity), out);
  out = select(flips, -out, out);
  out = select_number(x < 0 && !whole && x_size < kInfinity, kNaN, out);
  out = select_number(is_nan(x) || is_nan(y), kNaN, out);
  return select_number(x == 1 || y == 0, 1, out);
}
/** x^y */
template <class V>
V power(V x, V y) {
  return power_specials(x, y, detail::positive_power(x, y));
}

/** The cube root. */
template <class V>
V cbrt(V x) {
  const bool wide = x.wide();
  const V size = magnitude(x);
  const auto tiny = size < detail::least_normal(x);
  const V a = select(tiny, size * (wide ? 0x1p54 : 0x1p24), size);
  // First guess: divides the exponent by 3, and the mantissa by a linear approximation.
  V t = from_bits(x, divide(bits(a), 3) + (wide ? 0x2A9F7893782DA1CE : 0x2A5137A0));
  const auto halley = [&](V guess) {
    const V r = a / (guess * guess);
    return guess + guess * ((r - guess) / (guess + guess + r));
  };
  for (int i = 0; i < (wide ? 2 : 1); ++i) t = halley(t);
  // With half the digits, the square of t is exact, so after one more step only the last rounding remains.
  t = halley(split(t).high);
  const V y = with_sign_of(select(tiny, t * (wide ? 0x1p-18 : 0x1p-8), t), x);
  return select(x == 0 || size == kInfinity || is_nan(x), x, y);
}

/** The hyperbolic tangent. */
template <class V>
V tanh(V x) {
  const V a = magnitude(x);
  if (x.wide()) {
    const V e = expm1(at_most(a, 22) * 2);
    return with_sign_of(e / (e + 2), x);
  }
  // y / (1 + y), where y = (e^2a - 1) / 2 = power (r + r^2 p(r)) + (power - 1) / 2, with power = 2^n and a = n ln 2 / 2 + r.
  constexpr double kP[] = {0x1.5554b8p-1, 0x1.55568cp-2, 0x1.1222c8p-3, 0x1.6b5f62p-5};  // of (p(r) - 1) / r
  // The low bits of `rounded` are the exponent of `power`, as it is encoded.
  const double rounder = detail::rounder(x) + 127;
  const V inside = at_most(a, 10);
  const V rounded = multiply_add(inside, x.like(2 * 1.4426950408889634), x.like(rounder));
  const V power = from_bits(x, bits(rounded) << 23);
  // n is so small that ln 2 itself, in one part, suffices.
  const V n = rounded - rounder;
  const V r = x.fuses() ? fused_multiply_add(n, x.like(-0.5 * 0.6931471805599453), inside)
                        : detail::reduced_exponent(inside, n * 0.5);
  // The polynomial is evaluated in two halves, because the operations of one half need not wait for those of the other.
  const V low = multiply_add(r, x.like(kP[1]), x.like(kP[0])), high = multiply_add(r, x.like(kP[3]), x.like(kP[2]));
  const V p = multiply_add(r, multiply_add(r * r, high, low), x.like(1));
  const V scaled = power * r, square = scaled * r;
  // y = leading + tail
  const V leading = scaled + multiply_add(power, x.like(0.5), x.like(-0.5)), tail = square * p;
  // 1 - 1 / (1 + y) has too few digits where y is small. The residual, which includes the rounding errors of the divisor and
  // of its inverse, supplies them.
  const V inverse = 1 / multiply_add(square, p, leading + 1), rough = 1 - inverse;
  const V residual = multiply_add(inverse, tail, multiply_add(inverse, leading, -rough));
  return with_sign_of(multiply_add(inverse, residual, rough), x);
}
/** The hyperbolic sine. */
template <class V>
V sinh(V x) {
  const V a = magnitude(x), t = expm1(at_most(a, 40));
  const V moderate = (t + t / (t + 1)) * 0.5;
  return with_sign_of(select(a > 30, half_exp(a), moderate), x);
}
/** The hyperbolic cosine. */
template <class V>
V cosh(V x) {
  const V e = half_exp(magnitude(x));
  return e + 0.25 / e;
}
/** The inverse hyperbolic sine. */
template <class V>
V asinh(V x) {
  const V a = magnitude(x);
  const double huge = x.wide() ? 0x1p28 : 0x1p13;
  const V inside = at_most(a, huge), square = inside * inside;
  const V moderate = log1p(inside + square / (root(square + 1) + 1));
  return with_sign_of(select(a > huge, log(a) + 0.69314718055994530942, moderate), x);
}
/** The inverse hyperbolic cosine. */
template <class V>
V acosh(V x) {
  const double huge = x.wide() ? 0x1p28 : 0x1p13;
  const V t = at_most(x, huge) - 1;
  const V moderate = log1p(t + root(t * 2 + t * t));
  return select_number(x < 1, kNaN, select(x > huge, log(x) + 0.69314718055994530942, moderate));
}
/** The inverse hyperbolic tangent. */
template <class V>
V atanh(V x) {
  const V a = magnitude(x), twice = a * 2, rest = 1 - a;
  const V y = log1p(select(a < 0.5, twice + twice * a / rest, twice / rest));
  return with_sign_of(select(a > 1, x.like(kNaN), y * 0.5), x);
}

namespace detail {

/** Coefficients of (-log(1 - erf(x)) - c x) / x, where c is 2 / sqrt(pi) rounded to f32, for x in [0, 3.92]. */
constexpr double kErf32[] = {-5.411908343688765e-08, 0.6366193819434215,      0.10277783074181257,
                             -0.01915306482733047,   -0.00016039427920624513, 0.0016670256104029826,
                             -0.0006328358061203928, 0.00011764096517067783,  -9.256229319513808e-06};
constexpr double kErf64[] = {1.12837916709551257,     -0.376126389031837524,    0.112837916709551204,
                             -0.0268661706451298675,  0.00522397762542360346,   -0.000854832702195556916,
                             0.000120553329037933065, -0.000014925647593949453, 1.64620459698696681e-6,
                             -1.63646494082378219e-7, 1.47924683469481918e-8,   -1.21649610242405086e-9,
                             8.7104394319938564e-11,  -4.2330903898170792e-12};
/** Coefficients of erfc(x) e^(x^2): three polynomials about 1.5, 2.75 and 4.75 on [1, 2], [2, 3.5] and [3.5, 6]. */
constexpr double kErfTail64a[] = {0.321585416454317502,      -0.163622917732560068,    0.0761510398554774003,
                                  -0.0329309052995624396,    0.0133773409530671772,    -0.00514595754799762242,
                                  0.00188613487700086248,    -0.000661930066065113601, 0.000223309945134996611,
                                  -0.0000726589272127812606, 0.0000228643012124593149, -6.97495039659740591e-6,
                                  2.06705741437726538e-6,    -5.96277431035323231e-7,  1.67165262206980065e-7,
                                  -4.54593927753910912e-8,   1.32186929973697795e-8,   -3.85854857009690466e-9};
constexpr double kErfTail64b[] = {0.193662096279066933,    -0.0632376375605694221,   0.0197585929880199096,
                                  -0.00593433789894081595, 0.00171958185894253495,   -0.000482195096119709984,
                                  0.000131182084676465806, -0.000034698211771215652, 8.939014179870207e-6,
                                  -2.24972647195951688e-6, 5.53511612238543201e-7,   -1.27362742966159062e-7,
                                  3.16774938556985432e-8,  -1.1429568025770215e-8};
constexpr double kErfTail64c[] = {0.116302707404342856,     -0.0235034450870346054,  0.00466134254401527976,
                                  -0.000908090105875658356, 0.000173790189660930537, -0.0000332694146287832204,
                                  5.26463872073591019e-6,   -1.87487593759385625e-6, -2.04111568350044252e-7,
                                  -1.41126334287685023e-7};

}  // namespace detail

/** The error function. */
template <class V>
V erf(V x) {
  if (x.wide()) {
    const V a = at_most(magnitude(x), 6), z = a * a;
    const V tail =
        select(a < 2, polynomial(a - 1.5, detail::kErfTail64a),
               select(a < 3.5, polynomial(a - 2.75, detail::kErfTail64b), polynomial(a - 4.75, detail::kErfTail64c)));
    return with_sign_of(select(a < 1, a * polynomial(z, detail::kErf64), 1 - exp(-z) * tail), x);
  }
  // 1 - e^-t, where t = first a + rest and e^-t = 2^n e^-r.
  constexpr double kExpRest[] = {0x1p-1, 0x1.5554aep-3, 0x1.555486p-5, 0x1.1228f4p-7,
                                 0x1.6d9a5ap-10};  // of (e^r - 1 - r) / r^2
  const V a = at_most(magnitude(x), 3.92), first = x.like(0x1.20dd76p+0), rest = a * polynomial(a, detail::kErf32);
  const V t = multiply_add(a, first, rest);
  // The low bits of `rounded` are the exponent of `power`, as it is encoded.
  const double rounder = detail::rounder(x) + 127;
  const V rounded = multiply_add(t, x.like(-1.4426950408889634), x.like(rounder));
  const V power = from_bits(x, bits(rounded) << 23), n = rounded - rounder;
  // The product of a and `first` is not rounded here, and where n is 0, r has the error of `rest` alone.
  const V r = multiply_add(a, first, multiply_add(n, x.like(0.6931471805599453), rest));
  const V scaled = power * r, square = scaled * -r;
  return with_sign_of(multiply_add(square, polynomial(-r, kExpRest), scaled + (1 - power)), x);
}

/** The reduction x = quarter * pi/2 + r + low, with |r| at most slightly more than pi/4. */
template <class V>
struct Quarter {
  V r, low;
  typename V::Bits quarter; /**< only the last two bits are used */
};

/** Returns the largest |x| for which reduce_small can be used. */
template <class V>
double small_limit(V x) {
  return x.wide() ? x.fuses() ? 0x1p20 : 0x1p19 : x.fuses() ? 0x1p14 : 256;
}

/** Reduces x with |x| <= small_limit(x) by subtracting a multiple of pi/2 in three parts (Cody and Waite). Without a
 * fused multiply-add, the parts are short enough that their products with the multiple are exact.
 *
 * The f32 with a fused multiply-add needs fewer operations: the first two parts are so short that both subtractions are
 * exact, except that the second is rounded where its result is larger than what it subtracts; then its error is exact. The sign
 * of zero is kept: r = x and low = -0. */
template <class V>
Quarter<V> reduce_small(V x) {
  const bool wide = x.wide();
  const double rounder = detail::rounder(x);
  const V shifted = multiply_add(x, x.like(0.63661977236758134), x.like(rounder));
  const V n = shifted - rounder;
  const auto quarter = bits(shifted);  // the low bits are those of the integer
  if (x.fuses() && !wide) {
    const V c2 = x.like(0x1.444p-24);
    const V first = fused_multiply_add(-n, x.like(0x1.921fb4p+0), x);
    const V r = fused_multiply_add(-n, c2, first);
    const V excess = fused_multiply_add(n, x.like(0x1.68c234p-39), fused_multiply_add(n, c2, r - first));
    return {r, -excess, quarter};
  }
  if (x.fuses()) {
    const V c1 = x.like(1.5707963267948966);
    const V c2 = x.like(6.123233995736766e-17);
    const V c3 = x.like(-1.4973849048591833e-33);
    const Sum<V> second = two_product(n, c2);
    const Sum<V> all = two_sum(fused_multiply_add(-n, c1, x), -second.high);
    return {all.high, fused_multiply_add(-n, c3, all.low - second.low), quarter};
  }
  const double c1 = wide ? 1.5707963267341256142 : 1.57073974609375;
  const double c2 = wide ? 6.0771005063039659766e-11 : 0.000056579709053039550781;
  const double c3 = wide ? 2.0222662487959507324e-21 : 9.9209357968054044164e-10;
  const Sum<V> first = two_sum(x - n * c1, -(n * c2));
  const Sum<V> all = two_sum(first.high, first.low - n * c3);
  return {all.high, all.low, quarter};
}

namespace detail {

/** Coefficients of (sin x - x) / x^3 and (cos x - 1 + x^2 / 2) / x^4 as polynomials in x^2, for |x| <= pi / 4. */
constexpr double kSin32[] = {-0.166666666396565154, 0.0083333291556026602, -0.000198392602112503972,
                             2.71759618093908482e-6};
constexpr double kSin64[] = {-0.166666666666666666,   0.00833333333333332149,  -0.000198412698412535978,
                             2.75573192134187548e-6,  -2.50521047084274585e-8, 1.60583404977706115e-10,
                             -7.57739155140757537e-13};
constexpr double kCos32[] = {0.0416666666192736644, -0.00138888834429892029, 0.000024799437513270708,
                             -2.72033934729302152e-7};
constexpr double kCos64[] = {0.0416666666666666666,   -0.00138888888888888723, 0.0000248015873015698631,
                             -2.75573192146715153e-7, 2.08767542070263937e-9,  -1.14702751657849043e-11,
                             4.73729115757319884e-14};

/** Coefficients of (sin x / x - 1) / x^2 and (cos x - 1) / x^2 as polynomials in x^2, for |x| <= pi / 4. */
constexpr double kShortSin32[] = {-0.16666666640587813, 0.008333329280491499, -0.0001983930440707718,
                                  2.7180464049576498e-6};
constexpr double kShortCos32[] = {-0.499999997229051, 0.04166662306438156, -0.0013886755318077496,
                                  2.4389633762929282e-5};

/** Returns the sine of what was reduced, in f32 with a fused multiply-add. Sine and cosine of the remainder are one polynomial,
 * m + m z q(z) with z = r^2, whose coefficients and m are selected. The corrections for `low` and for the rounding of z
 * keep the error below 1 ULP. */
template <class V>
V selected_sine(Quarter<V> d) {
  const auto even = (d.quarter & 1) == 0;
  const V r = d.r, one = r.like(1), z = r * r, z_low = fused_multiply_add(r, r, -z);
  V q = select(even, r.like(kShortSin32[3]), r.like(kShortCos32[3]));
  for (int i = 2; i >= 0; --i)
    q = fused_multiply_add(q, z, select(even, r.like(kShortSin32[i]), r.like(kShortCos32[i])));
  const V m = select(even, r, one), slope = select(even, one, -r);
  const V correction = fused_multiply_add(z_low, select(even, r.like(0), r.like(0.5)), -d.low * slope);
  const V y = m - fused_multiply_add(-(m * z), q, correction);
  return from_bits(y, bits(y) ^ ((d.quarter & 2) << 30));
}

template <class V>
V small_sine(V r, V low) {
  const V z = r * r;
  const V s = z * polynomial(z, kSin32, kSin64);
  return r + multiply_add(r, s, low * (1 - z * 0.5));
}
template <class V>
V small_cosine(V r, V low) {
  const V z = r * r, half = z * 0.5, w = 1 - half;
  return w + (((1 - w) - half) + (z * z * polynomial(z, kCos32, kCos64) - r * low));
}

/** Returns the sine of an angle of `quarter` quarter turns plus a remainder with this sine and cosine. */
template <class V>
V turned(typename V::Bits quarter, V sine, V cosine) {
  const V y = select((quarter & 1) == 0, sine, cosine);
  return from_bits(y, bits(y) ^ ((quarter & 2) << (y.wide() ? 62 : 30)));
}

}  // namespace detail

/** A sine and a cosine. */
template <class V>
struct SineAndCosine {
  V sine, cosine;
};
/** Returns sine and cosine, at little more than the cost of one of them. */
template <class V>
SineAndCosine<V> sine_and_cosine(V x) {
  const Quarter<V> d = reduce_quarter(x);
  const V s = detail::small_sine(d.r, d.low), c = detail::small_cosine(d.r, d.low);
  const auto finite = magnitude(x) < kInfinity;
  const V sine = select(x == 0, x, detail::turned(d.quarter, s, c));
  const V cosine = detail::turned(d.quarter + 1, s, c);
  return {select(finite, sine, x.like(kNaN)), select(finite, cosine, x.like(kNaN))};
}
/** The sine. */
template <class V>
V sin(V x) {
  if (!x.wide() && x.fuses()) return detail::selected_sine(reduce_quarter(x));
  return sine_and_cosine(x).sine;
}
/** The cosine. */
template <class V>
V cos(V x) {
  if (!x.wide() && x.fuses()) {
    const Quarter<V> d = reduce_quarter(x);
    return detail::selected_sine(Quarter<V>{d.r, d.low, d.quarter + 1});
  }
  return sine_and_cosine(x).cosine;
}
/** The tangent. */
template <class V>
V tan(V x) {
  const Quarter<V> d = reduce_quarter(x);
  const V s = detail::small_sine(d.r, d.low), c = detail::small_cosine(d.r, d.low);
  const auto even = (d.quarter & 1) == 0;
  const V y = select(even, s, -c) / select(even, c, s);
  return select(x == 0, x, select(magnitude(x) < kInfinity, y, x.like(kNaN)));
}

namespace detail {

/** Returns pi * turns as a sum of two parts. */
template <class V>
Sum<V> pi(V x, double turns) {
  return {
      x.like(turns * (x.wide() ? 3.141592653589793 : static_cast<double>(3.14159274f))),
      x.like(turns * (x.wide() ? 1.2246467991473532e-16 : 3.14159265358979323846 - static_cast<double>(3.14159274f)))};
}

/** Returns (asin(x) - x) / x for x^2 = z <= 1/4. */
template <class V>
V asin_tail(V z) {
  constexpr double kP32[] = {1.6666586697e-01, -4.2743422091e-02, -8.6563630030e-03};
  constexpr double kQ32[] = {1.0, -7.0662963390e-01};
  constexpr double kP64[] = {1.66666666666666657415e-01,  -3.25565818622400915405e-01, 2.01212532134862925881e-01,
                             -4.00555345006794114027e-02, 7.91534994289814532176e-04,  3.47933107596021167570e-05};
  constexpr double kQ64[] = {1.0, -2.40339491173441421878e+00, 2.02094576023350569471e+00, -6.88283971605453293030e-01,
                             7.70381505559019352791e-02};
  return z * polynomial(z, kP32, kP64) / polynomial(z, kQ32, kQ64);
}

/** The reduced argument s of asin and acos: s is x if |x| < 1/2, else sqrt((1 - |x|) / 2). s + w is the arc sine of s. */
template <class V>
struct Arc {
  typename V::Mask small;
  V s, w;
};
template <class V>
Arc<V> arc(V x) {
  const V a = magnitude(x);
  const auto small = a < 0.5;
  const V z = select(small, x * x, (1 - a) * 0.5);
  const V s = select(small, a, root(z));
  V w = s * asin_tail(z);
  // The rounding error of the square root.
  const Sum<V> square = two_product(s, s);
  const V lost = ((z - square.high) - square.low) / at_least(s + s, least_normal(x));
  w = select(small, w, w + lost);
  return {small, s, w};
}

}  // namespace detail

/** The arc sine. */
template <class V>
V asin(V x) {
  const detail::Arc<V> d = detail::arc(x);
  const Sum<V> half = detail::pi(x, 0.5);
  const V far = half.high - ((d.s + d.w) * 2 - half.low);
  return with_sign_of(select(d.small, d.s + d.w, far), x);
}
/** The arc cosine. */
template <class V>
V acos(V x) {
  const detail::Arc<V> d = detail::arc(x);
  const Sum<V> half = detail::pi(x, 0.5), whole = detail::pi(x, 1);
  const auto negative = x < 0;
  const V s = select(negative, -d.s, d.s), w = select(negative, -d.w, d.w);
  const V near = half.high - (s - (half.low - w));
  const V twice = (d.s + d.w) * 2;
  return select(d.small, near, select(negative, whole.high - (twice - whole.low), twice));
}

/** The angle of the point (x, y). */
template <class V>
V atan2(V y, V x) {
  constexpr double kAtan32[] = {-0.33333332419654254, 0.199998962325634361,   -0.142817729765621101,
                                0.110416133974700398, -0.0845819893008736269, 0.0470501325126119707};
  constexpr double kAtan64[] = {-0.33333333333333333,   0.199999999999998583,   -0.142857142856916554,
                                0.111111111092889165,   -0.0909090900422689539, 0.0769230503667117868,
                                -0.0666661153121407186, 0.058815538322629977,   -0.0525495443003648188,
                                0.0470215737508386963,  -0.0404259166066983473, 0.0293477571210025958,
                                -0.0127348779471846926};
  const bool wide = x.wide();
  const V a = magnitude(y), c = magnitude(x);
  const auto steep = a > c;
  const V most = select(steep, a, c), least = select(steep, c, a);
  // If both are infinite, both are replaced by one; if both are zero, by 0 / 1; very large or small ones are scaled
  // into the range.
  const auto infinite = least == kInfinity;
  const auto high = most > (wide ? 0x1p1000 : 0x1p120), deep = most < (wide ? 0x1p-900 : 0x1p-100);
  const V factor =
      select(high, x.like(wide ? 0x1p-60 : 0x1p-24), select(deep, x.like(wide ? 0x1p120 : 0x1p48), x.like(1)));
  const V top = select_number(infinite, 1, least * factor);
  const V below = select_number(infinite || most == 0, 1, most * factor);
  // atan(t) = pi/4 + atan((t - 1) / (t + 1)) for t > tan(pi/8). Both forms are computed from numerator and denominator.
  const auto far = top > below * 0.41421356237309503;
  const V t = select(far, top - below, top) / select(far, top + below, below);
  const V z = t * t;
  const V small = t * (z * polynomial(z, kAtan32, kAtan64));
  // The angle is a multiple of pi/4 plus or minus (t + small).
  const V base = select(far, x.like(0.25), x.like(0));
  const V folded = select(steep, 0.5 - base, base);
  const auto left = detail::is_negative(x);
  const V turns = select(left, 1 - folded, folded);
  const auto minus = exclusive_or(steep, left);
  const V part = select(minus, -t, t), rest = select(minus, -small, small);
  const Sum<V> pi = detail::pi(x, 1);
  const Sum<V> sum = fast_two_sum(turns * pi.high, part);
  const V whole = sum.high + (sum.low + multiply_add(turns, pi.low, rest));
  const V angle = select(turns == 0, t + small, whole);
  return select_number(is_nan(x) || is_nan(y), kNaN, with_sign_of(magnitude(angle), y));
}

/** Returns sqrt(x^2 + y^2) without intermediate overflow. */
template <class V>
V hypot(V x, V y) {
  const V a = magnitude(x), c = magnitude(y);
  const auto swap = a < c;
  const V most = select(swap, c, a), least = select(swap, a, c);
  const V ratio = least / most;
  V r = most * root(multiply_add(ratio, ratio, x.like(1)));
  r = select(most == 0, most, r);
  r = select_number(is_nan(x) || is_nan(y), kNaN, r);
  return select_number(a == kInfinity || c == kInfinity, kInfinity, r);
}

}  // namespace elementary
}  // namespace collet

#endif
