// SPDX-License-Identifier: Apache-2.0
// Tests launch plans for grids where they differ from those for processors.
#include <collet/codegen/compile.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/launch/print.h"
#include "sdk/codegen/testing/program_builder.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using testing::ProgramBuilder;
using testing::RegionBuilder;

PlannedProgram planned(ProgramBuilder& b) {
  Target target;
  target.grid.warp = 32;
  PlannedProgram program;
  const Status status = plan_program(b.finish(), target, CompileOptions(), program);
  EXPECT_TRUE(status.ok()) << status.message();
  return program;
}

/// Returns the launch plan of a loop that runs ten times. The trip count is stated in the program if `is_known`.
std::string plan_of_loop(bool is_known) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(COLLET_TYPE_F32, {100});
  const Handle zero = e.scalar(COLLET_TYPE_S32, 0);
  RegionBuilder& condition = b.region();
  const Handle at = condition.argument(COLLET_TYPE_S32);
  condition.argument(COLLET_TYPE_F32, {100});
  condition.results({condition.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {at, condition.scalar(COLLET_TYPE_S32, 10)},
                                  collet_compare_attrs{COLLET_DIRECTION_LT, COLLET_COMPARE_SIGNED})});
  RegionBuilder& body = b.region();
  const Handle i = body.argument(COLLET_TYPE_S32);
  const Handle y = body.argument(COLLET_TYPE_F32, {100});
  body.results({body.binary(COLLET_OP_ADD, i, body.scalar(COLLET_TYPE_S32, 1)), body.unary(COLLET_OP_COSINE, y)});
  collet_while_attrs attributes{};
  if (is_known) attributes = {11, 1, 0, 1};
  e.results({e.ops(COLLET_OP_WHILE, {zero, x}, {zero, x}, attributes, {&condition, &body})[1]});
  return print_launch_plan(planned(b).plan);
}

TEST(GridPlan, LoopWithKnownTrips_HasNoCondition) {
  const std::string known = plan_of_loop(true);
  EXPECT_NE(known.find("while 10 trips"), std::string::npos) << known;
  const std::string unknown = plan_of_loop(false);
  EXPECT_EQ(unknown.find("trips"), std::string::npos) << unknown;
  EXPECT_GT(unknown.size(), known.size()) << "the condition has a kernel";
}

TEST(GridPlan, LoopOverScalars_IsOneKernel) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle n = e.argument(COLLET_TYPE_S32);
  const Handle x = e.argument(COLLET_TYPE_F32);
  RegionBuilder& condition = b.region();
  const Handle left = condition.argument(COLLET_TYPE_S32);
  condition.argument(COLLET_TYPE_F32);
  condition.results({condition.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {left, condition.scalar(COLLET_TYPE_S32, 0)},
                                  collet_compare_attrs{COLLET_DIRECTION_GT, COLLET_COMPARE_SIGNED})});
  RegionBuilder& body = b.region();
  const Handle i = body.argument(COLLET_TYPE_S32);
  const Handle y = body.argument(COLLET_TYPE_F32);
  body.results({body.binary(COLLET_OP_SUBTRACT, i, body.scalar(COLLET_TYPE_S32, 1)), body.unary(COLLET_OP_COSINE, y)});
  e.results({e.ops(COLLET_OP_WHILE, {n, x}, {n, x}, collet_while_attrs{}, {&condition, &body})[1]});
  const PlannedProgram program = planned(b);
  ASSERT_EQ(program.plan.steps.size(), 1U) << print_launch_plan(program.plan);
  EXPECT_EQ(program.plan.steps[0].kind, StepKind::kKernel);
}

/// Returns the launch plan of a sort of 100000 elements of which the first `needed` are read. `direction` and `type` are
/// those of the comparator.
std::string plan_of_sort(int64_t needed, uint32_t direction = COLLET_DIRECTION_LT) {
  constexpr int64_t kLength = 100000;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(COLLET_TYPE_S32, {kLength});
  RegionBuilder& less = b.region();
  const Handle p = less.argument(COLLET_TYPE_S32);
  const Handle q = less.argument(COLLET_TYPE_S32);
  less.results({less.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {p, q},
                        collet_compare_attrs{direction, COLLET_COMPARE_SIGNED})});
  const Handle sorted = e.op(COLLET_OP_SORT, COLLET_TYPE_S32, {kLength}, {x}, collet_sort_attrs{0, 1, 0}, {&less});
  e.results({e.op(COLLET_OP_SLICE, COLLET_TYPE_S32, {needed}, {sorted},
                  collet_slice_attrs{b.list({0}), b.list({needed}), b.list({1})})});
  return print_launch_plan(planned(b).plan);
}

/// Returns the number of steps of a launch plan whose functions begin with `name`.
int count_steps(const std::string& plan, const std::string& name) {
  int count = 0;
  for (size_t at = 0; (at = plan.find("\n" + name, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(GridPlan, SortOfWhichFewElementsAreRead_SelectsThem) {
  const std::string plan = plan_of_sort(50);
  EXPECT_EQ(count_steps(plan, "radix_select"), 1) << plan;
  EXPECT_EQ(count_steps(plan, "radix_rows"), 1) << plan;
  // By another comparator: 98 segments of 1024, then their first 50 each in 5 segments, then 1 segment.
  EXPECT_EQ(count_steps(plan_of_sort(50, COLLET_DIRECTION_LE), "sort"), 3);
}

TEST(GridPlan, SortByOneKey_IsARadixSort) {
  const std::string plan = plan_of_sort(100000);
  EXPECT_EQ(count_steps(plan, "radix_counts"), 1) << plan;
  EXPECT_EQ(count_steps(plan, "radix_pass"), 4) << plan;
  EXPECT_EQ(count_steps(plan, "sort"), 0) << plan;
  EXPECT_EQ(count_steps(plan, "copy"), 0) << plan;
}

TEST(GridPlan, SortWithNumbers_DoesNotReadThem) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(COLLET_TYPE_S32, {3, 100000});
  const Handle numbers = e.op(COLLET_OP_IOTA, COLLET_TYPE_S32, {3, 100000}, {}, collet_iota_attrs{1});
  RegionBuilder& less = b.region();
  const Handle p = less.argument(COLLET_TYPE_S32);
  const Handle q = less.argument(COLLET_TYPE_S32);
  less.argument(COLLET_TYPE_S32);
  less.argument(COLLET_TYPE_S32);
  less.results({less.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {p, q},
                        collet_compare_attrs{COLLET_DIRECTION_LT, COLLET_COMPARE_SIGNED})});
  e.results(e.ops(COLLET_OP_SORT, {x, numbers}, {x, numbers}, collet_sort_attrs{1, 1, 0}, {&less}));
  const std::string plan = print_launch_plan(planned(b).plan);
  EXPECT_EQ(count_steps(plan, "kernel"), 1) << "the state is cleared\n" << plan;
  EXPECT_EQ(count_steps(plan, "radix_pass"), 4) << plan;
}

TEST(GridPlan, SortByAnotherComparator_IsABitonicNetwork) {
  // 98 segments are merged in 7 rounds: 7 kernels merge within segments, 12 between them, of up to 3 steps each.
  EXPECT_EQ(count_steps(plan_of_sort(100000, COLLET_DIRECTION_LE), "sort"), 20);
}

/// Returns the launch plan of an all-reduce of `elements` f32 by `opcode` on four devices, with a library or without.
std::string plan_of_all_reduce(int64_t elements, uint32_t opcode, uint32_t combine, bool has_library) {
  ProgramBuilder b;
  b.replica_count = 4;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(COLLET_TYPE_F32, {elements});
  RegionBuilder& body = b.region();
  body.combine = combine;
  const Handle p = body.argument(COLLET_TYPE_F32);
  const Handle q = body.argument(COLLET_TYPE_F32);
  body.results({body.binary(opcode, p, q)});
  e.results({e.op(COLLET_OP_ALL_REDUCE, COLLET_TYPE_F32, {elements}, {x}, collet_collective_attrs{}, {&body})});
  Target target;
  target.grid.warp = 32;
  target.grid.libraries.collectives = has_library;
  PlannedProgram program;
  const Status status = plan_program(b.finish(), target, CompileOptions(), program);
  EXPECT_TRUE(status.ok()) << status.message();
  return print_launch_plan(program.plan);
}

TEST(GridPlan, AllReduce_IsALibraryCallOrExchangesAndKernels) {
  const std::string library = plan_of_all_reduce(100000, COLLET_OP_ADD, COLLET_COMBINE_ADD, true);
  EXPECT_NE(library.find("all-reduce, f32 100000 -> 100000, groups {0,1,2,3}"), std::string::npos) << library;
  EXPECT_EQ(library.find("kernel"), std::string::npos) << library;

  const std::string large = plan_of_all_reduce(100001, COLLET_OP_ADD, COLLET_COMBINE_ADD, false);
  EXPECT_NE(large.find("all-to-all, f32 100001 -> 100004"), std::string::npos) << large;
  EXPECT_NE(large.find("all-gather, f32 25001 -> 100001"), std::string::npos) << large;
  EXPECT_NE(large.find("kernel0"), std::string::npos) << large;

  const std::string small = plan_of_all_reduce(100, COLLET_OP_ADD, COLLET_COMBINE_ADD, false);
  EXPECT_NE(small.find("all-gather, f32 100 -> 400"), std::string::npos) << small;
  EXPECT_EQ(small.find("all-to-all"), std::string::npos) << small;

  // The library's maximum ignores NaN.
  const std::string maximum = plan_of_all_reduce(100, COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, true);
  EXPECT_NE(maximum.find("all-gather, f32 100 -> 400"), std::string::npos) << maximum;
}

constexpr uint32_t kF32 = COLLET_TYPE_F32;
constexpr int64_t kBatch = 4;
constexpr int64_t kRows = 64;
constexpr int64_t kDepth = 32;

/// Ways in which a test program differs from a plain attention.
enum class Change {
  kNone,
  kConvertedWeights,
  kSecondFactor,
  kReshaped,
  kWeightsReturned,
  kScoresReturned,
  kOtherAxis,
  kSmallest,
  kSumFromFive,
  kRoundedWeights,
  kWideResult,
  kWeightsSquared,
};

/// The launch plan of softmax(mask(queries * keys)) * values. There are as many queries as keys, so that the shapes
/// alone do not show along which axis the softmax runs.
std::string plan_of_attention(Change change) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle queries = e.argument(kF32, {kBatch, kRows, kDepth});
  const Handle keys = e.argument(kF32, {kBatch, kRows, kDepth});
  const bool is_narrow = change == Change::kConvertedWeights || change == Change::kWideResult;
  const uint32_t type = is_narrow ? static_cast<uint32_t>(COLLET_TYPE_BF16) : kF32;
  const Handle values = e.argument(type, {kBatch, kRows, kDepth});
  const Handle mask = e.argument(COLLET_TYPE_PRED, {kRows, kRows});
  // Some programs merge two dimensions of the batch for the products.
  const std::vector<int64_t> merged{kBatch, kRows, kRows};
  const std::vector<int64_t> shape =
      change == Change::kReshaped ? std::vector<int64_t>{2, kBatch / 2, kRows, kRows} : merged;
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const auto dot = [&](const Handle& x, const Handle& y, int64_t of_x, int64_t of_y, std::vector<int64_t> dims) {
    collet_dot_attrs a{};
    a.lhs_batch = a.rhs_batch = b.list({0});
    a.lhs_contracting = b.list({of_x});
    a.rhs_contracting = b.list({of_y});
    return e.op(COLLET_OP_DOT, x.element, std::move(dims), {x, y}, a);
  };
  const Handle infinity = e.scalar(kF32, -std::numeric_limits<float>::infinity());
  const Handle scores = dot(queries, keys, 2, 2, merged);
  const Handle shaped = change == Change::kReshaped ? e.reshape(scores, shape) : scores;
  const Handle masked = e.op(COLLET_OP_SELECT, kF32, shape,
                             {e.broadcast(mask, shape, {last - 1, last}), shaped, e.broadcast(infinity, shape)});
  const bool smallest = change == Change::kSmallest;
  const Handle start = smallest ? e.scalar(kF32, std::numeric_limits<float>::infinity()) : infinity;
  const Handle largest = smallest ? e.reduce(COLLET_OP_MINIMUM, COLLET_COMBINE_MINIMUM, masked, start, {last})
                                  : e.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, masked, start, {last});
  std::vector<int64_t> own{0, 1};
  if (last == 3) own.push_back(2);
  const std::vector<int64_t> other{0, 2};
  const Handle shift = e.broadcast(largest, shape, change == Change::kOtherAxis ? other : own);
  const Handle exponentials = e.unary(COLLET_OP_EXPONENTIAL, e.binary(COLLET_OP_SUBTRACT, masked, shift));
  const Handle sums = e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, exponentials,
                               e.scalar(kF32, change == Change::kSumFromFive ? 5.0F : 0.0F), {last});
  const Handle weights = e.binary(COLLET_OP_DIVIDE, exponentials, e.broadcast(sums, shape, own));
  Handle factor = weights;
  const auto rounded = [&] { return e.op(COLLET_OP_CONVERT, COLLET_TYPE_BF16, shape, {weights}); };
  if (is_narrow) factor = rounded();
  if (change == Change::kRoundedWeights) factor = e.op(COLLET_OP_CONVERT, kF32, shape, {rounded()});
  if (change == Change::kReshaped) factor = e.reshape(weights, merged);
  const std::vector<int64_t> dims{kBatch, kRows, kDepth};
  const auto last_product = [&]() -> Handle {
    if (change == Change::kSecondFactor) return dot(values, factor, 1, 2, {kBatch, kDepth, kRows});
    if (change == Change::kWeightsSquared) return dot(factor, factor, 2, 1, merged);
    collet_dot_attrs a{};
    a.lhs_batch = a.rhs_batch = b.list({0});
    a.lhs_contracting = b.list({2});
    a.rhs_contracting = b.list({1});
    return e.op(COLLET_OP_DOT, change == Change::kWideResult ? kF32 : type, dims, {factor, values}, a);
  };
  const Handle result = last_product();
  std::vector<Handle> results{result};
  if (change == Change::kWeightsReturned) results.push_back(weights);
  if (change == Change::kScoresReturned) results.push_back(scores);
  e.results(results);
  return print_launch_plan(planned(b).plan);
}

TEST(GridPlan, Attention_IsOneKernel) {
  for (const Change c : {Change::kNone, Change::kConvertedWeights, Change::kSecondFactor, Change::kReshaped}) {
    const std::string plan = plan_of_attention(c);
    EXPECT_NE(plan.find("\nattention"), std::string::npos) << static_cast<int>(c) << plan;
    EXPECT_EQ(plan.find("\nkernel"), std::string::npos) << static_cast<int>(c) << plan;
  }
}

TEST(GridPlan, AttentionWhoseScoresOrWeightsOthersRead_IsSeveralKernels) {
  for (const Change c : {Change::kWeightsReturned, Change::kScoresReturned})
    EXPECT_EQ(plan_of_attention(c).find("\nattention"), std::string::npos) << static_cast<int>(c);
}

TEST(GridPlan, AttentionWhoseRoundingShows_IsSeveralKernels) {
  for (const Change c : {Change::kRoundedWeights, Change::kWideResult})
    EXPECT_EQ(plan_of_attention(c).find("\nattention"), std::string::npos) << static_cast<int>(c);
}

TEST(GridPlan, ProductOfWeightsWithThemselves_IsNoAttention) {
  EXPECT_EQ(plan_of_attention(Change::kWeightsSquared).find("\nattention"), std::string::npos);
}

TEST(GridPlan, WhatIsNoSoftmaxOfRows_IsNoAttention) {
  for (const Change c : {Change::kOtherAxis, Change::kSmallest, Change::kSumFromFive})
    EXPECT_EQ(plan_of_attention(c).find("\nattention"), std::string::npos) << static_cast<int>(c);
}

/// Returns the launch plan of tanh(x y + bias) for a target with libraries.
std::string plan_of_product(int64_t rows, uint32_t type, bool is_transposed) {
  constexpr int64_t kColumns = 80;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(type, is_transposed ? std::vector<int64_t>{kDepth, rows} : std::vector{rows, kDepth});
  const Handle y = e.argument(type, {kDepth, kColumns});
  const Handle bias = e.argument(kF32, {kColumns});
  collet_dot_attrs a{};
  a.lhs_contracting = b.list({is_transposed ? 0 : 1});
  a.rhs_contracting = b.list({0});
  const Handle product = e.op(COLLET_OP_DOT, kF32, {rows, kColumns}, {x, y}, a);
  const Handle sum = e.binary(COLLET_OP_ADD, product, e.broadcast(bias, {rows, kColumns}, {1}));
  e.results({e.unary(COLLET_OP_TANH, sum)});
  Target target;
  target.grid.warp = 32;
  target.grid.libraries.products = true;
  PlannedProgram program;
  const Status status = plan_program(b.finish(), target, CompileOptions(), program);
  EXPECT_TRUE(status.ok()) << status.message();
  return print_launch_plan(program.plan);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GridPlan, ProductForATargetWithALibrary_HasBothWays) {
  const std::string plan = plan_of_product(256, kF32, false);
  EXPECT_TRUE(has(plan,
                  "library 0: product of 1 of 256 x 80 x 32, f32[0, 32, 1] * f32[0, 80, 1] -> f32[0, 80, 1], "
                  "sums of f32\n"))
      << plan;
  EXPECT_TRUE(has(plan, "choice 0\n  way 0\n    kernel0(argument0, argument1, result0, argument2)")) << plan;
  EXPECT_TRUE(has(plan, "  way 1\n    library 0(argument0, argument1, result0)\n    kernel1(")) << plan;
}

TEST(GridPlan, ProductOfATransposedMatrix_HasItsDistances) {
  const std::string plan = plan_of_product(256, COLLET_TYPE_BF16, true);
  EXPECT_TRUE(has(plan, "bf16[0, 1, 256] * bf16[0, 80, 1] -> f32[0, 80, 1], sums of f32")) << plan;
}

TEST(GridPlan, SmallProduct_HasNoLibrary) {
  EXPECT_FALSE(has(plan_of_product(2, kF32, false), "library"));
}

TEST(GridPlan, UpdateOfAnArgument_IsWrittenOverItByBothWays) {
  for (const bool has_library : {false, true}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    const Handle weights = e.argument(kF32, {256, 80});
    const Handle x = e.argument(kF32, {256, kDepth});
    const Handle y = e.argument(kF32, {kDepth, 80});
    collet_dot_attrs a{};
    a.lhs_contracting = b.list({1});
    a.rhs_contracting = b.list({0});
    const Handle step = e.op(COLLET_OP_DOT, kF32, {256, 80}, {x, y}, a);
    e.results({e.binary(COLLET_OP_SUBTRACT, weights, step)});
    b.alias(0, 0);
    Target target;
    target.grid.warp = 32;
    target.grid.libraries.products = has_library;
    PlannedProgram program;
    ASSERT_TRUE(plan_program(b.finish(), target, CompileOptions(), program).ok());
    const std::string plan = print_launch_plan(program.plan);
    EXPECT_TRUE(has(plan, "kernel0(argument1, argument2, result0, argument0)")) << plan;
    EXPECT_FALSE(has(plan, "copy")) << plan;
    if (!has_library) continue;
    EXPECT_TRUE(has(plan, "library 0(argument1, argument2, workspace+"))
        << "the weights are still to be read: " << plan;
  }
}

/// Returns the launch plan of a convolution of an input [2, 12, 12, 8] with a filter [3, 3, 8, 16]. The padding is
/// `padding_low` before each dimension, and 1 behind it.
std::string plan_of_convolution(int64_t padding_low) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(kF32, {2, 12, 12, 8});
  const Handle w = e.argument(kF32, {3, 3, 8, 16});
  const auto both = [&](int64_t n) { return b.list({n, n}); };
  collet_convolution_attrs a{};
  a.window = {both(3), both(1), both(padding_low), both(1), both(1), both(1), both(0)};
  a.labels = {0, 3, 2, 3, 0, 3, b.list({1, 2}), b.list({0, 1}), b.list({1, 2})};
  a.feature_groups = a.batch_groups = 1;
  const int64_t length = 11 + padding_low;
  e.results({e.op(COLLET_OP_CONVOLUTION, kF32, {2, length, length, 16}, {x, w}, a)});
  Target target;
  target.grid.warp = 32;
  target.grid.libraries.convolutions = true;
  PlannedProgram program;
  const Status status = plan_program(b.finish(), target, CompileOptions(), program);
  EXPECT_TRUE(status.ok()) << status.message();
  return print_launch_plan(program.plan);
}

TEST(GridPlan, ConvolutionForATargetWithALibrary_HasBothWays) {
  const std::string plan = plan_of_convolution(1);
  EXPECT_TRUE(has(plan,
                  "library 0: convolution of 2 of 8 to 16 features, 12 to 12 by 3 pad 1, 12 to 12 by 3 pad 1, f32, "
                  "sums of f32, filter with features last\n"))
      << plan;
  EXPECT_TRUE(has(plan, "  way 1\n    kernel2(argument1, workspace+128)")) << "the filter in the library's order\n"
                                                                           << plan;
  EXPECT_TRUE(has(plan, "\n    library 0(argument0, workspace+128, result0)\n")) << plan;
  const std::string one_side = plan_of_convolution(0);
  EXPECT_TRUE(has(one_side, "library 0: convolution of 2 of 8 to 16 features, 13 to 11 by 3, 13 to 11 by 3, f32"))
      << "padding of one side is part of a copy of the input\n"
      << one_side;
}

/// Returns the launch plan of f(a) for a matrix a [2, m, n] of f32 and a target whose library has factorizations.
template <class Make>
std::string plan_of_factorization(int64_t m, int64_t n, const Make& make) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle a = e.argument(kF32, {2, m, n});
  e.results({make(b, e, a)});
  Target target;
  target.grid.warp = 32;
  target.grid.libraries.factorizations = true;
  target.routines = false;
  const collet_program* const built = b.finish();
  EXPECT_TRUE(check_program(built, target, nullptr).ok());
  PlannedProgram program;
  const Status status = plan_program(built, target, CompileOptions(), program);
  EXPECT_TRUE(status.ok()) << status.message();
  target.grid.libraries.factorizations = false;
  EXPECT_FALSE(check_program(built, target, nullptr).ok()) << "without a library, the SDK expands it";
  return print_launch_plan(program.plan);
}

TEST(GridPlan, Cholesky_IsTheOtherTriangleOfTheTranspose) {
  const std::string plan = plan_of_factorization(5, 5, [](ProgramBuilder&, RegionBuilder& e, Handle a) {
    return e.op(COLLET_OP_CHOLESKY, kF32, {2, 5, 5}, {a}, collet_cholesky_attrs{1, 0});
  });
  EXPECT_TRUE(has(plan, "library 0: cholesky of 2 of 5 x 5, f32, upper\n")) << plan;
  EXPECT_TRUE(has(plan, "copy(argument0, workspace+128)")) << "the argument is not overwritten\n" << plan;
  EXPECT_TRUE(has(plan, "library 0(workspace+128, workspace+384)")) << plan;
}

TEST(GridPlan, TriangularSolve_IsTheTransposedSystem) {
  const std::string plan = plan_of_factorization(5, 5, [](ProgramBuilder&, RegionBuilder& e, Handle a) {
    collet_triangular_solve_attrs attrs{};
    attrs.left_side = 1;
    attrs.lower = 1;
    attrs.transpose_a = COLLET_TRANSPOSE_ADJOINT;
    return e.op(COLLET_OP_TRIANGULAR_SOLVE, kF32, {2, 5, 3}, {a, e.argument(kF32, {2, 5, 3})}, attrs);
  });
  EXPECT_TRUE(has(plan, "library 0: triangular-solve of 2 of 3 x 5, f32, upper, right, adjoint\n")) << plan;
  EXPECT_TRUE(has(plan, "library 0(argument0, result0)\n")) << plan;
}

TEST(GridPlan, InverseFft_IsScaledAndKeepsItsOperand) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(COLLET_TYPE_C64, {3, 5});
  const Handle y = e.op(COLLET_OP_FFT, kF32, {3, 8}, {x}, collet_fft_attrs{COLLET_FFT_IRFFT, 0, b.list({8})});
  e.results({y});
  Target target;
  target.grid.warp = 32;
  target.grid.libraries.fft = true;
  target.routines = false;
  const collet_program* const built = b.finish();
  EXPECT_TRUE(check_program(built, target, nullptr).ok());
  PlannedProgram program;
  ASSERT_TRUE(plan_program(built, target, CompileOptions(), program).ok());
  const std::string plan = print_launch_plan(program.plan);
  EXPECT_TRUE(has(plan, "library 0: inverse fft of 3 of 8, c64 -> f32\n")) << plan;
  EXPECT_TRUE(has(plan, "kernel0(argument0, workspace+64)")) << plan;
  EXPECT_TRUE(has(plan, "threads\nlibrary 0(workspace+64, ")) << plan;
  EXPECT_EQ(program.plan.steps.size(), 3U) << plan;
  target.grid.libraries.fft = false;
  EXPECT_FALSE(check_program(built, target, nullptr).ok()) << "without a library, the SDK expands it";
}

}  // namespace
}  // namespace collet::codegen
