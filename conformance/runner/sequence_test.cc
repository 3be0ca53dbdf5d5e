// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace collet::conformance {
namespace {

using Runs = std::vector<size_t>;

// Fails once the given runs were made, in this order.
FailsAfter after(Runs needed) {
  return [needed = std::move(needed)](const Runs& runs) -> std::optional<bool> {
    auto next = needed.begin();
    for (const size_t run : runs)
      if (next != needed.end() && *next == run) ++next;
    return next == needed.end();
  };
}

std::string letter(size_t i) {
  return std::string(1, static_cast<char>('a' + i));
}

TEST(Sequence, AFailureAloneDependsOnNothing) {
  const auto found = find_dependence(5, after({}), 10);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->fails_alone);
  EXPECT_EQ(dependence_text(*found, letter), "");
}

TEST(Sequence, IsTheSmallestThatFails) {
  for (const Runs& needed : {Runs{4}, Runs{0}, Runs{1, 3}, Runs{0, 2, 4}, Runs{3, 5, 6, 19}}) {
    const auto found = find_dependence(20, after(needed), 10);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->fails_alone);
    EXPECT_EQ(found->before, needed);
  }
  EXPECT_EQ(dependence_text(*find_dependence(5, after({1, 2, 4}), 10), letter),
            "; wrong only after other ops ran: alone in a new process it is right, and wrong after b, c and then e");
}

TEST(Sequence, ThatIsNotFoundIsSaid) {
  const auto never = [](const Runs&) -> std::optional<bool> { return false; };
  EXPECT_EQ(dependence_text(*find_dependence(3, never, 10), letter),
            "; wrong only after other ops ran: alone in a new process it is right, and no sequence of those before it "
            "was found "
            "after which it is wrong");
  EXPECT_EQ(dependence_text(*find_dependence(0, never, 10), letter),
            "; wrong only after other ops ran: alone in a new process it is right");
  EXPECT_FALSE(find_dependence(3, [](const Runs&) -> std::optional<bool> { return std::nullopt; }, 10));
}

}  // namespace
}  // namespace collet::conformance
