// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/decimal.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <string>

namespace collet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Decimal, ReadsTheNearestNumber) {
  EXPECT_EQ(decimal_value("0.5"), 0.5);
  EXPECT_EQ(decimal_value("+1.25e2"), 125);
  EXPECT_EQ(decimal_value("-7"), -7);
  EXPECT_EQ(decimal_value("4.9e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(*decimal_value("-0.0")));
}

TEST(Decimal, NumbersOutOfRangeAreInfiniteOrZero) {
  const std::string zeros(400, '0');
  EXPECT_EQ(decimal_value("1e400"), kInfinity);
  EXPECT_EQ(decimal_value("-1e+400"), -kInfinity);
  EXPECT_EQ(decimal_value("1" + zeros), kInfinity);
  EXPECT_EQ(decimal_value("0." + zeros + "1e900"), kInfinity);
  EXPECT_EQ(decimal_value("1e-400"), 0);
  EXPECT_EQ(decimal_value("0." + zeros + "1"), 0);
  EXPECT_EQ(decimal_value("1" + zeros + "e-900"), 0);
  EXPECT_TRUE(std::signbit(*decimal_value("-1e-400")));
}

TEST(Decimal, OtherTextsAreNone) {
  for (const char* text : {"", "x", "1x", "0,5", "1.5 ", "0x10", "--1", "+-1", "1e"})
    EXPECT_FALSE(decimal_value(text)) << text;
}

TEST(Decimal, WritesDigits) {
  EXPECT_EQ(decimal_text(0.1, 17), "0.10000000000000001");
  EXPECT_EQ(decimal_text(1e100, 6), "1e+100");
  EXPECT_EQ(decimal_text(2, 6), "2");
}

// Where such a locale is installed, its decimal point is a comma.
TEST(Decimal, DoesNotDependOnTheLocale) {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (!std::setlocale(LC_ALL, name)) continue;
    EXPECT_EQ(decimal_value("0.5"), 0.5);
    EXPECT_EQ(decimal_text(0.5, 17), "0.5");
  }
  std::setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace collet
