// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// C++ types with operators that write C. <collet/elementary.hpp> and the complex functions are templates over such types.

#include <collet/complex_functions.hpp>

#include <string>

#include "sdk/codegen/source/text.h"

namespace collet::codegen::source {

/// A truth value.
struct Mask {
  Function* f;
  Id v;
};

inline Mask operator&&(Mask p, Mask q) {
  return {p.f, p.f->binary("bool", "&", p.v, q.v)};
}
inline Mask operator||(Mask p, Mask q) {
  return {p.f, p.f->binary("bool", "|", p.v, q.v)};
}
inline Mask operator!(Mask p) {
  return {p.f, p.f->value("bool", "!$p0", {p.v}, Level::kUnary)};
}
inline Mask exclusive_or(Mask p, Mask q) {
  return {p.f, p.f->binary("bool", "^", p.v, q.v)};
}

/// An unsigned integer as wide as a float.
struct Bits {
  Function* f;
  Id v;

  std::string type() const { return f->type_of(v); }
  Bits like(int64_t c) const {
    const bool wide = type() == "uint64_t";
    const auto u = static_cast<uint64_t>(c);
    return {f, f->constant(type(), std::to_string(wide ? u : u & 0xffffffffU) + "u")};
  }
  /// The same bits as a signed integer.
  Id as_signed() const { return f->cast(type().substr(1), v); }
};

// Defines an operator of two numbers, and one of a number and a constant.
#define COLLET_OPERATOR(op, Operand)                    \
  inline Bits operator op(Bits i, Bits j) {             \
    return {i.f, i.f->binary(i.type(), #op, i.v, j.v)}; \
  }                                                     \
  inline Bits operator op(Bits i, Operand c) {          \
    return i op i.like(c);                              \
  }
COLLET_OPERATOR(+, int64_t)
COLLET_OPERATOR(-, int64_t)
COLLET_OPERATOR(&, int64_t)
COLLET_OPERATOR(|, int64_t)
COLLET_OPERATOR(^, int64_t)
#undef COLLET_OPERATOR
inline Bits operator<<(Bits i, int k) {
  return {i.f, i.f->binary(i.type(), "<<", i.v, i.f->constant("int", std::to_string(k)))};
}
inline Bits operator>>(Bits i, int k) {
  const Id shifted = i.f->binary("int", ">>", i.as_signed(), i.f->constant("int", std::to_string(k)));
  return {i.f, i.f->cast(i.type(), shifted)};
}
inline Bits divide(Bits i, int64_t c) {
  return {i.f, i.f->binary(i.type(), "/", i.v, i.like(c).v)};
}
inline Mask operator<(Bits i, int64_t c) {
  return {i.f, i.f->binary("bool", "<", i.as_signed(), i.f->integer(c))};
}
inline Mask operator==(Bits i, int64_t c) {
  return {i.f, i.f->binary("bool", "==", i.v, i.like(c).v)};
}

/// A float with operators.
struct F : elementary::Operators<F> {
  using Mask = source::Mask;
  using Bits = source::Bits;

  Function* f;
  Id v;

  F(Function* function, Id value) : f(function), v(value) {}
  std::string type() const { return f->type_of(v); }
  F like(double x) const { return {f, f->number(x, type())}; }
  bool wide() const { return type() == "double"; }
  bool fuses() const { return f->unit.target.fma; }
  /// Returns the name of a function of <math.h> for this type.
  std::string of_type(const std::string& function) const { return f->unit.math(function, wide()); }
  F call(const std::string& function) const { return {f, f->call(type(), of_type(function), {v})}; }
};

inline F operator+(F a, F b) {
  return {a.f, a.f->binary(a.type(), "+", a.v, b.v)};
}
inline F operator-(F a, F b) {
  return {a.f, a.f->binary(a.type(), "-", a.v, b.v)};
}
inline F operator*(F a, F b) {
  return {a.f, a.f->binary(a.type(), "*", a.v, b.v)};
}
inline F operator/(F a, F b) {
  return {a.f, a.f->binary(a.type(), "/", a.v, b.v)};
}
inline F operator-(F a) {
  const std::string known = a.f->text_of_constant(a.v);
  if (!known.empty() && (known[0] == '-' || (known[0] >= '0' && known[0] <= '9')))
    return {a.f, a.f->constant(a.type(), known[0] == '-' ? known.substr(1) : "-" + known)};
  return {a.f, a.f->value(a.type(), "-$p0", {a.v}, Level::kUnary)};
}
inline Mask operator<(F a, F b) {
  return {a.f, a.f->binary("bool", "<", a.v, b.v)};
}
inline Mask operator>(F a, F b) {
  return {a.f, a.f->binary("bool", ">", a.v, b.v)};
}
inline Mask operator<=(F a, F b) {
  return {a.f, a.f->binary("bool", "<=", a.v, b.v)};
}
inline Mask operator>=(F a, F b) {
  return {a.f, a.f->binary("bool", ">=", a.v, b.v)};
}
inline Mask operator==(F a, F b) {
  return {a.f, a.f->binary("bool", "==", a.v, b.v)};
}
inline Mask is_nan(F a) {
  return {a.f, a.f->value("bool", "$v0 != $v0", {a.v}, Level::kCompare)};
}
inline F fused_multiply_add(F a, F b, F c) {
  return {a.f, a.f->call(a.type(), a.of_type("fma"), {a.v, b.v, c.v})};
}
inline F multiply_add(F a, F b, F c) {
  return a.fuses() ? fused_multiply_add(a, b, c) : a * b + c;
}
inline F select(Mask p, F a, F b) {
  return {a.f, a.f->select(p.v, a.v, b.v)};
}
inline Bits select(Mask p, Bits a, Bits b) {
  return {a.f, a.f->select(p.v, a.v, b.v)};
}
inline F magnitude(F a) {
  return a.call("fabs");
}
inline F root(F a) {
  return a.call("sqrt");
}
inline F floor(F a) {
  return a.call("floor");
}
inline F with_sign_of(F a, F b) {
  return {a.f, a.f->call(a.type(), a.of_type("copysign"), {a.v, b.v})};
}
inline F widen(F a) {
  return {a.f, a.f->cast("double", a.v)};
}
inline F narrow(F a) {
  return {a.f, a.f->cast("float", a.v)};
}

/// Return the names of helpers that convert between a float and its bits.
const std::string& bits_of(Unit& unit, bool wide);
const std::string& of_bits(Unit& unit, bool wide);

inline Bits bits(F a) {
  return {a.f, a.f->call(a.wide() ? "uint64_t" : "uint32_t", bits_of(a.f->unit, a.wide()), {a.v})};
}
inline F from_bits(F like, Bits i) {
  return {like.f, like.f->call(like.type(), of_bits(like.f->unit, like.wide()), {i.v})};
}
inline F to_number(F like, Bits i) {
  return {like.f, like.f->cast(like.type(), i.as_signed())};
}
/// Returns 2^n for an integer n, if the result is a normal number.
inline F power_of_two(F n) {
  const int digits = n.wide() ? 52 : 23, bias = n.wide() ? 1023 : 127;
  return from_bits(n, bits(n + ((n.wide() ? 0x1.8p52 : 0x1.8p23) + bias)) << digits);
}
/// Multiplies by two powers whose exponents differ by at most 1: the power itself may be out of range where the result is
/// subnormal. The low bits of `sum` are the sum of both biased exponents.
inline F scale(F x, F n) {
  const int digits = n.wide() ? 52 : 23, bias = n.wide() ? 1023 : 127;
  const Bits sum = bits(n + ((n.wide() ? 0x1.8p52 : 0x1.8p23) + 2 * bias));
  const Bits half = sum >> 1;
  return x * from_bits(n, half << digits) * from_bits(n, (sum - half) << digits);
}

/// Reduces x modulo pi / 2. Large numbers take a branch, unless there are none.
elementary::Quarter<F> reduce_quarter(F x);

// What <collet/complex_functions.hpp> asks of its user.
F compute(elementary::Function f, F x);
elementary::SineAndCosine<F> sine_and_cosine_of(F x);
F length(F x, F y);
F angle(F y, F x);

/// Returns x - n * y, for the integer n toward zero that makes it smaller than y, with the sign of x.
F remainder_of(F x, F y);

/// Returns the result of a helper function that computes an elementary function, such as "exp".
F call_function(const std::string& name, F x);
F call_function(const std::string& name, F x, F y);
/// The same for functions of complex numbers.
elementary::Complex<F> call_function(const std::string& name, elementary::Complex<F> x);
elementary::Complex<F> call_function(const std::string& name, elementary::Complex<F> x, elementary::Complex<F> y);

}  // namespace collet::codegen::source
