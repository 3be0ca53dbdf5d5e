// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/actions.h"

#include <collet/codegen/kernel_text.h>

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace collet::codegen {
namespace {

Kernel kernel_of(const std::string& text) {
  Kernel k;
  const Status read = parse_kernel(text, k);
  EXPECT_TRUE(read.ok()) << read.message() << text;
  return k;
}

const char* const kRows = R"(kernel (2 buffers) {
  outer i0: 64
  inner i1: 24
  %0 = load f32 b0[24*i0 + i1]
  %1 = exponential f32 %0
  r0 = reduce add f32 %1 init identity
  %2 = reduced f32 r0 result 0
  %3 = divide f32 %1, %2
  store b1[24*i0 + i1], %3
})";

TEST(Actions, AppliedAndPrinted_AreTheSame) {
  const std::string schedules[] = {
      "",
      "lanes i1 8",
      "lanes i1 8; interleave i0 4",
      "lanes i1 8; keep %1",
      "lanes i1 8; pass 0 lanes 16 together 1; pass 1 lanes 8 together 2; keep %1",
      "lanes i0 16; unroll",
      "lanes i1 8; scalable",
  };
  for (const std::string& actions : schedules) {
    Kernel k = kernel_of(kRows);
    const Status applied = apply_actions(actions, k);
    ASSERT_TRUE(applied.ok()) << actions << ": " << applied.message();
    EXPECT_EQ(print_actions(k), actions) << print_kernel(k);
    // What the kernel said before does not matter.
    ASSERT_TRUE(apply_actions("", k).ok());
    EXPECT_EQ(print_actions(k), "");
  }
}

TEST(Actions, OfOtherForms_AreThoseOfTheText) {
  Kernel square = kernel_of(
      "kernel (2 buffers) {\nouter i0: 64\nouter i1: 128\n%0 = load f32 b0[128*i0 + i1]\n"
      "store b1[i0 + 64*i1], %0\n}");
  ASSERT_TRUE(apply_actions("transpose i1\n lanes i0 8 ; past_caches b1", square).ok());
  EXPECT_EQ(square.loops[1].kind, LoopKind::kTranspose);
  EXPECT_EQ(print_actions(square), "lanes i0 8; transpose i1; past_caches b1");
  Kernel columns = kernel_of(
      "kernel (2 buffers) {\nouter i0: 10000\ninner i1: 500\n%0 = load f32 b0[i0 + 10000*i1]\n"
      "r0 = reduce add f32 %0 init identity\n%1 = reduced f32 r0 result 0\nstore b1[i0], %1\n}");
  ASSERT_TRUE(apply_actions("lanes i0 8; strip i0 512; interleave i1 4", columns).ok());
  EXPECT_EQ(print_actions(columns), "lanes i0 8; strip i0 512; interleave i1 4");
}

TEST(Actions, ThatAreNotLegal_SayWhyAndChangeNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {"vectorize i1", "'vectorize i1': it is no action, or has another number of words"},
      {"lanes i2 8", "'lanes i2 8': there is no such loop"},
      {"lanes i1 x", "'lanes i1 x': lanes are a number of at least 1"},
      {"lanes i1 6", "kernel: lanes: their number is no power of two"},
      {"lanes i1 8; interleave i1 2", "kernel: loop i1: its iterations have an order, or are in lanes"},
      {"interleave i0 1", "'interleave i0 1': at least 2 iterations are interleaved"},
      {"pass 7 lanes 8 together 1", "'pass 7 lanes 8 together 1': there is no such pass"},
      {"pass 0 lanes", "'pass 0 lanes': it is no action, or has another number of words"},
      {"keep %9", "'keep %9': there is no such expression"},
      {"keep %2", "kernel: schedule: %2 is kept, but is no value of a row"},
      {"past_caches b0", "'past_caches b0': there is no store to such a buffer"},
      {"strip i0 0", "'strip i0 0': a strip has at least 1 iteration"},
      {"unroll; lanes i1 8", "kernel: loop i1: a loop in lanes is unrolled"},
      {"unordered", "kernel: schedule: not in any order: lanes are not all reduced"},
      {"lanes i0 8; unordered", "kernel: schedule: not in any order: lanes are not all reduced"},
      {"lanes i1 8; unordered", "kernel: schedule: not in any order: there are stores in the inner loops"},
      {"lanes i0 8; strip i0 16", "kernel: loop i0: no strips: not all loads are of neighbours of a row"},
  };
  for (const auto& [actions, message] : cases) {
    Kernel k = kernel_of(kRows);
    const Kernel before = k;
    const Status applied = apply_actions(actions, k);
    EXPECT_EQ(applied.code(), COLLET_INVALID_ARGUMENT) << actions;
    EXPECT_EQ(applied.message(), message) << actions;
    EXPECT_EQ(k, before) << actions;
  }
}

TEST(Actions, OfAKernelThatIsRunInParts_LeaveItsFirstLoop) {
  Kernel k = kernel_of(kRows);
  k.in_parts = true;
  EXPECT_EQ(apply_actions("lanes i0 8", k).message(), "kernel: lanes: loop i0 is run in parts of any size");
  EXPECT_TRUE(apply_actions("lanes i1 8", k).ok());
}

TEST(Schedules, OfSeveralKernels_AreReadByName) {
  Schedules read;
  ASSERT_TRUE(read_schedules("# by hand\nkernel0: lanes i1 8\n  keep %1 # costly\n\nkernel3:\n", "", read).ok());
  ASSERT_EQ(read.size(), 2U);
  Kernel k = kernel_of(kRows);
  ASSERT_TRUE(apply_actions(read["kernel0"], k).ok());
  EXPECT_EQ(print_actions(k), "lanes i1 8; keep %1");
  const std::string expected = "expected 'NAME: actions' or 'target NAME'";
  EXPECT_EQ(read_schedules("lanes i1 8\n", "", read).message(), "line 1: " + expected);
  read.clear();
  EXPECT_EQ(read_schedules("\n  lanes i1 8\n", "", read).message(), "line 2: " + expected);
  EXPECT_EQ(read_schedules("a: \na: \n", "", read).message(), "line 2: a stands here twice");
}

TEST(Schedules, OfOtherMachines_AreSkipped) {
  Schedules read;
  const char* const text =
      "kernel0: lanes i0 8\ntarget other,128,16\nkernel1: lanes i0 4\n  unroll\ntarget mine,512,32\n"
      "kernel2: lanes i0 16\n";
  ASSERT_TRUE(read_schedules(text, "mine,512,32", read).ok());
  EXPECT_TRUE(read.contains("kernel0"));
  EXPECT_FALSE(read.contains("kernel1"));
  EXPECT_TRUE(read.contains("kernel2"));
  EXPECT_EQ(read_schedules("target other,128,16\nnonsense\n", "mine,512,32", read).code(), COLLET_INVALID_ARGUMENT);
}

TEST(Schedules, Key_IsOfWhatAKernelComputes) {
  Kernel k = kernel_of(kRows);
  const std::string key = schedule_key(k);
  EXPECT_EQ(key.size(), 17U);
  ASSERT_TRUE(apply_actions("lanes i1 8; keep %1", k).ok());
  EXPECT_EQ(schedule_key(k), key);
  k.loops[0].size = 65;
  EXPECT_NE(schedule_key(k), key);
}

}  // namespace
}  // namespace collet::codegen
