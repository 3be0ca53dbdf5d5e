// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/scalar/scalar_ops.h"

#include <collet/program.h>

#include <array>
#include <limits>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/llvm/scalar/complex_ops.h"
#include "sdk/codegen/llvm/scalar/math.h"
#include "sdk/codegen/llvm/scalar/scalar_convert.h"

namespace collet::codegen {
namespace {

using llvm::Type;
using llvm::Value;
using Args = std::span<const Val>;
using Emit = Val (*)(Ir&, const ScalarOp&);
namespace id = llvm::Intrinsic;

bool is_signed(const ScalarOp& op) {
  return collet_type_kind(op.types[0]) == COLLET_KIND_SIGNED;
}
Value* x_of(const ScalarOp& op) {
  return op.args[0].v;
}
Value* y_of(const ScalarOp& op) {
  return op.args[1].v;
}
Value* zero_like(Value* v) {
  return llvm::Constant::getNullValue(v->getType());
}
Value* ones_like(Value* v) {
  return llvm::Constant::getAllOnesValue(v->getType());
}
unsigned width_of(uint32_t type) {
  return static_cast<unsigned>(type_bits(type));
}

/// Adapters, which make a function of math.h or an LLVM intrinsic an entry of the op table.
template <Value* (*F)(Ir&, Value*)>
Val unary(Ir& ir, const ScalarOp& op) {
  return {F(ir, x_of(op))};
}
template <Value* (*F)(Ir&, Value*, Value*)>
Val binary(Ir& ir, const ScalarOp& op) {
  return {F(ir, x_of(op), y_of(op))};
}
template <id::ID Id>
Val intrinsic(Ir& ir, const ScalarOp& op) {
  return {ir.unary(Id, x_of(op))};
}

// Makes a function of LLVM's builder an entry of the op table.
#define COLLET_BUILDS(name, method, ...) \
  Val name(Ir& ir, const ScalarOp& op) { \
    return {ir.method(__VA_ARGS__)};     \
  }
COLLET_BUILDS(float_add, b.CreateFAdd, x_of(op), y_of(op))
COLLET_BUILDS(float_sub, b.CreateFSub, x_of(op), y_of(op))
COLLET_BUILDS(float_mul, b.CreateFMul, x_of(op), y_of(op))
COLLET_BUILDS(float_div, b.CreateFDiv, x_of(op), y_of(op))
COLLET_BUILDS(float_neg, neg, x_of(op))
COLLET_BUILDS(int_add, b.CreateAdd, x_of(op), y_of(op))
COLLET_BUILDS(int_sub, b.CreateSub, x_of(op), y_of(op))
COLLET_BUILDS(int_mul, b.CreateMul, x_of(op), y_of(op))
COLLET_BUILDS(int_neg, b.CreateNeg, x_of(op))
COLLET_BUILDS(bit_and, b.CreateAnd, x_of(op), y_of(op))
COLLET_BUILDS(bit_or, b.CreateOr, x_of(op), y_of(op))
COLLET_BUILDS(bit_xor, b.CreateXor, x_of(op), y_of(op))
COLLET_BUILDS(bit_not, b.CreateNot, x_of(op))
#undef COLLET_BUILDS

Val identity(Ir&, const ScalarOp& op) {
  return op.args[0];
}

Val int_abs(Ir& ir, const ScalarOp& op) {
  if (!is_signed(op)) return op.args[0];
  return {ir.b.CreateBinaryIntrinsic(id::abs, x_of(op), ir.b.getFalse())};
}

/// Returns `y` with ones in place of zeros, as a divisor. It is no select: LLVM 19 takes a division by a vector of which a
/// constant lane is zero as poison in all lanes, and it divides by each side of a select in turn.
Value* nonzero(Ir& ir, Value* y) {
  return ir.binary(id::umax, y, ir.constant_int(y->getType(), 1));
}

/// True if x / y of integers is computed as floats: processors divide no vectors of integers. Not for constants, by which LLVM
/// multiplies in place of a division.
bool divides_as_floats(const Ir& ir, Value* x, Value* y) {
  return ir.lanes_of(x) > 1 && !ir.is_scalable() && !ir.target.has_grid() &&
         x->getType()->getScalarSizeInBits() <= 32 && !llvm::isa<llvm::Constant>(y);
}

/// Returns x / y of integers as floats, rounded toward zero. y is not zero, and not -1 where x is the least number. The quotient of floats
/// with more than twice the bits, rounded, is no larger whole number than the exact one: that is at least 1 / y away, which is many units in the
/// last place.
Value* quotient_of_floats(Ir& ir, Value* x, Value* y, bool is_signed) {
  auto& b = ir.b;
  Type* const real = ir.like(x, x->getType()->getScalarSizeInBits() > 16 ? b.getDoubleTy() : b.getFloatTy());
  const auto convert = [&](Value* v) { return is_signed ? b.CreateSIToFP(v, real) : b.CreateUIToFP(v, real); };
  Value* const q = b.CreateFDiv(convert(x), convert(y));
  return is_signed ? b.CreateFPToSI(q, x->getType()) : b.CreateFPToUI(q, x->getType());
}

Val int_divide(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  Value* x = x_of(op);
  Value* y = y_of(op);
  Value* by_zero = b.CreateICmpEQ(y, zero_like(y));
  const bool as_floats = divides_as_floats(ir, x, y);
  if (!is_signed(op)) {
    Value* q = as_floats ? quotient_of_floats(ir, x, nonzero(ir, y), false) : b.CreateUDiv(x, nonzero(ir, y));
    return {b.CreateSelect(by_zero, ones_like(x), q)};
  }
  // The least number divided by -1 is not defined; zero is divided in place of it.
  Value* by_minus_one = b.CreateICmpEQ(y, ones_like(y));
  Value* from = b.CreateSelect(by_minus_one, zero_like(x), x);
  Value* q = as_floats ? quotient_of_floats(ir, from, nonzero(ir, y), true) : b.CreateSDiv(from, nonzero(ir, y));
  q = b.CreateSelect(by_minus_one, b.CreateNeg(x), q);
  return {b.CreateSelect(by_zero, ones_like(x), q)};
}

Val int_remainder(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  Value* x = x_of(op);
  Value* y = y_of(op);
  Value* by_zero = b.CreateICmpEQ(y, zero_like(y));
  Value* by = nonzero(ir, y);
  Value* from = x;
  if (is_signed(op)) from = b.CreateSelect(b.CreateICmpEQ(y, ones_like(y)), zero_like(x), x);
  Value* r = nullptr;
  if (divides_as_floats(ir, x, y)) {
    r = b.CreateSub(from, b.CreateMul(quotient_of_floats(ir, from, by, is_signed(op)), by));
  } else {
    r = is_signed(op) ? b.CreateSRem(from, by) : b.CreateURem(from, by);
  }
  return {b.CreateSelect(by_zero, x, r)};
}

template <bool kMax>
Val int_extreme(Ir& ir, const ScalarOp& op) {
  id::ID which = is_signed(op) ? (kMax ? id::smax : id::smin) : (kMax ? id::umax : id::umin);
  return {ir.binary(which, x_of(op), y_of(op))};
}
/// Emits a maximum or minimum where NaN wins and -0 is less than +0.
template <bool kMax>
Val float_extreme(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  Value* x = x_of(op);
  Value* y = y_of(op);
  if (ir.has_extreme(x->getType())) return {ir.binary(kMax ? id::maximum : id::minimum, x, y)};
  Value* beats = kMax ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y);
  Value* r = b.CreateSelect(b.CreateOr(beats, b.CreateFCmpUNO(x, x)), x, y);
  Value* bits = kMax ? b.CreateAnd(ir.bits_of(x), ir.bits_of(y)) : b.CreateOr(ir.bits_of(x), ir.bits_of(y));
  return {b.CreateSelect(b.CreateFCmpOEQ(x, y), b.CreateBitCast(bits, x->getType()), r)};
}
template <bool kMax>
Val pred_extreme(Ir& ir, const ScalarOp& op) {
  return kMax ? bit_or(ir, op) : bit_and(ir, op);
}

/// Emits a shift. Amounts are unsigned; amounts of the type's width or more shift out all bits.
enum class Shift : uint8_t { kLeft, kRightArithmetic, kRightLogical };
template <Shift kShift>
Val shift(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  Value* x = x_of(op);
  unsigned width = width_of(op.types[0]);
  Value* limit = ir.constant_int(x->getType(), width);
  if (kShift == Shift::kRightArithmetic) {
    Value* amount = ir.binary(id::umin, y_of(op), ir.constant_int(x->getType(), width - 1));
    // The value fills only the low bits of its byte, so the top bit of the byte is not the sign.
    if (width < 8 && !is_signed(op)) {
      Value* by = ir.constant_int(x->getType(), 8 - width);
      x = b.CreateAShr(b.CreateShl(x, by), by);
    }
    return {b.CreateAShr(x, amount)};
  }
  if (width < 8 && kShift == Shift::kRightLogical) {
    x = b.CreateAnd(x, ir.constant_int(x->getType(), (1u << width) - 1));
  }
  Value* amount = y_of(op);
  if (width < 8) amount = b.CreateAnd(amount, ir.constant_int(x->getType(), (1u << width) - 1));
  Value* inside = b.CreateICmpULT(amount, limit);
  Value* safe = b.CreateSelect(inside, amount, zero_like(x));
  return {b.CreateSelect(inside, kShift == Shift::kLeft ? b.CreateShl(x, safe) : b.CreateLShr(x, safe), zero_like(x))};
}

Val int_sign(Ir& ir, const ScalarOp& op) {
  Value* x = x_of(op);
  Value* one = ir.constant_int(x->getType(), 1);
  if (!is_signed(op)) return {ir.binary(id::umin, x, one)};
  return {ir.binary(id::smin, ir.binary(id::smax, x, ones_like(x)), one)};
}

Val float_sign(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  Value* x = x_of(op);
  Value* one = ir.binary(id::copysign, ir.constant(x->getType(), 1.0), x);
  Value* keep = b.CreateFCmpUEQ(x, zero_like(x));  // zeros and NaNs are returned unchanged
  return {b.CreateSelect(keep, x, one)};
}

Val int_clz(Ir& ir, const ScalarOp& op) {
  Value* x = x_of(op);
  unsigned width = width_of(op.types[0]);
  if (width < 8) x = ir.b.CreateAnd(x, ir.constant_int(x->getType(), (1u << width) - 1));
  Value* n = ir.b.CreateBinaryIntrinsic(id::ctlz, x, ir.b.getFalse());
  return {ir.b.CreateSub(n, ir.constant_int(x->getType(), width < 8 ? 8 - width : 0))};
}

Val int_popcnt(Ir& ir, const ScalarOp& op) {
  Value* x = x_of(op);
  unsigned width = width_of(op.types[0]);
  if (width < 8) x = ir.b.CreateAnd(x, ir.constant_int(x->getType(), (1u << width) - 1));
  return {ir.unary(id::ctpop, x)};
}

Val int_power(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  Value* base = x_of(op);
  Value* e = y_of(op);
  Type* t = base->getType();
  Value* one = ir.constant_int(t, 1);
  Value* result = one;
  Value* square = base;
  Value* rest = e;
  unsigned bits = t->getScalarSizeInBits();
  for (unsigned k = 0; k < bits; ++k) {
    Value* odd = b.CreateICmpNE(b.CreateAnd(rest, one), zero_like(rest));
    result = b.CreateSelect(odd, b.CreateMul(result, square), result);
    if (k + 1 == bits) break;
    square = b.CreateMul(square, square);
    rest = b.CreateLShr(rest, one);
  }
  if (!is_signed(op)) return {result};
  Value* negative = b.CreateICmpSLT(e, zero_like(e));
  Value* minus_one = b.CreateICmpEQ(base, ones_like(base));
  Value* odd = b.CreateICmpNE(b.CreateAnd(e, one), zero_like(e));
  Value* inverse = b.CreateSelect(b.CreateICmpEQ(base, one), one, zero_like(base));
  inverse = b.CreateSelect(minus_one, b.CreateSelect(odd, base, one), inverse);
  return {b.CreateSelect(negative, inverse, result)};
}

Val float_remainder(Ir& ir, const ScalarOp& op) {
  return {math::fmod(ir, x_of(op), y_of(op))};
}

Val float_finite(Ir& ir, const ScalarOp& op) {
  Value* a = ir.unary(id::fabs, x_of(op));
  return {ir.b.CreateFCmpOLT(a, ir.constant(a->getType(), std::numeric_limits<double>::infinity()))};
}

Val float_round_away(Ir& ir, const ScalarOp& op) {
  return {ir.unary(id::round, x_of(op))};
}

Val make_complex(Ir&, const ScalarOp& op) {
  return {x_of(op), y_of(op)};
}
Val zero_of(Ir&, const ScalarOp& op) {
  return {zero_like(x_of(op))};
}

Val select_op(Ir& ir, const ScalarOp& op) {
  return ir.select(x_of(op), op.args[1], op.args[2]);
}

template <Emit kMin, Emit kMax>
Val clamp(Ir& ir, const ScalarOp& op) {  // min(max(low, x), high)
  const uint32_t types[2] = {op.types[1], op.types[1]};
  Val first[2] = {op.args[0], op.args[1]};
  ScalarOp low{COLLET_OP_MAXIMUM, op.result_type, types, first};
  Val second[2] = {kMax(ir, low), op.args[2]};
  ScalarOp high{COLLET_OP_MINIMUM, op.result_type, types, second};
  return kMin(ir, high);
}

llvm::CmpInst::Predicate float_predicate(int64_t direction) {
  constexpr llvm::CmpInst::Predicate kTable[] = {llvm::CmpInst::FCMP_OEQ, llvm::CmpInst::FCMP_UNE,
                                                 llvm::CmpInst::FCMP_OGE, llvm::CmpInst::FCMP_OGT,
                                                 llvm::CmpInst::FCMP_OLE, llvm::CmpInst::FCMP_OLT};
  return kTable[direction];
}
llvm::CmpInst::Predicate int_predicate(int64_t direction, bool is_signed) {
  constexpr llvm::CmpInst::Predicate kSigned[] = {llvm::CmpInst::ICMP_EQ,  llvm::CmpInst::ICMP_NE,
                                                  llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_SGT,
                                                  llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_SLT};
  constexpr llvm::CmpInst::Predicate kUnsigned[] = {llvm::CmpInst::ICMP_EQ,  llvm::CmpInst::ICMP_NE,
                                                    llvm::CmpInst::ICMP_UGE, llvm::CmpInst::ICMP_UGT,
                                                    llvm::CmpInst::ICMP_ULE, llvm::CmpInst::ICMP_ULT};
  return is_signed ? kSigned[direction] : kUnsigned[direction];
}

Val int_compare(Ir& ir, const ScalarOp& op) {
  return {ir.b.CreateICmp(int_predicate(op.a, is_signed(op)), x_of(op), y_of(op))};
}
/// Returns the bits of a float as integers whose signed order is the total order of floats.
Value* ordered_bits(Ir& ir, Value* v) {
  auto& b = ir.b;
  Value* bits = ir.bits_of(v);
  Type* t = bits->getType();
  unsigned width = t->getScalarSizeInBits();
  Value* flip = b.CreateLShr(b.CreateAShr(bits, ir.constant_int(t, width - 1)), ir.constant_int(t, 1));
  return b.CreateXor(bits, flip);
}
Val float_compare(Ir& ir, const ScalarOp& op) {
  if (op.b == COLLET_COMPARE_TOTALORDER) {
    return {ir.b.CreateICmp(int_predicate(op.a, true), ordered_bits(ir, x_of(op)), ordered_bits(ir, y_of(op)))};
  }
  return {ir.b.CreateFCmp(float_predicate(op.a), x_of(op), y_of(op))};
}
Val complex_compare(Ir& ir, const ScalarOp& op) {
  auto& b = ir.b;
  Value* equal =
      b.CreateAnd(b.CreateFCmpOEQ(op.args[0].v, op.args[1].v), b.CreateFCmpOEQ(op.args[0].im, op.args[1].im));
  return {op.a == COLLET_DIRECTION_EQ ? equal : b.CreateNot(equal)};
}

constexpr Emit none = nullptr;
constexpr Emit pred_clamp = clamp<bit_and, bit_or>;
constexpr Emit int_clamp = clamp<int_extreme<false>, int_extreme<true>>;
constexpr Emit float_clamp = clamp<float_extreme<false>, float_extreme<true>>;

/// A row of kernel/elementwise.def.
struct Row {
  uint32_t opcode;
  Emit pred;
  Emit integer;
  Emit real;
  Emit complex;
  bool rounds;
};

constexpr Row kRows[] = {
#define COLLET_ELEMENTWISE(OPCODE, pred, integer, real, complex, rounds, expensive) \
  {COLLET_OP_##OPCODE, pred, integer, real, complex, rounds},
#include "sdk/codegen/kernel/elementwise.def"
#undef COLLET_ELEMENTWISE
};

const Row* row_of(uint32_t opcode) {
  static const auto table = [] {
    std::array<const Row*, COLLET_OP_LIMIT> t{};
    for (const Row& row : kRows) t[row.opcode] = &row;
    return t;
  }();
  return opcode < COLLET_OP_LIMIT ? table[opcode] : nullptr;
}

bool integer_type(uint32_t type) {
  uint32_t kind = collet_type_kind(type);
  return kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED;
}

}  // namespace

Val emit_scalar(Ir& ir, const ScalarOp& op) {
  const Row* row = row_of(op.opcode);
  Val r = of_kind(*row, op.types[0])(ir, op);
  if (row->rounds && is_narrow_float(op.result_type)) return {ir.round_narrow(r.v, op.result_type)};
  if (integer_type(op.result_type) && op.opcode != COLLET_OP_CONVERT) return {ir.wrap_small(r.v, op.result_type)};
  return r;
}

Val emit_combine(Ir& ir, uint32_t combine, uint32_t type, const Val& x, const Val& y) {
  if (combine == COLLET_COMBINE_FIRST) return x;
  if (combine == COLLET_COMBINE_SECOND) return y;
  const uint32_t types[2] = {type, type};
  const Val args[2] = {x, y};
  ScalarOp op{combine_opcode(combine), type, types, args};
  const Row* row = row_of(op.opcode);
  // Not rounded to a narrow float type: that happens once, at the end of the reduction.
  Val r = of_kind(*row, type)(ir, op);
  return integer_type(type) ? Val{ir.wrap_small(r.v, type)} : r;
}

Val combine_identity(Ir& ir, uint32_t combine, uint32_t type) {
  Val zero = ir.zero(type, 1);
  Type* t = zero.v->getType();
  const bool real = t->isFloatingPointTy();
  const bool is_signed = collet_type_kind(type) == COLLET_KIND_SIGNED;
  // The identities of sub-byte types are limits of their own range, not of a byte.
  const bool pred = type == COLLET_TYPE_PRED;
  const unsigned bits = real ? 0 : pred ? 1 : width_of(type);
  const uint64_t top = bits == 0 ? 0 : ~uint64_t{0} >> (64 - bits);
  const uint64_t least = is_signed ? ~(top >> 1) : 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (combine) {
    case COLLET_COMBINE_MULTIPLY:
      return {real ? ir.constant(t, 1.0) : ir.constant_int(t, 1), zero.im};
    case COLLET_COMBINE_MINIMUM:
      return {real ? ir.constant(t, kInfinity) : ir.constant_int(t, is_signed ? top >> 1 : top)};
    case COLLET_COMBINE_MAXIMUM:
      if (real) return {ir.constant(t, -kInfinity)};
      return {ir.constant_int(t, least)};
    case COLLET_COMBINE_AND:
      return {ir.constant_int(t, is_signed ? ~uint64_t{0} : top)};
    default:
      return real && combine == COLLET_COMBINE_ADD ? Val{ir.constant(t, -0.0), zero.im ? ir.constant(t, -0.0) : nullptr}
                                                   : zero;
  }
}

}  // namespace collet::codegen
