// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/fusion/paged_array.h"

#include <gtest/gtest.h>

namespace collet::codegen {
namespace {

TEST(PagedArray, ElementsHaveTheInitialValueUntilTheyAreSet) {
  for (const size_t size : {size_t{1}, size_t{1023}, size_t{1024}, size_t{1025}, size_t{5000}}) {
    PagedArray<int> array(size, 7);
    const PagedArray<int>& same = array;
    EXPECT_EQ(same[size - 1], 7);
    array[size - 1] = 9;
    array[0] += 1;
    EXPECT_EQ(same[size - 1], size == 1 ? 10 : 9);
    EXPECT_EQ(same[0], size == 1 ? 10 : 8);
    for (size_t i = 1; i + 1 < size; ++i) ASSERT_EQ(array[i], 7) << i;
  }
}

TEST(PagedArray, HoldsListsOfTheirOwn) {
  PagedArray<std::vector<int>> lists(3000);
  lists[2999].push_back(1);
  EXPECT_TRUE(lists[2998].empty());
  EXPECT_TRUE(lists[0].empty());
  EXPECT_EQ(lists[2999].size(), 1u);
}

}  // namespace
}  // namespace collet::codegen
