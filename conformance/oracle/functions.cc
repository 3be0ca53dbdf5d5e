// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/functions.h"

#include <bit>
#include <cmath>
#include <limits>

#include "conformance/oracle/ball.h"

namespace collet::conformance {
namespace {

using hlo::Op;

// Precision in bits: enough for a value of 53 bits and a remainder with a relative error of 2^-100.
constexpr mpfr_prec_t kPrecision = 160;
constexpr mpfr_rnd_t kNearest = MPFR_RNDN;

using Unary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
using Binary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

// Computes 1 / (1 + e^-x). If the addition loses digits, the result is 1; otherwise each step has an error of a few
// units of the 160th bit.
int logistic(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t mode) {
  mpfr_neg(r, x, mode);
  mpfr_exp(r, r, mode);
  mpfr_add_ui(r, r, 1, mode);
  return mpfr_ui_div(r, 1, r, mode);
}

// Handles -0 separately, because MPFR returns +infinity for it.
int rsqrt(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t mode) {
  if (!mpfr_zero_p(x)) return mpfr_rec_sqrt(r, x, mode);
  mpfr_set_inf(r, mpfr_signbit(x) ? -1 : 1);
  return 0;
}

Unary unary_of(Op op) {
  switch (op) {
    case Op::ACOS:
      return mpfr_acos;
    case Op::ACOSH:
      return mpfr_acosh;
    case Op::ASIN:
      return mpfr_asin;
    case Op::ASINH:
      return mpfr_asinh;
    case Op::ATANH:
      return mpfr_atanh;
    case Op::CBRT:
      return mpfr_cbrt;
    case Op::COSINE:
      return mpfr_cos;
    case Op::COSH:
      return mpfr_cosh;
    case Op::ERF:
      return mpfr_erf;
    case Op::EXPONENTIAL:
      return mpfr_exp;
    case Op::EXPONENTIAL_MINUS_ONE:
      return mpfr_expm1;
    case Op::LOG:
      return mpfr_log;
    case Op::LOG_PLUS_ONE:
      return mpfr_log1p;
    case Op::LOGISTIC:
      return logistic;
    case Op::RSQRT:
      return rsqrt;
    case Op::SINE:
      return mpfr_sin;
    case Op::SINH:
      return mpfr_sinh;
    case Op::SQRT:
      return mpfr_sqrt;
    case Op::TAN:
      return mpfr_tan;
    case Op::TANH:
      return mpfr_tanh;
    default:
      return nullptr;
  }
}

Binary binary_of(Op op) {
  switch (op) {
    case Op::ATAN2:
      return mpfr_atan2;
    case Op::POWER:
      return mpfr_pow;
    case Op::ADD:
      return mpfr_add;
    case Op::SUBTRACT:
      return mpfr_sub;
    case Op::MULTIPLY:
      return mpfr_mul;
    case Op::DIVIDE:
      return mpfr_div;
    default:
      return nullptr;
  }
}

}  // namespace

double ExactResult::rounded_to_odd() const {
  const auto bits = std::bit_cast<uint64_t>(value);
  if (rest == 0 || !std::isfinite(value) || bits & 1) return value;
  // If the last bit is not set, the neighbour on the side of the exact result has it set.
  return std::nextafter(value, rest > 0 ? HUGE_VAL : -HUGE_VAL);
}

double ExactResult::to_store_as(hlo::Type type) const {
  return hlo::real_type(type) == hlo::Type::F64 ? value : rounded_to_odd();
}

bool has_exact_function(Op op) {
  return unary_of(op) != nullptr || binary_of(op) != nullptr;
}

void exact_functions(Op op, std::span<const double> a, std::span<const double> b, std::span<ExactResult> out) {
  static thread_local Number x(kPrecision), y(kPrecision), result(kPrecision);
  const Unary unary = unary_of(op);
  const Binary binary = binary_of(op);
  for (size_t i = 0; i < out.size(); ++i) {
    mpfr_set_d(x, a[i], kNearest);
    if (unary != nullptr) {
      unary(result, x, kNearest);
    } else {
      mpfr_set_d(y, b[i], kNearest);
      binary(result, x, y, kNearest);
    }
    out[i].value = mpfr_get_d(result, kNearest);
    out[i].rest = 0;
    if (!std::isfinite(out[i].value)) continue;
    mpfr_sub_d(result, result, out[i].value, kNearest);
    out[i].rest = mpfr_get_d(result, kNearest);
  }
}

}  // namespace collet::conformance
