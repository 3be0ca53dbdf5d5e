// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <bit>
#include <cstdint>

/// \file
/// Converts every float type of types.def to and from double: exact to double, one rounding to nearest even from
/// double.

namespace collet {

/// How the special values of a format are encoded; see types.def.
enum class FloatSpecials : uint8_t { IEEE, FN, FNUZ, FINITE, E8M0 };

struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  FloatSpecials specials = FloatSpecials::IEEE;
  constexpr int bits() const { return specials == FloatSpecials::E8M0 ? 8 : 1 + exponent_bits + mantissa_bits; }
};

/// Returns the format of a FLOAT type; all zeros for other types.
constexpr FloatFormat float_format(uint32_t type) {
  switch (type) {
#define COLLET_FLOAT_FORMAT(NAME, exponent, mantissa, bias, specials) \
  case COLLET_TYPE_##NAME:                                            \
    return {exponent, mantissa, bias, FloatSpecials::specials};
#include <collet/types.def>
    default:
      return {};
  }
}

/// Returns the value that the low bits() bits of `bits` encode. Exact; NaN payloads are not kept.
double decode_float(const FloatFormat& format, uint64_t bits);

/// Rounds `value` once to nearest even, as XLA converts. Overflow gives infinity if the format has one (IEEE), NaN in
/// FN, FNUZ and E8M0, and the largest finite value in FINITE. The sign of NaN and of zero is kept if the format has it.
uint64_t encode_float(const FloatFormat& format, double value);

inline float decode_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}
/// Converts float to bf16, rounding to nearest even; NaN stays NaN.
inline uint16_t encode_bf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40);
  bits += 0x7FFF + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

}  // namespace collet
