// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_floats.hpp>
#include <collet/kernel_rows.hpp>

#include <gtest/gtest.h>

#include <random>

namespace collet::kernel {
namespace {

uint64_t bits_of_double(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Returns the nearest value of T, found by comparing both neighbours of x; ties go to the even one.
template <class T>
uint16_t nearest(double x) {
  const double size = std::fabs(x);
  const auto value = [](uint32_t bits) {
    T out;
    out.bits = static_cast<uint16_t>(bits);
    return static_cast<double>(static_cast<float>(out));
  };
  const uint32_t infinite = std::is_same_v<T, half> ? 0x7c00 : 0x7f80;
  uint32_t low = 0, high = infinite;
  while (high - low > 1) (value((low + high) / 2) <= size ? low : high) = (low + high) / 2;
  const double step = value(low) - value(low - (low == infinite - 1 ? 1 : 0));
  const double above = high == infinite ? value(low) + step : value(high);
  const double middle = value(low) + (above - value(low)) / 2;
  const uint32_t out = size < middle || (size == middle && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(out | (std::signbit(x) ? 0x8000 : 0));
}

template <class T>
void check_rounding() {
  std::mt19937_64 random(7);
  const uint16_t infinite = std::is_same_v<T, half> ? 0x7c00 : 0x7f80;
  for (uint32_t bits = 0; bits < infinite; ++bits) {
    T one, next;
    one.bits = static_cast<uint16_t>(bits);
    next.bits = static_cast<uint16_t>(bits + 1);
    const float x = one;
    EXPECT_EQ(T(x).bits, bits);
    EXPECT_EQ(T(-x).bits, bits | 0x8000);
    if (bits + 1 == infinite) break;
    // The tie, and its two neighbours in double, which a conversion through float would confuse with it.
    const double tie = (static_cast<double>(x) + static_cast<double>(static_cast<float>(next))) / 2;
    for (const double y : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, 1e300)}) {
      ASSERT_EQ(narrow<T>(y).bits, nearest<T>(y)) << y << " " << bits_of_double(y);
    }
  }
  for (int i = 0; i < 100000; ++i) {
    const double x =
        std::ldexp(static_cast<double>(random()) / 1.8446744073709552e19 - 0.5, static_cast<int>(random() % 60) - 40);
    ASSERT_EQ(narrow<T>(x).bits, nearest<T>(x)) << x;
    ASSERT_EQ(T(static_cast<float>(x)).bits, nearest<T>(static_cast<double>(static_cast<float>(x)))) << x;
  }
}

TEST(KernelFloats, RoundOnceToNearestEven) {
  check_rounding<half>();
  check_rounding<bfloat16>();
  EXPECT_EQ(half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(half(65520.0f).bits, 0x7c00);
  EXPECT_TRUE(std::isnan(static_cast<float>(half(std::nanf("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(detail::float_of(0x7f800001)))));
}

TEST(KernelFloats, ConversionsSaturate) {
  EXPECT_EQ((converted<int32_t, float>(3e9f)), INT32_MAX);
  EXPECT_EQ((converted<int32_t, float>(-3e9f)), INT32_MIN);
  EXPECT_EQ((converted<uint8_t, float>(-1)), 0);
  EXPECT_EQ((converted<int64_t, double>(9.3e18)), INT64_MAX);
  EXPECT_EQ((converted<int32_t, float>(std::nanf(""))), 0);
  EXPECT_EQ((converted<int32_t, float>(-2.9f)), -2);
  EXPECT_EQ((converted<bool, float>(0.25f)), true);
  EXPECT_EQ((converted<uint8_t, int32_t>(257)), 1);
  // 2^60 + 2^52 is halfway between two numbers of bf16; one more is above it.
  EXPECT_EQ((converted<bfloat16, int64_t>((INT64_C(1) << 60) + (INT64_C(1) << 52)).bits), bfloat16(0x1p60f).bits);
  EXPECT_EQ((converted<bfloat16, int64_t>((INT64_C(1) << 60) + (INT64_C(1) << 52) + 1).bits),
            bfloat16(0x1.02p60f).bits);
}

TEST(KernelRows, ShiftsByTheWidthOrMore) {
  const auto left = [](auto x, auto y) { return +detail::shifted(COLLET_OP_SHIFT_LEFT, x, y); };
  const auto logical = [](auto x, auto y) { return +detail::shifted(COLLET_OP_SHIFT_RIGHT_LOGICAL, x, y); };
  const auto arithmetic = [](auto x, auto y) { return +detail::shifted(COLLET_OP_SHIFT_RIGHT_ARITHMETIC, x, y); };
  EXPECT_EQ(left(int8_t{1}, int8_t{7}), -128);
  EXPECT_EQ(left(int8_t{1}, int8_t{8}), 0);
  EXPECT_EQ(left(int8_t{1}, int8_t{-1}), 0) << "the count is unsigned";
  EXPECT_EQ(left(uint64_t{3}, uint64_t{63}), UINT64_C(1) << 63);
  EXPECT_EQ(left(uint64_t{3}, uint64_t{64}), 0u);
  EXPECT_EQ(left(int32_t{-1}, INT32_MIN), 0);
  EXPECT_EQ(logical(int8_t{-1}, int8_t{1}), 127);
  EXPECT_EQ(logical(int8_t{-1}, int8_t{8}), 0);
  EXPECT_EQ(arithmetic(int8_t{-128}, int8_t{7}), -1);
  EXPECT_EQ(arithmetic(int8_t{-128}, int8_t{-1}), -1);
  EXPECT_EQ(arithmetic(int8_t{64}, int8_t{9}), 0);
  EXPECT_EQ(arithmetic(uint8_t{128}, uint8_t{7}), 255) << "the highest bit is taken for a sign";
  EXPECT_EQ(arithmetic(INT64_MIN, int64_t{63}), -1);
}

TEST(KernelRows, CountsBits) {
  EXPECT_EQ(detail::popcount(int8_t{-1}), 8);
  EXPECT_EQ(detail::popcount(uint64_t{5}), 2u);
  EXPECT_EQ(detail::leading_zeros(int8_t{-1}), 0);
  EXPECT_EQ(detail::leading_zeros(int16_t{0}), 16);
  EXPECT_EQ(detail::leading_zeros(uint32_t{5}), 29u);
}

}  // namespace
}  // namespace collet::kernel
