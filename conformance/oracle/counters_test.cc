// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/counters.h"

#include <gtest/gtest.h>

namespace collet::conformance {
namespace {

// The known answers that the authors of the paper publish with Random123 (file kat_vectors). The inputs of the third
// one are digits of pi.
TEST(Threefry, GivesThePublishedAnswers) {
  using Two = std::array<uint32_t, 2>;
  EXPECT_EQ(threefry({0, 0}, {0, 0}), (Two{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}), (Two{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry({0x243f6a88, 0x85a308d3}, {0x13198a2e, 0x03707344}), (Two{0xc4923a9c, 0x483df7a0}));
}

TEST(Philox, GivesThePublishedAnswers) {
  using Four = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace collet::conformance
