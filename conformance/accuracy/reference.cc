// SPDX-License-Identifier: Apache-2.0
#include "conformance/accuracy/reference.h"

#include <cmath>

namespace collet::conformance {
namespace {

using hlo::Op;

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}
double rsqrt(double x) {
  return 1 / std::sqrt(x);
}

constexpr Op kFunctions[] = {Op::ACOS,
                             Op::ACOSH,
                             Op::ASIN,
                             Op::ASINH,
                             Op::ATANH,
                             Op::CBRT,
                             Op::COSH,
                             Op::COSINE,
                             Op::ERF,
                             Op::EXPONENTIAL,
                             Op::EXPONENTIAL_MINUS_ONE,
                             Op::LOG,
                             Op::LOG_PLUS_ONE,
                             Op::LOGISTIC,
                             Op::RSQRT,
                             Op::SINE,
                             Op::SINH,
                             Op::SQRT,
                             Op::TAN,
                             Op::TANH};

}  // namespace

std::span<const Op> near_functions() {
  return kFunctions;
}

double (*near_function(Op op))(double) {
  switch (op) {
    case Op::ACOS:
      return std::acos;
    case Op::ACOSH:
      return std::acosh;
    case Op::ASIN:
      return std::asin;
    case Op::ASINH:
      return std::asinh;
    case Op::ATANH:
      return std::atanh;
    case Op::CBRT:
      return std::cbrt;
    case Op::COSH:
      return std::cosh;
    case Op::COSINE:
      return std::cos;
    case Op::ERF:
      return std::erf;
    case Op::EXPONENTIAL:
      return std::exp;
    case Op::EXPONENTIAL_MINUS_ONE:
      return std::expm1;
    case Op::LOG:
      return std::log;
    case Op::LOG_PLUS_ONE:
      return std::log1p;
    case Op::LOGISTIC:
      return logistic;
    case Op::RSQRT:
      return rsqrt;
    case Op::SINE:
      return std::sin;
    case Op::SINH:
      return std::sinh;
    case Op::SQRT:
      return std::sqrt;
    case Op::TAN:
      return std::tan;
    case Op::TANH:
      return std::tanh;
    default:
      return nullptr;
  }
}

}  // namespace collet::conformance
