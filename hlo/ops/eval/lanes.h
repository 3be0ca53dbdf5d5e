// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>

#include "hlo/ir/types.h"

/// \file
/// Lanes: blocks of elements in the wide form in which the evaluator computes. Integers and pred are 64-bit words
/// (sign- or zero-extended), floats are doubles, complex numbers pairs of doubles. Loading is exact; storing rounds
/// once.

namespace collet::hlo::eval {

/// Number of elements that are processed at a time.
constexpr int64_t kLanes = 256;

enum class Wide : uint8_t { Int, Real, Complex };
using Cx = std::complex<double>;

inline Wide wide_of(Type type) {
  return is_complex(type) ? Wide::Complex : is_float(type) ? Wide::Real : Wide::Int;
}
inline size_t lane_bytes(Wide wide) {
  return wide == Wide::Complex ? 16 : 8;
}

/// Converts the elements of one type to lanes and back.
struct Codec {
  /// Loads `n` elements that are `stride` elements apart (which may be 0 or negative).
  void (*load)(const uint8_t* from, int64_t stride, void* lanes, int64_t n) = nullptr;
  /// Stores `n` elements: floats are rounded to nearest even, integers wrap around, pred is != 0.
  void (*store)(const void* lanes, uint8_t* to, int64_t stride, int64_t n) = nullptr;
  /// Like store followed by load: rounds lanes to values that the type represents.
  void (*round)(void* lanes, int64_t n) = nullptr;
  int bytes = 0;
};

/// Returns the codec of any type that has elements of data.
const Codec& codec(Type type);

/// Memory for kLanes elements of any kind.
struct alignas(64) LaneBuffer {
  char bytes[kLanes * 16];
  void* data() { return bytes; }
  int64_t* ints() { return reinterpret_cast<int64_t*>(bytes); }
  double* reals() { return reinterpret_cast<double*>(bytes); }
};

/// Copies element 0 of `lanes` to all `n` elements.
void splat(Wide wide, void* lanes, int64_t n);

/// Converts lanes of type `from` to lanes of type `to`, not yet rounded to `to`. Floats to integers saturate, NaN is 0;
/// complex to real drops the imaginary part; to pred is != 0. `in` and `out` must not overlap.
void convert_lanes(Type from, Type to, const void* in, void* out, int64_t n);

/// Returns the low `bits` bits.
inline uint64_t low_bits(uint64_t value, int bits) {
  return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}
/// Returns the low `bits` bits, read as two's complement.
inline int64_t sign_extend(uint64_t value, int bits) {
  if (bits >= 64) return static_cast<int64_t>(value);
  const uint64_t sign = uint64_t{1} << (bits - 1);
  return static_cast<int64_t>((low_bits(value, bits) ^ sign) - sign);
}

}  // namespace collet::hlo::eval
