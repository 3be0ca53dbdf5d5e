// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "hlo/ir/unsigned_type.h"
#include "hlo/passes/expand/expand.h"
#include "hlo/passes/expand/float_bits.h"
#include "hlo/passes/expand/regions.h"

// Expansions of elementwise ops whose results core ops give exactly. Narrow floats without an IEEE encoding are
// computed in f32, which represents all their values.

namespace collet::hlo {
namespace {

// Computes the op in f32 if the type has no IEEE encoding.
InstrId by_f32(const ExpandInput& in) {
  Builder& b = in.b;
  std::vector<InstrId> operands;
  for (InstrId o : in.instr.operands) operands.push_back(is_float(b.type(o)) ? b.convert(o, Type::F32) : o);
  const Type type = is_float(in.type()) ? Type::F32 : in.type();
  return b.convert(b.op(in.instr.op, in.shape().with_type(type), operands, in.instr.attrs), in.type());
}
bool odd_float(Type type) {
  return is_float(type) && !(is_ieee(type) && type_info(type).bits >= 16);
}
// True for a format that has no sign and holds powers of two only (f8e8m0fnu), so that no value has a negative.
bool unsigned_float(Type type) {
  return type == Type::F8E8M0FNU;
}
// Ops that round or compare in steps are written for f32 and f64 only.
bool narrow_float(Type type) {
  return is_float(type) && type != Type::F32 && type != Type::F64;
}

InstrId negate(const ExpandInput& in) {
  const Type type = in.type();
  if (odd_float(type)) return by_f32(in);
  if (is_float(type)) return FloatBits(in.b, type).negated(in.operand(0));
  if (!is_integer(type)) return InstrId::None;
  const InstrId x = in.operand(0);
  return in.b.add(in.b.xor_(x, in.b.like_int(x, -1)), in.b.like_int(x, 1));
}

InstrId absolute(const ExpandInput& in) {
  Builder& b = in.b;
  const InstrId x = in.operand(0);
  const Type type = b.type(x);
  if (is_complex(type)) return InstrId::None;
  if (is_unsigned(type)) return x;
  if (odd_float(type)) return by_f32(in);
  if (is_float(type)) return FloatBits(b, type).magnitude(x);
  return b.max(x, b.neg(x));
}

InstrId subtract(const ExpandInput& in) {
  if (is_complex(in.type())) return InstrId::None;
  if (unsigned_float(in.type())) return by_f32(in);
  return in.b.add(in.operand(0), in.b.neg(in.operand(1)));
}

InstrId minimum(const ExpandInput& in) {
  Builder& b = in.b;
  const InstrId x = in.operand(0), y = in.operand(1);
  if (in.type() == Type::PRED) return b.and_(x, y);
  if (unsigned_float(in.type())) return by_f32(in);
  if (is_float(in.type())) return b.neg(b.max(b.neg(x), b.neg(y)));
  return b.not_(b.max(b.not_(x), b.not_(y)));
}

InstrId invert(const ExpandInput& in) {
  return in.b.xor_(in.operand(0), in.b.like_int(in.operand(0), in.type() == Type::PRED ? 1 : -1));
}

InstrId either(const ExpandInput& in) {
  Builder& b = in.b;
  if (in.type() == Type::PRED) return b.max(in.operand(0), in.operand(1));
  return b.xor_(b.xor_(in.operand(0), in.operand(1)), b.and_(in.operand(0), in.operand(1)));
}

InstrId clamp(const ExpandInput& in) {
  Builder& b = in.b;
  const auto bound = [&](size_t i) {
    return b.rank(in.operand(i)) == 0 ? b.broadcast(in.operand(i), in.shape().dims(), {}) : in.operand(i);
  };
  return b.min(b.max(in.operand(1), bound(0)), bound(2));
}

InstrId sign(const ExpandInput& in) {
  Builder& b = in.b;
  const InstrId x = in.operand(0), zero = b.like_int(x, 0), one = b.like_int(x, 1);
  const Type type = in.type();
  if (is_complex(type)) return InstrId::None;
  if (odd_float(type)) return by_f32(in);
  if (is_float(type)) {
    const FloatBits f(b, type);
    const InstrId keeps = b.or_(f.is_nan(x), b.compare(x, Direction::EQ, b.like(x, 0)));
    return b.select(keeps, x, f.with_sign_of(b.like(x, 1), x));
  }
  const InstrId positive = b.select(b.compare(x, Direction::GT, zero), one, zero);
  if (is_unsigned(type)) return positive;
  return b.select(b.compare(x, Direction::LT, zero), b.like_int(x, -1), positive);
}

// Splits |x| into its integral and fractional part. Floats from 2^mantissa on are integral; smaller ones are truncated
// by conversion to the integer type of their width.
struct Rounding {
  Builder& b;
  FloatBits f;
  InstrId x, size, whole, part;  // |x| = whole + part
  InstrId whole_int;

  explicit Rounding(const ExpandInput& in) : b(in.b), f(in.b, in.type()), x(in.operand(0)) {
    size = f.magnitude(x);
    whole_int = b.convert(size, bits_type(f.type, true));
    whole = b.convert(whole_int, f.type);
    part = b.sub(size, whole);
  }
  InstrId one_if(InstrId predicate) const { return b.select(predicate, b.like(x, 1), b.like(x, 0)); }
  // Returns `rounded` with the sign of x; x itself if it is integral, infinite or NaN.
  InstrId finish(InstrId rounded) const {
    const InstrId small = b.compare(size, Direction::LT, b.like(x, std::ldexp(1.0, f.format.mantissa_bits)));
    return b.select(small, f.with_sign_of(rounded, x), x);
  }
};

InstrId round_down(const ExpandInput& in) {
  if (narrow_float(in.type())) return by_f32(in);
  const Rounding r(in);
  // The magnitude of a negative number with a fractional part is rounded up.
  const InstrId up =
      r.b.and_(r.b.compare(r.x, Direction::LT, r.b.like(r.x, 0)), r.b.compare(r.part, Direction::GT, r.b.like(r.x, 0)));
  return r.finish(r.b.add(r.whole, r.one_if(up)));
}
InstrId round_up(const ExpandInput& in) {
  if (unsigned_float(in.type())) return by_f32(in);
  return in.b.neg(in.b.unary(Op::FLOOR, in.b.neg(in.operand(0))));
}
InstrId round_away(const ExpandInput& in) {
  if (narrow_float(in.type())) return by_f32(in);
  const Rounding r(in);
  return r.finish(r.b.add(r.whole, r.one_if(r.b.compare(r.part, Direction::GE, r.b.like(r.x, 0.5)))));
}
InstrId round_even(const ExpandInput& in) {
  if (narrow_float(in.type())) return by_f32(in);
  const Rounding r(in);
  Builder& b = r.b;
  const InstrId half = b.like(r.x, 0.5), one = b.like_int(r.whole_int, 1);
  const InstrId odd = b.compare(b.and_(r.whole_int, one), Direction::EQ, one);
  const InstrId up = b.or_(b.compare(r.part, Direction::GT, half), b.and_(b.compare(r.part, Direction::EQ, half), odd));
  return r.finish(b.add(r.whole, r.one_if(up)));
}

InstrId is_finite(const ExpandInput& in) {
  Builder& b = in.b;
  const Type type = b.type(in.operand(0));
  if (odd_float(type)) return by_f32(in);
  const FloatBits f(b, type);
  const InstrId exponent = f.masked(in.operand(0), f.exponent_mask());
  return b.compare(exponent, Direction::NE, b.like_int(exponent, f.exponent_mask()));
}

// Returns the value's bits in an unsigned type of at least eight bits; `width` is the width of the value in bits.
InstrId as_unsigned(Builder& b, InstrId x, int& width) {
  const TypeInfo& info = type_info(b.type(x));
  width = info.bits;
  if (width >= 8)
    return b.bitcast_convert(x, width == 64 ? Type::U64 : width == 32 ? Type::U32 : width == 16 ? Type::U16 : Type::U8);
  const InstrId wide = b.convert(x, Type::U8);
  return b.and_(wide, b.like_int(wide, (1 << width) - 1));
}

InstrId shift_arithmetic(const ExpandInput& in) {
  Builder& b = in.b;
  const Type type = in.type();
  const TypeInfo& info = type_info(type);
  InstrId x = in.operand(0), by = in.operand(1);
  if (info.bits < 8) {
    // Narrower types are computed in eight bits: the value is sign-extended, so a shift by seven leaves only copies of
    // its sign.
    int width = 0;
    const InstrId bits = as_unsigned(b, x, width), sign = b.like_int(bits, 1 << (info.bits - 1));
    const InstrId extended = b.bitcast_convert(b.sub(b.xor_(bits, sign), sign), Type::S8);
    const InstrId steps = as_unsigned(b, by, width), most = b.like_int(steps, 7);
    const InstrId distance = b.select(b.compare(steps, Direction::LT, most), steps, most);
    return b.convert(b.binary(Op::SHIFT_RIGHT_ARITHMETIC, extended, b.bitcast_convert(distance, Type::S8)), type);
  }
  const Type same_width = info.bits == 64   ? Type::S64
                          : info.bits == 32 ? Type::S32
                          : info.bits == 16 ? Type::S16
                                            : Type::S8;
  x = b.bitcast_convert(x, same_width);
  by = b.bitcast_convert(by, same_width);
  const InstrId negative = b.compare(x, Direction::LT, b.like_int(x, 0));
  const InstrId shifted = b.binary(Op::SHIFT_RIGHT_LOGICAL, b.select(negative, b.not_(x), x), by);
  return b.bitcast_convert(b.select(negative, b.not_(shifted), shifted), type);
}

InstrId count_ones(Builder& b, InstrId x) {
  const int width = type_info(b.type(x)).bits;
  const auto mask = [&](uint64_t pattern) { return b.like_int(x, static_cast<int64_t>(pattern)); };
  const uint64_t all = ~uint64_t{0};
  // Counts the bits in pairs, then nibbles, then bytes; finally the counts of the bytes are added.
  x = b.sub(x, b.and_(b.shr(x, 1), mask(all / 3)));
  x = b.add(b.and_(x, mask(all / 5)), b.and_(b.shr(x, 2), mask(all / 5)));
  x = b.and_(b.add(x, b.shr(x, 4)), mask(all / 17));
  for (int shift = 8; shift < width; shift *= 2) x = b.add(x, b.shr(x, shift));
  return b.and_(x, mask(0x7F));
}

// bitcast-convert between types of different widths, one of them narrower than a byte. Such elements are stored one per
// byte, so their bits must be packed or unpacked by shifts.
InstrId regroup_bits(const ExpandInput& in) {
  Builder& b = in.b;
  InstrId x = in.operand(0);
  const Type to = in.type();
  const int from_bits = type_info(b.type(x)).bits, to_bits = type_info(to).bits;
  const int small = std::min(from_bits, to_bits), large = std::max(from_bits, to_bits);
  if (small == large || small >= 8 || is_complex(to)) return InstrId::None;
  x = b.bitcast_convert(x, unsigned_type(from_bits));
  const Type work = unsigned_type(std::max(large, 8));
  x = b.convert(x, work);
  const bool joins = to_bits == large;
  Ints dims = to_ints(joins ? b.dims(x) : in.shape().dims());
  const int64_t last = static_cast<int64_t>(dims.size()) - 1;
  if (!joins) x = b.broadcast(x, dims, counting(last));
  const InstrId place = b.mul(b.iota(Shape::array(work, dims), last), b.fill_int(Shape::array(work, dims), small));
  const InstrId mask = b.fill_int(Shape::array(work, dims), (int64_t{1} << small) - 1);
  if (joins) {
    x = b.binary(Op::SHIFT_LEFT, b.and_(x, mask), place);
    x = b.reduce(x, Ints{last}, Op::OR);
  } else {
    x = b.and_(b.binary(Op::SHIFT_RIGHT_LOGICAL, x, place), mask);
  }
  return b.bitcast_convert(b.convert(x, unsigned_type(to_bits)), to);
}

InstrId population(const ExpandInput& in) {
  int width = 0;
  const InstrId count = count_ones(in.b, as_unsigned(in.b, in.operand(0), width));
  return in.b.convert(count, in.type());
}

InstrId leading_zeros(const ExpandInput& in) {
  Builder& b = in.b;
  int width = 0;
  InstrId x = as_unsigned(b, in.operand(0), width);
  for (int shift = 1; shift < width; shift *= 2) x = b.or_(x, b.shr(x, shift));
  const InstrId ones = count_ones(b, x);
  return b.convert(b.sub(b.like_int(ones, width), ones), in.type());
}

// Computes |x| mod |y| by long division of the significands, several bits per iteration. The result is exact, as for
// C's fmod.
InstrId float_remainder(const ExpandInput& in) {
  Builder& b = in.b;
  const FloatBits f(b, in.type());
  const InstrId x = in.operand(0), y = in.operand(1);
  const Type integer = bits_type(f.type, true);
  const int mantissa = f.format.mantissa_bits;
  const int per_round = f.type == Type::F64 ? 10 : 7;
  const auto number = [&](InstrId like, int64_t v) { return b.like_int(like, v); };
  // |v| = significand * 2^(exponent - bias - mantissa), exponent at least 1.
  const auto take_apart = [&](InstrId v, InstrId& significand, InstrId& exponent) {
    const InstrId bits = b.bitcast_convert(f.magnitude(v), integer);
    const InstrId field = b.shr(bits, mantissa);
    const InstrId fraction = b.and_(bits, number(bits, f.mantissa_mask()));
    const InstrId normal = b.compare(field, Direction::GT, number(field, 0));
    significand = b.select(normal, b.or_(fraction, number(fraction, f.mantissa_mask() + 1)), fraction);
    exponent = b.max(field, number(field, 1));
  };
  InstrId sx, ex, sy, ey;
  take_apart(x, sx, ex);
  take_apart(y, sy, ey);
  // If y is zero the result is replaced by NaN later; the divisor must only not be zero here.
  const InstrId divisor = b.max(sy, number(sy, 1));
  InstrId steps = b.max(b.sub(ex, ey), number(ex, 0));
  const auto modulo = [](Builder& c, InstrId value, InstrId by) { return c.sub(value, c.mul(c.div(value, by), by)); };
  InstrId rest = modulo(b, sx, divisor);
  const int64_t rounds = ((int64_t{1} << f.format.exponent_bits) + per_round - 1) / per_round;
  const InstrId state[] = {rest, steps, divisor};
  const auto loop = b.counted_loop(rounds, state, [&](Builder& c, InstrId, std::span<const InstrId> s) {
    const InstrId now = c.min(s[1], c.like_int(s[1], per_round));
    const InstrId shifted = c.binary(Op::SHIFT_LEFT, s[0], now);
    return std::vector<InstrId>{modulo(c, shifted, s[2]), c.sub(s[1], now), s[2]};
  });
  rest = loop[0];
  // Scales the remainder by 2^(ey - bias - mantissa) in two steps. Both are exact, because the result is a multiple of
  // the least subnormal number.
  const InstrId half =
      b.binary(Op::SHIFT_RIGHT_ARITHMETIC, b.sub(ey, number(ey, f.format.bias + mantissa)), number(ey, 1));
  const InstrId other = b.sub(b.sub(ey, number(ey, f.format.bias + mantissa)), half);
  const InstrId size = b.mul(b.mul(b.convert(rest, f.type), f.power_of_two(half)), f.power_of_two(other));
  const InstrId smaller = b.compare(f.magnitude(x), Direction::LT, f.magnitude(y));
  const InstrId result = b.select(smaller, x, f.with_sign_of(size, x));
  const InstrId infinity = b.like(x, INFINITY);
  const InstrId invalid =
      b.or_(b.or_(f.is_nan(x), f.is_nan(y)),
            b.or_(b.compare(f.magnitude(x), Direction::EQ, infinity), b.compare(y, Direction::EQ, b.like(y, 0))));
  return b.select(invalid, b.like(x, NAN), result);
}

InstrId remainder(const ExpandInput& in) {
  Builder& b = in.b;
  if (narrow_float(in.type())) return by_f32(in);
  if (is_float(in.type())) return float_remainder(in);
  // HLO defines x / 0 = -1 (all bits one) and least integer / -1 = least integer. The divisors 0 and -1 are replaced
  // below, so that both cases have these results.
  const InstrId x = in.operand(0), y = in.operand(1);
  return b.sub(x, b.mul(b.div(x, y), y));
}

InstrId map(const ExpandInput& in) {
  const std::vector<InstrId> operands = in.b.broadcast_scalars(in.instr.operands, in.shape().dims());
  const auto out = inline_elementwise(in.b, in.instr.called[0], operands);
  return out ? (*out)[0] : InstrId::None;
}

InstrId real_part(const ExpandInput& in) {
  return is_complex(in.operand_shape(0).type()) ? InstrId::None : in.operand(0);
}
InstrId imaginary_part(const ExpandInput& in) {
  return is_complex(in.operand_shape(0).type()) ? InstrId::None : in.b.fill(in.shape(), 0);
}

// The total order of floats is the order of their bits as signed integers, once the bits below the sign of negative
// numbers are inverted.
InstrId compare(const ExpandInput& in) {
  Builder& b = in.b;
  const auto& attrs = in.as<CompareAttrs>();
  const Type type = in.operand_shape(0).type();
  if (attrs.type != CompareType::TOTALORDER || !is_float(type)) return InstrId::None;
  const FloatBits f(b, type);
  const auto key = [&](InstrId x) {
    const InstrId bits = f.signed_bits(x);
    InstrId turned = b.xor_(bits, b.like_int(bits, f.below_sign()));
    // FNUZ formats have one NaN, encoded as -0; it is less than all other values.
    if (f.format.specials == FloatSpecials::FNUZ) {
      const InstrId nan = b.like_int(bits, f.sign());
      turned = b.select(b.compare(bits, Direction::EQ, nan), nan, turned);
    }
    return b.select(b.compare(bits, Direction::LT, b.like_int(bits, 0)), turned, bits);
  };
  if (type == Type::F8E8M0FNU) return b.compare(f.bits(in.operand(0)), attrs.direction, f.bits(in.operand(1)));
  return b.compare(key(in.operand(0)), attrs.direction, key(in.operand(1)), CompareType::SIGNED);
}

constexpr Expansion kTable[] = {
    {Op::NEGATE, &negate},
    {Op::ABS, &absolute},
    {Op::SUBTRACT, &subtract},
    {Op::MINIMUM, &minimum},
    {Op::NOT, &invert},
    {Op::OR, &either},
    {Op::CLAMP, &clamp},
    {Op::SIGN, &sign},
    {Op::FLOOR, &round_down},
    {Op::CEIL, &round_up},
    {Op::ROUND_NEAREST_AFZ, &round_away},
    {Op::ROUND_NEAREST_EVEN, &round_even},
    {Op::IS_FINITE, &is_finite},
    {Op::SHIFT_RIGHT_ARITHMETIC, &shift_arithmetic},
    {Op::POPCNT, &population},
    {Op::COUNT_LEADING_ZEROS, &leading_zeros},
    {Op::REMAINDER, &remainder},
    {Op::MAP, &map},
    {Op::REAL, &real_part},
    {Op::IMAG, &imaginary_part},
    {Op::COMPARE, &compare},
    {Op::BITCAST_CONVERT, &regroup_bits},
};

}  // namespace

Expected<bool> expand_elementwise(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
