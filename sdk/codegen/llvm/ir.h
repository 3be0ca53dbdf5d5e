// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// LLVM IR over scalars and vectors alike: a value is computed with the same calls whether it is one lane or sixteen.

#include <collet/codegen/target.h>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/float_format.h"

namespace collet::codegen {

/// A computed element, or a vector of them. How element types are held: pred as i1; integers as they are, sub-byte ones
/// as i8; f32 and f64 as they are; narrower floats as f32, rounded; complex as two.
struct Val {
  llvm::Value* v = nullptr;
  llvm::Value* im = nullptr;
};

/// A builder with the small vocabulary that the emitters share.
class Ir {
 public:
  Ir(llvm::Module& m, const Target& t) : b(m.getContext()), module(m), target(t) {}

  llvm::IRBuilder<> b;
  llvm::Module& module;
  const Target& target;

  llvm::LLVMContext& context() { return module.getContext(); }
  /// LLVM type in which one element (one half, for complex) is computed.
  llvm::Type* scalar(uint32_t type);
  /// `t`, or the vector of `lanes` of it. Where vectors are scalable, `lanes` here and below are those of the least length.
  llvm::Type* wide(llvm::Type* t, int lanes);
  int lanes_of(llvm::Value* v) const;
  int lanes_of(const Val& x) const { return lanes_of(x.v); }
  /// Makes all vectors from now on scalable. The target has such.
  void use_scalable_vectors() { is_scalable_ = true; }
  bool is_scalable() const { return is_scalable_; }
  /// An i64: how many lanes a vector of `lanes` has on the machine that runs the code.
  llvm::Value* count(int lanes);
  /// The vector 0, stride, 2 * stride and so on, of integers of type `element`.
  llvm::Value* steps(llvm::Type* element, int lanes, int64_t stride);
  /// Which of `lanes` lie before `n`, an i32.
  llvm::Value* first_lanes(llvm::Value* n, int lanes);
  /// The lanes of `x` and `y` alternately: twice as many.
  llvm::Value* interleave(llvm::Value* x, llvm::Value* y);
  /// The lanes at even places, and those at odd ones.
  std::pair<llvm::Value*, llvm::Value*> deinterleave(llvm::Value* both);
  /// The last lane first.
  llvm::Value* reversed(llvm::Value* v) { return b.CreateVectorReverse(v); }
  /// The type with the lanes of `like` and elements of `element`.
  llvm::Type* like(llvm::Value* v, llvm::Type* element) { return wide(element, lanes_of(v)); }
  Val splat(const Val& x, int lanes);
  llvm::Value* splat(llvm::Value* v, int lanes);

  llvm::Value* constant(llvm::Type* t, double x);
  llvm::Value* constant_int(llvm::Type* t, uint64_t x);
  /// A constant of an element type from its bytes.
  Val literal(uint32_t type, const uint64_t bits[2]);
  /// 0 and the like.
  Val zero(uint32_t type, int lanes);

  /// a * b + c, fused where that is one instruction.
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  /// a * b + c, rounded once.
  llvm::Value* exact_fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  /// x * 2^n for a whole n, rounded once, where that is one instruction for vectors of these lanes; else null.
  llvm::Value* scale_by_power(llvm::Value* x, llvm::Value* n);
  llvm::Value* unary(llvm::Intrinsic::ID id, llvm::Value* x) { return b.CreateUnaryIntrinsic(id, x); }
  llvm::Value* binary(llvm::Intrinsic::ID id, llvm::Value* x, llvm::Value* y) {
    return b.CreateBinaryIntrinsic(id, x, y);
  }
  /// The integer type as wide as the float `v`, with its lanes.
  llvm::Type* int_like(llvm::Value* v);
  llvm::Value* bits_of(llvm::Value* v) { return b.CreateBitCast(v, int_like(v)); }

  /// A float toward zero, as integers of type `to`: what is too large becomes the largest, NaN becomes 0.
  llvm::Value* to_integer(llvm::Value* v, llvm::Type* to, bool is_signed);
  /// f32 rounded to a narrower float type, held as f32.
  llvm::Value* round_narrow(llvm::Value* f32, uint32_t type);
  /// f64 to f32 so that a second rounding to a type of at most 21 bits is right.
  llvm::Value* round_to_odd(llvm::Value* f64);
  /// As it lies in memory: integers of 8 bits for pred and sub-byte types, bits of narrow floats. Not for complex.
  llvm::Value* to_storage(const Val& x, uint32_t type);
  llvm::Value* from_storage(llvm::Value* v, uint32_t type);
  /// LLVM type of one element in memory (one half, for complex).
  llvm::Type* storage(uint32_t type);

  Val convert(const Val& x, uint32_t from, uint32_t to);
  /// Wraps an i8 that holds a sub-byte type.
  llvm::Value* wrap_small(llvm::Value* v, uint32_t type);
  Val select(llvm::Value* c, const Val& x, const Val& y);

  /// A counted loop of i64, where the builder stands; it stands behind the loop afterwards.
  void loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step, const std::function<void(llvm::Value*)>& body);
  /// The body where `condition` is true.
  void branch(llvm::Value* condition, const std::function<void()>& body);

 private:
  /// A half as f32, with the bits of what is no number.
  llvm::Value* widen_half(llvm::Value* half);
  llvm::Value* encode(llvm::Value* f32, const FloatFormat& f);
  llvm::Value* decode(llvm::Value* bits, const FloatFormat& f);
  /// Integers of 64 bits that f64 holds exactly, and that are rounded to at most 41 bits as the given ones: the last bit is
  /// set where something was cut off.
  llvm::Value* cut_to_53_bits(llvm::Value* v, bool has_sign);
  llvm::Value* real_to_real(llvm::Value* v, uint32_t from, uint32_t to);
  llvm::Value* riscv_to_integer(llvm::Value* v, llvm::Type* to, bool is_signed);
  llvm::ElementCount element_count(int lanes) const;

  bool is_scalable_ = false;
};

}  // namespace collet::codegen
