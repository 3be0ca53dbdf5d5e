// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/shell.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>

namespace collet {
namespace {

// Returns the word as the shell reads it.
std::string read_by_shell(const std::string& word) {
  const std::string line = "printf %s " + word;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(line.c_str(), "r"), pclose);
  std::array<char, 256> text{};
  const size_t n = std::fread(text.data(), 1, text.size(), pipe.get());
  return {text.data(), n};
}

TEST(ShellWord, PlainWords_StayAsTheyAre) {
  EXPECT_EQ(shell_word("../a-b/c_1.so"), "../a-b/c_1.so");
}

TEST(ShellWord, OtherWords_AreReadBackByAShell) {
  for (const std::string word : {"a b", "it's", "''", "$HOME", "`id`", "a\nb", "*", "~", "a;b", "a\\b", "\"x\""})
    EXPECT_EQ(read_by_shell(shell_word(word)), word);
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace collet
