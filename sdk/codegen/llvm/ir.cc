// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/ir.h"

#include <collet/types.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsRISCV.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "sdk/codegen/base/element_type.h"

namespace collet::codegen {
namespace {

using llvm::Type;
using llvm::Value;

bool is_signed(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_SIGNED;
}

}  // namespace

Type* Ir::scalar(uint32_t type) {
  switch (collet_type_kind(type)) {
    case COLLET_KIND_PRED:
      return b.getInt1Ty();
    case COLLET_KIND_SIGNED:
    case COLLET_KIND_UNSIGNED:
      return b.getIntNTy(collet_type_bytes(type) * 8);
    default:
      return half_type(type) == COLLET_TYPE_F64 ? b.getDoubleTy() : b.getFloatTy();
  }
}

Type* Ir::storage(uint32_t type) {
  if (collet_type_kind(type) == COLLET_KIND_PRED) return b.getInt8Ty();
  if (type == COLLET_TYPE_F16 && target.half_conversion) return b.getHalfTy();
  if (is_narrow_float(type)) return b.getIntNTy(collet_type_bytes(type) * 8);
  return scalar(type);
}

Type* Ir::wide(Type* t, int lanes) {
  return lanes == 1 ? t : llvm::VectorType::get(t->getScalarType(), element_count(lanes));
}

llvm::ElementCount Ir::element_count(int lanes) const {
  const auto n = static_cast<unsigned>(lanes);
  if (!is_scalable_) return llvm::ElementCount::getFixed(n);
  return llvm::ElementCount::getScalable(n * static_cast<unsigned>(target.scalable_bits) /
                                         static_cast<unsigned>(target.vector_bits));
}

int Ir::lanes_of(const Value* v) const {
  const auto* const t = llvm::dyn_cast<llvm::VectorType>(v->getType());
  if (!t) return 1;
  const auto least = static_cast<int>(t->getElementCount().getKnownMinValue());
  return t->getElementCount().isScalable() ? least * (target.vector_bits / target.scalable_bits) : least;
}

Value* Ir::count(int lanes) {
  return b.CreateElementCount(b.getInt64Ty(), lanes == 1 ? llvm::ElementCount::getFixed(1) : element_count(lanes));
}

Value* Ir::steps(Type* element, int lanes, int64_t stride) {
  if (is_scalable_) {
    Type* const t = wide(element, lanes);
    Value* const first = b.CreateStepVector(t);
    return stride == 1 ? first : b.CreateMul(first, llvm::ConstantInt::getSigned(t, stride));
  }
  std::vector<llvm::Constant*> all;
  for (int i = 0; i < lanes; ++i) all.push_back(llvm::ConstantInt::getSigned(element, stride * i));
  return llvm::ConstantVector::get(all);
}

Value* Ir::first_lanes(Value* n, int lanes) {
  return b.CreateICmpULT(steps(n->getType(), lanes, 1), splat(n, lanes));
}

Value* Ir::interleave(Value* x, Value* y) {
  const int n = lanes_of(x);
  if (is_scalable_) return b.CreateIntrinsic(llvm::Intrinsic::vector_interleave2, {wide(x->getType(), 2 * n)}, {x, y});
  std::vector<int> order;
  for (int i = 0; i < n; ++i) order.insert(order.end(), {i, n + i});
  return b.CreateShuffleVector(x, y, order);
}

std::pair<Value*, Value*> Ir::deinterleave(Value* both) {
  if (is_scalable_) {
    Value* const parts = b.CreateIntrinsic(llvm::Intrinsic::vector_deinterleave2, {both->getType()}, {both});
    return {b.CreateExtractValue(parts, {0}), b.CreateExtractValue(parts, {1})};
  }
  std::vector<int> even, odd;
  for (int i = 0; i < lanes_of(both); i += 2) {
    even.push_back(i);
    odd.push_back(i + 1);
  }
  return {b.CreateShuffleVector(both, even), b.CreateShuffleVector(both, odd)};
}

Value* Ir::splat(Value* v, int lanes) {
  if (!v || lanes == 1 || v->getType()->isVectorTy()) return v;
  return b.CreateVectorSplat(element_count(lanes), v);
}

Val Ir::splat(const Val& x, int lanes) {
  return {splat(x.v, lanes), splat(x.im, lanes)};
}

Value* Ir::constant(Type* t, double x) {
  return llvm::ConstantFP::get(t, x);
}

Value* Ir::constant_int(Type* t, uint64_t x) {
  return llvm::ConstantInt::get(t, x);
}

Val Ir::zero(uint32_t type, int lanes) {
  Value* z = llvm::Constant::getNullValue(wide(scalar(type), lanes));
  return {z, collet_type_kind(type) == COLLET_KIND_COMPLEX ? z : nullptr};
}

Val Ir::literal(uint32_t type, const uint64_t bits[2]) {
  switch (type) {
    case COLLET_TYPE_F32:
      return {constant(b.getFloatTy(), std::bit_cast<float>(static_cast<uint32_t>(bits[0])))};
    case COLLET_TYPE_F64:
      return {constant(b.getDoubleTy(), std::bit_cast<double>(bits[0]))};
    case COLLET_TYPE_C64:
      return {constant(b.getFloatTy(), std::bit_cast<float>(static_cast<uint32_t>(bits[0]))),
              constant(b.getFloatTy(), std::bit_cast<float>(static_cast<uint32_t>(bits[0] >> 32)))};
    case COLLET_TYPE_C128:
      return {constant(b.getDoubleTy(), std::bit_cast<double>(bits[0])),
              constant(b.getDoubleTy(), std::bit_cast<double>(bits[1]))};
    default:
      break;
  }
  if (collet_type_kind(type) == COLLET_KIND_PRED) return {b.getInt1((bits[0] & 0xff) != 0)};
  unsigned width = collet_type_bytes(type) * 8;
  Value* raw = b.getIntN(width, width == 64 ? bits[0] : bits[0] & ((uint64_t{1} << width) - 1));
  if (!is_narrow_float(type)) return {raw};
  return {decode(b.CreateZExt(raw, b.getInt32Ty()), float_format(type))};
}

Value* Ir::fma(Value* x, Value* y, Value* z) {
  if (target.fma) return exact_fma(x, y, z);
  return b.CreateFAdd(b.CreateFMul(x, y), z);
}

std::pair<Value*, Value*> Ir::add_exactly(Value* x, Value* y) {
  Value* const sum = b.CreateFAdd(x, y);
  Value* const t = b.CreateFSub(sum, x);
  return {sum, b.CreateFAdd(b.CreateFSub(x, b.CreateFSub(sum, t)), b.CreateFSub(y, t))};
}

Value* Ir::exact_fma(Value* x, Value* y, Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

Value* Ir::scale_by_power(Value* x, Value* n) {
  const int element = static_cast<int>(x->getType()->getScalarSizeInBits());
  const int lanes = lanes_of(x);
  if (!target.scales || lanes * element < 512 || lanes * element % 512 != 0) return nullptr;
  namespace id = llvm::Intrinsic;
  const auto scale = element == 64 ? id::x86_avx512_mask_scalef_pd_512 : id::x86_avx512_mask_scalef_ps_512;
  const int part = 512 / element;
  Type* t = wide(x->getType()->getScalarType(), part);
  Value* all = llvm::Constant::getAllOnesValue(b.getIntNTy(static_cast<unsigned>(part)));
  constexpr uint32_t kCurrentRounding = 4;
  Value* result = lanes == part ? nullptr : llvm::PoisonValue::get(x->getType());
  for (int at = 0; at < lanes; at += part) {
    auto piece = [&](Value* v) {
      return lanes == part ? v : b.CreateExtractVector(t, v, b.getInt64(static_cast<uint64_t>(at)));
    };
    Value* r = b.CreateIntrinsic(
        scale, {}, {piece(x), piece(n), llvm::Constant::getNullValue(t), all, b.getInt32(kCurrentRounding)});
    if (!result) return r;
    result = b.CreateInsertVector(x->getType(), result, r, b.getInt64(static_cast<uint64_t>(at)));
  }
  return result;
}

Type* Ir::int_like(Value* v) {
  return like(v, b.getIntNTy(v->getType()->getScalarSizeInBits()));
}

Val Ir::select(Value* c, const Val& x, const Val& y) {
  return {b.CreateSelect(c, x.v, y.v), x.im ? b.CreateSelect(c, x.im, y.im) : nullptr};
}

/// Converts an f32 to the bits of a narrow float, as i32. Rounds to nearest even, E8M0 to the larger of two powers that are as near,
/// and overflows as the format defines.
Value* Ir::encode(Value* f32, const FloatFormat& f) {
  const int m = f.mantissa_bits;
  Type* i32 = int_like(f32);
  auto k = [&](uint32_t x) { return constant_int(i32, x); };
  Value* bits = bits_of(f32);
  if (m == 7 && f.exponent_bits == 8 && f.specials == FloatFormat::IEEE) {
    // The exponents of bf16 are those of f32: rounding the bits as an integer gives the nearest number, or infinity.
    Value* const upper = b.CreateLShr(bits, k(16));
    Value* const half = b.CreateAdd(b.CreateAnd(upper, k(1)), k(0x7fff));
    Value* const nearest = b.CreateLShr(b.CreateAdd(bits, half), k(16));
    Value* const quiet = b.CreateOr(b.CreateAnd(upper, k(0x8000)), k(0x7fc0));
    return b.CreateSelect(b.CreateFCmpUNO(f32, f32), quiet, nearest);
  }
  Value* sign = b.CreateLShr(bits, k(31));
  Value* mag = b.CreateAnd(bits, k(0x7fffffff));
  Value* nan = b.CreateICmpUGT(mag, k(0x7f800000));
  const int shift = 23 - m;
  if (f.specials == FloatFormat::E8M0) {
    // The numbers below 2^-126 have no implicit bit: half of a unit in the last place is half as much there.
    Value* half = b.CreateSelect(b.CreateICmpUGE(mag, k(0x800000)), k(0x400000), k(0x200000));
    Value* rounded = b.CreateLShr(b.CreateAdd(mag, half), k(23));
    Value* bad = b.CreateOr(nan, b.CreateOr(b.CreateICmpUGE(rounded, k(255)), b.CreateICmpEQ(sign, k(1))));
    bad = b.CreateOr(bad, b.CreateICmpEQ(mag, k(0)));
    return b.CreateSelect(bad, k(0xff), rounded);
  }
  Value* odd = b.CreateAnd(b.CreateLShr(mag, k(static_cast<uint32_t>(shift))), k(1));
  Value* rounded = b.CreateAdd(b.CreateAdd(mag, k((1u << (shift - 1)) - 1)), odd);
  rounded = b.CreateLShr(rounded, k(static_cast<uint32_t>(shift)));
  // Numbers below the smallest normal one are multiples of its unit in the last place: adding 1.5 * 2^23 such units
  // rounds them.
  Value* result = b.CreateSub(rounded, k(static_cast<uint32_t>(127 - f.bias) << m));
  if (f.bias != 127) {
    Type* ft = f32->getType();
    Value* tiny = b.CreateFMul(b.CreateBitCast(mag, ft), constant(ft, std::ldexp(1.0, f.bias - 1 + m)));
    Value* small = b.CreateSub(bits_of(b.CreateFAdd(tiny, constant(ft, 8388608.0))), k(0x4b000000));
    Value* subnormal = b.CreateICmpULT(mag, k(static_cast<uint32_t>(128 - f.bias) << 23));
    result = b.CreateSelect(subnormal, small, result);
  }
  const uint32_t top = (1u << (f.exponent_bits + m)) - 1;  // all bits set except the sign
  const uint32_t infinity = ((1u << f.exponent_bits) - 1) << m;
  uint32_t largest = f.specials == FloatFormat::IEEE ? infinity - 1 : f.specials == FloatFormat::FN ? top - 1 : top;
  uint32_t overflow = f.specials == FloatFormat::IEEE ? infinity : top;
  uint32_t not_a_number = f.specials == FloatFormat::IEEE ? infinity | (1u << (m - 1)) : top;
  uint32_t sign_shift = static_cast<uint32_t>(f.exponent_bits + m);
  Value* over = b.CreateICmpSGT(result, k(largest));
  over = b.CreateOr(over, b.CreateICmpUGE(mag, k(0x7f800000)));
  result = b.CreateSelect(over, k(overflow), result);
  if (f.specials == FloatFormat::FINITE) {
    // A NaN without an encoding becomes -0.
    return b.CreateSelect(nan, k(1u << sign_shift), b.CreateOr(result, b.CreateShl(sign, k(sign_shift))));
  }
  if (f.specials == FloatFormat::FNUZ) {
    Value* bad = b.CreateOr(nan, over);
    Value* nonzero = b.CreateICmpNE(result, k(0));
    Value* with_sign = b.CreateOr(result, b.CreateShl(sign, k(sign_shift)));
    result = b.CreateSelect(nonzero, with_sign, k(0));
    return b.CreateSelect(bad, k(1u << sign_shift), result);
  }
  Value* of_nan = k(not_a_number);
  if (f.specials == FloatFormat::IEEE && f.bias != 127) {  // keeps the bits of NaN
    Value* payload = b.CreateAnd(b.CreateLShr(mag, k(static_cast<uint32_t>(shift))), k((1u << m) - 1));
    Value* lost = b.CreateICmpEQ(payload, k(0));
    of_nan = b.CreateSelect(lost, of_nan, b.CreateOr(payload, k(infinity)));
  }
  result = b.CreateSelect(nan, of_nan, result);
  return b.CreateOr(result, b.CreateShl(sign, k(sign_shift)));
}

/// Converts the bits of a narrow float, given as i32, to an f32.
Value* Ir::decode(Value* bits, const FloatFormat& f) {
  Type* i32 = bits->getType();
  Type* ft = like(bits, b.getFloatTy());
  auto k = [&](uint32_t x) { return constant_int(i32, x); };
  const int m = f.mantissa_bits;
  if (f.specials == FloatFormat::E8M0) {
    Value* normal = b.CreateSelect(b.CreateICmpEQ(bits, k(0)), k(0x00400000), b.CreateShl(bits, k(23)));
    normal = b.CreateSelect(b.CreateICmpEQ(bits, k(0xff)), k(0x7fc00000), normal);
    return b.CreateBitCast(normal, ft);
  }
  const uint32_t top = (1u << (f.exponent_bits + m)) - 1;
  const uint32_t infinity = ((1u << f.exponent_bits) - 1) << m;
  const uint32_t sign_shift = static_cast<uint32_t>(f.exponent_bits + m);
  Value* mag = b.CreateAnd(bits, k(top));
  Value* sign = b.CreateShl(b.CreateLShr(bits, k(sign_shift)), k(31));
  Value* result =
      b.CreateAdd(b.CreateShl(mag, k(static_cast<uint32_t>(23 - m))), k(static_cast<uint32_t>(127 - f.bias) << 23));
  if (f.bias != 127) {
    Value* small = b.CreateFMul(b.CreateUIToFP(mag, ft), constant(ft, std::ldexp(1.0, 1 - f.bias - m)));
    result = b.CreateSelect(b.CreateICmpULT(mag, k(1u << m)), bits_of(small), result);
  }
  if (f.specials == FloatFormat::IEEE) {
    Value* special = b.CreateOr(b.CreateShl(mag, k(static_cast<uint32_t>(23 - m))), k(0x7f800000));
    result = b.CreateSelect(b.CreateICmpUGE(mag, k(infinity)), special, result);
  } else if (f.specials == FloatFormat::FN) {
    result = b.CreateSelect(b.CreateICmpEQ(mag, k(top)), k(0x7fc00000), result);
  } else if (f.specials == FloatFormat::FNUZ) {
    Value* nan = b.CreateICmpEQ(bits, k(1u << sign_shift));
    return b.CreateBitCast(b.CreateSelect(nan, k(0x7fc00000), b.CreateOr(result, sign)), ft);
  }
  return b.CreateBitCast(b.CreateOr(result, sign), ft);
}

Value* Ir::round_to_bf16(Value* f32) {
  // The instruction that rounds two numbers takes a fraction of the time of the one for a single number. The other half
  // is zero, so the bits of both halves are those of the result as f32.
  Value* const pair =
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2bf16x2_rn, {}, {f32, llvm::ConstantFP::get(f32->getType(), 0.0)});
  return b.CreateBitCast(pair, f32->getType());
}

Value* Ir::round_pairs_to_bf16(Value* f32) {
  Value* all = llvm::PoisonValue::get(f32->getType());
  for (int i = 0; i < lanes_of(f32); i += 2) {
    const auto lane = static_cast<uint64_t>(i);
    Value* const pair = b.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2bf16x2_rn, {},
                                          {b.CreateExtractElement(f32, lane + 1), b.CreateExtractElement(f32, lane)});
    Value* const bits = b.CreateBitCast(pair, b.getInt32Ty());
    Value* const low = b.CreateBitCast(b.CreateShl(bits, uint64_t{16}), b.getFloatTy());
    Value* const high = b.CreateBitCast(b.CreateAnd(bits, uint64_t{0xffff0000}), b.getFloatTy());
    all = b.CreateInsertElement(b.CreateInsertElement(all, low, lane), high, lane + 1);
  }
  return all;
}

Value* Ir::each_lane(Value* v, const std::function<Value*(Value*)>& f) {
  if (!v->getType()->isVectorTy()) return f(v);
  Value* all = llvm::PoisonValue::get(v->getType());
  for (int i = 0; i < lanes_of(v); ++i) {
    const auto lane = static_cast<uint64_t>(i);
    all = b.CreateInsertElement(all, f(b.CreateExtractElement(v, lane)), lane);
  }
  return all;
}

Value* Ir::round_narrow(Value* f32, uint32_t type) {
  if (type == COLLET_TYPE_F16 && target.half_conversion) {
    return keep_wide(b.CreateFPExt(b.CreateFPTrunc(f32, like(f32, b.getHalfTy())), f32->getType()));
  }
  FloatFormat f = float_format(type);
  if (type == COLLET_TYPE_BF16) {
    Type* i32 = int_like(f32);
    if (target.has_grid() && f32->getType()->isVectorTy() && lanes_of(f32) % 2 == 0) return round_pairs_to_bf16(f32);
    if (target.has_grid()) return each_lane(f32, [&](Value* x) { return round_to_bf16(x); });
    return b.CreateBitCast(b.CreateShl(encode(f32, f), constant_int(i32, 16)), f32->getType());
  }
  return decode(encode(f32, f), f);
}

Value* Ir::round_to_odd(Value* f64) {
  // A number that f32 cannot hold is between two f32, one of which has an odd significand. That one is either the
  // nearest f32 or its neighbour on the other side. The same holds for denormals.
  Value* nearest = b.CreateFPTrunc(f64, like(f64, b.getFloatTy()));
  Value* back = b.CreateFPExt(nearest, f64->getType());
  Value* bits = bits_of(nearest);
  Type* i32 = bits->getType();
  Value* even = b.CreateICmpEQ(b.CreateAnd(bits, constant_int(i32, 1)), constant_int(i32, 0));
  Value* moves = b.CreateAnd(even, b.CreateFCmpONE(back, f64));
  Value* up = b.CreateFCmpOLT(unary(llvm::Intrinsic::fabs, back), unary(llvm::Intrinsic::fabs, f64));
  Value* other = b.CreateAdd(bits, b.CreateSelect(up, constant_int(i32, 1), llvm::ConstantInt::getSigned(i32, -1)));
  return b.CreateBitCast(b.CreateSelect(moves, other, bits), nearest->getType());
}

Value* Ir::to_storage(const Val& x, uint32_t type) {
  Type* st = like(x.v, storage(type));
  if (collet_type_kind(type) == COLLET_KIND_PRED) return b.CreateZExt(x.v, st);
  if (!is_narrow_float(type)) return x.v;
  if (type == COLLET_TYPE_F16 && target.half_conversion) return narrow_half(x.v, st);
  if (type == COLLET_TYPE_BF16 && target.has_grid() && x.v->getType()->isVectorTy() && lanes_of(x.v) % 2 == 0) {
    // Two lanes become a word again, as round_pairs_to_bf16 had it.
    const auto words = static_cast<unsigned>(lanes_of(x.v) / 2);
    Value* const bits = bits_of(x.v);
    Value* all = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt32Ty(), words));
    for (uint64_t i = 0; i < words; ++i) {
      Value* const low = b.CreateLShr(b.CreateExtractElement(bits, 2 * i), uint64_t{16});
      Value* const high = b.CreateAnd(b.CreateExtractElement(bits, 2 * i + 1), uint64_t{0xffff0000});
      all = b.CreateInsertElement(all, b.CreateOr(low, high), i);
    }
    return b.CreateBitCast(all, st);
  }
  if (type == COLLET_TYPE_BF16) {  // the value has been rounded to bf16 already
    return b.CreateTrunc(b.CreateLShr(bits_of(x.v), constant_int(int_like(x.v), 16)), st);
  }
  return b.CreateTrunc(encode(x.v, float_format(type)), st);
}

Value* Ir::keep_wide(Value* f32) {
  const bool splits = f32->getType()->isVectorTy() && !is_scalable() && target.triple.starts_with("x86_64");
  return splits ? b.CreateArithmeticFence(f32, f32->getType()) : f32;
}

Value* Ir::narrow_half(Value* f32, Type* half) {
  if (const auto* fence = llvm::dyn_cast<llvm::IntrinsicInst>(f32);
      fence && fence->getIntrinsicID() == llvm::Intrinsic::arithmetic_fence) {
    const auto* wide = llvm::dyn_cast<llvm::FPExtInst>(fence->getArgOperand(0));
    if (wide && wide->getSrcTy() == half) return wide->getOperand(0);
  }
  return b.CreateFPTrunc(f32, half);
}

Value* Ir::widen_half(Value* half) {
  Value* const wide = keep_wide(b.CreateFPExt(half, like(half, b.getFloatTy())));
  if (!target.has_grid()) return wide;
  // The conversion instruction of a GPU maps all NaNs to one, but the total order distinguishes them.
  Value* const bits = b.CreateZExt(b.CreateBitCast(half, like(half, b.getInt16Ty())), like(half, b.getInt32Ty()));
  const auto k = [&](uint32_t x) { return constant_int(bits->getType(), x); };
  Value* const magnitude = b.CreateShl(b.CreateAnd(bits, k(0x7fff)), k(13));
  Value* const sign = b.CreateShl(b.CreateAnd(bits, k(0x8000)), k(16));
  Value* const nan = b.CreateOr(b.CreateOr(magnitude, k(0x7f800000)), sign);
  return b.CreateSelect(b.CreateFCmpUNO(wide, wide), b.CreateBitCast(nan, wide->getType()), wide);
}

Value* Ir::from_storage(Value* v, uint32_t type) {
  if (collet_type_kind(type) == COLLET_KIND_PRED) return b.CreateICmpNE(v, constant_int(v->getType(), 0));
  if (!is_narrow_float(type)) return v;
  Type* ft = like(v, b.getFloatTy());
  if (type == COLLET_TYPE_F16 && target.half_conversion) return widen_half(v);
  Type* i32 = like(v, b.getInt32Ty());
  Value* bits = b.CreateZExt(v, i32);
  if (type == COLLET_TYPE_BF16) return b.CreateBitCast(b.CreateShl(bits, constant_int(i32, 16)), ft);
  return decode(bits, float_format(type));
}

Value* Ir::wrap_small(Value* v, uint32_t type) {
  const int bits = type_bits(type);
  if (bits == 0 || bits >= 8 || collet_type_kind(type) == COLLET_KIND_FLOAT) return v;
  Value* by = constant_int(v->getType(), 8 - bits);
  Value* high = b.CreateShl(v, by);
  return is_signed(type) ? b.CreateAShr(high, by) : b.CreateLShr(high, by);
}

Value* Ir::cut_to_53_bits(Value* v, bool has_sign) {
  Type* t = v->getType();
  Value* rest = b.CreateAnd(v, constant_int(t, 0xfff));
  Value* sticky = b.CreateSelect(b.CreateICmpNE(rest, constant_int(t, 0)), constant_int(t, 0x800), constant_int(t, 0));
  Value* cut = b.CreateOr(b.CreateXor(v, rest), sticky);
  const uint64_t most = uint64_t{1} << 53;
  Value* from_least = has_sign ? b.CreateAdd(v, constant_int(t, most)) : v;
  return b.CreateSelect(b.CreateICmpUGT(from_least, constant_int(t, has_sign ? 2 * most : most)), cut, v);
}

Value* Ir::to_integer(Value* v, Type* to, bool is_signed) {
  Value* const special = riscv_to_integer(v, to, is_signed);
  if (special) return special;
  if (llvm::isa<llvm::FixedVectorType>(v->getType()) && target.triple.rfind("x86_64", 0) == 0) {
    return clamp_to_integer(v, to, is_signed);
  }
  const auto id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b.CreateIntrinsic(id, {to, v->getType()}, {v});
}

// LLVM 19 splits the saturating conversion of a vector into elements on x86, whose instructions do not saturate. So the
// value is clamped before it is converted: to the limits of the integers, or the float nearest to one inside of them.
Value* Ir::clamp_to_integer(Value* v, Type* to, bool is_signed) {
  const unsigned bits = to->getScalarSizeInBits();
  const llvm::fltSemantics& format = v->getType()->getScalarType()->getFltSemantics();
  const auto limit = [&](const llvm::APInt& x, bool& exact) {
    llvm::APFloat f(format);
    exact = f.convertFromAPInt(x, is_signed, llvm::APFloat::rmTowardZero) == llvm::APFloat::opOK;
    return llvm::ConstantFP::get(v->getType(), f);
  };
  const llvm::APInt most = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  bool exact = false;
  Value* const lo = limit(is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0), exact);
  Value* const hi = limit(most, exact);
  Value* inside = b.CreateSelect(b.CreateFCmpOGT(v, lo), v, lo);  // also replaces NaN
  inside = b.CreateSelect(b.CreateFCmpOLT(inside, hi), inside, hi);
  Value* r = is_signed ? b.CreateFPToSI(inside, to) : b.CreateFPToUI(inside, to);
  if (!exact) r = b.CreateSelect(b.CreateFCmpOGT(v, hi), llvm::ConstantInt::get(to, most), r);
  if (!is_signed) return r;  // the lower limit is 0, as NaN is to be
  return b.CreateSelect(b.CreateFCmpUNO(v, v), llvm::Constant::getNullValue(to), r);
}

// Negates a float. InstCombine of LLVM 19 does not terminate on the negation of a select between zeros and another
// value in scalable vectors, so those are negated in another way.
Value* Ir::neg(Value* v) {
  if (!llvm::isa<llvm::ScalableVectorType>(v->getType())) return b.CreateFNeg(v);
  Value* const bits = bits_of(v);
  Value* const sign = constant_int(bits->getType(), uint64_t{1} << (bits->getType()->getScalarSizeInBits() - 1));
  return b.CreateBitCast(b.CreateXor(bits, sign), v->getType());
}

// Converts floats to integers by the RISC-V vector instruction with an explicit rounding mode. QEMU before 8.0 stops at
// vfcvt.rtz if no other floating-point instruction precedes it in its block, and LLVM emits that instruction for all
// other conversions. Code for the least RISC-V processor therefore rounds positive numbers downward and negative ones
// upward. Returns null if this is not needed.
Value* Ir::riscv_to_integer(Value* v, Type* to, bool is_signed) {
  // Numbers of 64-bit blocks in one vector register of the least length, and in a whole register group.
  constexpr unsigned kLeastBlocks = 2, kMostBlocks = 8;
  constexpr uint64_t kDownward = 2, kUpward = 3;
  const bool scalable = llvm::isa<llvm::ScalableVectorType>(v->getType());
  const auto lanes = static_cast<unsigned>(lanes_of(v));
  const bool is_least = target.triple.rfind("riscv64", 0) == 0 && target.cpu == "generic-rv64";
  if (!is_least || !v->getType()->isVectorTy()) return nullptr;
  // No instruction narrows to less than half.
  if (v->getType()->getScalarSizeInBits() > 2 * to->getScalarSizeInBits()) {
    const unsigned bits = to->getScalarSizeInBits();
    const uint64_t most = ~uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
    Value* wider = riscv_to_integer(v, like(v, b.getIntNTy(2 * bits)), is_signed);
    if (!wider) return nullptr;
    const auto limit = [&](uint64_t x) {
      return llvm::ConstantInt::getSigned(wider->getType(), static_cast<int64_t>(x));
    };
    wider = binary(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, wider, limit(most));
    if (is_signed) wider = binary(llvm::Intrinsic::smax, wider, limit(~most));
    return b.CreateTrunc(wider, to);
  }
  const unsigned blocks = scalable ? llvm::cast<llvm::ScalableVectorType>(v->getType())->getMinNumElements()
                                   : std::max(1u, lanes / kLeastBlocks);
  const unsigned from_bits = v->getType()->getScalarSizeInBits(), to_bits = to->getScalarSizeInBits();
  if (!std::has_single_bit(blocks) || blocks > kMostBlocks || from_bits > 2 * to_bits) return nullptr;
  if (!scalable && !std::has_single_bit(lanes)) return nullptr;
  namespace id = llvm::Intrinsic;
  const id::ID exact = from_bits == to_bits  ? (is_signed ? id::riscv_vfcvt_x_f_v : id::riscv_vfcvt_xu_f_v)
                       : from_bits > to_bits ? (is_signed ? id::riscv_vfncvt_x_f_w : id::riscv_vfncvt_xu_f_w)
                                             : (is_signed ? id::riscv_vfwcvt_x_f_v : id::riscv_vfwcvt_xu_f_v);
  Type* const wide_from = llvm::ScalableVectorType::get(v->getType()->getScalarType(), blocks);
  Type* const wide_to = llvm::ScalableVectorType::get(to->getScalarType(), blocks);
  Value* const all =
      scalable ? v : b.CreateInsertVector(wide_from, llvm::PoisonValue::get(wide_from), v, b.getInt64(0));
  Value* const length = scalable ? b.getInt64(UINT64_MAX) : b.getInt64(lanes);  // all ones: all lanes
  const auto rounded = [&](uint64_t mode) {
    Value* const integers = b.CreateIntrinsic(exact, {wide_to, wide_from, b.getInt64Ty()},
                                              {llvm::PoisonValue::get(wide_to), all, b.getInt64(mode), length});
    return scalable ? integers : b.CreateExtractVector(to, integers, b.getInt64(0));
  };
  Value* integers = rounded(kDownward);
  if (is_signed) {
    Value* const zero = llvm::Constant::getNullValue(v->getType());
    integers = b.CreateSelect(b.CreateFCmpOLT(v, zero), rounded(kUpward), integers);
  }
  return b.CreateSelect(b.CreateFCmpUNO(v, v), llvm::Constant::getNullValue(to), integers);
}

bool Ir::neon_rounds_twice(Value* v) const {
  return llvm::isa<llvm::FixedVectorType>(v->getType()) && v->getType()->getScalarSizeInBits() == 64 &&
         target.triple.rfind("aarch64", 0) == 0;
}

Value* Ir::real_to_real(Value* v, uint32_t from, uint32_t to) {
  const uint32_t kind_from = collet_type_kind(from);
  const uint32_t kind_to = collet_type_kind(to);
  Type* t = like(v, scalar(to));
  if (kind_to == COLLET_KIND_PRED) {
    Value* z = llvm::Constant::getNullValue(v->getType());
    return kind_from == COLLET_KIND_FLOAT ? b.CreateFCmpUNE(v, z) : b.CreateICmpNE(v, z);
  }
  bool from_int = kind_from != COLLET_KIND_FLOAT;
  bool to_int = kind_to != COLLET_KIND_FLOAT;
  if (from_int && to_int) {
    Value* r = is_signed(from) ? b.CreateSExtOrTrunc(v, t) : b.CreateZExtOrTrunc(v, t);
    return wrap_small(r, to);
  }
  if (from_int) {
    const bool narrow = is_narrow_float(to);
    const unsigned bits = v->getType()->getScalarSizeInBits();
    const bool by_double = (narrow && bits > 16) || (to == COLLET_TYPE_F32 && neon_rounds_twice(v));
    Type* ft = by_double ? like(v, b.getDoubleTy()) : t;
    if (by_double && bits == 64) v = cut_to_53_bits(v, is_signed(from));
    Value* r = is_signed(from) ? b.CreateSIToFP(v, ft) : b.CreateUIToFP(v, ft);
    if (narrow) return round_narrow(by_double ? round_to_odd(r) : r, to);
    return by_double ? b.CreateFPTrunc(r, t) : r;
  }
  if (to_int) {
    const int bits = type_bits(to);
    Type* it = like(v, b.getIntNTy(bits > 32 ? 64 : 32));
    Value* r = to_integer(v, it, is_signed(to));
    if (bits >= 32) return r;
    if (is_signed(to)) {
      int64_t top = (int64_t{1} << (bits - 1)) - 1;
      r = binary(llvm::Intrinsic::smin, r, constant_int(it, static_cast<uint64_t>(top)));
      r = binary(llvm::Intrinsic::smax, r, llvm::ConstantInt::getSigned(it, -top - 1));
    } else {
      r = binary(llvm::Intrinsic::umin, r, constant_int(it, (uint64_t{1} << bits) - 1));
    }
    return b.CreateTrunc(r, t);
  }
  bool from_double = from == COLLET_TYPE_F64;
  if (to == COLLET_TYPE_F64) return from_double ? v : b.CreateFPExt(v, t);
  if (to == COLLET_TYPE_F32) return from_double ? b.CreateFPTrunc(v, t) : v;
  if (from_double) v = round_to_odd(v);
  return from == to ? v : round_narrow(v, to);
}

Val Ir::convert(const Val& x, uint32_t from, uint32_t to) {
  if (from == to) return x;
  const bool from_complex = collet_type_kind(from) == COLLET_KIND_COMPLEX;
  const bool to_complex = collet_type_kind(to) == COLLET_KIND_COMPLEX;
  if (from_complex && collet_type_kind(to) == COLLET_KIND_PRED) {
    return {b.CreateOr(real_to_real(x.v, half_type(from), to), real_to_real(x.im, half_type(from), to))};
  }
  Value* re = real_to_real(x.v, half_type(from), half_type(to));
  if (!to_complex) return {re};
  Value* im =
      from_complex ? real_to_real(x.im, half_type(from), half_type(to)) : llvm::Constant::getNullValue(re->getType());
  return {re, im};
}

void Ir::loop(Value* begin, Value* end, Value* step, const std::function<void(Value*)>& body) {
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const head = llvm::BasicBlock::Create(context(), "loop", before->getParent());
  llvm::BasicBlock* const exit = llvm::BasicBlock::Create(context(), "done", before->getParent());
  b.CreateCondBr(b.CreateICmpSLT(begin, end), head, exit);
  b.SetInsertPoint(head);
  llvm::PHINode* const i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  body(i);
  Value* const next = b.CreateAdd(i, step, "", true, true);
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), head, exit);
  b.SetInsertPoint(exit);
}

void Ir::branch(Value* condition, const std::function<void()>& body, llvm::MDNode* weights) {
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* const then = llvm::BasicBlock::Create(context(), "then", function);
  llvm::BasicBlock* const exit = llvm::BasicBlock::Create(context(), "next", function);
  b.CreateCondBr(condition, then, exit, weights);
  b.SetInsertPoint(then);
  body();
  b.CreateBr(exit);
  b.SetInsertPoint(exit);
}

void Ir::choose(Value* condition, const std::function<void()>& on_true, const std::function<void()>& on_false,
                llvm::MDNode* weights) {
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* const blocks[] = {llvm::BasicBlock::Create(context(), "then", function),
                                      llvm::BasicBlock::Create(context(), "else", function)};
  llvm::BasicBlock* const exit = llvm::BasicBlock::Create(context(), "next", function);
  b.CreateCondBr(condition, blocks[0], blocks[1], weights);
  for (size_t i = 0; i < 2; ++i) {
    b.SetInsertPoint(blocks[i]);
    i == 0 ? on_true() : on_false();
    b.CreateBr(exit);
  }
  b.SetInsertPoint(exit);
}

}  // namespace collet::codegen
