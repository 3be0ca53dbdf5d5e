// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpfr.h>

#include "conformance/oracle/functions.h"

/// \file
/// MPFR numbers with a bound of their error, so that the error of a formula is known even if terms cancel.

namespace collet::conformance {

/// An mpfr_t that is freed.
class Number {
 public:
  explicit Number(mpfr_prec_t bits) { mpfr_init2(value_, bits); }
  Number(const Number& other) : Number(mpfr_get_prec(other.value_)) { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Number& operator=(const Number& other) {
    if (this == &other) return *this;
    mpfr_set_prec(value_, mpfr_get_prec(other.value_));
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~Number() { mpfr_clear(value_); }
  operator mpfr_ptr() { return value_; }
  operator mpfr_srcptr() const { return value_; }

 private:
  mpfr_t value_;
};

/// A real number that lies within `radius` of `value`. Each operation rounds its value to nearest and its radius upward. An
/// infinite radius says that nothing is known: a quotient by what may be zero, a logarithm of what may be negative.
class Ball {
 public:
  /// The number itself, which must fit `bits`.
  Ball(double exact, mpfr_prec_t bits);

  /// The value, and what an f64 lacks of it.
  ExactResult result() const;
  /// Whether the value is right to 2^-bits of itself, or nearer to zero than any f64.
  bool is_known_to(long bits) const;
  bool is_finite() const { return mpfr_number_p(value_) != 0; }
  /// 1 and -1 where no number of the ball has another sign; else 0.
  int sign() const;
  bool is_exact() const { return mpfr_zero_p(radius_) != 0; }
  /// A number of which nothing is known.
  static Ball unknown(mpfr_prec_t bits);

  friend Ball operator+(const Ball& a, const Ball& b);
  friend Ball operator-(const Ball& a, const Ball& b);
  friend Ball operator*(const Ball& a, const Ball& b);
  friend Ball operator/(const Ball& a, const Ball& b);
  friend Ball operator-(const Ball& a);
  Ball half() const;
  mpfr_prec_t bits() const { return mpfr_get_prec(value_); }

  friend Ball sqrt(const Ball& a);
  friend Ball exp(const Ball& a);
  friend Ball log(const Ball& a);
  friend Ball sin(const Ball& a);
  friend Ball cos(const Ball& a);
  friend Ball sinh(const Ball& a);
  friend Ball cosh(const Ball& a);
  friend Ball atan2(const Ball& y, const Ball& x);

 private:
  explicit Ball(mpfr_prec_t bits);
  // After an operation that returned `ternary`: half a unit more, where it was not exact.
  void add_rounding(int ternary);
  void add_radius(const Number& more);
  void lose_all() { mpfr_set_inf(radius_, 1); }

  using Function = int(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  // Applies a function whose slope is at most 1.
  static Ball with_slope_of_one(const Ball& a, Function* function);
  // Applies a function to an exact operand. If the operand is not exact, the result is unknown.
  static Ball of_exact(const Ball& a, Function* function);

  Number value_, radius_;
};

}  // namespace collet::conformance
