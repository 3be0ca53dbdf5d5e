// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/answer.h"
#include "conformance/cases/case.h"
#include "conformance/cases/exact_answer.h"
#include "conformance/cases/op_case.h"
#include "hlo/eval/evaluator.h"
#include "hlo/text/parser.h"

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

// A device may combine the initial value of a reduction with its elements any number of times.
TEST(Cases, SumsBeginWithTheNeutralElement) {
  std::vector<Case> cases = all_cases(true);
  for (const GridBlock& block : grid_blocks())
    if (block.op == Op::REDUCE)
      for (Case& one : grid_cases(block, false)) cases.push_back(std::move(one));
  size_t seen = 0;
  for (const Case& one : cases) {
    if (one.op != Op::REDUCE && one.op != Op::REDUCE_WINDOW) continue;
    const auto module = hlo::parse_module(one.text);
    ASSERT_TRUE(module.ok()) << one.name;
    const hlo::Module& m = **module;
    for (const hlo::InstrId id : m.entry_computation().order) {
      const hlo::Instruction& instr = m[id];
      if (instr.op != one.op || m[instr.operand(0)].shape.element_count() == 0) continue;
      const Op body = combiner_of(m, instr.called[0]);
      if (body != Op::ADD && body != Op::MULTIPLY && body != Op::XOR) continue;
      const hlo::Instruction& start = m[instr.operand(1)];
      const double first = start.op == Op::CONSTANT
                               ? m.literal(start).as_double(0)
                               : one.inputs[static_cast<size_t>(start.as<hlo::ParameterAttrs>().number)].fixed.at(0);
      EXPECT_EQ(first, body == Op::MULTIPLY ? 1 : 0) << one.name;
      ++seen;
    }
  }
  EXPECT_GT(seen, 1000u);
}

// Returns a dot with operands that are rounded to so many bits.
hlo::Literal rounded_product(const Answer& answer, int bits) {
  const hlo::Literal &a = answer.inputs[0], &b = answer.inputs[1];
  const auto rounded = [&](double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
  };
  const int64_t rows = a.shape().dim(0), depth = a.shape().dim(1), columns = b.shape().dim(1);
  hlo::Literal out = hlo::Literal::zeros(Shape::array(Type::F32, {rows, columns}));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += rounded(a.as_double(i * depth + k)) * rounded(b.as_double(k * columns + j));
      out.set_double(i * columns + j, sum);
    }
  return out;
}

// What is halfway between two numbers goes to the even one, not toward zero.
TEST(Cases, ReducedPrecisionHasTies) {
  for (const Case& one : all_cases(false)) {
    if (one.name != "reduce-precision/f32/e8m7_ties/fixed" && one.name != "reduce-precision/f64/e8m23_ties/fixed")
      continue;
    const Expected<Answer> answer = answer_case(one, 1, false);
    ASSERT_TRUE(answer.ok()) << answer.status().to_string();
    hlo::Literal toward_zero = answer->outputs[0].value;
    const double step = std::ldexp(1.0, one.type == Type::F32 ? -7 : -23);
    for (int64_t i = 0; i < toward_zero.element_count(); ++i) {
      const double x = answer->inputs[0].as_double(i), scale = std::fabs(x) < 2 ? 1 : 2,
                   halves = x / (scale * step) * 2;
      if (halves == std::trunc(halves) && std::fmod(halves, 2) != 0)
        toward_zero.set_double(i, std::trunc(halves / 2) * scale * step);
    }
    EXPECT_FALSE(compare(answer->outputs[0], toward_zero, one.bound, false).agrees) << one.name;
  }
}

// An algorithm may round its operands as much as it says, and not more.
TEST(Cases, AlgorithmsOfDotsAreToldApart) {
  const std::vector<Case> cases = all_cases(false);
  const auto passes = [&](const std::string& algorithm, int bits) {
    const std::string name = "dot/f32/17x2_2x13_dot_" + algorithm + "/unit";
    const auto one = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.name == name; });
    if (one == cases.end()) return ADD_FAILURE() << name, false;
    const Expected<Answer> answer = answer_case(*one, case_seed(name, 0), false);
    if (!answer.ok()) return ADD_FAILURE() << answer.status().to_string(), false;
    return compare(answer->outputs[0], rounded_product(*answer, bits), one->bound, false).agrees;
  };
  for (const auto& [algorithm, bits] :
       {std::pair("bf16_bf16_f32", 8), std::pair("f16_f16_f32", 11), std::pair("tf32_tf32_f32", 11),
        std::pair("bf16_bf16_f32_x3", 16), std::pair("tf32_tf32_f32_x3", 22), std::pair("bf16_bf16_f32_x6", 24),
        std::pair("bf16_bf16_f32_x9", 24)}) {
    EXPECT_TRUE(passes(algorithm, bits)) << algorithm;
    for (const int fewer : {8, 11})
      if (fewer < bits) {
        EXPECT_FALSE(passes(algorithm, fewer)) << algorithm;
      }
  }
}

// Every case must be a valid program for which expected results are known, with a bound that wrong results exceed.
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

// For all blocks checks the names; for a sample of cases checks that the program is valid, has expected results, and is
// found by its name.
TEST(Grid, BlocksHoldValidCases) {
  size_t count = 0;
  std::set<std::string> names;
  for (const Case& one : all_cases(true)) names.insert(one.name);
  const size_t others = names.size();
  for (const GridBlock& block : grid_blocks()) {
    const std::vector<Case> listed = grid_cases(block, true), made = grid_cases(block, false);
    ASSERT_EQ(listed.size(), made.size());
    for (size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(listed[i].name, made[i].name);
      EXPECT_TRUE(names.insert(made[i].name).second) << made[i].name;
      EXPECT_EQ(std::count(made[i].name.begin(), made[i].name.end(), '/'), 3) << made[i].name;
      if (++count % 53 != 0 || made[i].inputs.empty() || made[i].inputs[0].values == Values::All) continue;
      EXPECT_EQ(find_grid_case(made[i].name).text, made[i].text);
      const Expected<Answer> answer = answer_case(made[i], case_seed(made[i].name, 0), false);
      EXPECT_TRUE(answer.ok()) << made[i].name << ": " << answer.status().to_string();
    }
  }
  EXPECT_GT(names.size() - others, 200000u);
}

TEST(Values, AllShowsEveryPattern) {
  EXPECT_EQ(all_count(Type::BF16, 1), 65536);
  EXPECT_EQ(all_count(Type::S8, 2), 65536);
  EXPECT_EQ(all_count(Type::S16, 2), 0);
  const InputSpec spec{.values = Values::All};
  for (const Type type : {Type::BF16, Type::U16}) {
    const hlo::Literal all = make_input(spec, Shape::array(type, {65536}), 0, 1, 1, false);
    std::set<uint16_t> seen;
    for (int i = 0; i < 65536; ++i) seen.insert(all.data<uint16_t>()[i]);
    EXPECT_EQ(seen.size(), 65536u);
  }
  std::set<std::pair<int64_t, int64_t>> pairs;
  const Shape bytes = Shape::array(Type::S8, {65536});
  const hlo::Literal a = make_input(spec, bytes, 0, 2, 1, false), b = make_input(spec, bytes, 1, 2, 1, false);
  for (int i = 0; i < 65536; ++i) pairs.emplace(a.as_int(i), b.as_int(i));
  EXPECT_EQ(pairs.size(), 65536u);
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

// exact_sums and the evaluator were written independently: for cases of these ops without rounding, both must give the
// same results.
TEST(Answers, OfSumsAgreeWithTheEvaluator) {
  size_t compared = 0;
  for (const Case& one : all_cases(false)) {
    const bool is_summed = one.op == Op::CONVOLUTION || one.op == Op::REDUCE_WINDOW || one.op == Op::DOT;
    if (!is_summed || one.type != Type::F64) continue;
    const auto module = hlo::parse_module(one.text, one.name);
    ASSERT_TRUE(module.ok());
    std::vector<hlo::Literal> inputs;
    const hlo::Computation& entry = (*module)->entry_computation();
    // Small integers, for which sums of products are exact in any order.
    for (const hlo::InstrId id : entry.parameters) {
      hlo::Literal& input = inputs.emplace_back(make_input({.values = Values::Unit, .low = -9, .high = 9},
                                                           (**module)[id].shape, inputs.size(), 2, compared, false));
      for (int64_t i = 0; i < input.element_count(); ++i) input.set_double(i, std::round(input.as_double(i)));
    }
    std::vector<const hlo::Literal*> operands;
    for (const hlo::InstrId id : (**module)[entry.root].operands)
      if ((**module)[id].op == Op::PARAMETER)
        operands.push_back(&inputs[static_cast<size_t>((**module)[id].as<hlo::ParameterAttrs>().number)]);
    if (operands.size() != (**module)[entry.root].operands.size()) continue;
    const std::optional<ExactSums> exact = exact_sums(**module, (**module)[entry.root], operands);
    if (!exact) continue;
    const auto evaluated = hlo::Evaluator(**module).run(inputs);
    ASSERT_TRUE(evaluated.ok()) << evaluated.status().to_string();
    for (int64_t i = 0; i < evaluated->element_count(); ++i)
      ASSERT_EQ(exact->sum.exact.as_double(i), evaluated->as_double(i)) << one.name << " at " << i;
    ++compared;
  }
  EXPECT_GT(compared, 60u);
}

// Most cases have expected results from definitions and MPFR. The evaluator's results are checked against them.
TEST(Answers, JudgeTheEvaluator) {
  size_t number = 0, judged = 0, all = 0;
  std::set<Op> ops;
  for (const Case& one : all_cases(false)) {
    if (++number % 5 != 0) continue;
    ++all;
    const Expected<Answer> answer = answer_case(one, case_seed(one.name, 3), false);
    ASSERT_TRUE(answer.ok()) << one.name << ": " << answer.status().to_string();
    if (!answer->independent) continue;
    const auto module = hlo::parse_module(one.text, one.name);
    ASSERT_TRUE(module.ok());
    const auto result = hlo::Evaluator(**module).run(answer->inputs);
    ASSERT_TRUE(result.ok()) << one.name << ": " << result.status().to_string();
    const std::vector<hlo::Literal> got = hlo::flatten(*result);
    ASSERT_EQ(got.size(), answer->outputs.size()) << one.name;
    // The other triangle of a factor is not specified.
    for (size_t i = 0; i < got.size() && one.bound.triangle == 0; ++i) {
      const Comparison compared = compare(answer->outputs[i], got[i], one.bound, false);
      EXPECT_TRUE(compared.agrees) << one.name << ": expected " << compared.expected << ", got " << compared.got
                                   << " at " << compared.first;
    }
    ++judged;
    ops.insert(one.op);
  }
  EXPECT_GT(judged * 1000, all * 999) << judged << " of " << all;
  EXPECT_GT(ops.size(), 80u);
}

Expected<Case> case_named(std::string_view name) {
  for (const Case& one : all_cases(false))
    if (one.name == name) return one;
  return not_found("there is no case " + std::string(name));
}

// If the expected results come from the evaluator, the case must not claim to be independent of it.
TEST(Answers, SayWhatIsTheEvaluators) {
  const auto is_independent = [](std::string_view name) {
    const Expected<Case> one = case_named(name);
    EXPECT_TRUE(one.ok()) << one.status().to_string();
    const Expected<Answer> answer = answer_case(*one, 1, false);
    return answer.ok() && answer->independent;
  };
  EXPECT_TRUE(is_independent("add/f32/17/unit"));
  EXPECT_TRUE(is_independent("while/f32/7_trips/unit"));
  EXPECT_TRUE(is_independent("reduce/f32/multiply_15_all/unit"));
  EXPECT_TRUE(is_independent("softmax/f32/4x8/unit"));
  EXPECT_TRUE(is_independent("stochastic-convert/f32/to_s8_129/unit"));
  EXPECT_TRUE(is_independent("ragged-dot/f32/12x5_3x5x7/unit"));
  EXPECT_TRUE(is_independent("scaled-dot/f8e4m3fn/5x64_64x7/unit"));
}

struct WrongEvaluator {
  const char *name, *right, *wrong;
};
void PrintTo(const WrongEvaluator& one, std::ostream* out) {
  *out << one.name << ": " << one.wrong << " for " << one.right;
}

// The evaluator runs a program with a replaced piece of text, which simulates a fault in its control flow, sums, random
// numbers or patterns. The expected results are those of the original program, so the fault must be found.
class WrongEvaluators : public ::testing::TestWithParam<WrongEvaluator> {};

TEST_P(WrongEvaluators, AreFound) {
  const auto& [name, right, wrong] = GetParam();
  const Expected<Case> one = case_named(name);
  ASSERT_TRUE(one.ok()) << one.status().to_string();
  std::string text = one->text;
  const size_t at = text.find(right);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, std::string_view(right).size(), wrong);
  const Expected<Answer> answer = answer_case(*one, case_seed(name, 0), false);
  ASSERT_TRUE(answer.ok()) << answer.status().to_string();
  ASSERT_TRUE(answer->independent);
  const auto agrees = [&](const std::string& program) {
    const auto module = hlo::parse_module(program, name);
    EXPECT_TRUE(module.ok()) << module.status().to_string();
    const auto result = hlo::Evaluator(**module).run(answer->inputs);
    EXPECT_TRUE(result.ok()) << result.status().to_string();
    const std::vector<hlo::Literal> got = hlo::flatten(*result);
    bool all = got.size() == answer->outputs.size();
    for (size_t i = 0; all && i < got.size(); ++i) all = compare(answer->outputs[i], got[i], one->bound, false).agrees;
    return all;
  };
  EXPECT_TRUE(agrees(one->text));
  EXPECT_FALSE(agrees(text));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongEvaluators,
    ::testing::Values(
        // One iteration too many, an outer counter in place of an inner one, and a state that is not kept.
        WrongEvaluator{"while/s32/7_trips/unit", "direction=LT", "direction=LE"},
        WrongEvaluator{"while/bf16/0_trips/unit", "direction=LT", "direction=LE"},
        WrongEvaluator{"while/s32/nested/fixed", "direction=LT", "direction=LE"},
        WrongEvaluator{"while/f32/state_of_1003_trips/unit", "subtract(c, x)", "subtract(x, c)"},
        WrongEvaluator{"while/f32/in_place_swapped_35_trips/unit", "tuple(j, u, v, n)", "tuple(j, u, u, n)"},
        WrongEvaluator{"while/u32/100000_trips/large", "tuple(j, y, n)", "tuple(j, d, n)"},
        WrongEvaluator{"conditional/f32/pred_1/unit", "true_computation=yes, false_computation=no",
                       "true_computation=no, false_computation=yes"},
        WrongEvaluator{"conditional/f32/index_3/unit", "{first, second, third}", "{third, second, first}"},
        WrongEvaluator{"conditional/f32/index_-1/unit", "{first, second, third}", "{third, second, first}"},
        WrongEvaluator{"call/f32/17/unit", "subtract(x, y)", "subtract(y, x)"},
        // Sums of scatters, and products of reductions.
        WrongEvaluator{"scatter/f32/add_rows_s32/unit", "ROOT r = f32[] add(a, b)", "ROOT r = f32[] subtract(a, b)"},
        WrongEvaluator{"scatter/f64/add_batched_s32/unit", "ROOT r = f64[] add(a, b)", "ROOT r = f64[] maximum(a, b)"},
        WrongEvaluator{"scatter/bf16/add_elements_s32/unit", "scatter_dims_to_operand_dims={0,1}",
                       "scatter_dims_to_operand_dims={1,0}"},
        WrongEvaluator{"reduce/f32/multiply_15_all/unit", "multiply(a, b)", "add(a, b)"},
        WrongEvaluator{"reduce/c64/multiply_5x65_columns/unit", "multiply(a, b)", "add(a, b)"},
        WrongEvaluator{"set-dimension-size/f32/3x17_to_9/unit", "add(a, b)", "subtract(a, b)"},
        WrongEvaluator{"reduce-window/f32/argmax_17_by_3/distinct", "direction=GE", "direction=LE"},
        WrongEvaluator{"reduce-window/f32/argmax_pool_2x2/distinct", "select(first, i, j)", "select(first, j, i)"},
        WrongEvaluator{"scatter/f32/pair_of_operands/unit", "maximum(a, c)", "minimum(a, c)"},
        WrongEvaluator{"compare-LT-total/f8e4m3fn/529/edges", "type=TOTALORDER", "type=FLOAT"},
        WrongEvaluator{"collective-permute/f32/group_of_one/large", "{{0,0}}", "{}"},
        WrongEvaluator{"reduce/f32/argmax_17_all/ties", "select(first, i, j)", "select(first, j, i)"},
        WrongEvaluator{"map/f32/17/unit", "subtract(m, b)", "subtract(b, m)"},
        // The state is reversed before the generator is called, which gives other bits. (The other algorithm could not
        // be substituted, because its state has another size.)
        WrongEvaluator{"rng-bit-generator/u32/rng_three_fry_17/large",
                       "ROOT result = (u64[2], u32[17]) "
                       "rng-bit-generator(p0)",
                       "t = u64[2] reverse(p0), dimensions={0}\n  ROOT result = (u64[2], u32[17]) "
                       "rng-bit-generator(t)"},
        WrongEvaluator{"rng-bit-generator/u64/rng_philox_5x7/large",
                       "ROOT result = (u64[3], u64[5,7]) "
                       "rng-bit-generator(p0)",
                       "t = u64[3] reverse(p0), dimensions={0}\n  ROOT result = (u64[3], u64[5,7]) "
                       "rng-bit-generator(t)"},
        // Patterns.
        WrongEvaluator{"softmax/f32/4x8/unit", "exponential(", "tanh("},
        WrongEvaluator{"rms_norm/f32/4x8/small", "rsqrt(", "sqrt("},
        WrongEvaluator{"layer_norm/f32/large_epsilon_4x8/small", "constant(0.25)", "constant(0.26)"},
        WrongEvaluator{"gelu/f32/tanh_4x8/unit", "constant(0.044715)", "constant(0.0447)"},
        WrongEvaluator{"gelu/f16/erf_4x8/unit", "erf(", "tanh("},
        WrongEvaluator{"silu_gate/f32/4x8/unit", "logistic(", "tanh("},
        WrongEvaluator{"attention/f32/none_2x5x7/unit", "constant(0.25)", "constant(0.2501)"}));

// An evaluator in f64 loses the 1 in 2^60 + 1 - 2^60; the expected results of products and sums must not.
TEST(Answers, OfProductsAndSumsAreExact) {
  const double large = 1152921504606846976.0;  // 2^60
  const InputSpec numbers{.values = Values::Fixed, .fixed = {large, 1, -large}};
  const Case dot{
      "dot/f64/exact/fixed",
      Op::DOT,
      Type::F64,
      "HloModule m\n\nENTRY main {\n  a = f64[2,3] parameter(0)\n  b = f64[3] parameter(1)\n  ROOT r = f64[2] dot(a, "
      "b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
      {numbers, {.values = Values::Fixed, .fixed = {1}}},
      sum_bound(Type::F64, 3)};
  const Case reduce{
      "reduce/f64/exact/fixed",
      Op::REDUCE,
      Type::F64,
      "HloModule m\n\nadd {\n  a = f64[] parameter(0)\n  b = f64[] parameter(1)\n  ROOT r = f64[] add(a, b)\n}\n\n"
      "ENTRY main {\n  a = f64[3,2] parameter(0)\n  z = f64[] parameter(1)\n  ROOT r = f64[] reduce(a, z), "
      "dimensions={0,1}, to_apply=add\n}\n",
      {numbers, {.values = Values::Fixed, .fixed = {0.5}}},
      sum_bound(Type::F64, 7, false)};
  const Case convolution{"convolution/f64/exact/fixed",
                         Op::CONVOLUTION,
                         Type::F64,
                         "HloModule m\n\nENTRY main {\n  a = f64[1,3,1] parameter(0)\n  b = f64[3,1,1] parameter(1)\n  "
                         "ROOT r = f64[1,1,1] "
                         "convolution(a, b), window={size=3}, dim_labels=b0f_0io->b0f\n}\n",
                         {numbers, {.values = Values::Fixed, .fixed = {1}}},
                         sum_bound(Type::F64, 3)};
  const Case window{
      "reduce-window/f64/exact/fixed",
      Op::REDUCE_WINDOW,
      Type::F64,
      "HloModule m\n\nadd {\n  a = f64[] parameter(0)\n  b = f64[] parameter(1)\n  ROOT r = f64[] add(a, b)\n}\n\n"
      "ENTRY main {\n  a = f64[6] parameter(0)\n  z = f64[] parameter(1)\n  ROOT r = f64[2] reduce-window(a, z), "
      "window={size=3 stride=3}, to_apply=add\n}\n",
      {numbers, {.values = Values::Fixed, .fixed = {0.5}}},
      sum_bound(Type::F64, 4, false)};
  const Case complex{"dot/c128/exact/fixed",
                     Op::DOT,
                     Type::C128,
                     "HloModule m\n\nENTRY main {\n  a = c128[3] parameter(0)\n  b = c128[3] parameter(1)\n  ROOT r = "
                     "c128[] dot(a, b), "
                     "lhs_contracting_dims={0}, rhs_contracting_dims={0}\n}\n",
                     {numbers, {.values = Values::Fixed, .fixed = {1}}},
                     sum_bound(Type::C128, 3)};
  for (const auto& [one, expected] : {std::pair(dot, 1.0), std::pair(reduce, 2.5), std::pair(convolution, 1.0),
                                      std::pair(window, 1.5), std::pair(complex, 1.0)}) {
    const auto answer = answer_case(one, 0, false);
    ASSERT_TRUE(answer.ok()) << answer.status().to_string();
    const Reference& reference = answer->outputs[0];
    for (int64_t i = 0; i < reference.exact.element_count(); ++i) {
      EXPECT_EQ(reference.exact.as_double(i), expected) << one.name;
      EXPECT_EQ(reference.value.as_double(i), expected) << one.name;
      EXPECT_GT(reference.magnitude.as_double(i), large) << one.name;
    }
  }
}

}  // namespace
}  // namespace collet::conformance
