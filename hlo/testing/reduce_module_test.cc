// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/reduce_module.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "hlo/testing/random_module.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo::testing {
namespace {

std::unique_ptr<Module> parsed(const std::string& text) {
  auto module = parse_module(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? *std::move(module) : std::make_unique<Module>();
}

bool has(const Module& module, Op op) {
  for (CompId c : module.computations())
    for (InstrId id : module[c].order)
      if (module[id].op == op) return true;
  return false;
}

ReduceResult reduced(const Module& module, const std::function<bool(const Module&)>& fails) {
  ReduceOptions options;
  options.fails = [&](const Module& m) {
    EXPECT_TRUE(verify_module(m).ok());
    return fails(m);
  };
  auto result = reduce_module(module, options);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.ok() ? *std::move(result) : ReduceResult{module.clone()};
}

TEST(Reduce, OneOpIsLeft) {
  int modules = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto module = parsed(random_module(seed, {.steps = 40}));
    for (Op op : {Op::DOT, Op::SORT, Op::EXPONENTIAL, Op::REDUCE, Op::GATHER, Op::REDUCE_WINDOW}) {
      if (!has(*module, op)) continue;
      ++modules;
      const auto result = reduced(*module, [&](const Module& m) { return has(m, op); });
      EXPECT_TRUE(has(*result.module, op));
      size_t others = 0;
      const Computation& entry = result.module->entry_computation();
      for (InstrId id : entry.order) {
        const Op other = (*result.module)[id].op;
        others += other != op && other != Op::PARAMETER && other != Op::CONSTANT && other != Op::BROADCAST;
      }
      EXPECT_EQ(others, 0u) << "seed " << seed << "\n" << print_module(*result.module);
    }
  }
  EXPECT_GT(modules, 50);
}

TEST(Reduce, WhatFailsTogetherStaysTogether) {
  const auto module = parsed(
      "HloModule m\nENTRY e {\n x = f32[64,32] parameter(0)\n y = f32[64,32] parameter(1)\n a = f32[64,32] add(x, y)\n"
      " b = f32[64,32] tanh(a)\n c = f32[64,32] negate(b)\n d = f32[64,32] exponential(c)\n"
      " ROOT r = f32[64,32] multiply(d, a)\n}\n");
  const auto result = reduced(*module, [](const Module& m) { return has(m, Op::TANH) && has(m, Op::EXPONENTIAL); });
  EXPECT_EQ(result.module->instruction_count(), 3u) << print_module(*result.module);
}

TEST(Reduce, SizesShrinkAsFarAsTheFaultAllows) {
  const auto module = parsed(
      "HloModule m\nENTRY e {\n x = f32[64,48] parameter(0)\n y = f32[48,40] parameter(1)\n"
      " d = f32[64,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " ROOT r = f32[2560] reshape(d)\n}\n");
  const auto result = reduced(*module, [](const Module& m) {
    for (InstrId id : m.entry_computation().order)
      if (m[id].op == Op::DOT && m[m[id].operand(0)].shape.dim(1) > 16) return true;
    return false;
  });
  const Module& m = *result.module;
  for (InstrId id : m.entry_computation().order) {
    if (m[id].op != Op::DOT) continue;
    EXPECT_EQ(m[id].shape.element_count(), 1);
    EXPECT_EQ(m[m[id].operand(0)].shape.dim(1), 17);
  }
  EXPECT_EQ(m.instruction_count(), 3u) << print_module(m);
}

TEST(Reduce, SizesAreFoundByHalvingTheGap) {
  for (const int64_t needed : {3, 600001, 999999}) {
    const auto module =
        parsed("HloModule m\nENTRY e {\n x = f32[1000000] parameter(0)\n ROOT r = f32[1000000] negate(x)\n}\n");
    const auto size = [](const Module& m) { return m[m.entry_computation().root].shape.element_count(); };
    const auto result = reduced(*module, [&](const Module& m) { return size(m) >= needed; });
    EXPECT_EQ(size(*result.module), needed);
    EXPECT_LT(result.tried, 120u);
  }
}

TEST(Reduce, BodiesShrinkToo) {
  const auto module = parsed(
      "HloModule m\nbody {\n s = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
      " x = f32[8] get-tuple-element(s), index=1\n one = s32[] constant(1)\n n = s32[] add(i, one)\n"
      " t = f32[8] tanh(x)\n l = f32[8] log(t)\n ROOT r = (s32[], f32[8]) tuple(n, l)\n}\n"
      "cond {\n s = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
      " k = s32[] constant(5)\n ROOT r = pred[] compare(i, k), direction=LT\n}\n"
      "ENTRY e {\n x = f32[8] parameter(0)\n z = s32[] constant(0)\n t = (s32[], f32[8]) tuple(z, x)\n"
      " w = (s32[], f32[8]) while(t), condition=cond, body=body\n ROOT y = f32[8] get-tuple-element(w), index=1\n}\n");
  const auto loop = reduced(*module, [](const Module& m) { return has(m, Op::WHILE) && has(m, Op::LOG); });
  EXPECT_FALSE(has(*loop.module, Op::TANH)) << print_module(*loop.module);
  EXPECT_FALSE(has(*loop.module, Op::COMPARE)) << print_module(*loop.module);
  const auto log = reduced(*module, [](const Module& m) { return has(m, Op::LOG); });
  EXPECT_EQ(log.module->instruction_count(), 2u) << print_module(*log.module);
}

TEST(Reduce, TheSameAgain) {
  const auto odd = [](const Module& m) { return m.instruction_count() % 7 != 1 && m.instruction_count() > 4; };
  uint64_t seed = 1;
  auto module = parsed(random_module(seed, {.steps = 60}));
  while (!odd(*module)) module = parsed(random_module(++seed, {.steps = 60}));
  const auto one = reduced(*module, odd), two = reduced(*module, odd);
  EXPECT_EQ(print_module(*one.module), print_module(*two.module));
  EXPECT_EQ(one.tried, two.tried);
}

TEST(Reduce, StopsWithTheSmallestSoFar) {
  const auto module = parsed(random_module(3, {.steps = 60}));
  size_t asked = 0, last = 0;
  ReduceOptions options;
  options.fails = [&](const Module&) { return true; };
  options.stop = [&] { return ++asked > 5; };
  options.smaller = [&](const Module& m) { last = m.instruction_count(); };
  const auto result = reduce_module(*module, options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->stopped);
  EXPECT_EQ(result->module->instruction_count(), last);
  EXPECT_LT(last, module->instruction_count());
}

TEST(Reduce, ComplainsWhereNothingFails) {
  const auto module = parsed(random_module(1));
  ReduceOptions options;
  options.fails = [](const Module&) { return false; };
  EXPECT_FALSE(reduce_module(*module, options).ok());
}

// Reduces programs of the corpus to the one op that a predicate requires.
TEST(Reduce, ModelsOfTheCorpus) {
  const char* folder = std::getenv("COLLET_CORPUS_DIR");
  if (!folder) GTEST_SKIP() << "COLLET_CORPUS_DIR is not set: 5 programs of the corpus were not reduced";
  const std::pair<const char*, Op> cases[] = {{"lenet_train", Op::CONVOLUTION},
                                              {"lstm_train", Op::TANH},
                                              {"gpt2_block", Op::DOT},
                                              {"pool_grads", Op::SELECT_AND_SCATTER},
                                              {"scans", Op::REDUCE_WINDOW}};
  for (const auto& [name, op] : cases) {
    std::ifstream in(std::string(folder) + "/models/" + name + "/program.hlo");
    std::stringstream text;
    text << in.rdbuf();
    const auto module = parsed(text.str());
    ASSERT_TRUE(has(*module, op)) << name;
    const auto result = reduced(*module, [&, wanted = op](const Module& m) { return has(m, wanted); });
    std::cout << name << ": " << module->instruction_count() << " -> " << result.module->instruction_count() << " in "
              << result.tried << " tries\n";
    EXPECT_LE(result.module->instruction_count(), 12u) << print_module(*result.module);
  }
}

}  // namespace
}  // namespace collet::hlo::testing
