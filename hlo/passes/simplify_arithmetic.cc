// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "hlo/base/float_format.h"
#include "hlo/passes/simplify_rules.h"

namespace collet::hlo {
namespace {

constexpr InstrId kNo = InstrId::None;

Type type_of(const RuleInput& r) {
  return r.instr.shape.type();
}
bool is_whole(const RuleInput& r) {
  return is_integer(type_of(r)) || type_of(r) == Type::PRED;
}
bool same_shape(const RuleInput& r, size_t i) {
  return r.at(i).shape.same_without_layout(r.instr.shape);
}
// Returns operand i if it has the result's shape; None otherwise (a dynamic dimension may differ).
InstrId give(const RuleInput& r, size_t i) {
  return same_shape(r, i) ? r.operand(i) : kNo;
}
// If operand i is the op `op`, of which this op is the inverse, returns its operand.
InstrId undo(const RuleInput& r, Op op) {
  const Instruction& x = r.at(0);
  return x.op == op && r.module[x.operand(0)].shape.same_without_layout(r.instr.shape) ? x.operand(0) : kNo;
}
// If one operand of a commutative op is the constant `value`, returns the other one.
InstrId other_if(const RuleInput& r, double value) {
  if (r.is(1, value)) return give(r, 0);
  if (r.is(0, value)) return give(r, 1);
  return kNo;
}
InstrId other_if_int(const RuleInput& r, int64_t value) {
  if (r.is_int(1, value)) return give(r, 0);
  if (r.is_int(0, value)) return give(r, 1);
  return kNo;
}
InstrId constant_if_int(const RuleInput& r, int64_t value) {
  return r.is_int(0, value) || r.is_int(1, value) ? r.all_int(value) : kNo;
}

InstrId add_zero(const RuleInput& r) {
  if (is_whole(r)) return other_if_int(r, 0);
  // x + -0 = x, but x + +0 is not x for x = -0.
  if (is_complex(type_of(r))) return kNo;
  return other_if(r, -0.0);
}
InstrId subtract_zero(const RuleInput& r) {
  if (is_complex(type_of(r))) return kNo;
  return (is_whole(r) ? r.is_int(1, 0) : r.is(1, 0.0)) ? give(r, 0) : kNo;
}
InstrId subtract_itself(const RuleInput& r) {
  return is_whole(r) && r.operand(0) == r.operand(1) ? r.all_int(0) : kNo;
}
InstrId multiply_one(const RuleInput& r) {
  // For complex numbers (a + bi) * (1 + 0i) would compute 0 * infinity if a part is infinite.
  return is_complex(type_of(r)) ? kNo : other_if(r, 1);
}
InstrId multiply_zero(const RuleInput& r) {
  return is_whole(r) ? constant_if_int(r, 0) : kNo;
}
InstrId divide_one(const RuleInput& r) {
  return !is_complex(type_of(r)) && r.is(1, 1) ? give(r, 0) : kNo;
}
InstrId divide_by_power_of_two(const RuleInput& r) {
  const Literal* d = r.splat(1);
  if (!d || !is_float(type_of(r)) || !same_shape(r, 0) || !std::isfinite(d->as_double(0)) || d->as_double(0) == 0)
    return kNo;
  int exponent = 0;
  if (std::abs(std::frexp(d->as_double(0), &exponent)) != 0.5) return kNo;
  const double inverse = 1 / d->as_double(0);
  if (!std::isfinite(inverse)) return kNo;
  // x / c and x * (1/c) round the same real number only if 1/c is exact; it must also be normal, because some devices
  // flush subnormals.
  const FloatFormat format = float_format(static_cast<uint32_t>(type_of(r)));
  if (Literal::scalar(type_of(r), inverse).as_double(0) != inverse || -exponent + 1 < 2 - format.bias) return kNo;
  return r.b.mul(r.operand(0), r.b.fill(r.at(0).shape, inverse));
}
InstrId remainder_one(const RuleInput& r) {
  return is_whole(r) && r.is_int(1, 1) ? r.all_int(0) : kNo;
}

InstrId same_operands(const RuleInput& r) {
  return r.operand(0) == r.operand(1) ? give(r, 0) : kNo;
}
InstrId and_all(const RuleInput& r) {
  return other_if_int(r, type_of(r) == Type::PRED ? 1 : -1);
}
InstrId and_none(const RuleInput& r) {
  return constant_if_int(r, 0);
}
InstrId or_none(const RuleInput& r) {
  return other_if_int(r, 0);
}
InstrId or_all(const RuleInput& r) {
  return constant_if_int(r, type_of(r) == Type::PRED ? 1 : -1);
}
InstrId xor_itself(const RuleInput& r) {
  return r.operand(0) == r.operand(1) ? r.all_int(0) : kNo;
}
InstrId xor_twice(const RuleInput& r) {
  for (size_t i : {0, 1}) {
    const Instruction& x = r.at(i);
    if (x.op != Op::XOR) continue;
    for (size_t k : {0, 1})
      if (x.operand(k) == r.operand(1 - i) && r.module[x.operand(1 - k)].shape.same_without_layout(r.instr.shape))
        return x.operand(1 - k);
  }
  return kNo;
}
InstrId shift_none(const RuleInput& r) {
  return r.is_int(1, 0) ? give(r, 0) : kNo;
}

InstrId compare_itself(const RuleInput& r) {
  const Type type = r.at(0).shape.type();
  const auto& attrs = r.instr.as<CompareAttrs>();
  const bool total = attrs.type == CompareType::TOTALORDER;
  if (r.operand(0) != r.operand(1) || ((is_float(type) || is_complex(type)) && !total)) return kNo;
  const bool equal =
      attrs.direction == Direction::EQ || attrs.direction == Direction::GE || attrs.direction == Direction::LE;
  return r.all_int(equal);
}
InstrId compare_unsigned_zero(const RuleInput& r) {
  const auto direction = r.instr.as<CompareAttrs>().direction;
  if (!is_unsigned(r.at(0).shape.type())) return kNo;
  if (r.is_int(1, 0) && (direction == Direction::LT || direction == Direction::GE))
    return r.all_int(direction == Direction::GE);
  if (r.is_int(0, 0) && (direction == Direction::GT || direction == Direction::LE))
    return r.all_int(direction == Direction::LE);
  return kNo;
}
InstrId compare_pred_constant(const RuleInput& r) {
  if (r.at(0).shape.type() != Type::PRED) return kNo;
  const auto direction = r.instr.as<CompareAttrs>().direction;
  if (direction != Direction::EQ && direction != Direction::NE) return kNo;
  for (size_t i : {0, 1}) {
    const Literal* c = r.splat(i);
    if (!c) continue;
    const bool same = (c->as_int(0) != 0) == (direction == Direction::EQ);
    return same ? give(r, 1 - i) : r.b.not_(r.operand(1 - i));
  }
  return kNo;
}

Direction opposite(Direction d) {
  switch (d) {
    case Direction::EQ:
      return Direction::NE;
    case Direction::NE:
      return Direction::EQ;
    case Direction::GE:
      return Direction::LT;
    case Direction::GT:
      return Direction::LE;
    case Direction::LE:
      return Direction::GT;
    case Direction::LT:
      return Direction::GE;
  }
  return d;
}
InstrId not_compare(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::COMPARE) return kNo;
  const auto& attrs = x.as<CompareAttrs>();
  const Type type = r.module[x.operand(0)].shape.type();
  const bool has_nan = (is_float(type) || is_complex(type)) && attrs.type != CompareType::TOTALORDER;
  if (has_nan && attrs.direction != Direction::EQ && attrs.direction != Direction::NE) return kNo;
  return r.b.compare(x.operand(0), opposite(attrs.direction), x.operand(1), attrs.type);
}

InstrId select_constant(const RuleInput& r) {
  const Literal* p = r.splat(0);
  return p ? give(r, p->as_int(0) ? 1 : 2) : kNo;
}
InstrId select_same(const RuleInput& r) {
  return r.operand(1) == r.operand(2) ? give(r, 1) : kNo;
}
InstrId select_not(const RuleInput& r) {
  if (r.at(0).op != Op::NOT || !same_shape(r, 2)) return kNo;
  return r.b.select(r.at(0).operand(0), r.operand(2), r.operand(1));
}
InstrId select_pred(const RuleInput& r) {
  if (type_of(r) != Type::PRED || !same_shape(r, 0)) return kNo;
  if (r.is_int(1, 1) && r.is_int(2, 0)) return r.operand(0);
  if (r.is_int(1, 0) && r.is_int(2, 1)) return r.b.not_(r.operand(0));
  return kNo;
}

// True for formats without negative numbers, in which -x is NaN.
bool is_positive_only(Type type) {
  return is_float(type) && float_format(static_cast<uint32_t>(type)).specials == FloatSpecials::E8M0;
}
InstrId negate_twice(const RuleInput& r) {
  return is_positive_only(type_of(r)) ? kNo : undo(r, Op::NEGATE);
}
InstrId not_twice(const RuleInput& r) {
  return undo(r, Op::NOT);
}
InstrId abs_of_sign(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (is_complex(x.shape.type())) return kNo;
  if (x.op == Op::ABS) return give(r, 0);
  return x.op == Op::NEGATE && !is_positive_only(type_of(r)) ? r.b.unary(Op::ABS, x.operand(0)) : kNo;
}
InstrId abs_of_unsigned(const RuleInput& r) {
  return is_unsigned(type_of(r)) ? give(r, 0) : kNo;
}
InstrId round_twice(const RuleInput& r) {
  const Op below = r.at(0).op;
  const bool whole =
      below == Op::FLOOR || below == Op::CEIL || below == Op::ROUND_NEAREST_AFZ || below == Op::ROUND_NEAREST_EVEN;
  return whole ? give(r, 0) : kNo;
}
InstrId real_part(const RuleInput& r) {
  if (!is_complex(r.at(0).shape.type())) return give(r, 0);
  return r.at(0).op == Op::COMPLEX ? r.at(0).operand(0) : kNo;
}
InstrId imaginary_part(const RuleInput& r) {
  if (!is_complex(r.at(0).shape.type())) return r.all(0);
  return r.at(0).op == Op::COMPLEX ? r.at(0).operand(1) : kNo;
}
InstrId complex_of_parts(const RuleInput& r) {
  const Instruction& re = r.at(0);
  const Instruction& im = r.at(1);
  return re.op == Op::REAL && im.op == Op::IMAG && re.operand(0) == im.operand(0) &&
                 r.module[re.operand(0)].shape.same_without_layout(r.instr.shape)
             ? re.operand(0)
             : kNo;
}

// True if `to` represents every value of `from`, and the conversion keeps it.
bool holds_all(Type to, Type from) {
  if (from == to) return true;
  const TypeInfo &f = type_info(from), &t = type_info(to);
  const auto format = [](Type type) { return float_format(static_cast<uint32_t>(type)); };
  // f8e8m0fnu has neither zero nor a sign.
  if (t.kind == Kind::Float && format(to).specials == FloatSpecials::E8M0) return false;
  if (from == Type::PRED) return to != Type::S1;
  if (t.kind == Kind::Float) {
    const FloatFormat wide = format(to);
    if (is_integer(from))
      return f.bits - (f.kind == Kind::Signed) <= wide.mantissa_bits + 1 && f.bits < 64 && f.bits <= wide.bias;
    if (f.kind != Kind::Float) return false;
    if (to == Type::F32 || to == Type::F64) return to == Type::F64 || from != Type::F64;
    const FloatFormat narrow = format(from);
    return wide.specials == FloatSpecials::IEEE && narrow.specials == FloatSpecials::IEEE &&
           wide.exponent_bits >= narrow.exponent_bits && wide.mantissa_bits >= narrow.mantissa_bits;
  }
  if (!is_integer(to) || !is_integer(from)) return false;
  if (f.kind == t.kind) return t.bits >= f.bits;
  return t.kind == Kind::Signed && t.bits > f.bits;
}

InstrId convert_nothing(const RuleInput& r) {
  return r.at(0).shape.type() == type_of(r) ? give(r, 0) : kNo;
}
InstrId convert_twice(const RuleInput& r) {
  const Instruction& inner = r.at(0);
  if (inner.op != Op::CONVERT) return kNo;
  const Type from = r.module[inner.operand(0)].shape.type(), middle = inner.shape.type(), to = type_of(r);
  if (!holds_all(middle, from)) return kNo;
  // Conversions from floats saturate if the value is out of range, while conversions between integers wrap.
  const bool whole = is_integer(from) || from == Type::PRED;
  if (whole && (is_float(middle) || is_complex(middle)) && is_integer(to) && !holds_all(to, from)) return kNo;
  return r.b.convert(inner.operand(0), to);
}
InstrId bitcast_convert_twice(const RuleInput& r) {
  const Instruction& inner = r.at(0);
  if (inner.op != Op::BITCAST_CONVERT || !inner.shape.same_dims(r.instr.shape)) return kNo;
  // Converting the byte to pred first gives 0 or 1, whatever the byte was.
  if (inner.shape.type() == Type::PRED) return kNo;
  const Instruction& x = r.module[inner.operand(0)];
  return x.shape.same_dims(r.instr.shape) ? r.b.bitcast_convert(inner.operand(0), type_of(r)) : kNo;
}

InstrId power_constant(const RuleInput& r) {
  if (!is_float(type_of(r)) || !same_shape(r, 0)) return kNo;
  if (r.is(1, 1)) return r.operand(0);
  if (r.is(1, 0.0) || r.is(1, -0.0)) return r.all(1);
  if (r.is(1, 2)) return r.b.mul(r.operand(0), r.operand(0));
  if (r.is(1, -1) && !r.instr.shape.has_dynamic()) return r.b.div(r.b.fill(r.instr.shape, 1), r.operand(0));
  return kNo;
}
InstrId reduce_precision_same(const RuleInput& r) {
  const FloatFormat f = float_format(static_cast<uint32_t>(type_of(r)));
  const auto& a = r.instr.as<ReducePrecisionAttrs>();
  // reduce-precision flushes subnormals even if it keeps all bits, unless the requested exponent is wider than the
  // format's.
  return f.specials == FloatSpecials::IEEE && a.exponent_bits > f.exponent_bits && a.mantissa_bits >= f.mantissa_bits
             ? give(r, 0)
             : kNo;
}
// A program text may request more bits than any format has. The numbers are limited, because a device may store them in
// a few bits.
InstrId reduce_precision_beyond(const RuleInput& r) {
  // One more exponent bit than f64, and as many mantissa bits as f64.
  constexpr int64_t kMostExponent = 12, kMostMantissa = 52;
  const auto& a = r.instr.as<ReducePrecisionAttrs>();
  if (a.exponent_bits <= kMostExponent && a.mantissa_bits <= kMostMantissa) return kNo;
  auto* attrs = r.module.make<ReducePrecisionAttrs>();
  attrs->exponent_bits = std::min(a.exponent_bits, kMostExponent);
  attrs->mantissa_bits = std::min(a.mantissa_bits, kMostMantissa);
  return r.b.op(r.instr.op, r.instr.shape, r.instr.operands, attrs);
}

constexpr Rule kRules[] = {
    {Op::ADD, "x + -0 = x; for integers x + 0 = x", add_zero},
    {Op::SUBTRACT, "x - +0 = x", subtract_zero},
    {Op::SUBTRACT, "x - x = 0 (integers)", subtract_itself},
    {Op::MULTIPLY, "x * 1 = x", multiply_one},
    {Op::MULTIPLY, "x * 0 = 0 (integers, pred)", multiply_zero},
    {Op::DIVIDE, "x / 1 = x", divide_one},
    {Op::DIVIDE, "x / 2^k = x * 2^-k", divide_by_power_of_two},
    {Op::REMAINDER, "x rem 1 = 0 (integers)", remainder_one},
    {Op::POWER, "x^1 = x, x^0 = 1, x^2 = x * x, x^-1 = 1 / x", power_constant},
    {Op::MAXIMUM, "max(x, x) = x", same_operands},
    {Op::MINIMUM, "min(x, x) = x", same_operands},
    {Op::AND, "x & x = x", same_operands},
    {Op::AND, "x & ~0 = x", and_all},
    {Op::AND, "x & 0 = 0", and_none},
    {Op::OR, "x | x = x", same_operands},
    {Op::OR, "x | 0 = x", or_none},
    {Op::OR, "x | ~0 = ~0", or_all},
    {Op::XOR, "x ^ 0 = x", or_none},
    {Op::XOR, "x ^ x = 0", xor_itself},
    {Op::XOR, "(x ^ y) ^ y = x", xor_twice},
    {Op::SHIFT_LEFT, "x << 0 = x", shift_none},
    {Op::SHIFT_RIGHT_LOGICAL, "x >> 0 = x", shift_none},
    {Op::SHIFT_RIGHT_ARITHMETIC, "x >> 0 = x", shift_none},
    {Op::COMPARE, "x = x, x >= x, x <= x; not x < x (no NaN)", compare_itself},
    {Op::COMPARE, "unsigned x >= 0", compare_unsigned_zero},
    {Op::COMPARE, "(p = true) = p, (p != true) = not p", compare_pred_constant},
    {Op::NOT, "not not x = x", not_twice},
    {Op::NOT, "not (a < b) = a >= b (no NaN), not (a = b) = a != b", not_compare},
    {Op::SELECT, "select(true, a, b) = a", select_constant},
    {Op::SELECT, "select(p, a, a) = a", select_same},
    {Op::SELECT, "select(not p, a, b) = select(p, b, a)", select_not},
    {Op::SELECT, "select(p, true, false) = p", select_pred},
    {Op::NEGATE, "-(-x) = x", negate_twice},
    {Op::ABS, "||x|| = |x|, |-x| = |x|", abs_of_sign},
    {Op::ABS, "|x| = x (unsigned)", abs_of_unsigned},
    {Op::FLOOR, "floor of a whole number is it", round_twice},
    {Op::CEIL, "ceil of a whole number is it", round_twice},
    {Op::ROUND_NEAREST_AFZ, "rounding a whole number gives it", round_twice},
    {Op::ROUND_NEAREST_EVEN, "rounding a whole number gives it", round_twice},
    {Op::REAL, "real(complex(a, b)) = a", real_part},
    {Op::IMAG, "imag(complex(a, b)) = b", imaginary_part},
    {Op::COMPLEX, "complex(real(z), imag(z)) = z", complex_of_parts},
    {Op::CONVERT, "convert to the same type does nothing", convert_nothing},
    {Op::CONVERT, "convert(convert(x)) = convert(x) where the inner one loses nothing", convert_twice},
    {Op::BITCAST_CONVERT, "bitcast-convert to the same type does nothing", convert_nothing},
    {Op::BITCAST_CONVERT, "bitcast-convert(bitcast-convert(x)) = bitcast-convert(x)", bitcast_convert_twice},
    {Op::REDUCE_PRECISION, "a format at least as wide keeps x", reduce_precision_same},
    {Op::REDUCE_PRECISION, "bits that no format has change nothing", reduce_precision_beyond},
};

}  // namespace

std::span<const Rule> arithmetic_rules() {
  return kRules;
}

}  // namespace collet::hlo
