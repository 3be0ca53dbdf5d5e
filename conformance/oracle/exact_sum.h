// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "conformance/oracle/functions.h"

namespace collet::conformance {

/// A sum of numbers and products of f64 without any rounding, in whatever order they come: a fixed-point number wide enough for the
/// least and the largest product (Kulisch's accumulator). Infinities and NaN as IEEE 754 has them, in a sum of which nothing overflows
/// on the way.
class ExactSum {
 public:
  void add(double value) { add_product(value, 1); }
  void add_product(double a, double b);
  /// The sum; -0 where all summands were -0, or there was none and `empty` says so.
  ExactResult result() const;

 private:
  static constexpr int kDigitBits = 32;
  // Bit 0 of digit 0 is worth 2^kLeast, the square of the least f64.
  static constexpr int kLeast = 2 * -1074;
  // Up to the square of the largest f64, and 2^60 of these.
  static constexpr int kDigits = (2 * 1024 + 60 - kLeast) / kDigitBits + 2;

  void carry();

  std::array<int64_t, kDigits> digits_{};
  int pending_ = 0;        // additions since the last carry
  int low_ = kDigits - 1;  // the lowest digit that is not 0
  bool nan_ = false, positive_infinity_ = false, negative_infinity_ = false;
  bool any_ = false, only_negative_zeros_ = true;
};

}  // namespace collet::conformance
