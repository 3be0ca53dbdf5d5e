// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/utf8.h"

#include <gtest/gtest.h>

namespace collet {
namespace {

TEST(Utf8, PrefixesHaveWholeCharacters) {
  const std::string_view text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";  // characters of 1, 2, 3 and 4 bytes
  constexpr size_t kWhole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t most = 0; most < std::size(kWhole); ++most)
    EXPECT_EQ(utf8_prefix(text, most).size(), kWhole[most]) << most;
  EXPECT_EQ(utf8_prefix("", 3), "");
}

TEST(Utf8, LengthsAreThoseOfCharacters) {
  EXPECT_EQ(utf8_length("a", 0), 1u);
  EXPECT_EQ(utf8_length("x\xE2\x82\xAC", 1), 3u);
  EXPECT_EQ(utf8_length("\xF0\x9F\x98\x80", 0), 4u);
  for (const std::string_view wrong : {"\x80", "\xC3", "\xE2\x82", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80"})
    EXPECT_EQ(utf8_length(wrong, 0), 0u) << testing::PrintToString(wrong);
}

}  // namespace
}  // namespace collet
