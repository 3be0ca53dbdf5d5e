// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/cases/answer.h"
#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

TEST(Cases, EveryOpHasSomeOrAReason) {
  std::set<Op> ops;
  for (const Case& one : all_cases(false)) ops.insert(one.op);
  for (int id = 1; id <= hlo::kLastOp; ++id) {
    const Op op = static_cast<Op>(id);
    EXPECT_NE(ops.contains(op), !why_no_case(op).empty()) << hlo::op_info(op).text;
  }
}

TEST(Cases, NamesArePathsAndUnique) {
  std::set<std::string> names;
  for (const Case& one : all_cases(true)) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(std::count(one.name.begin(), one.name.end(), '/'), 3) << one.name;
    EXPECT_EQ(one.name.find_first_of(" \t\n*?[]'\"\\"), std::string::npos) << one.name;
  }
}

// Every case is a valid program that the evaluator answers; a bound that no error could break would test nothing.
TEST(Cases, AreValidAndHaveAnswers) {
  size_t bad = 0, unknown = 0;
  for (const Case& one : all_cases(false)) {
    const Expected<Answer> answer = answer_case(one, case_seed(one.name, 0), false);
    if (answer.ok()) continue;
    if (answer.status().code() == Code::Unimplemented && ++unknown > 0) continue;
    if (++bad <= 40) ADD_FAILURE() << one.name << ": " << answer.status().to_string();
  }
  EXPECT_EQ(bad, 0u);
  if (unknown > 0) GTEST_SKIP() << unknown << " cases have ops that the evaluator does not know yet";
}

TEST(Cases, InputsFollowFromTheName) {
  const InputSpec spec;
  const Shape shape = Shape::array(Type::F32, {64});
  const auto drawn = [&](std::string_view name, uint64_t seed) {
    return make_input(spec, shape, 0, 2, case_seed(name, seed), false);
  };
  EXPECT_TRUE(drawn("add/f32/64/unit", 0) == drawn("add/f32/64/unit", 0));
  EXPECT_FALSE(drawn("add/f32/64/unit", 0) == drawn("add/f32/64/unit", 1));
  EXPECT_FALSE(drawn("add/f32/64/unit", 0) == drawn("add/f32/65/unit", 0));
}

TEST(Cases, EdgesCrossEveryPair) {
  const int64_t n = edge_count(Type::S8, 1);
  const Shape shape = Shape::array(Type::S8, {edge_count(Type::S8, 2)});
  const InputSpec spec{.values = Values::Edges};
  const hlo::Literal a = make_input(spec, shape, 0, 2, 1, false), b = make_input(spec, shape, 1, 2, 1, false);
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < n * n; ++i) pairs.emplace(a.as_int(i), b.as_int(i));
  EXPECT_TRUE(pairs.contains({-128, -1}));
  EXPECT_TRUE(pairs.contains({1, 0}));
  EXPECT_TRUE(pairs.contains({127, 127}));
}

}  // namespace
}  // namespace collet::conformance
