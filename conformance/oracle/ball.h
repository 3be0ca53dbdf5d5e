// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpfr.h>

#include "conformance/oracle/functions.h"

/// \file
/// MPFR numbers with a bound on their error, so that the error of a formula is known even if terms cancel.

namespace collet::conformance {

/// Owns an mpfr_t.
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

/// A real number that is within `radius` of `value`. Each operation rounds its value to nearest and its radius upward.
/// With an infinite radius nothing is known about the number, for example for a quotient whose divisor may be zero, or
/// a logarithm of a number that may be negative.
class Ball {
 public:
  /// Makes an exact ball; the number must fit `bits`.
  Ball(double exact, mpfr_prec_t bits);

  /// Returns the value as an f64 and the remainder that the f64 lacks.
  ExactResult result() const;
  /// True if the relative error is at most 2^-bits, or if the number is closer to zero than any f64.
  bool is_known_to(long bits) const;
  bool is_finite() const { return mpfr_number_p(value_) != 0; }
  /// Returns 1 or -1 if all numbers of the ball have that sign; else 0.
  int sign() const;
  bool is_exact() const { return mpfr_zero_p(radius_) != 0; }
  /// Returns a ball about which nothing is known.
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
  // After an operation that returned `ternary`: adds half a unit to the radius if it was not exact.
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
