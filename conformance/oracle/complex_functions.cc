// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/complex_functions.h"

#include <cmath>
#include <optional>

#include "conformance/oracle/ball.h"

namespace collet::conformance {
namespace {

using hlo::Op;
using Complex = std::complex<double>;

struct Pair {
  Ball re, im;
};

Pair operator+(const Pair& a, const Pair& b) {
  return {a.re + b.re, a.im + b.im};
}
Pair operator-(const Pair& a, const Pair& b) {
  return {a.re - b.re, a.im - b.im};
}
Pair operator-(const Pair& a) {
  return {-a.re, -a.im};
}
Pair operator*(const Pair& a, const Pair& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Ball square_of_modulus(const Pair& z) {
  return z.re * z.re + z.im * z.im;
}
Pair operator/(const Pair& a, const Pair& b) {
  const Ball d = square_of_modulus(b);
  return {(a.re * b.re + a.im * b.im) / d, (a.im * b.re - a.re * b.im) / d};
}

// Makes balls of one precision, and numbers that are exact in it.
struct Precision {
  mpfr_prec_t bits;
  Ball number(double value) const { return {value, bits}; }
  Pair pair(Complex z) const { return {number(z.real()), number(z.imag())}; }
  Pair one() const { return pair(1); }
};

Pair exp(const Pair& z) {
  const Ball e = exp(z.re);
  return {e * cos(z.im), e * sin(z.im)};
}

Pair log(const Pair& z) {
  return {log(square_of_modulus(z)).half(), atan2(z.im, z.re)};
}

// The larger part is computed from a sum that does not cancel, the other part from 2 re im = y.
Pair sqrt(const Pair& z) {
  const Ball modulus = sqrt(square_of_modulus(z));
  if (z.re.sign() >= 0) {
    const Ball re = sqrt((modulus + z.re).half());
    return {re, z.im / (re + re)};
  }
  // At the branch cut -0 counts as a negative number.
  if (z.im.sign() == 0 && !z.im.is_exact()) return {Ball::unknown(z.re.bits()), Ball::unknown(z.re.bits())};
  const bool below = std::signbit(z.im.result().value);
  const Ball up = sqrt((modulus - z.re).half()), im = below ? -up : up;
  return {z.im / (im + im), im};
}

// sinh(z) / cosh(z) = (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y), where nothing cancels.
Pair tanh_of_parts(const Ball& x, const Ball& y) {
  const Ball s = sinh(x), c = cos(y), d = s * s + c * c;
  return {s * cosh(x) / d, sin(y) * c / d};
}

// Returns -i z; the next function returns i z.
Pair by_minus_i(const Pair& z) {
  return {z.im, -z.re};
}
Pair by_i(const Pair& z) {
  return {-z.im, z.re};
}

// asinh(z) = log(z + sqrt(z^2 + 1)).
Pair asinh(const Precision& make, const Pair& z) {
  return log(z + sqrt(z * z + make.one()));
}
// atanh(z) = (log(1 + z) - log(1 - z)) / 2.
Pair atanh(const Precision& make, const Pair& z) {
  const Pair twice = log(make.one() + z) - log(make.one() - z);
  return {twice.re.half(), twice.im.half()};
}
// acos(z) = -i log(z + i sqrt(1 - z^2)). The product of the roots of 1 - z and 1 + z is used for the square root,
// because its branch cuts are those of acos.
Pair acos(const Precision& make, const Pair& z) {
  return by_minus_i(log(z + by_i(sqrt(make.one() - z) * sqrt(make.one() + z))));
}
// acosh(z) = log(z + sqrt(z + 1) sqrt(z - 1)).
Pair acosh(const Precision& make, const Pair& z) {
  return log(z + sqrt(z + make.one()) * sqrt(z - make.one()));
}

// True for functions in which the sign of a computed sum decides the side of a branch cut. For operands on an axis
// their result is not specified.
bool has_cut_by_sums(Op op) {
  return op == Op::ACOS || op == Op::ACOSH || op == Op::ASIN || op == Op::ASINH || op == Op::ATANH ||
         op == Op::LOG_PLUS_ONE;
}

std::optional<Pair> value_of(const Precision& make, Op op, Complex first, Complex second) {
  const Pair a = make.pair(first);
  const auto b = [&] { return make.pair(second); };
  const Complex zero = 0;
  switch (op) {
    case Op::ABS:
      return Pair{sqrt(square_of_modulus(a)), make.number(0)};
    case Op::ADD:
      return a + b();
    case Op::SUBTRACT:
      return a - b();
    case Op::MULTIPLY:
      return a * b();
    case Op::DIVIDE:
      return a / b();
    case Op::ACOS:
      return acos(make, a);
    case Op::ACOSH:
      return acosh(make, a);
    case Op::ASIN:  // asin(z) = -i asinh(iz)
      return by_minus_i(asinh(make, by_i(a)));
    case Op::ASINH:
      return asinh(make, a);
    case Op::ATANH:
      return atanh(make, a);
    case Op::COSINE:
      return Pair{cos(a.re) * cosh(a.im), -(sin(a.re) * sinh(a.im))};
    case Op::COSH:
      return Pair{cosh(a.re) * cos(a.im), sinh(a.re) * sin(a.im)};
    case Op::EXPONENTIAL:
      return exp(a);
    case Op::EXPONENTIAL_MINUS_ONE:
      return exp(a) - make.one();
    case Op::LOG:
      return log(a);
    case Op::LOG_PLUS_ONE:
      return log(make.one() + a);
    case Op::LOGISTIC:
      return make.one() / (make.one() + exp(-a));
    case Op::POWER:
      if (first == zero || second == zero) return std::nullopt;
      return exp(b() * log(a));
    case Op::RSQRT:
      return make.one() / sqrt(a);
    case Op::SIGN: {
      const Ball modulus = sqrt(square_of_modulus(a));
      return Pair{a.re / modulus, a.im / modulus};
    }
    case Op::SINE:
      return Pair{sin(a.re) * cosh(a.im), cos(a.re) * sinh(a.im)};
    case Op::SINH:
      return Pair{sinh(a.re) * cos(a.im), cosh(a.re) * sin(a.im)};
    case Op::SQRT:
      return sqrt(a);
    case Op::TAN: {  // tan(z) = -i tanh(iz)
      const Pair t = tanh_of_parts(-a.im, a.re);
      return by_minus_i(t);
    }
    case Op::TANH:
      return tanh_of_parts(a.re, a.im);
    default:
      return std::nullopt;
  }
}

// The derivatives of the result f with respect to the operands; a few digits are sufficient.
struct Slopes {
  Complex first = 0, second = 0;
};
Slopes slopes_of(Op op, Complex z, Complex w, Complex f) {
  const Complex one = 1;
  switch (op) {
    case Op::ADD:
      return {one, one};
    case Op::SUBTRACT:
      return {one, -one};
    case Op::MULTIPLY:
      return {w, z};
    case Op::DIVIDE:
      return {one / w, -f / w};
    case Op::ACOS:
    case Op::ASIN:
      return {one / (std::sqrt(one - z) * std::sqrt(one + z))};
    case Op::ACOSH:
      return {one / (std::sqrt(z - one) * std::sqrt(z + one))};
    case Op::ASINH:
      return {one / std::sqrt(one + z * z)};
    case Op::ATANH:
      return {one / ((one - z) * (one + z))};
    case Op::COSINE:
      return {-std::sin(z)};
    case Op::COSH:
      return {std::sinh(z)};
    case Op::EXPONENTIAL:
      return {f};
    case Op::EXPONENTIAL_MINUS_ONE:
      return {f + one};
    case Op::LOG:
      return {one / z};
    case Op::LOG_PLUS_ONE:
      return {one / (one + z)};
    case Op::LOGISTIC:
      return {f * (one - f)};
    case Op::POWER:
      return {w * f / z, f * std::log(z)};
    case Op::RSQRT:
      return {-0.5 * f / z};
    case Op::SINE:
      return {std::cos(z)};
    case Op::SINH:
      return {std::cosh(z)};
    case Op::SQRT:
      return {0.5 / f};
    case Op::TAN:
      return {one + f * f};
    case Op::TANH:
      return {one - f * f};
    default:
      return {};  // the errors of abs and sign are not magnified
  }
}

void add_motion(ExactComplex& out, Complex z, Complex slope) {
  const double x = std::fabs(z.real()), y = std::fabs(z.imag()), re = std::fabs(slope.real()),
               im = std::fabs(slope.imag());
  out.real_slope += x * re + y * im;
  out.imaginary_slope += x * im + y * re;
}

bool is_finite(Complex z) {
  return std::isfinite(z.real()) && std::isfinite(z.imag());
}

ExactComplex exact_of(Op op, Complex a, Complex b) {
  constexpr mpfr_prec_t kFirst = 192, kLast = 1 << 13;
  constexpr long kWanted = 106;  // 53 bits for the value, and as many for the remainder
  ExactComplex out;
  if (!is_finite(a) || !is_finite(b)) return out;
  if (has_cut_by_sums(op) && (a.real() == 0 || a.imag() == 0)) return out;
  for (mpfr_prec_t bits = kFirst; bits <= kLast; bits *= 2) {
    const std::optional<Pair> value = value_of({bits}, op, a, b);
    if (!value || !value->re.is_finite() || !value->im.is_finite()) return out;
    if (!value->re.is_known_to(kWanted) || !value->im.is_known_to(kWanted)) continue;
    out.real = value->re.result();
    out.imaginary = value->im.result();
    const Complex rounded(out.real.value, out.imaginary.value);
    if (!is_finite(rounded)) return out;
    out.is_known = true;
    const Slopes slopes = slopes_of(op, a, b, rounded);
    add_motion(out, a, slopes.first);
    if (slopes.second != Complex(0)) add_motion(out, b, slopes.second);
    return out;
  }
  return out;
}

}  // namespace

bool has_exact_complex_function(Op op) {
  return value_of({64}, op, {0.5, 0.25}, {1, 0.5}).has_value();
}

void exact_complex_functions(Op op, std::span<const Complex> a, std::span<const Complex> b,
                             std::span<ExactComplex> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = exact_of(op, a[i], b.empty() ? Complex(1) : b[i]);
}

}  // namespace collet::conformance
