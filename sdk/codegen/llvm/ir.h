// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ir, a builder of LLVM IR whose functions work on scalars and on vectors, so that the emitters need not distinguish
/// them.

#include <collet/codegen/target.h>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/float_format.h"

namespace collet::codegen {

/// A computed element, or a vector of elements. pred is an i1; integers have their own width, sub-byte ones are i8; f32 and f64
/// are float and double; narrower floats are float, with values rounded to their type; complex numbers are two values.
struct Val {
  llvm::Value* v = nullptr;
  llvm::Value* im = nullptr;
};

/// The builder that the emitters share.
class Ir {
 public:
  Ir(llvm::Module& m, const Target& t) : b(m.getContext()), module(m), target(t) {}

  llvm::IRBuilder<> b;
  llvm::Module& module;
  const Target& target;

  /// Whether the constant mask of a tail becomes a vector of as many lanes as are used. LLVM keeps arrays in registers
  /// that are accessed so, and not those that are accessed with masks.
  bool uses_short_vectors = false;

  llvm::LLVMContext& context() { return module.getContext(); }
  /// Returns the LLVM type in which one element (one part of a complex one) is computed.
  llvm::Type* scalar(uint32_t type);
  /// Returns `t` if `lanes` is 1, else the type of vectors of `lanes` elements. For scalable vectors, `lanes` here and below is the
  /// number of lanes at the least vector length.
  llvm::Type* wide(llvm::Type* t, int lanes);
  int lanes_of(const llvm::Value* v) const;
  int lanes_of(const Val& x) const { return lanes_of(x.v); }
  /// Makes all vectors scalable from now on. The target must have scalable vectors.
  void use_scalable_vectors() { is_scalable_ = true; }
  bool is_scalable() const { return is_scalable_; }
  /// Returns the number of lanes, as i64, that a vector of `lanes` has on the machine that runs the code.
  llvm::Value* count(int lanes);
  /// Returns the vector 0, stride, 2 * stride and so on, of integers of type `element`.
  llvm::Value* steps(llvm::Type* element, int lanes, int64_t stride);
  /// Returns a mask that is true in lanes whose number is less than `n`, an i32.
  llvm::Value* first_lanes(llvm::Value* n, int lanes);
  /// Interleaves the lanes of `x` and `y` to a vector with twice as many lanes.
  llvm::Value* interleave(llvm::Value* x, llvm::Value* y);
  /// Returns two vectors: the lanes with even numbers and those with odd numbers.
  std::pair<llvm::Value*, llvm::Value*> deinterleave(llvm::Value* both);
  /// Reverses the order of lanes.
  llvm::Value* reversed(llvm::Value* v) { return b.CreateVectorReverse(v); }
  /// Returns the type with the number of lanes of `v` and elements of type `element`.
  llvm::Type* like(llvm::Value* v, llvm::Type* element) { return wide(element, lanes_of(v)); }
  Val splat(const Val& x, int lanes);
  llvm::Value* splat(llvm::Value* v, int lanes);

  llvm::Value* constant(llvm::Type* t, double x);
  llvm::Value* constant_int(llvm::Type* t, uint64_t x);
  /// Returns a constant of an element type from its bytes.
  Val literal(uint32_t type, const uint64_t bits[2]);
  /// Returns a zero of an element type.
  Val zero(uint32_t type, int lanes);

  /// Returns a * b + c, with one rounding if the target has an instruction for it, else with two.
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  /// Returns a * b + c, rounded once.
  llvm::Value* exact_fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  /// Returns x + y rounded, and what rounding lost (D. Knuth's two-sum). The second is NaN where the first is infinite.
  std::pair<llvm::Value*, llvm::Value*> add_exactly(llvm::Value* x, llvm::Value* y);
  /// Returns x * 2^n for an integer n, rounded once, if that is one instruction for vectors of this length; else null.
  llvm::Value* scale_by_power(llvm::Value* x, llvm::Value* n);
  llvm::Value* unary(llvm::Intrinsic::ID id, llvm::Value* x) { return b.CreateUnaryIntrinsic(id, x); }
  llvm::Value* binary(llvm::Intrinsic::ID id, llvm::Value* x, llvm::Value* y) {
    return b.CreateBinaryIntrinsic(id, x, y);
  }
  /// True if the target has instructions for the maximum and minimum of floats of this type where NaN wins and -0 is less
  /// than +0: those of GPUs, for f32.
  bool has_extreme(llvm::Type* t) const { return target.has_grid() && t->getScalarType()->isFloatTy(); }
  /// Returns -v by changing the sign bit.
  llvm::Value* neg(llvm::Value* v);
  llvm::Type* int_like(llvm::Value* v);
  llvm::Value* bits_of(llvm::Value* v) { return b.CreateBitCast(v, int_like(v)); }

  /// Converts a float to integers of type `to`, rounding toward zero. Values out of range are clamped; NaN becomes 0.
  llvm::Value* to_integer(llvm::Value* v, llvm::Type* to, bool is_signed);
  /// Rounds an f32 to a narrower float type, and returns it as f32.
  llvm::Value* round_narrow(llvm::Value* f32, uint32_t type);
  /// Converts f64 to f32 by rounding to odd, so that a later rounding to a type with at most 21 bits gives the
  /// correctly rounded result.
  llvm::Value* round_to_odd(llvm::Value* f64);
  /// Converts a value to its form in memory: i8 for pred and sub-byte types, the bits of narrow floats. Not for complex.
  llvm::Value* to_storage(const Val& x, uint32_t type);
  llvm::Value* from_storage(llvm::Value* v, uint32_t type);
  /// Returns the LLVM type of one element (one part of a complex one) in memory.
  llvm::Type* storage(uint32_t type);

  Val convert(const Val& x, uint32_t from, uint32_t to);
  /// Sign- or zero-extends the value of a sub-byte type that an i8 holds.
  llvm::Value* wrap_small(llvm::Value* v, uint32_t type);
  Val select(llvm::Value* c, const Val& x, const Val& y);

  /// Emits a loop with an i64 counter at the insertion point, and moves the insertion point after the loop.
  void loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step, const std::function<void(llvm::Value*)>& body);
  /// Emits `body` so that it runs if `condition` is true. `weights`: how likely it is, or null.
  void branch(llvm::Value* condition, const std::function<void()>& body, llvm::MDNode* weights = nullptr);
  /// Emits a branch to one of two bodies.
  void choose(llvm::Value* condition, const std::function<void()>& on_true, const std::function<void()>& on_false,
              llvm::MDNode* weights = nullptr);

 private:
  /// Returns `f32`, which was converted from f16. LLVM would move comparisons before the conversion. Without
  /// instructions for f16, it then splits their vectors into elements.
  llvm::Value* keep_wide(llvm::Value* f32);
  /// Converts to f16. A number that was converted from f16 is that number again, with all its bits.
  llvm::Value* narrow_half(llvm::Value* f32, llvm::Type* half);
  /// Converts an f16 to f32 and keeps the payload of NaN.
  llvm::Value* widen_half(llvm::Value* half);
  /// Rounds a scalar to bf16, for a grid. All NaNs become one, as in the arithmetic of GPUs.
  llvm::Value* round_to_bf16(llvm::Value* f32);
  /// The same for a vector with an even number of lanes, with one instruction for two lanes.
  llvm::Value* round_pairs_to_bf16(llvm::Value* f32);
  /// Returns the value with the type of `v` whose lanes are the results of `f` for the lanes of `v`.
  llvm::Value* each_lane(llvm::Value* v, const std::function<llvm::Value*(llvm::Value*)>& f);
  llvm::Value* encode(llvm::Value* f32, const FloatFormat& f);
  llvm::Value* decode(llvm::Value* bits, const FloatFormat& f);
  /// Truncates 64-bit integers to 53 significant bits, which f64 holds exactly. The last bit is set if a bit that was cut off was
  /// set, so that a later rounding to at most 41 bits is the same as that of the given integer.
  llvm::Value* cut_to_53_bits(llvm::Value* v, bool has_sign);
  /// True for a vector of 64-bit integers on AArch64. No instruction converts it to f32, so LLVM converts it to f64 first, which
  /// rounds twice.
  bool neon_rounds_twice(llvm::Value* v) const;
  llvm::Value* real_to_real(llvm::Value* v, uint32_t from, uint32_t to);
  llvm::Value* riscv_to_integer(llvm::Value* v, llvm::Type* to, bool is_signed);
  llvm::Value* clamp_to_integer(llvm::Value* v, llvm::Type* to, bool is_signed);
  llvm::ElementCount element_count(int lanes) const;

  bool is_scalable_ = false;
};

}  // namespace collet::codegen
