// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace collet::conformance {
namespace {

// A type for the product of two mantissas.
__extension__ using Wide = unsigned __int128;

constexpr int64_t kRadix = int64_t{1} << 32;

// |value| = mantissa * 2^exponent.
struct Parts {
  uint64_t mantissa;
  int exponent;
};

Parts parts_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  return exponent == 0 ? Parts{fraction, -1074} : Parts{fraction | uint64_t{1} << 52, exponent - 1075};
}

// Returns the f64 nearest to a magnitude that is given in digits of 32 bits, none negative; digit 0 has the weight
// 2^least.
double nearest(const int64_t* digits, int count, int least) {
  int top = count - 1;
  while (top >= 0 && digits[top] == 0) --top;
  if (top < 0) return 0;
  // Takes the first 64 bits from the highest one on; the last of them is set if any lower bit is set.
  const int length = std::bit_width(static_cast<uint64_t>(digits[top]));
  const int64_t top_bit = int64_t{32} * top + length - 1;
  uint64_t head = 0;
  bool more = false;
  for (int d = top; d >= 0; --d) {
    const int64_t shift = int64_t{32} * d - (top_bit - 63);
    const auto digit = static_cast<uint64_t>(digits[d]);
    if (shift >= 0) {
      head |= digit << shift;
    } else if (shift > -32) {
      head |= digit >> -shift;
      more |= (digit & ((uint64_t{1} << -shift) - 1)) != 0;
    } else {
      more |= digit != 0;
    }
  }
  // Denormal results have fewer bits: this is the number of bits that are kept, at most 53.
  const int64_t exponent = top_bit + least;
  const int64_t kept = std::clamp<int64_t>(exponent + 1075, 0, 53);
  if (kept == 0) {
    // For values below the least f64: half of it is rounded to even, which is 0.
    const bool beyond_half = exponent == -1075 && ((head << 1) != 0 || more);
    return beyond_half ? std::numeric_limits<double>::denorm_min() : 0;
  }
  const int64_t dropped = 64 - kept;
  const uint64_t rest = head & ((uint64_t{1} << dropped) - 1), half = uint64_t{1} << (dropped - 1);
  uint64_t mantissa = head >> dropped;
  if (rest > half || (rest == half && (more || (mantissa & 1) != 0))) ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), static_cast<int>(exponent - kept + 1));
}

}  // namespace

void ExactSum::add_product(double a, double b) {
  const bool negative = std::signbit(a) != std::signbit(b);
  any_ = true;
  if (!std::isfinite(a) || !std::isfinite(b)) {
    only_negative_zeros_ = false;
    if (std::isnan(a) || std::isnan(b) || a == 0 || b == 0) {
      nan_ = true;
    } else {
      (negative ? negative_infinity_ : positive_infinity_) = true;
    }
    return;
  }
  only_negative_zeros_ &= negative && (a == 0 || b == 0);
  const Parts x = parts_of(a), y = parts_of(b);
  const Wide product = static_cast<Wide>(x.mantissa) * y.mantissa;
  if (product == 0) return;
  const int place = x.exponent + y.exponent - kLeast, first = place / kDigitBits, shift = place % kDigitBits;
  // The product has 106 bits and is shifted by up to 31, so it affects up to five digits.
  auto rest = product;
  uint64_t carried = 0;
  int digit = first;
  for (; rest != 0 || carried != 0; ++digit) {
    const uint64_t piece = (static_cast<uint64_t>(rest & 0xFFFFFFFF) << shift) | carried;
    const auto low = static_cast<int64_t>(piece & 0xFFFFFFFF);
    digits_[static_cast<size_t>(digit)] += negative ? -low : low;
    carried = piece >> 32;
    rest >>= 32;
  }
  low_ = std::min(low_, first);
  // A digit can take 2^31 summands of 32 bits before it overflows.
  if (++pending_ == 1 << 30) carry();
}

// Normalizes the digits: every digit except the top one is then from 0 to 2^32 - 1; the top one has the sign.
void ExactSum::carry() {
  pending_ = 0;
  int64_t carried = 0;
  for (size_t d = static_cast<size_t>(low_); d + 1 < digits_.size(); ++d) {
    digits_[d] += carried;
    carried = digits_[d] >> 32;
    digits_[d] -= carried * kRadix;
  }
  digits_.back() += carried;
}

ExactResult ExactSum::result() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (nan_ || (positive_infinity_ && negative_infinity_)) return {std::numeric_limits<double>::quiet_NaN(), 0};
  if (positive_infinity_ || negative_infinity_) return {positive_infinity_ ? kInfinity : -kInfinity, 0};
  const auto magnitude_of = [](const ExactSum& sum) {
    ExactSum copy = sum;
    copy.carry();
    const bool negative = copy.digits_.back() < 0;
    if (negative) {
      for (int64_t& digit : copy.digits_) digit = -digit;
      copy.carry();
    }
    const double value = nearest(copy.digits_.data(), kDigits, kLeast);
    return negative ? -value : value;
  };
  const double value = magnitude_of(*this);
  if (value == 0) return {any_ && only_negative_zeros_ ? -0.0 : 0.0, 0};
  if (!std::isfinite(value)) return {value, 0};
  ExactSum rest = *this;
  rest.add(-value);
  return {value, magnitude_of(rest)};
}

}  // namespace collet::conformance
