// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/functions.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace collet::conformance {
namespace {

using hlo::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ExactResult of(Op op, double a, double b = 0) {
  std::array<ExactResult, 1> out;
  exact_functions(op, std::array{a}, std::array{b}, out);
  return out[0];
}

// e to 40 digits is 2.718281828459045235360287471352662497757.
TEST(Functions, RestsCompleteTheValue) {
  const ExactResult e = of(Op::EXPONENTIAL, 1);
  EXPECT_EQ(e.value, 2.718281828459045);
  EXPECT_NEAR(e.rest, 1.4456468917292502e-16, 1e-31);
  EXPECT_EQ(of(Op::SQRT, 4).rest, 0);
  const ExactResult third = of(Op::DIVIDE, 1, 3);
  EXPECT_NEAR(third.rest, 1.850371707708594e-17, 1e-32);
}

TEST(Functions, SpecialValues) {
  EXPECT_EQ(of(Op::RSQRT, -0.0).value, -kInfinity);
  EXPECT_EQ(of(Op::RSQRT, 0.0).value, kInfinity);
  EXPECT_TRUE(std::isnan(of(Op::LOG, -1).value));
  EXPECT_EQ(of(Op::LOG, 0).value, -kInfinity);
  EXPECT_TRUE(std::signbit(of(Op::TANH, -0.0).value));
  EXPECT_EQ(of(Op::POWER, std::nan(""), 0).value, 1);
  EXPECT_EQ(of(Op::POWER, 1, std::nan("")).value, 1);
  EXPECT_EQ(of(Op::LOGISTIC, -kInfinity).value, 0);
  EXPECT_EQ(of(Op::LOGISTIC, kInfinity).value, 1);
  EXPECT_EQ(of(Op::EXPONENTIAL, -746).value, 0);
}

// A result just above a tie of f32 is a tie in f64: rounding that again would go down.
TEST(Functions, RoundingToOddKeepsTies) {
  const ExactResult above{1 + 0x1p-24, 0x1p-80};
  EXPECT_EQ(static_cast<float>(above.value), 1.0F);
  EXPECT_EQ(static_cast<float>(above.rounded_to_odd()), 1.0F + 0x1p-23F);
  const ExactResult below{1 + 0x3p-24, -0x1p-80};
  EXPECT_EQ(static_cast<float>(below.value), 1.0F + 0x2p-23F);
  EXPECT_EQ(static_cast<float>(below.rounded_to_odd()), 1.0F + 0x1p-23F);
}

}  // namespace
}  // namespace collet::conformance
