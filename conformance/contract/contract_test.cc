// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/contract.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace collet::conformance {
namespace {

// Returns a header's text with each sequence of spaces, line breaks and comment markers replaced by one space.
std::string flat_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  for (std::string line; std::getline(file, line);) {
    const size_t start = line.find_first_not_of(" \t");
    if (start == std::string::npos) continue;
    line.erase(0, start);
    if (line.starts_with("* ")) line.erase(0, 2);
    text << line << ' ';
  }
  std::string flat;
  for (const char c : text.str())
    if (c != ' ' || (!flat.empty() && flat.back() != ' ')) flat += c;
  return flat;
}

TEST(Promises, StandInTheHeaders) {
  for (const PromiseInfo& one : promises()) {
    const std::string header = flat_text("sdk/include/collet/" + std::string(one.header));
    ASSERT_FALSE(header.empty()) << one.header;
    EXPECT_NE(header.find(one.text), std::string::npos) << one.header << " lacks: " << one.text;
  }
}

TEST(Promises, AreOfAVersionThatThereIs) {
  for (const PromiseInfo& one : promises()) EXPECT_LE(one.minor, COLLET_ABI_MINOR) << one.id;
}

TEST(Contracts, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const ContractCase& one : contract_cases()) {
    EXPECT_TRUE(one.name.starts_with("contract/")) << one.name;
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
  }
  EXPECT_GT(names.size(), 30u);
}

TEST(Contracts, SayWhatTheyDo) {
  for (const ContractCase& one : contract_cases()) {
    const std::string text = describe_case(one);
    EXPECT_NE(text.find("\n  "), std::string::npos) << one.name << " has no steps and sentence";
  }
}

}  // namespace
}  // namespace collet::conformance
