// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>

#include "hlo/eval/evaluator.h"
#include "hlo/stablehlo/byte_reader.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace collet::hlo {
namespace {

Expected<std::unique_ptr<Module>> import_text(std::string_view text) {
  COLLET_ASSIGN(std::unique_ptr<mlir::Program> program, mlir::read_text(text, "test"));
  return import_program(*program);
}

/// Returns the opcodes of the entry, in order.
std::vector<Op> entry_ops(const Module& module) {
  std::vector<Op> out;
  for (InstrId id : module.entry_computation().order) out.push_back(module[id].op);
  return out;
}

TEST(ByteReader, ReadsPrefixVarints) {
  const auto read = [](std::string_view bytes) {
    mlir::ByteReader r(bytes);
    const uint64_t v = r.varint();
    EXPECT_FALSE(r.failed());
    EXPECT_TRUE(r.done());
    return v;
  };
  EXPECT_EQ(read("\x01"), 0u);
  EXPECT_EQ(read("\xFF"), 127u);
  EXPECT_EQ(read(std::string_view("\x02\x02", 2)), 128u);
  EXPECT_EQ(read(std::string_view("\x00\x01\x02\x03\x04\x05\x06\x07\x08", 9)), 0x0807060504030201u);
}

TEST(ByteReader, FailsPastTheEnd) {
  mlir::ByteReader r(std::string_view("\x02", 1));
  EXPECT_EQ(r.varint(), 0u);
  EXPECT_TRUE(r.failed());
}

TEST(StableHloText, TranslatesPrettyForms) {
  auto module = import_text(R"(
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.multiply %a, %0 : tensor<2x3xf32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EXPECT_EQ(entry_ops(**module),
            (std::vector<Op>{Op::PARAMETER, Op::PARAMETER, Op::CONSTANT, Op::BROADCAST, Op::MULTIPLY, Op::REDUCE}));
}

TEST(StableHloText, LoopsTakeWhatTheyCapture) {
  auto module = import_text(R"(
func.func @main(%n: tensor<i32>, %step: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.while(%i = %zero) : tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  return %r : tensor<i32>
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  for (InstrId id : (*module)->entry_computation().order) {
    const Instruction& instr = (**module)[id];
    if (instr.op != Op::WHILE) continue;
    EXPECT_EQ(instr.shape.to_string(), "(s32[], s32[], s32[])");
    return;
  }
  FAIL() << "there is no loop";
}

TEST(StableHloText, ReadsStructuredAttributesOfTheGenericForm) {
  auto module = import_text(R"(
func.func @main(%x: tensor<5x6xf32>, %i: tensor<2x1xi32>) -> tensor<2x6xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<5x6xf32>, tensor<2x1xi32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const Instruction& gather = (**module)[(*module)->entry_computation().root];
  ASSERT_EQ(gather.op, Op::GATHER);
  EXPECT_EQ(gather.as<GatherAttrs>().offset_dims[0], 1);
  EXPECT_EQ(gather.as<GatherAttrs>().index_vector_dim, 1);
}

TEST(StableHloText, QuantizedArithmeticBecomesPlain) {
  auto module = import_text(R"(
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:1>>
  %1 = stablehlo.abs %0 : tensor<4x!quant.uniform<i8:f32, 0.5:1>>
  %2 = stablehlo.uniform_dequantize %1 : (tensor<4x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  for (InstrId id : (*module)->entry_computation().order)
    if ((**module)[id].op == Op::ABS) {
      EXPECT_EQ((**module)[id].shape.to_string(), "f32[4]");
      return;
    }
  FAIL() << "there is no abs";
}

struct Complaint {
  const char* text;
  uint32_t line;
  const char* message;
};

class StableHloComplaints : public testing::TestWithParam<Complaint> {};

TEST_P(StableHloComplaints, NameThePlace) {
  Diagnostics diagnostics;
  EXPECT_EQ(mlir::read_text(GetParam().text, diagnostics), nullptr);
  ASSERT_EQ(diagnostics.list().size(), 1u);
  EXPECT_EQ(diagnostics.list()[0].line, GetParam().line);
  EXPECT_NE(diagnostics.list()[0].message.find(GetParam().message), std::string::npos) << diagnostics.list()[0].message;
}

INSTANTIATE_TEST_SUITE_P(
    Text, StableHloComplaints,
    testing::Values(
        Complaint{"func.func @main() {\n  return %x : tensor<f32>\n}", 2, "undefined value %x"},
        Complaint{"func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %y = stablehlo.abs %x : tensor<f32>\n"
                  "  %x = stablehlo.abs %y : tensor<f32>\n  return %x : tensor<f32>\n}",
                  3, "redefinition of value %x"},
        Complaint{"func.func @main(%a: tensor<2xq32>) {\n}", 1, "unknown type 'q32'"},
        Complaint{"func.func @main() {\n  %c = stablehlo.constant dense<[1, 2]> : tensor<3xi32>\n}", 2, "elements for"},
        Complaint{"func.func @main() {\n", 2, "ends inside"},
        Complaint{"func.func @main() {\n  %0:2 = stablehlo.constant dense<1> : tensor<i32>\n}", 3, "2 are named"},
        Complaint{"", 1, "holds no program"}));

TEST(StableHloImport, CastsBetweenDialectsAreTheirOperands) {
  auto module = import_text(R"(
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "builtin.unrealized_conversion_cast"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "stablehlo.negate"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
})");
  ASSERT_TRUE(module.ok()) << module.status().message();
  for (InstrId id : (*module)->entry_computation().order) {
    const Op op = (**module)[id].op;
    EXPECT_TRUE(op == Op::PARAMETER || op == Op::NEGATE);
  }
  auto uneven = import_text(R"(
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0:2 = "builtin.unrealized_conversion_cast"(%x) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#1 : tensor<2xf32>
})");
  EXPECT_FALSE(uneven.ok());
}

TEST(StableHloText, ReadsMeshesWithAttributes) {
  auto module = import_text(R"(
sdy.mesh @m = <["x"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  %0 = sdy.sharding_constraint %x <@m, [{"x"}]> : tensor<4xf32>
  %1 = stablehlo.add %0, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EXPECT_EQ(entry_ops(**module), (std::vector<Op>{Op::PARAMETER, Op::CUSTOM_CALL, Op::ADD, Op::CUSTOM_CALL}));
  const Instruction& root = (**module)[(*module)->entry_computation().root];
  ASSERT_TRUE(root.extras && root.extras->sharding);
  EXPECT_EQ(root.extras->sharding->to_string(), "{devices=[2]<=[2]}");
}

TEST(StableHloImport, LayoutModes_AreTheEntrysLayout) {
  auto module = import_text(R"(
module @m {
  func.func @main(%x: tensor<4x2xf32> {mhlo.layout_mode = "{0,1}"}, %y: tensor<4x2xf32> {mhlo.layout_mode = "auto"})
      -> (tensor<4x2xf32>, tensor<4x2xf32> {mhlo.layout_mode = "{0,1}"}) {
    return %y, %x : tensor<4x2xf32>, tensor<4x2xf32>
  }
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const ModuleHeader& header = (*module)->header();
  ASSERT_TRUE(header.has_entry_layout);
  EXPECT_EQ(header.entry_parameters[0].to_string(true), "f32[4,2]{0,1}");
  EXPECT_EQ(header.entry_parameters[1].to_string(true), "f32[4,2]");
  EXPECT_EQ(header.entry_result.to_string(true), "(f32[4,2], f32[4,2]{0,1})");
  EXPECT_FALSE(import_text("func.func @main(%x: tensor<4xf32> {mhlo.layout_mode = \"{1}\"}) -> tensor<4xf32> {\n"
                           "return %x : tensor<4xf32>\n}")
                   .ok());
}

// A scalar has only one layout, so a stated layout adds nothing.
TEST(StableHloImport, LayoutsOfScalars_SayNothing) {
  auto module = import_text(
      "func.func @main(%x: tensor<i32> {mhlo.layout_mode = \"{}\"}) -> tensor<i32> {\n"
      "  return %x : tensor<i32>\n}\n");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
}

// If the caller leaves the layout of a result open, it has the layout that a constraint in the program requests.
TEST(StableHloImport, LayoutConstraintsOfResults_HoldWhereTheLayoutIsOpen) {
  auto module = import_text(R"(
module @m {
  func.func @main(%x: tensor<4x2xf32>) -> (tensor<4x2xf32> {mhlo.layout_mode = "auto"}, tensor<4x2xf32>) {
    %0 = stablehlo.custom_call @LayoutConstraint(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return %0, %0 : tensor<4x2xf32>, tensor<4x2xf32>
  }
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EXPECT_EQ((*module)->header().entry_result.to_string(true), "(f32[4,2]{0,1}, f32[4,2])");
}

TEST(StableHloImport, LayoutsOfForeignCallsAreKept) {
  auto module = import_text(R"(
module @m {
  func.func @main(%x: tensor<2x3xf32>, %s: tensor<i32>) -> (tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.custom_call @f(%x, %s) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>],
        result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>
    %1:2 = stablehlo.custom_call @g() {result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>]}
        : () -> (tensor<2x2xf32>, tensor<4xf32>)
    %2 = stablehlo.custom_call @h(%x) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>],
        result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0, %1#0, %2 : tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x3xf32>
  }
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const std::string text = print_module(**module);
  using ::testing::HasSubstr;
  EXPECT_THAT(text, HasSubstr("f32[2,3]{1,0} custom-call(%Arg_0, %Arg_1), custom_call_target=\"f\", "
                              "operand_layout_constraints={f32[2,3]{0,1}, s32[]"));
  EXPECT_THAT(text, HasSubstr("(f32[2,2]{0,1}, f32[4]{0}) custom-call(), custom_call_target=\"g\", "
                              "operand_layout_constraints={}"));
  EXPECT_THAT(text,
              HasSubstr("f32[2,3] custom-call(%Arg_0), custom_call_target=\"h\"\n"));  // row-major, as all arrays are
}

TEST(StableHloImport, TransfersHaveTheirPairs) {
  const auto transfer = [](const std::string& attributes) {
    auto module = import_text(R"(
module @m attributes {mhlo.num_replicas = 3 : i32} {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %t = stablehlo.create_token : !stablehlo.token
    %s = "stablehlo.send"(%x, %t) <{)" +
                              attributes + R"( : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
    %r:2 = "stablehlo.recv"(%t) <{)" +
                              attributes + R"( : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
    return %r#0 : tensor<f32>
  }
})");
    return module.ok() ? print_module(**module) : module.status().message();
  };
  const auto count = [](std::string_view text, std::string_view part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  const std::string device =
      "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false";
  const std::string pairs = ", source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}>";
  const std::string_view kPairs = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}";
  EXPECT_EQ(count(transfer(device + pairs), kPairs), 4u) << transfer(device + pairs);
  const std::string frontend = " {mhlo.frontend_attributes = {_xla_send_recv_source_target_pairs = \"{{2,0}}\"}}";
  const std::string both = transfer(device + pairs + frontend);
  EXPECT_EQ(count(both, kPairs), 0u) << both;
  EXPECT_EQ(count(both, "_xla_send_recv_source_target_pairs={{2,0}}"), 4u) << both;
  EXPECT_EQ(count(transfer(device + "}>"), "_xla"), 0u);
  EXPECT_EQ(
      count(transfer(device + ", source_target_pairs = dense<[[0, 1, 2]]> : tensor<1x3xi64>}>"), "no table of pairs"),
      1u);
}

TEST(StableHloImport, FrontendAttributesInBracesCanBeReadAgain) {
  for (const char* value : {"{a}", "{0,1},{1,2}", "{say \\22}", "{}}", "{\\22}\\22}"}) {
    const std::string list = "{mhlo.frontend_attributes = {foo = \"" + std::string(value) + "\"}}";
    auto module = import_text("module @m attributes " + list + " {\nfunc.func @main(%x: tensor<f32> " + list +
                              ") -> tensor<f32> {\n%y = stablehlo.abs %x " + list +
                              " : tensor<f32>\nreturn %y : tensor<f32>\n}\n}");
    ASSERT_TRUE(module.ok()) << module.status().to_string();
    const std::string text = print_module(**module);
    const auto again = parse_module(text, "printed");
    ASSERT_TRUE(again.ok()) << again.status().to_string() << text;
    EXPECT_EQ(print_module(**again), text);
    const std::string_view kept = (*module)->header().frontend_attributes[0].value;
    EXPECT_EQ((*again)->header().frontend_attributes[0].value, kept);
  }
}

TEST(StableHloImport, ShardingsOfLoopsCoverWhatTheyCapture) {
  const auto shardings = [](std::string_view attributes) {
    auto module = import_text(R"(
module @m {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %n: tensor<i32>) -> tensor<i32> {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = "stablehlo.while"(%c0, %a) ({
    ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }, {
    ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
      %j = stablehlo.add %i, %c1 : tensor<i32>
      %y = stablehlo.add %x, %a : tensor<4xf32>
      stablehlo.return %j, %y : tensor<i32>, tensor<4xf32>
    }) {)" + std::string(attributes) +
                              R"(} : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    %1 = "stablehlo.while"(%c0) ({
    ^bb0(%i: tensor<i32>):
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }, {
    ^bb0(%i: tensor<i32>):
      %j = stablehlo.add %i, %c1 : tensor<i32>
      stablehlo.return %j : tensor<i32>
    }) {mhlo.sharding = "{maximal device=1}", mhlo.frontend_attributes = {of = "loop"}} : (tensor<i32>) -> tensor<i32>
    return %1 : tensor<i32>
  }
})");
    std::string out;
    if (!module.ok()) return module.status().message();
    for (InstrId id : (*module)->entry_computation().order) {
      const Instruction& instr = (**module)[id];
      if (instr.op == Op::GET_TUPLE_ELEMENT) {
        EXPECT_FALSE(instr.extras);
      }
      if (instr.op != Op::WHILE) continue;
      out += (instr.extras && instr.extras->sharding ? instr.extras->sharding->to_string() : "none") + " ";
      out += std::to_string(instr.extras ? instr.extras->frontend_attributes.size() : 0) + " ";
    }
    return out;
  };
  // Captured: n and a, in the order of their first use; in the second loop n alone.
  const std::string second = "{{maximal device=1}, {replicated}} 1 ";
  EXPECT_EQ(shardings("mhlo.sharding = \"{{replicated}, {devices=[2]<=[2]}}\""),
            "{{replicated}, {devices=[2]<=[2]}, {replicated}, {devices=[2]<=[2]}} 0 " + second);
  EXPECT_EQ(shardings("mhlo.sharding = \"{replicated}\""), "{replicated} 0 " + second);
  EXPECT_EQ(shardings("sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{\"x\"}]>]>"),
            "{{replicated}, {devices=[2]<=[2]}, {replicated}, {devices=[2]<=[2]}} 0 " + second);
}

TEST(StableHloText, ReadsGroupsAndBarriersOfShardings) {
  auto program = mlir::read_text(R"(
module @m {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    sdy.sharding_group %a group_id=3 : tensor<4xf32>
    %b = sdy.propagation_barrier %a allowed_direction=BACKWARD {foo = 1 : i32} : tensor<4xf32>
    %c = stablehlo.abs %b : tensor<4xf32>
    return %c : tensor<4xf32>
  }
})",
                                 "test");
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const auto& ops = (*program)->module->body()->ops[0]->body()->ops;
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[0]->attr("group_id")->integer, 3);
  EXPECT_EQ(ops[1]->attr("allowed_direction")->text, "#sdy<propagation_direction BACKWARD>");
  EXPECT_TRUE(ops[1]->attr("foo"));
  auto module = import_program(**program);
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EXPECT_EQ(entry_ops(**module), (std::vector{Op::PARAMETER, Op::ABS}));
}

TEST(StableHloText, ElementsHaveTheShapeOfTheirType) {
  const auto constant = [](const std::string& value) {
    return mlir::read_text("func.func @main() {\n%0 = stablehlo.constant dense<" + value + "\nreturn\n}", "test");
  };
  for (const char* good : {"[[1,2,3],[4,5,6]]> : tensor<2x3xi32>", "1> : tensor<2x3xi32>", "[]> : tensor<0xi32>",
                           "[[],[]]> : tensor<2x0xi32>", "> : tensor<0x2xi32>", "[7]> : tensor<1xi32>",
                           "7> : tensor<1xi32>", "[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>",
                           "(1.0, 2.0)> : tensor<2xcomplex<f32>>", "\"0x0100000002000000\"> : tensor<2xi32>"})
    EXPECT_TRUE(constant(good).ok()) << good << constant(good).status().to_string();
  for (const char* bad : {"[[1,2],[3,4],[5,6]]> : tensor<2x3xi32>", "[1,2,3,4]> : tensor<2x2xi32>",
                          "[[1,2],[3]]> : tensor<2x2xi32>", "[[1],[2,3]]> : tensor<3xi32>", "[1,[2]]> : tensor<2xi32>",
                          "[[1],2]> : tensor<2xi32>", "[[[1],[2]],[[3,4]]]> : tensor<2x2x1xi32>",
                          "[[[[1]]]]> : tensor<1xi32>", "[7]> : tensor<i32>", "[]> : tensor<0x2xi32>",
                          "[[1,2]]> : tensor<2xi32>", "[1][2]> : tensor<2xi32>", "[1.0, 2.0]> : tensor<1xcomplex<f32>>",
                          "[(1.0)]> : tensor<1xf32>", "[(1.0, 2.0, 3.0), (4.0)]> : tensor<2xcomplex<f32>>",
                          "[(1.0, 2.0)]> : tensor<2xf32>", "[([1.0, 2.0])]> : tensor<1xcomplex<f32>>"})
    EXPECT_FALSE(constant(bad).ok()) << bad;
  EXPECT_THAT(constant("[[1,2],[3,4],[5,6]]> : tensor<2x3xi32>").status().message(),
              ::testing::HasSubstr("there are 3x2 elements for tensor<2x3xi32>"));
}

TEST(StableHloImport, ReadsShardingsAliasesAndFrontendAttributesOfHlo) {
  auto module = import_text(R"(
module @m attributes {mhlo.frontend_attributes = {a = "1"}, mhlo.input_output_alias = [{alias = {kind = "must_alias",
    parameter_index = array<i64>, parameter_number = 1 : i64}, output_index = array<i64: 0>}]} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %y: tensor<4xf32>)
      -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}, tensor<4xf32> {mhlo.sharding = "{maximal device=1}"}) {
    %0 = stablehlo.add %x, %y {mhlo.sharding = "{devices=[2]1,0}"} : tensor<4xf32>
    return %0, %0 : tensor<4xf32>, tensor<4xf32>
  }
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const auto sharding = [&](InstrId id) {
    const Extras* extras = (**module)[id].extras;
    return extras && extras->sharding ? extras->sharding->to_string() : "";
  };
  const Computation& entry = (*module)->entry_computation();
  EXPECT_EQ(sharding(entry.parameters[0]), "{devices=[2]<=[2]}");
  EXPECT_EQ(sharding(entry.order[2]), "{devices=[2]1,0}");
  EXPECT_EQ(sharding(entry.root), "{{replicated}, {maximal device=1}}");
  ASSERT_EQ((*module)->header().aliases.size(), 1u);
  EXPECT_TRUE((*module)->header().aliases[0].must);
  EXPECT_EQ((*module)->header().aliases[0].parameter, 1);
  ASSERT_EQ((*module)->header().frontend_attributes.size(), 1u);
  EXPECT_EQ((*module)->header().frontend_attributes[0].value, "1");
  EXPECT_FALSE(import_text("func.func @main(%x: tensor<4xf32> {mhlo.sharding = \"{devices=}\"}) -> tensor<4xf32> {\n"
                           "return %x : tensor<4xf32>\n}")
                   .ok());
}

TEST(StableHloText, EndsAnywhere) {
  const std::string_view text =
      "func.func @main(%x: tensor<2x3xf32, #stablehlo.bounds<?, 3>>, %y: tensor<*xf32>, %z: tensor<  2xf32>";
  for (size_t size = text.find("(%"); size < text.size(); ++size) {
    // The copy has exactly the length of the text, so that a sanitizer detects reads past its end.
    const std::vector<char> cut(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(mlir::read_text({cut.data(), cut.size()}, "cut").ok()) << size;
  }
}

/// Evaluates a program without arguments and returns its only result.
Literal result_of(std::string_view text) {
  auto module = import_text(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  if (!module.ok()) return {};
  auto got = Evaluator(**module).run({});
  EXPECT_TRUE(got.ok()) << got.status().to_string();
  return got.ok() ? *got : Literal();
}

TEST(StableHloImport, ComplexNumbersHaveAnOrder) {
  const Literal greatest = result_of(R"(
func.func @main() -> tensor<3xcomplex<f32>> {
  %a = stablehlo.constant dense<[(1.0, 2.0), (1.0, 5.0), (0.0, 9.0)]> : tensor<3xcomplex<f32>>
  %b = stablehlo.constant dense<[(2.0, 0.0), (1.0, 4.0), (-1.0, 9.0)]> : tensor<3xcomplex<f32>>
  %0 = stablehlo.maximum %a, %b : tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
})");
  ASSERT_TRUE(greatest.valid());
  EXPECT_EQ(greatest.as_double(0), 2);
  EXPECT_EQ(greatest.imaginary(1), 5);
  EXPECT_EQ(greatest.as_double(2), 0);
}

TEST(StableHloImport, ComplexNumbersAreTrueWhereTheyAreNotZero) {
  const Literal truth = result_of(R"(
func.func @main() -> tensor<3xi1> {
  %a = stablehlo.constant dense<[(0.0, 2.0), (0.0, 0.0), (1.0, 0.0)]> : tensor<3xcomplex<f64>>
  %0 = stablehlo.convert %a : (tensor<3xcomplex<f64>>) -> tensor<3xi1>
  return %0 : tensor<3xi1>
})");
  ASSERT_TRUE(truth.valid());
  EXPECT_EQ(truth.as_int(0), 1);
  EXPECT_EQ(truth.as_int(1), 0);
  EXPECT_EQ(truth.as_int(2), 1);
}

TEST(StableHloImport, BooleansAreBits) {
  const Literal back = result_of(R"(
func.func @main() -> tensor<2xf16> {
  %a = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf16>
  %0 = stablehlo.bitcast_convert %a : (tensor<2xf16>) -> tensor<2x16xi1>
  %1 = stablehlo.bitcast_convert %0 : (tensor<2x16xi1>) -> tensor<2xf16>
  return %1 : tensor<2xf16>
})");
  ASSERT_TRUE(back.valid());
  EXPECT_EQ(back.as_double(0), 1.5);
  EXPECT_EQ(back.as_double(1), -2);
}

TEST(StableHloImport, ChloOfComplexNumbersIsExactWhereItCan) {
  const Literal square = result_of(R"(
func.func @main() -> tensor<2xcomplex<f64>> {
  %a = stablehlo.constant dense<[(1.0, 1.0000001), (3.0, -4.0)]> : tensor<2xcomplex<f64>>
  %0 = chlo.square %a : tensor<2xcomplex<f64>> -> tensor<2xcomplex<f64>>
  return %0 : tensor<2xcomplex<f64>>
})");
  ASSERT_TRUE(square.valid());
  EXPECT_NEAR(square.as_double(0), (1 - 1.0000001) * (1 + 1.0000001), 1e-22);
  EXPECT_EQ(square.as_double(1), -7);
  EXPECT_EQ(square.imaginary(1), -24);
  const Literal atan = result_of(R"(
func.func @main() -> tensor<4xcomplex<f64>> {
  %a = stablehlo.constant dense<[(0.0, 1.0), (1.0, 1.0e-20), (0.0, 0x7FF0000000000000), (0.5, 0.0)]>
    : tensor<4xcomplex<f64>>
  %0 = chlo.atan %a : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  return %0 : tensor<4xcomplex<f64>>
})");
  ASSERT_TRUE(atan.valid());
  EXPECT_EQ(atan.imaginary(0), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(atan.imaginary(1), 5e-21, 1e-30);
  EXPECT_NEAR(std::fabs(atan.as_double(2)), 1.5707963267948966, 1e-15);
  EXPECT_EQ(atan.imaginary(2), 0);
  EXPECT_NEAR(atan.as_double(3), std::atan(0.5), 1e-15);
}

TEST(StableHloImport, ProductsHaveAHighHalf) {
  const Literal with_sign = result_of(R"(
func.func @main() -> tensor<6xi64> {
  %a = stablehlo.constant dense<[-1, -9223372036854775808, 9223372036854775807, 6148914691236517205, -2, 0]> : tensor<6xi64>
  %b = stablehlo.constant dense<[-1, -9223372036854775808, 9223372036854775807, 9, 3, -5]> : tensor<6xi64>
  %0 = chlo.mulhi %a, %b : tensor<6xi64>, tensor<6xi64> -> tensor<6xi64>
  return %0 : tensor<6xi64>
})");
  ASSERT_TRUE(with_sign.valid());
  const int64_t expected[] = {0, int64_t{1} << 62, (int64_t{1} << 62) - 1, 2, -1, 0};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(with_sign.as_int(i), expected[i]) << i;
  const Literal without = result_of(R"(
func.func @main() -> tensor<3xui64> {
  %a = stablehlo.constant dense<[18446744073709551615, 18446744073709551615, 4294967296]> : tensor<3xui64>
  %b = stablehlo.constant dense<[18446744073709551615, 2, 4294967297]> : tensor<3xui64>
  %0 = chlo.mulhi %a, %b : tensor<3xui64>, tensor<3xui64> -> tensor<3xui64>
  return %0 : tensor<3xui64>
})");
  ASSERT_TRUE(without.valid());
  EXPECT_EQ(without.as_int(0), -2);  // 2^64 - 2, read as a signed number
  EXPECT_EQ(without.as_int(1), 1);
  EXPECT_EQ(without.as_int(2), 1);
}

TEST(StableHloImport, ChloBroadcastsComparisonsAndSelections) {
  const Literal out = result_of(R"(
func.func @main() -> tensor<2x3xf32> {
  %a = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = stablehlo.constant dense<[[0.0, 2.0, 4.0], [5.0, 1.0, 3.0]]> : tensor<2x3xf32>
  %s = stablehlo.constant dense<7.0> : tensor<f32>
  %0 = "chlo.broadcast_compare"(%a, %b) <{comparison_direction = #chlo<comparison_direction GT>}>
    : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %1 = "chlo.broadcast_select"(%0, %a, %s) : (tensor<2x3xi1>, tensor<3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
})");
  ASSERT_TRUE(out.valid());
  const double expected[] = {1, 7, 7, 7, 2, 7};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out.as_double(i), expected[i]) << i;
}

TEST(StableHloImport, ConstantsLikeOthersAreExact) {
  const Literal out = result_of(R"(
func.func @main() -> tensor<2xi64> {
  %a = stablehlo.constant dense<0> : tensor<2xi64>
  %0 = "chlo.constant_like"(%a) <{value = 9007199254740993 : i64}> : (tensor<2xi64>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
})");
  ASSERT_TRUE(out.valid());
  EXPECT_EQ(out.as_int(1), 9007199254740993);
}

TEST(StableHloText, ReadsElementsThatLieInResources) {
  const std::string program = R"(
func.func @main() -> tensor<3xf32> {
  %a = stablehlo.constant dense_resource<blob> : tensor<3xf32>
  %b = stablehlo.constant dense_resource<blob> : tensor<3xf32>
  %c = stablehlo.constant dense_resource<truths> : tensor<3xi1>
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  %1 = stablehlo.select %c, %0, %a : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F0000004000004040",
      truths: "0x01000000010001"
    }
  },
  external_resources: { mlir_reproducer: { verify_each: true } }
#-}
)";
  const Literal out = result_of(program);
  ASSERT_TRUE(out.valid());
  const double expected[] = {2, 2, 6};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(out.as_double(i), expected[i]) << i;
  const auto refused = [&](std::string_view from, std::string_view to) {
    std::string text = program;
    text.replace(text.find(from), from.size(), to);
    const auto module = import_text(text);
    return module.ok() ? std::string() : module.status().message();
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(refused("blob: ", "blub: "), "are not in the text"));
  EXPECT_TRUE(has(refused("4040\"", "40\""), "there are 11 bytes for tensor<3xf32>"));
  EXPECT_TRUE(has(refused("0x04", "0xX4"), "expected hexadecimal"));
  EXPECT_TRUE(has(refused("0x01000000010001", "0x01"), "expected hexadecimal"));
  EXPECT_TRUE(has(refused("%b = stablehlo.constant dense_resource<blob> : tensor<3xf32>",
                          "%b = stablehlo.constant dense_resource<blob> : tensor<3xi32>"),
                  "used as another type"));
  EXPECT_FALSE(refused("\n  },\n  external", "\n  external").empty());
  EXPECT_FALSE(refused("#-}", "#-").empty());
}

TEST(StableHloImport, ReadsRaggedExchanges) {
  auto module = import_text(R"(
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %a: tensor<2xi32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @ragged_all_to_all(%x, %y, %a, %a, %a, %a) {api_version = 4 : i32,
    backend_config = {channel_id = 3 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
    : (tensor<4xf32>, tensor<4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const Instruction& root = (**module)[(*module)->entry_computation().root];
  ASSERT_EQ(root.op, Op::RAGGED_ALL_TO_ALL);
  const auto& attrs = root.as<AllToAllAttrs>();
  EXPECT_EQ(attrs.channel, 3);
  ASSERT_EQ(attrs.groups.groups.size(), 1u);
  EXPECT_EQ(attrs.groups.groups[0].size(), 2u);
}

TEST(StableHloImport, FuturesAreDoneWhereTheyStart) {
  const Literal sum = result_of(R"(
func.func @main() -> tensor<2xf32> {
  %a = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %f = "stablehlo.async_start"(%a) ({
  ^bb0(%x: tensor<2xf32>):
    %y = stablehlo.abs %x : tensor<2xf32>
    stablehlo.return %y : tensor<2xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>>
  %g = "stablehlo.async_start"(%a, %a) ({
  ^bb0(%x: tensor<2xf32>, %z: tensor<2xf32>):
    %y = stablehlo.negate %x : tensor<2xf32>
    stablehlo.return %z, %y : tensor<2xf32>, tensor<2xf32>
  }) : (tensor<2xf32>, tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>, tensor<2xf32>>
  %0 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
  %1:2 = "stablehlo.async_done"(%g) : (!stablehlo.future<tensor<2xf32>, tensor<2xf32>>) -> (tensor<2xf32>, tensor<2xf32>)
  %2 = stablehlo.subtract %1#0, %1#1 : tensor<2xf32>
  %3 = stablehlo.add %0, %2 : tensor<2xf32>
  return %3 : tensor<2xf32>
})");
  ASSERT_TRUE(sum.valid());
  EXPECT_EQ(sum.as_double(0), 4.5);
  EXPECT_EQ(sum.as_double(1), -2);
  for (std::string_view done :
       {"tensor<2xf32>) -> tensor<2xf32>", "!stablehlo.future<tensor<2xf32>>) -> (tensor<2xf32>, tensor<2xf32>)",
        "!stablehlo.future<tensor<2xf32>>) -> tensor<3xf32>"}) {
    const bool takes_future = done.starts_with("!");
    const std::string results = done.ends_with(")") ? "%0:2" : "%0";
    const auto module =
        import_text(std::string(R"(
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %f = "stablehlo.async_start"(%a) ({
  ^bb0(%x: tensor<2xf32>):
    stablehlo.return %x : tensor<2xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>>
  )") + results + " = \"stablehlo.async_done\"(" +
                    (takes_future ? "%f" : "%a") + ") : (" + std::string(done) + "\n  return %a : tensor<2xf32>\n}");
    EXPECT_FALSE(module.ok()) << done;
  }
}

TEST(StableHloImport, RefusesWhatIsNewAndNotThere) {
  const auto refusal = [](const std::string& body) {
    const auto module =
        import_text("module { func.func @main(%x: tensor<2xf32>, %r: tensor<1xi32>) -> tensor<2xf32> {\n" + body +
                    "\n return %y : tensor<2xf32> } }");
    return module.ok() ? std::string() : module.status().message();
  };
  const std::string groups = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>";
  EXPECT_THAT(refusal("%y = \"stablehlo.collective_broadcast\"(%x, %r) {has_dynamic_root, " + groups +
                      "} : (tensor<2xf32>, tensor<1xi32>) -> tensor<2xf32>"),
              ::testing::HasSubstr("dynamic root"));
  EXPECT_THAT(refusal("%y = stablehlo.custom_call @f(%x) {result_tilings = [[2]]} : (tensor<2xf32>) -> tensor<2xf32>"),
              ::testing::HasSubstr("result_tilings"));
}

TEST(StableHloImport, RefusesRecursion) {
  auto module = import_text(
      "func.func @main() -> tensor<f32> {\n  %0 = call @main() : () -> tensor<f32>\n"
      "  return %0 : tensor<f32>\n}");
  ASSERT_FALSE(module.ok());
  EXPECT_NE(module.status().message().find("calls itself"), std::string::npos);
}

/// Returns the result of the CHLO op of that name for scalars of the type.
Expected<double> evaluate(std::string_view name, std::vector<double> arguments, Type type) {
  const std::string mlir_type = "tensor<" + std::string(collet_type_name(static_cast<uint32_t>(type))) + ">";
  std::string parameters, uses, types;
  std::vector<Literal> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string comma = i ? ", " : "", value = "%a" + std::to_string(i);
    parameters += comma + value + ": " + mlir_type;
    uses += comma + value;
    types += comma + mlir_type;
    values.push_back(Literal::scalar(type, arguments[i]));
  }
  COLLET_ASSIGN(
      std::unique_ptr<Module> module,
      import_text("func.func @main(" + parameters + ") -> " + mlir_type + " {\n  %0 = chlo." + std::string(name) + " " +
                  uses + " : " + types + " -> " + mlir_type + "\n  return %0 : " + mlir_type + "\n}"));
  COLLET_ASSIGN(Literal result, Evaluator(*module).run(std::move(values)));
  return result.as_double(0);
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct SpecialValue {
  const char* op;
  std::vector<double> arguments;
  double expected;
};

class ChloMath : public testing::TestWithParam<SpecialValue> {};

TEST_P(ChloMath, KnownValues) {
  const auto& [op, arguments, expected] = GetParam();
  const std::pair<Type, double> types[] = {
      {Type::F64, 2e-13}, {Type::F32, 4e-6}, {Type::F16, 1e-3}, {Type::BF16, 8e-3}};
  for (const auto& [type, tolerance] : types) {
    const auto got = evaluate(op, arguments, type);
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(*got)) << op << " of " << collet_type_name(static_cast<uint32_t>(type)) << ": " << *got;
    else if (std::isinf(expected))
      EXPECT_EQ(*got, expected) << op << " of " << collet_type_name(static_cast<uint32_t>(type));
    else
      EXPECT_NEAR(*got, expected, tolerance * std::max(std::fabs(expected), 0.5))
          << op << " of " << collet_type_name(static_cast<uint32_t>(type));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Special, ChloMath,
    testing::Values(SpecialValue{"lgamma", {-4.5}, -2.813084081769316},
                    SpecialValue{"lgamma", {0.25}, 1.2880225246980774}, SpecialValue{"lgamma", {1.0}, 0.0},
                    SpecialValue{"lgamma", {100.0}, 359.1342053695754}, SpecialValue{"lgamma", {-3.0}, kInf},
                    SpecialValue{"lgamma", {-kInf}, kInf}, SpecialValue{"lgamma", {kNan}, kNan},
                    SpecialValue{"digamma", {-4.5}, 1.6110931485817512},
                    SpecialValue{"digamma", {0.25}, -4.2274535333762655},
                    SpecialValue{"digamma", {10.0}, 2.251752589066721}, SpecialValue{"digamma", {-2.0}, kNan},
                    SpecialValue{"digamma", {kInf}, kInf}, SpecialValue{"erfc", {-4.5}, 1.999999999803384},
                    SpecialValue{"erfc", {0.25}, 0.7236736098317631}, SpecialValue{"erfc", {1.5}, 0.03389485352468927},
                    SpecialValue{"erfc", {2.5}, 0.00040695201744495886}, SpecialValue{"erfc", {kInf}, 0.0},
                    SpecialValue{"erfc", {-kInf}, 2.0}, SpecialValue{"erfc", {kNan}, kNan},
                    SpecialValue{"erf_inv", {-0.5}, -0.4769362762044699}, SpecialValue{"erf_inv", {1.0}, kInf},
                    SpecialValue{"erf_inv", {-1.0}, -kInf}, SpecialValue{"erf_inv", {1.5}, kNan},
                    SpecialValue{"erf_inv", {0.99609375}, 2.0404520146056093},
                    SpecialValue{"bessel_i1e", {-4.5}, -0.17095882229749212},
                    SpecialValue{"bessel_i1e", {10.0}, 0.1212626813844555}, SpecialValue{"bessel_i1e", {kInf}, 0.0},
                    SpecialValue{"zeta", {2.0, 1.0}, 1.6449340668482266}, SpecialValue{"zeta", {1.0, 3.0}, kInf},
                    SpecialValue{"zeta", {0.5, 3.0}, kNan}, SpecialValue{"zeta", {2.0, -3.0}, kInf},
                    SpecialValue{"zeta", {2.5, -3.5}, kNan}, SpecialValue{"polygamma", {1.0, 0.5}, 4.93480220054468},
                    SpecialValue{"polygamma", {3.0, 2.5}, 0.2239058488172521},
                    SpecialValue{"polygamma", {0.0, 0.25}, -4.2274535333762655},
                    SpecialValue{"polygamma", {1.5, 0.5}, kNan}, SpecialValue{"polygamma", {-1.0, 0.5}, kNan}));

TEST(ChloNextAfter, StepsByOneInEachType) {
  const std::pair<Type, double> epsilons[] = {
      {Type::F64, 0x1p-52}, {Type::F32, 0x1p-23}, {Type::F16, 0x1p-10}, {Type::BF16, 0x1p-7}};
  for (const auto& [type, epsilon] : epsilons) {
    EXPECT_EQ(*evaluate("next_after", {1, 2}, type), 1 + epsilon);
    EXPECT_EQ(*evaluate("next_after", {1, -kInf}, type), 1 - epsilon / 2);
    EXPECT_EQ(*evaluate("next_after", {-1, 0}, type), -1 + epsilon / 2);
    EXPECT_EQ(*evaluate("next_after", {-1, -kInf}, type), -1 - epsilon);
    EXPECT_EQ(*evaluate("next_after", {3, 3}, type), 3);
    EXPECT_TRUE(std::signbit(*evaluate("next_after", {0.0, -0.0}, type)));
    EXPECT_LT(*evaluate("next_after", {0, -1}, type), 0);
    EXPECT_EQ(*evaluate("next_after", {*evaluate("next_after", {0, 1}, type), -1}, type), 0);
    EXPECT_TRUE(std::isnan(*evaluate("next_after", {kNan, 1}, type)));
    EXPECT_TRUE(std::isnan(*evaluate("next_after", {1, kNan}, type)));
  }
}

TEST(ChloMathTypes, RefusesNarrowTypes) {
  const auto got = import_text(
      "func.func @main(%a: tensor<f8E4M3FN>) -> tensor<f8E4M3FN> {\n"
      "  %0 = chlo.lgamma %a : tensor<f8E4M3FN> -> tensor<f8E4M3FN>\n  return %0 : tensor<f8E4M3FN>\n}");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().code(), Code::Unimplemented);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

/// Text and artifact of each program in the corpus give the same instructions.
TEST(StableHloCorpus, TextAndArtifactAgree) {
  const char* corpus = std::getenv("COLLET_CORPUS_DIR");
  if (!corpus) {
    const char* required = std::getenv("COLLET_REQUIRE_CORPUS");
    ASSERT_FALSE(required && *required == '1') << "the corpus is required and COLLET_CORPUS_DIR is not set";
    GTEST_SKIP() << "without COLLET_CORPUS_DIR 2,940 programs were not read";
  }
  size_t programs = 0, read = 0;
  std::map<std::string, size_t> refused;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(corpus) / "stablehlo-testdata")) {
    if (entry.path().extension() != ".mlir") continue;
    ++programs;
    const std::string contents = read_file(entry.path());
    const std::vector<std::string_view> pieces = mlir::split_programs(contents);
    if (pieces.size() != 1) {
      // A file with several programs, whose functions take no arguments.
      for (std::string_view piece : pieces) {
        auto program = mlir::read_text(piece, entry.path().string());
        ASSERT_TRUE(program.ok()) << program.status().to_string();
        for (std::string_view name : functions_without_arguments(**program))
          EXPECT_TRUE(import_program(**program, {.entry = name}).ok()) << entry.path() << " @" << name;
      }
      ++read;
      continue;
    }
    auto text = import_text(contents);
    std::filesystem::path twin = entry.path();
    twin += "bc";
    if (!text.ok()) {
      EXPECT_EQ(text.status().code(), Code::Unimplemented) << entry.path() << text.status().to_string();
      ++refused[text.status().message()];
      continue;
    }
    ++read;
    if (!std::filesystem::exists(twin)) continue;
    auto program = mlir::read_bytecode(read_file(twin));
    ASSERT_TRUE(program.ok()) << twin << program.status().to_string();
    auto artifact = import_program(**program);
    ASSERT_TRUE(artifact.ok()) << twin << artifact.status().to_string();
    if ((*artifact)->instruction_count() != (*text)->instruction_count()) {
      // The artifact of a test is written after rewriting: CHLO ops and quantized types differ, but the signature is
      // the same.
      const Module& a = **artifact;
      EXPECT_TRUE(a[a.entry_computation().root].shape.compatible((**text)[(*text)->entry_computation().root].shape))
          << twin;
    }
  }
  EXPECT_GT(programs, 1000u);
  EXPECT_GE(read * 100, programs * 98) << "refused: " << programs - read;
  for (const auto& [why, count] : refused) std::cout << count << " x " << why << "\n";
}

}  // namespace
}  // namespace collet::hlo
