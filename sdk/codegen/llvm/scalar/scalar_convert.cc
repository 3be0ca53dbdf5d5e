// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/scalar/scalar_convert.h"

#include <collet/types.h>

#include "sdk/codegen/base/element_type.h"

namespace collet::codegen {
namespace {

using llvm::Type;
using llvm::Value;
namespace id = llvm::Intrinsic;

/// Converts with stochastic rounding: the magnitude is truncated, and increased by one if the fraction exceeds the
/// random number.
Value* stochastic_to_int(Ir& ir, Value* x, Value* random, uint32_t to) {
  auto& b = ir.b;
  Value* magnitude = ir.unary(id::fabs, x);
  Value* whole = ir.unary(id::floor, magnitude);
  Value* fraction = b.CreateFSub(magnitude, whole);
  unsigned width = random->getType()->getScalarSizeInBits();
  Type* wide = ir.like(x, b.getDoubleTy());
  Value* limit = b.CreateFMul(x->getType()->getScalarType()->isDoubleTy() ? fraction : b.CreateFPExt(fraction, wide),
                              ir.constant(wide, width == 64 ? 0x1p64 : static_cast<double>(uint64_t{1} << width)));
  Value* threshold = ir.to_integer(limit, random->getType(), false);
  Value* up = b.CreateICmpULT(random, threshold);
  Value* more = b.CreateFAdd(whole, ir.constant(x->getType(), 1.0));
  Value* rounded = b.CreateSelect(up, more, whole);
  Value* result = ir.binary(id::copysign, rounded, x);
  uint32_t from = x->getType()->getScalarType()->isDoubleTy() ? COLLET_TYPE_F64 : COLLET_TYPE_F32;
  return ir.convert({result}, from, to).v;
}

}  // namespace

Val scalar_convert(Ir& ir, const ScalarOp& op) {
  return ir.convert(op.args[0], op.types[0], op.result_type);
}

Val scalar_bitcast(Ir& ir, const ScalarOp& op) {
  if (collet_type_kind(op.types[0]) == COLLET_KIND_COMPLEX) return op.args[0];
  Value* raw = ir.to_storage(op.args[0], op.types[0]);
  raw = ir.b.CreateBitCast(raw, ir.like(raw, ir.storage(op.result_type)));
  return {ir.from_storage(raw, op.result_type)};
}

Val scalar_reduce_precision(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  // Formats with infinities are rounded in their own bits, so that their subnormal numbers are rounded correctly.
  FloatFormat f = op.types[0] == COLLET_TYPE_F64 ? FloatFormat{11, 52, 1023} : FloatFormat{8, 23, 127};
  const bool narrow = op.types[0] != COLLET_TYPE_F32 && op.types[0] != COLLET_TYPE_F64 &&
                      float_format(op.types[0]).specials == FloatFormat::IEEE;
  Value* x = op.args[0].v;
  Value* bits = ir.bits_of(x);
  if (narrow) {
    f = float_format(op.types[0]);
    Value* stored = ir.to_storage({x}, op.types[0]);
    bits = b.CreateBitCast(stored, ir.like(stored, b.getIntNTy(static_cast<unsigned>(type_bits(op.types[0])))));
  }
  const int to_exponent = static_cast<int>(op.a);
  const int to_mantissa = static_cast<int>(op.b);
  auto k = [&](uint64_t v) { return ir.constant_int(bits->getType(), v); };
  const uint64_t sign_mask = uint64_t{1} << (f.mantissa_bits + f.exponent_bits);
  Value* sign = b.CreateAnd(bits, k(sign_mask));
  Value* mag = b.CreateAnd(bits, k(sign_mask - 1));
  const uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
  Value* r = mag;
  if (to_mantissa < f.mantissa_bits) {
    const int cut = f.mantissa_bits - to_mantissa;
    Value* odd = b.CreateAnd(b.CreateLShr(mag, k(static_cast<uint64_t>(cut))), k(1));
    r = b.CreateAdd(b.CreateAdd(mag, k((uint64_t{1} << (cut - 1)) - 1)), odd);
    r = b.CreateAnd(r, k(sign_mask - (uint64_t{1} << cut)));
  }
  if (to_exponent < f.exponent_bits) {
    const int to_bias = (1 << (to_exponent - 1)) - 1;
    const uint64_t too_large = static_cast<uint64_t>(f.bias + to_bias + 1) << f.mantissa_bits;
    const uint64_t too_small = static_cast<uint64_t>(f.bias - to_bias) << f.mantissa_bits;
    r = b.CreateSelect(b.CreateICmpUGE(r, k(too_large)), k(infinity), r);
    r = b.CreateSelect(b.CreateICmpULT(r, k(too_small + (uint64_t{1} << f.mantissa_bits))), k(0), r);
  }
  Value* nan = b.CreateFCmpUNO(x, x);
  r = b.CreateSelect(nan, to_mantissa == 0 ? k(infinity) : mag, r);
  Value* y = b.CreateOr(r, sign);
  if (!narrow) return {b.CreateBitCast(y, x->getType())};
  return {ir.from_storage(b.CreateBitCast(y, ir.like(y, ir.storage(op.types[0]))), op.types[0])};
}

Val scalar_stochastic_convert(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  Value* x = op.args[0].v;
  Value* random = op.args[1].v;
  const uint32_t kind = collet_type_kind(op.result_type);
  if (kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED) {
    return {stochastic_to_int(ir, x, random, op.result_type)};
  }
  // To a narrower float: add the random bits below the last place, then truncate.
  const unsigned to_mantissa =
      static_cast<unsigned>(op.result_type == COLLET_TYPE_F32 ? 23 : float_format(op.result_type).mantissa_bits);
  const unsigned mantissa = x->getType()->getScalarType()->isDoubleTy() ? 52 : 23;
  if (to_mantissa >= mantissa) return ir.convert({x}, op.types[0], op.result_type);
  Type* t = ir.int_like(x);
  const unsigned cut = mantissa - to_mantissa;
  const uint64_t mask = (uint64_t{1} << cut) - 1;
  const auto random_width = static_cast<unsigned>(type_bits(op.types[1]));
  Value* noise = b.CreateZExtOrTrunc(random, t);
  if (random_width > cut && random_width <= t->getScalarSizeInBits()) {
    noise = b.CreateLShr(noise, ir.constant_int(t, random_width - cut));
  }
  noise = b.CreateAnd(noise, ir.constant_int(t, mask));
  Value* sum = b.CreateAnd(b.CreateAdd(ir.bits_of(x), noise), ir.constant_int(t, ~mask));
  Value* y = b.CreateBitCast(sum, x->getType());
  y = b.CreateSelect(b.CreateFCmpUNO(x, x), x, y);
  return ir.convert({y}, op.types[0], op.result_type);
}

}  // namespace collet::codegen
