// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/ball.h"

#include <algorithm>

namespace collet::conformance {
namespace {

constexpr mpfr_prec_t kRadiusBits = 32;
constexpr mpfr_rnd_t kNearest = MPFR_RNDN, kUp = MPFR_RNDU, kDown = MPFR_RNDD;

Number magnitude(const Number& value) {
  Number out(kRadiusBits);
  mpfr_abs(out, value, kUp);
  return out;
}

// Returns the least magnitude in a ball; 0 or less if the ball contains zero.
Number least_magnitude(const Number& value, const Number& radius) {
  Number out(kRadiusBits);
  mpfr_abs(out, value, kDown);
  mpfr_sub(out, out, radius, kDown);
  return out;
}

bool is_positive(const Number& value) {
  return !mpfr_nan_p(value) && mpfr_sgn(static_cast<mpfr_srcptr>(value)) > 0;
}

Number product(const Number& a, const Number& b) {
  Number out(kRadiusBits);
  // If a radius is infinite, the product of zero and infinity would be NaN; the result is unknown instead.
  if (mpfr_inf_p(a) || mpfr_inf_p(b)) {
    mpfr_set_inf(out, 1);
  } else {
    mpfr_mul(out, a, b, kUp);
  }
  return out;
}

Number quotient(const Number& a, const Number& b) {
  Number out(kRadiusBits);
  mpfr_div(out, a, b, kUp);
  return out;
}

}  // namespace

Ball::Ball(mpfr_prec_t bits) : value_(bits), radius_(kRadiusBits) {
  mpfr_set_zero(radius_, 1);
}

Ball::Ball(double exact, mpfr_prec_t bits) : Ball(bits) {
  mpfr_set_d(value_, exact, kNearest);
}

Ball Ball::unknown(mpfr_prec_t bits) {
  Ball out(bits);
  out.lose_all();
  return out;
}

void Ball::add_radius(const Number& more) {
  mpfr_add(radius_, radius_, more, kUp);
}

void Ball::add_rounding(int ternary) {
  if (ternary == 0 || !is_finite()) return;
  Number half_unit(kRadiusBits);
  const mpfr_exp_t exponent = mpfr_zero_p(value_) ? mpfr_get_emin() : mpfr_get_exp(value_);
  mpfr_set_ui_2exp(half_unit, 1, exponent - bits() - 1, kUp);
  add_radius(half_unit);
}

ExactResult Ball::result() const {
  ExactResult out{mpfr_get_d(value_, kNearest), 0};
  if (!mpfr_number_p(value_) || mpfr_inf_p(radius_)) return out;
  Number rest(bits());
  if (out.value - out.value != 0) return out;  // the value is beyond the largest f64
  mpfr_sub_d(rest, value_, out.value, kNearest);
  out.rest = mpfr_get_d(rest, kNearest);
  return out;
}

bool Ball::is_known_to(long wanted) const {
  if (!is_finite() || !mpfr_number_p(radius_)) return false;
  if (mpfr_zero_p(radius_)) return true;
  constexpr mpfr_exp_t kBelowAll = -1200;
  const mpfr_exp_t error = mpfr_get_exp(radius_), size = mpfr_zero_p(value_) ? kBelowAll : mpfr_get_exp(value_);
  return error + wanted < size || (error < kBelowAll && size <= kBelowAll);
}

int Ball::sign() const {
  if (!is_positive(least_magnitude(value_, radius_))) return 0;
  return mpfr_sgn(static_cast<mpfr_srcptr>(value_)) > 0 ? 1 : -1;
}

Ball operator+(const Ball& a, const Ball& b) {
  Ball out(a.bits());
  const int ternary = mpfr_add(out.value_, a.value_, b.value_, kNearest);
  mpfr_add(out.radius_, a.radius_, b.radius_, kUp);
  out.add_rounding(ternary);
  return out;
}

Ball operator-(const Ball& a) {
  Ball out = a;
  mpfr_neg(out.value_, out.value_, kNearest);
  return out;
}

Ball operator-(const Ball& a, const Ball& b) {
  return a + -b;
}

Ball operator*(const Ball& a, const Ball& b) {
  Ball out(a.bits());
  const int ternary = mpfr_mul(out.value_, a.value_, b.value_, kNearest);
  // |ab - xy| <= |a| |b - y| + |b| |a - x| + |a - x| |b - y|.
  out.add_radius(product(magnitude(a.value_), b.radius_));
  out.add_radius(product(magnitude(b.value_), a.radius_));
  out.add_radius(product(a.radius_, b.radius_));
  out.add_rounding(ternary);
  return out;
}

Ball operator/(const Ball& a, const Ball& b) {
  Ball out(a.bits());
  const Number least = least_magnitude(b.value_, b.radius_);
  const int ternary = mpfr_div(out.value_, a.value_, b.value_, kNearest);
  if (!is_positive(least)) {
    out.lose_all();
    return out;
  }
  out.add_rounding(ternary);
  // |a / b - x / y| <= (|a - x| + |a / b| |b - y|) / |y|, and |a / b| is at most the rounded quotient and its rounding.
  Number top = magnitude(out.value_);
  mpfr_add(top, top, out.radius_, kUp);
  top = product(top, b.radius_);
  mpfr_add(top, top, a.radius_, kUp);
  out.add_radius(quotient(top, least));
  return out;
}

Ball Ball::half() const {
  Ball out = *this;
  mpfr_div_2ui(out.value_, out.value_, 1, kNearest);
  mpfr_div_2ui(out.radius_, out.radius_, 1, kUp);
  return out;
}

// The slope of sqrt in the ball is at most 1 / (2 sqrt(least magnitude)).
Ball sqrt(const Ball& a) {
  Ball out(a.bits());
  const int ternary = mpfr_sqrt(out.value_, a.value_, kNearest);
  if (mpfr_zero_p(a.radius_)) {
    out.add_rounding(ternary);
    return out;
  }
  Number least = least_magnitude(a.value_, a.radius_);
  if (a.sign() <= 0) {
    out.lose_all();
    return out;
  }
  mpfr_sqrt(least, least, kDown);
  out.add_radius(quotient(a.radius_, least));
  out.add_rounding(ternary);
  return out;
}

// e^(a + r) - e^a <= 2 r e^a for r <= 1.
Ball exp(const Ball& a) {
  Ball out(a.bits());
  const int ternary = mpfr_exp(out.value_, a.value_, kNearest);
  if (mpfr_cmp_ui(a.radius_, 1) > 0) {
    out.lose_all();
    return out;
  }
  out.add_rounding(ternary);
  Number most = magnitude(out.value_);
  mpfr_add(most, most, out.radius_, kUp);
  mpfr_mul_2ui(most, most, 1, kUp);
  out.add_radius(product(most, a.radius_));
  return out;
}

// The slope of log in the ball is at most 1 / (least magnitude).
Ball log(const Ball& a) {
  Ball out(a.bits());
  const int ternary = mpfr_log(out.value_, a.value_, kNearest);
  if (a.sign() <= 0) {
    out.lose_all();
    return out;
  }
  out.add_radius(quotient(a.radius_, least_magnitude(a.value_, a.radius_)));
  out.add_rounding(ternary);
  return out;
}

Ball Ball::with_slope_of_one(const Ball& a, Function* function) {
  Ball out(a.bits());
  const int ternary = function(out.value_, a.value_, kNearest);
  out.add_radius(a.radius_);
  out.add_rounding(ternary);
  return out;
}

Ball Ball::of_exact(const Ball& a, Function* function) {
  Ball out(a.bits());
  const int ternary = function(out.value_, a.value_, kNearest);
  if (!mpfr_zero_p(a.radius_)) out.lose_all();
  out.add_rounding(ternary);
  return out;
}

Ball sin(const Ball& a) {
  return Ball::with_slope_of_one(a, mpfr_sin);
}

Ball cos(const Ball& a) {
  return Ball::with_slope_of_one(a, mpfr_cos);
}

Ball sinh(const Ball& a) {
  return Ball::of_exact(a, mpfr_sinh);
}

Ball cosh(const Ball& a) {
  return Ball::of_exact(a, mpfr_cosh);
}

// The slopes of atan2 are at most 1 / |(x, y)|, and |(x, y)| is at least the larger of the two least magnitudes. If a
// ball crosses the branch cut, the result is unknown.
Ball atan2(const Ball& y, const Ball& x) {
  Ball out(x.bits());
  const int ternary = mpfr_atan2(out.value_, y.value_, x.value_, kNearest);
  out.add_rounding(ternary);
  if (mpfr_zero_p(x.radius_) && mpfr_zero_p(y.radius_)) return out;
  if (x.sign() <= 0 && y.sign() == 0) {
    out.lose_all();
    return out;
  }
  const Number across = least_magnitude(x.value_, x.radius_), up = least_magnitude(y.value_, y.radius_);
  Number top(kRadiusBits);
  mpfr_add(top, x.radius_, y.radius_, kUp);
  const bool wide = mpfr_cmp(static_cast<mpfr_srcptr>(across), static_cast<mpfr_srcptr>(up)) > 0;
  out.add_radius(quotient(top, wide ? across : up));
  return out;
}

}  // namespace collet::conformance
