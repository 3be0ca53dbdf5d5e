// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/complex_functions.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <random>

#include "conformance/oracle/ball.h"

namespace collet::conformance {
namespace {

using hlo::Op;
using Complex = std::complex<double>;
using Wide = std::complex<long double>;

ExactComplex of(Op op, Complex a, Complex b = 1) {
  std::array<ExactComplex, 1> out;
  exact_complex_functions(op, std::array{a}, std::array{b}, out);
  return out[0];
}
Complex value(const ExactComplex& result) {
  return {result.real.value, result.imaginary.value};
}

TEST(Ball, KnowsWhatASumLoses) {
  const Ball one(1, 64), tiny(0x1p-70, 64);
  const Ball lost = one + tiny - one;
  EXPECT_FALSE(lost.is_known_to(10));
  const Ball wide = Ball(1, 128) + Ball(0x1p-70, 128) - Ball(1, 128);
  EXPECT_TRUE(wide.is_known_to(53));
  EXPECT_EQ(wide.result().value, 0x1p-70);
  EXPECT_FALSE((one / lost).is_known_to(1));
  EXPECT_FALSE(log(lost).is_known_to(1));
  EXPECT_FALSE(atan2(lost, -one).is_known_to(1));
  EXPECT_TRUE(atan2(lost, one).is_finite());
}

// Tests operands for which formulas in f64 lose all digits: expm1 near zeros of its real part, log near the unit
// circle, logistic near its poles, and products that cancel.
TEST(ComplexFunctions, CancellationCostsNothing) {
  const ExactComplex log = of(Op::LOG, {0.6, 0.8});
  // The f64 nearest to 0.6 and 0.8 have a squared modulus of 1 + 2^-55.2.
  const long double beyond = (0.6 - 0.6L) * 1.2L + (0.8 - 0.8L) * 1.6L;
  EXPECT_NEAR(log.real.value / static_cast<double>(beyond / 2), 1, 1e-3);
  const double y = 0x1p-30;
  const ExactComplex expm1 = of(Op::EXPONENTIAL_MINUS_ONE, {y * y / 2, y});
  // e^x cos y - 1 = x - y^2 / 2 + x^2 / 2 - x y^2 / 2 + y^4 / 24 + ... with x = y^2 / 2.
  EXPECT_NEAR(expm1.real.value / (y * y * y * y * (1.0 / 8 - 1.0 / 4 + 1.0 / 24)), 1, 1e-9);
  const ExactComplex logistic = of(Op::LOGISTIC, {0x1p-60, 3.141592653589793});
  EXPECT_TRUE(logistic.is_known);
  EXPECT_GT(std::abs(value(logistic)), 0x1p52);
  const ExactComplex product = of(Op::MULTIPLY, {1 + 0x1p-40, 1}, {1 - 0x1p-40, 1});
  EXPECT_EQ(product.real.value, -0x1p-80);
  EXPECT_EQ(product.real.rest, 0);
}

// Tests that inverse functions reverse the others, and that all agree with the C++ library within its accuracy.
TEST(ComplexFunctions, AgreeWithTheLibrary) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> draw(-2, 2);
  struct Row {
    Op op;
    Wide (*function)(Wide);
  };
  const Row rows[] = {
      {Op::ACOS, [](Wide z) { return std::acos(z); }},
      {Op::ACOSH, [](Wide z) { return std::acosh(z); }},
      {Op::ASIN, [](Wide z) { return std::asin(z); }},
      {Op::ASINH, [](Wide z) { return std::asinh(z); }},
      {Op::ATANH, [](Wide z) { return std::atanh(z); }},
      {Op::COSINE, [](Wide z) { return std::cos(z); }},
      {Op::COSH, [](Wide z) { return std::cosh(z); }},
      {Op::EXPONENTIAL, [](Wide z) { return std::exp(z); }},
      {Op::EXPONENTIAL_MINUS_ONE, [](Wide z) { return std::exp(z) - 1.0L; }},
      {Op::LOG, [](Wide z) { return std::log(z); }},
      {Op::LOG_PLUS_ONE, [](Wide z) { return std::log(1.0L + z); }},
      {Op::LOGISTIC, [](Wide z) { return 1.0L / (1.0L + std::exp(-z)); }},
      {Op::RSQRT, [](Wide z) { return 1.0L / std::sqrt(z); }},
      {Op::SIGN, [](Wide z) { return z / std::abs(z); }},
      {Op::SINE, [](Wide z) { return std::sin(z); }},
      {Op::SINH, [](Wide z) { return std::sinh(z); }},
      {Op::SQRT, [](Wide z) { return std::sqrt(z); }},
      {Op::TAN, [](Wide z) { return std::tan(z); }},
      {Op::TANH, [](Wide z) { return std::tanh(z); }},
  };
  for (const Row& row : rows) {
    ASSERT_TRUE(has_exact_complex_function(row.op)) << hlo::op_info(row.op).text;
    for (int i = 0; i < 200; ++i) {
      const Complex z(draw(random), draw(random));
      const ExactComplex result = of(row.op, z);
      ASSERT_TRUE(result.is_known) << hlo::op_info(row.op).text << z;
      const Wide expected = row.function(Wide(z.real(), z.imag()));
      EXPECT_LT(std::abs(Wide(value(result).real(), value(result).imag()) - expected),
                1e-15L * (1 + std::abs(expected)))
          << hlo::op_info(row.op).text << z << value(result);
      EXPECT_LE(std::fabs(result.real.rest), std::fabs(result.real.value) * 0x1p-53);
    }
  }
  EXPECT_FALSE(has_exact_complex_function(Op::CEIL));
}

TEST(ComplexFunctions, OfTwoOperands) {
  const Complex a(1.25, -0.5), b(0.75, 2);
  EXPECT_EQ(value(of(Op::SUBTRACT, a, b)), a - b);
  EXPECT_LT(std::abs(value(of(Op::DIVIDE, a, b)) - a / b), 1e-15);
  EXPECT_LT(std::abs(value(of(Op::POWER, a, b)) - std::pow(a, b)), 1e-14);
  EXPECT_EQ(of(Op::ABS, {3, -4}).real.value, 5);
}

// Compares slopes with finite differences of the result.
TEST(ComplexFunctions, SlopesAreThoseOfDifferences) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> draw(0.25, 2);
  for (const Op op : {Op::ACOS,     Op::ACOSH,        Op::ASIN,
                      Op::ASINH,    Op::ATANH,        Op::COSINE,
                      Op::COSH,     Op::EXPONENTIAL,  Op::EXPONENTIAL_MINUS_ONE,
                      Op::LOG,      Op::LOG_PLUS_ONE, Op::LOGISTIC,
                      Op::RSQRT,    Op::SINE,         Op::SINH,
                      Op::SQRT,     Op::TAN,          Op::TANH,
                      Op::MULTIPLY, Op::DIVIDE,       Op::POWER}) {
    const Complex a(draw(random), draw(random)), b(draw(random), draw(random));
    const ExactComplex result = of(op, a, b);
    double re = 0, im = 0;
    constexpr double kStep = 0x1p-26;
    const auto move = [&](Complex by, Complex second, double size) {
      const Complex moved = value(of(op, a + by * kStep, b + second * kStep)) - value(result);
      re += std::fabs(moved.real()) / kStep * size;
      im += std::fabs(moved.imag()) / kStep * size;
    };
    move({1, 0}, {}, a.real());
    move({0, 1}, {}, a.imag());
    move({}, {1, 0}, b.real());
    move({}, {0, 1}, b.imag());
    EXPECT_NEAR(result.real_slope, re, 1e-5 * (1 + re)) << hlo::op_info(op).text;
    EXPECT_NEAR(result.imaginary_slope, im, 1e-5 * (1 + im)) << hlo::op_info(op).text;
  }
}

TEST(ComplexFunctions, SayWhatTheyDoNotKnow) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(of(Op::EXPONENTIAL, {infinity, 1}).is_known);
  EXPECT_FALSE(of(Op::EXPONENTIAL, {800, 1}).is_known);
  EXPECT_FALSE(of(Op::LOG, 0).is_known);
  EXPECT_FALSE(of(Op::DIVIDE, 1, 0).is_known);
  EXPECT_FALSE(of(Op::POWER, 0, {0, 1}).is_known);
  EXPECT_FALSE(of(Op::ASIN, {2, 0.0}).is_known);
  // The sign of zero selects the side of the branch cut of log and sqrt.
  EXPECT_GT(of(Op::LOG, {-1, 0.0}).imaginary.value, 3);
  EXPECT_LT(of(Op::LOG, {-1, -0.0}).imaginary.value, -3);
  EXPECT_EQ(value(of(Op::SQRT, {-4, -0.0})), Complex(0, -2));
  EXPECT_EQ(value(of(Op::SQRT, {4, 0.0})), Complex(2, 0));
}

}  // namespace
}  // namespace collet::conformance
