// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// \file
/// The float formats of types.def, and numbers in them.

namespace collet::codegen {

/// Bits of a float format, from types.def.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  enum Specials { IEEE, FN, FNUZ, FINITE, E8M0 } specials = IEEE;
};

/// The format of a float type; all zero for other types.
FloatFormat float_format(uint32_t type);

/// The number that `bits` stand for in a format of at most 16 bits.
double decode_float(uint64_t bits, const FloatFormat& format);

/// The bits of `x` rounded to a format of at most 16 bits: to nearest, ties to even. What a format without infinities
/// makes of numbers that are too large is its NaN, or, where it has none, its largest number.
uint64_t encode_float(long double x, const FloatFormat& format);

}  // namespace collet::codegen
