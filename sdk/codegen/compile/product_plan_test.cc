// SPDX-License-Identifier: Apache-2.0
// Checks how products are planned.
#include <collet/program.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/testing/program_builder.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using testing::ProgramBuilder;
using testing::RegionBuilder;

using Parts = std::vector<std::pair<int64_t, int64_t>>;

/// Returns the products among the functions of a program.
std::vector<BlockedProduct> products_of(const PlannedProgram& planned) {
  std::vector<BlockedProduct> out;
  for (const FunctionSource& source : planned.sources) {
    if (const auto* const product = std::get_if<BlockedProduct>(&source.body)) out.push_back(*product);
  }
  return out;
}

/// Returns the one product of a convolution of 3 x 3 with images that are padded by one on each side. Channels are the last
/// dimension of images and kernels, or the first one after the batch. `features`: of the result; 0 for as many as channels.
PlannedProgram plan_of_convolution(int64_t batch, int64_t side, int64_t channels, bool channels_first = false,
                                   int vector_bits = 512, int64_t features = 0) {
  if (features == 0) features = channels;
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const auto dims = [&](int64_t depth) {
    return channels_first ? std::vector<int64_t>{batch, depth, side, side}
                          : std::vector<int64_t>{batch, side, side, depth};
  };
  const Handle x = entry.argument(COLLET_TYPE_F32, dims(channels));
  const std::vector<int64_t> kernel =
      channels_first ? std::vector<int64_t>{features, channels, 3, 3} : std::vector<int64_t>{3, 3, channels, features};
  const Handle w = entry.argument(COLLET_TYPE_F32, kernel);
  collet_convolution_attrs a{};
  a.window.size = program.list({3, 3});
  a.window.stride = a.window.window_dilation = a.window.base_dilation = program.list({1, 1});
  a.window.padding_low = a.window.padding_high = program.list({1, 1});
  a.window.reversal = program.list({0, 0});
  a.feature_groups = a.batch_groups = 1;
  a.labels.input_feature = a.labels.output_feature = 3;
  a.labels.kernel_input_feature = 2;
  a.labels.kernel_output_feature = 3;
  a.labels.input_spatial = a.labels.output_spatial = program.list({1, 2});
  a.labels.kernel_spatial = program.list({0, 1});
  if (channels_first) {
    a.labels.input_feature = a.labels.output_feature = a.labels.kernel_input_feature = 1;
    a.labels.kernel_output_feature = 0;
    a.labels.input_spatial = a.labels.output_spatial = a.labels.kernel_spatial = program.list({2, 3});
  }
  entry.results({entry.op(COLLET_OP_CONVOLUTION, COLLET_TYPE_F32, dims(features), {x, w}, a)});
  Target target;
  target.vector_bits = vector_bits;
  target.vector_registers = vector_bits >= 512 ? 32 : 16;
  target.fma = true;
  PlannedProgram planned;
  const Status status = plan_program(program.finish(), target, CompileOptions(), planned);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(products_of(planned).size(), 1u);
  return planned;
}

BlockedProduct convolution(int64_t batch, int64_t side, int64_t channels, bool channels_first = false,
                           int vector_bits = 512) {
  const PlannedProgram planned = plan_of_convolution(batch, side, channels, channels_first, vector_bits);
  return products_of(planned).empty() ? BlockedProduct() : products_of(planned)[0];
}

Parts parts_of(const BlockedProduct& call) {
  Parts parts;
  for (size_t i = 0; i < call.first_step.size(); ++i) parts.emplace_back(call.first_step[i], call.end_step[i]);
  return parts;
}

TEST(ProductPlan, RowsThatDoNotFillVectors_AreMultipliedTogether) {
  for (const auto& [side, columns] : {std::pair{int64_t{28}, int64_t{28 * 28}}, {int64_t{31}, int64_t{31}}}) {
    const BlockedProduct call = convolution(1, side, 4, true, 256);
    EXPECT_EQ(call.columns, columns);
    EXPECT_EQ(call.batches, side * side / columns);
  }
}

/// The matrix of all patches would have nine times the elements of the images.
TEST(ProductPlan, ConvolutionOfChannelsFirst_NeedsNoMatrixOfPatches) {
  for (const int64_t channels : {64, 128}) {
    const PlannedProgram planned = plan_of_convolution(4, 56, channels, true);
    ASSERT_EQ(products_of(planned).size(), 1u);
    EXPECT_EQ(products_of(planned)[0].columns, channels);
    EXPECT_FALSE(products_of(planned)[0].a_packed);
    const auto image_bytes = static_cast<uint64_t>(4 * 56 * 56 * channels * 4);
    const auto filter_bytes = static_cast<uint64_t>(9 * channels * channels * 4);
    EXPECT_LE(planned.plan.workspace_bytes, 2 * image_bytes + filter_bytes + (image_bytes >> 2)) << channels;
  }
}

TEST(ProductPlan, ConvolutionOfChannelsFirst_CopiesItsInputOnce) {
  constexpr int64_t kSide = 56, kChannels = 128, kFeatures = 16;
  const PlannedProgram planned = plan_of_convolution(2, kSide, kChannels, true, 512, kFeatures);
  const auto bytes = [](int64_t elements) { return static_cast<uint64_t>(4 * elements); };
  const uint64_t padded = bytes(2 * (kSide + 2) * (kSide + 2) * kChannels),
                 result = bytes(2 * kSide * kSide * kFeatures);
  EXPECT_LE(planned.plan.workspace_bytes, padded + result + bytes(9 * kChannels * kFeatures) + 4096);
}

/// A line of results of one dimension is one product: with its patches in memory it would need a multiple of arguments and results.
TEST(ProductPlan, LongLineOfChannelsFirst_NeedsNoMatrixOfPatches) {
  constexpr int64_t kLength = 160000;
  struct Case {
    int64_t channels, features, window;
  };
  for (const Case& t : {Case{32, 32, 3}, {64, 8, 3}, {64, 8, 4}, {32, 32, 5}, {4, 16, 15}}) {
    ProgramBuilder program;
    RegionBuilder& entry = program.entry();
    const int64_t length = kLength + 1 - t.window;
    const Handle x = entry.argument(COLLET_TYPE_F32, {1, t.channels, kLength});
    const Handle w = entry.argument(COLLET_TYPE_F32, {t.features, t.channels, t.window});
    collet_convolution_attrs a{};
    a.window.size = program.list({t.window});
    a.window.stride = a.window.window_dilation = a.window.base_dilation = program.list({1});
    a.window.padding_low = a.window.padding_high = a.window.reversal = program.list({0});
    a.feature_groups = a.batch_groups = 1;
    a.labels.input_feature = a.labels.output_feature = a.labels.kernel_input_feature = 1;
    a.labels.input_spatial = a.labels.output_spatial = a.labels.kernel_spatial = program.list({2});
    entry.results({entry.op(COLLET_OP_CONVOLUTION, COLLET_TYPE_F32, {1, t.features, length}, {x, w}, a)});
    Target target;
    target.vector_bits = 256;
    target.vector_registers = 16;
    target.fma = true;
    PlannedProgram planned;
    ASSERT_TRUE(plan_program(program.finish(), target, CompileOptions(), planned).ok());
    const int64_t elements = t.channels * kLength + t.features * length + t.features * t.channels * t.window;
    EXPECT_LE(planned.plan.workspace_bytes, static_cast<uint64_t>(elements * 4 + 4096))
        << t.channels << " to " << t.features << ", window " << t.window;
  }
}

/// The patches of two or three features are read more than once, from a cache.
TEST(ProductPlan, ConvolutionOfFewFeaturesAfterTheBatch_IsAProduct) {
  for (const int64_t features : {2, 3}) {
    const PlannedProgram planned = plan_of_convolution(2, 28, 32, true, 256, features);
    ASSERT_EQ(products_of(planned).size(), 1u);
    EXPECT_EQ(products_of(planned)[0].rows, features);
  }
}

/// Upsampling by `dilation` with a window twice as large uses four elements of the input for each result, whatever the
/// dilation.
TEST(ProductPlan, DilatedInput_IsMultipliedWithoutItsZeros) {
  for (const int64_t dilation : {2, 3, 8, 32}) {
    ProgramBuilder program;
    RegionBuilder& entry = program.entry();
    const int64_t side = 12, channels = 16, filters = 8, window = 2 * dilation;
    const int64_t out = (side - 1) * dilation + window;
    const Handle x = entry.argument(COLLET_TYPE_F32, {1, side, side, channels});
    const Handle w = entry.argument(COLLET_TYPE_F32, {window, window, channels, filters});
    collet_convolution_attrs a{};
    a.window.size = program.list({window, window});
    a.window.stride = a.window.window_dilation = program.list({1, 1});
    a.window.base_dilation = program.list({dilation, dilation});
    a.window.padding_low = a.window.padding_high = program.list({window - 1, window - 1});
    a.window.reversal = program.list({0, 0});
    a.feature_groups = a.batch_groups = 1;
    a.labels.input_feature = a.labels.output_feature = a.labels.kernel_output_feature = 3;
    a.labels.kernel_input_feature = 2;
    a.labels.input_spatial = a.labels.output_spatial = program.list({1, 2});
    a.labels.kernel_spatial = program.list({0, 1});
    entry.results({entry.op(COLLET_OP_CONVOLUTION, COLLET_TYPE_F32, {1, out, out, filters}, {x, w}, a)});
    Target target;
    target.vector_bits = 512;
    target.vector_registers = 32;
    target.fma = true;
    PlannedProgram planned;
    ASSERT_TRUE(plan_program(program.finish(), target, CompileOptions(), planned).ok());
    int64_t products = 0;
    for (const BlockedProduct& call : products_of(planned))
      products += call.batches * call.rows * call.columns * call.depth;
    EXPECT_EQ(products, out * out * filters * 4 * channels) << dilation;
    EXPECT_LE(products_of(planned).size(), 4u) << dilation;
  }
}

TEST(ProductPlan, ConvolutionInSegments_LeavesOutTheFirstAndLastLinesOfPadding) {
  const BlockedProduct call = convolution(2, 8, 128);
  ASSERT_EQ(call.segments.size(), 3u);  // one for each line of the window
  Parts parts;
  for (int64_t line = 0; line < 16; ++line) parts.emplace_back(line % 8 == 0 ? 1 : 0, line % 8 == 7 ? 2 : 3);
  EXPECT_EQ(parts_of(call), parts);
}

TEST(ProductPlan, PackedConvolution_HasATileForEachLineAndLeavesOutItsPadding) {
  const BlockedProduct call = convolution(2, 7, 512);
  EXPECT_TRUE(call.a_packed);
  EXPECT_EQ(call.tile_rows, 7);
  const int64_t line = int64_t{3} * 512;  // steps of the depth for one line of the window
  Parts parts;
  for (int64_t i = 0; i < 14; ++i) parts.emplace_back(i % 7 == 0 ? line : 0, i % 7 == 6 ? 2 * line : 3 * line);
  EXPECT_EQ(parts_of(call), parts);
}

TEST(ProductPlan, ProductOfMatrices_UsesTheWholeDepth) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {49, 512});
  const Handle y = entry.argument(COLLET_TYPE_F32, {512, 512});
  collet_dot_attrs a{};
  a.lhs_contracting = program.list({1});
  a.rhs_contracting = program.list({0});
  entry.results({entry.op(COLLET_OP_DOT, COLLET_TYPE_F32, {49, 512}, {x, y}, a)});
  Target target;
  target.vector_bits = 512;
  target.vector_registers = 32;
  PlannedProgram planned;
  ASSERT_TRUE(plan_program(program.finish(), target, CompileOptions(), planned).ok());
  ASSERT_EQ(products_of(planned).size(), 1u);
  EXPECT_TRUE(products_of(planned)[0].first_step.empty());
}

/// The weights of four experts: a dimension of few elements beside the columns does not make them few rows.
TEST(ProductPlan, MatricesOfSeveralWeights_AreAProduct) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {1024, 384});
  const Handle w = entry.argument(COLLET_TYPE_F32, {4, 384, 256});
  collet_dot_attrs a{};
  a.lhs_contracting = program.list({1});
  a.rhs_contracting = program.list({1});
  entry.results({entry.op(COLLET_OP_DOT, COLLET_TYPE_F32, {1024, 4, 256}, {x, w}, a)});
  Target target;
  target.vector_bits = 512;
  target.vector_registers = 32;
  PlannedProgram planned;
  ASSERT_TRUE(plan_program(program.finish(), target, CompileOptions(), planned).ok());
  EXPECT_EQ(products_of(planned).size(), 1u);
}

TEST(ProductPlan, ProductOfFewRows_IsReadWithoutPrefetching) {
  for (const auto& [rows, few] : {std::pair{int64_t{1}, true}, {int64_t{2}, true}, {int64_t{16}, false}}) {
    ProgramBuilder program;
    RegionBuilder& entry = program.entry();
    const Handle x = entry.argument(COLLET_TYPE_F32, {rows, 128});
    const Handle y = entry.argument(COLLET_TYPE_F32, {128, 512});
    collet_dot_attrs a{};
    a.lhs_contracting = program.list({1});
    a.rhs_contracting = program.list({0});
    entry.results({entry.op(COLLET_OP_DOT, COLLET_TYPE_F32, {rows, 512}, {x, y}, a)});
    Target target;
    target.vector_bits = 512;
    target.vector_registers = 32;
    PlannedProgram planned;
    ASSERT_TRUE(plan_program(program.finish(), target, CompileOptions(), planned).ok());
    ASSERT_EQ(products_of(planned).size(), 1u);
    const BlockedProduct call = products_of(planned)[0];
    EXPECT_EQ(call.depth_blocks(), 1) << rows;
    const std::string& micro = call.micro[call.rows < call.tile_rows ? 1 : 0][0];
    ASSERT_FALSE(micro.empty()) << rows;
    EXPECT_EQ(micro.find("_streams") != std::string::npos, few) << rows;
  }
}

TEST(ProductPlan, RowsThatEvictEachOther_AreCopiedOrNotPrefetched) {
  struct Case {
    int vector_bits;
    int64_t rows, columns;
    bool copies, prefetches;
  };
  // Rows of 1024 or 512 elements are in few sets of the first cache, those of 256 in more, those of 1040 in many.
  for (const Case& c : {Case{256, 32, 1024, true, false},
                        {256, 16, 512, true, false},
                        {256, 12, 1024, false, false},
                        {256, 32, 1040, false, true},
                        {512, 48, 1024, false, true}}) {
    SCOPED_TRACE(std::to_string(c.vector_bits) + " bits, " + std::to_string(c.rows) + " x " +
                 std::to_string(c.columns));
    ProgramBuilder program;
    RegionBuilder& entry = program.entry();
    const Handle x = entry.argument(COLLET_TYPE_F32, {c.rows, 128});
    const Handle y = entry.argument(COLLET_TYPE_F32, {128, c.columns});
    collet_dot_attrs a{};
    a.lhs_contracting = program.list({1});
    a.rhs_contracting = program.list({0});
    entry.results({entry.op(COLLET_OP_DOT, COLLET_TYPE_F32, {c.rows, c.columns}, {x, y}, a)});
    Target target;
    target.vector_bits = c.vector_bits;
    target.vector_registers = c.vector_bits >= 512 ? 32 : 16;
    PlannedProgram planned;
    ASSERT_TRUE(plan_program(program.finish(), target, CompileOptions(), planned).ok());
    ASSERT_EQ(products_of(planned).size(), 1u);
    const BlockedProduct call = products_of(planned)[0];
    EXPECT_EQ(call.copies_b, c.copies);
    const std::string& micro = call.micro[0][0];
    ASSERT_FALSE(micro.empty());
    EXPECT_EQ(micro.find("_streams") == std::string::npos, c.prefetches);
  }
}

TEST(ProductPlan, OneRowOfALargeMatrix_ReadsFewRowsAtATime) {
  for (const auto& [side, block] : {std::pair{int64_t{1024}, int64_t{24}}, {int64_t{2048}, int64_t{8}}}) {
    ProgramBuilder program;
    RegionBuilder& entry = program.entry();
    const Handle x = entry.argument(COLLET_TYPE_F32, {1, side});
    const Handle y = entry.argument(COLLET_TYPE_F32, {side, side});
    collet_dot_attrs a{};
    a.lhs_contracting = program.list({1});
    a.rhs_contracting = program.list({0});
    entry.results({entry.op(COLLET_OP_DOT, COLLET_TYPE_F32, {1, side}, {x, y}, a)});
    Target target;
    target.vector_bits = 512;
    target.vector_registers = 32;
    target.second_cache = 1 << 20;
    PlannedProgram planned;
    ASSERT_TRUE(plan_program(program.finish(), target, CompileOptions(), planned).ok());
    ASSERT_EQ(products_of(planned).size(), 1u);
    EXPECT_EQ(products_of(planned)[0].depth_block, block) << side;
  }
}

}  // namespace
}  // namespace collet::codegen
