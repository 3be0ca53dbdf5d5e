// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// \file
/// The float formats of types.def, and conversions between their bits and numbers.

namespace collet::codegen {

/// Layout of the bits of a float format, from types.def.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  enum Specials { IEEE, FN, FNUZ, FINITE, E8M0 } specials = IEEE;
};

/// Returns the format of a float type; all fields are zero for other types.
FloatFormat float_format(uint32_t type);

/// Returns the number that `bits` encode in a format of at most 16 bits.
double decode_float(uint64_t bits, const FloatFormat& format);

/// Returns the bits of `x` rounded to a format of at most 16 bits: to nearest, ties to even. A number too large for a
/// format without infinities becomes NaN, or the largest number if the format has no NaN.
uint64_t encode_float(long double x, const FloatFormat& format);

}  // namespace collet::codegen
