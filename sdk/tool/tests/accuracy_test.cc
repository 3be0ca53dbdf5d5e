// SPDX-License-Identifier: Apache-2.0
// Tests collet accuracy: its options, its output and the files that it writes.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

namespace json = boost::json;

constexpr char kPage[] = "before\n<!-- collet accuracy: begin -->\nold\n<!-- collet accuracy: end -->\nafter\n";

Ran accuracy(const std::string& arguments) {
  return collet("accuracy --backend interpreter --jobs 1 " + arguments);
}

TEST(Accuracy, WritesJson) {
  const Ran ran = accuracy("--function tanh --function log --type bf16 --json -");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json::value report = json::parse(ran.out);
  EXPECT_EQ(report.at("backend").as_string(), "interpreter");
  const json::array& rows = report.at("functions").as_array();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("function").as_string(), "tanh");
  EXPECT_EQ(rows[0].at("type").as_string(), "bf16");
  EXPECT_EQ(rows[0].at("arguments").as_int64(), 65536);
  EXPECT_EQ(rows[0].at("wrong").as_int64(), 0);
  EXPECT_NEAR(rows[0].at("worst_ulp").as_double(), 0.5, 0.01);
}

TEST(Accuracy, WritesTheTableIntoAPage) {
  const Folder folder;
  const std::string page = folder / "page.md";
  write(page, kPage);
  const Ran ran = accuracy("--function sqrt --type f32 --type f16 --step 65537 --into " + page);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "error, ULP")) << ran.out;
  const std::string text = contents(page);
  EXPECT_TRUE(text.starts_with("before\n<!-- collet accuracy: begin -->\n| function | f32 | at | nearest | f16 |"))
      << text;
  EXPECT_TRUE(contains(text, "\n| sqrt | 0.")) << text;
  EXPECT_TRUE(text.ends_with("\n<!-- collet accuracy: end -->\nafter\n")) << text;
  EXPECT_FALSE(contains(text, "old")) << text;
}

TEST(Accuracy, GoesOnFromWhatIsKept) {
  const Folder folder;
  const std::string kept = folder / "kept.jsonl", line = "--type bf16 --json - --resume " + kept;
  ASSERT_EQ(accuracy("--function tanh " + line).code, 0);
  // Kept results are used without a check; results that are missing at the end of the file are measured again.
  std::string text = contents(kept);
  const size_t at = text.find("\"arguments\": 65536");
  ASSERT_NE(at, std::string::npos) << text;
  write(kept, text.replace(at, 18, "\"arguments\": 12345") + "{\"function\": \"lo");
  const Ran ran = accuracy("--function log --function tanh " + line);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json::array rows = json::parse(ran.out).at("functions").as_array();
  EXPECT_EQ(rows.at(0).at("arguments").as_int64(), 65536);
  EXPECT_EQ(rows.at(1).at("arguments").as_int64(), 12345);
  EXPECT_EQ(accuracy("--function log --function tanh " + line).code, 0) << contents(kept);
  const Ran other = accuracy("--function tanh --step 3 " + line);
  EXPECT_EQ(other.code, 3) << other.out;
  EXPECT_TRUE(contains(other.err, "is of another backend, or of other options")) << other.err;
  write(kept, "nonsense\n");
  EXPECT_EQ(accuracy("--function tanh " + line).code, 3);
}

TEST(Accuracy, ALargerErrorThanAllowedFails) {
  EXPECT_EQ(accuracy("--function exponential --type f16 --most 0.6").code, 0);
  EXPECT_EQ(accuracy("--function exponential --type f16 --most 0.4").code, 1);
}

TEST(Accuracy, WhatCannotBeUsedIsRefused) {
  const Folder folder;
  write(folder / "page.md", "no place");
  const std::vector<std::tuple<std::string, int, std::string>> uses = {
      {"--function add", 2, "--function add"},
      {"--function ''", 2, "--function"},
      {"--type f64", 2, "--type"},
      {"--step 0", 2, "--step"},
      {"--jobs 0", 2, "--jobs"},
      {"--most -1", 2, "--most"},
      {"--into " + (folder / "page.md"), 3, "has no place for the table"},
      {"--into " + (folder / "none.md"), 3, "none.md"},
      {"--json no/such/folder/x.json", 4, "cannot be written"},
  };
  for (const auto& [line, code, says] : uses) {
    const Ran ran = accuracy(line);
    EXPECT_EQ(ran.code, code) << line << "\n" << ran.err;
    EXPECT_TRUE(contains(ran.err, says)) << line << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << line;
  }
  const Ran ran = collet("accuracy --backend no_such_backend --type f16");
  EXPECT_EQ(ran.code, 4);
  EXPECT_TRUE(contains(ran.err, "no_such_backend")) << ran.err;
}

TEST(Accuracy, ListsTheFunctions) {
  const Ran ran = accuracy("--list");
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(contains(ran.out, "log-plus-one\n")) << ran.out;
}

}  // namespace
}  // namespace collet::tool::testing
