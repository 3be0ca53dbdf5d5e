// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/op_docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "hlo/ir/ops.h"

namespace collet::hlo {
namespace {

using ::testing::HasSubstr;

TEST(OpReference, ListsEachOpOnce) {
  std::string text = op_reference_markdown();
  text.resize(text.find("\n## Attributes"));
  for (int id = 1; id <= kLastOp; ++id) {
    const std::string row = "\n| " + std::string(op_info(static_cast<Op>(id)).text) + " | ";
    const size_t at = text.find(row);
    EXPECT_NE(at, std::string::npos) << row;
    EXPECT_EQ(text.find(row, at + 1), std::string::npos) << row;
  }
}

TEST(OpReference, SaysWhatTheTableSays) {
  const std::string text = op_reference_markdown();
  EXPECT_THAT(text, HasSubstr("| core | 24 |"));
  EXPECT_THAT(text, HasSubstr("| compare | core | 2 | any | [Compare](#record_compare) |  | exact | 1 |"));
  EXPECT_THAT(text, HasSubstr("| tanh | math | 1 | float or complex |  |  | 5 ULP | 1 |"));
  EXPECT_THAT(text, HasSubstr("| direction | direction | one of EQ, NE, GE, GT, LE, LT | required | yes | 1 |"));
  EXPECT_THAT(text, HasSubstr("| while | executor | 1 | any | [While](#record_while) | condition, body | exact | 1 |"));
}

TEST(OpReference, IsThePageInTheDocs) {
  std::ifstream file("docs/ops.md", std::ios::binary);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(page == op_reference_markdown())
      << "docs/ops.md is not what the table says: ./dev collet info --ops --format md > docs/ops.md writes it anew";
}

}  // namespace
}  // namespace collet::hlo
