// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/op_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "conformance/cases/answer.h"
#include "hlo/eval/evaluator.h"
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
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].name, "dot/f32/model.d/unit");
  EXPECT_EQ(cases[1].name, "dot/f32/model.d/special");
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
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[1].name, "fusion/f32/model.f/large");
  EXPECT_EQ(cases[1].inputs[0].high, 300);
  EXPECT_EQ(cases[2].name, "fusion/f32/model.f/special");
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
  ASSERT_FALSE(cases.empty());
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
  ASSERT_EQ(made.cases.size(), 2u);
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

// Programs whose ops or groups get NaN and infinities.
const char* const kWithSpecials[] = {
    // a bias and an activation
    R"(HloModule m
group {
  x = f32[16,24] parameter(0)
  b = f32[24] parameter(1)
  w = f32[16,24] broadcast(b), dimensions={1}
  a = f32[16,24] add(x, w)
  z = f32[] constant(0)
  zs = f32[16,24] broadcast(z), dimensions={}
  ROOT m = f32[16,24] maximum(a, zs)
}
ENTRY e {
  x = f32[16,24] parameter(0)
  b = f32[24] parameter(1)
  ROOT f = f32[16,24] fusion(x, b), kind=kLoop, calls=group
})",
    // a softmax in bf16
    R"(HloModule m
most {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT r = bf16[] maximum(a, b)
}
total {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT r = bf16[] add(a, b)
}
group {
  x = bf16[20,9] parameter(0)
  least = bf16[] constant(-inf)
  m = bf16[20] reduce(x, least), dimensions={1}, to_apply=most
  w = bf16[20,9] broadcast(m), dimensions={0}
  d = bf16[20,9] subtract(x, w)
  e = bf16[20,9] exponential(d)
  z = bf16[] constant(0)
  s = bf16[20] reduce(e, z), dimensions={1}, to_apply=total
  t = bf16[20,9] broadcast(s), dimensions={0}
  ROOT q = bf16[20,9] divide(e, t)
}
ENTRY e {
  x = bf16[20,9] parameter(0)
  ROOT f = bf16[20,9] fusion(x), kind=kLoop, calls=group
})",
    // a variance, whose deviations are differences of infinities
    R"(HloModule m
total {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
group {
  x = f32[20,9] parameter(0)
  z = f32[] constant(0)
  s = f32[20] reduce(x, z), dimensions={1}, to_apply=total
  n = f32[] constant(9)
  ns = f32[20] broadcast(n), dimensions={}
  mean = f32[20] divide(s, ns)
  w = f32[20,9] broadcast(mean), dimensions={0}
  d = f32[20,9] subtract(x, w)
  q = f32[20,9] multiply(d, d)
  ROOT v = f32[20] reduce(q, z), dimensions={1}, to_apply=total
}
ENTRY e {
  x = f32[20,9] parameter(0)
  ROOT f = f32[20] fusion(x), kind=kLoop, calls=group
})",
    // values that become integers
    R"(HloModule m
group {
  x = f32[64] parameter(0)
  s = f32[] constant(50)
  ss = f32[64] broadcast(s), dimensions={}
  y = f32[64] multiply(x, ss)
  r = f32[64] round-nearest-even(y)
  ROOT q = s8[64] convert(r)
}
ENTRY e {
  x = f32[64] parameter(0)
  ROOT f = s8[64] fusion(x), kind=kLoop, calls=group
})",
    R"(HloModule m
ENTRY e {
  x = f32[17,33] parameter(0)
  y = f32[33,12] parameter(1)
  ROOT d = f32[17,12] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
    R"(HloModule m
total {
  a = f16[] parameter(0)
  b = f16[] parameter(1)
  ROOT r = f16[] add(a, b)
}
ENTRY e {
  x = f16[31,9] parameter(0)
  z = f16[] constant(0)
  ROOT r = f16[31] reduce(x, z), dimensions={1}, to_apply=total
})",
    R"(HloModule m
ENTRY e {
  x = f32[1,9,9,3] parameter(0)
  k = f32[3,3,3,4] parameter(1)
  ROOT c = f32[1,9,9,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
})",
    R"(HloModule m
before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER
}
ENTRY e {
  x = f32[40] parameter(0)
  ROOT s = f32[40] sort(x), dimensions={0}, to_apply=before
})",
    "HloModule m\nENTRY e {\n  x = f32[40] parameter(0)\n  ROOT c = f32[20] slice(x), slice={[3:23]}\n}\n",
    R"(HloModule m
ENTRY e {
  p = pred[40] parameter(0)
  x = f32[40] parameter(1)
  y = f32[40] parameter(2)
  ROOT s = f32[40] select(p, x, y)
})"};

// The evaluator with either choice where an op leaves one is a right device; one that has lost its NaNs, or its infinities, is not.
TEST(OpCase, SpecialValuesAreDemandedAndNothingElse) {
  for (const char* const text : kWithSpecials) {
    const auto cases = cases_of_root(text);
    const Case& one = cases.back();
    ASSERT_TRUE(one.name.ends_with("/special") || one.name.ends_with("/edges")) << one.name;
    const auto module = read(one.text);
    bool has_special = false;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const auto answer = answer_case(one, seed, false);
      ASSERT_TRUE(answer.ok()) << answer.status().to_string();
      EXPECT_TRUE(answer->independent) << one.text;
      for (const bool other : {false, true}) {
        hlo::EvalOptions options;
        options.other_choices = other;
        const auto result = hlo::Evaluator(*module, options).run(answer->inputs);
        ASSERT_TRUE(result.ok());
        const Comparison c = compare(answer->outputs[0], *result, one.bound, false);
        EXPECT_TRUE(c.agrees) << one.name << " " << seed << ": " << c.expected << " " << c.got << "\n" << one.text;
        if (!hlo::is_float(result->type())) continue;
        hlo::Literal without = *result;
        bool changed = false;
        for (int64_t i = 0; i < without.element_count(); ++i) {
          if (std::isfinite(without.as_double(i))) continue;
          without.set_double(i, std::isnan(without.as_double(i)) ? 0 : std::copysign(3e4, without.as_double(i)));
          changed = true;
        }
        has_special |= changed;
        if (changed) {
          EXPECT_FALSE(compare(answer->outputs[0], without, one.bound, false).agrees) << one.name;
        }
      }
    }
    if (text != kWithSpecials[3]) {
      EXPECT_TRUE(has_special) << one.name;
    }
  }
}

// Where right devices differ for NaN and infinities, there is no such case.
TEST(OpCase, NoSpecialValuesWhereRightDevicesDiffer) {
  const auto has_specials = [](const std::vector<Case>& cases) {
    return std::any_of(cases.begin(), cases.end(), [](const Case& one) {
      return std::any_of(one.inputs.begin(), one.inputs.end(),
                         [](const InputSpec& spec) { return spec.values == Values::Special; });
    });
  };
  // NaN is before nothing and after nothing, so that its place follows from the algorithm.
  EXPECT_FALSE(has_specials(cases_of_root(R"(HloModule m
before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[40] parameter(0)
  ROOT s = f32[40] sort(x), dimensions={0}, to_apply=before
})")));
  // An algorithm that splits an infinity into parts has none for the second.
  EXPECT_FALSE(has_specials(cases_of_root(R"(HloModule m
ENTRY e {
  x = f32[7,33] parameter(0)
  y = f32[33,5] parameter(1)
  ROOT d = f32[7,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32_x3
})")));
  EXPECT_FALSE(
      has_specials(cases_of_root("HloModule m\nENTRY e {\n  x = c64[64] parameter(0)\n  ROOT f = c64[64] fft(x), "
                                 "fft_type=FFT, fft_length={64}\n}\n")));
  // The kernel of a convolution meets padding, which a device may multiply.
  const auto convolution = cases_of_root(kWithSpecials[6]);
  EXPECT_EQ(convolution.back().inputs[0].values, Values::Special);
  EXPECT_EQ(convolution.back().inputs[1].values, Values::Unit);
}

// x * logistic(x) is NaN for -infinity by its definition, and 0 by its limit. A NaN stays one.
TEST(OpCase, APatternsLimitIsOpen) {
  Case one{.name = "silu/f32/test/special", .op = Op::CALL, .type = Type::F32, .pattern = "silu"};
  one.text = R"(HloModule m
group {
  x = f32[3] parameter(0)
  l = f32[3] logistic(x)
  ROOT y = f32[3] multiply(x, l)
}
ENTRY e {
  x = f32[3] parameter(0)
  ROOT f = f32[3] call(x), to_apply=group
})";
  one.bound = {.kind = Bound::Kind::Scaled, .ulps = 16, .exact = true};
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const auto agrees = [&](std::vector<double> in, std::vector<double> out) {
    one.inputs = {{.values = Values::Fixed, .fixed = std::move(in)}};
    const auto answer = answer_case(one, 0, false);
    EXPECT_TRUE(answer.ok());
    hlo::Literal got = hlo::Literal::zeros(Shape::array(Type::F32, {3}));
    for (size_t i = 0; i < 3; ++i) got.set_double(static_cast<int64_t>(i), out[i]);
    return compare(answer->outputs[0], got, one.bound, false).agrees;
  };
  EXPECT_TRUE(agrees({-kInfinity, kInfinity, 0}, {kNan, kInfinity, 0}));
  EXPECT_TRUE(agrees({-kInfinity, kInfinity, 0}, {0, kInfinity, 0}));
  EXPECT_FALSE(agrees({-kInfinity, kInfinity, 0}, {0, 7, 0}));
  EXPECT_FALSE(agrees({kNan, 0, 0}, {0, 0, 0}));
}

}  // namespace
}  // namespace collet::conformance
