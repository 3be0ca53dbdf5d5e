// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/numeric.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

namespace collet::gpu::emulator {
namespace {

/// A binary floating-point format. In a format without infinities, the number after the largest one is NaN.
struct Layout {
  int bits, mantissa, bias;
  bool has_infinity;
};

constexpr Layout layout_of(Format format) {
  switch (format) {
    case Format::kF16:
      return {16, 10, 15, true};
    case Format::kBf16:
      return {16, 7, 127, true};
    case Format::kTf32:
      return {19, 10, 127, true};
    case Format::kE4m3:
      return {8, 3, 7, false};
    case Format::kE5m2:
      return {8, 2, 15, true};
    case Format::kF64:
      return {64, 52, 1023, true};
    default:
      return {32, 23, 127, true};
  }
}

bool is_integer(Format format) {
  return format >= Format::kS8;
}

int integer_bits(Format format) {
  constexpr int kBits[] = {8, 16, 32, 64, 8, 16, 32, 64};
  return kBits[static_cast<int>(format) - static_cast<int>(Format::kS8)];
}

/// A decoded number: (-1)^negative * significand * 2^exponent.
struct Number {
  enum class Kind : uint8_t { kFinite, kInfinity, kNan };
  Kind kind = Kind::kFinite;
  bool negative = false;
  uint64_t significand = 0;
  int exponent = 0;
};

Number decode(uint64_t bits, Format format) {
  Number n;
  if (is_integer(format)) {
    const int size = integer_bits(format);
    const uint64_t mask = size == 64 ? ~uint64_t{0} : (uint64_t{1} << size) - 1;
    bits &= mask;
    n.negative = format < Format::kU8 && (bits >> (size - 1)) != 0;
    n.significand = n.negative ? (0 - bits) & mask : bits;
    return n;
  }
  if (format == Format::kTf32) bits >>= 13;  // tf32 is in the upper bits of a 32-bit register
  const Layout l = layout_of(format);
  const uint64_t fraction = bits & ((uint64_t{1} << l.mantissa) - 1);
  const int top = (1 << (l.bits - 1 - l.mantissa)) - 1;
  const int exponent = static_cast<int>((bits >> l.mantissa) & static_cast<uint64_t>(top));
  n.negative = ((bits >> (l.bits - 1)) & 1) != 0;
  if (l.has_infinity && exponent == top) {
    n.kind = fraction ? Number::Kind::kNan : Number::Kind::kInfinity;
  } else if (!l.has_infinity && exponent == top && fraction == (uint64_t{1} << l.mantissa) - 1) {
    n.kind = Number::Kind::kNan;
  } else {
    n.significand = exponent ? fraction | (uint64_t{1} << l.mantissa) : fraction;
    n.exponent = (exponent ? exponent : 1) - l.bias - l.mantissa;
  }
  return n;
}

uint64_t canonical_nan(Format format) {
  switch (format) {
    case Format::kF16:
    case Format::kBf16:
      return 0x7fff;
    case Format::kE4m3:
    case Format::kE5m2:
      return 0x7f;
    case Format::kF64:
      return 0x7ff8000000000000;
    default:
      return 0x7fffffff;
  }
}

/// Returns the bits of a number in the format, rounded. Those of tf32 are returned as a 19-bit number.
uint64_t encode(const Number& n, Format format, Rounding rounding, bool finite) {
  const Layout l = layout_of(format);
  const uint64_t sign = uint64_t{n.negative} << (l.bits - 1);
  const uint64_t infinity = (((uint64_t{1} << (l.bits - 1 - l.mantissa)) - 1) << l.mantissa);
  const uint64_t largest = l.has_infinity ? infinity - 1 : infinity + (uint64_t{1} << l.mantissa) - 2;
  const uint64_t beyond = finite ? largest : l.has_infinity ? infinity : canonical_nan(format);
  if (n.kind == Number::Kind::kInfinity) return sign | beyond;
  if (n.significand == 0) return sign;
  const int shift_up = std::countl_zero(n.significand);
  const uint64_t m = n.significand << shift_up;
  const int top_exponent = n.exponent - shift_up + 63;  // exponent of the leading bit
  const int lowest = 1 - l.bias;
  const int exponent = top_exponent < lowest ? lowest : top_exponent;
  const int drop = exponent - l.mantissa - (n.exponent - shift_up);  // bits of m below the last place, at least 11
  uint64_t kept = drop >= 64 ? 0 : m >> drop;
  const bool exact = drop < 64 && (m << (64 - drop)) == 0;
  // Compares the discarded bits with half a unit in the last place: -1, 0 or 1.
  const uint64_t half = uint64_t{1} << 63;
  const uint64_t rest = drop > 64 ? 0 : drop == 64 ? m : m << (64 - drop);
  const int half_order = drop > 64 ? -1 : rest < half ? -1 : rest == half ? 0 : 1;
  bool up = false;
  switch (rounding) {
    case Rounding::kNearestEven:
      up = half_order > 0 || (half_order == 0 && (kept & 1));
      break;
    case Rounding::kNearestAway:
      up = half_order >= 0;
      break;
    case Rounding::kZero:
      break;
    case Rounding::kDown:
      up = n.negative && !exact;
      break;
    case Rounding::kUp:
      up = !n.negative && !exact;
      break;
  }
  if (exact) up = false;
  kept += up;
  // The exponent field follows from the sum: a carry out of the fraction increments it.
  const uint64_t field = static_cast<uint64_t>(exponent - lowest + 1);
  if (exponent - lowest + 1 >= (1 << (l.bits - 1 - l.mantissa))) {
    const bool toward_zero = rounding == Rounding::kZero || (rounding == Rounding::kDown && !n.negative) ||
                             (rounding == Rounding::kUp && n.negative);
    return sign | (toward_zero ? largest : beyond);
  }
  const uint64_t value = (kept >> l.mantissa) ? (field << l.mantissa) + (kept - (uint64_t{1} << l.mantissa)) : kept;
  if (value > largest) {
    const bool toward_zero = rounding == Rounding::kZero || (rounding == Rounding::kDown && !n.negative) ||
                             (rounding == Rounding::kUp && n.negative);
    return sign | (toward_zero ? largest : beyond);
  }
  return sign | value;
}

float half_to_float(uint32_t bits, bool is_bf16) {
  bits &= 0xffff;
  if (is_bf16) return std::bit_cast<float>(bits << 16);
  const uint32_t exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = (bits & 0x8000) << 16;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

uint32_t double_to_half(double value, bool is_bf16) {
  const auto format = is_bf16 ? Format::kBf16 : Format::kF16;
  return static_cast<uint32_t>(from_double(value, format));
}

uint32_t one_half(uint32_t code, uint32_t a_bits, uint32_t b_bits, uint32_t c_bits) {
  const bool is_bf16 = code & kHalfBf16;
  const auto op = static_cast<HalfOp>(code & 0xff);
  a_bits &= 0xffff;
  if (op == HalfOp::kNeg) return a_bits ^ 0x8000;
  if (op == HalfOp::kAbs) return a_bits & 0x7fff;
  const auto flushed = [&](double v) {
    return (code & kHalfFlush) && !is_bf16 && std::fabs(v) < 0x1p-14 ? std::copysign(0.0, v) : v;
  };
  double a = flushed(half_to_float(a_bits, is_bf16)), b = flushed(half_to_float(b_bits, is_bf16));
  const double c = flushed(half_to_float(c_bits, is_bf16));
  double r = 0;
  switch (op) {
    case HalfOp::kAdd:
      r = fma_to_odd(a, 1, b);
      break;
    case HalfOp::kSub:
      r = fma_to_odd(a, 1, -b);
      break;
    case HalfOp::kMul:
      r = a * b;
      break;
    case HalfOp::kFma:
      r = fma_to_odd(a, b, c);
      break;
    case HalfOp::kMin:
    case HalfOp::kMax: {
      const bool signs_differ = std::signbit(a) != std::signbit(b);
      if (code & kHalfXorSign) {
        a = std::fabs(a);
        b = std::fabs(b);
      }
      if (std::isnan(a) || std::isnan(b)) {
        r = (code & kHalfNan) || (std::isnan(a) && std::isnan(b)) ? NAN : std::isnan(a) ? b : a;
      } else if (a == 0 && b == 0) {
        r = (op == HalfOp::kMin) == std::signbit(a) ? a : b;
      } else {
        r = (op == HalfOp::kMin) == (a < b) ? a : b;
      }
      if (code & kHalfXorSign && !std::isnan(r)) r = std::copysign(r, signs_differ ? -1.0 : 1.0);
      break;
    }
    case HalfOp::kEx2:
      r = std::exp2(a);
      break;
    case HalfOp::kTanh:
      r = std::tanh(a);
      break;
    default:
      break;
  }
  if ((code & kHalfRelu) && r < 0) r = 0;
  if (code & kHalfSaturate) r = std::isnan(r) || r < 0 ? 0 : r > 1 ? 1 : r;
  if (std::isnan(r)) return 0x7fff;
  uint32_t bits = double_to_half(r, is_bf16);
  if ((code & kHalfFlush) && !is_bf16 && (bits & 0x7c00) == 0) bits &= 0x8000;
  return bits;
}

int mode_of(Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return FE_TOWARDZERO;
    case Rounding::kDown:
      return FE_DOWNWARD;
    case Rounding::kUp:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

/// Computes an operation under another rounding mode. The operands are volatile, so that the compiler does not move the
/// arithmetic out of the region in which the mode is set.
template <typename T>
T rounded(uint32_t code, T a_value, T b_value, T c_value) {
  const int before = std::fegetround();
  std::fesetround(mode_of(static_cast<Rounding>(code >> 8)));
  volatile T a = a_value, b = b_value, c = c_value;
  volatile T r = 0;
  switch (static_cast<RoundedOp>(code & 0xff)) {
    case RoundedOp::kAdd:
      r = a + b;
      break;
    case RoundedOp::kMul:
      r = a * b;
      break;
    case RoundedOp::kFma:
      r = std::fma(static_cast<T>(a), static_cast<T>(b), static_cast<T>(c));
      break;
    case RoundedOp::kDiv:
      r = a / b;
      break;
    case RoundedOp::kSqrt:
      r = std::sqrt(static_cast<T>(a));
      break;
  }
  std::fesetround(before);
  return r;
}

}  // namespace

uint32_t Conversion::code() const {
  return static_cast<uint32_t>(from) | static_cast<uint32_t>(to) << 4 | static_cast<uint32_t>(rounding) << 8 |
         uint32_t{saturate} << 12 | uint32_t{flush} << 13 | uint32_t{relu} << 14 | uint32_t{finite} << 15;
}

Conversion Conversion::of_code(uint32_t code) {
  Conversion c;
  c.from = static_cast<Format>(code & 15);
  c.to = static_cast<Format>((code >> 4) & 15);
  c.rounding = static_cast<Rounding>((code >> 8) & 7);
  c.saturate = (code >> 12) & 1;
  c.flush = (code >> 13) & 1;
  c.relu = (code >> 14) & 1;
  c.finite = (code >> 15) & 1;
  return c;
}

uint64_t convert(uint64_t bits, const Conversion& c) {
  Number n = decode(bits, c.from);
  if (c.flush && c.from == Format::kF32 && n.significand < (1u << 23) && n.kind == Number::Kind::kFinite)
    n.significand = 0;
  const bool nan = n.kind == Number::Kind::kNan;
  if (c.saturate) {
    const bool above =
        n.kind == Number::Kind::kInfinity || (n.significand && n.exponent + 63 - std::countl_zero(n.significand) >= 0);
    if (nan || n.negative) {
      n = {};
    } else if (above) {
      n = {.significand = 1};
    }
  } else if (nan) {
    return canonical_nan(c.to);
  }
  if (c.relu && n.negative) n = {};
  uint64_t result = encode(n, c.to, c.rounding, c.finite);
  if (c.flush && c.to == Format::kF32 && !(result & 0x7f800000)) result &= 0x80000000;
  return c.to == Format::kTf32 ? result << 13 : result;
}

double to_double(uint64_t bits, Format format) {
  if (format == Format::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (format == Format::kF64) return std::bit_cast<double>(bits);
  if (format == Format::kF16 || format == Format::kBf16) {
    return half_to_float(static_cast<uint32_t>(bits), format == Format::kBf16);
  }
  return std::bit_cast<double>(convert(bits, {.from = format, .to = Format::kF64}));
}

uint64_t from_double(double value, Format format, Rounding rounding) {
  return convert(std::bit_cast<uint64_t>(value), {.from = Format::kF64, .to = format, .rounding = rounding});
}

double fma_to_odd(double a, double b, double c) {
  const double p = a * b, s = p + c;
  if (!std::isfinite(s)) return s;
  const double back = s - p;
  const double error = (p - (s - back)) + (c - back);
  if (error == 0) return s;
  uint64_t bits = std::bit_cast<uint64_t>(s);
  if (bits & 1) return s;
  // The exact sum is between s and its neighbour in the direction of the error. Of the two, the one with the odd
  // significand is the result.
  bits += (error > 0) == (s > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}

extern "C" {

uint64_t collet_emu_convert(uint64_t bits, uint32_t code) {
  return convert(bits, Conversion::of_code(code));
}

uint32_t collet_emu_half(uint32_t code, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t low = one_half(code, a, b, c);
  if (!(code & kHalfPair)) return low;
  return low | one_half(code, a >> 16, b >> 16, c >> 16) << 16;
}

float collet_emu_rounded_f32(uint32_t code, float a, float b, float c) {
  return rounded(code, a, b, c);
}
double collet_emu_rounded_f64(uint32_t code, double a, double b, double c) {
  return rounded(code, a, b, c);
}
}

}  // namespace collet::gpu::emulator
