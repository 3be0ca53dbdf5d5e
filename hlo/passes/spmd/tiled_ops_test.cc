// SPDX-License-Identifier: Apache-2.0
// Partitions each op and checks that the partitions compute the result of the whole op, and which collectives they use.
#include <gmock/gmock.h>

#include <ostream>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/spmd/traffic.h"
#include "hlo/testing/equivalence.h"
#include "hlo/testing/partitioned_run.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

struct OpCase {
  std::string name;
  std::string body;         ///< of the entry computation, for four partitions
  std::string collectives;  ///< the opcodes of the expected collectives, in order
};

void PrintTo(const OpCase& test, std::ostream* out) {
  *out << test.name;
}

constexpr char kHelpers[] = R"(
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT
}
)";

// Returns the opcodes of the collectives in the order of the module, separated by spaces.
std::string collectives(const Module& module) {
  std::string out;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) {
      const std::string_view name = op_info(module[id].op).text;
      for (const std::string_view collective :
           {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"})
        if (name == collective) out += (out.empty() ? "" : " ") + std::string(name);
    }
  return out;
}

class TiledOp : public ::testing::TestWithParam<OpCase> {};

TEST_P(TiledOp, ComputesTheWholeByTheseCollectives) {
  const OpCase& test = GetParam();
  const auto whole =
      parse_module("HloModule m, num_partitions=4\n" + std::string(kHelpers) + "ENTRY e {\n" + test.body + "}\n");
  ASSERT_TRUE(whole.ok()) << whole.status().to_string();
  const auto tiled = (*whole)->clone();
  PassContext context;
  context.partition_count = 4;
  const auto changed = spmd_partition(*tiled, context);
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  const std::string text = print_module(*tiled, {});
  const Status status = verify_module(*tiled);
  ASSERT_TRUE(status.ok()) << status.to_string() << text;
  EXPECT_EQ(collectives(*tiled), test.collectives) << text;
  const std::vector<Literal> inputs = testing::entry_inputs(**whole);
  const auto expected = Evaluator(**whole).run(inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  EXPECT_EQ(testing::compare_partitions(*tiled, inputs, *expected), "") << text;
}

const OpCase kCases[] = {
    {"Dot_SplitContraction_IsReduceScattered", R"(
  x = f32[8,16] parameter(0), sharding={devices=[1,4]<=[4]}
  y = f32[16,8] parameter(1), sharding={devices=[4,1]<=[4]}
  ROOT r = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,1]<=[4]}
)",
     "reduce-scatter"},
    {"Dot_UnevenContraction_MasksPadding", R"(
  x = f32[8,64] parameter(0), sharding={devices=[1,4]<=[4]}
  y = f32[64,8] parameter(1), sharding={devices=[4,1]<=[4]}
  p = f32[8,62] slice(x), slice={[0:8], [1:63]}
  q = f32[62,8] slice(y), slice={[1:63], [0:8]}
  a = f32[8,62] abs(p)
  l = f32[8,62] log(a)
  ROOT r = f32[8,8] dot(l, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
)",
     "collective-permute collective-permute all-reduce"},
    {"Reduce_SplitDimension_CombinesByItsOp", R"(
  x = f32[16,6] parameter(0), sharding={devices=[4,1]<=[4]}
  low = f32[] constant(-inf)
  ROOT r = f32[6] reduce(x, low), dimensions={0}, to_apply=max, sharding={replicated}
)",
     "all-reduce"},
    {"Reduce_UnevenDimension_MasksPadding", R"(
  x = f32[16] parameter(0), sharding={devices=[4]<=[4]}
  s = f32[13] slice(x), slice={[2:15]}
  c = f32[13] cosine(s), sharding={devices=[4]<=[4]}
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(c, zero), dimensions={0}, to_apply=add
)",
     "collective-permute all-reduce"},
    {"Slice_SplitDimension_TakesAHalo", R"(
  x = f32[1024] parameter(0), sharding={devices=[4]<=[4]}
  v = f32[] constant(7)
  s = f32[1020] slice(x), slice={[3:1023]}
  t = f32[1020] tanh(s)
  ROOT p = f32[1024] pad(t, v), padding=2_2, sharding={devices=[4]<=[4]}
)",
     "collective-permute collective-permute collective-permute"},
    {"Slice_WithStride_TakesAHalo", R"(
  x = f32[64,4] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT s = f32[32,4] slice(x), slice={[1:64:2], [0:4]}, sharding={devices=[4,1]<=[4]}
)",
     ""},
    {"Pad_WithInterior_StaysOnItsTile", R"(
  x = f32[16,4] parameter(0), sharding={devices=[4,1]<=[4]}
  v = f32[] constant(3)
  ROOT p = f32[32,4] pad(x, v), padding=0_1_1x0_0, sharding={devices=[4,1]<=[4]}
)",
     ""},
    {"Concatenate_SplitDimension_ComesToTheTilesOfTheResult", R"(
  x = f32[60,3] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[4,3] parameter(1), sharding={devices=[4,1]<=[4]}
  c = f32[64,3] concatenate(x, y), dimensions={0}
  ROOT r = f32[64,3] sine(c), sharding={devices=[4,1]<=[4]}
)",
     "collective-permute collective-permute collective-permute collective-permute"},
    {"Reverse_SplitDimension_MirrorsTiles", R"(
  x = f32[16,4] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT r = f32[16,4] reverse(x), dimensions={0}, sharding={devices=[4,1]<=[4]}
)",
     "collective-permute"},
    {"Convolution_SplitRows_ExchangesHalos", R"(
  x = f32[2,16,8,3] parameter(0), sharding={devices=[1,4,1,1]<=[4]}
  k = f32[3,3,3,5] parameter(1), sharding={replicated}
  ROOT c = f32[2,16,8,5] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, sharding={devices=[1,4,1,1]<=[4]}
)",
     "collective-permute collective-permute"},
    {"Convolution_WithStrideAndDilation_ExchangesHalos", R"(
  x = f32[2,32,8,3] parameter(0), sharding={devices=[1,4,1,1]<=[4]}
  k = f32[3,3,3,5] parameter(1), sharding={replicated}
  ROOT c = f32[2,16,8,5] convolution(x, k), window={size=3x3 stride=2x1 pad=2_1x1_1 rhs_dilate=2x1}, dim_labels=b01f_01io->b01f, sharding={devices=[1,4,1,1]<=[4]}
)",
     "collective-permute collective-permute"},
    {"Convolution_OfADilatedInput_ExchangesHalos", R"(
  x = f32[2,16,8,3] parameter(0), sharding={devices=[1,4,1,1]<=[4]}
  k = f32[3,3,3,5] parameter(1), sharding={replicated}
  ROOT c = f32[2,32,8,5] convolution(x, k), window={size=3x3 pad=1_2x1_1 lhs_dilate=2x1}, dim_labels=b01f_01io->b01f, sharding={devices=[1,4,1,1]<=[4]}
)",
     "collective-permute"},
    {"Convolution_SplitTaps_AddsPartialResults", R"(
  x = f32[3,16,8,2] parameter(0), sharding={devices=[1,4,1,1]<=[4]}
  g = f32[5,16,8,2] parameter(1), sharding={devices=[1,4,1,1]<=[4]}
  ROOT c = f32[3,3,1,5] convolution(x, g), window={size=16x8 pad=1_1x0_0}, dim_labels=b01f_o01i->b01f, sharding={replicated}
)",
     "collective-permute collective-permute all-reduce"},
    {"ReduceWindow_SplitDimension_ExchangesHalos", R"(
  x = f32[16,8] parameter(0), sharding={devices=[4,1]<=[4]}
  low = f32[] constant(-inf)
  ROOT r = f32[16,8] reduce-window(x, low), window={size=3x1 pad=1_1x0_0}, to_apply=max, sharding={devices=[4,1]<=[4]}
)",
     "collective-permute collective-permute"},
    {"DynamicSlice_SplitDimension_SumsWhatTilesHave", R"(
  x = f32[64,8] parameter(0), sharding={devices=[4,1]<=[4]}
  i = s32[] parameter(1)
  z = s32[] constant(0)
  ROOT r = f32[3,8] dynamic-slice(x, i, z), dynamic_slice_sizes={3,8}, sharding={replicated}
)",
     "all-reduce"},
    {"DynamicUpdateSlice_SplitDimension_StaysOnItsTile", R"(
  x = f32[64,8] parameter(0), sharding={devices=[4,1]<=[4]}
  u = f32[3,8] parameter(1), sharding={replicated}
  i = s32[] constant(46)
  z = s32[] constant(0)
  ROOT r = f32[64,8] dynamic-update-slice(x, u, i, z), sharding={devices=[4,1]<=[4]}
)",
     ""},
    {"DynamicSlice_NarrowIndex_IsNotWrappedAround", R"(
  x = f32[256,8] parameter(0), sharding={devices=[4,1]<=[4]}
  i = s8[] constant(101)
  z = s8[] constant(-3)
  ROOT r = f32[1,8] dynamic-slice(x, i, z), dynamic_slice_sizes={1,8}, sharding={replicated}
)",
     "all-reduce"},
    {"DynamicSlice_IndexBeyondS32_IsClamped", R"(
  x = f32[64,8] parameter(0), sharding={devices=[4,1]<=[4]}
  i = u32[] constant(3)
  z = u32[] constant(4294967295)
  ROOT r = f32[3,2] dynamic-slice(x, i, z), dynamic_slice_sizes={3,2}, sharding={replicated}
)",
     "all-reduce"},
    {"DynamicUpdateSlice_IndexBeyondS32_IsClamped", R"(
  x = f32[64,8] parameter(0), sharding={devices=[4,1]<=[4]}
  u = f32[3,2] parameter(1), sharding={replicated}
  i = s64[] constant(46)
  z = s64[] constant(4294967296)
  ROOT r = f32[64,8] dynamic-update-slice(x, u, i, z), sharding={devices=[4,1]<=[4]}
)",
     ""},
    {"Gather_SplitIndexedDimension_SumsWhatTilesHave", R"(
  x = f32[64,8] parameter(0), sharding={devices=[4,1]<=[4]}
  i = s32[5,1] constant({{63}, {0}, {17}, {99}, {-5}})
  ROOT r = f32[5,8] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}, sharding={replicated}
)",
     "all-reduce"},
    {"Scatter_SplitIndexedDimension_DropsUpdatesOfOtherTiles", R"(
  x = f32[64,8] parameter(0), sharding={devices=[4,1]<=[4]}
  i = s32[5,1] constant({{63}, {0}, {17}, {99}, {-5}})
  u = f32[5,8] parameter(1), sharding={replicated}
  ROOT r = f32[64,8] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add, sharding={devices=[4,1]<=[4]}
)",
     ""},
    {"Scatter_SplitUpdates_AddsPartialResults", R"(
  i = s32[64,1] parameter(0), sharding={devices=[4,1]<=[4]}
  u = f32[64,8] parameter(1), sharding={devices=[4,1]<=[4]}
  zero = f32[] constant(0)
  x = f32[4,8] broadcast(zero), dimensions={}
  ROOT r = f32[4,8] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add, sharding={replicated}
)",
     "all-reduce"},
    {"Sort_SplitDimension_MovesTheSplit", R"(
  x = f32[8,64] parameter(0), sharding={devices=[1,4]<=[4]}
  ROOT r = f32[8,64] sort(x), dimensions={1}, to_apply=less, sharding={devices=[1,4]<=[4]}
)",
     "all-to-all all-to-all"},
    {"Iota_SplitDimension_CountsFromItsTile", R"(
  ROOT r = f32[16,8] iota(), iota_dimension=0, sharding={devices=[4,1]<=[4]}
)",
     ""},
    {"Constant_SplitDimension_IsCut", R"(
  ROOT r = f32[4] constant({1, 2, 3, 4}), sharding={devices=[4]<=[4]}
)",
     ""},
    {"Broadcast_NewDimension_IsMadeByTile", R"(
  x = f32[8] parameter(0), sharding={replicated}
  ROOT r = f32[16,8] broadcast(x), dimensions={1}, sharding={devices=[4,1]<=[4]}
)",
     ""},
    {"Reshape_SplitMajorFactor_StaysSplit", R"(
  x = f32[16,6] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT r = f32[96] reshape(x), sharding={devices=[4]<=[4]}
)",
     ""},
};

INSTANTIATE_TEST_SUITE_P(Materialization, TiledOp, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace collet::hlo
