// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/append_sizes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::unique_ptr<Module> parsed(const std::string& header, const std::string& body) {
  auto module =
      parse_module("HloModule m" + header + "\nENTRY e {\n  x = f32[6,4] parameter(0)\n" + body + "\n}\n", "t");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? std::move(*module) : nullptr;
}

// Runs the program with the sizes, as it is and after `prepare`, which pads; returns the last `count` results.
std::vector<int64_t> sizes_of(Module& module, size_t count) {
  const Status verified = verify_module(module);
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  std::vector<std::vector<int64_t>> found;
  for (const bool padded : {false, true}) {
    if (padded) {
      PassContext context;
      const Status prepared = prepare(module, context, {}).status();
      EXPECT_TRUE(prepared.ok()) << prepared.to_string();
    }
    const auto got = Evaluator(module).run(testing::entry_inputs(module));
    EXPECT_TRUE(got.ok()) << got.status().to_string();
    if (!got.ok()) return {};
    const std::vector<Literal> all = flatten(*got);
    std::vector<int64_t>& sizes = found.emplace_back();
    for (size_t i = all.size() - count; i < all.size(); ++i) sizes.push_back(all[i].as_int(0));
  }
  EXPECT_EQ(found[0], found[1]);
  return found[0];
}

constexpr const char* kTwoSizes =
    "  n = s32[] constant(5)\n  k = s32[] constant(2)\n"
    "  a = f32[<=6,4] set-dimension-size(x, n), dimensions={0}\n"
    "  b = f32[<=6,<=4] set-dimension-size(a, k), dimensions={1}\n";

TEST(AppendSizes, OfATuple) {
  const auto module =
      parsed("", std::string(kTwoSizes) + "  ROOT r = (f32[<=6,4], f32[6,4], f32[<=6,<=4]) tuple(a, x, b)");
  const auto count = append_result_sizes(*module);
  ASSERT_TRUE(count.ok()) << count.status().to_string();
  EXPECT_EQ(*count, 3u);
  EXPECT_EQ((*module)[module->entry_computation().root].shape.to_string(),
            "(f32[<=6,4], f32[6,4], f32[<=6,<=4], s32[], s32[], s32[])");
  EXPECT_EQ(sizes_of(*module, 3), (std::vector<int64_t>{5, 5, 2}));
}

TEST(AppendSizes, OfAnArrayWithAnAlias) {
  const auto module =
      parsed(", input_output_alias={ {}: (0, {}, may-alias) }, entry_computation_layout={(f32[6,4])->f32[<=6,<=4]}",
             std::string(kTwoSizes) + "  ROOT r = f32[<=6,<=4] negate(b)");
  const auto count = append_result_sizes(*module);
  ASSERT_TRUE(count.ok()) << count.status().to_string();
  EXPECT_EQ(*count, 2u);
  const ModuleHeader& header = module->header();
  EXPECT_EQ(header.entry_result.elements().size(), 3u);
  ASSERT_EQ(header.aliases.size(), 1u);
  EXPECT_EQ(std::vector<int64_t>(header.aliases[0].output_index.begin(), header.aliases[0].output_index.end()),
            std::vector<int64_t>{0});
  EXPECT_EQ(sizes_of(*module, 2), (std::vector<int64_t>{5, 2}));
}

// The root is an instruction that returns a tuple, one element of which is a tuple.
TEST(AppendSizes, OfANestedTupleThatIsNotBuiltAtTheRoot) {
  const auto module = parsed("", std::string(kTwoSizes) + R"(
  t = (f32[<=6,4], f32[6,4]) tuple(a, x)
  p = (f32[6,4], (f32[<=6,4], f32[6,4])) tuple(x, t)
  ROOT r = (f32[6,4], (f32[<=6,4], f32[6,4])) opt-barrier(p))");
  const auto count = append_result_sizes(*module);
  ASSERT_TRUE(count.ok()) << count.status().to_string();
  EXPECT_EQ(*count, 1u);
  EXPECT_EQ(sizes_of(*module, 1), std::vector<int64_t>{5});
}

TEST(AppendSizes, KeepsShardings) {
  const auto module =
      parsed(", num_partitions=2",
             std::string(kTwoSizes) +
                 "  ROOT r = (f32[<=6,4], f32[6,4]) tuple(a, x), sharding={{replicated}, {devices=[1,2]0,1}}");
  ASSERT_TRUE(append_result_sizes(*module).ok());
  const Instruction& root = (*module)[module->entry_computation().root];
  ASSERT_TRUE(root.extras && root.extras->sharding);
  EXPECT_EQ(root.extras->sharding->to_string(), "{{replicated}, {devices=[1,2]0,1}, {replicated}}");
}

TEST(AppendSizes, AProgramOfFixedSizesStays) {
  const auto module = parsed("", "  ROOT r = f32[6,4] negate(x)");
  const auto count = append_result_sizes(*module);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 0u);
  EXPECT_FALSE((*module)[module->entry_computation().root].shape.is_tuple());
}

}  // namespace
}  // namespace collet::hlo
