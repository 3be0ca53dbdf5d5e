// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/blocks.h"

#include <gtest/gtest.h>

#include <memory>

namespace collet {
namespace {

TEST(Blocks, KeepReferencesWhileGrowing) {
  Blocks<int> blocks;
  EXPECT_TRUE(blocks.empty());
  const int* first = &blocks.emplace_back(0);
  for (int i = 1; i < 1000; ++i) blocks.emplace_back(i);
  EXPECT_EQ(blocks.size(), 1000u);
  EXPECT_EQ(first, &blocks[0]);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(blocks[static_cast<size_t>(i)], i);
  EXPECT_EQ(blocks.back(), 999);
}

TEST(Blocks, DestroyWhatTheyHold) {
  const auto counted = std::make_shared<int>(1);
  {
    Blocks<std::shared_ptr<int>> blocks;
    for (int i = 0; i < 300; ++i) blocks.emplace_back(counted);
    EXPECT_EQ(counted.use_count(), 301);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

}  // namespace
}  // namespace collet
