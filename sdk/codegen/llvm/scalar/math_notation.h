// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Intrinsics.h>

#include <collet/elementary.hpp>

#include "sdk/codegen/llvm/ir.h"

/// \file
/// C++ types with operators that emit LLVM IR. <collet/elementary.hpp> and the complex functions are templates over
/// such types.

namespace collet::codegen::math {

using elementary::kInfinity;
using elementary::kNaN;

/// Truth values, one for each lane.
struct Mask {
  Ir* ir;
  llvm::Value* v;
  operator llvm::Value*() const { return v; }
};

inline Mask operator&&(Mask p, Mask q) {
  return {p.ir, p.ir->b.CreateAnd(p.v, q.v)};
}
inline Mask operator||(Mask p, Mask q) {
  return {p.ir, p.ir->b.CreateOr(p.v, q.v)};
}
inline Mask operator!(Mask p) {
  return {p.ir, p.ir->b.CreateNot(p.v)};
}
inline Mask exclusive_or(Mask p, Mask q) {
  return {p.ir, p.ir->b.CreateXor(p.v, q.v)};
}

/// Unsigned integers as wide as a float.
struct Bits {
  Ir* ir;
  llvm::Value* v;

  Bits like(int64_t c) const { return {ir, ir->constant_int(v->getType(), static_cast<uint64_t>(c))}; }
};

inline Bits operator+(Bits i, Bits j) {
  return {i.ir, i.ir->b.CreateAdd(i.v, j.v)};
}
inline Bits operator-(Bits i, Bits j) {
  return {i.ir, i.ir->b.CreateSub(i.v, j.v)};
}
inline Bits operator^(Bits i, Bits j) {
  return {i.ir, i.ir->b.CreateXor(i.v, j.v)};
}
inline Bits operator+(Bits i, int64_t c) {
  return i + i.like(c);
}
inline Bits operator-(Bits i, int64_t c) {
  return i - i.like(c);
}
inline Bits operator&(Bits i, int64_t c) {
  return {i.ir, i.ir->b.CreateAnd(i.v, i.like(c).v)};
}
inline Bits operator|(Bits i, int64_t c) {
  return {i.ir, i.ir->b.CreateOr(i.v, i.like(c).v)};
}
inline Bits operator<<(Bits i, int k) {
  return {i.ir, i.ir->b.CreateShl(i.v, i.like(k).v)};
}
inline Bits operator>>(Bits i, int k) {
  return {i.ir, i.ir->b.CreateAShr(i.v, i.like(k).v)};
}
inline Bits divide(Bits i, int64_t c) {
  return {i.ir, i.ir->b.CreateUDiv(i.v, i.like(c).v)};
}
inline Mask operator<(Bits i, int64_t c) {
  return {i.ir, i.ir->b.CreateICmpSLT(i.v, i.like(c).v)};
}
inline Mask operator==(Bits i, int64_t c) {
  return {i.ir, i.ir->b.CreateICmpEQ(i.v, i.like(c).v)};
}

/// A float value with operators.
struct F : elementary::Operators<F> {
  using Mask = math::Mask;
  using Bits = math::Bits;

  Ir* ir;
  llvm::Value* v;

  F(Ir& i, llvm::Value* value) : ir(&i), v(value) {}
  /// Returns the constant `x` in this value's type.
  F like(double x) const { return {*ir, ir->constant(v->getType(), x)}; }
  bool wide() const { return v->getType()->getScalarType()->isDoubleTy(); }
  bool fuses() const { return ir->target.fma; }
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
inline F operator-(F a) {
  return {*a.ir, a.ir->neg(a.v)};
}
inline Mask operator<(F a, F b) {
  return {a.ir, a.ir->b.CreateFCmpOLT(a.v, b.v)};
}
inline Mask operator>(F a, F b) {
  return {a.ir, a.ir->b.CreateFCmpOGT(a.v, b.v)};
}
inline Mask operator<=(F a, F b) {
  return {a.ir, a.ir->b.CreateFCmpOLE(a.v, b.v)};
}
inline Mask operator>=(F a, F b) {
  return {a.ir, a.ir->b.CreateFCmpOGE(a.v, b.v)};
}
inline Mask operator==(F a, F b) {
  return {a.ir, a.ir->b.CreateFCmpOEQ(a.v, b.v)};
}

inline Mask is_nan(F a) {
  return {a.ir, a.ir->b.CreateFCmpUNO(a.v, a.v)};
}
inline F multiply_add(F a, F b, F c) {
  return {*a.ir, a.ir->fma(a.v, b.v, c.v)};
}
inline F fused_multiply_add(F a, F b, F c) {
  return {*a.ir, a.ir->exact_fma(a.v, b.v, c.v)};
}
inline F select(llvm::Value* c, F a, F b) {
  return {*a.ir, a.ir->b.CreateSelect(c, a.v, b.v)};
}
inline F select(llvm::Value* c, F a, double b) {
  return select(c, a, a.like(b));
}
inline F select(llvm::Value* c, double a, F b) {
  return select(c, b.like(a), b);
}
inline Bits select(llvm::Value* c, Bits a, Bits b) {
  return {a.ir, a.ir->b.CreateSelect(c, a.v, b.v)};
}
inline F magnitude(F a) {
  return {*a.ir, a.ir->unary(llvm::Intrinsic::fabs, a.v)};
}
inline F root(F a) {
  return {*a.ir, a.ir->unary(llvm::Intrinsic::sqrt, a.v)};
}
inline F floor(F a) {
  return {*a.ir, a.ir->unary(llvm::Intrinsic::floor, a.v)};
}

inline Bits bits(F a) {
  return {a.ir, a.ir->bits_of(a.v)};
}
inline F from_bits(F like, Bits i) {
  return {*like.ir, like.ir->b.CreateBitCast(i.v, like.v->getType())};
}
inline F to_number(F like, Bits i) {
  return {*like.ir, like.ir->b.CreateSIToFP(i.v, like.v->getType())};
}

/// Returns `a`, whose sign bit is not set, with the sign of `b`.
inline F with_sign_of(F a, F b) {
  if (!a.ir->target.triple.starts_with("x86_64")) return {*a.ir, a.ir->binary(llvm::Intrinsic::copysign, a.v, b.v)};
  // x86 has no such instruction, and LLVM would clear the sign bit of `a`.
  const int64_t sign = int64_t{1} << (a.wide() ? 63 : 31);
  const Bits joined{a.ir, a.ir->b.CreateOr(bits(a).v, (bits(b) & sign).v)};
  return from_bits(a, joined);
}

inline F widen(F x) {
  return {*x.ir, x.ir->b.CreateFPExt(x.v, x.ir->like(x.v, x.ir->b.getDoubleTy()))};
}
inline F narrow(F x) {
  return {*x.ir, x.ir->b.CreateFPTrunc(x.v, x.ir->like(x.v, x.ir->b.getFloatTy()))};
}

/// Returns 2^n for an integer n, if the result is a normal number. n is converted by adding a large number, because
/// many machines have no conversion instruction.
inline F power_of_two(F n) {
  const int digits = n.wide() ? 52 : 23, bias = n.wide() ? 1023 : 127;
  return from_bits(n, bits(n + ((n.wide() ? 0x1.8p52 : 0x1.8p23) + bias)) << digits);
}
inline F scale(F x, F n) {
  Ir& ir = *x.ir;
  if (llvm::Value* scaled = ir.scale_by_power(x.v, n.v)) return {ir, scaled};
  // Multiplies by two powers whose exponents differ by at most 1: the power itself may be out of range where the result
  // is subnormal. The low bits of `sum` are the sum of both biased exponents. The shifts drop the other bits.
  const int digits = n.wide() ? 52 : 23, bias = n.wide() ? 1023 : 127;
  const Bits sum = bits(n + ((n.wide() ? 0x1.8p52 : 0x1.8p23) + 2 * bias));
  const Bits half = sum >> 1;
  return x * from_bits(n, half << digits) * from_bits(n, (sum - half) << digits);
}

/// Reduces x modulo pi / 2. Large arguments are reduced lane by lane, by a function of the module (emit_support.h).
elementary::Quarter<F> reduce_quarter(F x);

}  // namespace collet::codegen::math
