// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/sha256.h"

#include <gtest/gtest.h>

namespace collet {
namespace {

// The examples that NIST gives for the standard.
TEST(Sha256, GivesTheExamplesOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The digest does not depend on where the bytes are cut: at block ends and beside them.
TEST(Sha256, TakesPieces) {
  for (const size_t length : {55, 56, 63, 64, 65, 119, 120, 128}) {
    const std::string text(length, 'x');
    for (size_t cut = 0; cut <= length; ++cut) {
      Sha256 digest;
      digest.add(std::string_view(text).substr(0, cut)).add(std::string_view(text).substr(cut));
      EXPECT_EQ(digest.finish(), sha256(text)) << length << " cut at " << cut;
    }
  }
}

// The implementation for this processor and the portable one agree, for all lengths of an end and for several blocks at once.
TEST(Sha256, AllImplementationsAgree) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37 + i / 7);
  for (size_t length = 0; length <= text.size(); ++length) {
    const std::string_view part = std::string_view(text).substr(0, length);
    EXPECT_EQ(Sha256(Sha256::portable()).add(part).finish(), sha256(part)) << length;
  }
  EXPECT_EQ(Sha256(Sha256::portable()).add("abc").finish(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace collet
