// SPDX-License-Identifier: Apache-2.0
// Tests schedules and buffer plans: only values that may share memory do, updates happen in place where they can, and
// scheduling lowers the peak of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "hlo/passes/pipeline.h"
#include "hlo/passes/plan_buffers.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::unique_ptr<Module> parsed(const std::string& text) {
  auto module = parse_module(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? *std::move(module) : std::make_unique<Module>();
}

InstrId named(const Module& m, std::string_view name) {
  for (CompId c : m.computations())
    for (InstrId id : m[c].order)
      if (m[id].name == name) return id;
  ADD_FAILURE() << name << " is gone";
  return InstrId::None;
}

constexpr char kScan[] =
    "HloModule scan\n"
    "condition {\n  s = (s32[], f32[1000,64], f32[64]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
    "  n = s32[] constant(1000)\n  ROOT c = pred[] compare(i, n), direction=LT\n}\n"
    "body {\n  s = (s32[], f32[1000,64], f32[64]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
    "  all = f32[1000,64] get-tuple-element(s), index=1\n  x = f32[64] get-tuple-element(s), index=2\n"
    "  zero = s32[] constant(0)\n  one = s32[] constant(1)\n  next = s32[] add(i, one)\n"
    "  y = f32[64] tanh(x)\n  row = f32[1,64] reshape(y)\n"
    "  put = f32[1000,64] dynamic-update-slice(all, row, i, zero)\n"
    "  ROOT t = (s32[], f32[1000,64], f32[64]) tuple(next, put, y)\n}\n"
    "ENTRY main {\n  x = f32[64] parameter(0)\n  zero = s32[] constant(0)\n  nought = f32[] constant(0)\n"
    "  all = f32[1000,64] broadcast(nought), dimensions={}\n"
    "  init = (s32[], f32[1000,64], f32[64]) tuple(zero, all, x)\n"
    "  loop = (s32[], f32[1000,64], f32[64]) while(init), condition=condition, body=body\n"
    "  out = f32[1000,64] get-tuple-element(loop), index=1\n  ROOT r = f32[1000,64] negate(out)\n}\n";

// The rows of a scan are written directly into the result: the large array is not copied, neither in an iteration nor
// before or after the loop.
TEST(Plan, AScanUpdatesInPlace) {
  const auto module = parsed(kScan);
  const auto plan = plan_buffers(*module);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  const InstrId loop = named(*module, "loop");
  const uint64_t state = plan->offset({loop, 1});
  ASSERT_NE(state, BufferPlan::kNone);
  EXPECT_EQ(plan->offset({named(*module, "put"), 0}), state);
  CompId body = CompId::None;
  for (CompId c : module->computations())
    if ((*module)[c].name == "body") body = c;
  EXPECT_EQ(plan->offset({(*module)[body].parameters[0], 1}), state);
  // The broadcast that initialises the array has the same memory.
  for (InstrId id : module->entry_computation().order) {
    if ((*module)[id].op == Op::BROADCAST) {
      EXPECT_EQ(plan->offset({id, 0}), state);
    }
  }
  EXPECT_LT(plan->bytes, 2u * 1000 * 64 * 4);
}

// If the old rows are read after the update, the update must not overwrite them.
TEST(Plan, WhatIsReadLaterIsNotOverwritten) {
  std::string text = kScan;
  const std::string from = "  ROOT t = (s32[], f32[1000,64], f32[64]) tuple(next, put, y)\n";
  text.replace(text.find(from), from.size(),
               "  sum = f32[1000,64] add(put, all)\n"
               "  ROOT t = (s32[], f32[1000,64], f32[64]) tuple(next, sum, y)\n");
  const auto module = parsed(text);
  const auto plan = plan_buffers(*module);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_NE(plan->offset({named(*module, "put"), 0}), plan->offset({named(*module, "loop"), 1}));
}

TEST(Plan, ElementwiseChainsShareOnePlace) {
  const auto module = parsed(
      "HloModule m\nENTRY e {\n  x = f32[1024] parameter(0)\n  a = f32[1024] negate(x)\n  b = f32[1024] tanh(a)\n"
      "  c = f32[1024] exponential(b)\n  d = f32[1024] sine(c)\n  ROOT r = f32[1024] cosine(d)\n}\n");
  const auto plan = plan_buffers(*module);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->bytes, 4096u);
}

// Compares the arena size of each program of the corpus in its original order with that after the pass schedule.
TEST(Schedule, LowersThePeakOfTheModels) {
  const char* folder = std::getenv("COLLET_CORPUS_DIR");
  if (!folder) GTEST_SKIP() << "COLLET_CORPUS_DIR is not set: no program of the corpus was scheduled";
  std::vector<std::filesystem::path> programs;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(folder) + "/models"))
    if (std::filesystem::exists(entry.path() / "program.hlo")) programs.push_back(entry.path());
  std::sort(programs.begin(), programs.end());
  uint64_t sum_before = 0, sum_after = 0;
  int lower = 0, higher = 0;
  for (const auto& path : programs) {
    std::ifstream in(path / "program.hlo");
    std::stringstream text;
    text << in.rdbuf();
    const auto module = parsed(text.str());
    PassContext context;
    ASSERT_TRUE(prepare(*module, context).ok()) << path;
    ASSERT_TRUE(propose_fusions(*module, context).ok()) << path;
    const auto before = plan_buffers(*module);
    static constexpr std::string_view kSchedule[] = {"schedule"};
    ASSERT_TRUE(run_passes(*module, context, kSchedule).ok()) << path;
    ASSERT_TRUE(verify_module(*module).ok()) << path;
    const auto after = plan_buffers(*module);
    ASSERT_TRUE(before.ok() && after.ok()) << path;
    std::cout << path.filename().string() << ": " << before->bytes << " -> " << after->bytes << " bytes\n";
    sum_before += before->bytes;
    sum_after += after->bytes;
    lower += after->bytes < before->bytes;
    higher += after->bytes > before->bytes;
  }
  std::cout << programs.size() << " programs, " << sum_before << " -> " << sum_after << " bytes; " << lower
            << " lower, " << higher << " higher\n";
  EXPECT_LT(sum_after, sum_before);
  EXPECT_EQ(higher, 0);
}

}  // namespace
}  // namespace collet::hlo
