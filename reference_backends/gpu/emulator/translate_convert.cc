// SPDX-License-Identifier: Apache-2.0
// Translates conversions, moves, comparisons and selections.
#include <llvm/IR/Intrinsics.h>

#include "reference_backends/gpu/emulator/function_translator.h"

namespace collet::gpu::emulator {
namespace {

bool is_one_half(Type t) {
  return t == Type::kF16 || t == Type::kBf16;
}

Format format_of(Type t) {
  switch (t) {
    case Type::kF16:
    case Type::kF16x2:
      return Format::kF16;
    case Type::kBf16:
    case Type::kBf16x2:
      return Format::kBf16;
    case Type::kTf32:
      return Format::kTf32;
    case Type::kE4m3:
    case Type::kE4m3x2:
      return Format::kE4m3;
    case Type::kE5m2:
    case Type::kE5m2x2:
      return Format::kE5m2;
    case Type::kF64:
      return Format::kF64;
    case Type::kS8:
      return Format::kS8;
    case Type::kS16:
      return Format::kS16;
    case Type::kS32:
      return Format::kS32;
    case Type::kS64:
      return Format::kS64;
    case Type::kU8:
      return Format::kU8;
    case Type::kU16:
      return Format::kU16;
    case Type::kU32:
      return Format::kU32;
    case Type::kU64:
      return Format::kU64;
    default:
      return Format::kF32;
  }
}

bool is_pair(Type t) {
  return t == Type::kF16x2 || t == Type::kBf16x2 || t == Type::kE4m3x2 || t == Type::kE5m2x2;
}

}  // namespace

FunctionTranslator::V FunctionTranslator::convert_format(V value, const Conversion& c) {
  return call(b_.getInt64Ty(), &collet_emu_convert, {b_.CreateZExt(as_bits(value), b_.getInt64Ty()), i32(c.code())});
}

FunctionTranslator::V FunctionTranslator::widen(V value, Type t) {
  if (t == Type::kBf16) return as(b_.CreateShl(b_.CreateZExt(value, b_.getInt32Ty()), 16), Type::kF32);
  V r = convert_format(value, {.from = Format::kF16, .to = Format::kF32});
  return as(b_.CreateTrunc(r, b_.getInt32Ty()), Type::kF32);
}

void FunctionTranslator::op_cvt(const Instruction& in, Modifiers& m) {
  const int float_rounding = m.take_any({"rn", "rz", "rm", "rp", "rna"});
  const int integer_rounding = m.take_any({"rni", "rzi", "rmi", "rpi"});
  const bool ftz = m.take("ftz"), sat = m.take("sat"), relu = m.take("relu"), finite = m.take("satfinite");
  const Type to = m.need_type(), from = m.need_type();
  constexpr Rounding kRoundings[] = {Rounding::kNearestEven, Rounding::kZero, Rounding::kDown, Rounding::kUp,
                                     Rounding::kNearestAway};
  Conversion c{.from = format_of(from),
               .to = format_of(to),
               .rounding = kRoundings[std::max(float_rounding, 0)],
               .saturate = sat,
               .flush = ftz,
               .relu = relu,
               .finite = finite};

  if (is_pair(to) || is_pair(from)) {
    const unsigned half = bits_of(to) / 2;
    V low, high;
    if (is_pair(from)) {  // f8 to f16
      want_operands(in, 2, 2);
      if (!is_pair(to)) fail(in, "no such conversion");
      V v = read(in, 1, from);
      const unsigned n = bits_of(from) / 2;
      low = b_.CreateTrunc(v, bits(n));
      high = b_.CreateTrunc(b_.CreateLShr(v, n), bits(n));
    } else {  // the first operand becomes the upper half
      want_operands(in, 3, 3);
      high = read(in, 1, from);
      low = read(in, 2, from);
    }
    if (to == Type::kE4m3x2 || to == Type::kE5m2x2) c.finite = true;
    V r = b_.CreateOr(b_.CreateShl(convert_format(high, c), half), convert_format(low, c));
    return write(in, b_.CreateTrunc(r, bits(bits_of(to))));
  }
  want_operands(in, 2, 2);
  const bool to_float = is_float(to), from_float = is_float(from);
  if (!to_float && !from_float) {
    V v = read(in, operand(in, 1), from, true);
    const unsigned n = bits_of(to), w = bits_of(from);
    if (sat) {
      // Compares in a width that holds the values of both types.
      const unsigned wide = std::max(n, w) + 1;
      v = is_signed(from) ? b_.CreateSExt(v, bits(wide)) : b_.CreateZExt(v, bits(wide));
      const llvm::APInt least = is_signed(to) ? llvm::APInt::getSignedMinValue(n).sext(wide) : llvm::APInt(wide, 0);
      const llvm::APInt most =
          is_signed(to) ? llvm::APInt::getSignedMaxValue(n).sext(wide) : llvm::APInt::getMaxValue(n).zext(wide);
      v = intrinsic(llvm::Intrinsic::smax, {bits(wide)}, {v, llvm::ConstantInt::get(b_.getContext(), least)});
      v = intrinsic(llvm::Intrinsic::smin, {bits(wide)}, {v, llvm::ConstantInt::get(b_.getContext(), most)});
      v = b_.CreateTrunc(v, bits(n));
    } else {
      v = is_signed(from) ? b_.CreateSExtOrTrunc(v, bits(n)) : b_.CreateZExtOrTrunc(v, bits(n));
    }
    return write(in, operand(in, 0), v, is_signed(to));
  }
  const bool plain_to = to == Type::kF32 || to == Type::kF64, plain_from = from == Type::kF32 || from == Type::kF64;
  if (to_float && !from_float) {
    V v = read(in, operand(in, 1), from, true);
    if (plain_to && float_rounding <= 0 && !sat) {
      return write(in, is_signed(from) ? b_.CreateSIToFP(v, type(to)) : b_.CreateUIToFP(v, type(to)));
    }
    return write(in, b_.CreateTrunc(convert_format(v, c), bits(bits_of(to))));
  }
  V v = read(in, 1, from);
  if (is_one_half(from) && (integer_rounding >= 0 || !to_float)) v = widen(v, from);
  if (!plain_from && !is_one_half(from)) fail(in, "no such conversion");
  if (ftz) v = flush(v);
  constexpr llvm::Intrinsic::ID kToInteger[] = {llvm::Intrinsic::roundeven, llvm::Intrinsic::trunc,
                                                llvm::Intrinsic::floor, llvm::Intrinsic::ceil};
  if (integer_rounding >= 0) v = intrinsic(kToInteger[integer_rounding], {v->getType()}, {v});
  if (!to_float) {
    if (integer_rounding < 0) fail(in, "a rounding to an integer is missing");
    auto* const target = bits(bits_of(to));
    V nan = is_nan(v);
    V r = intrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat, {target, v->getType()},
                    {v});
    if (from == Type::kF64 || bits_of(to) == 64) {
      const llvm::APInt top = llvm::APInt::getSignedMinValue(bits_of(to));
      r = b_.CreateSelect(nan, llvm::ConstantInt::get(b_.getContext(), top), r);
    }
    return write(in, operand(in, 0), r, is_signed(to));
  }
  if (integer_rounding >= 0) {
    if (to != from && !(to == Type::kF32 && is_one_half(from))) fail(in, "no such conversion");
    if (is_one_half(to)) {
      c = {.from = Format::kF32, .to = format_of(to), .saturate = sat};
      return write(in, b_.CreateTrunc(convert_format(v, c), bits(16)));
    }
    return write(in, sat ? saturate(v) : v);
  }
  if (to == from && plain_to) return write(in, sat ? saturate(v) : v);
  if (to == Type::kF64 && from == Type::kF32 && !sat) return write(in, b_.CreateFPExt(v, type(to)));
  if (to == Type::kF32 && from == Type::kF64 && float_rounding <= 0) {
    V r = b_.CreateFPTrunc(v, type(to));
    if (ftz) r = flush(r);
    return write(in, sat ? saturate(r) : r);
  }
  if (to == Type::kF32 && is_one_half(from) && !sat) return write(in, widen(v, from));
  write(in, b_.CreateTrunc(convert_format(v, c), bits(to == Type::kTf32 ? 32 : bits_of(to))));
}

void FunctionTranslator::op_mov(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const Type t = m.need_type();
  const Operand &to = operand(in, 0), &from = operand(in, 1);
  if (t == Type::kPred) return write(in, read_predicate(in, from));
  const unsigned n = bits_of(t);
  if (from.kind == Operand::Kind::kVector) {  // {a, b} are packed into one register
    const unsigned count = static_cast<unsigned>(from.elements.size());
    if (count != 2 && count != 4) fail(in, "a vector has 2 or 4 elements");
    V r = llvm::ConstantInt::get(bits(n), 0);
    for (unsigned i = 0; i < count; ++i) {
      V part = b_.CreateZExt(read_bits(in, from.elements[i], n / count), bits(n));
      r = b_.CreateOr(r, b_.CreateShl(part, i * (n / count)));
    }
    return write(in, r);
  }
  V v = read_bits(in, from, n);
  if (to.kind == Operand::Kind::kVector) {
    const unsigned count = static_cast<unsigned>(to.elements.size());
    if (count != 2 && count != 4) fail(in, "a vector has 2 or 4 elements");
    for (unsigned i = 0; i < count; ++i) {
      write(in, to.elements[i], b_.CreateTrunc(b_.CreateLShr(v, i * (n / count)), bits(n / count)));
    }
    return;
  }
  write(in, v);
}

FunctionTranslator::V FunctionTranslator::compare(const Instruction& in, const std::string& op, Type t, V a, V b,
                                                  bool ftz) {
  using P = llvm::CmpInst::Predicate;
  if (is_float(t)) {
    if (t == Type::kF16 || t == Type::kBf16) {
      a = widen(a, t);
      b = widen(b, t);
    } else if (t != Type::kF32 && t != Type::kF64) {
      fail(in, "no comparison of this type");
    }
    if (ftz) {
      a = flush(a);
      b = flush(b);
    }
    static const std::map<std::string_view, P> kFloat = {
        {"eq", P::FCMP_OEQ},  {"ne", P::FCMP_ONE},  {"lt", P::FCMP_OLT},  {"le", P::FCMP_OLE},  {"gt", P::FCMP_OGT},
        {"ge", P::FCMP_OGE},  {"equ", P::FCMP_UEQ}, {"neu", P::FCMP_UNE}, {"ltu", P::FCMP_ULT}, {"leu", P::FCMP_ULE},
        {"gtu", P::FCMP_UGT}, {"geu", P::FCMP_UGE}, {"num", P::FCMP_ORD}, {"nan", P::FCMP_UNO}};
    const auto found = kFloat.find(op);
    if (found == kFloat.end()) fail(in, "no such comparison");
    return b_.CreateFCmp(found->second, a, b);
  }
  static const std::map<std::string_view, P> kSigned = {{"eq", P::ICMP_EQ},  {"ne", P::ICMP_NE},  {"lt", P::ICMP_SLT},
                                                        {"le", P::ICMP_SLE}, {"gt", P::ICMP_SGT}, {"ge", P::ICMP_SGE}};
  static const std::map<std::string_view, P> kUnsigned = {
      {"eq", P::ICMP_EQ},  {"ne", P::ICMP_NE},  {"lt", P::ICMP_ULT}, {"le", P::ICMP_ULE}, {"gt", P::ICMP_UGT},
      {"ge", P::ICMP_UGE}, {"lo", P::ICMP_ULT}, {"ls", P::ICMP_ULE}, {"hi", P::ICMP_UGT}, {"hs", P::ICMP_UGE}};
  const auto& table = is_signed(t) ? kSigned : kUnsigned;
  const auto found = table.find(op);
  if (found == table.end()) fail(in, "no such comparison");
  return b_.CreateICmp(found->second, a, b);
}

void FunctionTranslator::set_predicate(const Instruction& in, Modifiers& m, bool as_value) {
  want_operands(in, 3, 4);
  static constexpr const char* kComparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge", "equ", "neu", "ltu",
                                                 "leu", "gtu", "geu", "num", "nan", "lo", "ls",  "hi",  "hs"};
  std::string op;
  for (const char* name : kComparisons) {
    if (op.empty() && m.take(name)) op = name;
  }
  const int join = m.take_any({"and", "or", "xor"});
  const bool ftz = m.take("ftz");
  const Type result = as_value ? m.need_type() : Type::kPred, t = m.need_type();
  if ((join >= 0) != (in.operands.size() == 4)) fail(in, "a predicate is joined by .and, .or or .xor");
  V yes, no;
  if (t == Type::kF16x2 || t == Type::kBf16x2) {
    const Type one = t == Type::kF16x2 ? Type::kF16 : Type::kBf16;
    V a = read(in, 1, t), b = read(in, 2, t);
    const auto part = [&](V v, unsigned i) { return b_.CreateTrunc(b_.CreateLShr(v, 16 * i), bits(16)); };
    yes = compare(in, op, one, part(a, 0), part(b, 0), ftz);
    no = compare(in, op, one, part(a, 1), part(b, 1), ftz);
    if (as_value) fail(in, "no such type");
    if (join >= 0) fail(in, "no joining of this type");
    write(in, yes);
    if (operand(in, 0).second >= 0) write_register(in, operand(in, 0).second, no);
    return;
  }
  yes = compare(in, op, t, read(in, 1, t), read(in, 2, t), ftz);
  no = b_.CreateNot(yes);
  if (join >= 0) {
    V c = read_predicate(in, operand(in, 3));
    const auto joined = [&](V v) {
      return join == 0 ? b_.CreateAnd(v, c) : join == 1 ? b_.CreateOr(v, c) : b_.CreateXor(v, c);
    };
    yes = joined(yes);
    no = joined(no);
  }
  if (!as_value) {
    write(in, yes);
    if (operand(in, 0).second >= 0) write_register(in, operand(in, 0).second, no);
  } else if (result == Type::kF32) {
    write(in, b_.CreateSelect(yes, llvm::ConstantFP::get(b_.getFloatTy(), 1.0),
                              llvm::ConstantFP::get(b_.getFloatTy(), 0.0)));
  } else if (bits_of(result) == 32 && !is_float(result)) {
    write(in, b_.CreateSExt(yes, b_.getInt32Ty()));
  } else {
    fail(in, "no such result type");
  }
}

void FunctionTranslator::op_setp(const Instruction& in, Modifiers& m) {
  set_predicate(in, m, false);
}
void FunctionTranslator::op_set(const Instruction& in, Modifiers& m) {
  set_predicate(in, m, true);
}

void FunctionTranslator::op_selp(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  const unsigned n = bits_of(m.need_type());
  V a = read_bits(in, operand(in, 1), n), b = read_bits(in, operand(in, 2), n);
  write(in, b_.CreateSelect(read_predicate(in, operand(in, 3)), a, b));
}

void FunctionTranslator::op_slct(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  const bool ftz = m.take("ftz");
  const Type t = m.need_type(), by = m.need_type();
  V c = read(in, 3, by);
  if (ftz) c = flush(c);
  V yes;
  if (by == Type::kF32) {
    yes = b_.CreateFCmpOGE(c, llvm::ConstantFP::get(c->getType(), 0.0));
  } else if (by == Type::kS32) {
    yes = b_.CreateICmpSGE(c, i32(0));
  } else {
    fail(in, "the selector is s32 or f32");
  }
  const unsigned n = bits_of(t);
  write(in, b_.CreateSelect(yes, read_bits(in, operand(in, 1), n), read_bits(in, operand(in, 2), n)));
}

}  // namespace collet::gpu::emulator
