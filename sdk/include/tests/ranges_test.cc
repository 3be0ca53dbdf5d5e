// SPDX-License-Identifier: Apache-2.0
#include <collet/ranges.h>

#include <gtest/gtest.h>

namespace collet {
namespace {

TEST(Ranges, BothEndsAndWhatWouldWrapAround) {
  EXPECT_TRUE(collet_has_range(8, 0, 8));
  EXPECT_TRUE(collet_has_range(8, 8, 0));
  EXPECT_TRUE(collet_has_range(0, 0, 0));
  EXPECT_FALSE(collet_has_range(8, 1, 8));
  EXPECT_FALSE(collet_has_range(8, 9, 0));
  EXPECT_FALSE(collet_has_range(8, 4, UINT64_MAX - 3));
  EXPECT_FALSE(collet_has_range(8, UINT64_MAX, 2));
  EXPECT_TRUE(collet_has_range(UINT64_MAX, 1, UINT64_MAX - 1));
}

}  // namespace
}  // namespace collet
