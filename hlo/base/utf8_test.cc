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

// Nothing that controls a terminal is left, and other text is not changed.
TEST(Utf8, PrintableTextControlsNothing) {
  EXPECT_EQ(printable("plain \xC3\xA4\xE2\x82\xAC\xF0\x9F\x99\x82 \\ text"),
            "plain \xC3\xA4\xE2\x82\xAC\xF0\x9F\x99\x82 \\ text");
  EXPECT_EQ(printable("\033[31mred\007"), "\\x1b[31mred\\x07");
  EXPECT_EQ(printable(std::string_view("a\0b\x7F\r", 5)), "a\\x00b\\x7f\\x0d");
  EXPECT_EQ(printable("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(printable("a\nb\tc", Lines::One), "a\\nb\\tc");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\u009b31m");  // C1 as UTF-8
  EXPECT_EQ(printable("\x9B"
                      "31m\xFF"),
            "\\x9b31m\\xff");                                          // C1 as a byte
  EXPECT_EQ(printable("\xE2\x80\xAE\xE2\x80\xA8"), "\\u202e\\u2028");  // from right to left; a line separator
  EXPECT_EQ(quoted("\033]0;x\n"), "'\\x1b]0;x\\n'");
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string once = printable(all, Lines::One);
  EXPECT_EQ(printable(once, Lines::One), once);
  for (const char c : once) EXPECT_TRUE(c >= 0x20 && c < 0x7F) << int{c};
}

TEST(Utf8, PlainNamesHaveLowerCaseLettersDigitsAndThreeSigns) {
  for (const char* name : {"a", "acme", "my-chip_2.1"}) EXPECT_TRUE(is_plain_name(name)) << name;
  for (const char* name : {"", "Acme", "acMe", "2chip", "-a", "_a", ".a", "a/b", "a b", "a\033[31m", "\xC3\xA9"})
    EXPECT_FALSE(is_plain_name(name)) << name;
  EXPECT_TRUE(is_plain_name(std::string(64, 'a')));
  EXPECT_FALSE(is_plain_name(std::string(65, 'a')));
  EXPECT_FALSE(is_plain_name(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace collet
