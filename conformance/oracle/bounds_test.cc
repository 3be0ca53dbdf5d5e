// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/oracle/pattern.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Shape;
using hlo::Type;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Literal floats(std::initializer_list<double> values, Type type = Type::F32) {
  Literal literal = Literal::zeros(Shape::array(type, {static_cast<int64_t>(values.size())}));
  int64_t i = 0;
  for (const double value : values) literal.set_double(i++, value);
  return literal;
}

Comparison compared(const Literal& expected, const Literal& got, const Bound& bound = {}, bool flushes = false) {
  return compare({expected, {}, {}}, got, bound, flushes);
}

TEST(Ulp, SizesFollowTheBinade) {
  EXPECT_EQ(ulp_at(Type::F32, 1.0), std::ldexp(1.0, -23));
  EXPECT_EQ(ulp_at(Type::F32, 1.99), std::ldexp(1.0, -23));
  EXPECT_EQ(ulp_at(Type::F32, -8.0), std::ldexp(1.0, -20));
  EXPECT_EQ(ulp_at(Type::F32, 0.0), std::ldexp(1.0, -149));
  EXPECT_EQ(ulp_at(Type::F32, 1e-42), std::ldexp(1.0, -149));
  EXPECT_EQ(ulp_at(Type::BF16, 1.0), std::ldexp(1.0, -7));
  EXPECT_EQ(ulp_at(Type::F16, 1.0), std::ldexp(1.0, -10));
  EXPECT_EQ(ulp_at(Type::F64, 1.0), std::ldexp(1.0, -52));
  EXPECT_EQ(ulp_at(Type::F8E4M3FN, 1.0), 0.125);
}

TEST(Ulp, LargestFiniteValues) {
  EXPECT_EQ(largest_finite(Type::F32), std::numeric_limits<float>::max());
  EXPECT_EQ(largest_finite(Type::F64), std::numeric_limits<double>::max());
  EXPECT_EQ(largest_finite(Type::F16), 65504);
  EXPECT_EQ(largest_finite(Type::F8E4M3FN), 448);
  EXPECT_EQ(largest_finite(Type::F8E5M2), 57344);
}

TEST(Compare, ExactKnowsZerosAndNaN) {
  EXPECT_TRUE(compared(floats({1, 0, kNaN, kInfinity}), floats({1, 0, -kNaN, kInfinity})).agrees);
  EXPECT_FALSE(compared(floats({0.0}), floats({-0.0})).agrees);
  EXPECT_FALSE(compared(floats({kNaN}), floats({1})).agrees);
  EXPECT_FALSE(compared(floats({1}), floats({kNaN})).agrees);
  EXPECT_FALSE(compared(floats({kInfinity}), floats({-kInfinity})).agrees);
  EXPECT_FALSE(compared(floats({1}), floats({std::nextafterf(1, 2)})).agrees);
}

TEST(Compare, UlpCountsInTheResultsType) {
  const Bound three{.kind = Bound::Kind::Ulp, .ulps = 3};
  const double ulp = std::ldexp(1.0, -23);
  EXPECT_TRUE(compared(floats({1}), floats({1 + 3 * ulp}), three).agrees);
  const Comparison four = compared(floats({1, 1}), floats({1, 1 + 4 * ulp}), three);
  EXPECT_FALSE(four.agrees);
  EXPECT_EQ(four.first, 1);
  EXPECT_EQ(four.worst_ulp, 4);
}

TEST(Compare, OverflowByOneUlpIsNotWrong) {
  const Bound one{.kind = Bound::Kind::Ulp, .ulps = 1};
  const double largest = largest_finite(Type::F32);
  EXPECT_TRUE(compared(floats({kInfinity}), floats({largest}), one).agrees);
  EXPECT_TRUE(compared(floats({largest}), floats({kInfinity}), one).agrees);
  EXPECT_FALSE(compared(floats({kInfinity}), floats({1e30}), one).agrees);
  EXPECT_FALSE(compared(floats({kInfinity}), floats({largest})).agrees);
}

TEST(Compare, DenormalsMayBeFlushedWhereTheDeviceSaysSo) {
  EXPECT_FALSE(compared(floats({1e-42}), floats({0})).agrees);
  EXPECT_TRUE(compared(floats({1e-42}), floats({0}), {}, true).agrees);
  EXPECT_FALSE(compared(floats({1e-20}), floats({0}), {}, true).agrees);
  // Tiny before it is rounded, and not after.
  const double least = 0x1p-126;
  Reference reference{floats({least}), {}, {}};
  EXPECT_FALSE(compare(reference, floats({0}), {}, true).agrees);
  reference.zero_too = Literal::zeros(Shape::array(Type::PRED, {1}));
  reference.zero_too.set_int(0, 1);
  EXPECT_TRUE(compare(reference, floats({0}), {}, true).agrees);
  EXPECT_FALSE(compare(reference, floats({0}), {}, false).agrees);
}

TEST(Compare, SumsAreJudgedByTheirMagnitude) {
  Reference reference{floats({0}), floats({0}, Type::F64), floats({2}, Type::F64)};
  const Bound bound{.kind = Bound::Kind::Sum, .terms = 100};
  // gamma(101) * 2 is about 1.2e-5.
  EXPECT_TRUE(compare(reference, floats({1e-5}), bound, false).agrees);
  EXPECT_FALSE(compare(reference, floats({2e-5}), bound, false).agrees);
}

TEST(Compare, ZerosKeepTheirSignWithinUlp) {
  const Bound three{.kind = Bound::Kind::Ulp, .ulps = 3};
  EXPECT_FALSE(compared(floats({0.0}), floats({-0.0}), three).agrees);
  EXPECT_FALSE(compared(floats({-0.0}), floats({0.0}), three).agrees);
  EXPECT_TRUE(compared(floats({0.0}), floats({1e-45}), three).agrees);
}

TEST(Compare, PredIsAByteOfZeroOrOne) {
  Literal yes = Literal::scalar(Type::PRED, 1), other = Literal::scalar(Type::PRED, 1);
  other.mutable_bytes()[0] = 0xff;
  EXPECT_TRUE(compared(yes, yes).agrees);
  EXPECT_FALSE(compared(yes, other).agrees);
}

TEST(Compare, ShapesMustAgree) {
  EXPECT_FALSE(compared(floats({1}), floats({1, 1})).agrees);
  EXPECT_FALSE(compared(floats({1}), floats({1}, Type::F64)).agrees);
}

TEST(Compare, BitsTellNaNsApart) {
  Literal a = floats({kNaN}), b = floats({kNaN});
  b.mutable_bytes()[0] ^= 1;
  EXPECT_TRUE(compared(a, b).agrees);
  EXPECT_FALSE(compared(a, b, {.kind = Bound::Kind::Bits}).agrees);
}

TEST(Pattern, NamesWhatIndicesHaveInCommon) {
  const auto said = [](std::initializer_list<int64_t> dims, std::vector<int64_t> bad) {
    return describe_pattern(Shape::array(Type::F32, dims), bad);
  };
  EXPECT_EQ(said({3}, {0, 1, 2}), "all elements");
  EXPECT_EQ(said({17}, {16}), "one element of 17");
  EXPECT_EQ(said({17}, {15, 16}), "the last 2 of 17");
  EXPECT_EQ(said({17}, {0, 1}), "the first 2 of 17");
  EXPECT_EQ(said({64}, {0, 16, 32, 48}), "every 16th from 0, 4 of 64");
  EXPECT_EQ(said({3, 4}, {2, 6, 10}), "3 of 12, all at one index (2) of dimension 1");
  EXPECT_EQ(said({3, 4}, {3, 7, 11}), "3 of 12, all at the last index (3) of dimension 1");
  EXPECT_EQ(said({64}, {1, 2, 40}), "3 of 64, scattered");
}

}  // namespace
}  // namespace collet::conformance
