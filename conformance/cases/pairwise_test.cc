// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/pairwise.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace collet::conformance {
namespace {

TEST(Pairwise, HasEveryPairAndFewRows) {
  const std::vector<size_t> levels = {3, 2, 5, 4, 2, 3, 3, 2, 6};
  const auto rows = pairwise(levels);
  std::set<std::tuple<size_t, size_t, size_t, size_t>> pairs;
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), levels.size());
    for (size_t f = 0; f < levels.size(); ++f) {
      ASSERT_LT(row[f], levels[f]);
      for (size_t g = f + 1; g < levels.size(); ++g) pairs.emplace(f, row[f], g, row[g]);
    }
  }
  size_t wanted = 0;
  for (size_t f = 0; f < levels.size(); ++f)
    for (size_t g = f + 1; g < levels.size(); ++g) wanted += levels[f] * levels[g];
  EXPECT_EQ(pairs.size(), wanted);
  EXPECT_GE(rows.size(), 30u);  // 6 x 5
  EXPECT_LE(rows.size(), 60u);
}

TEST(Pairwise, FactorsReadRows) {
  std::set<std::pair<int, char>> seen;
  for_pairs(
      [](Factors& factors) {
        const int a = factors.next({1, 2, 3});
        return std::pair(a, factors.next({'x', 'y'}));
      },
      [&](const std::pair<int, char>& row, size_t) { seen.insert(row); });
  EXPECT_EQ(seen.size(), 6u);
}

}  // namespace
}  // namespace collet::conformance
