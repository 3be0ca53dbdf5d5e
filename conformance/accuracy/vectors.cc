// SPDX-License-Identifier: Apache-2.0
// This file is compiled with -ffast-math if the C library has vector functions (libmvec), so it contains only loops
// over these functions.
#include <cmath>

#include "conformance/accuracy/reference.h"

namespace collet::conformance {
namespace {

using hlo::Op;

// The compiler makes one clone for each vector width; the one for this machine is selected when the program is loaded.
#if defined(COLLET_VECTOR_FUNCTIONS)
#define COLLET_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define COLLET_CLONES
#endif

#define COLLET_LOOP(name, expression)                                              \
  COLLET_CLONES void name##_of_each(const double* in, double* out, size_t count) { \
    for (size_t i = 0; i < count; ++i) {                                           \
      const double x = in[i];                                                      \
      out[i] = expression;                                                         \
    }                                                                              \
  }

COLLET_LOOP(acos, std::acos(x))
COLLET_LOOP(acosh, std::acosh(x))
COLLET_LOOP(asin, std::asin(x))
COLLET_LOOP(asinh, std::asinh(x))
COLLET_LOOP(atanh, std::atanh(x))
COLLET_LOOP(cbrt, std::cbrt(x))
COLLET_LOOP(cosh, std::cosh(x))
COLLET_LOOP(cos, std::cos(x))
COLLET_LOOP(erf, std::erf(x))
COLLET_LOOP(exp, std::exp(x))
COLLET_LOOP(expm1, std::expm1(x))
COLLET_LOOP(log, std::log(x))
COLLET_LOOP(log1p, std::log1p(x))
COLLET_LOOP(sin, std::sin(x))
COLLET_LOOP(sinh, std::sinh(x))
COLLET_LOOP(tan, std::tan(x))
COLLET_LOOP(tanh, std::tanh(x))
COLLET_LOOP(logistic, 1 / (1 + std::exp(-x)))
COLLET_LOOP(rsqrt, 1 / std::sqrt(x))
COLLET_LOOP(sqrt, std::sqrt(x))

}  // namespace

void near_values(Op op, const double* in, double* out, size_t count) {
  switch (op) {
    case Op::ACOS:
      return acos_of_each(in, out, count);
    case Op::ACOSH:
      return acosh_of_each(in, out, count);
    case Op::ASIN:
      return asin_of_each(in, out, count);
    case Op::ASINH:
      return asinh_of_each(in, out, count);
    case Op::ATANH:
      return atanh_of_each(in, out, count);
    case Op::CBRT:
      return cbrt_of_each(in, out, count);
    case Op::COSH:
      return cosh_of_each(in, out, count);
    case Op::COSINE:
      return cos_of_each(in, out, count);
    case Op::ERF:
      return erf_of_each(in, out, count);
    case Op::EXPONENTIAL:
      return exp_of_each(in, out, count);
    case Op::EXPONENTIAL_MINUS_ONE:
      return expm1_of_each(in, out, count);
    case Op::LOG:
      return log_of_each(in, out, count);
    case Op::LOG_PLUS_ONE:
      return log1p_of_each(in, out, count);
    case Op::SINE:
      return sin_of_each(in, out, count);
    case Op::SINH:
      return sinh_of_each(in, out, count);
    case Op::TAN:
      return tan_of_each(in, out, count);
    case Op::TANH:
      return tanh_of_each(in, out, count);
    case Op::LOGISTIC:
      return logistic_of_each(in, out, count);
    case Op::RSQRT:
      return rsqrt_of_each(in, out, count);
    case Op::SQRT:
      return sqrt_of_each(in, out, count);
    default:
      return;
  }
}

}  // namespace collet::conformance
