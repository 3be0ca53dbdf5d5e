// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/elementary.hpp>

#include "hlo/passes/expand/float_bits.h"

/// \file
/// Operators on HLO values with which the formulas of <collet/elementary.hpp> are instantiated: floating-point
/// expressions over arrays. Also holds further functions in the same style that only HLO expansions use.

namespace collet::hlo {

using elementary::kInfinity;
using elementary::kNaN;

/// An array of truth values.
struct BoolArray {
  Builder* b = nullptr;
  InstrId id = InstrId::None;
};

inline BoolArray operator&&(BoolArray p, BoolArray q) {
  return {p.b, p.b->and_(p.id, q.id)};
}
inline BoolArray operator||(BoolArray p, BoolArray q) {
  return {p.b, p.b->or_(p.id, q.id)};
}
inline BoolArray operator!(BoolArray p) {
  return {p.b, p.b->not_(p.id)};
}
inline BoolArray exclusive_or(BoolArray p, BoolArray q) {
  return {p.b, p.b->xor_(p.id, q.id)};
}

/// An array of signed integers as wide as a float type.
struct IntArray {
  Builder* b = nullptr;
  InstrId id = InstrId::None;

  IntArray like(int64_t c) const { return {b, b->like_int(id, c)}; }
};

inline IntArray operator+(IntArray i, IntArray j) {
  return {i.b, i.b->add(i.id, j.id)};
}
inline IntArray operator-(IntArray i, IntArray j) {
  return {i.b, i.b->sub(i.id, j.id)};
}
inline IntArray operator^(IntArray i, IntArray j) {
  return {i.b, i.b->xor_(i.id, j.id)};
}
inline IntArray operator+(IntArray i, int64_t c) {
  return i + i.like(c);
}
inline IntArray operator-(IntArray i, int64_t c) {
  return i - i.like(c);
}
inline IntArray operator&(IntArray i, int64_t c) {
  return {i.b, i.b->and_(i.id, i.like(c).id)};
}
inline IntArray operator|(IntArray i, int64_t c) {
  return {i.b, i.b->or_(i.id, i.like(c).id)};
}
inline IntArray operator<<(IntArray i, int k) {
  return {i.b, i.b->shl(i.id, k)};
}
inline IntArray operator>>(IntArray i, int k) {
  return {i.b, i.b->binary(Op::SHIFT_RIGHT_ARITHMETIC, i.id, i.like(k).id)};
}
inline IntArray divide(IntArray i, int64_t c) {
  return {i.b, i.b->div(i.id, i.like(c).id)};
}
inline BoolArray operator<(IntArray i, int64_t c) {
  return {i.b, i.b->compare(i.id, Direction::LT, i.like(c).id)};
}
inline BoolArray operator==(IntArray i, int64_t c) {
  return {i.b, i.b->compare(i.id, Direction::EQ, i.like(c).id)};
}

/// An array of floats. Operators work element by element; a number stands for an array whose elements all are that
/// number.
struct Real : elementary::Operators<Real> {
  using Mask = BoolArray;
  using Bits = IntArray;

  Builder* b = nullptr;
  InstrId id = InstrId::None;

  Real() = default;
  Real(Builder& builder, InstrId value) : b(&builder), id(value) {}
  Type type() const { return b->type(id); }
  bool wide() const { return type() == Type::F64; }
  bool fuses() const { return false; }
  Real like(double v) const { return {*b, b->like(id, v)}; }
  Real of(InstrId other) const { return {*b, other}; }
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
inline Real operator-(Real x) {
  return x.of(x.b->neg(x.id));
}
inline BoolArray compare(Real x, Direction d, Real y) {
  return {x.b, x.b->compare(x.id, d, y.id)};
}
inline BoolArray operator<(Real x, Real y) {
  return compare(x, Direction::LT, y);
}
inline BoolArray operator>(Real x, Real y) {
  return compare(x, Direction::GT, y);
}
inline BoolArray operator<=(Real x, Real y) {
  return compare(x, Direction::LE, y);
}
inline BoolArray operator>=(Real x, Real y) {
  return compare(x, Direction::GE, y);
}
inline BoolArray operator==(Real x, Real y) {
  return compare(x, Direction::EQ, y);
}
inline BoolArray is_nan(Real x) {
  return compare(x, Direction::NE, x);
}
inline Real select(BoolArray p, Real x, Real y) {
  return x.of(x.b->select(p.id, x.id, y.id));
}
inline Real select(BoolArray p, double x, Real y) {
  return select(p, y.like(x), y);
}
inline Real select(BoolArray p, Real x, double y) {
  return select(p, x, x.like(y));
}
inline IntArray select(BoolArray p, IntArray i, IntArray j) {
  return {i.b, i.b->select(p.id, i.id, j.id)};
}
inline Real at_most(Real x, double c) {
  return x.of(x.b->min(x.id, x.b->like(x.id, c)));
}
inline Real at_least(Real x, double c) {
  return x.of(x.b->max(x.id, x.b->like(x.id, c)));
}
inline Real multiply_add(Real x, Real y, Real z) {
  return x * y + z;
}
inline Real fused_multiply_add(Real x, Real y, Real z) {
  return multiply_add(x, y, z);  // never called: HLO has no fused multiply-add
}
inline Real magnitude(Real x) {
  return x.of(FloatBits(*x.b, x.type()).magnitude(x.id));
}
/// Returns `size`, which is not negative, with the sign of `x`.
inline Real with_sign_of(Real size, Real x) {
  return x.of(FloatBits(*x.b, x.type()).with_sign_of(size.id, x.id));
}
inline Real root(Real x) {
  return x.of(x.b->unary(Op::SQRT, x.id));
}
inline Real floor(Real x) {
  return x.of(x.b->unary(Op::FLOOR, x.id));
}
inline IntArray bits(Real x) {
  return {x.b, FloatBits(*x.b, x.type()).signed_bits(x.id)};
}
inline Real from_bits(Real x, IntArray i) {
  return x.of(FloatBits(*x.b, x.type()).value(i.id));
}
inline Real to_number(Real x, IntArray i) {
  return x.of(x.b->convert(i.id, x.type()));
}
inline IntArray to_whole(Real n) {
  return {n.b, n.b->convert(n.id, bits_type(n.type(), true))};
}
inline Real power_of_two(IntArray n, Real like) {
  return like.of(FloatBits(*n.b, like.type()).power_of_two(n.id));
}
inline Real power_of_two(Real n) {
  return power_of_two(to_whole(n), n);
}
/// Multiplies `x` by 2^n in two steps, so that the factor itself does not overflow or underflow if the result is
/// subnormal or close to the largest number.
inline Real scale(Real x, Real n) {
  const IntArray whole = to_whole(n), half = whole >> 1;
  return x * power_of_two(half, x) * power_of_two(whole - half, x);
}
elementary::Quarter<Real> reduce_quarter(Real x);

/// Returns the square root, correctly rounded, without using the op sqrt.
Real square_root(Real x);

}  // namespace collet::hlo
