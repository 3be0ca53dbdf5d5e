// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Intrinsics.h>

#include <initializer_list>
#include <iterator>

#include "sdk/codegen/llvm/ir.h"

/// \file
/// Lets the mathematical functions be written as formulas.

namespace collet::codegen::math {

/// A float value with operators.
struct F {
  Ir* ir;
  llvm::Value* v;

  F(Ir& i, llvm::Value* value) : ir(&i), v(value) {}
  /// The constant `x`, with this value's type.
  F k(double x) const { return {*ir, ir->constant(v->getType(), x)}; }
};

inline F operator+(F a, F b) {
  return {*a.ir, a.ir->b.CreateFAdd(a.v, b.v)};
}
inline F operator-(F a, F b) {
  return {*a.ir, a.ir->b.CreateFSub(a.v, b.v)};
}
inline F operator*(F a, F b) {
  return {*a.ir, a.ir->b.CreateFMul(a.v, b.v)};
}
inline F operator/(F a, F b) {
  return {*a.ir, a.ir->b.CreateFDiv(a.v, b.v)};
}
inline F operator+(F a, double b) {
  return a + a.k(b);
}
inline F operator-(F a, double b) {
  return a - a.k(b);
}
inline F operator*(F a, double b) {
  return a * a.k(b);
}
inline F operator/(F a, double b) {
  return a / a.k(b);
}
inline F operator+(double a, F b) {
  return b.k(a) + b;
}
inline F operator-(double a, F b) {
  return b.k(a) - b;
}
inline F operator*(double a, F b) {
  return b.k(a) * b;
}
inline F operator/(double a, F b) {
  return b.k(a) / b;
}
inline F operator-(F a) {
  return {*a.ir, a.ir->b.CreateFNeg(a.v)};
}
inline llvm::Value* operator<(F a, F b) {
  return a.ir->b.CreateFCmpOLT(a.v, b.v);
}
inline llvm::Value* operator>(F a, F b) {
  return a.ir->b.CreateFCmpOGT(a.v, b.v);
}
inline llvm::Value* operator<=(F a, F b) {
  return a.ir->b.CreateFCmpOLE(a.v, b.v);
}
inline llvm::Value* operator>=(F a, F b) {
  return a.ir->b.CreateFCmpOGE(a.v, b.v);
}
inline llvm::Value* operator==(F a, F b) {
  return a.ir->b.CreateFCmpOEQ(a.v, b.v);
}
inline llvm::Value* operator<(F a, double b) {
  return a < a.k(b);
}
inline llvm::Value* operator>(F a, double b) {
  return a > a.k(b);
}
inline llvm::Value* operator<=(F a, double b) {
  return a <= a.k(b);
}
inline llvm::Value* operator>=(F a, double b) {
  return a >= a.k(b);
}
inline llvm::Value* operator==(F a, double b) {
  return a == a.k(b);
}

inline llvm::Value* is_nan(F a) {
  return a.ir->b.CreateFCmpUNO(a.v, a.v);
}
inline F fma(F a, F b, F c) {
  return {*a.ir, a.ir->fma(a.v, b.v, c.v)};
}
inline F fma(F a, F b, double c) {
  return fma(a, b, a.k(c));
}
inline F exact_fma(F a, F b, F c) {
  return {*a.ir, a.ir->exact_fma(a.v, b.v, c.v)};
}
inline F select(llvm::Value* c, F a, F b) {
  return {*a.ir, a.ir->b.CreateSelect(c, a.v, b.v)};
}
inline F select(llvm::Value* c, F a, double b) {
  return select(c, a, a.k(b));
}
inline F select(llvm::Value* c, double a, F b) {
  return select(c, b.k(a), b);
}
inline F abs(F a) {
  return {*a.ir, a.ir->unary(llvm::Intrinsic::fabs, a.v)};
}
inline F root(F a) {
  return {*a.ir, a.ir->unary(llvm::Intrinsic::sqrt, a.v)};
}
inline F nearest(F a) {
  return {*a.ir, a.ir->unary(llvm::Intrinsic::rint, a.v)};
}
inline F copysign(F a, F b) {
  return {*a.ir, a.ir->binary(llvm::Intrinsic::copysign, a.v, b.v)};
}
/// The lesser; where `a` is not a number, `a`.
inline F at_most(F a, double b) {
  return select(a > b, b, a);
}
inline F at_least(F a, double b) {
  return select(a < b, b, a);
}

inline bool is_f64(F a) {
  return a.v->getType()->getScalarType()->isDoubleTy();
}
inline llvm::Value* bits(F a) {
  return a.ir->bits_of(a.v);
}
inline F from_bits(F like, llvm::Value* v) {
  return {*like.ir, like.ir->b.CreateBitCast(v, like.v->getType())};
}
inline llvm::Value* ki(F like, uint64_t x) {
  return like.ir->constant_int(like.ir->int_like(like.v), x);
}

/// c[0] + c[1] x + c[2] x^2 + ...
inline F polynomial(F x, std::initializer_list<double> c) {
  auto it = std::rbegin(c);
  F r = x.k(*it++);
  for (; it != std::rend(c); ++it) r = fma(r, x, x.k(*it));
  return r;
}

inline F widen(F x) {
  return {*x.ir, x.ir->b.CreateFPExt(x.v, x.ir->like(x.v, x.ir->b.getDoubleTy()))};
}
inline F narrow(F x) {
  return {*x.ir, x.ir->b.CreateFPTrunc(x.v, x.ir->like(x.v, x.ir->b.getFloatTy()))};
}

/// 1.5 times the power of two whose last place is 1: what is added to it is rounded to a whole number.
inline double whole_number(F like) {
  return is_f64(like) ? 6755399441055744.0 : 12582912.0;
}

/// x * 2^n for integers n, held as float, of any size that two factors can express.
inline F scale(F x, F n) {
  Ir& ir = *x.ir;
  if (llvm::Value* scaled = ir.scale_by_power(x.v, n.v)) return {ir, scaled};
  const bool f64 = is_f64(x);
  const int mantissa = f64 ? 52 : 23;
  const int bias = f64 ? 1023 : 127;
  const double magic = whole_number(x);
  F half = nearest(n * 0.5);
  F rest = n - half;
  auto power = [&](F e) {
    llvm::Value* i = bits(e + magic);
    i = ir.b.CreateShl(ir.b.CreateAdd(i, ki(x, static_cast<uint64_t>(bias))), ki(x, static_cast<uint64_t>(mantissa)));
    return from_bits(x, i);
  };
  return x * power(half) * power(rest);
}

}  // namespace collet::codegen::math
