// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "hlo/passes/expand/float_bits.h"

/// \file
/// Floating-point expressions over arrays, so that expansions read like the formulas they are.

namespace collet::hlo {

/// An array of floats; operators work element by element, numbers stand for arrays of that number.
struct Real {
  Builder* b = nullptr;
  InstrId id = InstrId::None;

  Real() = default;
  Real(Builder& builder, InstrId value) : b(&builder), id(value) {}
  Type type() const { return b->type(id); }
  Real like(double v) const { return {*b, b->like(id, v)}; }
  Real of(InstrId other) const { return {*b, other}; }
};
/// An array of truth values.
struct Truth {
  Builder* b = nullptr;
  InstrId id = InstrId::None;
};

inline Real operator+(Real x, Real y) {
  return x.of(x.b->add(x.id, y.id));
}
inline Real operator-(Real x, Real y) {
  return x.of(x.b->sub(x.id, y.id));
}
inline Real operator*(Real x, Real y) {
  return x.of(x.b->mul(x.id, y.id));
}
inline Real operator/(Real x, Real y) {
  return x.of(x.b->div(x.id, y.id));
}
inline Real operator+(Real x, double y) {
  return x + x.like(y);
}
inline Real operator-(Real x, double y) {
  return x + x.like(-y);
}
inline Real operator-(double x, Real y) {
  return y.like(x) - y;
}
inline Real operator*(Real x, double y) {
  return x * x.like(y);
}
inline Real operator/(double x, Real y) {
  return y.like(x) / y;
}
inline Real operator-(Real x) {
  return x.of(x.b->neg(x.id));
}
inline Truth compare(Real x, Direction d, Real y) {
  return {x.b, x.b->compare(x.id, d, y.id)};
}
inline Truth operator<(Real x, Real y) {
  return compare(x, Direction::LT, y);
}
inline Truth operator<(Real x, double y) {
  return x < x.like(y);
}
inline Truth operator>(Real x, Real y) {
  return compare(x, Direction::GT, y);
}
inline Truth operator>(Real x, double y) {
  return x > x.like(y);
}
inline Truth operator>=(Real x, double y) {
  return compare(x, Direction::GE, x.like(y));
}
inline Truth equal(Real x, double y) {
  return compare(x, Direction::EQ, x.like(y));
}
inline Truth operator&&(Truth p, Truth q) {
  return {p.b, p.b->and_(p.id, q.id)};
}
inline Truth operator||(Truth p, Truth q) {
  return {p.b, p.b->or_(p.id, q.id)};
}
inline Truth operator!(Truth p) {
  return {p.b, p.b->not_(p.id)};
}
inline Real select(Truth p, Real x, Real y) {
  return x.of(x.b->select(p.id, x.id, y.id));
}
inline Real select(Truth p, double x, Real y) {
  return select(p, y.like(x), y);
}
inline Real select(Truth p, Real x, double y) {
  return select(p, x, x.like(y));
}
inline Real maximum(Real x, double y) {
  return x.of(x.b->max(x.id, x.b->like(x.id, y)));
}
inline Real minimum(Real x, double y) {
  return x.of(x.b->min(x.id, x.b->like(x.id, y)));
}
inline Truth is_nan(Real x) {
  return compare(x, Direction::NE, x);
}
inline Real magnitude(Real x) {
  return x.of(FloatBits(*x.b, x.type()).magnitude(x.id));
}
/// `size` (not negative) with the sign of `x`.
inline Real with_sign_of(Real size, Real x) {
  return x.of(FloatBits(*x.b, x.type()).with_sign_of(size.id, x.id));
}
/// c[0] + c[1] x + c[2] x^2 + ...
inline Real polynomial(Real x, std::span<const double> c) {
  Real sum = x.like(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

/// An unevaluated sum of two floats: twice the precision.
struct Double {
  Real high, low;
};
/// x + y exactly.
inline Double two_sum(Real x, Real y) {
  const Real s = x + y, t = s - x;
  return {s, (x - (s - t)) + (y - t)};
}
/// x + y exactly, where |x| >= |y|.
inline Double fast_two_sum(Real x, Real y) {
  const Real s = x + y;
  return {s, y - (s - x)};
}
/// x with its lower half of mantissa bits cleared, and the rest.
inline Double split(Real x) {
  const FloatBits f(*x.b, x.type());
  const Real high = x.of(f.value(f.masked(x.id, x.type() == Type::F64 ? ~int64_t{0x7FFFFFF} : ~int64_t{0xFFF})));
  return {high, x - high};
}
/// x * y exactly, without overflow or underflow.
inline Double two_product(Real x, Real y) {
  const Real p = x * y;
  const Double a = split(x), c = split(y);
  return {p, ((a.high * c.high - p) + a.high * c.low + a.low * c.high) + a.low * c.low};
}

}  // namespace collet::hlo
