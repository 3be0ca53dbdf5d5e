// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/batch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

constexpr const char* kSum =
    "HloModule m\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
    "ENTRY main {\n  x = f32[4] parameter(0)\n  zero = f32[] constant(0)\n"
    "  ROOT s = f32[] reduce(x, zero), dimensions={0}, to_apply=add\n}\n";
constexpr const char* kTwo =
    "HloModule m\nENTRY main {\n  x = s32[2] parameter(0)\n  y = s32[2] parameter(1)\n  a = s32[2] add(x, y)\n"
    "  ROOT t = (s32[2], s32[2]) tuple(a, x)\n}\n";

TEST(JoinPrograms, HasTheirParametersAndResultsInOrder) {
  const auto text = join_programs(std::vector<std::string>{kSum, kTwo, kSum});
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  const auto module = hlo::parse_module(*text, "batch");
  ASSERT_TRUE(module.ok()) << module.status().to_string() << *text;
  const hlo::Module& m = **module;
  const Status verified = hlo::verify_module(m);
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  EXPECT_EQ(m.entry_computation().parameters.size(), 4u);
  EXPECT_EQ(m[m.entry_computation().root].shape.to_string(), "(f32[], s32[2], s32[2], f32[])");
}

TEST(JoinPrograms, RefusesHeadersWithMoreThanAName) {
  const std::string aliased =
      std::string(kTwo).replace(0, 11, "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n");
  const auto text = join_programs(std::vector<std::string>{kSum, aliased});
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.status().message().find("program 1"), std::string::npos) << text.status().message();
}

}  // namespace
}  // namespace collet::conformance
