// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/op_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "conformance/cases/answer.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

std::unique_ptr<hlo::Module> read(const std::string& text) {
  auto module = hlo::parse_module(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return *std::move(module);
}

// The cases of the entry's root, each of which must have an answer.
std::vector<Case> cases_of_root(const std::string& text) {
  const auto module = read(text);
  OpCases made = cases_of_op(*module, module->entry_computation().root, "model");
  EXPECT_EQ(made.why_not, "");
  for (const Case& one : made.cases) {
    const auto answer = answer_case(one, case_seed(one.name, 0), false);
    EXPECT_TRUE(answer.ok()) << one.name << ": " << answer.status().to_string() << "\n" << one.text;
  }
  return made.cases;
}

TEST(OpCase, HasTheSuitesBoundAndInputs) {
  const auto cases = cases_of_root(R"(HloModule m
ENTRY e {
  x = f32[7,33] parameter(0)
  y = f32[33,5] parameter(1)
  ROOT d = f32[7,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].name, "dot/f32/model.d/unit");
  EXPECT_EQ(cases[0].bound.kind, Bound::Kind::Sum);
  EXPECT_EQ(cases[0].bound.terms, 33);
  EXPECT_EQ(cases[0].inputs.size(), 2u);
}

TEST(OpCase, AnElementwiseOpGetsEdgesToo) {
  const auto cases = cases_of_root("HloModule m\nENTRY e {\n  x = f32[9] parameter(0)\n  ROOT l = f32[9] log(x)\n}\n");
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_GT(cases[0].inputs[0].low, 0) << "a logarithm of positive numbers";
  EXPECT_EQ(cases[1].inputs[0].values, Values::Edges);
}

TEST(OpCase, ASoftmaxGetsValuesWhoseExponentialOverflows) {
  const auto cases = cases_of_root(R"(HloModule m
maximum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}
body {
  x = f32[5,9] parameter(0)
  least = f32[] constant(-inf)
  m = f32[5] reduce(x, least), dimensions={1}, to_apply=maximum
  w = f32[5,9] broadcast(m), dimensions={0}
  d = f32[5,9] subtract(x, w)
  ROOT e = f32[5,9] exponential(d)
}
ENTRY e {
  x = f32[5,9] parameter(0)
  ROOT f = f32[5,9] fusion(x), kind=kLoop, calls=body
})");
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[1].name, "fusion/f32/model.f/large");
  EXPECT_EQ(cases[1].inputs[0].high, 300);
}

TEST(OpCase, KeepsSmallConstantsAndCountsAnOperandOnce) {
  const auto module = read(R"(HloModule m
ENTRY e {
  x = s32[3] parameter(0)
  c = s32[3] constant({1, 2, 3})
  s = s32[3] add(x, c)
  ROOT t = s32[3] multiply(s, s)
})");
  const auto& order = module->entry_computation().order;
  const AloneOp sum = stand_alone(*module, order[2]), square = stand_alone(*module, order[3]);
  EXPECT_EQ(sum.parameters.size(), 1u);
  EXPECT_NE(sum.text.find("constant({1, 2, 3})"), std::string::npos) << sum.text;
  EXPECT_EQ(square.parameters.size(), 1u);
  EXPECT_TRUE(hlo::verify_module(*read(square.text)).ok());
}

TEST(OpCase, IndicesThatAreStatedToBeUniqueAreUnique) {
  const auto cases = cases_of_root(R"(HloModule m
assign {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
ENTRY e {
  x = f32[5,7] parameter(0)
  i = s32[6,2] parameter(1)
  u = f32[6] parameter(2)
  ROOT s = f32[5,7] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, unique_indices=true, to_apply=assign
})");
  ASSERT_EQ(cases.size(), 1u);
  const std::vector<double>& fixed = cases[0].inputs[1].fixed;
  ASSERT_EQ(fixed.size(), 12u);
  std::set<std::pair<double, double>> places;
  for (size_t i = 0; i < fixed.size(); i += 2) {
    EXPECT_LT(fixed[i], 5);
    EXPECT_LT(fixed[i + 1], 7);
    places.emplace(fixed[i], fixed[i + 1]);
  }
  EXPECT_EQ(places.size(), 6u);
}

TEST(OpCase, AGroupGetsOperandsForWhichItsOpsAreDefined) {
  const auto module = read(R"(HloModule m
group {
  v = f32[64] parameter(0)
  i = s32[] parameter(1)
  e = f32[] constant(0.001)
  b = f32[64] broadcast(e), dimensions={}
  a = f32[64] add(v, b)
  r = f32[64] rsqrt(a)
  ROOT d = f32[8] dynamic-slice(r, i), dynamic_slice_sizes={8}
}
ENTRY e {
  x = f32[64] parameter(0)
  i = s32[] parameter(1)
  ROOT f = f32[8] fusion(x, i), kind=kLoop, calls=group
})");
  const OpCases made = cases_of_op(*module, module->entry_computation().root, "model");
  ASSERT_EQ(made.cases.size(), 1u);
  EXPECT_EQ(made.cases[0].name, "fusion/f32/model.f/unit");
  EXPECT_GT(made.cases[0].inputs[0].low, 0) << "the variance that rsqrt gets";
  EXPECT_EQ(made.cases[0].inputs[1].high, 64) << "the start of a slice";
  const auto answer = answer_case(made.cases[0], 1, false);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->independent) << "exact arithmetic with a bound of its own";
}

// The first result is a sum, the second a product, of numbers of which both depend on the order.
TEST(OpCase, AReductionOfSeveralArraysHasAnAnswerOfEach) {
  const auto cases = cases_of_root(R"(HloModule m
both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, c)
  p = f32[] multiply(b, d)
  ROOT t = (f32[], f32[]) tuple(s, p)
}
ENTRY e {
  x = f32[4,2] parameter(0)
  y = f32[4,2] parameter(1)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  ROOT r = (f32[2], f32[2]) reduce(x, y, zero, one), dimensions={0}, to_apply=both
}
)");
  ASSERT_FALSE(cases.empty());
  for (uint64_t seed = 0; seed < 32; ++seed) {
    const auto answer = answer_case(cases[0], seed, false);
    ASSERT_TRUE(answer.ok()) << answer.status().to_string();
    for (int64_t column = 0; column < 2; ++column) {
      double sum = 0, product = 1;
      for (int64_t row = 0; row < 4; ++row) {
        sum += answer->inputs[0].as_double(2 * row + column);
        product *= answer->inputs[1].as_double(2 * row + column);
      }
      const Reference &first = answer->outputs[0], &second = answer->outputs[1];
      EXPECT_NEAR((first.exact.valid() ? first.exact : first.value).as_double(column), sum, 1e-5) << seed;
      EXPECT_NEAR((second.exact.valid() ? second.exact : second.value).as_double(column), product, 1e-5) << seed;
    }
  }
}

// The body ends with a maximum, and computes something else before it.
TEST(OpCase, AReductionByMoreThanAMaximumHasAnAnswer) {
  const auto cases = cases_of_root(R"(HloModule m
finite {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  f = pred[] is-finite(a)
  c = f32[] convert(f)
  ROOT r = f32[] maximum(c, b)
}
ENTRY e {
  x = f32[3,5] parameter(0)
  least = f32[] constant(-inf)
  ROOT r = f32[3] reduce(x, least), dimensions={1}, to_apply=finite
}
)");
  ASSERT_FALSE(cases.empty());
  const auto answer = answer_case(cases[0], 0, false);
  ASSERT_TRUE(answer.ok()) << answer.status().to_string();
  const Reference& result = answer->outputs[0];
  for (int64_t i = 0; i < 3; ++i)  // the elements are less than 1
    EXPECT_EQ((result.exact.valid() ? result.exact : result.value).as_double(i), 1) << i;
}

TEST(OpCase, SaysWhyAnOpHasNoCase) {
  const auto module = read(
      "HloModule m\nENTRY e {\n  x = f32[9] parameter(0)\n  ROOT c = f32[9] custom-call(x), "
      "custom_call_target=\"acme\"\n}\n");
  EXPECT_NE(cases_of_op(*module, module->entry_computation().root, "model").why_not, "");
}

// x + y lies at the edge of the comparison: both selections are right, and nothing else is.
TEST(OpCase, AComparisonThatRoundingDecidesLeavesBothResultsOpen) {
  Case one{.name = "fusion/f32/test/unit", .op = Op::FUSION, .type = Type::F32};
  one.text = R"(HloModule m
group {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  s = f32[2] add(x, y)
  l = pred[2] compare(s, x), direction=GT
  n = pred[2] not(l)
  m = f32[2] negate(x)
  ROOT r = f32[2] select(n, m, x)
}
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  ROOT f = f32[2] fusion(x, y), kind=kLoop, calls=group
})";
  one.inputs = {{.values = Values::Fixed, .fixed = {1, 1}}, {.values = Values::Fixed, .fixed = {0x1p-25, 1}}};
  one.bound = {.kind = Bound::Kind::Scaled, .ulps = 16, .exact = true};
  const auto answer = answer_case(one, 0, false);
  ASSERT_TRUE(answer.ok());
  ASSERT_TRUE(answer->independent);
  const auto judged = [&](double first, double second) {
    hlo::Literal got = hlo::Literal::zeros(Shape::array(Type::F32, {2}));
    got.set_double(0, first);
    got.set_double(1, second);
    return compare(answer->outputs[0], got, one.bound, false).agrees;
  };
  EXPECT_TRUE(judged(1, 1));
  EXPECT_TRUE(judged(-1, 1));
  EXPECT_FALSE(judged(1, -1)) << "no rounding decides the second";
  EXPECT_FALSE(judged(8, 1));
}

}  // namespace
}  // namespace collet::conformance
