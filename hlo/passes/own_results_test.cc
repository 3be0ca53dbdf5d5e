// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/own_results.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "hlo/eval/evaluator.h"
#include "hlo/program/leaves.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

/// Changes a program, and checks that it returns the same and that it computes each result by itself. Returns how many results changed.
size_t changed_results(const std::string& body) {
  auto parsed = parse_module("HloModule m\nENTRY e {\n  x = f32[2,3] parameter(0)\n" + body + "\n}\n", "t");
  EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
  if (!parsed.ok()) return 0;
  Module& module = **parsed;
  const auto before = Evaluator(module).run(testing::entry_inputs(module));
  const auto count = own_results(module);
  EXPECT_TRUE(count.ok()) << count.status().to_string();
  const Status verified = verify_module(module);
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  const auto after = Evaluator(module).run(testing::entry_inputs(module));
  EXPECT_TRUE(before.ok() && after.ok());
  if (!before.ok() || !after.ok() || !count.ok()) return 0;
  EXPECT_EQ(flatten(*before), flatten(*after));
  std::set<std::pair<uint32_t, uint32_t>> leaves;
  for (const Leaf leaf : leaves_of(module, module.entry_computation().root)) {
    EXPECT_NE(module[leaf.instr].op, Op::PARAMETER);
    EXPECT_NE(module[leaf.instr].op, Op::CONSTANT);
    EXPECT_TRUE(leaves.emplace(index_of(leaf.instr), leaf.index).second);
  }
  return *count;
}

TEST(OwnResults, OfAnArgumentThatIsReturned) {
  EXPECT_EQ(changed_results("  ROOT r = (f32[2,3]) tuple(x)"), 1u);
  EXPECT_EQ(changed_results("  t = (f32[2,3]) tuple(x)\n  ROOT r = f32[2,3] get-tuple-element(t), index=0"), 1u);
}

TEST(OwnResults, OfConstantsAndOfValuesThatAreReturnedTwice) {
  EXPECT_EQ(changed_results("  n = f32[2,3] negate(x)\n  c = s32[] constant(3)\n"
                            "  ROOT r = (f32[2,3], s32[], f32[2,3], f32[2,3]) tuple(n, c, n, x)"),
            3u);
}

TEST(OwnResults, LeaveOthersAsTheyAre) {
  EXPECT_EQ(changed_results("  ROOT n = f32[2,3] negate(x)"), 0u);
  EXPECT_EQ(changed_results(
                "  n = f32[2,3] negate(x)\n  m = f32[2,3] negate(n)\n  ROOT r = (f32[2,3], f32[2,3]) tuple(n, m)"),
            0u);
}

TEST(OwnResults, InATupleInATuple) {
  EXPECT_EQ(changed_results("  n = f32[2,3] negate(x)\n  t = (f32[2,3], f32[2,3]) tuple(n, x)\n"
                            "  ROOT r = ((f32[2,3], f32[2,3]), f32[2,3]) tuple(t, n)"),
            2u);
}

}  // namespace
}  // namespace collet::hlo
