// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/float_format.h"

#include <cmath>
#include <limits>

namespace collet {
namespace {

uint64_t mask(int bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

double decode_e8m0(uint64_t bits) {
  if ((bits & 0xFF) == 0xFF) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, static_cast<int>(bits & 0xFF) - 127);
}

uint64_t encode_e8m0(double value) {
  if (!(value > 0) || std::isinf(value)) return 0xFF;
  int exponent;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  // The value is between 2^(e-1) and 2^e; a tie is rounded up, as in XLA.
  int code = exponent - 1 + 127;
  if (fraction >= 0.75) ++code;
  if (code < 0) return 0;
  return code > 254 ? 0xFF : static_cast<uint64_t>(code);
}

uint64_t nan_code(const FloatFormat& f, bool negative) {
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t sign = negative ? uint64_t{1} << width : 0;
  switch (f.specials) {
    case FloatSpecials::FN:
      return sign | mask(width);
    case FloatSpecials::FNUZ:
      return uint64_t{1} << width;
    case FloatSpecials::FINITE:
      return uint64_t{1} << width;  // as in XLA, a NaN without an encoding becomes -0
    default:
      return sign | (mask(f.exponent_bits) << f.mantissa_bits) | (uint64_t{1} << (f.mantissa_bits - 1));
  }
}

/// Returns the bits of the largest finite magnitude, without sign.
uint64_t largest_code(const FloatFormat& f) {
  const uint64_t all = mask(f.exponent_bits + f.mantissa_bits);
  switch (f.specials) {
    case FloatSpecials::IEEE:
      return (mask(f.exponent_bits) << f.mantissa_bits) - 1;
    case FloatSpecials::FN:
      return all - 1;
    default:
      return all;
  }
}

}  // namespace

double decode_float(const FloatFormat& f, uint64_t bits) {
  if (f.specials == FloatSpecials::E8M0) return decode_e8m0(bits);
  if (f.mantissa_bits == 52) return std::bit_cast<double>(bits);
  if (f.mantissa_bits == 23) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const int width = f.exponent_bits + f.mantissa_bits;
  const bool negative = (bits >> width) & 1;
  const uint64_t code = bits & mask(width);
  const uint64_t exponent = code >> f.mantissa_bits;
  const uint64_t mantissa = code & mask(f.mantissa_bits);
  double magnitude;
  if (f.specials == FloatSpecials::FNUZ && negative && code == 0) return std::numeric_limits<double>::quiet_NaN();
  if (f.specials == FloatSpecials::FN && code == mask(width))
    magnitude = std::numeric_limits<double>::quiet_NaN();
  else if (f.specials == FloatSpecials::IEEE && exponent == mask(f.exponent_bits))
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<double>(mantissa), 1 - f.bias - f.mantissa_bits);
  else
    magnitude = std::ldexp(static_cast<double>(mantissa | (uint64_t{1} << f.mantissa_bits)),
                           static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

uint64_t encode_float(const FloatFormat& f, double value) {
  if (f.specials == FloatSpecials::E8M0) return encode_e8m0(value);
  if (f.mantissa_bits == 52) return std::bit_cast<uint64_t>(value);
  if (f.mantissa_bits == 23 && !std::isnan(value)) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return nan_code(f, negative);
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t sign = negative ? uint64_t{1} << width : 0;
  const double magnitude = std::fabs(value);
  const uint64_t overflow = f.specials == FloatSpecials::IEEE     ? sign | (mask(f.exponent_bits) << f.mantissa_bits)
                            : f.specials == FloatSpecials::FINITE ? sign | largest_code(f)
                                                                  : nan_code(f, negative);
  if (std::isinf(magnitude)) return overflow;
  if (magnitude == 0) return f.specials == FloatSpecials::FNUZ ? 0 : sign;
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - f.bias) exponent = 1 - f.bias;
  // The value in units of the last place at this exponent; scaling by a power of two is exact, and nearbyint rounds to
  // nearest even.
  const double units = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  const auto scaled = static_cast<uint64_t>(units);
  const uint64_t hidden = uint64_t{1} << f.mantissa_bits;
  uint64_t code;
  if (scaled < hidden)
    code = scaled;  // subnormal
  else
    code = (static_cast<uint64_t>(exponent + f.bias) << f.mantissa_bits) + (scaled - hidden);
  if (code > largest_code(f)) return overflow;
  if (code == 0 && f.specials == FloatSpecials::FNUZ) return 0;
  return sign | code;
}

}  // namespace collet
