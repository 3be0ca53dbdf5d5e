// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/processor.h"

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>

#include "sdk/codegen/schedule/lanes.h"

namespace collet::codegen {
namespace {

Target machine(int vector_bits) {
  Target t;
  t.triple = "x86_64-unknown-linux-gnu";
  t.vector_bits = vector_bits;
  t.masks = vector_bits >= 512;
  t.vector_registers = vector_bits >= 512 ? 32 : 16;
  return t;
}

/// Returns the lines of a scheduled kernel before its first expression, and its stores.
std::string schedule_of(const std::string& body, const Target& target, const std::string& flags = "") {
  Kernel kernel;
  const Status read = parse_kernel("kernel (4 buffers)" + flags + " {\n" + body + "}\n", kernel);
  EXPECT_TRUE(read.ok()) << read.message() << body;
  choose_lanes(kernel, target);
  schedule_for(kernel, target);
  const Status verified = verify_kernel(kernel);
  EXPECT_TRUE(verified.ok()) << verified.message() << print_kernel(kernel);
  std::istringstream lines(print_kernel(kernel));
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const bool is_expression = line.starts_with("  %") || line.starts_with("  r") || line.starts_with("}");
    if (!is_expression && (!line.starts_with("  store") || line.ends_with("past caches"))) out += line + "\n";
  }
  return out;
}

TEST(ProcessorSchedule, Functions_AreComputedTogether) {
  const std::string body = "outer i0: 1000\n%0 = load f32 b0[i0]\n%1 = tanh f32 %0\nstore b1[i0], %1\n";
  EXPECT_EQ(schedule_of(body, machine(512)),
            "kernel (4 buffers) {\n  outer i0: 1000 lanes 16\n  pass 0: lanes 16 together 2\n");
  EXPECT_EQ(schedule_of(body, machine(256)),
            "kernel (4 buffers) {\n  outer i0: 1000 lanes 8\n  pass 0: lanes 8 together 4\n");
}

TEST(ProcessorSchedule, CheapReduction_HasSeveralVectorsOfSums) {
  EXPECT_EQ(schedule_of("outer i0: 3\ninner i1: 4096\n%0 = load f32 b0[4096*i0 + i1]\nr0 = reduce add f32 %0 init "
                        "identity\n%1 = reduced f32 r0 result 0\nstore b1[i0], %1\n",
                        machine(256)),
            "kernel (4 buffers) {\n  outer i0: 3\n  inner i1: 4096 lanes 8\n  pass 0: lanes 32 together 1\n"
            "  pass 1: lanes 8 together 1\n");
}

TEST(ProcessorSchedule, ShortRows_AreInterleaved) {
  EXPECT_EQ(schedule_of("outer i0: 64\ninner i1: 24\n%0 = load f32 b0[24*i0 + i1]\nr0 = reduce add f32 %0 init "
                        "identity\n%1 = reduced f32 r0 result 0\nstore b1[i0], %1\n",
                        machine(256)),
            "kernel (4 buffers) {\n  outer i0: 64 interleave 4\n  inner i1: 24 lanes 8\n");
}

TEST(ProcessorSchedule, CostlyValuesOfARow_AreKept) {
  EXPECT_EQ(schedule_of("outer i0: 3\ninner i1: 1000\n%0 = load f32 b0[1000*i0 + i1]\n%1 = exponential f32 %0\nr0 = "
                        "reduce add f32 %1 init identity\n%2 = reduced f32 r0 result 0\n%3 = divide f32 %1, "
                        "%2\nstore b1[1000*i0 + i1], %3\n",
                        machine(512)),
            "kernel (4 buffers) {\n  outer i0: 3\n  inner i1: 1000 lanes 16\n  pass 0: lanes 32 together 1\n"
            "  pass 1: lanes 16 together 1\n  keep %1\n");
}

TEST(ProcessorSchedule, ManyColumns_AreReducedInStrips) {
  EXPECT_EQ(schedule_of("outer i0: 10000\ninner i1: 500\n%0 = load f32 b0[i0 + 10000*i1]\nr0 = reduce add f32 %0 init "
                        "identity\n%1 = reduced f32 r0 result 0\nstore b1[i0], %1\n",
                        machine(512)),
            "kernel (4 buffers) {\n  outer i0: 10000 lanes 16 strip 2048\n  inner i1: 500 interleave 8\n");
}

TEST(ProcessorSchedule, ShortWindows_AreUnrolledAndShareLoads) {
  EXPECT_EQ(schedule_of("outer i0: 32\nouter i1: 64\ninner i2: 3\n%0 = load f32 b0[64*i2 + i1]\n%1 = load f32 "
                        "b1[64*i0 + 64*i2 + i1]\n%2 = multiply f32 %0, %1\nr0 = reduce add f32 %2 init identity\n%3 "
                        "= reduced f32 r0 result 0\nstore b2[64*i0 + i1], %3\n",
                        machine(512)),
            "kernel (4 buffers) {\n  outer i0: 32 interleave 4\n  outer i1: 64 lanes 16\n  inner i2: 3 unroll\n");
}

TEST(ProcessorSchedule, Transposes_AreMadeInSquares) {
  EXPECT_EQ(schedule_of("outer i0: 64\nouter i1: 128\n%0 = load f32 b0[128*i0 + i1]\nstore b1[i0 + 64*i1], %0\n",
                        machine(256)),
            "kernel (4 buffers) {\n  outer i0: 16\n  outer i1: 64 lanes 8\n  outer i2: 8 transpose\n");
}

TEST(ProcessorSchedule, LargeResults_GoPastTheCaches) {
  Target target = machine(512);
  target.second_cache = 1024;
  const std::string body = "outer i0: 65536\n%0 = load f32 b0[i0]\nstore b1[i0], %0\n";
  EXPECT_EQ(schedule_of(body, target),
            "kernel (4 buffers) {\n  outer i0: 65536 lanes 16\n  store b1[i0], %0 past caches\n");
  target.triple = "aarch64-unknown-linux-gnu";
  EXPECT_EQ(schedule_of(body, target), "kernel (4 buffers) {\n  outer i0: 65536 lanes 16\n");
}

/// The parts of a packed factor take the place of each other, and are read at once.
TEST(ProcessorSchedule, ResultsInParts_StayInTheCaches) {
  Target target = machine(512);
  target.second_cache = 1024;
  const std::string body = "outer i0: 1024\nouter i1: 64\n%0 = load f32 b0[64*i0 + i1]\nstore b1[64*i0 + i1], %0\n";
  EXPECT_NE(schedule_of(body, target).find("past caches"), std::string::npos);
  EXPECT_EQ(schedule_of(body, target, " in_parts").find("past caches"), std::string::npos);
}

/// The elements of a row that is shorter than a vector would be added one by one.
TEST(ProcessorSchedule, WindowsShorterThanAVector_AreNotInLanes) {
  for (const auto& [window, bits] : {std::pair{5, 256}, {7, 256}, {9, 512}, {15, 512}}) {
    const std::string size = std::to_string(window);
    EXPECT_NE(
        schedule_of("outer i0: 4096\ninner i1: " + size + "\ninner i2: 16\n%0 = load f32 b0[i0 + i1 + 5000*i2]\n" +
                        "%1 = load f32 b1[i1 + " + size + "*i2]\n%2 = multiply f32 %0, %1\n" +
                        "r0 = reduce add f32 %2 init identity\n%3 = reduced f32 r0 result 0\nstore b2[i0], %3\n",
                    machine(bits))
            .find("  outer i0: 4096 lanes "),
        std::string::npos)
        << window;
  }
}

TEST(ProcessorSchedule, UpdatesOfAnyElements_AreInLanes) {
  const auto lanes = [](const std::string& body) {
    Kernel kernel;
    EXPECT_TRUE(parse_kernel("kernel (4 buffers) sequential {\n" + body + "}\n", kernel).ok()) << body;
    choose_lanes(kernel, machine(256));
    schedule_for(kernel, machine(256));
    EXPECT_TRUE(verify_kernel(kernel).ok()) << body;
    return kernel.lanes;
  };
  const std::string indices = "%0 = load s32 b0[i0]\n%1 = convert s64 %0\n%2 = in_range (%1) below 100\n";
  const std::string update = "update add b2 [%1] f32 %3 if %2\n";
  EXPECT_EQ(lanes("outer i0: 6400\n" + indices + "%3 = load f32 b1[i0]\n" + update), 8);
  EXPECT_EQ(lanes("outer i0: 15\n" + indices + "%3 = load f32 b1[i0]\n" + update), 1);
  // An update may change what the next one reads.
  EXPECT_EQ(lanes("outer i0: 6400\n" + indices + "%3 = load f32 b2[i0]\n" + update), 1);
}

TEST(ProcessorSchedule, ProductsOfBf16_AreUnordered) {
  EXPECT_EQ(
      schedule_of("outer i0: 3\ninner i1: 2000\n%0 = load bf16 b0[2000*i0 + i1]\n%1 = convert f32 %0\nr0 = reduce "
                  "add f32 %1 init identity\n%2 = reduced f32 r0 result 0\nstore b1[i0], %2\n",
                  machine(512)),
      "kernel (4 buffers) unordered {\n  outer i0: 3\n  inner i1: 2000 lanes 16\n  pass 0: lanes 64 together "
      "1\n  pass 1: lanes 16 together 1\n");
}

TEST(ProcessorSchedule, ScalableVectors_AreNotUsedForSquares) {
  Target target = machine(128);
  target.triple = "riscv64-unknown-linux-gnu";
  target.scalable_bits = 64;
  EXPECT_EQ(schedule_of("outer i0: 1000\n%0 = load f32 b0[i0]\nstore b1[i0], %0\n", target),
            "kernel (4 buffers) scalable {\n  outer i0: 1000 lanes 4\n");
  EXPECT_EQ(
      schedule_of("outer i0: 64\nouter i1: 128\n%0 = load f32 b0[128*i0 + i1]\nstore b1[i0 + 64*i1], %0\n", target),
      "kernel (4 buffers) {\n  outer i0: 32\n  outer i1: 64 lanes 4\n  outer i2: 4 transpose\n");
}

/// A number of tuning.def may be unsuitable, but never makes a schedule that is illegal.
TEST(ProcessorSchedule, ExtremeNumbers_MakeLegalSchedules) {
  const char* const bodies[] = {
      "outer i0: 64\ninner i1: 24\n%0 = load f32 b0[24*i0 + i1]\nr0 = reduce add f32 %0 init identity\n%1 = reduced "
      "f32 "
      "r0 result 0\nstore b1[i0], %1\n",
      "outer i0: 64\nouter i1: 100\n%0 = load s64 b1[i1]\n%1 = load f32 b0[100*i0 + %0]\nstore b2[100*i0 + i1], %1\n",
      "outer i0: 1000\nouter i1: 1000\n%0 = load f32 b0[i0 + 1000*i1]\nstore b1[1000*i0 + i1], %0\n",
      "outer i0: 1000\ninner i1: 4096\n%0 = load f32 b0[i0 + 1000*i1]\nr0 = reduce add f32 %0 init identity\n%1 = "
      "reduced "
      "f32 r0 result 0\nstore b1[i0], %1\n"};
  for (size_t i = 0; const TuningEntry* const entry = tuning_entry(i); ++i) {
    for (const int64_t value : {int64_t{1}, int64_t{INT32_MAX}}) {
      SCOPED_TRACE(std::string(entry->name) + " = " + std::to_string(value));
      Target target = machine(512);
      ASSERT_TRUE(set_tuning(target.tuning, entry->name, value).ok());
      for (const char* const body : bodies) schedule_of(body, target);
    }
    Tuning tuning;
    EXPECT_EQ(set_tuning(tuning, entry->name, 0).code(), COLLET_INVALID_ARGUMENT);
  }
}

TEST(ProcessorSchedule, RuleThatIsOff_DoesNothing) {
  Kernel kernel;
  ASSERT_TRUE(parse_kernel("kernel (2 buffers) {\nouter i0: 1000\n%0 = load f32 b0[i0]\n%1 = tanh f32 %0\n"
                           "store b1[i0], %1\n}",
                           kernel)
                  .ok());
  choose_lanes(kernel, vector_machine(512 / 32));
  const Kernel before = kernel;
  ScheduleLog log;
  schedule_for(kernel, machine(512), {"together"}, &log);
  EXPECT_EQ(kernel, before);
  schedule_for(kernel, machine(512), {"keep"});
  EXPECT_NE(kernel, before);
  size_t rules = 0;
  while (schedule_rule(rules)) ++rules;
  ASSERT_EQ(log.size(), rules);
  for (size_t i = 0; i < rules; ++i) {
    EXPECT_STREQ(log[i].rule, schedule_rule(i));
    EXPECT_NE(log[i].why_not, nullptr) << log[i].rule;
    EXPECT_EQ(std::string(log[i].why_not) == "it is switched off", std::string(log[i].rule) == "together");
  }
}

TEST(ProcessorSchedule, EachRule_CanBeSwitchedOffAlone) {
  const std::string bodies[] = {
      "outer i0: 64\ninner i1: 24\n%0 = load f32 b0[24*i0 + i1]\nr0 = reduce add f32 %0 init identity\n%1 = reduced "
      "f32 r0 result 0\nstore b1[i0], %1\n",
      "outer i0: 64\nouter i1: 128\n%0 = load f32 b0[128*i0 + i1]\nstore b1[i0 + 64*i1], %0\n",
      "outer i0: 10000\ninner i1: 500\n%0 = load f32 b0[i0 + 10000*i1]\nr0 = reduce add f32 %0 init identity\n%1 = "
      "reduced f32 r0 result 0\nstore b1[i0], %1\n"};
  for (const std::string& body : bodies) {
    for (size_t i = 0; const char* const rule = schedule_rule(i); ++i) {
      Kernel kernel;
      ASSERT_TRUE(parse_kernel("kernel (2 buffers) {\n" + body + "}", kernel).ok());
      choose_lanes(kernel, vector_machine(512 / 32));
      schedule_for(kernel, machine(512), {rule});
      const Status verified = verify_kernel(kernel);
      EXPECT_TRUE(verified.ok()) << rule << ": " << verified.message() << "\n" << print_kernel(kernel);
    }
  }
}

}  // namespace
}  // namespace collet::codegen
