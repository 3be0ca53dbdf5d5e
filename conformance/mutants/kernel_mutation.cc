// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/kernel_mutation.h"

#include <collet/types.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "conformance/mutants/math_library.h"
#include "hlo/base/float_format.h"

namespace collet::mutants {
namespace {

constexpr float kPi = 3.14159265F;

int width_of(uint32_t type) {
  return static_cast<int>(collet_type_bytes(type)) * 8;
}
bool is_float(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_FLOAT;
}
bool is_signed(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_SIGNED;
}
bool is_integer(uint32_t type) {
  return is_signed(type) || collet_type_kind(type) == COLLET_KIND_UNSIGNED;
}

double real(const Element& e) {
  return decode_float(float_format(e.type), e.bits);
}
uint64_t bits_of(uint32_t type, double value) {
  return encode_float(float_format(type), value);
}
int64_t integer(const Element& e) {
  const int shift = 64 - width_of(e.type);
  return is_signed(e.type) ? static_cast<int64_t>(e.bits << shift) >> shift
                           : static_cast<int64_t>(e.bits << shift >> shift);
}
uint64_t low_bits(uint64_t bits, uint32_t type) {
  const int shift = 64 - width_of(type);
  return bits << shift >> shift;
}
int64_t least_of(uint32_t type) {
  return is_signed(type) ? -static_cast<int64_t>((uint64_t{1} << (width_of(type) - 1)) - 1) - 1 : 0;
}
int64_t most_of(uint32_t type) {
  return static_cast<int64_t>(~uint64_t{0} >> (64 - width_of(type) + (is_signed(type) ? 1 : 0)));
}

// Adds, subtracts or multiplies with saturation, for types of at most 32 bits.
uint64_t saturated(uint32_t op, uint32_t type, int64_t a, int64_t b) {
  const int64_t exact = op == COLLET_OP_ADD        ? a + b
                        : op == COLLET_OP_SUBTRACT ? a - b
                        : op == COLLET_OP_MULTIPLY ? a * b
                                                   : (a < 0 ? -a : a);
  return low_bits(static_cast<uint64_t>(std::clamp(op == COLLET_OP_NEGATE ? -a : exact, least_of(type), most_of(type))),
                  type);
}

uint64_t shifted(uint32_t op, const Element& a, uint64_t count) {
  switch (op) {
    case COLLET_OP_SHIFT_LEFT:
      return low_bits(a.bits << count, a.type);
    case COLLET_OP_SHIFT_RIGHT_LOGICAL:
      return low_bits(a.bits, a.type) >> count;
    default: {
      const int shift = 64 - width_of(a.type);
      return low_bits(static_cast<uint64_t>(static_cast<int64_t>(a.bits << shift) >> shift >> count), a.type);
    }
  }
}

uint64_t of_integers(KernelMutation mutation, uint32_t op, const Element& right, const Element& a, const Element& b) {
  const int64_t x = integer(a), y = integer(b), r = integer(right);
  const auto width = static_cast<uint64_t>(width_of(a.type));
  switch (mutation) {
    case KernelMutation::by_zero_is_zero:
      return y == 0 ? 0 : right.bits;
    case KernelMutation::least_by_minus_one_is_zero:
      return is_signed(a.type) && x == least_of(a.type) && y == -1 ? 0 : right.bits;
    case KernelMutation::remainder_has_sign_of_divisor:
      return is_signed(a.type) && r != 0 && (r < 0) != (y < 0) ? low_bits(static_cast<uint64_t>(r + y), a.type)
                                                               : right.bits;
    case KernelMutation::shift_count_wraps: {
      const uint64_t count = low_bits(b.bits, b.type);
      return count >= width ? shifted(op, a, count % width) : right.bits;
    }
    case KernelMutation::saturates:
      return width <= 32 ? saturated(op, a.type, x, y) : right.bits;
    case KernelMutation::zero_has_one_zero_less:
      return x == 0 ? width - 1 : right.bits;
    case KernelMutation::counts_in_32_bits: {
      if (width >= 32) return right.bits;
      const auto wide = static_cast<uint32_t>(x);
      return low_bits(static_cast<uint64_t>(op == COLLET_OP_POPCNT ? std::popcount(wide) : std::countl_zero(wide)),
                      a.type);
    }
    case KernelMutation::unsigned_is_signed: {
      if (is_signed(a.type)) return right.bits;
      const auto with_sign = [&](const Element& e) {
        return static_cast<int64_t>(e.bits << (64 - width)) >> (64 - width);
      };
      const int64_t p = with_sign(a), q = with_sign(b);
      if (op == COLLET_OP_MAXIMUM) return p > q ? a.bits : b.bits;
      if (op == COLLET_OP_MINIMUM) return p < q ? a.bits : b.bits;
      if (op == COLLET_OP_CONVERT)
        return is_float(right.type) ? bits_of(right.type, static_cast<double>(p)) : right.bits;
      return q == 0 || q == -1 ? right.bits : low_bits(static_cast<uint64_t>(p / q), a.type);
    }
    case KernelMutation::negative_power_is_zero:
      return is_signed(b.type) && y < 0 ? 0 : right.bits;
    case KernelMutation::integers_by_single:
      return is_float(right.type) ? bits_of(right.type, static_cast<double>(static_cast<float>(x))) : right.bits;
    default:
      return right.bits;
  }
}

// Naive formulas in f32, each of which is inaccurate for some operands.
float by_formula(KernelMutation mutation, uint32_t op, float x, float y, float right) {
  switch (mutation) {
    case KernelMutation::by_simple_formula:
      switch (op) {
        case COLLET_OP_EXPONENTIAL_MINUS_ONE:
          return std::exp(x) - 1;
        case COLLET_OP_LOG_PLUS_ONE:
          return std::log(1 + x);
        case COLLET_OP_TANH:
          return (std::exp(2 * x) - 1) / (std::exp(2 * x) + 1);
        case COLLET_OP_LOGISTIC:
          return std::exp(x) / (1 + std::exp(x));
        case COLLET_OP_SINE:
          return std::sin(std::fmod(x, 2 * kPi));
        case COLLET_OP_COSINE:
          return std::cos(std::fmod(x, 2 * kPi));
        case COLLET_OP_TAN:
          return std::sin(x) / std::cos(std::fmod(x, 2 * kPi));
        case COLLET_OP_SQRT:
          return x * (1 / std::sqrt(x));
        case COLLET_OP_CBRT:
          return std::pow(x, 1.0F / 3);
        case COLLET_OP_SINH:
          return (std::exp(x) - std::exp(-x)) / 2;
        case COLLET_OP_COSH:
          return (std::exp(x) + std::exp(-x)) / 2;
        case COLLET_OP_ASINH:
          return std::log(x + std::sqrt(x * x + 1));
        case COLLET_OP_ACOSH:
          return std::log(x + std::sqrt(x * x - 1));
        case COLLET_OP_ATANH:
          return std::log((1 + x) / (1 - x)) / 2;
        case COLLET_OP_ASIN:
          return std::atan(x / std::sqrt(1 - x * x));
        case COLLET_OP_ATAN2:
          return std::atan(x / y);
        case COLLET_OP_POWER:
          return std::exp(y * std::log(x));
        case COLLET_OP_REMAINDER:
          return x - y * std::trunc(x / y);
        case COLLET_OP_DIVIDE:
          return x * (1 / y);
        case COLLET_OP_ROUND_NEAREST_AFZ:
          return std::copysign(std::floor(std::fabs(x) + 0.5F), x);
        case COLLET_OP_ROUND_NEAREST_EVEN:
          return std::floor(x + 0.5F);
        case COLLET_OP_FLOOR:
          return static_cast<float>(static_cast<int32_t>(std::clamp(x, -2e9F, 2e9F))) -
                 (x < 0 && x != std::trunc(x) ? 1 : 0);
        case COLLET_OP_CEIL:
          return -std::floor(-x) + 0.0F;
        case COLLET_OP_SIGN:
          return x > 0 ? 1.0F : x < 0 ? -1.0F : 0.0F;
        default:
          return right;
      }
    case KernelMutation::few_bits:
      return std::isfinite(right) ? right * (1 + 0x1p-12F) : right;
    case KernelMutation::saturates_early:
      if (op == COLLET_OP_TANH) return std::fabs(x) > 7 ? std::copysign(1.0F, x) : right;
      if (op == COLLET_OP_ERF) return std::fabs(x) > 3 ? std::copysign(1.0F, x) : right;
      if (op == COLLET_OP_LOGISTIC) return x < -80 ? 0.0F : right;
      return x > 88 ? std::numeric_limits<float>::infinity() : x < -87 ? 0.0F : right;
    case KernelMutation::large_operands_are_nan:
      return std::fabs(x) > 1e5F && std::isfinite(right) ? std::numeric_limits<float>::quiet_NaN() : right;
    default:
      return right;
  }
}

bool is_formula(KernelMutation mutation) {
  return mutation == KernelMutation::by_simple_formula || mutation == KernelMutation::few_bits ||
         mutation == KernelMutation::saturates_early || mutation == KernelMutation::large_operands_are_nan;
}

bool is_signalling(const Element& x) {
  const FloatFormat format = float_format(x.type);
  return format.specials == FloatSpecials::IEEE && std::isnan(real(x)) &&
         (x.bits >> (format.mantissa_bits - 1) & 1) == 0;
}

// Converts a finite float by way of another format, which rounds twice.
uint64_t rounded_by(uint32_t between, const Element& right, double x) {
  return is_float(right.type) && std::isfinite(x) && std::isfinite(real({between, bits_of(between, x)}))
             ? bits_of(right.type, real({between, bits_of(between, x)}))
             : right.bits;
}

// The result of arithmetic in f64 that is rounded to 64 bits of mantissa before.
uint64_t rounded_by_extended(uint32_t op, const Element& right, double x, double y) {
  const long double a = x, b = y;
  const long double exact = op == COLLET_OP_ADD        ? a + b
                            : op == COLLET_OP_SUBTRACT ? a - b
                            : op == COLLET_OP_MULTIPLY ? a * b
                            : op == COLLET_OP_DIVIDE   ? a / b
                                                       : std::sqrt(a);
  const auto twice = static_cast<double>(exact);
  return right.type == COLLET_TYPE_F64 && std::isfinite(twice) ? bits_of(right.type, twice) : right.bits;
}

uint64_t of_floats(KernelMutation mutation, uint32_t op, const Element& right, const Element& a, const Element& b) {
  const double x = real(a), y = real(b), r = real(right);
  if (is_formula(mutation)) {
    if (right.type != COLLET_TYPE_F32 || a.type != COLLET_TYPE_F32) return right.bits;
    return std::bit_cast<uint32_t>(
        by_formula(mutation, op, static_cast<float>(x), static_cast<float>(y), static_cast<float>(r)));
  }
  switch (mutation) {
    case KernelMutation::nan_loses:
      return std::isnan(x) ? b.bits : std::isnan(y) ? a.bits : right.bits;
    case KernelMutation::first_of_equal_zeros:
      return x == 0 && y == 0 ? a.bits : right.bits;
    case KernelMutation::remainder_has_sign_of_divisor:
      return std::isfinite(y) && r != 0 && (r < 0) != (y < 0) ? bits_of(right.type, r + y) : right.bits;
    case KernelMutation::halves_the_other_way: {
      if (!std::isfinite(x) || std::fabs(x) > 1e15 || std::fabs(x - std::trunc(x)) != 0.5) return right.bits;
      const double away = std::trunc(x) + std::copysign(1, x),
                   even = std::fmod(std::trunc(x), 2) == 0 ? std::trunc(x) : away;
      return bits_of(right.type, std::copysign(op == COLLET_OP_ROUND_NEAREST_EVEN ? away : even, x));
    }
    case KernelMutation::double_by_single:
      return right.type == COLLET_TYPE_F64 && std::isfinite(r)
                 ? bits_of(right.type, static_cast<double>(static_cast<float>(r)))
                 : right.bits;
    case KernelMutation::zero_to_zero_is_nan:
      return x == 0 && y == 0 ? bits_of(right.type, std::numeric_limits<double>::quiet_NaN()) : right.bits;
    case KernelMutation::one_by_nan_is_nan:
      return (x == 1 && std::isnan(y)) || (std::isnan(x) && y == 0)
                 ? bits_of(right.type, std::numeric_limits<double>::quiet_NaN())
                 : right.bits;
    case KernelMutation::by_library: {
      const bool wide = right.type == COLLET_TYPE_F64, is_own = a.type == right.type;
      const std::optional<double> result = is_own ? by_math_library(op, wide, x, y) : std::nullopt;
      return result ? bits_of(right.type, *result) : right.bits;
    }
    case KernelMutation::signalling_is_nan:
      return is_signalling(a) || is_signalling(b) ? bits_of(right.type, std::numeric_limits<double>::quiet_NaN())
                                                  : right.bits;
    case KernelMutation::unordered_is_true:  // for compare
      return std::isnan(x) || std::isnan(y) ? right.bits ^ 1 : right.bits;
    case KernelMutation::zeros_differ:
      return x == 0 && y == 0 && std::signbit(x) != std::signbit(y) ? right.bits ^ 1 : right.bits;
    case KernelMutation::denormals_are_equal: {
      const double least = std::ldexp(1.0, 1 - float_format(a.type).bias);
      return x != y && std::fabs(x) < least && std::fabs(y) < least ? right.bits ^ 1 : right.bits;
    }
    case KernelMutation::rounded_by_extended:
      return rounded_by_extended(op, right, x, y);
    case KernelMutation::infinite_is_finite:
      return std::isinf(x) ? 1 : right.bits;
    default:
      return right.bits;
  }
}

uint64_t of_conversions(KernelMutation mutation, const Element& right, const Element& a) {
  const bool to_integer = is_integer(right.type), from_float = is_float(a.type);
  const double x = from_float ? real(a) : 0;
  const bool is_outside = from_float && to_integer &&
                          !(x >= static_cast<double>(least_of(right.type)) &&
                            x < std::ldexp(1.0, width_of(right.type) - is_signed(right.type)));
  switch (mutation) {
    case KernelMutation::nan_to_least:
      return to_integer && from_float && std::isnan(x)
                 ? low_bits(static_cast<uint64_t>(INT64_MIN) >> (64 - width_of(right.type)), right.type)
                 : right.bits;
    case KernelMutation::outside_wraps:
      return is_outside && std::fabs(x) < 9e18 ? low_bits(static_cast<uint64_t>(static_cast<int64_t>(x)), right.type)
                                               : right.bits;
    case KernelMutation::outside_is_least:
      return is_outside && std::isfinite(x) ? low_bits(static_cast<uint64_t>(least_of(right.type)), right.type)
                                            : right.bits;
    case KernelMutation::rounds_to_integer:
      return to_integer && from_float && std::fabs(x) < 1e9 && !is_outside
                 ? low_bits(static_cast<uint64_t>(static_cast<int64_t>(std::nearbyint(x))), right.type)
                 : right.bits;
    case KernelMutation::truncates: {
      if (!from_float || !is_float(right.type) || !std::isfinite(x) || !std::isfinite(real(right))) return right.bits;
      return std::fabs(real(right)) > std::fabs(x) ? right.bits - 1 : right.bits;
    }
    case KernelMutation::halves_away: {
      if (!from_float || !is_float(right.type) || !std::isfinite(x) || std::fabs(real(right)) >= std::fabs(x))
        return right.bits;
      const double next = decode_float(float_format(right.type), right.bits + 1);
      return std::isfinite(next) && std::fabs(next) - std::fabs(x) == std::fabs(x) - std::fabs(real(right))
                 ? right.bits + 1
                 : right.bits;
    }
    case KernelMutation::nan_by_cutting:  // the upper bits of a NaN may be those of infinity
      return a.type == COLLET_TYPE_F32 && right.type == COLLET_TYPE_BF16 && std::isnan(x) ? a.bits >> 16 : right.bits;
    case KernelMutation::short_denormals_lost: {
      const double least = std::ldexp(1.0, 1 - float_format(right.type).bias);
      return is_float(right.type) && width_of(right.type) < 32 && std::fabs(real(right)) < least
                 ? bits_of(right.type, std::copysign(0.0, real(right)))
                 : right.bits;
    }
    case KernelMutation::true_is_not_one:
      return collet_type_kind(right.type) == COLLET_KIND_PRED && from_float && x != 0 && std::fabs(x) < 1 ? 0
                                                                                                          : right.bits;
    case KernelMutation::rounded_by_single:
      return a.type == COLLET_TYPE_F64 ? rounded_by(COLLET_TYPE_F32, right, x) : right.bits;
    case KernelMutation::rounded_by_half:
      return from_float && width_of(right.type) < 16 ? rounded_by(COLLET_TYPE_F16, right, x) : right.bits;
    case KernelMutation::rounded_by_bfloat:
      return from_float && width_of(right.type) < 16 ? rounded_by(COLLET_TYPE_BF16, right, x) : right.bits;
    case KernelMutation::by_double:  // a 64-bit integer is rounded twice
      return is_integer(a.type) && right.type == COLLET_TYPE_F32
                 ? bits_of(right.type,
                           is_signed(a.type) ? static_cast<double>(integer(a)) : static_cast<double>(a.bits))
                 : right.bits;
    default:
      return right.bits;
  }
}

}  // namespace

uint64_t wrong_result(KernelMutation mutation, uint32_t op, const Element& right, std::span<const Element> operands) {
  const Element &a = operands[0], &b = operands[operands.size() > 1 ? 1 : 0];
  if (mutation == KernelMutation::lower_bound_last) {  // clamp
    if (operands.size() != 3) return right.bits;
    const bool is_turned =
        is_float(a.type) ? real(operands[0]) > real(operands[2]) : integer(operands[0]) > integer(operands[2]);
    return is_turned && (is_float(a.type) || is_signed(a.type)) ? operands[0].bits : right.bits;
  }
  if (op == COLLET_OP_CONVERT && mutation != KernelMutation::unsigned_is_signed &&
      mutation != KernelMutation::integers_by_single)
    return of_conversions(mutation, right, a);
  if (is_float(a.type)) return of_floats(mutation, op, right, a, b);
  return is_integer(a.type) ? of_integers(mutation, op, right, a, b) : right.bits;
}

int64_t wrong_index(IndexMutation mutation, uint32_t type, int64_t index, int64_t size) {
  const bool is_large = !is_signed(type) && index < 0;  // u64 index above the largest s64
  switch (mutation) {
    case IndexMutation::negative_counts_from_end:
      return is_signed(type) && index < 0 && index >= -size ? index + size : index;
    case IndexMutation::beyond_is_zero:
      return is_large || index >= size ? 0 : index;
    case IndexMutation::beyond_wraps:
      return !is_large && index >= size && size > 0 ? index % size : index;
    case IndexMutation::outside_is_clamped:
      return is_large ? size - 1 : std::clamp<int64_t>(index, 0, std::max<int64_t>(size - 1, 0));
    case IndexMutation::indices_are_signed: {
      const int shift = 64 - width_of(type);
      return !is_signed(type) && static_cast<int64_t>(static_cast<uint64_t>(index) << shift) < 0 ? 0 : index;
    }
    case IndexMutation::indices_have_32_bits:
      return width_of(type) == 64 ? static_cast<int32_t>(index) : index;
    case IndexMutation::indices_have_16_bits:
      return width_of(type) >= 32 ? static_cast<int16_t>(index) : index;
    default:
      return index;
  }
}

}  // namespace collet::mutants
