// SPDX-License-Identifier: Apache-2.0
#include "hlo/eval/evaluator.h"

#include <gtest/gtest.h>

#include <chrono>

#include "hlo/eval/text_modules_test.h"
#include "hlo/ops/rules.h"

namespace collet::hlo {
namespace {

InstrId must(Expected<InstrId> id) {
  EXPECT_TRUE(id.ok()) << id.status().to_string();
  return id.ok() ? *id : InstrId::None;
}

// The state is (counter, array); the body sets array[counter] = counter; the loop ends when counter = size.
TEST(Evaluator, WhileUpdatesInPlace) {
  Module m("loop");
  const Shape s32 = Shape::scalar(Type::S32), array = Shape::array(Type::S32, {1000});
  const Shape state = Shape::tuple({s32, array});
  const auto element = [&](CompId c, InstrId tuple, int64_t index) {
    auto* attrs = m.make<TupleIndexAttrs>();
    attrs->index = index;
    return must(append_inferred(m, c, Op::GET_TUPLE_ELEMENT, std::vector{tuple}, attrs));
  };
  const CompId condition = m.add_computation("condition");
  {
    const InstrId p = m.append_parameter(condition, 0, state);
    auto* compare = m.make<CompareAttrs>();
    compare->direction = Direction::LT;
    const InstrId limit = m.append_constant(condition, Literal::scalar_int(Type::S32, 1000));
    m[condition].root =
        must(append_inferred(m, condition, Op::COMPARE, std::vector{element(condition, p, 0), limit}, compare));
  }
  const CompId body = m.add_computation("body");
  {
    const InstrId p = m.append_parameter(body, 0, state);
    const InstrId i = element(body, p, 0), a = element(body, p, 1);
    const InstrId row =
        must(append_inferred(m, body, Op::RESHAPE, std::vector{i}, nullptr, {}, m.keep(Shape::array(Type::S32, {1}))));
    const InstrId updated = must(append_inferred(m, body, Op::DYNAMIC_UPDATE_SLICE, std::vector{a, row, i}));
    const InstrId one = m.append_constant(body, Literal::scalar_int(Type::S32, 1));
    const InstrId next = must(append_inferred(m, body, Op::ADD, std::vector{i, one}));
    m[body].root = must(append_inferred(m, body, Op::TUPLE, std::vector{next, updated}));
  }
  const CompId main = m.add_computation("main");
  const InstrId zero = m.append_constant(main, Literal::scalar_int(Type::S32, 0));
  const InstrId start = m.append_parameter(main, 0, array);
  const InstrId init = must(append_inferred(m, main, Op::TUPLE, std::vector{zero, start}));
  m[main].root = must(append_inferred(m, main, Op::WHILE, std::vector{init}, nullptr, std::vector{condition, body}));
  m.set_entry(main);
  auto result = Evaluator(m).run({Literal::zeros(array)});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result->element(0).as_int(0), 1000);
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(result->element(1).as_int(i), i);
}

TEST(Evaluator, RefusesWrongArguments) {
  Module m("id");
  const CompId main = m.add_computation("main");
  m[main].root = m.append_parameter(main, 0, Shape::array(Type::F32, {2}));
  m.set_entry(main);
  EXPECT_FALSE(Evaluator(m).run({}).ok());
  EXPECT_FALSE(Evaluator(m).run({Literal::zeros(Shape::array(Type::F32, {3}))}).ok());
  EXPECT_FALSE(Evaluator(m).run({Literal::zeros(Shape::array(Type::F64, {2}))}).ok());
  EXPECT_TRUE(Evaluator(m).run({Literal::zeros(Shape::array(Type::F32, {2}))}).ok());
}

TEST(Evaluator, StopsWhenCancelled) {
  Module m("id");
  const CompId main = m.add_computation("main");
  m[main].root = m.append_parameter(main, 0, Shape::array(Type::F32, {2}));
  m.set_entry(main);
  const std::atomic<bool> cancel = true;
  EvalOptions options;
  options.cancel = &cancel;
  auto result = Evaluator(m, options).run({Literal::zeros(Shape::array(Type::F32, {2}))});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::Cancelled);
}

// Returns the results with the usual choices, and with the others.
std::pair<Literal, Literal> both_choices(const std::string& text) {
  EvalOptions options;
  options.other_choices = true;
  const auto usual = testing::evaluate_text(text), other = testing::evaluate_text(text, {}, options);
  EXPECT_TRUE(usual.ok() && other.ok()) << usual.status().to_string() << other.status().to_string();
  return usual.ok() && other.ok() ? std::pair(*usual, *other) : std::pair<Literal, Literal>();
}

std::string sort_of_pairs(const std::string& direction, const std::string& stable) {
  return "HloModule m\nc { a = s32[] parameter(0) b = s32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) "
         "ROOT r = pred[] compare(a, b), direction=" +
         direction +
         " }\nENTRY e { k = s32[5] constant({1, 0, 1, 0, 2}) i = s32[5] iota(), iota_dimension=0 "
         "s = (s32[5], s32[5]) sort(k, i), dimensions={0}, is_stable=" +
         stable + ", to_apply=c ROOT p = s32[5] get-tuple-element(s), index=1 }";
}

TEST(OtherChoices, OrderOfElementsThatASortLeavesInEitherOrder) {
  const auto ints = [](const Literal& value) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < value.element_count(); ++i) out.push_back(value.as_int(i));
    return out;
  };
  const std::vector<int64_t> stable = {1, 3, 0, 2, 4}, turned = {3, 1, 2, 0, 4};
  const auto [by_less, by_less_too] = both_choices(sort_of_pairs("LT", "true"));
  EXPECT_EQ(ints(by_less), stable);
  EXPECT_EQ(ints(by_less_too), stable);
  const auto [unstable, other_unstable] = both_choices(sort_of_pairs("LT", "false"));
  EXPECT_EQ(ints(unstable), stable);
  EXPECT_EQ(ints(other_unstable), turned);
  // A comparator that puts equal elements before one another is no strict order, so that nothing is promised of them.
  const auto [no_order, other_no_order] = both_choices(sort_of_pairs("LE", "true"));
  EXPECT_NE(ints(no_order), ints(other_no_order));
}

TEST(OtherChoices, FactorOfWhatIsNotPositiveDefinite) {
  const auto factor = [](const std::string& matrix) {
    return both_choices("HloModule m\nENTRY e { a = f32[2,2] constant(" + matrix +
                        ") ROOT l = f32[2,2] cholesky(a), lower=true }");
  };
  const auto [definite, definite_too] = factor("{{4, 2}, {2, 3}}");
  testing::expect_same(definite, definite_too);
  const auto [indefinite, other] = factor("{{1, 2}, {2, 1}}");
  EXPECT_TRUE(std::isnan(indefinite.as_double(0)));
  EXPECT_FALSE(std::isnan(other.as_double(0)));
}

constexpr const char* kEndless = R"(
HloModule m
c { p = s32[] parameter(0) ROOT yes = pred[] constant(true) }
b { p = s32[] parameter(0) one = s32[] constant(1) ROOT next = s32[] add(p, one) }
ENTRY e { zero = s32[] constant(0) ROOT endless = s32[] while(zero), condition=c, body=b })";

Status failure(const std::string& text, const EvalLimits& limits) {
  EvalOptions options;
  options.limits = limits;
  const auto result = testing::evaluate_text(text, {}, options);
  return result.ok() ? ok_status() : result.status();
}

TEST(EvalLimits, ALoopWithoutEndStopsAtTheDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  const Status status = failure(kEndless, {.seconds = 0.05});
  EXPECT_EQ(status.code(), Code::DeadlineExceeded);
  EXPECT_NE(status.message().find("'endless'"), std::string::npos) << status.message();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(EvalLimits, WhatNoMemoryHoldsIsNamed) {
  const Status status = failure(R"(
HloModule m
f { ROOT big = f32[<=1099511627776] custom-call(), custom_call_target="AllocateBuffer" }
ENTRY e { c = f32[<=1099511627776] call(), to_apply=f ROOT n = s32[] get-dimension-size(c), dimensions={0} })",
                                {});
  EXPECT_EQ(status.code(), Code::ResourceExhausted);
  EXPECT_NE(status.message().find("f32[<=1099511627776] takes more memory than there is"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("'c'"), std::string::npos) << status.message();
}

TEST(EvalLimits, ALoopWithoutEndStopsAfterItsSteps) {
  const Status status = failure(kEndless, {.steps = 5000});
  EXPECT_EQ(status.code(), Code::ResourceExhausted);
  EXPECT_NE(status.message().find("'endless'"), std::string::npos) << status.message();
}

TEST(EvalLimits, ALoopWithoutEndOfOneParticipantEndsAll) {
  EvalOptions options;
  options.replicas = 2;
  options.limits.seconds = 0.05;
  const std::string text = R"(
HloModule m, replica_count=2
c { p = (u32[], u32[]) parameter(0) id = u32[] get-tuple-element(p), index=0 zero = u32[] constant(0)
  ROOT first = pred[] compare(id, zero), direction=EQ }
b { p = (u32[], u32[]) parameter(0) id = u32[] get-tuple-element(p), index=0 n = u32[] get-tuple-element(p), index=1
  one = u32[] constant(1) next = u32[] add(n, one) ROOT t = (u32[], u32[]) tuple(id, next) }
s { x = u32[] parameter(0) y = u32[] parameter(1) ROOT z = u32[] add(x, y) }
ENTRY e {
  id = u32[] replica-id()
  state = (u32[], u32[]) tuple(id, id)
  endless = (u32[], u32[]) while(state), condition=c, body=b
  n = u32[] get-tuple-element(endless), index=1
  ROOT sum = u32[] all-reduce(n), replica_groups={{0,1}}, to_apply=s
})";
  const auto result = testing::evaluate_text(text, {}, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::DeadlineExceeded) << result.status().to_string();
}

TEST(EvalLimits, AHugeValueIsRefusedBeforeItIsComputed) {
  const std::string text = "HloModule m\nENTRY e { ROOT huge = f32[1048576,1048576,1048576] iota(), iota_dimension=0 }";
  const Status status = failure(text, {.value_bytes = 1 << 20});
  EXPECT_EQ(status.code(), Code::ResourceExhausted);
  EXPECT_NE(status.message().find("'huge'"), std::string::npos) << status.message();
}

TEST(EvalLimits, WhatStaysWithinThemRuns) {
  const std::string text = "HloModule m\nENTRY e { ROOT i = s32[256] iota(), iota_dimension=0 }";
  EXPECT_TRUE(failure(text, {.seconds = 60, .steps = 1, .value_bytes = 1024}).ok());
  EXPECT_FALSE(failure(text, {.value_bytes = 1023}).ok());
}

}  // namespace
}  // namespace collet::hlo
