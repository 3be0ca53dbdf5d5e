// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>

#include "hlo/ops/eval/kernels.h"

namespace collet::hlo::eval {
namespace {

// F::of<R>(a, b) computes in R: double for types narrower than f64, long double for f64, so that the result is
// correctly rounded by the single rounding that follows.
template <typename F, typename R>
void run(const KernelArgs& k) {
  auto* a = static_cast<const double*>(k.in[0]);
  auto* b = static_cast<const double*>(k.in[1] ? k.in[1] : k.in[0]);
  auto* out = static_cast<double*>(k.out);
  for (int64_t i = 0; i < k.n; ++i) out[i] = static_cast<double>(F::of(static_cast<R>(a[i]), static_cast<R>(b[i])));
}

#define COLLET_FUNCTION(Name, expression)                     \
  struct Name {                                               \
    template <typename R>                                     \
    static R of([[maybe_unused]] R a, [[maybe_unused]] R b) { \
      return expression;                                      \
    }                                                         \
  };

template <typename R>
R sign(R a) {
  return a > 0 ? R(1) : a < 0 ? R(-1) : a;  // keeps zeros and NaN
}
template <typename R>
R maximum(R a, R b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <typename R>
R minimum(R a, R b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename R>
R round_even(R a) {
  return std::nearbyint(a);  // the rounding mode is never changed
}

COLLET_FUNCTION(Abs, std::fabs(a))
COLLET_FUNCTION(Negate, -a)
COLLET_FUNCTION(Identity, a)
COLLET_FUNCTION(Zero, R(0))
COLLET_FUNCTION(Ceil, std::ceil(a))
COLLET_FUNCTION(Floor, std::floor(a))
COLLET_FUNCTION(RoundAway, std::round(a))
COLLET_FUNCTION(RoundEven, round_even(a))
COLLET_FUNCTION(Sign, sign(a))
COLLET_FUNCTION(Sqrt, std::sqrt(a))
COLLET_FUNCTION(Add, a + b)
COLLET_FUNCTION(Subtract, a - b)
COLLET_FUNCTION(Multiply, a* b)
COLLET_FUNCTION(Divide, a / b)
COLLET_FUNCTION(Remainder, std::fmod(a, b))
COLLET_FUNCTION(Maximum, maximum(a, b))
COLLET_FUNCTION(Minimum, minimum(a, b))

COLLET_FUNCTION(Acos, std::acos(a))
COLLET_FUNCTION(Acosh, std::acosh(a))
COLLET_FUNCTION(Asin, std::asin(a))
COLLET_FUNCTION(Asinh, std::asinh(a))
COLLET_FUNCTION(Atanh, std::atanh(a))
COLLET_FUNCTION(Atan2, std::atan2(a, b))
COLLET_FUNCTION(Cbrt, std::cbrt(a))
COLLET_FUNCTION(Cos, std::cos(a))
COLLET_FUNCTION(Cosh, std::cosh(a))
COLLET_FUNCTION(Erf, std::erf(a))
COLLET_FUNCTION(Exp, std::exp(a))
COLLET_FUNCTION(Expm1, std::expm1(a))
COLLET_FUNCTION(Log, std::log(a))
COLLET_FUNCTION(Log1p, std::log1p(a))
COLLET_FUNCTION(Logistic, R(1) / (R(1) + std::exp(-a)))
// Powers as C's annex F defines them. The special cases also cover a signalling NaN, for which std::pow returns NaN, and powers of
// infinity, for which powl of glibc fails: it says that the power of -infinity to -2^63 is infinity.
template <typename R>
R power(R a, R b) {
  if (b == 0 || a == 1) return R(1);
  if (!std::isinf(a) || std::isnan(b) || std::isinf(b)) return std::pow(a, b);
  const R size = b > 0 ? std::numeric_limits<R>::infinity() : R(0);
  return std::signbit(a) && std::fabs(std::fmod(b, R(2))) == 1 ? -size : size;
}
COLLET_FUNCTION(Power, power(a, b))
COLLET_FUNCTION(Rsqrt, R(1) / std::sqrt(a))
COLLET_FUNCTION(Sin, std::sin(a))
COLLET_FUNCTION(Sinh, std::sinh(a))
COLLET_FUNCTION(Tan, std::tan(a))
COLLET_FUNCTION(Tanh, std::tanh(a))
#undef COLLET_FUNCTION

void is_finite(const KernelArgs& k) {
  auto* a = static_cast<const double*>(k.in[0]);
  auto* out = static_cast<int64_t*>(k.out);
  for (int64_t i = 0; i < k.n; ++i) out[i] = std::isfinite(a[i]);
}

void clamp(const KernelArgs& k) {
  auto* low = static_cast<const double*>(k.in[0]);
  auto* value = static_cast<const double*>(k.in[1]);
  auto* high = static_cast<const double*>(k.in[2]);
  auto* out = static_cast<double*>(k.out);
  for (int64_t i = 0; i < k.n; ++i) out[i] = minimum(maximum(low[i], value[i]), high[i]);
}

void make_complex(const KernelArgs& k) {
  auto* a = static_cast<const double*>(k.in[0]);
  auto* b = static_cast<const double*>(k.in[1]);
  auto* out = static_cast<Cx*>(k.out);
  for (int64_t i = k.n - 1; i >= 0; --i) out[i] = Cx(a[i], b[i]);
}

// Basic arithmetic of doubles is correctly rounded; in long double it would be rounded twice.
Kernel basic(Op op) {
  switch (op) {
    case Op::ABS:
      return run<Abs, double>;
    case Op::NEGATE:
      return run<Negate, double>;
    case Op::REAL:
      return run<Identity, double>;
    case Op::IMAG:
      return run<Zero, double>;
    case Op::CEIL:
      return run<Ceil, double>;
    case Op::FLOOR:
      return run<Floor, double>;
    case Op::ROUND_NEAREST_AFZ:
      return run<RoundAway, double>;
    case Op::ROUND_NEAREST_EVEN:
      return run<RoundEven, double>;
    case Op::SIGN:
      return run<Sign, double>;
    case Op::SQRT:
      return run<Sqrt, double>;
    case Op::ADD:
      return run<Add, double>;
    case Op::SUBTRACT:
      return run<Subtract, double>;
    case Op::MULTIPLY:
      return run<Multiply, double>;
    case Op::DIVIDE:
      return run<Divide, double>;
    case Op::REMAINDER:
      return run<Remainder, double>;
    case Op::MAXIMUM:
      return run<Maximum, double>;
    case Op::MINIMUM:
      return run<Minimum, double>;
    case Op::CLAMP:
      return clamp;
    case Op::IS_FINITE:
      return is_finite;
    case Op::COMPLEX:
      return make_complex;
    default:
      return nullptr;
  }
}

template <typename R>
Kernel function(Op op) {
  switch (op) {
    case Op::CBRT:
      return run<Cbrt, R>;
    case Op::ERF:
      return run<Erf, R>;
#define COLLET_MATH_FUNCTION(OP, Name) \
  case Op::OP:                         \
    return run<Name, R>;
#include "hlo/ops/eval/functions.def"
    default:
      return nullptr;
  }
}

}  // namespace

Kernel real_kernel(Op op, bool f64) {
  if (Kernel kernel = basic(op)) return kernel;
  return f64 ? function<long double>(op) : function<double>(op);
}

}  // namespace collet::hlo::eval
