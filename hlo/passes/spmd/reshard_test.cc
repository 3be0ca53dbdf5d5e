// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/reshard.h"

#include <gmock/gmock.h>

#include <array>

#include "hlo/text/parser.h"

namespace collet::hlo::spmd {
namespace {

constexpr size_t kPartitions = 8;

// Reads a sharding in HLO text by parsing a parameter that has it.
ArraySharding sharding(const std::string& text, size_t rank) {
  const auto module = parse_module("HloModule m\nENTRY e {\n  ROOT p = f32[] parameter(0), sharding=" + text + "\n}\n");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  const Instruction& p = (**module)[(*module)->entry_computation().root];
  const auto out = from_hlo_sharding(*p.extras->sharding, rank, kPartitions);
  EXPECT_TRUE(out.has_value()) << text;
  return out.value_or(ArraySharding(rank));
}

// Plans a reshard of an array of f32: its steps and bytes.
struct Planned {
  std::string steps;
  double bytes = 0;
};

Planned plan(std::initializer_list<int64_t> dims, const std::string& from, const std::string& to) {
  const Shape shape = Shape::array(Type::F32, dims);
  const auto rank = dims.size();
  const ReshardPlan out = plan_reshard(shape, sharding(from, rank), sharding(to, rank), DeviceGroups::one(kPartitions));
  return {out.to_string(), out.bytes};
}

constexpr char kReplicated[] = "{replicated}";

TEST(Reshard, ReplicatedToSplit_IsSliced) {
  const Planned p = plan({16, 16}, kReplicated, "{devices=[8,1]<=[8]}");
  EXPECT_EQ(p.steps, "slice 0");
  EXPECT_EQ(p.bytes, 0);
}

TEST(Reshard, SplitToReplicated_IsGathered) {
  const Planned p = plan({16, 16}, "{devices=[8,1]<=[8]}", kReplicated);
  EXPECT_EQ(p.steps, "all-gather 0");
  EXPECT_EQ(p.bytes, 7 * 16 * 2 * 4);
}

TEST(Reshard, SplitMovesToAnotherDimension_ByAllToAll) {
  const Planned p = plan({16, 16}, "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}");
  EXPECT_EQ(p.steps, "all-to-all 0->1");
  EXPECT_EQ(p.bytes, 7.0 / 8 * 16 * 2 * 4);
}

TEST(Reshard, MinorMeshAxis_IsGatheredAlone) {
  const Planned p = plan({16}, "{devices=[8]<=[8]}", "{devices=[2,4]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(p.steps, "all-gather 0");
  EXPECT_EQ(p.bytes, 3 * 2 * 4);
}

TEST(Reshard, OrderOfDevices_IsPermuted) {
  const Planned p = plan({16}, "{devices=[8]<=[8]}", "{devices=[8]7,6,5,4,3,2,1,0}");
  EXPECT_EQ(p.steps, "permute");
  EXPECT_EQ(p.bytes, 2 * 4);
}

TEST(Reshard, MajorMeshAxis_IsPermutedInwardBeforeItIsGathered) {
  const Planned p = plan({16}, "{devices=[8]<=[8]}", "{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(p.steps, "permute, all-gather 0");
  EXPECT_EQ(p.bytes, 2 * 4 + 2 * 4);
}

TEST(Reshard, SumThatBecomesSplit_IsReduceScattered) {
  const Planned p = plan({16, 16}, "{devices=[1,1,8]<=[8] last_tile_dims={unreduced}}", "{devices=[8,1]<=[8]}");
  EXPECT_EQ(p.steps, "reduce-scatter 0");
  EXPECT_EQ(p.bytes, 7 * 2 * 16 * 4);
}

TEST(Reshard, SumThatStaysWhole_IsAllReduced) {
  const Planned p = plan({16, 16}, "{unreduced}", kReplicated);
  EXPECT_EQ(p.steps, "all-reduce");
  EXPECT_EQ(p.bytes, 2 * 7.0 / 8 * 16 * 16 * 4);
}

TEST(Reshard, SumAlongTwoAxes_IsScatteredAlongTheOneThatSplits) {
  const Planned p = plan({16, 16}, "{unreduced}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(p.steps, "reduce-scatter 0, all-reduce");
  EXPECT_EQ(p.bytes, 8 * 16 * 4 + 2 * 3.0 / 4 * 8 * 16 * 4);
}

TEST(Reshard, SplitBeforeSum_SendsLess) {
  const Planned p = plan({16}, "{devices=[1,2,4]<=[8] last_tile_dims={unreduced, replicated}}",
                         "{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(p.steps, "slice 0, all-reduce");
  EXPECT_EQ(p.bytes, 2 * 1.0 / 2 * 4 * 4);
}

TEST(Reshard, ValueBecomesATerm_NothingIsSent) {
  EXPECT_EQ(plan({16}, kReplicated, "{unreduced}").steps, "mask-terms");
  EXPECT_EQ(plan({16}, "{devices=[8]<=[8]}", "{unreduced}").steps, "spread-terms 0");
}

TEST(Reshard, UnevenDimension_IsPaddedAndCut) {
  EXPECT_EQ(plan({10}, kReplicated, "{devices=[8]<=[8]}").steps, "slice 0");
  const Planned p = plan({10}, "{devices=[8]<=[8]}", kReplicated);
  EXPECT_EQ(p.steps, "all-gather 0");
  EXPECT_EQ(p.bytes, 7 * 2 * 4);
}

TEST(Reshard, UnevenTilesThatAreNotNested_AreGatheredFirst) {
  // Halves of 10 elements have 5 elements, quarters have 3: a quarter may overlap both halves.
  EXPECT_EQ(
      plan({10}, "{devices=[2,4]<=[8] last_tile_dim_replicate}", "{devices=[4,2]<=[8] last_tile_dim_replicate}").steps,
      "all-gather 0, slice 0");
}

TEST(Reshard, PlanEndsInWhatIsWanted) {
  const std::vector<std::string> all = {kReplicated,
                                        "{unreduced}",
                                        "{devices=[8,1]<=[8]}",
                                        "{devices=[1,8]<=[8]}",
                                        "{devices=[2,4]<=[8]}",
                                        "{devices=[4,2]<=[2,4]T(1,0)}",
                                        "{devices=[2,2,2]<=[8] last_tile_dim_replicate}",
                                        "{devices=[8,1]<=[2,2,2]T(2,0,1)}",
                                        "{devices=[2,2,2]<=[2,2,2]T(2,0,1) last_tile_dims={unreduced}}",
                                        "{devices=[1,2,4]<=[2,4]T(1,0) last_tile_dim_replicate}"};
  for (const std::string& from : all)
    for (const std::string& to : all)
      for (const int64_t size : {8, 10}) {
        const Shape shape = Shape::array(Type::F32, {size, 16});
        const ArraySharding a = sharding(from, 2), b = sharding(to, 2);
        const ReshardPlan p = plan_reshard(shape, a, b, DeviceGroups::one(kPartitions));
        const ArraySharding& last = p.steps.empty() ? a : p.steps.back().after;
        EXPECT_EQ(last.dimensions, b.dimensions) << from << " to " << to << ": " << p.to_string();
        EXPECT_TRUE(same_split(last.unreduced, b.unreduced)) << from << " to " << to << ": " << p.to_string();
      }
}

TEST(ArraySharding, TextOfHlo_ComesBack) {
  for (const char* text : {"{replicated}", "{unreduced}", "{devices=[2,4]0,1,2,3,4,5,6,7}",
                           "{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}",
                           "{devices=[1,2,2,2]0,1,2,3,4,5,6,7 last_tile_dims={unreduced, replicated}}"})
    EXPECT_EQ(to_string(sharding(text, 2), kPartitions), text);
}

TEST(ArraySharding, DimensionsOfOneMeshAxis_AreNotIndependent) {
  const DimensionSharding x(2, {0, 0, 1, 1}), y(2, {0, 1, 0, 1});
  const DeviceGroups all = DeviceGroups::one(4);
  EXPECT_TRUE(are_independent(std::array{x, y}, all));
  EXPECT_FALSE(are_independent(std::array{x, x}, all));
  EXPECT_FALSE(are_independent(std::array{x}, within(all, x))) << "the axis is manual";
  EXPECT_EQ(quotient(compose(x, y), y), x);
  EXPECT_TRUE(refines(compose(x, y), x));
  EXPECT_FALSE(refines(compose(x, y), y));
}

}  // namespace
}  // namespace collet::hlo::spmd
