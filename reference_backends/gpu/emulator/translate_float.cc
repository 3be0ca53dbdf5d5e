// SPDX-License-Identifier: Apache-2.0
// Translates floating-point arithmetic.
#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "reference_backends/gpu/emulator/function_translator.h"

namespace collet::gpu::emulator {
namespace {

bool is_half(Type t) {
  return t == Type::kF16 || t == Type::kF16x2 || t == Type::kBf16 || t == Type::kBf16x2;
}

// Approximate functions are computed in f64 and rounded once, so they are at least as accurate as in hardware.
float reciprocal_root(float x) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
}
double reciprocal_root_f64(double x) {
  return 1 / std::sqrt(x);
}
float sine(float x) {
  return static_cast<float>(std::sin(static_cast<double>(x)));
}
float cosine(float x) {
  return static_cast<float>(std::cos(static_cast<double>(x)));
}
float log_2(float x) {
  return static_cast<float>(std::log2(static_cast<double>(x)));
}
float exp_2(float x) {
  return static_cast<float>(std::exp2(static_cast<double>(x)));
}
float hyperbolic_tangent(float x) {
  return static_cast<float>(std::tanh(static_cast<double>(x)));
}

}  // namespace

/// Replaces subnormal numbers of f32 by zeros of their sign.
FunctionTranslator::V FunctionTranslator::flush(V value) {
  if (!value->getType()->isFloatTy()) return value;
  V pattern = as_bits(value);
  V is_small = b_.CreateICmpEQ(b_.CreateAnd(pattern, i32(0x7f800000)), i32(0));
  return b_.CreateBitCast(b_.CreateSelect(is_small, b_.CreateAnd(pattern, i32(0x80000000)), pattern), b_.getFloatTy());
}

/// Clamps to [0, 1]; NaN becomes +0.
FunctionTranslator::V FunctionTranslator::saturate(V value) {
  auto* const zero = llvm::ConstantFP::get(value->getType(), 0.0);
  auto* const one = llvm::ConstantFP::get(value->getType(), 1.0);
  V above = b_.CreateSelect(b_.CreateFCmpOGT(value, zero), value, zero);
  return b_.CreateSelect(b_.CreateFCmpOGT(above, one), one, above);
}

FunctionTranslator::V FunctionTranslator::half_op(Type t, HalfOp op, uint32_t flags, V a, V b, V c) {
  uint32_t code = static_cast<uint32_t>(op) | flags;
  if (bits_of(t) == 32) code |= kHalfPair;
  if (t == Type::kBf16 || t == Type::kBf16x2) code |= kHalfBf16;
  const auto word = [&](V v) { return v ? b_.CreateZExt(v, b_.getInt32Ty()) : i32(0); };
  V r = call(b_.getInt32Ty(), &collet_emu_half, {i32(code), word(a), word(b), word(c)});
  return b_.CreateTrunc(r, bits(bits_of(t)));
}

FunctionTranslator::V FunctionTranslator::float_minmax(Type t, bool is_max, bool nan, bool xor_sign, V a, V b) {
  const bool f64 = t == Type::kF64;
  V quiet = f64 ? as(i64(0x7ff8000000000000), t) : as(i32(0x7fffffff), t);
  V sign = b_.CreateXor(as_bits(a), as_bits(b));
  if (xor_sign) {
    a = intrinsic(llvm::Intrinsic::fabs, {a->getType()}, {a});
    b = intrinsic(llvm::Intrinsic::fabs, {b->getType()}, {b});
  }
  // The intrinsics treat -0 as less than +0, as PTX does.
  V r = intrinsic(is_max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, {a->getType()}, {a, b});
  V either = b_.CreateFCmpUNO(a, b);
  if (nan) {
    r = b_.CreateSelect(either, quiet, r);
  } else {
    V other = b_.CreateSelect(is_nan(a), b, a);
    r = b_.CreateSelect(either, b_.CreateSelect(b_.CreateAnd(is_nan(a), is_nan(b)), quiet, other), r);
  }
  if (!xor_sign) return r;
  const uint64_t top = f64 ? uint64_t{1} << 63 : uint64_t{1} << 31;
  V pattern = b_.CreateXor(as_bits(r), b_.CreateAnd(sign, top));
  return b_.CreateSelect(is_nan(r), r, as(pattern, t));
}

FunctionTranslator::V FunctionTranslator::rounded(Type t, RoundedOp op, int rounding, V a, V b, V c) {
  constexpr Rounding kModes[] = {Rounding::kNearestEven, Rounding::kZero, Rounding::kDown, Rounding::kUp};
  V code = i32(static_cast<uint32_t>(op) | static_cast<uint32_t>(kModes[rounding]) << 8);
  V zero = llvm::ConstantFP::get(type(t), 0.0);
  b = b ? b : zero;
  c = c ? c : zero;
  if (t == Type::kF64) return call(type(t), &collet_emu_rounded_f64, {code, a, b, c});
  return call(type(t), &collet_emu_rounded_f32, {code, a, b, c});
}

/// Translates an arithmetic instruction. `op`: 0 add, 1 sub, 2 mul, 3 fma, 4 div.
void FunctionTranslator::float_arithmetic(const Instruction& in, Modifiers& m, Type t, int op) {
  want_operands(in, op == 3 ? 4 : 3, op == 3 ? 4 : 3);
  const int rounding = std::max(m.take_any({"rn", "rz", "rm", "rp"}), 0);
  const bool ftz = m.take("ftz"), sat = m.take("sat"), relu = m.take("relu");
  if (op == 4) m.take_any({"approx", "full"});
  m.take("oob");
  V a = read(in, 1, t), b = read(in, 2, t), c = op == 3 ? read(in, 3, t) : nullptr;
  if (is_half(t)) {
    constexpr HalfOp kOps[] = {HalfOp::kAdd, HalfOp::kSub, HalfOp::kMul, HalfOp::kFma};
    if (op == 4) fail(in, "no such type");
    if (rounding) fail(in, "only .rn for this type");
    const uint32_t flags = (ftz ? kHalfFlush : 0) | (sat ? kHalfSaturate : 0) | (relu ? kHalfRelu : 0);
    return write(in, half_op(t, kOps[op], flags, a, b, c));
  }
  if (t != Type::kF32 && t != Type::kF64) fail(in, "no such type");
  if (ftz) {
    a = flush(a);
    b = flush(b);
    if (c) c = flush(c);
  }
  V r;
  if (rounding) {
    constexpr RoundedOp kOps[] = {RoundedOp::kAdd, RoundedOp::kAdd, RoundedOp::kMul, RoundedOp::kFma, RoundedOp::kDiv};
    r = rounded(t, kOps[op], rounding, a, op == 1 ? b_.CreateFNeg(b) : b, c);
  } else {
    switch (op) {
      case 0:
        r = b_.CreateFAdd(a, b);
        break;
      case 1:
        r = b_.CreateFSub(a, b);
        break;
      case 2:
        r = b_.CreateFMul(a, b);
        break;
      case 3:
        r = intrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
        break;
      default:
        r = b_.CreateFDiv(a, b);
        break;
    }
  }
  if (ftz) r = flush(r);
  if (sat) r = saturate(r);
  write(in, r);
}

void FunctionTranslator::op_fma(const Instruction& in, Modifiers& m) {
  float_arithmetic(in, m, m.need_type(), 3);
}

void FunctionTranslator::op_rcp(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const Type t = m.need_type();
  const int rounding = std::max(m.take_any({"rn", "rz", "rm", "rp"}), 0);
  const bool ftz = m.take("ftz");
  m.take("approx");
  if (t != Type::kF32 && t != Type::kF64) fail(in, "no such type");
  V a = read(in, 1, t), one = llvm::ConstantFP::get(type(t), 1.0);
  if (ftz) a = flush(a);
  V r = rounding ? rounded(t, RoundedOp::kDiv, rounding, one, a, nullptr) : b_.CreateFDiv(one, a);
  write(in, ftz ? flush(r) : r);
}

void FunctionTranslator::op_sqrt(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const Type t = m.need_type();
  const int rounding = std::max(m.take_any({"rn", "rz", "rm", "rp"}), 0);
  const bool ftz = m.take("ftz");
  m.take("approx");
  if (t != Type::kF32 && t != Type::kF64) fail(in, "no such type");
  V a = read(in, 1, t);
  if (ftz) a = flush(a);
  V r = rounding ? rounded(t, RoundedOp::kSqrt, rounding, a, nullptr, nullptr)
                 : intrinsic(llvm::Intrinsic::sqrt, {a->getType()}, {a});
  write(in, ftz ? flush(r) : r);
}

void FunctionTranslator::approximate(const Instruction& in, Modifiers& m, const char* name) {
  want_operands(in, 2, 2);
  const Type t = m.need_type();
  const bool ftz = m.take("ftz");
  if (!m.take("approx")) fail(in, ".approx is missing");
  V a = read(in, 1, t);
  const std::string_view op = name;
  if (is_half(t) && (op == "ex2" || op == "tanh")) {
    return write(in, half_op(t, op == "ex2" ? HalfOp::kEx2 : HalfOp::kTanh, ftz ? kHalfFlush : 0, a));
  }
  if (t == Type::kF64 && op == "rsqrt") return write(in, call(type(t), &reciprocal_root_f64, {a}));
  if (t != Type::kF32) fail(in, "no such type");
  if (ftz) a = flush(a);
  const auto function = op == "rsqrt" ? &reciprocal_root
                        : op == "sin" ? &sine
                        : op == "cos" ? &cosine
                        : op == "lg2" ? &log_2
                        : op == "ex2" ? &exp_2
                                      : &hyperbolic_tangent;
  V r = call(type(t), function, {a});
  write(in, ftz ? flush(r) : r);
}

void FunctionTranslator::op_rsqrt(const Instruction& in, Modifiers& m) {
  approximate(in, m, "rsqrt");
}
void FunctionTranslator::op_sin(const Instruction& in, Modifiers& m) {
  approximate(in, m, "sin");
}
void FunctionTranslator::op_cos(const Instruction& in, Modifiers& m) {
  approximate(in, m, "cos");
}
void FunctionTranslator::op_lg2(const Instruction& in, Modifiers& m) {
  approximate(in, m, "lg2");
}
void FunctionTranslator::op_ex2(const Instruction& in, Modifiers& m) {
  approximate(in, m, "ex2");
}
void FunctionTranslator::op_tanh(const Instruction& in, Modifiers& m) {
  approximate(in, m, "tanh");
}

// The first operand provides the sign, the second the magnitude.
void FunctionTranslator::op_copysign(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  const Type t = m.need_type();
  if (t != Type::kF32 && t != Type::kF64) fail(in, "no such type");
  V a = read(in, 1, t), b = read(in, 2, t);
  write(in, intrinsic(llvm::Intrinsic::copysign, {a->getType()}, {b, a}));
}

void FunctionTranslator::op_testp(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const Type t = m.need_type();
  const int what = m.take_any({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (what < 0 || (t != Type::kF32 && t != Type::kF64)) fail(in, "not a known form");
  constexpr llvm::FPClassTest kTests[] = {llvm::fcFinite, llvm::fcInf,    ~llvm::fcNan & llvm::fcAllFlags,
                                          llvm::fcNan,    llvm::fcNormal, llvm::fcSubnormal};
  write(in, b_.createIsFPClass(read(in, 1, t), kTests[what]));
}

}  // namespace collet::gpu::emulator
