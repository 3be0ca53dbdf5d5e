// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/support.h"

#include <bit>
#include <cmath>

namespace {

__extension__ using Wide = unsigned __int128;

using collet::codegen::kTwoOverPi;

uint64_t word_at(int64_t bit) {  // 64 bits of 2 / pi that begin at `bit` after the point; zeros before it
  if (bit <= -64) return 0;
  if (bit < 0) return kTwoOverPi[0] >> -bit;
  auto word = static_cast<size_t>(bit / 64);
  int shift = static_cast<int>(bit % 64);
  uint64_t high = kTwoOverPi[word] << shift;
  return shift == 0 ? high : high | kTwoOverPi[word + 1] >> (64 - shift);
}

void reduce(double x, double& high, double& low, int64_t& quarter) {
  if (!std::isfinite(x)) {
    high = low = x - x;
    quarter = 0;
    return;
  }
  if (std::fabs(x) < 0.75) {
    high = x;
    low = 0;
    quarter = 0;
    return;
  }
  // |x| = m * 2^e; m * (2 / pi) modulo 4, to 192 bits: bits of 2 / pi above those that matter are skipped.
  const uint64_t raw = std::bit_cast<uint64_t>(std::fabs(x));
  const int64_t e = static_cast<int64_t>(raw >> 52) - 1075;
  const uint64_t m = (raw & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const int64_t first = e - 2;  // the last bit of the first word then weighs 2^-62 in the product
  Wide p0 = static_cast<Wide>(m) * word_at(first);
  Wide p1 = static_cast<Wide>(m) * word_at(first + 64);
  Wide p2 = static_cast<Wide>(m) * word_at(first + 128);
  Wide low_words = (p1 << 64) + p2;
  uint64_t carry = low_words < (p1 << 64) ? 1 : 0;
  uint64_t top = static_cast<uint64_t>(p0) + static_cast<uint64_t>(p1 >> 64) + carry;
  // top: two bits of integer, then the fraction; low_words goes on.
  uint64_t integer = top >> 62;
  Wide fraction = (static_cast<Wide>(top) << 66) | (low_words >> 62);
  bool negative = false;
  if (fraction >> 127) {  // nearest: the rest lies in [-1/2, 1/2)
    ++integer;
    fraction = -fraction;
    negative = true;
  }
  double head = static_cast<double>(static_cast<uint64_t>(fraction >> 64)) * 0x1p-64;
  double tail = static_cast<double>(static_cast<uint64_t>(fraction)) * 0x1p-128;
  uint64_t head_bits = static_cast<uint64_t>(fraction >> 64);
  double exact = static_cast<double>(head_bits >> 11 << 11) * 0x1p-64;
  double rest = static_cast<double>(head_bits & 0x7ff) * 0x1p-64 + tail;
  head = exact;
  constexpr double kHalfPi = 1.57079632679489655800e+00;
  constexpr double kHalfPiLow = 6.12323399573676603587e-17;
  double product = head * kHalfPi;
  double error = std::fma(head, kHalfPi, -product) + head * kHalfPiLow + rest * kHalfPi;
  high = product + error;
  low = (product - high) + error;
  if (negative != std::signbit(x)) {
    high = -high;
    low = -low;
  }
  quarter = static_cast<int64_t>(integer & 3);
  if (std::signbit(x)) quarter = -quarter;
}

}  // namespace

void collet_reduce_quarter(const double* x, int64_t count, double* high, double* low, int64_t* quarter) {
  for (int64_t i = 0; i < count; ++i) reduce(x[i], high[i], low[i], quarter[i]);
}
