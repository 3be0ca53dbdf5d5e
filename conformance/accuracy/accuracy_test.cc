// SPDX-License-Identifier: Apache-2.0
#include "conformance/accuracy/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/accuracy/reference.h"
#include "conformance/accuracy/ruler.h"
#include "conformance/oracle/bounds.h"
#include "conformance/oracle/functions.h"

namespace collet::conformance {
namespace {

using hlo::Op;
using hlo::Type;

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Ruler, MeasuresInUnitsOfTheLastPlace) {
  const Ruler f32(Type::F32), f16(Type::F16), bf16(Type::BF16);
  EXPECT_EQ(f32.error(1, 1), 0);
  EXPECT_EQ(f32.error(1, 1 + 0x1p-23), 1);
  EXPECT_EQ(f32.error(1.75, 1.75 - 0x1p-22), 2);
  EXPECT_EQ(f16.error(1 + 0x1p-11, 1), 0.5);
  EXPECT_EQ(bf16.error(-4, -4 - 0x1p-5), 1);
  // Below the least normal number the ULP does not decrease further.
  EXPECT_EQ(f32.error(0x1p-149, 0), 1);
  EXPECT_EQ(f32.error(0x1p-151, 0), 0.25);
  EXPECT_EQ(f16.error(0x1p-24, 0x1p-23), 1);
  EXPECT_EQ(f32.error(1, 1, 0x1p-24), 0.5) << "the rest counts";
}

TEST(Ruler, AgreesWithTheOraclesUnit) {
  for (const Type type : {Type::F32, Type::F16, Type::BF16}) {
    const Ruler ruler(type);
    for (double x : {1.0, 1.5, 0.1, 3e4, 1e-4, 1e-7, 2e-8})
      EXPECT_DOUBLE_EQ(ruler.error(x, 0), x / ulp_at(type, x)) << hlo::type_info(type).text << " " << x;
  }
}

TEST(Ruler, SpecialValuesAreRightOrWrong) {
  const Ruler f32(Type::F32);
  EXPECT_EQ(f32.error(kNaN, kNaN), 0);
  EXPECT_EQ(f32.error(kInf, kInf), 0);
  EXPECT_EQ(f32.error(-0.0, -0.0), 0);
  EXPECT_EQ(f32.error(kNaN, 1), kInf);
  EXPECT_EQ(f32.error(1, kNaN), kInf);
  EXPECT_EQ(f32.error(kInf, 3e38), kInf);
  EXPECT_EQ(f32.error(kInf, -kInf), kInf);
  EXPECT_EQ(f32.error(0.0, -0.0), kInf);
  EXPECT_EQ(f32.error(-1e-60, 0.0), kInf) << "an underflow keeps its sign";
  EXPECT_EQ(f32.error(1, -kInf), kInf);
}

TEST(Ruler, OverflowIsARounding) {
  const Ruler f32(Type::F32);
  const double most = std::numeric_limits<float>::max();
  EXPECT_EQ(f32.error(most, kInf), 1);
  EXPECT_EQ(f32.error(0x1p128, kInf), 0);
  EXPECT_EQ(f32.error(1e60, kInf), 0);
  EXPECT_EQ(f32.error(1e60, most), 1);
  EXPECT_EQ(f32.error(-1e60, -most), 1);
}

// The C library's result in double is within a few units of the 53rd bit of MPFR's result.
TEST(Reference, IsNearTheExactFunction) {
  for (const Op op : near_functions()) {
    ASSERT_TRUE(has_exact_function(op)) << hlo::op_info(op).text;
    for (double x : {-1e30, -88.0, -1.5, -0.7, -0x1p-30, 0.0, 0x1p-140, 0.3, 1.0, 1.25, 3.0, 25.0, 1e10, 3e38}) {
      ExactResult exact;
      exact_functions(op, {&x, 1}, {}, {&exact, 1});
      const double near = near_function(op)(x);
      if (std::isnan(exact.value)) {
        EXPECT_TRUE(std::isnan(near)) << hlo::op_info(op).text << " of " << x;
      } else {
        const double allowed = std::isfinite(exact.value) ? 0x1p-48 * std::fabs(exact.value) : 0;
        EXPECT_TRUE(near == exact.value || std::fabs(near - exact.value) <= allowed)
            << hlo::op_info(op).text << " of " << x << ": " << near << ", not " << exact.value;
      }
    }
  }
}

// The vectorised reference agrees with the scalar functions to 2^-49 of the result, far below an ulp of f32.
TEST(Reference, IsTheSameInVectors) {
  std::vector<double> x;
  for (double magnitude = 0x1p-149; magnitude < 3e38; magnitude *= 1.37) {
    x.push_back(magnitude);
    x.push_back(-magnitude);
  }
  std::vector<double> near(x.size());
  for (const Op op : near_functions()) {
    near_values(op, x.data(), near.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double one = near_function(op)(x[i]);
      if (!std::isfinite(one)) continue;
      // The second term allows for differences far below the least f32, which do not matter.
      EXPECT_NEAR(near[i], one, 0x1p-49 * std::fabs(one) + 0x1p-300) << hlo::op_info(op).text << " of " << x[i];
    }
  }
}

TEST(Accuracy, EveryHalfOfEachFunctionOnTheInterpreter) {
  AccuracyOptions options{.backend = {.name = "interpreter"},
                          .ops = {Op::TANH, Op::LOG, Op::SQRT},
                          .types = {Type::F16, Type::BF16},
                          .jobs = 2};
  uint64_t seen = 0, total = 0;
  options.progress = [&](uint64_t done, uint64_t all, const std::string&) { seen = done, total = all; };
  const auto rows = measure_accuracy(options);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 6u);
  for (const AccuracyRow& row : *rows) {
    EXPECT_EQ(row.error, "");
    EXPECT_EQ(row.arguments, 65536u);
    EXPECT_EQ(row.wrong, 0u) << hlo::op_info(row.op).text;
    // The interpreter computes in f64 and rounds once, so its largest error is almost half a ULP.
    EXPECT_GT(row.worst, 0.49);
    EXPECT_LT(row.worst, 0.51);
    EXPECT_GT(row.nearest, 65000u);
    EXPECT_TRUE(row.on_device);
  }
  EXPECT_EQ(seen, 6u * 65536u);
  EXPECT_EQ(total, seen);
}

TEST(Accuracy, StepsTakeEachSoManyThPattern) {
  const auto rows = measure_accuracy({.backend = {.name = "interpreter"},
                                      .ops = {Op::EXPONENTIAL},
                                      .types = {Type::F32},
                                      .step = 1000003,
                                      .progress = {}});
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->at(0).arguments, 4295u);
  EXPECT_LE(rows->at(0).worst, 0.51);
}

TEST(Accuracy, WithoutABackend_Fails) {
  EXPECT_FALSE(measure_accuracy({.backend = {.name = "no_such_backend"}, .progress = {}}).ok());
}

}  // namespace
}  // namespace collet::conformance
