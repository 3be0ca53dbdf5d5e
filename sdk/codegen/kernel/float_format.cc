// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/float_format.h"

#include <collet/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace collet::codegen {
namespace {

constexpr uint64_t kE8M0NaN = 0xff;

/// Encodes a number as the nearest power of two; of two that are as near, the larger one.
uint64_t encode_power(long double x) {
  if (!(x > 0) || std::isinf(x)) return kE8M0NaN;
  int exponent = 0;
  const long double fraction =
      std::frexp(x, &exponent);  // in [0.5, 1): x is between the powers exponent - 1 and exponent
  const int code = exponent - 1 + 127 + (fraction >= 0.75L ? 1 : 0);
  return code >= 255 ? kE8M0NaN : static_cast<uint64_t>(std::max(code, 0));
}

}  // namespace

FloatFormat float_format(uint32_t type) {
  switch (type) {
#define COLLET_FLOAT_FORMAT(NAME, exponent_bits, mantissa_bits, bias, specials) \
  case COLLET_TYPE_##NAME:                                                      \
    return {exponent_bits, mantissa_bits, bias, FloatFormat::specials};
#include <collet/types.def>
    default:
      return {};
  }
}

double decode_float(uint64_t bits, const FloatFormat& f) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (f.specials == FloatFormat::E8M0) {
    return (bits & 0xff) == kE8M0NaN ? kNaN : std::ldexp(1.0, static_cast<int>(bits & 0xff) - f.bias);
  }
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t sign = bits >> width & 1;
  const uint64_t magnitude = bits & ((uint64_t{1} << width) - 1);
  const uint64_t mantissa = magnitude & ((uint64_t{1} << f.mantissa_bits) - 1);
  const auto exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  if (f.specials == FloatFormat::IEEE && exponent == (1 << f.exponent_bits) - 1) {
    if (mantissa != 0) return std::copysign(kNaN, sign ? -1.0 : 1.0);
    return sign ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  if (f.specials == FloatFormat::FN && magnitude == (uint64_t{1} << width) - 1) {
    return std::copysign(kNaN, sign ? -1.0 : 1.0);
  }
  if (f.specials == FloatFormat::FNUZ && sign && magnitude == 0) return kNaN;
  const uint64_t whole = exponent == 0 ? mantissa : mantissa | uint64_t{1} << f.mantissa_bits;
  const int scale = (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits;
  const double x = std::ldexp(static_cast<double>(whole), scale);
  return sign ? -x : x;
}

uint64_t encode_float(long double x, const FloatFormat& f) {
  if (f.specials == FloatFormat::E8M0) return encode_power(x);
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t top = (uint64_t{1} << width) - 1;
  const uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
  const uint64_t sign = std::signbit(x) ? uint64_t{1} << width : 0;
  if (std::isnan(x)) {
    if (f.specials == FloatFormat::IEEE) return sign | infinity | uint64_t{1} << (f.mantissa_bits - 1);
    if (f.specials == FloatFormat::FN) return sign | top;
    return uint64_t{1} << width;  // FNUZ: its NaN; FINITE: a NaN without an encoding becomes -0
  }
  uint64_t largest = top;
  if (f.specials == FloatFormat::IEEE) largest = infinity - 1;
  if (f.specials == FloatFormat::FN) largest = top - 1;
  uint64_t magnitude = largest + 1;
  const long double size = std::fabs(x);
  if (size < std::ldexp(1.0L, f.bias + 2)) {
    // Numbers with the same exponent are multiples of the same unit in the last place, so the encoding is a count of
    // units.
    const int least = 1 - f.bias;
    const int exponent = size == 0 ? least : std::max(std::ilogb(size), least);
    const long double places = std::nearbyint(std::ldexp(size, f.mantissa_bits - exponent));
    magnitude = static_cast<uint64_t>(places) + (static_cast<uint64_t>(exponent - least) << f.mantissa_bits);
  }
  if (magnitude > largest) {
    if (f.specials == FloatFormat::IEEE) return sign | infinity;
    if (f.specials == FloatFormat::FNUZ) return uint64_t{1} << width;
    return sign | top;
  }
  if (f.specials == FloatFormat::FNUZ && magnitude == 0) return 0;
  return sign | magnitude;
}

}  // namespace collet::codegen
