// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/write.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "hlo/ops/rules.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/testing/golden.h"
#include "hlo/text/printer.h"

namespace collet::hlo {
namespace {

/// A program of ops, attributes, regions, functions and types that artifacts of every version support.
constexpr std::string_view kEveryVersion = R"(
module @every attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<4x3xf32> {jax.buffer_donor = true}, %n: tensor<i32>) -> (tensor<4x3xf32>, tensor<4xi1>) {
    %c = stablehlo.constant dense<[1, -8, 7, -1]> : tensor<4xi4>
    %p = stablehlo.constant dense<[true, false, true, true]> : tensor<4xi1>
    %w = stablehlo.convert %c : (tensor<4xi4>) -> tensor<4xi32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %q = stablehlo.compare LT, %w, %w, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %pq = stablehlo.and %p, %q : tensor<4xi1>
    %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4x3xf32>
    cond {
      %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %u = func.call @helper(%v) : (tensor<4x3xf32>) -> tensor<4x3xf32>
      stablehlo.return %j, %u : tensor<i32>, tensor<4x3xf32>
    }
    %m = "stablehlo.reduce_window"(%r#1, %init) <{window_dimensions = array<i64: 1, 3>,
        padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    %g = stablehlo.custom_call @target(%m) {backend_config = "a\22b", has_side_effect = true,
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0,
        operand_tuple_indices = []>]} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %g, %pq : tensor<4x3xf32>, tensor<4xi1>
  }
  func.func private @helper(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1],
        rhs_contracting_dimensions = [1]>}> : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x4xf32>
    %1 = stablehlo.slice %0 [0:4, 0:3] : (tensor<4x4xf32>) -> tensor<4x3xf32>
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %2 : tensor<4x3xf32>
  }
}
)";

std::unique_ptr<mlir::Program> parse(std::string_view text) {
  auto program = mlir::read_text(text, "test");
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  return program.ok() ? std::move(*program) : nullptr;
}

/// Returns the program as HLO text, or the message of the error.
std::string as_hlo(const mlir::Program& program) {
  auto module = import_program(program);
  return module.ok() ? print_module(**module) : module.status().to_string();
}

std::string body(std::string_view ops) {
  return "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n" + std::string(ops) + "\n}\n";
}

TEST(StableHloText, IsWrittenAsTheGoldenHasIt) {
  const std::string complaint =
      testing::check_golden("hlo/stablehlo/testdata/written.golden", [](const testing::GoldenCase& golden) {
        auto program = mlir::read_text(golden.input, golden.path);
        return program.ok() ? Expected<std::string>(mlir::print_program(**program)) : program.status();
      });
  EXPECT_EQ(complaint, "");
}

TEST(StableHloText, WrittenAndReadIsTheSameProgram) {
  const auto program = parse(kEveryVersion);
  ASSERT_TRUE(program);
  const std::string text = mlir::print_program(*program);
  const auto again = parse(text);
  ASSERT_TRUE(again) << text;
  EXPECT_EQ(mlir::print_program(*again), text);
  EXPECT_EQ(as_hlo(*again), as_hlo(*program));
  EXPECT_NE(as_hlo(*program).find("reduce-window"), std::string::npos);
}

class ArtifactVersions : public ::testing::TestWithParam<const char*> {};

TEST_P(ArtifactVersions, WrittenAndReadIsTheSameProgram) {
  const auto program = parse(kEveryVersion);
  ASSERT_TRUE(program);
  const auto version = mlir::parse_vhlo_version(GetParam());
  ASSERT_TRUE(version.ok());
  const auto artifact = mlir::write_bytecode(*program, *version);
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  const auto again = mlir::read_bytecode(*artifact);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ((*again)->producer, "StableHLO_v" + std::string(GetParam()));
  EXPECT_EQ(as_hlo(**again), as_hlo(*program));
  EXPECT_EQ(mlir::print_program(**again).substr(0, 13), "module @every");
}

INSTANTIATE_TEST_SUITE_P(Artifact, ArtifactVersions,
                         ::testing::Values("0.9.0", "0.10.0", "0.12.0", "0.14.0", "0.15.0", "0.17.6", "0.19.0", "1.0.0",
                                           "1.4.0", "1.8.0", "1.10.0", "1.13.7", "1.16.0", "1.17.0"));

TEST(Artifact, SameProgramSameBytes) {
  const auto program = parse(kEveryVersion);
  ASSERT_TRUE(program);
  const uint64_t version = *mlir::parse_vhlo_version(kDefaultArtifactVersion);
  const auto once = mlir::write_bytecode(*program, version);
  ASSERT_TRUE(once.ok());
  EXPECT_EQ(*once, *mlir::write_bytecode(*program, version));
  const auto again = mlir::read_bytecode(*once);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(as_hlo(**again), as_hlo(*program));
}

TEST(Artifact, ArraysKeepTheTypeOfTheirElements) {
  const auto program = parse(body(R"(  %0 = stablehlo.custom_call @f(%x) {api_version = 4 : i32, backend_config = {
      a = array<i32: 1, -2>, b = array<ui8: 200>, c = array<i1: true, false>, d = array<f32: 1.0, -2.5>, e = array<i4: -3>,
      f = array<ui64: 18446744073709551615>, g = array<f64>, h = array<i16>, i = array<bf16: 0x3F80>}}
      : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)"));
  ASSERT_TRUE(program);
  const std::string hlo = as_hlo(*program);
  EXPECT_NE(hlo.find("a = array<i32: 1, -2>, b = array<ui8: 200>, c = array<i1: true, false>, "
                     "d = dense<[1.0e+00, -2.5e+00]> : tensor<2xf32>, e = array<i4: -3>, "
                     "f = array<ui64: 18446744073709551615>, g = dense<> : tensor<0xf64>, h = array<i16>, "
                     "i = dense<[1.0e+00]> : tensor<1xbf16>"),
            std::string::npos)
      << hlo;
  const auto artifact = mlir::write_bytecode(*program, *mlir::parse_vhlo_version("1.17.0"));
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  const auto again = mlir::read_bytecode(*artifact);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  std::string read = as_hlo(**again);
  // VHLO has no arrays of booleans: they are tensors there.
  const std::string tensor = "dense<[true, false]> : tensor<2xi1>";
  const size_t at = read.find(tensor);
  ASSERT_NE(at, std::string::npos) << read;
  EXPECT_EQ(read.replace(at, tensor.size(), "array<i1: true, false>"), hlo);
}

TEST(StableHloText, ArraysWithElementsOfOtherTypesAreRefused) {
  for (const char* bad : {"array<i8: 300>", "array<f32: x>", "array<complex<f32>>", "array<i32: 1.5>"})
    EXPECT_FALSE(mlir::read_text(body("  %0 = stablehlo.abs %x {a = " + std::string(bad) +
                                      "} : tensor<4xf32>\n  return %0 : tensor<4xf32>"),
                                 "test")
                     .ok())
        << bad;
}

TEST(Artifact, EveryCutIsRefused) {
  const auto program = parse(kEveryVersion);
  ASSERT_TRUE(program);
  const auto whole = mlir::write_bytecode(*program, *mlir::parse_vhlo_version("1.17.0"));
  ASSERT_TRUE(whole.ok());
  for (size_t size = 0; size < whole->size(); size += 7)
    EXPECT_FALSE(mlir::read_bytecode(std::string_view(*whole).substr(0, size)).ok()) << size;
}

TEST(Artifact, WhatAVersionLacksIsRefused) {
  struct Case {
    const char* ops;
    const char* too_old;
    const char* enough;
  };
  const Case cases[] = {
      {"  %0 = stablehlo.tan %x : tensor<4xf32>\n  return %0 : tensor<4xf32>", "1.3.0", "1.4.0"},
      {"  %c = stablehlo.constant dense<1> : tensor<4xi2>\n  return %x : tensor<4xf32>", "1.1.0", "1.2.0"},
      {"  %0 = chlo.lgamma %x : tensor<4xf32> -> tensor<4xf32>\n  return %0 : tensor<4xf32>", "1.10.0", "1.11.0"},
      {"  %0 = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<mode = "
       "#stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4xf32>\n  return %0 : tensor<4xf32>",
       "1.8.0", "1.9.0"},
  };
  for (const Case& c : cases) {
    const auto program = parse(body(c.ops));
    ASSERT_TRUE(program);
    const auto old = mlir::write_bytecode(*program, *mlir::parse_vhlo_version(c.too_old));
    ASSERT_FALSE(old.ok()) << c.ops;
    EXPECT_EQ(old.status().code(), Code::Unimplemented);
    const auto now = mlir::write_bytecode(*program, *mlir::parse_vhlo_version(c.enough));
    EXPECT_TRUE(now.ok()) << c.ops << now.status().to_string();
  }
}

TEST(Artifact, VersionsOutOfRangeAreRefused) {
  for (const char* bad : {"", "1", "1.17", "1.17.0.0", "0.8.0", "9.0.0", "1.17.x", "-1.0.0"})
    EXPECT_FALSE(mlir::parse_vhlo_version(bad).ok()) << bad;
}

/// Expects `wanted` in the HLO of a program as it was read, and in that of its artifact.
void expect_in_both(std::string_view text, std::string_view wanted) {
  const auto program = parse(text);
  ASSERT_TRUE(program);
  EXPECT_NE(as_hlo(*program).find(wanted), std::string::npos) << as_hlo(*program);
  const auto artifact = mlir::write_bytecode(*program, *mlir::parse_vhlo_version("1.17.0"));
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  const auto again = mlir::read_bytecode(*artifact);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_NE(as_hlo(**again).find(wanted), std::string::npos) << as_hlo(**again);
}

TEST(StableHloImport, SmallSignedElementsKeepTheirSign) {
  expect_in_both(kEveryVersion, "s4[4] constant({1, -8, 7, -1})");
  expect_in_both(body("  %c = stablehlo.constant dense<-2> : tensor<4xi2>\n  return %x : tensor<4xf32>"),
                 "constant(-2)");
}

TEST(StableHloImport, AliasesOfCustomCallsAreKept) {
  expect_in_both(kEveryVersion, "output_to_operand_aliasing={{}: (0, {})}");
}

TEST(StableHloImport, AccuraciesAreKept) {
  expect_in_both(
      body("  %0 = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, "
           "ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>\n"
           "  return %0 : tensor<4xf32>"),
      "result_accuracy={tolerance={atol=1e-05,rtol=0,ulps=1}}");
  expect_in_both(body("  %0 = stablehlo.tanh %x {result_accuracy = #stablehlo.result_accuracy<mode = "
                      "#stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4xf32>\n  return %0 : tensor<4xf32>"),
                 "result_accuracy={mode=highest}");
}

TEST(StableHloImport, FrontendAttributesAreKept) {
  expect_in_both(body("  %0 = stablehlo.negate %x {mhlo.frontend_attributes = {a = \"1\"}} : tensor<4xf32>\n"
                      "  return %0 : tensor<4xf32>"),
                 "negate(%Arg_0), frontend_attributes={a=\"1\"}");
  expect_in_both(
      "func.func @main(%x: tensor<4xf32> {mhlo.frontend_attributes = {b = \"2\"}}) -> tensor<4xf32> {\n"
      "  return %x : tensor<4xf32>\n}\n",
      "parameter(0), frontend_attributes={b=\"2\"}");
}

TEST(StableHloImport, TopKComesBackFromArtifacts) {
  expect_in_both(body("  %v, %i = chlo.top_k(%x, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)\n"
                      "  return %x : tensor<4xf32>"),
                 " topk(%Arg_0), k=2");
}

TEST(StableHloImport, GroupsByAMeshAreRefused) {
  const auto program =
      parse(body("  %0 = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, replica_groups = "
                 "#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = \"a\">]>}> : "
                 "(tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>"));
  ASSERT_TRUE(program);
  EXPECT_NE(as_hlo(*program).find("replica_groups are no table"), std::string::npos) << as_hlo(*program);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

// Arguments in a region of a Shardy op have types of the stablehlo dialect itself: two ordered callbacks under
// shard_map.
TEST(ShardyRegion, TakesTokens) {
  const auto program = mlir::read_bytecode(read_file("hlo/stablehlo/testdata/tokens.mlirbc"));
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const std::string text = as_hlo(**program);
  for (size_t at = 0, k = 0; k < 2; ++k, ++at) {
    at = text.find("token[] custom-call(", at);
    ASSERT_NE(at, std::string::npos) << text;
  }
}

/// Both test files hold the same program; the artifact was written by Shardy itself.
class Sharded : public ::testing::Test {
 protected:
  void SetUp() override {
    auto text = mlir::read_text(read_file("hlo/stablehlo/testdata/sharded.mlir"), "sharded.mlir");
    ASSERT_TRUE(text.ok()) << text.status().to_string();
    text_ = std::move(*text);
    auto artifact = mlir::read_bytecode(read_file("hlo/stablehlo/testdata/sharded.mlirbc"));
    ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
    artifact_ = std::move(*artifact);
  }
  std::unique_ptr<mlir::Program> text_, artifact_;
};

TEST_F(Sharded, TextAndArtifactAreOneProgram) {
  EXPECT_EQ(as_hlo(*artifact_), as_hlo(*text_));
  const std::string printed = mlir::print_program(*artifact_);
  for (const char* part : {R"(mesh = #sdy.mesh<["x"=2, "y"=2]>)", R"(#sdy.sharding<@mesh, [{"x", ?}, {"y"}p1]>)",
                           R"(#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>)", R"(#sdy<manual_axes{"x", "y"}>)",
                           R"(sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>)"})
    EXPECT_NE(printed.find(part), std::string::npos) << part << " in\n" << printed;
  EXPECT_EQ(printed.find("cast"), std::string::npos);
}

// Artifacts of jaxlib: blocks of the sdy dialect have types of MLIR's own numbering.
TEST_F(Sharded, BlocksHaveAllFloatTypes) {
  const auto artifact = mlir::read_bytecode(read_file("hlo/stablehlo/testdata/narrow_floats.mlirbc"));
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  const std::string printed = mlir::print_program(**artifact);
  for (const char* type : {"f8E5M2", "f8E4M3", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E3M4",
                           "f4E2M1FN", "f8E8M0FNU"}) {
    const std::string tensor = "tensor<2x" + std::string(type) + ">";
    EXPECT_NE(printed.find(": " + tensor + ")"), std::string::npos) << type << " in\n" << printed;
  }
}

TEST_F(Sharded, WrittenAndReadIsTheSameProgram) {
  for (const mlir::Program* program : {text_.get(), artifact_.get()}) {
    const auto again = parse(mlir::print_program(*program));
    ASSERT_TRUE(again);
    EXPECT_EQ(as_hlo(*again), as_hlo(*text_));
    const auto artifact = mlir::write_bytecode(*program, *mlir::parse_vhlo_version("1.17.0"));
    ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
    const auto back = mlir::read_bytecode(*artifact);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(as_hlo(**back), as_hlo(*text_));
    // A second round trip adds no further casts.
    EXPECT_EQ(mlir::print_program(**back).find("cast"), std::string::npos);
  }
}

TEST_F(Sharded, ArgumentsAndComputationsOfParts) {
  const std::string hlo = as_hlo(*text_);
  for (const char* part : {"f32[8,4] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}",
                           "f32[4,8] parameter(1), sharding={devices=[1,4]<=[2,2]T(1,0)}",
                           R"(frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}})",
                           R"(f32[4,4] custom-call(%add), custom_call_target="xla.sdy.GlobalToLocalShape")",
                           "f32[4,4] call(%custom-call.1)",
                           R"(custom-call(%dot), custom_call_target="Sharding", sharding={devices=[2,2]<=[4]})",
                           "add(%custom-call, %custom-call), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}",
                           R"(f32[8,8] custom-call(%call), custom_call_target="xla.sdy.LocalToGlobalShape")"})
    EXPECT_NE(hlo.find(part), std::string::npos) << part << " in\n" << hlo;
}

struct ShardingCase {
  const char* mesh;
  const char* dimensions;
  const char* expected;
};

class ShardingOfArguments : public ::testing::TestWithParam<ShardingCase> {};

TEST_P(ShardingOfArguments, IsHlos) {
  const ShardingCase& c = GetParam();
  const auto program = parse("sdy.mesh @m = <" + std::string(c.mesh) +
                             ">\nfunc.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, " +
                             c.dimensions + ">}) -> tensor<8x8xf32> {\n  return %x : tensor<8x8xf32>\n}\n");
  ASSERT_TRUE(program);
  const std::string hlo = as_hlo(*program), wanted = c.expected;
  if (wanted.empty())
    EXPECT_EQ(hlo.find("sharding={"), std::string::npos) << hlo;
  else
    EXPECT_NE(hlo.find(" sharding={" + wanted + "}"), std::string::npos) << hlo;
}

INSTANTIATE_TEST_SUITE_P(
    Sharding, ShardingOfArguments,
    ::testing::Values(ShardingCase{R"(["a"=4])", "[{}, {}]", "replicated"},
                      ShardingCase{R"([], device_ids=[3])", "[]", "maximal device=3"},
                      ShardingCase{R"(["a"=4])", R"([{"a"}, {}])", "devices=[4,1]<=[4]"},
                      ShardingCase{R"(["a"=2, "b"=2])", R"([{"b"}, {"a"}])", "devices=[2,2]<=[2,2]T(1,0)"},
                      ShardingCase{R"(["a"=2, "b"=2])", R"([{"b"}, {}], replicated={"a"})",
                                   "devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate"},
                      ShardingCase{R"(["a"=2, "one"=1, "b"=4])", R"([{"a", "b"}, {"one", ?}p0])", "devices=[8,1]<=[8]"},
                      ShardingCase{R"(["a"=2, "b"=2], device_ids=[0, 2, 1, 3])", R"([{"a"}, {"b"}])",
                                   "devices=[2,2]0,2,1,3"},
                      ShardingCase{R"(["a"=4])", R"([{"a":(1)2}, {}])", ""},
                      ShardingCase{R"(["a"=4])", R"([{"z"}, {}])", ""}));

}  // namespace
}  // namespace collet::hlo
