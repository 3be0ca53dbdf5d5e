// SPDX-License-Identifier: Apache-2.0
// Translates integer arithmetic and bit operations.
#include <llvm/IR/Intrinsics.h>

#include "reference_backends/gpu/emulator/function_translator.h"

namespace collet::gpu::emulator {
namespace {

bool is_half(Type t) {
  return t == Type::kF16 || t == Type::kF16x2 || t == Type::kBf16 || t == Type::kBf16x2;
}

/// Computes prmt: selects bytes of two words.
uint32_t permute(uint32_t a, uint32_t b, uint32_t selector, uint32_t mode) {
  const uint64_t both = a | uint64_t{b} << 32;
  const uint32_t c = selector & 3;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t byte = 0;
    bool sign = false;
    switch (mode) {
      case 0:
        byte = selector >> (4 * i) & 7;
        sign = selector >> (4 * i) & 8;
        break;
      case 1:
        byte = c + i;
        break;  // f4e
      case 2:
        byte = (c + 8 - i) & 7;
        break;  // b4e
      case 3:
        byte = c;
        break;  // rc8
      case 4:
        byte = std::max(i, c);
        break;  // ecl
      case 5:
        byte = std::min(i, c);
        break;  // ecr
      default:
        byte = (c & 1) * 2 + (i & 1);
        break;  // rc16
    }
    uint32_t value = static_cast<uint32_t>(both >> (8 * byte)) & 255;
    if (sign) value = value & 128 ? 255 : 0;
    result |= value << (8 * i);
  }
  return result;
}

/// Computes bfe: extracts a bit field of a number with `kind & 255` bits (32 or 64). Bits beyond the number are the
/// field's sign if bit 8 of `kind` is set, else 0.
uint64_t extract_field(uint64_t a, uint32_t from, uint32_t count, uint32_t kind) {
  const uint32_t n = kind & 255;
  from &= 255;
  count &= 255;
  uint64_t fill = 0, result = 0;
  if ((kind >> 8) && count) fill = a >> std::min(from + count - 1, n - 1) & 1;
  for (uint32_t i = 0; i < n; ++i) result |= (i < count && from + i < n ? a >> (from + i) & 1 : fill) << i;
  return result;
}

uint64_t insert_field(uint64_t a, uint64_t b, uint32_t from, uint32_t count, uint32_t n) {
  from &= 255;
  count &= 255;
  for (uint32_t i = 0; i < count && from + i < n; ++i) {
    b = (b & ~(uint64_t{1} << (from + i))) | (i < 64 ? a >> i & 1 : 0) << (from + i);
  }
  return b;
}

uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, uint32_t signs) {
  uint32_t sum = c;
  for (int i = 0; i < 4; ++i) {
    const uint32_t x = a >> (8 * i) & 255, y = b >> (8 * i) & 255;
    const auto wide = [](uint32_t v, bool is_signed) {
      return is_signed ? static_cast<uint32_t>(static_cast<int8_t>(v)) : v;
    };
    sum += wide(x, signs & 1) * wide(y, signs & 2);
  }
  return sum;
}

}  // namespace

/// Reads an operand that has two integers of 16 bits, as a vector.
FunctionTranslator::V FunctionTranslator::read_pair(const Instruction& in, size_t operand) {
  return b_.CreateBitCast(read(in, operand, Type::kB32), llvm::FixedVectorType::get(b_.getInt16Ty(), 2));
}

void FunctionTranslator::write_pair(const Instruction& in, V pair) {
  write(in, b_.CreateBitCast(pair, b_.getInt32Ty()));
}

void FunctionTranslator::add_or_sub(const Instruction& in, Modifiers& m, bool is_sub) {
  want_operands(in, 3, 3);
  if (!is_sub && m.take_any({"u16x2", "s16x2"}) >= 0)
    return write_pair(in, b_.CreateAdd(read_pair(in, 1), read_pair(in, 2)));
  const Type t = m.need_type();
  if (is_float(t)) return float_arithmetic(in, m, t, is_sub ? 1 : 0);
  const bool saturates = m.take("sat"), carries = m.take("cc");
  V a = read(in, 1, t), b = read(in, 2, t);
  if (saturates) {
    if (t != Type::kS32) fail(in, ".sat is for s32");
    return write(in,
                 intrinsic(is_sub ? llvm::Intrinsic::ssub_sat : llvm::Intrinsic::sadd_sat, {b_.getInt32Ty()}, {a, b}));
  }
  V r = is_sub ? b_.CreateSub(a, b) : b_.CreateAdd(a, b);
  if (carries) b_.CreateStore(is_sub ? b_.CreateICmpULT(a, b) : b_.CreateICmpULT(r, a), carry_);
  write(in, r);
}

void FunctionTranslator::op_add(const Instruction& in, Modifiers& m) {
  add_or_sub(in, m, false);
}
void FunctionTranslator::op_sub(const Instruction& in, Modifiers& m) {
  add_or_sub(in, m, true);
}

void FunctionTranslator::add_or_sub_with_carry(const Instruction& in, Modifiers& m, bool is_sub) {
  want_operands(in, 3, 3);
  const Type t = m.need_type();
  const bool carries = m.take("cc");
  V a = read(in, 1, t), b = read(in, 2, t);
  V before = b_.CreateZExt(b_.CreateLoad(b_.getInt1Ty(), carry_), a->getType());
  V s = is_sub ? b_.CreateSub(a, b) : b_.CreateAdd(a, b);
  V r = is_sub ? b_.CreateSub(s, before) : b_.CreateAdd(s, before);
  if (carries) {
    V first = is_sub ? b_.CreateICmpULT(a, b) : b_.CreateICmpULT(s, a);
    V second = is_sub ? b_.CreateICmpULT(s, before) : b_.CreateICmpULT(r, s);
    b_.CreateStore(b_.CreateOr(first, second), carry_);
  }
  write(in, r);
}

void FunctionTranslator::op_addc(const Instruction& in, Modifiers& m) {
  add_or_sub_with_carry(in, m, false);
}
void FunctionTranslator::op_subc(const Instruction& in, Modifiers& m) {
  add_or_sub_with_carry(in, m, true);
}

void FunctionTranslator::multiply(const Instruction& in, Modifiers& m, bool adds) {
  want_operands(in, adds ? 4 : 3, adds ? 4 : 3);
  const Type t = m.need_type();
  if (is_float(t)) return float_arithmetic(in, m, t, adds ? 3 : 2);
  const int part = m.take_any({"lo", "hi", "wide"});
  if (part < 0) fail(in, ".lo, .hi or .wide is missing");
  if (m.take("sat")) fail(in, ".sat of mad is not supported");
  const bool carries = m.take("cc");
  const unsigned n = bits_of(t);
  V a = read(in, 1, t), b = read(in, 2, t);
  V r;
  if (part == 0) {
    r = b_.CreateMul(a, b);
  } else {
    const auto wide = [&](V v) { return is_signed(t) ? b_.CreateSExt(v, bits(2 * n)) : b_.CreateZExt(v, bits(2 * n)); };
    if (part == 2 && n == 64) fail(in, "no .wide of 64 bits");
    r = b_.CreateMul(wide(a), wide(b));
    if (part == 1) r = b_.CreateTrunc(b_.CreateLShr(r, n), bits(n));
  }
  if (adds) {
    V c = read_bits(in, operand(in, 3), r->getType()->getIntegerBitWidth());
    V product = r;
    r = b_.CreateAdd(product, c);
    if (carries) b_.CreateStore(b_.CreateICmpULT(r, product), carry_);
  }
  write(in, r);
}

void FunctionTranslator::op_mul(const Instruction& in, Modifiers& m) {
  multiply(in, m, false);
}
void FunctionTranslator::op_mad(const Instruction& in, Modifiers& m) {
  multiply(in, m, true);
}

void FunctionTranslator::op_mul24(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  const Type t = m.need_type();
  const int part = m.take_any({"lo", "hi"});
  if (part < 0 || bits_of(t) != 32) fail(in, ".lo or .hi of 32 bits");
  const auto low = [&](V v) {
    v = b_.CreateTrunc(v, bits(24));
    return is_signed(t) ? b_.CreateSExt(v, bits(64)) : b_.CreateZExt(v, bits(64));
  };
  V product = b_.CreateMul(low(read(in, 1, t)), low(read(in, 2, t)));
  write(in, b_.CreateTrunc(b_.CreateLShr(product, part ? 16 : 0), bits(32)));
}

void FunctionTranslator::op_mad24(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  const Type t = m.need_type();
  const int part = m.take_any({"lo", "hi"});
  if (part < 0 || bits_of(t) != 32) fail(in, ".lo or .hi of 32 bits");
  const auto low = [&](V v) {
    v = b_.CreateTrunc(v, bits(24));
    return is_signed(t) ? b_.CreateSExt(v, bits(64)) : b_.CreateZExt(v, bits(64));
  };
  V product = b_.CreateMul(low(read(in, 1, t)), low(read(in, 2, t)));
  write(in, b_.CreateAdd(b_.CreateTrunc(b_.CreateLShr(product, part ? 16 : 0), bits(32)), read(in, 3, t)));
}

void FunctionTranslator::op_sad(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  const Type t = m.need_type();
  V a = read(in, 1, t), b = read(in, 2, t);
  V less = is_signed(t) ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
  write(in, b_.CreateAdd(read(in, 3, t), b_.CreateSelect(less, b_.CreateSub(b, a), b_.CreateSub(a, b))));
}

// A division by 0 is undefined in PTX, but it must not trap on the host.
void FunctionTranslator::op_div(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  const Type t = m.need_type();
  if (is_float(t)) return float_arithmetic(in, m, t, 4);
  V a = read(in, 1, t), b = read(in, 2, t);
  auto* const zero = llvm::Constant::getNullValue(a->getType());
  auto* const ones = llvm::Constant::getAllOnesValue(a->getType());
  V bad = b_.CreateICmpEQ(b, zero);
  if (!is_signed(t)) {
    V r = b_.CreateUDiv(a, b_.CreateSelect(bad, llvm::ConstantInt::get(a->getType(), 1), b));
    return write(in, b_.CreateSelect(bad, ones, r));
  }
  V minus = b_.CreateICmpEQ(b, ones);
  V r = b_.CreateSDiv(a, b_.CreateSelect(b_.CreateOr(bad, minus), llvm::ConstantInt::get(a->getType(), 1), b));
  write(in, b_.CreateSelect(bad, ones, b_.CreateSelect(minus, b_.CreateNeg(a), r)));
}

void FunctionTranslator::op_rem(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  const Type t = m.need_type();
  V a = read(in, 1, t), b = read(in, 2, t);
  auto* const zero = llvm::Constant::getNullValue(a->getType());
  V bad = b_.CreateICmpEQ(b, zero);
  V special = is_signed(t) ? b_.CreateOr(bad, b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(a->getType()))) : bad;
  V divisor = b_.CreateSelect(special, llvm::ConstantInt::get(a->getType(), 1), b);
  V r = is_signed(t) ? b_.CreateSRem(a, divisor) : b_.CreateURem(a, divisor);
  write(in, b_.CreateSelect(bad, a, r));
}

void FunctionTranslator::op_abs(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const Type t = m.need_type();
  const bool ftz = m.take("ftz");
  V a = read(in, 1, t);
  if (is_half(t)) return write(in, half_op(t, HalfOp::kAbs, 0, a));
  if (is_float(t)) return write(in, intrinsic(llvm::Intrinsic::fabs, {a->getType()}, {ftz ? flush(a) : a}));
  write(in, intrinsic(llvm::Intrinsic::abs, {a->getType()}, {a, b_.getFalse()}));
}

void FunctionTranslator::op_neg(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const Type t = m.need_type();
  const bool ftz = m.take("ftz");
  V a = read(in, 1, t);
  if (is_half(t)) return write(in, b_.CreateXor(a, bits_of(t) == 32 ? 0x80008000u : 0x8000u));
  if (is_float(t)) return write(in, b_.CreateFNeg(ftz ? flush(a) : a));
  write(in, b_.CreateNeg(a));
}

void FunctionTranslator::minmax(const Instruction& in, Modifiers& m, bool is_max) {
  if (const int pair = m.take_any({"u16x2", "s16x2"}); pair >= 0) {
    want_operands(in, 3, 3);
    const bool relu = m.take("relu");
    if (relu && pair == 0) fail(in, ".relu is for signed integers");
    V a = read_pair(in, 1), b = read_pair(in, 2);
    const llvm::Intrinsic::ID id = pair == 1 ? (is_max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                             : (is_max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
    V r = intrinsic(id, {a->getType()}, {a, b});
    if (relu) r = intrinsic(llvm::Intrinsic::smax, {a->getType()}, {r, llvm::Constant::getNullValue(a->getType())});
    return write_pair(in, r);
  }
  const Type t = m.need_type();
  const bool ftz = m.take("ftz"), nan = m.take("NaN"), xor_sign = m.take("xorsign"), relu = m.take("relu");
  m.take("abs");
  if (relu && t != Type::kS32) fail(in, ".relu is for s32");
  want_operands(in, 3, is_float(t) ? 4 : 3);
  V a = read(in, 1, t), b = read(in, 2, t);
  if (is_half(t)) {
    const uint32_t flags = (ftz ? kHalfFlush : 0) | (nan ? kHalfNan : 0) | (xor_sign ? kHalfXorSign : 0);
    return write(in, half_op(t, is_max ? HalfOp::kMax : HalfOp::kMin, flags, a, b));
  }
  if (is_float(t)) {
    if (ftz) {
      a = flush(a);
      b = flush(b);
    }
    V r = float_minmax(t, is_max, nan, xor_sign, a, b);
    if (in.operands.size() == 4) r = float_minmax(t, is_max, nan, xor_sign, r, read(in, 3, t));
    return write(in, r);
  }
  const llvm::Intrinsic::ID id = is_signed(t) ? (is_max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                              : (is_max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
  V r = intrinsic(id, {a->getType()}, {a, b});
  if (relu) {
    r = intrinsic(llvm::Intrinsic::smax, {a->getType()}, {r, i32(0)});
  }
  write(in, r);
}

void FunctionTranslator::op_min(const Instruction& in, Modifiers& m) {
  minmax(in, m, false);
}
void FunctionTranslator::op_max(const Instruction& in, Modifiers& m) {
  minmax(in, m, true);
}

void FunctionTranslator::op_popc(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  V a = read(in, 1, m.need_type());
  write(in, b_.CreateZExtOrTrunc(intrinsic(llvm::Intrinsic::ctpop, {a->getType()}, {a}), b_.getInt32Ty()));
}

void FunctionTranslator::op_clz(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  V a = read(in, 1, m.need_type());
  write(in,
        b_.CreateZExtOrTrunc(intrinsic(llvm::Intrinsic::ctlz, {a->getType()}, {a, b_.getFalse()}), b_.getInt32Ty()));
}

void FunctionTranslator::op_bfind(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const bool shift = m.take("shiftamt");
  const Type t = m.need_type();
  V a = read(in, 1, t);
  const unsigned n = bits_of(t);
  if (is_signed(t)) a = b_.CreateXor(a, b_.CreateAShr(a, n - 1));
  V zeros = b_.CreateZExtOrTrunc(intrinsic(llvm::Intrinsic::ctlz, {a->getType()}, {a, b_.getFalse()}), b_.getInt32Ty());
  V none = b_.CreateICmpEQ(zeros, i32(n));
  write(in, b_.CreateSelect(none, i32(UINT32_MAX), shift ? zeros : b_.CreateSub(i32(n - 1), zeros)));
}

void FunctionTranslator::op_brev(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  V a = read(in, 1, m.need_type());
  write(in, intrinsic(llvm::Intrinsic::bitreverse, {a->getType()}, {a}));
}

void FunctionTranslator::op_bfe(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  const Type t = m.need_type();
  const unsigned n = bits_of(t);
  V a = b_.CreateZExt(read(in, 1, t), b_.getInt64Ty());
  V r = call(b_.getInt64Ty(), &extract_field,
             {a, read_i32(in, 2), read_i32(in, 3), i32(n | uint32_t{is_signed(t)} << 8)});
  write(in, b_.CreateTrunc(r, bits(n)));
}

void FunctionTranslator::op_bfi(const Instruction& in, Modifiers& m) {
  want_operands(in, 5, 5);
  const Type t = m.need_type();
  const unsigned n = bits_of(t);
  V a = b_.CreateZExt(read(in, 1, t), b_.getInt64Ty()), b = b_.CreateZExt(read(in, 2, t), b_.getInt64Ty());
  V r = call(b_.getInt64Ty(), &insert_field, {a, b, read_i32(in, 3), read_i32(in, 4), i32(n)});
  write(in, b_.CreateTrunc(r, bits(n)));
}

void FunctionTranslator::op_dp4a(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  const Type a = m.need_type(), b = m.need_type();
  if (bits_of(a) != 32 || bits_of(b) != 32) fail(in, "the types have 32 bits");
  const uint32_t signs = uint32_t{is_signed(a)} | uint32_t{is_signed(b)} << 1;
  write(in, call(b_.getInt32Ty(), &dot4, {read_i32(in, 1), read_i32(in, 2), read_i32(in, 3), i32(signs)}));
}

void FunctionTranslator::logic(const Instruction& in, Modifiers& m, int op) {
  want_operands(in, 3, 3);
  const Type t = m.need_type();
  V a = read(in, 1, t), b = read(in, 2, t);
  write(in, op == 0 ? b_.CreateAnd(a, b) : op == 1 ? b_.CreateOr(a, b) : b_.CreateXor(a, b));
}

void FunctionTranslator::op_and_(const Instruction& in, Modifiers& m) {
  logic(in, m, 0);
}
void FunctionTranslator::op_or_(const Instruction& in, Modifiers& m) {
  logic(in, m, 1);
}
void FunctionTranslator::op_xor_(const Instruction& in, Modifiers& m) {
  logic(in, m, 2);
}

void FunctionTranslator::op_not_(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  write(in, b_.CreateNot(read(in, 1, m.need_type())));
}

void FunctionTranslator::op_cnot(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  V a = read(in, 1, m.need_type());
  write(in, b_.CreateZExt(b_.CreateICmpEQ(a, llvm::Constant::getNullValue(a->getType())), a->getType()));
}

void FunctionTranslator::op_lop3(const Instruction& in, Modifiers& m) {
  want_operands(in, 5, 5);
  if (m.need_type() != Type::kB32) fail(in, "the type is .b32");
  V v[3] = {read_i32(in, 1), read_i32(in, 2), read_i32(in, 3)};
  const Operand& table = operand(in, 4);
  if (table.kind != Operand::Kind::kInteger || table.integer > 255) fail(in, "the table is a constant of 8 bits");
  V result = i32(0);
  for (unsigned i = 0; i < 8; ++i) {
    if (!(table.integer >> i & 1)) continue;
    V term = i32(UINT32_MAX);
    for (unsigned j = 0; j < 3; ++j) term = b_.CreateAnd(term, i >> (2 - j) & 1 ? v[j] : b_.CreateNot(v[j]));
    result = b_.CreateOr(result, term);
  }
  write(in, result);
}

void FunctionTranslator::op_shl(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  const Type t = m.need_type();
  const unsigned n = bits_of(t);
  V a = read(in, 1, t), by = read_i32(in, 2);
  V small = b_.CreateICmpULT(by, i32(n));
  V shifted = b_.CreateShl(a, b_.CreateZExtOrTrunc(b_.CreateAnd(by, i32(n - 1)), a->getType()));
  write(in, b_.CreateSelect(small, shifted, llvm::Constant::getNullValue(a->getType())));
}

void FunctionTranslator::op_shr(const Instruction& in, Modifiers& m) {
  want_operands(in, 3, 3);
  const Type t = m.need_type();
  const unsigned n = bits_of(t);
  V a = read(in, 1, t), by = read_i32(in, 2);
  if (is_signed(t)) {
    V clamped = intrinsic(llvm::Intrinsic::umin, {b_.getInt32Ty()}, {by, i32(n - 1)});
    return write(in, b_.CreateAShr(a, b_.CreateZExtOrTrunc(clamped, a->getType())));
  }
  V small = b_.CreateICmpULT(by, i32(n));
  V shifted = b_.CreateLShr(a, b_.CreateZExtOrTrunc(b_.CreateAnd(by, i32(n - 1)), a->getType()));
  write(in, b_.CreateSelect(small, shifted, llvm::Constant::getNullValue(a->getType())));
}

void FunctionTranslator::op_shf(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  const int direction = m.take_any({"l", "r"}), mode = m.take_any({"clamp", "wrap"});
  if (direction < 0 || mode < 0 || bits_of(m.need_type()) != 32) fail(in, "not a known form");
  V a = b_.CreateZExt(read_i32(in, 1), b_.getInt64Ty()), b = b_.CreateZExt(read_i32(in, 2), b_.getInt64Ty());
  V by = read_i32(in, 3);
  by = mode ? b_.CreateAnd(by, i32(31)) : intrinsic(llvm::Intrinsic::umin, {b_.getInt32Ty()}, {by, i32(32)});
  V both = b_.CreateOr(b_.CreateShl(b, 32), a), n = b_.CreateZExt(by, b_.getInt64Ty());
  V shifted = direction ? b_.CreateLShr(both, n) : b_.CreateLShr(b_.CreateShl(both, n), 32);
  write(in, b_.CreateTrunc(shifted, b_.getInt32Ty()));
}

void FunctionTranslator::op_prmt(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  if (m.need_type() != Type::kB32) fail(in, "the type is .b32");
  const int mode = m.take_any({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) + 1;
  write(in, call(b_.getInt32Ty(), &permute,
                 {read_i32(in, 1), read_i32(in, 2), read_i32(in, 3), i32(static_cast<uint32_t>(mode))}));
}

}  // namespace collet::gpu::emulator
