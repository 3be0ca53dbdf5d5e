// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/contract.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "hlo/text/parser.h"

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

// A device may combine the initial value of a reduction with its elements any number of times.
TEST(Contracts, SumsBeginWithTheNeutralElement) {
  size_t seen = 0;
  for (const ContractCase& one : contract_cases()) {
    if (one.program.empty()) continue;
    const auto module = hlo::parse_module("HloModule m\n\n" + one.program);
    ASSERT_TRUE(module.ok()) << one.name << ": " << module.status().to_string();
    const hlo::Module& m = **module;
    for (const hlo::CompId c : m.computations())
      for (const hlo::InstrId id : m[c].order) {
        const hlo::Instruction& instr = m[id];
        if (instr.op != hlo::Op::REDUCE || m[m[instr.called[0]].root].op != hlo::Op::ADD) continue;
        const hlo::Instruction& start = m[instr.operand(1)];
        EXPECT_TRUE(start.op == hlo::Op::CONSTANT && m.literal(start).as_double(0) == 0) << one.name;
        ++seen;
      }
  }
  EXPECT_GT(seen, 10u);
}

TEST(Contracts, SayWhatTheyDo) {
  for (const ContractCase& one : contract_cases()) {
    const std::string text = describe_case(one);
    EXPECT_NE(text.find("\n  "), std::string::npos) << one.name << " has no steps and sentence";
  }
}

}  // namespace
}  // namespace collet::conformance
