// SPDX-License-Identifier: Apache-2.0
// Tests ranges and quantizations against values that were computed by hand.
#include "hlo/quantize/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace collet::hlo {
namespace {

Literal array(const std::vector<double>& values) {
  Literal out = Literal::zeros(Shape::array(Type::F32, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) out.set_double(static_cast<int64_t>(i), values[i]);
  return out;
}

Observer observed(const std::vector<double>& values) {
  Observer out;
  EXPECT_TRUE(out.see_range(array(values)).ok());
  out.see_values(array(values));
  return out;
}

TEST(Uniform, AsymmetricRange_HasBothEndsAndZero) {
  const Uniform u = uniform_of_range(-1, 1.55, false);
  EXPECT_FLOAT_EQ(static_cast<float>(u.scale), 0.01F);
  EXPECT_EQ(u.zero_point, -28);
  EXPECT_EQ(u.stored(0), -28);
  EXPECT_EQ(u.stored(-1), -128);
  EXPECT_EQ(u.stored(1.55), 127);
  EXPECT_EQ(u.stored(100), 127);
  EXPECT_EQ(u.stored(-100), -128);
}

TEST(Uniform, RangeOfOneSign_UsesAllSteps) {
  EXPECT_EQ(uniform_of_range(0, 25.5, false).zero_point, -128);
  EXPECT_EQ(uniform_of_range(-25.5, 0, false).zero_point, 127);
  EXPECT_FLOAT_EQ(static_cast<float>(uniform_of_range(0, 25.5, false).scale), 0.1F);
}

TEST(Uniform, SymmetricRange_HasNoZeroPoint) {
  const Uniform u = uniform_of_range(-3, 12.7, true);
  EXPECT_FLOAT_EQ(static_cast<float>(u.scale), 0.1F);
  EXPECT_EQ(u.zero_point, 0);
  EXPECT_EQ(u.stored(-12.7), -127);
}

TEST(Uniform, Ties_GoToTheEvenInteger) {
  const Uniform u{2, 1, -128, 127};
  EXPECT_EQ(u.stored(3), 2);   // 1.5 + 1
  EXPECT_EQ(u.stored(5), 4);   // 2.5 + 1
  EXPECT_EQ(u.stored(-1), 0);  // -0.5 + 1
}

TEST(Uniform, RangeOfNothing_HasAScale) {
  EXPECT_EQ(uniform_of_range(0, 0, false).scale, 1);
  EXPECT_EQ(uniform_of_range(0, 1e-44, true).scale, 1);
  EXPECT_EQ(symmetric_scale(0, 8), 1);
  EXPECT_EQ(symmetric_scale(14, 4), 2);
}

TEST(Observer, CountsMagnitudesInBins) {
  const Observer observer = observed({0, -2048, 1, 1, 3.5, 0.25});
  EXPECT_EQ(observer.least(), -2048);
  EXPECT_EQ(observer.most(), 3.5);
  const Histogram& histogram = observer.histogram();
  EXPECT_EQ(histogram.width, 1);
  EXPECT_EQ(histogram.zeros, 1u);
  EXPECT_EQ(histogram.bins[0], 3u);
  EXPECT_EQ(histogram.bins[3], 1u);
  EXPECT_EQ(histogram.bins[2047], 1u);
  EXPECT_EQ(histogram.count(), 6u);
  EXPECT_DOUBLE_EQ(histogram.share_above(4), 1.0 / 6);
}

TEST(Observer, RefusesWhatIsNoNumber) {
  Observer observer;
  EXPECT_EQ(observer.see_range(array({1, std::nan("")})).message(), "element 1 of f32[2] is NaN");
  EXPECT_EQ(observer.see_range(array({std::numeric_limits<double>::infinity()})).message(),
            "element 0 of f32[1] is infinite");
}

TEST(Threshold, Percentile_IsTheEndOfABin) {
  Histogram histogram{1, 0, std::vector<uint64_t>(10, 10)};
  EXPECT_EQ(percentile_threshold(histogram, 100), 10);
  EXPECT_EQ(percentile_threshold(histogram, 90), 9);
  EXPECT_EQ(percentile_threshold(histogram, 85), 9);
  EXPECT_EQ(percentile_threshold(histogram, 0.1), 1);
  histogram.zeros = 100;  // 90 % of 200: 100 zeros and 80 others
  EXPECT_EQ(percentile_threshold(histogram, 90), 8);
  EXPECT_EQ(percentile_threshold(histogram, 1), 1);  // zeros are inside of every range
  EXPECT_EQ(percentile_threshold({1, 7, std::vector<uint64_t>(10, 0)}, 99), 0);
}

// With two steps and the first two bins, P = {100, 61} / 161 and Q = {100, 60} / 160: the divergence is 3.2e-5. Three bins
// end with an empty one that has what is outside, where it is infinite. With all four, Q = {80, 80, 0, 1} / 161: 0.031.
TEST(Threshold, Entropy_ClipsAnOutlier) {
  EXPECT_EQ(entropy_threshold({1, 0, {100, 60, 0, 1}}, 2), 2);
}

// One of two magnitudes alone agrees with itself, but is not what the values are.
TEST(Threshold, Entropy_DoesNotClipMostValues) {
  std::vector<uint64_t> bins(64, 0);
  bins[7] = 50;
  bins[60] = 50;
  EXPECT_EQ(entropy_threshold({1, 0, bins}, 4), 64);
}

// Here {8, 8} of each step is what Q has, so that nothing diverges where nothing is clipped.
TEST(Threshold, Entropy_KeepsAnEvenDistribution) {
  EXPECT_EQ(entropy_threshold({0.5, 3, {8, 8, 8, 8}}, 2), 2);
  EXPECT_EQ(entropy_threshold({0.5, 3, {0, 0, 0, 0}}, 2), 0);
}

// Two steps. At 1: 100 * 0.5^2 / 12 + 100 * 0.5^2 + 100 * 1.5^2 + 2.5^2 = 258.3; at 2: 200 / 12 + 100 * 0.5^2 + 1.5^2 = 43.9;
// at 3: 300 * 1.5^2 / 12 + 0.5^2 = 56.5; at 4: 301 * 2^2 / 12 = 100.3.
TEST(Threshold, Mse_WeighsClippingAgainstRounding) {
  EXPECT_EQ(mse_threshold({1, 0, {100, 100, 100, 1}}, 2), 2);
  EXPECT_EQ(mse_threshold({1, 5, {0, 0}}, 2), 0);
}

TEST(ChooseRange, MinMax_HasZero) {
  const ClippedRange range = choose_range(observed({2, 5, 3}), CalibrationMethod::MinMax, 0, false);
  EXPECT_EQ(range.low, 0);
  EXPECT_EQ(range.high, 5);
  EXPECT_EQ(range.clipped, 0);
}

TEST(ChooseRange, Percentile_ClipsTheSideThatIsLong) {
  std::vector<double> values(99, 1);
  values.push_back(2048);
  values[0] = -0.5;
  const ClippedRange range = choose_range(observed(values), CalibrationMethod::Percentile, 99, false);
  EXPECT_EQ(range.low, -0.5);
  EXPECT_EQ(range.high, 1);
  EXPECT_DOUBLE_EQ(range.clipped, 0.01);
}

TEST(ChooseRange, NothingSeen_IsARangeOfZero) {
  for (const CalibrationMethod method :
       {CalibrationMethod::MinMax, CalibrationMethod::Percentile, CalibrationMethod::Entropy, CalibrationMethod::Mse}) {
    const ClippedRange range = choose_range(observed({0, 0}), method, 99, true);
    EXPECT_EQ(range.low, 0);
    EXPECT_EQ(range.high, 0);
  }
}

}  // namespace
}  // namespace collet::hlo
