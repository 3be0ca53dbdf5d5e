// SPDX-License-Identifier: Apache-2.0
// Tests that programs which try to exhaust memory, time or the stack are refused with an error message, quickly and
// without much memory.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/importer.h"
#include "hlo/stablehlo/op_schemas.h"
#include "hlo/stablehlo/regular_ops.h"
#include "hlo/stablehlo/text.h"
#include "hlo/stablehlo/write.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

/// Returns the HLO text, or the message of the first step that refuses the program: reader, translation, verifier.
std::string read(std::string_view text) {
  auto program = mlir::read_text(text, "test");
  if (!program.ok()) return program.status().message();
  auto module = import_program(**program);
  if (!module.ok()) return module.status().message();
  const Status sound = verify_module(**module);
  return sound.ok() ? print_module(**module) : sound.message();
}

std::string in_main(std::string_view ops) {
  return "func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {\n" + std::string(ops) +
         "\nreturn %x : tensor<f32>\n}\n";
}

void expect_refused(const std::string& text, std::string_view why) {
  const std::string got = read(text);
  EXPECT_NE(got.find(why), std::string::npos) << text.substr(0, 2000) << "\n" << got.substr(0, 2000);
}

std::string repeated(int times, const std::function<std::string(int)>& make) {
  std::string out;
  for (int i = 0; i < times; ++i) out += make(i);
  return out;
}

std::string bytes_of(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

void expect_artifact_refused(std::string_view bytes, std::string_view why) {
  auto program = mlir::read_bytecode(bytes);
  std::string got = program.ok() ? "" : program.status().message();
  if (program.ok()) {
    auto module = import_program(**program);
    if (!module.ok()) got = module.status().message();
  }
  EXPECT_NE(got.find(why), std::string::npos) << got;
}

TEST(Hostile, FunctionsInsideOfFunctions) {
  expect_refused("module {\n" + repeated(60000, [](int) { return "func.func @f() {\n"; }), "nested too deeply");
}

TEST(Hostile, CallsAndRegionsByTurns) {
  std::string text =
      "func.func public @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {\n"
      "%r = func.call @f0(%p, %x) : (tensor<i1>, tensor<f32>) -> tensor<f32>\nreturn %r : tensor<f32>\n}\n";
  for (int f = 0; f < 190; ++f) {
    const std::string n = std::to_string(f), callee = f < 189 ? "@f" + std::to_string(f + 1) : "@end";
    text += "func.func private @f" + n + "(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {\n";
    for (int i = 0; i < 60; ++i) text += "%r" + std::to_string(i) + " = \"stablehlo.if\"(%p) ({\n";
    text += "%r60 = func.call " + callee + "(%p, %x) : (tensor<i1>, tensor<f32>) -> tensor<f32>\n";
    for (int i = 60; i-- > 0;)
      text += "\"stablehlo.return\"(%r" + std::to_string(i + 1) +
              ") : (tensor<f32>) -> ()\n}, {\n\"stablehlo.return\"(%x) : (tensor<f32>) -> ()\n}) : (tensor<i1>) -> "
              "tensor<f32>\n";
    text += "return %r0 : tensor<f32>\n}\n";
  }
  text += "func.func private @end(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {\nreturn %x : tensor<f32>\n}\n";
  expect_refused(text, "nested too deeply");
}

TEST(Hostile, CallsThatAreNestedTooDeeplyHaveALine) {
  const auto function = [](const std::string& name, const std::string& body) {
    return "func.func @" + name + "(%x: tensor<f32>) -> tensor<f32> {\n" + body + "\nreturn %x : tensor<f32>\n}\n";
  };
  const auto call = [](int f) {
    return "%r = func.call @f" + std::to_string(f) + "(%x) : (tensor<f32>) -> tensor<f32>";
  };
  std::string text = function("main", call(300)) + function("f0", "");
  for (int f = 1; f <= 300; ++f) text += function("f" + std::to_string(f), call(f - 1));
  expect_refused(text, "line 206: func.call: regions and calls are nested too deeply, more than 250");
}

TEST(Hostile, MoreResultsThanAnOpComputes) {
  constexpr std::string_view kNumber = "another number of results";
  expect_refused(in_main("%a:2 = \"stablehlo.constant\"() <{value = dense<1.0> : tensor<f32>}> : () -> "
                         "(tensor<f32>, tensor<f32>)"),
                 "has a result of type");
  expect_refused(in_main("%a:3 = \"chlo.square\"(%x) : (tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)"),
                 kNumber);
  expect_refused(in_main("%a:3 = \"stablehlo.optimization_barrier\"(%x, %x) : (tensor<f32>, tensor<f32>) -> "
                         "(tensor<f32>, tensor<f32>, tensor<f32>)"),
                 kNumber);
  expect_refused(in_main("%a = \"stablehlo.optimization_barrier\"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>"),
                 kNumber);
  expect_refused(
      in_main("%a:5 = \"stablehlo.while\"(%x, %y) ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
              "%c = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
              "\"stablehlo.return\"(%c) : (tensor<i1>) -> ()\n}, {\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
              "\"stablehlo.return\"(%p, %q) : (tensor<f32>, tensor<f32>) -> ()\n}) : (tensor<f32>, tensor<f32>) -> "
              "(tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)"),
      kNumber);
  expect_refused(in_main("%a = \"sdy.sharding_group\"() : () -> tensor<!quant.uniform<i8:f32, 0.1:0>>"),
                 "does not compute");
  expect_refused(in_main("%a = \"sdy.sharding_group\"() {mhlo.sharding = \"{replicated}\"} : () -> tensor<f32>"),
                 "does not compute");
  expect_refused(
      in_main(
          repeated(20, [](int i) { return "%a" + std::to_string(i) + ":1048576 = stablehlo.abs %x : tensor<f32>\n"; })),
      "but one type");
}

TEST(Hostile, ResultsOfOtherTypesThanComputed) {
  expect_refused(in_main("%a = \"chlo.square\"(%x) : (tensor<f32>) -> tensor<3xf32>"), "but it computes f32[]");
  expect_refused(in_main("%a = \"stablehlo.constant\"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> "
                         "tensor<3xf32>"),
                 "has a result of type tensor<3xf32>");
  expect_refused(in_main("%a = \"stablehlo.constant\"() <{value = dense<1.0> : tensor<f32>}> : () -> "
                         "!stablehlo.token"),
                 "is of arrays, not of !stablehlo.token");
  expect_refused(in_main("%a = \"stablehlo.constant\"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xf32>"),
                 "has a result of type tensor<2xf32>");
}

TEST(Hostile, TypesThatAreNotTheOperands) {
  expect_refused(in_main("%a = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>"), "operand 0 has type");
  expect_refused(in_main("%a = stablehlo.convert %x : (tensor<f32>, tensor<f32>) -> tensor<i32>"), "1 operands and 2");
  expect_refused(in_main("stablehlo.custom_call @f(%x) : (tensor<i32>) -> ()"), "operand 0 has type");
  expect_refused(in_main("%a = stablehlo.reduce(%x init: %y) applies stablehlo.add across dimensions = [] : "
                         "(tensor<f32>, tensor<i32>) -> tensor<f32>"),
                 "operand 1 has type");
}

TEST(Hostile, FunctionsThatReturnOtherThanTheySay) {
  expect_refused("func.func @main(%i: tensor<4xi32>) -> tensor<4xf32> {\nreturn %i : tensor<4xi32>\n}\n",
                 "has a result of type tensor<4xf32>, but returns s32[4]");
  expect_refused("func.func @main(%x: tensor<f32>) -> tensor<f32> {\nreturn %x, %x : tensor<f32>, tensor<f32>\n}\n",
                 "returns 2 values, but has 1 results");
  expect_refused(
      "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n%r = call @f(%x) : (tensor<f32>) -> tensor<f32>\n"
      "return %r : tensor<f32>\n}\nfunc.func private @f(%x: tensor<f32>) -> tensor<2xf32> {\n"
      "return %x : tensor<f32>\n}\n",
      "has a result of type tensor<2xf32>");
}

/// Returns a program whose function has an array of four elements and one of two rows of four, and runs `ops`.
std::string with_arrays(std::string_view ops) {
  return "func.func @main(%a: tensor<4xf32>, %b: tensor<2x4xf32>, %i: tensor<4xi32>, %p: tensor<4xi1>, "
         "%z: tensor<4xcomplex<f32>>) -> tensor<4xf32> {\n" +
         std::string(ops) + "\nreturn %a : tensor<4xf32>\n}\n";
}

std::string reducing(std::string_view op, std::string_view attributes, std::string_view element, std::string_view to) {
  const std::string type = "tensor<" + std::string(element) + ">";
  return with_arrays("%r = \"stablehlo." + std::string(op) +
                     "\"(%a) <{replica_groups = dense<[[0, 1]]> : " + "tensor<1x2xi64>" + std::string(attributes) +
                     "}> ({\n^bb0(%x: " + type + ", %y: " + type + "):\n%s = stablehlo.add %x, %y : " + type +
                     "\nstablehlo.return %s : " + type + "\n}) : (tensor<4xf32>) -> tensor<" + std::string(to) + ">");
}

TEST(Hostile, CollectivesThatCombineOtherThanTheirScalars) {
  constexpr std::string_view kBody = "needs a body that combines two scalars of the results' type";
  constexpr std::string_view kScatter = ", scatter_dimension = 0 : i64";
  EXPECT_TRUE(read(reducing("all_reduce", "", "f32", "4xf32")).starts_with("HloModule"));
  EXPECT_TRUE(read(reducing("reduce_scatter", kScatter, "f32", "2xf32")).starts_with("HloModule"));
  for (std::string_view element : {"4xf32", "f64", "f16", "1xf32"}) {
    expect_refused(reducing("all_reduce", "", element, "4xf32"), kBody);
    expect_refused(reducing("reduce_scatter", kScatter, element, "2xf32"), kBody);
  }
}

TEST(Hostile, GroupsThatDoNotFit) {
  const auto split = [](std::string_view groups, std::string_view count, std::string_view dim, std::string_view to) {
    return with_arrays("%r = \"stablehlo.all_to_all\"(%b) <{replica_groups = dense<" + std::string(groups) +
                       ">, split_dimension = 1 : i64, concat_dimension = " + std::string(dim) +
                       " : i64, split_count = " + std::string(count) + " : i64}> : (tensor<2x4xf32>) -> tensor<" +
                       std::string(to) + "xf32>");
  };
  EXPECT_TRUE(read(split("[[0, 1]]> : tensor<1x2xi64", "2", "0", "4x2")).starts_with("HloModule"));
  expect_refused(split("[[0, 1]]> : tensor<1x2xi64", "4", "0", "8x1"), "splits into other than a group's number");
  expect_refused(split("[[0, 1]]> : tensor<1x2xi64", "4", "1", "2x4"), "splits into other than a group's number");
  expect_refused(split("[0, 1]> : tensor<2xi64", "2", "0", "4x2"), "replica_groups are no table");
}

TEST(Hostile, SizesThatAreNotTheResults) {
  const auto sized = [](std::string_view op, std::string_view sizes, std::string_view type) {
    const bool iota = op == "dynamic_iota", broadcast = op == "dynamic_broadcast_in_dim";
    const std::string list = "tensor<" + std::string(type) + ">";
    return with_arrays("%c = stablehlo.constant dense<" + std::string(sizes) + "> : " + list + "\n%r = \"stablehlo." +
                       std::string(op) + "\"(" +
                       (iota        ? ""
                        : broadcast ? "%a, "
                                    : "%b, ") +
                       "%c) <{" +
                       (iota        ? "iota_dimension = 0 : i64"
                        : broadcast ? "broadcast_dimensions = array<i64: 1>"
                                    : "") +
                       "}> : (" +
                       (iota        ? ""
                        : broadcast ? "tensor<4xf32>, "
                                    : "tensor<2x4xf32>, ") +
                       list + ") -> tensor<" + (broadcast || iota ? "2x4" : "4x2") + "xf32>");
  };
  for (std::string_view op : {"dynamic_broadcast_in_dim", "dynamic_iota", "dynamic_reshape"}) {
    const bool turned = op == "dynamic_reshape";
    EXPECT_TRUE(read(sized(op, turned ? "[4, 2]" : "[2, 4]", "2xi64")).starts_with("HloModule")) << op;
    for (std::string_view sizes : {"[3, 4]", "[4, 3]"})
      expect_refused(sized(op, sizes, "2xi32"), "is not the result's");
    expect_refused(sized(op, "[2, 4, 1]", "3xi64"), "is not the result's shape");
    expect_refused(sized(op, "[2.0, 4.0]", "2xf32"), "is no list of integers");
    expect_refused(sized(op, "[[2], [4]]", "2x1xi64"), "is no list of integers");
  }
  expect_refused(with_arrays("%c = stablehlo.constant dense<1> : tensor<1xi64>\n"
                             "%d = stablehlo.constant dense<3> : tensor<1xi32>\n"
                             "%r = \"stablehlo.real_dynamic_slice\"(%a, %c, %d, %c) : (tensor<4xf32>, tensor<1xi64>, "
                             "tensor<1xi32>, tensor<1xi64>) -> tensor<2xf32>"),
                 "are of several types");
  expect_refused(with_arrays("%c = stablehlo.constant dense<1.0> : tensor<1xf32>\n"
                             "%r = \"stablehlo.real_dynamic_slice\"(%a, %c, %c, %c) : (tensor<4xf32>, tensor<1xf32>, "
                             "tensor<1xf32>, tensor<1xf32>) -> tensor<0xf32>"),
                 "is no list of integers");
}

TEST(Hostile, OpsOfElementsThatTheyDoNotTake) {
  for (std::string_view op : {"is_inf %i : tensor<4xi32> -> tensor<4xi1>",
                              "is_pos_inf %z : tensor<4xcomplex<f32>> -> "
                              "tensor<4xi1>",
                              "conj %i : tensor<4xi32> -> tensor<4xi32>", "square %i : tensor<4xi32> -> tensor<4xi32>",
                              "square %p : tensor<4xi1> -> tensor<4xi1>", "atan %i : tensor<4xi32> -> tensor<4xi32>"})
    expect_refused(with_arrays("%r = chlo." + std::string(op)), "is not known for");
  for (std::string_view value : {"1 : i32", "dense<3.0> : tensor<4xf32>", "\"3\"", "2.0 : f64", "true"})
    expect_refused(with_arrays("%r = \"chlo.constant_like\"(%a) <{value = " + std::string(value) +
                               "}> : (tensor<4xf32>) -> tensor<4xf32>"),
                   "its value is not of the result's element type");
  expect_refused(
      with_arrays("%r = \"chlo.constant_like\"(%a) <{value = 1.5 : f32}> : (tensor<4xf32>) -> tensor<2xf32>"),
      "of another shape than its operand");
  expect_refused(with_arrays("%r = \"chlo.next_after\"(%a, %b) : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>"),
                 "differ in shape");
  expect_refused(with_arrays("%r = \"chlo.broadcast_add\"(%a, %b) <{broadcast_dimensions = array<i64: 0, 1>}> : "
                             "(tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>"),
                 "are not those of the operand of lower rank");
  for (std::string_view sizes : {"5", "4, 1"}) {
    const std::string list = sizes == "5" ? "dense<5> : tensor<1xi64>" : "dense<[4, 1]> : tensor<2xi64>";
    expect_refused(with_arrays("%s = stablehlo.constant dense<1.0> : tensor<f32>\n%c = stablehlo.constant " + list +
                               "\n%r = stablehlo.rng %s, %s, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, " +
                               list.substr(list.find("tensor")) + ") -> tensor<4xf32>"),
                   "is not the result's shape");
  }
  for (std::string_view sizes : {"3", "2, 1", ""})
    expect_refused(
        with_arrays("%r = \"stablehlo.broadcast\"(%a) <{broadcast_sizes = array<i64" +
                    (sizes.empty() ? "" : ": " + std::string(sizes)) + ">}> : (tensor<4xf32>) -> tensor<2x4xf32>"),
        "are not the result's first dimensions");
  expect_refused(with_arrays("%r = stablehlo.bitcast_convert %p : (tensor<4xi1>) -> tensor<4xi8>"),
                 "as many booleans as");
  expect_refused(with_arrays("%r = stablehlo.constant dense<2> : tensor<4xi1>"), "this is no value of type i1");
  expect_refused(with_arrays("%r = stablehlo.constant dense<1> : tensor<4xf32>"), "this is no value of type f32");
}

TEST(Hostile, AlgorithmsThatAreNone) {
  const auto product = [](std::string_view lhs, std::string_view rhs, std::string_view sum, std::string_view counts) {
    return with_arrays(
        "%r = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0], algorithm = "
        "<lhs_precision_type = " +
        std::string(lhs) + ", rhs_precision_type = " + std::string(rhs) + ", accumulation_type = " + std::string(sum) +
        ", " + std::string(counts) +
        ", allow_imprecise_accumulation = false> : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2xf32>");
  };
  constexpr std::string_view kOnce = "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1";
  for (std::string_view type : {"tf32", "bf16", "f16", "f32"})
    EXPECT_TRUE(read(product(type, type, "f32", kOnce)).starts_with("HloModule")) << type;
  EXPECT_TRUE(read(product("f8E4M3FN", "f8E5M2", "f32", kOnce)).starts_with("HloModule"));
  constexpr std::string_view kNone = "has an algorithm that is none of HLO's";
  expect_refused(product("f16", "bf16", "f32", kOnce), kNone);
  expect_refused(product("f64", "f64", "f32", kOnce), kNone);
  expect_refused(
      product("f32", "f32", "f32", "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 7"),
      kNone);
  expect_refused(
      product("f32", "f32", "f32", "lhs_component_count = 2, rhs_component_count = 1, num_primitive_operations = 1"),
      kNone);
}

TEST(Hostile, TypesThatDouble) {
  std::string aliases = "!t0 = tuple<tensor<f32>, tensor<f32>>\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = "!t" + std::to_string(i - 1);
    aliases += "!t" + std::to_string(i) + " = tuple<" + before + ", " + before + ">\n";
  }
  expect_refused(aliases + "func.func @main(%x: !t40) -> !t40 {\nreturn %x : !t40\n}\n", "parts");
  // Attribute aliases that are large and used often, aliases that are empty, and chains of aliases.
  expect_refused(aliases.substr(0, aliases.find("!t16 =")) +
                     repeated(2000, [](int i) { return "!u" + std::to_string(i) + " = tuple<!t15>\n"; }),
                 "parts");
  std::string empty = "!t0 = tuple<>\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = "!t" + std::to_string(i - 1);
    empty += "!t" + std::to_string(i) + " = tuple<" + before + ", " + before + ">\n";
  }
  expect_refused(empty + "func.func @main() {\nreturn\n}\n", "parts");
  expect_refused(
      "!t0 = tuple<>\n" +
          repeated(5000,
                   [](int i) { return "!t" + std::to_string(i + 1) + " = tuple<!t" + std::to_string(i) + ">\n"; }),
      "nested deeper");
  expect_artifact_refused(
      bytes_of("4d4cef520d580001110501050501050b0f0200a5000000000000000f0b1b01011f0503031f0505051f0507071f0509091f05"
               "0b0b1f050d0d1f050f0f1f0511111f0513131f0515151f0517171f0519191f051b1b1f051d1d1f051f1f1f0521211f052323"
               "1f0525251f0527271f0529291f052b2b1f052d2d1f052f2f1f0531311f0533331f0535351f0537371f0539391f053b3b1f05"
               "3d3d1f053f3f1f0541411f0543431f0545451f0547471f0549491f054b4b1f054d4d1f054f4f1f0551510300830000000000"
               "0000035501030701030701030f01031301031301031301031301031301031301031301031301031301031301031301031301"
               "0313010313010313010313010313010313010313010313010313010313010313010313010313010313010313010313010313"
               "010313010313010313010313010313010313010313010313010313010313010313042d0501100107041f0305090302010353"
               "030601035303010501060301006909370f0b116275696c74696e0076686c6f006d6f64756c6500756e7265616c697a65645f"
               "636f6e76657273696f6e5f6361737400"),
      "parts");
}

TEST(Hostile, AttributesThatDouble) {
  std::string text = "#a0 = [1, 2]\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = "#a" + std::to_string(i - 1);
    text += "#a" + std::to_string(i) + " = [" + before + ", " + before + "]\n";
  }
  expect_refused(text + in_main("stablehlo.custom_call @f(%x) {mhlo.backend_config = #a40} : (tensor<f32>) -> ()"),
                 "parts");
}

TEST(Hostile, TuplesThatDouble) {
  std::string ops = "%t0 = stablehlo.tuple %x, %x : tuple<tensor<f32>, tensor<f32>>\n";
  std::string aliases = "!t0 = tuple<tensor<f32>, tensor<f32>>\n";
  for (int i = 1; i <= 16; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    aliases += "!t" + n + " = tuple<!t" + before + ", !t" + before + ">\n";
    ops += "%t" + n + " = stablehlo.tuple %t" + before + ", %t" + before + " : !t" + n + "\n";
  }
  expect_refused(aliases + in_main(ops), "parts");
}

TEST(Hostile, DimensionsWithoutEnd) {
  const std::string ones = repeated(300000, [](int) { return "1x"; });
  expect_refused(in_main("%c = stablehlo.constant dense<1.0> : tensor<" + ones + "f32>"), "dimensions");
}

TEST(Hostile, SizesThatAreNone) {
  constexpr std::string_view kMain = "func.func @main(%a: TYPE) -> TYPE {\nreturn %a : TYPE\n}\n";
  const auto with = [&](std::string_view type) {
    std::string text(kMain);
    for (size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, type);
    return text;
  };
  expect_refused(with("tensor<?xf32, #stablehlo.bounds<-5>>"), "negative bound");
  expect_refused(with("tensor<?xf32, #stablehlo.type_extensions<bounds = [-5]>>"), "negative bound");
  expect_refused(with("tensor<4xf32, #stablehlo.bounds<5>>"), "not dynamic");
  expect_refused(with("tensor<?x?xf32, #stablehlo.bounds<5>>"), "one bound for each");
  expect_refused(with("tensor<9223372036854775807x9223372036854775807xf32>"), "more bytes");
  expect_refused(with("tensor<4xtuple<>>"), "no elements of type tuple<>");
}

TEST(Hostile, ElementsOutOfRange) {
  const auto constant = [](std::string_view value) {
    return in_main("%c = stablehlo.constant dense<" + std::string(value) + "\n");
  };
  for (std::string_view bad : {"[300, -129]> : tensor<2xi8>", "[15, 20]> : tensor<2xi4>", "256> : tensor<ui8>",
                               "-1> : tensor<ui8>", "[4, 0]> : tensor<2xui2>", "-9223372036854775809> : tensor<i64>",
                               "0x1FFFFFFFF> : tensor<f32>", "-2147483649> : tensor<i32>"})
    expect_refused(constant(bad), "no value of type");
  for (std::string_view good : {"[-128, 255]> : tensor<2xi8>", "[-8, 15]> : tensor<2xi4>", "255> : tensor<ui8>",
                                "-9223372036854775808> : tensor<i64>", "4294967295> : tensor<i32>"})
    EXPECT_EQ(read(constant(good)).substr(0, 9), "HloModule") << good;
  expect_refused(constant("\"0x00000000\", 1, 2> : tensor<f32>"), "behind those in hexadecimal");
}

TEST(Hostile, NarrowElementsAreKeptAlikeByAllWaysIn) {
  const std::string list = in_main("%c = stablehlo.constant dense<[-1, 7, -8]> : tensor<3xi4>");
  const std::string hex = in_main("%c = stablehlo.constant dense<\"0x0F0708\"> : tensor<3xi4>");
  for (const std::string& text : {list, hex}) {
    auto program = mlir::read_text(text, "test");
    ASSERT_TRUE(program.ok()) << program.status().message();
    const mlir::AttrRef value = (*program)->module->body()->ops[0]->body()->ops[0]->attr("value");
    ASSERT_TRUE(value);
    EXPECT_EQ(value->bytes, std::string_view("\xFF\x07\xF8"));
  }
}

TEST(Hostile, WordsThatAreNoValues) {
  expect_refused(in_main("%c = stablehlo.constant dense<0.0> : tensor<4xcomplex<f32>>"), "pairs");
  const std::string z = "func.func @main(%z: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {\n";
  const std::string end =
      " : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>\nreturn %a : tensor<4xcomplex<f32>>\n}\n";
  expect_refused(z + "%a = \"stablehlo.fft\"(%z) <{fft_length = array<i64: 4>}>" + end, "lacks its fft_type");
  expect_refused(
      z + "%a = \"stablehlo.fft\"(%z) <{fft_length = array<i64: 4>, fft_type = #stablehlo<fft_type IFTT>}>" + end,
      "there is no fft_type IFTT");
  EXPECT_EQ(
      read(z + "%a = \"stablehlo.fft\"(%z) <{fft_length = array<i64: 4>, fft_type = #stablehlo<fft_type IFFT>}>" + end)
          .substr(0, 9),
      "HloModule");
  const std::string m =
      "func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {\n%b = \"stablehlo.triangular_solve\""
      "(%a, %a) <{left_side = true, lower = true, unit_diagonal = false";
  const std::string m_end =
      "}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>\nreturn %b : tensor<2x2xf32>\n}\n";
  expect_refused(m + m_end, "lacks its transpose_a");
  expect_refused(m + ", transpose_a = #stablehlo<transpose TRANSPOS>" + m_end, "there is no transpose_a TRANSPOS");
  expect_refused(in_main("%s = stablehlo.constant dense<2> : tensor<1xi64>\n%a = \"stablehlo.rng\"(%x, %y, %s) "
                         "<{rng_distribution = #stablehlo<rng_distribution NORMALISH>}> : (tensor<f32>, tensor<f32>, "
                         "tensor<1xi64>) -> tensor<2xf32>"),
                 "there is no rng_distribution");
  expect_refused(in_main("%a = stablehlo.compare LT, %x, %y, FLOATS : (tensor<f32>, tensor<f32>) -> tensor<i1>"),
                 "there is no compare_type FLOATS");
  expect_refused(in_main("stablehlo.custom_call @f(%x) {api_version = 7 : i32} : (tensor<f32>) -> ()"),
                 "there is no api_version 7");
}

TEST(Hostile, EveryOpOnOperandsOfEveryKind) {
  std::vector<std::string> names;
  for (auto rows : {import_structured_rows(), import_control_rows(), import_dynamic_rows(), import_chlo_rows(),
                    import_chlo_math_rows(), import_collective_rows(), import_sharding_rows(), import_special_rows()})
    for (const ImportRow& row : rows) names.emplace_back(row.name);
  for (int i = 1; i <= kLastOp; ++i)
    if (const std::string_view name = regular_name(static_cast<Op>(i)); !name.empty()) names.emplace_back(name);
  const std::string types[] = {
      "tensor<f32>",
      "tensor<2x3xf32>",
      "tensor<2xcomplex<f32>>",
      "tensor<i1>",
      "tensor<?xi8>",
      "tensor<0xbf16>",
      "tensor<4x!quant.uniform<i8:f32:0, {0.1,0.2}>>",
      "tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>",
      "tuple<>",
      "tuple<tensor<f32>, tensor<2xi32>>",
      "!stablehlo.token",
      "memref<2xf32>",
      "index",
  };
  constexpr std::string_view kAttributes[] = {
      "",
      "{dimensions = array<i64: 1>, dimension = 1 : i64, permutation = array<i64: 1>, value = dense<1.0> : "
      "tensor<f32>, "
      "broadcast_dimensions = array<i64: 1>, iota_dimension = 0 : i64, k = 2 : i64, index = 1 : i64, "
      "split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, all_gather_dim = 3 : i64}",
  };
  size_t read_count = 0;
  for (const std::string& name : names)
    for (const std::string& type : types)
      for (std::string_view attributes : kAttributes)
        for (int operands = 0; operands < 4; ++operands)
          for (int results = 0; results < 3; ++results) {
            const std::string list = operands ? "%a" + repeated(operands - 1, [](int) { return ", %a"; }) : "";
            const std::string kinds = operands ? type + repeated(operands - 1, [&](int) { return ", " + type; }) : "";
            const std::string out = results ? type + repeated(results - 1, [&](int) { return ", " + type; }) : "";
            read_count += read("func.func @main(%a: " + type + ") -> () {\n" +
                               (results ? "%r:" + std::to_string(results) + " = " : "") + "\"" + name + "\"(" + list +
                               ") " + std::string(attributes) + " : (" + kinds + ") -> (" + out + ")\nreturn\n}\n")
                              .starts_with("HloModule");
          }
  EXPECT_GT(read_count, names.size());
}

TEST(Hostile, TolerancesThatAreNoNumbers) {
  expect_refused(in_main("%a = \"stablehlo.exponential\"(%x) <{result_accuracy = #stablehlo.result_accuracy<atol = "
                         "0.5, rtol = 1.0e+999, ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : "
                         "(tensor<f32>) -> tensor<f32>"),
                 "tolerances are no numbers");
}

TEST(Hostile, ArtifactsThatLieAboutSizes) {
  expect_artifact_refused(
      bytes_of("4d4cef520d580001110501050501050b0f02510f17093d03010300ffffffffffffffff00ff0000000000000000fe00000000"
               "00000001012903090503230309010307030307030307030387030313042d0501100107041f03050903020103070306010307"
               "03010501060301006909370f0b116275696c74696e0076686c6f006d6f64756c6500756e7265616c697a65645f636f6e7665"
               "7273696f6e5f6361737400"),
      "quantized");
  expect_artifact_refused(
      bytes_of("4d4cef520d5800010f0505090301030f023b0f23010000000000000000200105010303050301000001000000000000032309"
               "0301030701033301030b01031301032b0417050111010707040703010105010603010037090f0b110578006275696c74696e"
               "0076686c6f006d6f64756c6500"),
      "dense array");
  // complex<f64>, which is wider than a number of a list.
  expect_artifact_refused(
      bytes_of("4d4cef520d5800010d030103010307023b03030305050523030321414141414141414141414141414141410d130103170705"
               "0107130b530105070b040b0501010101002f07090f116275696c74696e006d6f64756c6500666f6f00"),
      "dense array");
  // A splat of 2^24 numbers that is used under twelve names is not expanded.
  EXPECT_TRUE(
      mlir::read_bytecode(
          bytes_of(
              "4d4cef520d5800010f0531350301033b02a90f250311000000000000000005010503050505070509050b050d050f05110513"
              "0515051703190503070309030b030d030f03110313031503170319031b03010000010000000000001b030000000002000000"
              "0001036b1f0501030701032f01030b01030b01030b01030b01030b01030b01030b01030b01030b01030b01030b01030b0103"
              "6b01032b0103330417050111011d070407030101050106030100951f0f0b110909070707070707070707076e30006e31006e"
              "32006e33006e34006e35006e36006e37006e38006e39006e3130006e3131006275696c74696e0076686c6f006d6f64756c65"
              "00"))
          .ok());
}

// array<f32: 1.0, 2.5> as MLIR writes it.
TEST(Hostile, ArraysOfFloatsAreNoLists) {
  const auto program = mlir::read_bytecode(
      bytes_of("4d4cef520d537461626c65484c4f5f76312e31372e300001190501050901030b03071f2b2f025d1f0507230705110000803f"
               "00002040050b03030705050d03030b09030123051d111d13092903110111030303030b03331709010f070b330b130b130309"
               "0b0b0b0b0307071317010307044d050151010d0107043b0301050350010307042703050b0305000506010303050101070401"
               "0303050106030100d319150f0f0b11330909050f0b116275696c74696e0076686c6f006d6f64756c65006d0062617200666f"
               "6f006d686c6f2e66726f6e74656e645f617474726962757465730066756e635f7631006d61696e007075626c696300616464"
               "5f76310072657475726e5f7631000815050507010b0f110f1315"));
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_NE(mlir::print_program(**program).find("dense<[1.0e+00, 2.5e+00]> : tensor<2xf32>"), std::string::npos);
}

TEST(Hostile, SplatsAreNotWrittenOut) {
  for (std::string_view type : {"tensor<65536xi1>", "tensor<65536xi64>", "tensor<256x256xi32>"}) {
    const std::string splat = "dense<1> : " + std::string(type);
    const auto program = mlir::read_text(in_main("%a = stablehlo.abs %x {x = " + splat + "} : tensor<f32>"), "test");
    ASSERT_TRUE(program.ok()) << program.status().message();
    const std::string text = mlir::print_program(**program);
    EXPECT_NE(text.find(type), std::string::npos) << text.substr(0, 2000);
  }
  for (std::string_view count : {"20000000", "1000000000000"}) {
    const std::string layouts = "operand_layouts = [dense<0> : tensor<" + std::string(count) + "xindex>]";
    expect_refused(in_main("%a = stablehlo.custom_call @x(%x) {" + layouts +
                           ", result_layouts = [dense<> : tensor<0xindex>]} : (tensor<f32>) -> tensor<f32>"),
                   "is no order of the dimensions");
    expect_refused(
        "func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {mhlo.layout_mode = \"auto\"}) {\n"
        "%a = stablehlo.custom_call @LayoutConstraint(%x) {result_layouts = [dense<0> : tensor<" +
            std::string(count) + "xindex>]} : (tensor<4xf32>) -> tensor<4xf32>\nreturn %a : tensor<4xf32>\n}",
        "layouts");
  }
}

TEST(Hostile, RegionsThatClaimWhatFollows) {
  // Builds an artifact whose module holds many ops, each with a region that declares as many values as bytes follow.
  const auto small = [](uint64_t n) { return std::string(1, static_cast<char>(n << 1 | 1)); };
  const auto large = [](uint64_t n) {
    std::string out(9, '\0');
    for (size_t i = 0; i < 8; ++i) out[i + 1] = static_cast<char>(n >> (8 * i));
    return out;
  };
  const auto section = [&](char id, const std::string& payload) { return id + large(payload.size()) + payload; };
  constexpr int kOps = 20000;
  std::string ops;
  for (int i = kOps; i-- > 0;)  // name, mask (regions), location; one region: one block, values, no ops
    ops = small(0) + '\x10' + small(0) + small(1 << 1) + small(1) + large(static_cast<uint64_t>(i) * 15 + 1) +
          small(0) + ops;
  const std::string region = small(1) + small(0) + large(uint64_t{kOps} << 1) + ops;
  const std::string ir = small(1 << 1) + small(0) + '\x10' + small(0) + small((1 << 1) | 1) + section(4, region);
  const std::string dialects = small(1) + small(0) + small(1) + small(0) + small(1) + small((1 << 1) | 1);
  const std::string strings = small(2) + small(7) + small(8) + std::string("builtin\0module\0", 15);
  const std::string file = "ML\xefR" + small(6) + std::string("X\0", 2) + section(1, dialects) + section(2, "") +
                           section(3, small(0) + small(0)) + section(4, ir) + section(5, "") + section(6, "\x01") +
                           section(0, strings);
  expect_artifact_refused(file, "claims too many values");
}

// An artifact always has a backend_config: an empty dictionary or an empty string mean that the call has none.
TEST(Hostile, EmptyConfigsOfArtifactsAreNone) {
  for (const char* hex :
       {"4d4cef520d4d4c495232332e302e306769740001190501050901030b03070f131703331d07010d0b131313131303110b0b0b"
        "0b0b0b0b0b03070f1707025f050d17010303170105071701052d170107151701090b030123031d0f1d110b030d011d130501"
        "290105110301030109044d050150030107043d0301050350050307042903050b03030700054609050301030107040b030306"
        "0301050100951505030b05151f110f0b116275696c74696e0076686c6f006d6f64756c650066756e635f763100637573746f"
        "6d5f63616c6c5f76310072657475726e5f7631002d006d61696e000078000827070501010b0d0f0d1113111517190d1b0d0d"
        "0d",
        "4d4cef520d4d4c495232332e302e306769740001190501050901030b03070f131703311b07010d0b1313131313030f0b0b0b"
        "0b0b0b0b03070f1707025b050d17010303170105071701052d170107151701090b03011d0f23031d110b091d130501290105"
        "110301030109044d050150030107043d0301050350050307042903050b03030700054609050301030107040b030306030105"
        "01009515050b0305151f110f0b116275696c74696e0076686c6f006d6f64756c650066756e635f763100637573746f6d5f63"
        "616c6c5f76310072657475726e5f7631002d00006d61696e0078000827070501010b0d110d130f11150f170d190d0d0d"}) {
    const auto program = mlir::read_bytecode(bytes_of(hex));
    ASSERT_TRUE(program.ok()) << program.status().message();
    const auto module = import_program(**program);
    ASSERT_TRUE(module.ok()) << module.status().message();
    EXPECT_EQ(print_module(**module).find("backend_config"), std::string::npos);
  }
}

TEST(Hostile, NamesWithEscapesStayThemselves) {
  const std::string text =
      "module @\"m\\22n\" {\nfunc.func public @main(%x: tensor<f32>) -> tensor<f32> {\n"
      "%r = func.call @\"a\\22b\"(%x) : (tensor<f32>) -> tensor<f32>\nreturn %r : tensor<f32>\n}\n"
      "func.func private @\"a\\22b\"(%x: tensor<f32>) -> tensor<f32> {\nreturn %x : tensor<f32>\n}\n}\n";
  auto program = mlir::read_text(text, "test");
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string once = mlir::print_program(**program);
  EXPECT_NE(once.find("@\"a\\\"b\""), std::string::npos) << once;
  auto again = mlir::read_text(once, "printed");
  ASSERT_TRUE(again.ok()) << once << again.status().message();
  EXPECT_EQ(mlir::print_program(**again), once);
  EXPECT_EQ(read(text).substr(0, 9), "HloModule");
}

TEST(Hostile, TextIsToldByItsBeginning) {
  for (std::string_view text :
       {"// RUN: a test\n\n!t0 = tensor<f32>\nfunc.func @main() {\n}\n", "#loc = loc(unknown)\n",
        "  // one\n// two\nbuiltin.module {\n}\n", "\"builtin.module\"() ({\n}) : () -> ()\n"})
    EXPECT_TRUE(mlir::looks_like_text(text)) << text;
  for (std::string_view text : {"// a comment\nHloModule m\n", "ENTRY e {\n}\n", "", "//", "module_name"})
    EXPECT_FALSE(mlir::looks_like_text(text)) << text;
}

}  // namespace
}  // namespace collet::hlo
