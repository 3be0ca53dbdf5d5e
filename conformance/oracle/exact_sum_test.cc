// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/exact_sum.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace collet::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr double kMost = std::numeric_limits<double>::max();

ExactResult sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.result();
}

TEST(ExactSum, LosesNothing) {
  EXPECT_EQ(sum_of({}).value, 0);
  EXPECT_FALSE(std::signbit(sum_of({}).value));
  EXPECT_EQ(sum_of({1e300, 1, -1e300}).value, 1);
  EXPECT_EQ(sum_of({kMost, kMost, -kMost}).value, kMost);
  EXPECT_EQ(sum_of({kMost, kMost}).value, kInfinity);
  EXPECT_EQ(sum_of({kLeast, kMost, -kMost}).value, kLeast);
  EXPECT_EQ(sum_of({-kLeast, 1, -1}).value, -kLeast);
  const ExactResult third = sum_of({1, std::ldexp(1, -60), std::ldexp(-1, -200)});
  EXPECT_EQ(third.value, 1);
  EXPECT_EQ(third.rest, std::ldexp(1, -60));
  EXPECT_TRUE(std::signbit(sum_of({-0.0, -0.0}).value));
  EXPECT_FALSE(std::signbit(sum_of({-0.0, 0.0}).value));
  EXPECT_FALSE(std::signbit(sum_of({1, -1}).value));
}

TEST(ExactSum, RoundsToEven) {
  const double ulp = std::ldexp(1, -52);
  EXPECT_EQ(sum_of({1, ulp / 2}).value, 1);
  EXPECT_EQ(sum_of({1 + ulp, ulp / 2}).value, 1 + 2 * ulp);
  EXPECT_EQ(sum_of({1, ulp / 2, kLeast}).value, 1 + ulp);
  EXPECT_EQ(sum_of({-1, -ulp / 2, -kLeast}).value, -1 - ulp);
  // Products below the least f64.
  ExactSum half;
  half.add_product(kLeast, 0.5);
  EXPECT_EQ(half.result().value, 0);
  half.add_product(kLeast, std::ldexp(1, -500));
  EXPECT_EQ(half.result().value, kLeast);
}

TEST(ExactSum, HasInfinitiesAndNaN) {
  EXPECT_EQ(sum_of({kInfinity, -1}).value, kInfinity);
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, -kInfinity}).value));
  EXPECT_TRUE(std::isnan(sum_of({1, std::nan("")}).value));
  ExactSum product;
  product.add_product(0, kInfinity);
  EXPECT_TRUE(std::isnan(product.result().value));
  ExactSum negative;
  negative.add_product(-2, kInfinity);
  EXPECT_EQ(negative.result().value, -kInfinity);
}

// Compares with MPFR at a precision at which no sum is rounded, over the whole range of exponents.
TEST(ExactSum, IsThatOfMpfr) {
  std::mt19937_64 random(7);
  mpfr_t all, product, rest;
  mpfr_inits2(4400, all, product, rest, static_cast<mpfr_ptr>(nullptr));
  for (int round = 0; round < 400; ++round) {
    ExactSum sum;
    mpfr_set_zero(all, 1);
    const uint64_t spread = round % 3 == 0 ? 0x7FF : 0x3F;
    for (int i = 0; i < 1 + round % 60; ++i) {
      double pair[2];
      for (double& value : pair) {
        const uint64_t bits = random(), exponent = (bits >> 20 & spread) + (spread == 0x7FF ? 0 : 0x3E0);
        value = std::bit_cast<double>((bits & ~(uint64_t{0x7FF} << 52)) | std::min<uint64_t>(exponent, 0x5F0) << 52);
      }
      sum.add_product(pair[0], pair[1]);
      mpfr_set_d(product, pair[0], MPFR_RNDN);
      mpfr_mul_d(product, product, pair[1], MPFR_RNDN);
      mpfr_add(all, all, product, MPFR_RNDN);
    }
    const ExactResult result = sum.result();
    EXPECT_EQ(result.value, mpfr_get_d(all, MPFR_RNDN)) << round;
    mpfr_sub_d(rest, all, result.value, MPFR_RNDN);
    if (!std::isfinite(result.value)) continue;
    EXPECT_EQ(result.rest, mpfr_get_d(rest, MPFR_RNDN)) << round;
  }
  mpfr_clears(all, product, rest, static_cast<mpfr_ptr>(nullptr));
}

}  // namespace
}  // namespace collet::conformance
