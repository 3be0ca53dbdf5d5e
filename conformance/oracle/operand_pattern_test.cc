// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/operand_pattern.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Shape;
using hlo::Type;

Literal floats(const std::vector<double>& values) {
  Literal out = Literal::zeros(Shape::array(Type::F32, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) out.set_double(static_cast<int64_t>(i), values[i]);
  return out;
}
Literal integers(const std::vector<int64_t>& values) {
  Literal out = Literal::zeros(Shape::array(Type::S32, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) out.set_int(static_cast<int64_t>(i), values[i]);
  return out;
}
std::string described(const std::vector<Literal>& operands, const std::vector<int64_t>& bad) {
  return describe_operands(operands, bad);
}

TEST(OperandPattern, NamesSpecialValues) {
  EXPECT_EQ(described({floats({1, NAN, 2, NAN, 3})}, {1, 3}), "p0 is NaN");
  EXPECT_EQ(described({floats({1, -0.0, 0, 5, -3})}, {1}), "p0 is -0");
  EXPECT_EQ(described({floats({0.5, 1, 2, 2.5, 3.25, 7})}, {0, 3}), "p0 lies halfway between whole numbers");
  EXPECT_EQ(described({integers({1, 2, 3, 4}), integers({31, 32, 0, -1})}, {1, 3}), "p1 is negative or at least 32");
}

TEST(OperandPattern, NamesRangesAndTwoProperties) {
  EXPECT_EQ(described({floats({1, 2, -90, 3, 100, 4, 5, 6, 7})}, {2, 4}), "|p0| is at least 90");
  EXPECT_EQ(described({integers({-5, 5, -7, 7, -1, 3}), integers({2, 2, 3, 0, 0, 0})}, {4}), "p0 is -1");
  EXPECT_EQ(described({floats({-1, -1, 1, 1, -2, 2}), floats({0, 1, 0, 1, 0, 0})}, {0, 4}),
            "p0 is negative and p1 is zero");
}

TEST(OperandPattern, NamesWhatAnyOperandHas) {
  EXPECT_EQ(described({floats({1, NAN, 2, 4, 3}), floats({1, 5, 2, NAN, 3})}, {1, 3}), "an operand is NaN");
}

TEST(OperandPattern, SaysNothingWithoutGrounds) {
  EXPECT_EQ(described({floats({1, 2, 3, 4})}, {0, 1, 2, 3}), "");  // all elements are wrong
  // No property distinguishes the wrong elements.
  EXPECT_EQ(described({floats({1, 2, 1, 2, 1, 2}), floats({3, 3, 3, 3, 3, 3})}, {0, 1}), "");
  // Of two elements one is larger, whatever is wrong.
  EXPECT_EQ(described({integers({3, 1}), integers({3, 2})}, {0}), "");
  EXPECT_EQ(described({floats({1, 2}), floats({3})}, {0}), "");  // an operand has fewer elements than the result
}

}  // namespace
}  // namespace collet::conformance
