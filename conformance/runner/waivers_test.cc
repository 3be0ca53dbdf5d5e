// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/waivers.h"

#include <collet/types.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace collet::conformance {
namespace {

TEST(Waivers, OfThisSuiteAreFoundByTheNameOfACase) {
  const auto waivers = read_waivers(
      "f", fmt::format("# a comment\n\nW1 2026-01-02 0.9 add/* older\nW12 2026-01-02 {} dot/f32/* a reason of words\n",
                       kSuiteVersion));
  ASSERT_TRUE(waivers.ok()) << waivers.status().to_string();
  ASSERT_EQ(waivers->size(), 2u);
  EXPECT_EQ(find_waiver(*waivers, "add/f32/1/unit"), nullptr) << "of another version of the suite";
  const Waiver* found = find_waiver(*waivers, "dot/f32/1/unit");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->number, "W12");
  EXPECT_EQ(found->reason, "a reason of words");
}

// The page of the process states the versions of the suite, of its terms, and of the interface.
TEST(Versions, StandOnThePageOfTheProcess) {
  std::ifstream file("docs/conformance_process.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  for (const std::string& text :
       {fmt::format("suite {}, terms {}.", kSuiteVersion, kTermsVersion),
        fmt::format("Suite {} judges backends of interface {}.{} ", kSuiteVersion, COLLET_ABI_MAJOR, COLLET_ABI_MINOR)})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

TEST(Waivers, AWrongLineIsNamed) {
  const auto error = [](std::string_view text) { return read_waivers("f", text).status().message(); };
  EXPECT_EQ(error("W1 2026-01-02 1.0 a/* because\nX 2026-01-02 1.0 a/* because"),
            "f:2: 'X' is no number of a waiver, such as W3");
  EXPECT_LT(error(std::string(100000, 'x')).size(), 100u) << "a file that is no list";
  EXPECT_EQ(error("W1 yesterday 1.0 a/* because"), "f:1: 'yesterday' is no date, such as 2026-11-28");
  EXPECT_EQ(error("W1 2026-01-02 1.0 a/*"), "f:1: a waiver has number, date, version of the suite, cases and a reason");
  EXPECT_EQ(error("W1 2026-01-02 1.0 a/* b\nW1 2026-01-02 1.0 a/* b"), "f:2: there are two waivers W1");
}

TEST(Waivers, TheShippedListIsRead) {
  ASSERT_FALSE(shipped_waivers().empty());
  EXPECT_EQ(shipped_waivers()[0].number, "W1");
}

}  // namespace
}  // namespace collet::conformance
