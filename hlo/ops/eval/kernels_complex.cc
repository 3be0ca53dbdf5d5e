// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>

#include <collet/complex_functions.hpp>

#include "hlo/ops/eval/kernels.h"

namespace collet::hlo::eval {
namespace {

// c64 is computed in double, c128 in long double.
template <typename F, typename R>
void run(const KernelArgs& k) {
  using C = std::complex<R>;
  auto* a = static_cast<const Cx*>(k.in[0]);
  auto* b = static_cast<const Cx*>(k.in[1] ? k.in[1] : k.in[0]);
  auto* out = static_cast<Cx*>(k.out);
  for (int64_t i = 0; i < k.n; ++i) {
    const C result = F::of(C(a[i].real(), a[i].imag()), C(b[i].real(), b[i].imag()));
    out[i] = Cx(static_cast<double>(result.real()), static_cast<double>(result.imag()));
  }
}

// Returns the square of a and its rounding error.
template <typename R>
void square(R a, R& high, R& low) {
  high = a * a;
  low = std::fma(a, a, -high);
}

// log|1 + z| is half of log1p(x * (2 + x) + y * y), where the argument is computed with extra precision.
template <typename R>
std::complex<R> log1p(std::complex<R> z) {
  const R x = z.real(), y = z.imag();
  const R angle = std::atan2(y, 1 + x);
  if (!(std::fabs(x) < 4) || !(std::fabs(y) < 4)) return {std::log(std::hypot(1 + x, y)), angle};
  R xx, xl, yy, yl;
  square(x, xx, xl);
  square(y, yy, yl);
  // Adds 2x + x*x + y*y from the largest term to the smallest, with the rounding errors of each addition.
  R sum = 2 * x, error = xl + yl;
  for (R term : {xx, yy}) {
    const R next = sum + term;
    const R part = next - sum;
    error += (sum - (next - part)) + (term - part);
    sum = next;
  }
  // If |1 + z| is small, the sum is near -1, and 1 + x is exact.
  if (sum < R(-0.5)) return {std::log(std::hypot(1 + x, y)), angle};
  return {std::log1p(sum + error) / 2, angle};
}

/// A number of the host, as <collet/complex_functions.hpp> asks for it.
template <typename R>
struct Number : elementary::Operators<Number<R>> {
  using Mask = bool;

  R value;

  Number(R x) : value(x) {}  // NOLINT: numbers are values
  Number like(double c) const { return static_cast<R>(c); }
  bool wide() const { return sizeof(R) > sizeof(double); }
  friend Number operator+(Number x, Number y) { return x.value + y.value; }
  friend Number operator-(Number x, Number y) { return x.value - y.value; }
  friend Number operator*(Number x, Number y) { return x.value * y.value; }
  friend Number operator/(Number x, Number y) { return x.value / y.value; }
  friend Number operator-(Number x) { return -x.value; }
  friend bool operator<(Number x, Number y) { return x.value < y.value; }
  friend bool operator>(Number x, Number y) { return x.value > y.value; }
  friend bool operator<=(Number x, Number y) { return x.value <= y.value; }
  friend bool operator>=(Number x, Number y) { return x.value >= y.value; }
  friend bool operator==(Number x, Number y) { return x.value == y.value; }
  friend bool is_nan(Number x) { return std::isnan(x.value); }
  friend Number select(bool p, Number x, Number y) { return p ? x : y; }
  friend Number multiply_add(Number x, Number y, Number z) { return x.value * y.value + z.value; }
  friend Number magnitude(Number x) { return std::fabs(x.value); }
  friend Number with_sign_of(Number x, Number y) { return std::copysign(x.value, y.value); }
  friend Number length(Number x, Number y) { return std::hypot(x.value, y.value); }
  friend Number angle(Number y, Number x) { return std::atan2(y.value, x.value); }
  friend elementary::SineAndCosine<Number> sine_and_cosine_of(Number x) {
    return {std::sin(x.value), std::cos(x.value)};
  }
  friend Number compute(elementary::Function f, Number x) {
    switch (f) {
      case elementary::Function::kExp:
        return std::exp(x.value);
      case elementary::Function::kExpm1:
        return std::expm1(x.value);
      case elementary::Function::kLog:
        return std::log(x.value);
      case elementary::Function::kLog1p:
        return std::log1p(x.value);
      case elementary::Function::kSin:
        return std::sin(x.value);
      case elementary::Function::kSinh:
        return std::sinh(x.value);
      case elementary::Function::kCosh:
        return std::cosh(x.value);
    }
    return x;
  }
};

template <typename R>
elementary::Complex<Number<R>> pair(std::complex<R> z) {
  return {z.real(), z.imag()};
}
template <typename R>
std::complex<R> joined(elementary::Complex<Number<R>> z) {
  return {z.re.value, z.im.value};
}

template <typename R>
std::complex<R> atan2(std::complex<R> y, std::complex<R> x) {
  const std::complex<R> i(0, 1);
  return -i * std::log((x + i * y) / std::sqrt(x * x + y * y));
}

#define COLLET_FUNCTION(Name, expression)    \
  struct Name {                              \
    template <typename C>                    \
    static C of(C a, [[maybe_unused]] C b) { \
      return expression;                     \
    }                                        \
  };

COLLET_FUNCTION(Add, a + b)
COLLET_FUNCTION(Subtract, a - b)
COLLET_FUNCTION(Multiply, a* b)
COLLET_FUNCTION(Divide, joined(elementary::divide(pair(a), pair(b))))
COLLET_FUNCTION(Negate, -a)
COLLET_FUNCTION(Acos, std::acos(a))
COLLET_FUNCTION(Acosh, std::acosh(a))
COLLET_FUNCTION(Asin, std::asin(a))
COLLET_FUNCTION(Asinh, std::asinh(a))
COLLET_FUNCTION(Atanh, std::atanh(a))
COLLET_FUNCTION(Atan2, atan2(a, b))
COLLET_FUNCTION(Cos, std::cos(a))
COLLET_FUNCTION(Cosh, std::cosh(a))
COLLET_FUNCTION(Exp, std::exp(a))
COLLET_FUNCTION(Expm1, joined(elementary::exponential_minus_one(pair(a))))
COLLET_FUNCTION(Log, std::log(a))
COLLET_FUNCTION(Log1p, log1p(a))
COLLET_FUNCTION(Logistic, joined(elementary::logistic_of(pair(a))))
COLLET_FUNCTION(Power, joined(elementary::power_of(pair(a), pair(b))))
COLLET_FUNCTION(Rsqrt, joined(elementary::divide(pair(C(1)), pair(std::sqrt(a)))))
COLLET_FUNCTION(Sign, joined(elementary::direction(pair(a))))
COLLET_FUNCTION(Sin, std::sin(a))
COLLET_FUNCTION(Sinh, std::sinh(a))
COLLET_FUNCTION(Sqrt, std::sqrt(a))
COLLET_FUNCTION(Tan, std::tan(a))
COLLET_FUNCTION(Tanh, std::tanh(a))
#undef COLLET_FUNCTION

template <typename R>
void abs(const KernelArgs& k) {
  auto* a = static_cast<const Cx*>(k.in[0]);
  auto* out = static_cast<double*>(k.out);
  for (int64_t i = 0; i < k.n; ++i)
    out[i] = static_cast<double>(std::hypot(static_cast<R>(a[i].real()), static_cast<R>(a[i].imag())));
}

void real(const KernelArgs& k) {
  for (int64_t i = 0; i < k.n; ++i) static_cast<double*>(k.out)[i] = static_cast<const Cx*>(k.in[0])[i].real();
}
void imag(const KernelArgs& k) {
  for (int64_t i = 0; i < k.n; ++i) static_cast<double*>(k.out)[i] = static_cast<const Cx*>(k.in[0])[i].imag();
}

template <typename R>
Kernel find(Op op) {
  switch (op) {
    case Op::ABS:
      return abs<R>;
    case Op::ADD:
      return run<Add, R>;
    case Op::SUBTRACT:
      return run<Subtract, R>;
    case Op::MULTIPLY:
      return run<Multiply, R>;
    case Op::DIVIDE:
      return run<Divide, R>;
    case Op::NEGATE:
      return run<Negate, double>;
    case Op::SIGN:
      return run<Sign, R>;
    case Op::SQRT:
      return run<Sqrt, R>;
#define COLLET_MATH_FUNCTION(OP, Name) \
  case Op::OP:                         \
    return run<Name, R>;
#include "hlo/ops/eval/functions.def"
    default:
      return nullptr;
  }
}

}  // namespace

Kernel complex_kernel(Op op, bool c128) {
  if (op == Op::REAL) return real;
  if (op == Op::IMAG) return imag;
  return c128 ? find<long double>(op) : find<double>(op);
}

}  // namespace collet::hlo::eval
