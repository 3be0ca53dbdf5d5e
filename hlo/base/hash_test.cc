// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace collet {
namespace {

// A checksum of it finds each change of one byte, and each cut.
TEST(Hash, ChangesWithEachByteAndWithTheSize) {
  const std::string text = "the bytes of an executable";
  std::set<uint64_t> hashes = {hash_text(text)};
  size_t changes = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit, ++changes) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ 1 << bit);
      hashes.insert(hash_text(other));
    }
    hashes.insert(hash_text(std::string_view(text).substr(0, i)));
    ++changes;
  }
  for (size_t zeros = 1; zeros < 20; ++zeros, ++changes) hashes.insert(hash_text(text + std::string(zeros, '\0')));
  EXPECT_EQ(hashes.size(), changes);
}

TEST(Hash, DependsOnWhatCameBefore) {
  EXPECT_NE(hash_text("b", hash_text("a")), hash_text("a", hash_text("b")));
  EXPECT_NE(hash_text("", hash_text("ab")), hash_text("b", hash_text("a")));
}

// Tables take the low bits of the hashes of names that are numbered.
TEST(Hash, SpreadsNamesOverTheSlotsOfATable) {
  constexpr size_t kSlots = 1024;
  std::set<uint64_t> slots;
  for (size_t i = 0; i < kSlots; ++i) slots.insert(hash_text("fusion." + std::to_string(i)) % kSlots);
  EXPECT_GT(slots.size(), kSlots * 55 / 100);  // 63 % where slots are drawn at random
}

}  // namespace
}  // namespace collet
