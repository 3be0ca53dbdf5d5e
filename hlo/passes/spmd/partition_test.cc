// SPDX-License-Identifier: Apache-2.0
// Partitions programs as frontends write them for several devices, and runs them on eight simulated devices.
#include <gmock/gmock.h>

#include <array>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/spmd/array_sharding.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kMesh = R"(sdy.mesh @mesh = <["x"=4, "y"=2]>
)";

std::unique_ptr<Module> read(const std::string& text) {
  auto program = mlir::read_text(std::string(kMesh) + text, "test");
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  if (!program.ok()) return nullptr;
  auto module = import_program(**program);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? std::move(*module) : nullptr;
}

Status partition(Module& module, int64_t partitions = 8) {
  PassContext context;
  context.partition_count = partitions;
  module.header().num_partitions = partitions;
  static constexpr std::string_view kPasses[] = {"flatten_tuples", "partition_spmd", "eliminate_dead"};
  COLLET_TRY(run_passes(module, context, kPasses).status());
  return verify_module(module);
}

/// Runs a module with one parameter f32[8,8], given as tiles of 0 ... 63; returns the results of all partitions.
std::vector<std::vector<Literal>> run(const Module& module) {
  const Instruction& parameter = module[module.entry_computation().parameters[0]];
  const auto sharding = spmd::from_hlo_sharding(*parameter.extras->sharding, 2, 8);
  std::vector<std::vector<Literal>> in(8);
  for (size_t p = 0; p < 8; ++p) {
    Literal x = Literal::zeros(parameter.shape);
    const int64_t rows = parameter.shape.dim(0), columns = parameter.shape.dim(1);
    for (int64_t i = 0; i < rows * columns; ++i)
      x.set_double(i, static_cast<double>((sharding->dimensions[0].tile(p) * rows + i / columns) * 8 +
                                          sharding->dimensions[1].tile(p) * columns + i % columns));
    in[p].push_back(std::move(x));
  }
  EvalOptions options;
  options.partitions = 8;
  auto out = Evaluator(module, options).run_all(in);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  std::vector<std::vector<Literal>> leaves;
  if (out.ok())
    for (const Literal& value : *out) leaves.push_back(flatten(value));
  return leaves;
}

std::string root_sharding(const Module& module) {
  return module[module.entry_computation().root].extras->sharding->to_string();
}

// A computation that is manual along all axes has its own collectives.
TEST(Partition, ManualComputation_KeepsItsCollectives) {
  const auto module = read(R"(func.func @main(%x: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"x", "y"} (%a: tensor<2x4xf32>) {
    %1 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    sdy.return %1 : tensor<2x4xf32>
  } : (tensor<8x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
)");
  ASSERT_TRUE(module);
  const Status status = partition(*module);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(root_sharding(*module), "{devices=[1,2,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}");
  const auto out = run(*module);
  ASSERT_EQ(out.size(), 8u);
  for (size_t p = 0; p < 8; ++p)
    for (int64_t i = 0; i < 8; ++i) {
      const auto row = static_cast<double>(i / 4), column = static_cast<double>(i % 4 + (p % 2) * 4);
      EXPECT_EQ(out[p][0].as_double(i), 4 * (8 * row + column) + 8 * (0 + 2 + 4 + 6)) << p << ", " << i;
    }
}

// A computation that is manual along one axis is partitioned along the other.
TEST(Partition, PartlyManualComputation_IsPartitionedAlongTheFreeAxis) {
  const auto module = read(
      R"(func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<2x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"x"} (%a: tensor<2x8xf32>) {
    %1 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"y"}]> : tensor<2x8xf32>
    sdy.return %2 : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
)");
  ASSERT_TRUE(module);
  const Status status = partition(*module);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(root_sharding(*module), "{devices=[1,2,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}");
  const auto out = run(*module);
  ASSERT_EQ(out.size(), 8u);
  for (size_t p = 0; p < 8; ++p)
    for (int64_t i = 0; i < 8; ++i) {
      const auto row = static_cast<double>(i / 4), column = static_cast<double>(i % 4 + (p % 2) * 4);
      EXPECT_EQ(out[p][0].as_double(i), 4 * (8 * row + column) + 8 * (0 + 2 + 4 + 6)) << p << ", " << i;
    }
}

// A computation without results has its side effects.
TEST(Partition, ManualComputationWithoutResults_Stays) {
  const auto module = read(
      R"(func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[] manual_axes={"x", "y"} (%a: tensor<2x8xf32>) {
    stablehlo.custom_call @tell(%a) {has_side_effect = true} : (tensor<2x8xf32>) -> ()
    sdy.return
  } : (tensor<8x8xf32>) -> ()
  return %x : tensor<8x8xf32>
}
)");
  ASSERT_TRUE(module);
  const Status status = partition(*module);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_THAT(print_module(*module, {}), HasSubstr("custom_call_target=\"tell\""));
}

// An unreduced value enters and leaves as it is; other uses reduce it first.
TEST(Partition, UnreducedResult_IsReducedForOtherUses) {
  const auto module = read(
      R"(func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<2x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>}, tensor<2x8xf32>) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}], unreduced={"x"}>] manual_axes={"x", "y"} (%a: tensor<2x8xf32>) {
    %1 = stablehlo.negate %a : tensor<2x8xf32>
    sdy.return %1 : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<2x8xf32>
  %2 = stablehlo.negate %0 : tensor<2x8xf32>
  return %0, %2 : tensor<2x8xf32>, tensor<2x8xf32>
}
)");
  ASSERT_TRUE(module);
  const Status status = partition(*module);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(root_sharding(*module),
            "{{devices=[1,1,4,2]0,1,2,3,4,5,6,7 last_tile_dims={unreduced, replicated}}, {replicated}}");
  const auto out = run(*module);
  ASSERT_EQ(out.size(), 8u);
  for (size_t p = 0; p < 8; ++p)
    for (int64_t i = 0; i < 16; ++i) {
      EXPECT_EQ(out[p][0].as_double(i), -static_cast<double>((static_cast<int64_t>(p) / 2) * 16 + i));
      EXPECT_EQ(out[p][1].as_double(i), static_cast<double>(4 * i + 16 * (0 + 1 + 2 + 3)));
    }
}

// Runs the ops `what` on x, whose rows are split by mesh axis "x" and whose columns by "y"; returns the results of all
// partitions.
std::vector<std::vector<Literal>> sums(const std::string& what, const std::string& result, std::string* text) {
  const auto module = read(
      "func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, "
      "{\"y\"}]>}) -> " +
      result + " {\n" + what + "}\n");
  if (!module) return {};
  const Status status = partition(*module);
  EXPECT_TRUE(status.ok()) << status.to_string();
  *text = print_module(*module, {});
  return status.ok() ? run(*module) : std::vector<std::vector<Literal>>();
}

constexpr const char* kSumRows = R"(%zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
)";

// A reduction leaves its result unreduced where a constraint wants that, and so do ops that sums pass through.
TEST(Partition, UnreducedConstraints_NeedNoAllReduce) {
  std::string text;
  const auto out =
      sums(std::string(kSumRows) + R"(%1 = sdy.sharding_constraint %0 <@mesh, [{"y"}], unreduced={"x"}> : tensor<8xf32>
  %two = stablehlo.constant dense<2.0> : tensor<8xf32>
  %2 = stablehlo.multiply %1, %two : tensor<8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"y"}], unreduced={"x"}> : tensor<8xf32>
  %4 = stablehlo.subtract %two, %3 : tensor<8xf32>
  %5 = sdy.sharding_constraint %4 <@mesh, [{"y"}], unreduced={"x"}> : tensor<8xf32>
  return %5 : tensor<8xf32>
)",
           R"((tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}], unreduced={"x"}>}))", &text);
  EXPECT_EQ(text.find("all-reduce"), std::string::npos) << text;
  ASSERT_EQ(out.size(), 8u);
  for (size_t p = 0; p < 8; ++p)
    for (int64_t i = 0; i < 4; ++i) {
      const auto row = static_cast<double>(p / 2 * 2),
                 column = static_cast<double>(static_cast<int64_t>(p % 2) * 4 + i);
      EXPECT_EQ(out[p][0].as_double(i), (p < 2 ? 2 : 0) - 2 * (8 * row + column + 8 * (row + 1) + column)) << p;
    }
}

// A value that is unreduced along two axes is reduced along one.
TEST(Partition, UnreducedAlongTwoAxes_IsReducedAlongOne) {
  std::string text;
  const auto out = sums(R"(%zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  %1 = sdy.sharding_constraint %0 <@mesh, [], unreduced={"x", "y"}> : tensor<f32>
  %2 = sdy.sharding_constraint %1 <@mesh, [], unreduced={"x"}> : tensor<f32>
  return %2 : tensor<f32>
)",
                        R"((tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, [], unreduced={"x"}>}))", &text);
  EXPECT_THAT(text, HasSubstr("replica_groups={{0,1},{2,3},{4,5},{6,7}}"));
  ASSERT_EQ(out.size(), 8u);
  for (size_t p = 0; p < 8; ++p) {
    const double first = static_cast<double>(p / 2) * 16;
    EXPECT_EQ(out[p][0].as_double(0), 16 * first + 15 * 8) << p;
  }
}

// Tiles along a mesh axis become terms of a sum: each term has its tile at its position, and zeros elsewhere.
TEST(Partition, SplitToUnreduced_NeedsNoCollective) {
  std::string text;
  const auto out =
      sums(R"(%0 = sdy.sharding_constraint %x <@mesh, [{}, {"y"}], unreduced={"x"}> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
)",
           R"((tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}], unreduced={"x"}>}))", &text);
  for (const char* op : {"all-reduce", "all-gather"}) EXPECT_EQ(text.find(op), std::string::npos) << text;
  ASSERT_EQ(out.size(), 8u);
  for (size_t p = 0; p < 8; ++p)
    for (int64_t i = 0; i < 32; ++i) {
      const int64_t row = i / 4, column = static_cast<int64_t>(p % 2) * 4 + i % 4;
      EXPECT_EQ(out[p][0].as_double(i), row / 2 == static_cast<int64_t>(p / 2) ? 8 * row + column : 0) << p;
    }
}

// A scatter into an unreduced result adds the updates of each partition to its own terms.
TEST(Partition, ScatterToUnreduced_NeedsNoAllReduce) {
  std::string text;
  const auto out = sums(R"(%one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %at = stablehlo.constant dense<[[0], [0], [1], [1], [1], [2], [2], [3]]> : tensor<8x1xi32>
  %updates = stablehlo.slice %x [0:8, 0:1] : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %flat = stablehlo.reshape %updates : (tensor<8x1xf32>) -> tensor<8xf32>
  %0 = "stablehlo.scatter"(%one, %at, %flat) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}], unreduced={"x"}> : tensor<4xf32>
  return %1 : tensor<4xf32>
)",
                        R"((tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}))", &text);
  EXPECT_EQ(text.find("all-reduce"), std::string::npos) << text;
  constexpr double kTerms[4][4] = {{9, 1, 1, 1}, {0, 40, 0, 0}, {0, 32, 40, 0}, {0, 0, 48, 56}};
  ASSERT_EQ(out.size(), 8u);
  for (size_t p = 0; p < 8; ++p)
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(out[p][0].as_double(i), kTerms[p / 2][i]) << p << ", " << i;
}

// The state of a loop stays unreduced; it is reduced once after the loop.
TEST(Partition, UnreducedLoopState_IsReducedOnceBehindTheLoop) {
  std::string text;
  const auto out = sums(R"(%none = stablehlo.constant dense<0.0> : tensor<8xf32>
  %start = sdy.sharding_constraint %none <@mesh, [{"y"}], unreduced={"x"}> : tensor<8xf32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %w:3 = stablehlo.while(%i = %c0, %sum = %start, %y = %x) : tensor<i32>, tensor<8xf32>, tensor<8x8xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}], unreduced={"x"}> : tensor<8xf32>
    %2 = stablehlo.add %sum, %1 : tensor<8xf32>
    %3 = sdy.sharding_constraint %2 <@mesh, [{"y"}], unreduced={"x"}> : tensor<8xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %3, %y : tensor<i32>, tensor<8xf32>, tensor<8x8xf32>
  }
  %4 = sdy.sharding_constraint %w#1 <@mesh, [{"y"}]> : tensor<8xf32>
  return %4 : tensor<8xf32>
)",
                        R"((tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}))", &text);
  const size_t first = text.find(" all-reduce(");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(" all-reduce(", first + 1), std::string::npos) << text;
  EXPECT_LT(text.find("ENTRY"), first) << text;
  ASSERT_EQ(out.size(), 8u);
  for (size_t p = 0; p < 8; ++p)
    for (int64_t i = 0; i < 4; ++i) {
      const auto column = static_cast<double>(static_cast<int64_t>(p % 2) * 4 + i);
      EXPECT_EQ(out[p][0].as_double(i), 3 * (8 * 28 + 8 * column)) << p;
    }
}

// A value cannot be split and unreduced along one axis.
TEST(Partition, SplitAndUnreducedAlongOneAxis_IsRefused) {
  const auto module = read(
      R"(func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}], unreduced={"x"}>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%a: tensor<2x8xf32>) {
    sdy.return %a : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
)");
  ASSERT_TRUE(module);
  EXPECT_THAT(partition(*module).to_string(), HasSubstr("splits by an axis along which it is to be summed"));
}

// A parameter that does not split evenly is refused, with the reason.
TEST(Partition, UnevenParameter_IsRefused) {
  const auto module = read(
      R"(func.func @main(%x: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<6x8xf32> {
  return %x : tensor<6x8xf32>
}
)");
  ASSERT_TRUE(module);
  EXPECT_THAT(partition(*module).to_string(), HasSubstr("dimension 0 does not split into 4 equal tiles"));
}

TEST(Partition, MeshOfOtherSize_IsRefused) {
  const auto module = read(R"(func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%a: tensor<2x8xf32>) {
    sdy.return %a : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
)");
  ASSERT_TRUE(module);
  EXPECT_THAT(partition(*module, 4).to_string(), HasSubstr("a mesh of 8 devices in a program of 4 partitions"));
}

std::string partitioned(std::string_view text) {
  auto module = parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  if (!module.ok()) return {};
  const Status status = partition(**module, (*module)->header().num_partitions);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return print_module(**module, {});
}

// A callback without results runs on the device that it names.
TEST(Partition, CallbackOfOneDevice_RunsThere) {
  const auto module = read(R"(sdy.mesh @one = <[], device_ids=[3]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
  stablehlo.custom_call @print(%x) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8x8xf32>) -> ()
  return %x : tensor<8x8xf32>
}
)");
  ASSERT_TRUE(module);
  const Status status = partition(*module);
  ASSERT_TRUE(status.ok()) << status.to_string();
  const std::string text = print_module(*module, {});
  EXPECT_THAT(text, HasSubstr("conditional"));
  EXPECT_THAT(text, HasSubstr("constant(3)"));
}

// So does an outfeed; without such a sharding each partition has a feed of its own.
TEST(Partition, OutfeedOfOneDevice_RunsThere) {
  for (const bool of_one : {true, false}) {
    const std::string text = partitioned(std::string(R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[2]0,1}
  k = token[] after-all()
  o = token[] outfeed(x, k), outfeed_shape=f32[8])") +
                                         (of_one ? ", sharding={maximal device=1}" : "") + R"(
  ROOT r = f32[8] negate(x), sharding={devices=[2]0,1}
})");
    EXPECT_EQ(text.find("conditional") != std::string::npos, of_one) << text;
    EXPECT_THAT(text, HasSubstr("outfeed("));
  }
}

// Ops on operands that are split alike need no collective.
TEST(Partition, OperandsSplitAlike_NeedNoCollective) {
  const std::string text = partitioned(R"(HloModule m, num_partitions=4
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY e {
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[16,16] parameter(1)
  zero = f32[] constant(0)
  h = f32[8,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  low = f32[] constant(-inf)
  m = f32[8] reduce(h, low), dimensions={1}, to_apply=max
  mb = f32[8,16] broadcast(m), dimensions={0}
  d = f32[8,16] subtract(h, mb)
  r = f32[8,4,4] reshape(d)
  ROOT t = f32[4,8,4] transpose(r), dimensions={1,0,2}
})");
  for (const char* op : {"all-reduce", "all-gather", "all-to-all", "partition-id"})
    EXPECT_EQ(text.find(op), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("f32[4,2,4] transpose"));
}

// All-reduces that do not depend on each other are combined.
TEST(Partition, IndependentAllReduces_AreCombined) {
  const std::string text = partitioned(R"(HloModule m, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[8,16] parameter(1), sharding={devices=[4,1]<=[4]}
  zero = f32[] constant(0)
  a = f32[16] reduce(x, zero), dimensions={0}, to_apply=add
  c = f32[16] exponential(a)
  b = f32[] reduce(y, zero), dimensions={0,1}, to_apply=add
  d = f32[16] broadcast(b), dimensions={}
  r = f32[16] multiply(c, d)
  w = f32[8,16] broadcast(r), dimensions={1}
  z = f32[8,16] multiply(w, x)
  s = f32[] reduce(z, zero), dimensions={0,1}, to_apply=add
  ROOT t = (f32[16], f32[]) tuple(r, s)
})");
  EXPECT_THAT(text, HasSubstr("(f32[16], f32[]) all-reduce("));
  size_t count = 0;
  for (size_t at = text.find(" all-reduce("); at != std::string::npos; at = text.find(" all-reduce(", at + 1)) ++count;
  EXPECT_EQ(count, 2u) << text;
}

// Values that follow from iotas and constants are computed by tile.
TEST(Partition, ValuesOfIotas_AreComputedByTile) {
  constexpr std::string_view kText = R"(HloModule m, num_partitions=4
ENTRY e {
  x = u32[8,6] parameter(0), sharding={devices=[2,2]<=[4]}
  key = u32[] parameter(1), sharding={replicated}
  rows = u32[8,6] iota(), iota_dimension=0
  columns = f32[8,6] iota(), iota_dimension=1
  number = u32[8,6] convert(columns)
  flat = u32[48] iota(), iota_dimension=0
  counts = u32[8,6] reshape(flat)
  keys = u32[8,6] broadcast(key), dimensions={}
  steps = u32[6] constant({1, 2, 3, 4, 5, 6})
  scale = u32[8,6] broadcast(steps), dimensions={1}
  turned = u32[6,8] transpose(rows), dimensions={1,0}
  back = u32[8,6] transpose(turned), dimensions={1,0}
  a = u32[8,6] multiply(back, scale)
  b = u32[8,6] add(a, number)
  c = u32[8,6] xor(b, keys)
  d = u32[8,6] add(c, x)
  ROOT r = u32[8,6] subtract(d, counts)
})";
  const std::string text = partitioned(kText);
  for (const char* gone : {"u32[6,8]", "u32[8,6] xor", "all-reduce", "all-gather", "u32[8,6] iota"})
    EXPECT_EQ(text.find(gone), std::string::npos) << gone << "\n" << text;
  EXPECT_THAT(text, HasSubstr("u32[4,3] xor"));
  // The iota over two dimensions is split along the major one; along the other a tile is sliced from it.
  EXPECT_THAT(text, HasSubstr("u32[24] iota"));

  // The tiles must have the same numbers as the whole array.
  auto whole = parse_module(kText), tiled = parse_module(kText);
  ASSERT_TRUE(whole.ok() && tiled.ok() && partition(**tiled, 4).ok());
  Literal x = Literal::zeros(Shape::array(Type::U32, std::array<int64_t, 2>{8, 6}));
  Literal key = Literal::zeros(Shape::array(Type::U32, {}));
  key.set_int(0, 12345);
  for (int64_t i = 0; i < 48; ++i) x.set_int(i, i * i);
  auto want = Evaluator(**whole).run({x, key});
  ASSERT_TRUE(want.ok()) << want.status().to_string();
  std::vector<std::vector<Literal>> in;
  const auto place = [](int64_t p, int64_t i) { return (p / 2 * 4 + i / 3) * 6 + p % 2 * 3 + i % 3; };
  for (int64_t p = 0; p < 4; ++p) {
    Literal tile = Literal::zeros(Shape::array(Type::U32, std::array<int64_t, 2>{4, 3}));
    for (int64_t i = 0; i < 12; ++i) tile.set_int(i, x.as_int(place(p, i)));
    in.push_back({tile, key});
  }
  EvalOptions options;
  options.partitions = 4;
  auto got = Evaluator(**tiled, options).run_all(in);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  for (int64_t p = 0; p < 4; ++p)
    for (int64_t i = 0; i < 12; ++i)
      EXPECT_EQ((*got)[static_cast<size_t>(p)].as_int(i), want->as_int(place(p, i))) << p << ", " << i;
}

// Positions in dimensions of more than 2^31 elements are numbers of s64.
TEST(Partition, LargeDimensions_HavePositionsOfS64) {
  EXPECT_THAT(partitioned(R"(HloModule m, num_partitions=4
ENTRY e {
  x = s8[4000000000] parameter(0), sharding={replicated}
  ROOT y = s8[4000000000] negate(x), sharding={devices=[4]<=[4]}
})"),
              HasSubstr("s64[4] constant({0, 1000000000, 2000000000, 3000000000})"));
  EXPECT_THAT(partitioned(R"(HloModule m, num_partitions=4
ENTRY e {
  x = s8[6000000000] parameter(0), sharding={devices=[4]<=[4]}
  i = s32[] parameter(1)
  ROOT c = s8[2] dynamic-slice(x, i), dynamic_slice_sizes={2}
})"),
              HasSubstr("s64[] convert(%i)"));
  EXPECT_THAT(partitioned(R"(HloModule m, num_partitions=4
ENTRY e {
  x = s8[2400000000] parameter(0), sharding={devices=[4]<=[4]}
  y = s8[1600000000] parameter(1), sharding={devices=[4]<=[4]}
  ROOT c = s8[4000000000] concatenate(x, y), dimensions={0}, sharding={devices=[4]<=[4]}
})"),
              HasSubstr("s64[] constant(2400000000)"));
}

// 6 and 21 rows have the factor 3 in common, and padded tiles of it are no tiles of the rows.
TEST(Partition, ReshapeWithAPartOfADimension_IsSplitEvenlyOrNot) {
  partitioned(R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[6,35] parameter(0), sharding={devices=[2,1]<=[2]}
  a = f32[6,35] sine(x), sharding={devices=[2,1]<=[2]}
  y = f32[21,10] reshape(a)
  ROOT r = f32[21,10] sine(y)
})");
  partitioned(R"(HloModule m, num_partitions=3
ENTRY e {
  x = f32[21,2] parameter(0), sharding={devices=[3,1]<=[3]}
  i = f32[6,7] iota(), iota_dimension=0, sharding={replicated}
  r = f32[21,2] reshape(i), sharding={replicated}
  ROOT s = f32[21,2] add(x, r), sharding={devices=[3,1]<=[3]}
})");
}

// An operand that has the sharding of the result keeps it; the other one is gathered.
TEST(Partition, StatedResult_GathersTheOtherOperand) {
  const std::string text = partitioned(R"(HloModule m, num_partitions=4
ENTRY e {
  x = f32[8,8] parameter(0), sharding={devices=[1,4]<=[4]}
  y = f32[8,8] parameter(1), sharding={devices=[1,4]<=[4]}
  ROOT z = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[1,4]<=[4]}
})");
  EXPECT_THAT(text, HasSubstr("f32[8,2] dot"));
  EXPECT_THAT(text, HasSubstr("all-gather"));
  for (const char* op : {"all-reduce", "all-to-all"}) EXPECT_EQ(text.find(op), std::string::npos) << text;
}

// A donated tile is aliased with a result's tile of its size, if there is one.
TEST(Partition, Donors_AreAliasedWithResultsOfTheirSize) {
  const std::string text = partitioned(R"(HloModule m, num_partitions=4, buffer_donor={ (0, {}), (1, {}), (2, {}) }
ENTRY e {
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[8] parameter(1), sharding={devices=[4]<=[4]}
  z = s32[8] parameter(2), sharding={devices=[4]<=[4]}
  a = f32[8] negate(y)
  b = f32[8] add(y, y)
  c = f32[16,8] transpose(x), dimensions={1,0}
  ROOT r = (f32[8], f32[8], s32[8]) tuple(a, b, z)
})");
  EXPECT_THAT(text, HasSubstr("input_output_alias={ {0}: (1, {}, may-alias) }"));
  EXPECT_THAT(text, HasSubstr("buffer_donor={ (2, {}) }"));
}

// A split that moves to another dimension is an all-to-all, no all-gather.
TEST(Partition, SplitThatMoves_IsAnAllToAll) {
  const std::string text = partitioned(R"(HloModule m, num_partitions=4
ENTRY e {
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[8,16] negate(x), sharding={devices=[1,4]<=[4]}
})");
  EXPECT_THAT(text, HasSubstr("all-to-all"));
  EXPECT_EQ(text.find("all-gather"), std::string::npos) << text;
}

// State that starts replicated and leaves the body split is split from the start.
TEST(Partition, LoopState_KeepsTheShardingOfTheBody) {
  const std::string text = partitioned(R"(HloModule m, num_partitions=4
cond {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  c = f32[8] add(a, b)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, c, b)
}
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  zero = s32[] constant(0)
  none = f32[] constant(0)
  start = f32[8] broadcast(none), dimensions={}
  init = (s32[], f32[8], f32[8]) tuple(zero, start, x)
  w = (s32[], f32[8], f32[8]) while(init), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
})");
  EXPECT_EQ(text.find("all-gather"), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("(s32[], f32[2], f32[2], u32[]) while"));
}

// The header says which parameters and results propagation may split.
TEST(Partition, PropagationToParametersAndResults_FollowsTheHeader) {
  const auto program = [](const std::string& header) {
    return partitioned("HloModule m, num_partitions=4" + header + R"(
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  y = f32[8] parameter(1)
  ROOT r = f32[8] add(x, y)
})");
  };
  EXPECT_THAT(program(""), HasSubstr("(x: f32[2], y: f32[8]) -> f32[2]"));
  EXPECT_THAT(program(", allow_spmd_sharding_propagation_to_parameters={true,true}"),
              HasSubstr("(x: f32[2], y: f32[2]) -> f32[2]"));
  EXPECT_THAT(program(", allow_spmd_sharding_propagation_to_parameters={true,false}"),
              HasSubstr("(x: f32[2], y: f32[8]) -> f32[2]"));
  EXPECT_THAT(program(", allow_spmd_sharding_propagation_to_output={false}"),
              HasSubstr("(x: f32[2], y: f32[8]) -> f32[8]"));
}

// Running propagation and materialisation separately gives the same module as running both at once.
TEST(Partition, PropagationAndMaterialization_MayRunApart) {
  const char* text = R"(HloModule m, num_partitions=4
ENTRY e {
  x = f32[64,10] parameter(0), sharding={devices=[4,1]<=[4]}
  t = f32[10,64] transpose(x), dimensions={1,0}
  e = f32[10,64] exponential(t), sharding={devices=[4,1]<=[4]}
  s = f32[9,64] slice(e), slice={[1:10], [0:64]}
  ROOT d = f32[9,10] dot(s, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";
  auto once = parse_module(text), apart = parse_module(text);
  ASSERT_TRUE(once.ok() && apart.ok());
  PassContext context;
  context.partition_count = 4;
  ASSERT_TRUE(spmd_partition(**once, context).ok());
  ASSERT_TRUE(spmd_propagate(**apart, context).ok());
  auto printed = parse_module(print_module(**apart, {}));
  ASSERT_TRUE(printed.ok()) << printed.status().to_string();
  ASSERT_TRUE(spmd_partition(**printed, context).ok());
  PrintOptions options;
  options.style = PrintStyle::Short;
  EXPECT_EQ(print_module(**printed, options), print_module(**once, options));
}

}  // namespace
}  // namespace collet::hlo
