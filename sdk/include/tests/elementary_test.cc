// SPDX-License-Identifier: Apache-2.0
#include <collet/elementary.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

/// \file
/// Tests the elementary functions with the host's arithmetic, with and without fused multiply-add.

namespace {

template <class T, bool Fuses>
struct Number;

struct BoolArray {
  bool v;
};
BoolArray operator&&(BoolArray p, BoolArray q) {
  return {p.v && q.v};
}
BoolArray operator||(BoolArray p, BoolArray q) {
  return {p.v || q.v};
}
BoolArray operator!(BoolArray p) {
  return {!p.v};
}
BoolArray exclusive_or(BoolArray p, BoolArray q) {
  return {p.v != q.v};
}

template <class I>
struct IntArray {
  using U = std::make_unsigned_t<I>;
  I v;
  static IntArray of(U u) { return {static_cast<I>(u)}; }
  U u() const { return static_cast<U>(v); }
  friend IntArray operator+(IntArray i, IntArray j) { return of(i.u() + j.u()); }
  friend IntArray operator-(IntArray i, IntArray j) { return of(i.u() - j.u()); }
  friend IntArray operator^(IntArray i, IntArray j) { return of(i.u() ^ j.u()); }
  friend IntArray operator+(IntArray i, int64_t c) { return of(i.u() + static_cast<U>(c)); }
  friend IntArray operator-(IntArray i, int64_t c) { return of(i.u() - static_cast<U>(c)); }
  friend IntArray operator&(IntArray i, int64_t c) { return of(i.u() & static_cast<U>(c)); }
  friend IntArray operator|(IntArray i, int64_t c) { return of(i.u() | static_cast<U>(c)); }
  friend IntArray operator<<(IntArray i, int k) { return of(i.u() << k); }
  friend IntArray operator>>(IntArray i, int k) { return {static_cast<I>(i.v >> k)}; }
  friend IntArray divide(IntArray i, int64_t c) { return {static_cast<I>(i.v / c)}; }
  friend BoolArray operator<(IntArray i, int64_t c) { return {i.v < c}; }
  friend BoolArray operator==(IntArray i, int64_t c) { return {i.v == c}; }
  friend IntArray select(BoolArray p, IntArray i, IntArray j) { return p.v ? i : j; }
};

template <class T, bool Fuses>
struct Number : collet::elementary::Operators<Number<T, Fuses>> {
  using Mask = BoolArray;
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using Bits = IntArray<I>;
  T v;

  explicit Number(T x) : v(x) {}
  bool wide() const { return sizeof(T) == 8; }
  bool fuses() const { return Fuses; }
  Number like(double c) const { return Number(static_cast<T>(c)); }

  friend Number operator+(Number x, Number y) { return Number(x.v + y.v); }
  friend Number operator-(Number x, Number y) { return Number(x.v - y.v); }
  friend Number operator*(Number x, Number y) { return Number(x.v * y.v); }
  friend Number operator/(Number x, Number y) { return Number(x.v / y.v); }
  friend Number operator-(Number x) { return Number(-x.v); }
  friend BoolArray operator<(Number x, Number y) { return {x.v < y.v}; }
  friend BoolArray operator>(Number x, Number y) { return {x.v > y.v}; }
  friend BoolArray operator<=(Number x, Number y) { return {x.v <= y.v}; }
  friend BoolArray operator>=(Number x, Number y) { return {x.v >= y.v}; }
  friend BoolArray operator==(Number x, Number y) { return {x.v == y.v}; }
  friend BoolArray is_nan(Number x) { return {x.v != x.v}; }
  friend Number select(BoolArray p, Number x, Number y) { return p.v ? x : y; }
  friend Number multiply_add(Number x, Number y, Number z) {
    return Fuses ? fused_multiply_add(x, y, z) : Number(x.v * y.v) + z;
  }
  friend Number fused_multiply_add(Number x, Number y, Number z) { return Number(std::fma(x.v, y.v, z.v)); }
  friend Number magnitude(Number x) { return Number(std::fabs(x.v)); }
  friend Number with_sign_of(Number x, Number y) { return Number(std::copysign(x.v, y.v)); }
  friend Number root(Number x) { return Number(std::sqrt(x.v)); }
  friend Number floor(Number x) { return Number(std::floor(x.v)); }
  friend Bits bits(Number x) {
    Bits i;
    std::memcpy(&i.v, &x.v, sizeof i.v);
    return i;
  }
  friend Number from_bits(Number x, Bits i) {
    std::memcpy(&x.v, &i.v, sizeof i.v);
    return x;
  }
  friend Number to_number(Number, Bits i) { return Number(static_cast<T>(i.v)); }
  friend Number power_of_two(Number n) { return scale(n.like(1), n); }
  friend Number scale(Number x, Number n) { return n.v == n.v ? Number(std::ldexp(x.v, static_cast<int>(n.v))) : n; }
  /// Larger arguments are not tested here.
  friend collet::elementary::Quarter<Number> reduce_quarter(Number x) { return reduce_small(x); }
};

using Wide = long double;

template <class T>
double ulps(T got, Wide want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  const T rounded = static_cast<T>(want);
  if (got == rounded) return std::signbit(got) == std::signbit(rounded) ? 0 : 1e30;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return 1e30;
  int e = 0;
  std::frexp(want, &e);
  const int digits = std::numeric_limits<T>::digits;
  const Wide unit = std::ldexp(Wide{1}, std::max(e - digits, std::numeric_limits<T>::min_exponent - digits));
  return static_cast<double>(std::fabs((static_cast<Wide>(got) - want) / unit));
}

/// Returns the special numbers within the bounds, then numbers of all magnitudes, then numbers of moderate size.
template <class T>
std::vector<T> arguments(Wide low, Wide high, size_t count) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> xs{T(0),
                    T(-0.0),
                    T(1),
                    T(-1),
                    T(0.5),
                    T(-0.5),
                    Limits::infinity(),
                    -Limits::infinity(),
                    Limits::quiet_NaN(),
                    Limits::min(),
                    Limits::denorm_min(),
                    Limits::max(),
                    Limits::lowest()};
  std::erase_if(xs, [&](T x) { return !std::isfinite(x) ? false : x < low || x > high; });
  std::mt19937_64 random(7);
  while (xs.size() < count) {
    T x = 0;
    const uint64_t bits = random();
    std::memcpy(&x, &bits, sizeof x);
    if (xs.size() % 2) x = static_cast<T>(std::ldexp(static_cast<double>(bits >> 11), -53) * 16 - 8);
    if (xs.size() % 16 == 3) x = static_cast<T>(low + (high - low) * std::ldexp(static_cast<Wide>(bits >> 11), -53));
    if (x >= low && x <= high) xs.push_back(x);
  }
  return xs;
}

Wide logistic(Wide x) {
  return 1 / (1 + std::exp(-x));
}
Wide half_exp(Wide x) {
  return std::exp(x) / 2;
}

/// Largest error that is allowed for f32 and for f64, in units in the last place.
struct Bound {
  double f32, f64;
};

template <class N>
struct Function {
  const char* name;
  N (*function)(N);
  Wide (*truth)(Wide);
  Bound bound;
  Wide low, high;
};

template <class T, bool Fuses>
class Functions {
 public:
  using N = Number<T, Fuses>;

  static std::vector<Function<N>> all() {
    namespace e = collet::elementary;
    const Wide top = sizeof(T) == 4 ? 100 : 750, bottom = sizeof(T) == 4 ? -110 : -750;
    const Wide most = std::numeric_limits<T>::max(), turns = e::small_limit(N(T(0)));
    return {{"exp", e::exp<N>, std::exp, {1.5, 1.5}, bottom, top},
            {"half_exp", e::half_exp<N>, half_exp, {1.5, 1.5}, bottom, top},
            {"expm1", e::expm1<N>, std::expm1, {2, 2}, bottom, top},
            {"log", e::log<N>, std::log, {1.5, 1.5}, -1, most},
            {"log1p", e::log1p<N>, std::log1p, {2, 2}, -2, most},
            {"logistic", e::logistic<N>, logistic, {2.5, 2.5}, bottom, top},
            {"tanh", e::tanh<N>, std::tanh, {2, 3}, -most, most},
            {"sinh", e::sinh<N>, std::sinh, {3, 3}, bottom, top},
            {"cosh", e::cosh<N>, std::cosh, {2.5, 2.5}, bottom, top},
            {"asinh", e::asinh<N>, std::asinh, {3.5, 3.5}, -most, most},
            {"acosh", e::acosh<N>, std::acosh, {3.5, 3.5}, 0, most},
            {"atanh", e::atanh<N>, std::atanh, {3.5, 3.5}, -1.5, 1.5},
            {"cbrt", e::cbrt<N>, std::cbrt, {1, 1}, -most, most},
            {"erf", e::erf<N>, std::erf, {2.5, 2}, -most, most},
            {"sin", e::sin<N>, std::sin, {1.5, 1.5}, -turns, turns},
            {"cos", e::cos<N>, std::cos, {1.5, 1.5}, -turns, turns},
            {"tan", e::tan<N>, std::tan, {3, 3}, -turns, turns},
            {"asin", e::asin<N>, std::asin, {2, 2}, -1.5, 1.5},
            {"acos", e::acos<N>, std::acos, {2, 2}, -1.5, 1.5}};
  }

  static N power(N x, N y) { return collet::elementary::power(x, y); }
  static N atan2(N x, N y) { return collet::elementary::atan2(x, y); }
  static N hypot(N x, N y) { return collet::elementary::hypot(x, y); }
};

template <class T>
void report(const char* name, bool fuses, double worst) {
  if (std::getenv("COLLET_MATH_REPORT"))
    std::printf("| %s | %s | %s | %.2f |\n", name, sizeof(T) == 4 ? "f32" : "f64", fuses ? "fused" : "plain", worst);
}

template <class T, bool Fuses>
void check_unary() {
  for (const auto& f : Functions<T, Fuses>::all()) {
    double worst = 0;
    T where = 0;
    for (T x : arguments<T>(f.low, f.high, size_t{1} << 17)) {
      const double error = ulps(f.function(Number<T, Fuses>(x)).v, f.truth(static_cast<Wide>(x)));
      if (error <= worst) continue;
      worst = error;
      where = x;
    }
    EXPECT_LE(worst, sizeof(T) == 4 ? f.bound.f32 : f.bound.f64) << f.name << " of " << where;
    report<T>(f.name, Fuses, worst);
  }
}

template <class T, bool Fuses>
void check_binary(const char* name, Number<T, Fuses> (*function)(Number<T, Fuses>, Number<T, Fuses>),
                  Wide (*truth)(Wide, Wide), double bound, const std::vector<std::pair<T, T>>& pairs) {
  double worst = 0;
  std::pair<T, T> where;
  for (const auto& [x, y] : pairs) {
    const double error = ulps(function(Number<T, Fuses>(x), Number<T, Fuses>(y)).v, truth(x, y));
    if (error <= worst) continue;
    worst = error;
    where = {x, y};
  }
  EXPECT_LE(worst, bound) << name << " of " << where.first << ", " << where.second;
  report<T>(name, Fuses, worst);
}

/// Returns all pairs of special numbers, then random pairs: of all magnitudes, and such that powers stay finite.
template <class T>
std::vector<std::pair<T, T>> pairs() {
  const T most = std::numeric_limits<T>::max();
  const std::vector<T> special = arguments<T>(-most, most, 0);
  std::vector<T> more = special;
  for (T x : {T(2), T(-2), T(3), T(-3), T(1) / 3, T(-8), T(1e30), T(0x1p24) + 1, T(0x1p53) + 2}) more.push_back(x);
  std::vector<std::pair<T, T>> out;
  for (T x : more)
    for (T y : more) out.emplace_back(x, y);
  const std::vector<T> x = arguments<T>(-most, most, size_t{1} << 16);
  for (size_t i = 100; i + 1 < x.size(); ++i) out.emplace_back(x[i], x[i + 1]);
  std::mt19937_64 random(3);
  const auto unit = [&] { return std::ldexp(static_cast<double>(random() >> 11), -53); };
  const double range = sizeof(T) == 4 ? 88 : 709;
  for (int i = 0; i < 1 << 16; ++i) {
    const double base = std::exp(std::ldexp(unit() - 0.5, static_cast<int>(random() % 8)));
    out.emplace_back(static_cast<T>(base), static_cast<T>((2 * unit() - 1) * range / std::fabs(std::log(base))));
  }
  return out;
}

template <class T, bool Fuses>
void check_all() {
  check_unary<T, Fuses>();
  using F = Functions<T, Fuses>;
  const auto all = pairs<T>();
  check_binary<T, Fuses>("power", F::power, std::pow, 2, all);
  check_binary<T, Fuses>("atan2", F::atan2, std::atan2, 2, all);
  check_binary<T, Fuses>("hypot", F::hypot, std::hypot, 2, all);
}

TEST(Elementary, FloatsWithFusedMultiplicationStayWithinTheirBounds) {
  check_all<float, true>();
}
TEST(Elementary, FloatsStayWithinTheirBounds) {
  check_all<float, false>();
}
TEST(Elementary, DoublesWithFusedMultiplicationStayWithinTheirBounds) {
  check_all<double, true>();
}
TEST(Elementary, DoublesStayWithinTheirBounds) {
  check_all<double, false>();
}

}  // namespace
