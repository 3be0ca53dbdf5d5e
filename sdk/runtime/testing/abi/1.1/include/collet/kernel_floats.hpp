/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_FLOATS_HPP
#define COLLET_KERNEL_FLOATS_HPP

/** \file
 * C++ types for elements of arrays: bf16 and f16 with correct rounding, and the mapping from C++ types to element
 * types. For kernels that run on the host, in a simulator or a first version.
 */

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "types.h"

namespace collet {
namespace kernel {
namespace detail {

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/** Rounds x to odd: the last bit is set if bits were cut off. Rounding the result again, to a narrower format, gives the
 * same as rounding x once. */
inline float to_odd(double x) {
  const float near = static_cast<float>(x);
  if (std::isnan(x) || static_cast<double>(near) == x) return near;
  uint32_t bits = bits_of(near);
  if (std::fabs(static_cast<double>(near)) > std::fabs(x)) --bits;
  return float_of(bits | 1);
}

}  // namespace detail

/** bf16: the upper half of a float. */
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  /** Rounds to nearest, ties to even. */
  explicit bfloat16(float x) {
    const uint32_t all = detail::bits_of(x);
    bits = std::isnan(x) ? static_cast<uint16_t>(all >> 16 | 0x40)
                         : static_cast<uint16_t>((all + 0x7fff + (all >> 16 & 1)) >> 16);
  }
  /** The conversion is exact. */
  operator float() const { return detail::float_of(static_cast<uint32_t>(bits) << 16); }
};

/** f16: half precision of IEEE 754. */
struct half {
  uint16_t bits = 0;

  half() = default;
  /** Rounds to nearest, ties to even. */
  explicit half(float x) {
    const uint32_t all = detail::bits_of(x), sign = all >> 16 & 0x8000, size = all & 0x7fffffff;
    uint32_t out;
    if (size > 0x7f800000) {
      out = 0x7e00;
    } else if (size >= 0x47800000) {  // 65536 and more
      out = 0x7c00;
    } else if (size < 0x38800000) {  // below the least normal number: the sum rounds in the last place of a half
      out = detail::bits_of(detail::float_of(size) + 0.5f) - 0x3f000000;
    } else {
      out = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
    }
    bits = static_cast<uint16_t>(sign | out);
  }
  /** The conversion is exact. */
  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, size = bits & 0x7fff;
    if (size >= 0x7c00) return detail::float_of(sign | 0x7f800000 | (size & 0x3ff) << 13);
    if (size >= 0x400) return detail::float_of(sign | ((size << 13) + 0x38000000));
    const float out = static_cast<float>(size) * 5.9604644775390625e-8f;  // 2^-24
    return sign ? -out : out;
  }
};

/** Maps a C++ type to its element type, and to the type in which its arithmetic is done. */
template <class T>
struct Element;
/** \cond */
#define COLLET_KERNEL_ELEMENT(Type, NAME, WideType)      \
  template <>                                            \
  struct Element<Type> {                                 \
    static constexpr uint32_t type = COLLET_TYPE_##NAME; \
    using Wide = WideType;                               \
  };
COLLET_KERNEL_ELEMENT(bool, PRED, bool)
COLLET_KERNEL_ELEMENT(int8_t, S8, int8_t)
COLLET_KERNEL_ELEMENT(int16_t, S16, int16_t)
COLLET_KERNEL_ELEMENT(int32_t, S32, int32_t)
COLLET_KERNEL_ELEMENT(int64_t, S64, int64_t)
COLLET_KERNEL_ELEMENT(uint8_t, U8, uint8_t)
COLLET_KERNEL_ELEMENT(uint16_t, U16, uint16_t)
COLLET_KERNEL_ELEMENT(uint32_t, U32, uint32_t)
COLLET_KERNEL_ELEMENT(uint64_t, U64, uint64_t)
COLLET_KERNEL_ELEMENT(bfloat16, BF16, float)
COLLET_KERNEL_ELEMENT(half, F16, float)
COLLET_KERNEL_ELEMENT(float, F32, float)
COLLET_KERNEL_ELEMENT(double, F64, double)
#undef COLLET_KERNEL_ELEMENT
/** \endcond */

/** The type in which arithmetic on T is done: float for bf16 and f16, else T itself. */
template <class T>
using Wide = typename Element<T>::Wide;

/** True if T is a floating-point type, including bf16 and f16. */
template <class T>
constexpr bool is_float = std::is_floating_point_v<Wide<T>>;

/** Stores a number as T, rounded once, to nearest even. */
template <class T, class From>
T narrow(From x) {
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, half>) {
    if constexpr (std::is_same_v<From, double>) return T(detail::to_odd(x));
    return T(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

/** Converts one element as the op convert does. Floats are truncated to integers and saturate, and NaN becomes 0. The
 * result for pred is whether the number is not 0. Integers wrap around. */
template <class To, class From>
To converted(From stored) {
  const Wide<From> x = stored;
  if constexpr (std::is_same_v<To, bool>) {
    return x != Wide<From>(0);
  } else if constexpr (is_float<To>) {
    if constexpr (std::is_integral_v<Wide<From>> && sizeof(From) >= 4 && sizeof(To) == 2) {
      // Rounds to 53 bits; the last bit is set if bits were cut off.
      constexpr bool wide = sizeof(From) == 8;
      double exact = static_cast<double>(x);
      if constexpr (wide) {
        const bool negative = x < Wide<From>(0);
        uint64_t size = negative ? UINT64_C(0) - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
        if (size >> 53) size = (size >> 11 | ((size & 0x7ff) != 0 ? 1 : 0)) << 11;
        exact = negative ? -static_cast<double>(size) : static_cast<double>(size);
      }
      return narrow<To>(exact);
    } else {
      return narrow<To>(x);
    }
  } else if constexpr (is_float<From>) {
    using Limits = std::numeric_limits<To>;
    if (x != x) return 0;
    // Both bounds are powers of two, or 0, and exact.
    const auto above = std::ldexp(Wide<From>(1), Limits::digits);
    if (x >= above) return Limits::max();
    if (x <= (Limits::is_signed ? -above : Wide<From>(0))) return Limits::min();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace kernel
}  // namespace collet

#endif
