// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/profiles.h"

#include <gtest/gtest.h>

#include <utility>

namespace collet::conformance {
namespace {

CaseResult result(std::string name, Op op, Outcome outcome, int64_t device_ops) {
  CaseResult one;
  one.name = std::move(name);
  one.op = op;
  one.type = Type::F32;
  one.outcome = outcome;
  one.device_ops = device_ops;
  return one;
}

TEST(Claims, NeedACaseThatRan) {
  ConformReport report;
  report.claims = {"core", "collectives", "own-patterns"};
  report.cases = {result("add/f32/17/unit", Op::ADD, Outcome::Pass, 1),
                  result("all-reduce/f32/17_of_one/unit", Op::ALL_REDUCE, Outcome::Pass, 0)};
  report.whole = false;
  EXPECT_EQ(idle_claims(report), std::vector<std::string>{"collectives"});
  EXPECT_FALSE(report.conforms());
  report.cases.push_back(result("contract/collective/all_reduce", Op::INVALID, Outcome::Pass, 0));
  EXPECT_TRUE(idle_claims(report).empty());
  EXPECT_TRUE(report.conforms());
  report.whole = true;  // no pattern is declared
  EXPECT_EQ(idle_claims(report), std::vector<std::string>{"own-patterns"});
}

TEST(Claims, OfCommunicationNeedTheDevicesCollectives) {
  const CaseResult all_reduce = result("contract/collective/all_reduce", Op::INVALID, Outcome::Unsupported, 0),
                   copy = result("contract/copy/sizes", Op::INVALID, Outcome::Unsupported, 0);
  EXPECT_NE(claimed_profile({"collectives"}, all_reduce), nullptr);
  EXPECT_EQ(claimed_profile({"contract", "memory"}, all_reduce), nullptr);
  EXPECT_EQ(claimed_profile({"contract", "memory"}, copy), nullptr);
}

}  // namespace
}  // namespace collet::conformance
