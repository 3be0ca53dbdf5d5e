// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "conformance/oracle/functions.h"

namespace collet::conformance {

/// A sum of f64 numbers and products without any rounding, independent of their order: a fixed-point number that is
/// wide enough for the smallest and the largest product (Kulisch's accumulator). Infinities and NaN are handled as in
/// IEEE 754, for a sum without intermediate overflow.
class ExactSum {
 public:
  void add(double value) { add_product(value, 1); }
  void add_product(double a, double b);
  /// Returns the sum. It is -0 if all summands were -0, or if there were none and `empty` is -0.
  ExactResult result() const;

 private:
  static constexpr int kDigitBits = 32;
  // Bit 0 of digit 0 has the weight 2^kLeast, the square of the least f64.
  static constexpr int kLeast = 2 * -1074;
  // Enough digits for 2^60 times the square of the largest f64.
  static constexpr int kDigits = (2 * 1024 + 60 - kLeast) / kDigitBits + 2;

  void carry();

  std::array<int64_t, kDigits> digits_{};
  int pending_ = 0;        // number of additions since the last carry
  int low_ = kDigits - 1;  // the lowest digit that is not 0
  bool nan_ = false, positive_infinity_ = false, negative_infinity_ = false;
  bool any_ = false, only_negative_zeros_ = true;
};

}  // namespace collet::conformance
