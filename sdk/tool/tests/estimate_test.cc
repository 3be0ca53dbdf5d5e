// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

constexpr const char* kStep = R"(HloModule step, num_partitions=16
ENTRY main {
  a = bf16[4096,4096] parameter(0), sharding={devices=[16,1]0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}
  b = bf16[4096,4096] parameter(1), sharding={devices=[16,1]0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}
  ROOT c = bf16[4096,4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[16,1]0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}
}
)";

TEST(Estimate, AStepOfWholeArrays) {
  const Folder folder;
  write(folder / "step.hlo", kStep);
  const std::string machine = " --machine templates/machines/switched_nodes.json";
  const Ran ran =
      collet("estimate " + folder / "step.hlo" + machine + " --partition --devices 16 --project 64 --json " +
             folder / "out.json" + " --html " + folder / "out.html --measured 1");
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* text : {"'step' on 16 devices", "if all communication overlaps", "limited by", "all-gather", "2 x 8",
                           "8.59 Gflop", "       64 ", "measured 1.00 ms: the estimate is"})
    EXPECT_TRUE(contains(ran.out, text)) << text << "\n" << ran.out;
  const std::string json = contents(folder / "out.json"), html = contents(folder / "out.html");
  for (const char* text : {"\"devices\": 16", "\"network_ns\"", "\"argument_bytes\": 4194304", "\"efficiency\""})
    EXPECT_TRUE(contains(json, text)) << text << "\n" << json;
  for (const char* text : {"<svg", "<h2>Collectives</h2>", "<h2>More devices"})
    EXPECT_TRUE(contains(html, text)) << text;
}

TEST(Estimate, WhatDoesNotFitIsAFailure) {
  const Folder folder;
  write(folder / "large.hlo",
        "HloModule large\nENTRY e {\n  x = f32[50000,1000000] parameter(0)\n  ROOT y = f32[50000,1000000] "
        "negate(x)\n}\n");
  const Ran ran = collet("estimate " + folder / "large.hlo --machine templates/machines/torus.json");
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(contains(ran.out, "MORE THAN THERE IS")) << ran.out;
}

TEST(Estimate, WrongUseIsNamed) {
  const Folder folder;
  write(folder / "step.hlo", kStep);
  write(folder / "bad.json", "{\"device\": {\"memory_gigabytes\": \"80\"}}");
  const std::string file = "estimate " + folder / "step.hlo",
                    machine = " --machine templates/machines/switched_nodes.json";
  const std::pair<std::string, const char*> uses[] = {
      {file, "--machine is required"},
      {file + " --machine no/such/file", "no/such/file"},
      {file + " --machine " + folder / "bad.json", "'memory_gigabytes' of 'device' is no number"},
      {file + machine + " --devices 32", "--partition divides one that is for whole arrays"},
      {file + machine + " --project 40", "not a multiple of the step's 16 devices"},
  };
  for (const auto& [arguments, says] : uses) {
    const Ran ran = collet(arguments);
    EXPECT_GE(ran.code, 2) << arguments;
    EXPECT_TRUE(contains(ran.err, says)) << arguments << "\n" << ran.err;
  }
}

}  // namespace
}  // namespace collet::tool::testing
