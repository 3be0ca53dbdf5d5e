// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// \file
/// Arithmetic in the number formats of PTX: computed exactly and rounded once.
namespace collet::gpu::emulator {

enum class Format : uint8_t {
  kF16,
  kBf16,
  kTf32,
  kE4m3,
  kE5m2,
  kF32,
  kF64,
  kS8,
  kS16,
  kS32,
  kS64,
  kU8,
  kU16,
  kU32,
  kU64
};
enum class Rounding : uint8_t { kNearestEven, kZero, kDown, kUp, kNearestAway };

/// The parameters of a conversion, which fit into one integer so that generated code can pass them.
struct Conversion {
  Format from = Format::kF32;
  Format to = Format::kF32;
  Rounding rounding = Rounding::kNearestEven;
  bool saturate = false;  ///< clamp the result to [0, 1]; NaN becomes 0
  bool flush = false;     ///< treat subnormal f32 as zero
  bool relu = false;      ///< negative results become 0
  bool finite = false;    ///< results that are too large become the largest finite number

  uint32_t code() const;
  static Conversion of_code(uint32_t code);
};

/// Converts the bits of a floating-point number or an integer to the bits of a floating-point number.
uint64_t convert(uint64_t bits, const Conversion& conversion);

double to_double(uint64_t bits, Format format);
uint64_t from_double(double value, Format format, Rounding rounding = Rounding::kNearestEven);

/// Returns a * b + c, rounded to odd to 53 bits, so that another rounding to at most 24 bits gives the correctly
/// rounded result. The product must be exact in 53 bits.
double fma_to_odd(double a, double b, double c);

// Functions that generated code calls.
extern "C" {
uint64_t collet_emu_convert(uint64_t bits, uint32_t code);
/// Computes an operation on f16, bf16 or pairs of them. `code` is a HalfOp with kHalf... flags.
uint32_t collet_emu_half(uint32_t code, uint32_t a, uint32_t b, uint32_t c);
/// Computes an operation with a rounding mode other than to nearest even. `code` is a RoundedOp | Rounding << 8.
float collet_emu_rounded_f32(uint32_t code, float a, float b, float c);
double collet_emu_rounded_f64(uint32_t code, double a, double b, double c);
}

enum class HalfOp : uint8_t { kAdd, kSub, kMul, kFma, kMin, kMax, kNeg, kAbs, kEx2, kTanh };
inline constexpr uint32_t kHalfPair = 1u << 8;
inline constexpr uint32_t kHalfBf16 = 1u << 9;
inline constexpr uint32_t kHalfFlush = 1u << 10;
inline constexpr uint32_t kHalfSaturate = 1u << 11;
inline constexpr uint32_t kHalfRelu = 1u << 12;
inline constexpr uint32_t kHalfNan = 1u << 13;      ///< min and max return NaN if an operand is NaN
inline constexpr uint32_t kHalfXorSign = 1u << 14;  ///< min and max give the result the exclusive or of both signs

enum class RoundedOp : uint8_t { kAdd, kMul, kFma, kDiv, kSqrt };

}  // namespace collet::gpu::emulator
