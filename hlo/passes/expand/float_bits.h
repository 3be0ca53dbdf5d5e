// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/base/float_format.h"
#include "hlo/passes/builder.h"

/// \file
/// Floats as integers, for expansions that take them apart.

namespace collet::hlo {

/// The integer type of a float's width.
inline Type bits_type(Type type, bool is_signed = false) {
  switch (type_info(type).bits) {
    case 64:
      return is_signed ? Type::S64 : Type::U64;
    case 32:
      return is_signed ? Type::S32 : Type::U32;
    case 16:
      return is_signed ? Type::S16 : Type::U16;
    case 8:
      return is_signed ? Type::S8 : Type::U8;
    default:
      return is_signed ? Type::S4 : Type::U4;
  }
}

/// True if the float type is encoded and rounded as IEEE 754 describes: sign, exponent, mantissa, infinities and NaN.
inline bool is_ieee(Type type) {
  return is_float(type) && float_format(static_cast<uint32_t>(type)).specials == FloatSpecials::IEEE;
}

struct FloatBits {
  Builder& b;
  Type type;
  FloatFormat format;

  FloatBits(Builder& builder, Type float_type)
      : b(builder), type(float_type), format(float_format(static_cast<uint32_t>(float_type))) {}

  int64_t sign() const { return static_cast<int64_t>(uint64_t{1} << (format.bits() - 1)); }
  /// All bits below the sign.
  int64_t below_sign() const { return static_cast<int64_t>((uint64_t{1} << (format.bits() - 1)) - 1); }
  int64_t exponent_mask() const { return ((int64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits; }
  int64_t mantissa_mask() const { return (int64_t{1} << format.mantissa_bits) - 1; }

  InstrId bits(InstrId x) const { return b.bitcast_convert(x, bits_type(type)); }
  InstrId signed_bits(InstrId x) const { return b.bitcast_convert(x, bits_type(type, true)); }
  InstrId value(InstrId bits) const { return b.bitcast_convert(bits, type); }
  InstrId masked(InstrId x, int64_t mask) const {
    const InstrId i = bits(x);
    return b.and_(i, b.like_int(i, mask));
  }
  InstrId magnitude(InstrId x) const { return value(masked(x, ~sign())); }
  InstrId negated(InstrId x) const {
    const InstrId i = bits(x);
    return value(b.xor_(i, b.like_int(i, sign())));
  }
  /// `size`, which is not negative, with the sign of `x`.
  InstrId with_sign_of(InstrId size, InstrId x) const { return value(b.or_(bits(size), masked(x, sign()))); }
  InstrId is_nan(InstrId x) const { return b.compare(x, Direction::NE, x); }
  /// Returns 2^k for integers k (of bits_type, signed) for which it is a normal number.
  InstrId power_of_two(InstrId k) const {
    const InstrId biased = b.add(k, b.like_int(k, format.bias));
    return value(b.shl(biased, format.mantissa_bits));
  }
};

}  // namespace collet::hlo
