// SPDX-License-Identifier: Apache-2.0
// Tests that programs which StableHLO's own parser and verifier refuse are refused here, and that unusual programs
// which they accept are accepted.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

#include "hlo/eval/evaluator.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

/// Returns the message of the first step that refuses the program (reader, translation, verifier); empty if none does.
std::string complaint(std::string_view text) {
  auto program = mlir::read_text(text, "test");
  if (!program.ok()) return program.status().to_string();
  auto module = import_program(**program);
  if (!module.ok()) return module.status().to_string();
  const Status sound = verify_module(**module);
  return sound.ok() ? "" : sound.to_string();
}

struct Verdict {
  const char* ops;
  const char* error = nullptr;  ///< a part of the expected message; null if the program is valid
};

void check(std::span<const Verdict> cases) {
  for (const Verdict& c : cases) {
    SCOPED_TRACE(c.ops);
    const std::string got = complaint(
        "func.func @main(%x: tensor<4xf32>, %m: tensor<4x4xf32>, %z: tensor<4xcomplex<f32>>, %s: tensor<2xi64>,\n"
        "    %t: !stablehlo.token, %d: tensor<?x2xf32>, %n: tensor<f32>, %i: tensor<4xi32>) {\n" +
        std::string(c.ops) +
        "\nreturn\n}\nfunc.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n");
    if (c.error)
      EXPECT_NE(got.find(c.error), std::string::npos) << got;
    else
      EXPECT_EQ(got, "");
  }
}

TEST(Verdicts, Attributes) {
  const Verdict cases[] = {
      {R"(%r = "stablehlo.add"(%x, %x) <{foo = 1 : i64}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>)",
       "test:3:30: error: an op that has no properties is given 'foo'"},
      {R"(%r = "stablehlo.add"(%x, %x) {foo = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>)"},
      {R"(%r = "stablehlo.add"(%x, %x) <{}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>)"},
      // If an op has properties, StableHLO ignores properties that the op does not define.
      {R"(%r = "stablehlo.transpose"(%x) <{permutation = array<i64: 0>, foo = true}> : (tensor<4xf32>) -> tensor<4xf32>)"},
      {R"(%r = "stablehlo.transpose"(%x) {permutation = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>)"},
      {R"(%r = "stablehlo.transpose"(%x) <{permutation = array<i64: 0>, permutation = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>)",
       "test:3:63: error: 'permutation' is given twice"},
      {R"(%r = stablehlo.add %x, %x {foo = 1 : i64, foo = 2 : i64} : tensor<4xf32>)", "'foo' is given twice"},
      {R"(%r = "stablehlo.transpose"(%x) <{permutation = 0 : i64}> : (tensor<4xf32>) -> tensor<4xf32>)",
       "line 3: stablehlo.transpose: attribute permutation is 0"},
      {R"(%r = "stablehlo.iota"() <{iota_dimension = array<i64: 0>}> : () -> tensor<4xi32>)",
       "attribute iota_dimension is array<i64: 0>"},
      {R"(%r = "stablehlo.cholesky"(%m) <{lower = 1 : i64}> : (tensor<4x4xf32>) -> tensor<4x4xf32>)",
       "attribute lower is 1"},
      {R"(%r = "stablehlo.broadcast_in_dim"(%n) <{broadcast_dimensions = array<i1>}> : (tensor<f32>) -> tensor<4xf32>)",
       "attribute broadcast_dimensions is"},
      {R"(%r = "stablehlo.transpose"(%x) <{permutation = array<i32: 0>}> : (tensor<4xf32>) -> tensor<4xf32>)",
       "attribute permutation is array<i32: 0>, which is of another kind"},
      {R"(%r = "stablehlo.broadcast_in_dim"(%n) <{broadcast_dimensions = array<i32>}> : (tensor<f32>) -> tensor<4xf32>)",
       "attribute broadcast_dimensions is array<i32>"},
      {R"(%r = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<0> : tensor<1x2xi32>}> : (tensor<4xf32>) -> tensor<4xf32>)",
       "attribute source_target_pairs is"},
      {R"(%r = "stablehlo.iota"() <{iota_dimension = 0 : i32}> : () -> tensor<4xi32>)",
       "attribute iota_dimension is 0 : i32, which is of another kind"},
      {R"(%r = "stablehlo.custom_call"(%x) <{call_target_name = 3 : i32}> : (tensor<4xf32>) -> tensor<4xf32>)",
       "attribute call_target_name is 3 : i32"},
  };
  check(cases);
}

TEST(Verdicts, Accuracies) {
  const auto sine = [](const std::string& tolerance, const std::string& mode) {
    return "%r = \"stablehlo.sine\"(%x) <{result_accuracy = #stablehlo.result_accuracy<" + tolerance +
           "mode = #stablehlo.result_accuracy_mode<" + mode + ">>}> : (tensor<4xf32>) -> tensor<4xf32>";
  };
  const std::pair<std::string, const char*> cases[] = {
      {sine("", "HIGHEST"), nullptr},
      {sine("atol = 1.0e-3, ulps = 2, ", "TOLERANCE"), nullptr},
      {sine("ulps = 3, ", "DEFAULT"), "result_accuracy has a tolerance, but a mode other than TOLERANCE"},
      {sine("rtol = 0.1, ", "HIGHEST"), "but a mode other than TOLERANCE"},
      {sine("ulps = -1, ", "TOLERANCE"), "result_accuracy has a negative tolerance"},
      {sine("atol = -1.0, ", "DEFAULT"), "has a negative tolerance"},
  };
  for (const auto& [op, error] : cases) {
    const Verdict one[] = {{op.c_str(), error}};
    check(one);
  }
}

TEST(Verdicts, TypesOfPrettyOps) {
  const Verdict cases[] = {
      {"%r = stablehlo.abs %x : tensor<5xf32>",
       "test:3:25: error: operand 0 has type tensor<4xf32>, not tensor<5xf32>"},
      {"%r = stablehlo.add %x, %i : tensor<4xf32>", "operand 1 has type tensor<4xi32>"},
      {"%r = stablehlo.tuple %x : tuple<tensor<4xf32>>"},
      {"%r = stablehlo.complex %x, %x : tensor<4xcomplex<f32>>"},
      {"%r = stablehlo.optimization_barrier %x : tensor<4xi32>", "operand 0 has type tensor<4xf32>"},
  };
  check(cases);
  EXPECT_NE(complaint("func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {\n  return %x : tensor<4xi32>\n}")
                .find("test:2:15: error: operand 0 has type tensor<4xf32>, not tensor<4xi32>"),
            std::string::npos);
}

TEST(Verdicts, Precisions) {
  const std::string begin = "%r = stablehlo.dot_general %m, %m, contracting_dims = [1] x [0], precision = [";
  const std::string end = "] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>";
  const std::pair<const char*, const char*> lists[] = {
      {"", nullptr},
      {"HIGH", nullptr},
      {"HIGH, HIGHEST", nullptr},
      {"HIGH, HIGH, HIGH", "a precision for each of two operands"},
      {"HIGHER, HIGH", "there is no precision HIGHER"},
  };
  for (const auto& [list, error] : lists) {
    const std::string op = begin + list + end;
    const Verdict one[] = {{op.c_str(), error}};
    check(one);
  }
  // A precision beside an algorithm is refused, because the algorithm determines it.
  const std::string algorithm =
      "], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
      "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, "
      "allow_imprecise_accumulation = false>";
  const std::pair<const char*, const char*> beside[] = {
      {"", nullptr},
      {"DEFAULT, DEFAULT", nullptr},
      {"HIGH, HIGH", "has an algorithm, so that its precision must be DEFAULT"},
  };
  for (const auto& [list, error] : beside) {
    const std::string op = begin + list + algorithm + end.substr(1);
    const Verdict one[] = {{op.c_str(), error}};
    check(one);
  }
}

TEST(Verdicts, CustomCalls) {
  const auto call = [](const std::string& attributes) {
    return "%r = \"stablehlo.custom_call\"(%m) <{call_target_name = \"x\"" + attributes +
           "}> : (tensor<4x4xf32>) -> tensor<4x4xf32>";
  };
  const auto layouts = [&](const std::string& operands, const std::string& results) {
    return call((operands.empty() ? "" : ", operand_layouts = [" + operands + "]") +
                (results.empty() ? "" : ", result_layouts = [" + results + "]"));
  };
  const std::string good = "dense<[0, 1]> : tensor<2xindex>";
  const std::pair<std::string, const char*> cases[] = {
      {layouts(good, good), nullptr},
      {layouts("dense<[1, 0]> : tensor<2xindex>", good), nullptr},
      {layouts("dense<0> : tensor<2xindex>", good), "operand_layouts: layout 0 is no order of the dimensions"},
      {layouts(good, "dense<[0, 2]> : tensor<2xindex>"), "result_layouts: layout 0 is no order of the dimensions"},
      {layouts("dense<[0]> : tensor<1xindex>", good), "operand_layouts: layout 0 is no order"},
      {layouts("dense<[0, 1]> : tensor<2xi64>", good), "operand_layouts: layout 0 is no list of indices"},
      {layouts(good + ", " + good, good), "operand_layouts must hold a layout for each of 1 operands"},
      {layouts(good, ""), "layouts are given for both operands and results, or for none"},
      {call(", api_version = 4 : i32"), nullptr},
      {call(", api_version = 4 : i32, backend_config = {a = 1 : i32}"), nullptr},
      {call(", api_version = 4 : i32, backend_config = \"abc\""), "backend_config must be a dictionary"},
      {call(", backend_config = \"abc\""), nullptr},
      {call(", backend_config = {a = 1 : i32}"), "backend_config must be a string"},
      {call(", api_version = 1 : i32, backend_config = {}"), "backend_config must be a string"},
      {call(", api_version = 2 : i32, backend_config = 3 : i32"), "backend_config must be a string"},
      {call(", api_version = 5 : i32"), "there is no api_version 5"},
      {call(", api_version = 3 : i64"), "attribute api_version is 3"},
      {call(", called_computations = [@f]"), nullptr},
      {call(", called_computations = @f"), "attribute called_computations is @f"},
      {"%r = \"stablehlo.custom_call\"(%m) : (tensor<4x4xf32>) -> tensor<4x4xf32>",
       "lacks its attribute call_target_name"},
  };
  for (const auto& [op, error] : cases) {
    const Verdict one[] = {{op.c_str(), error}};
    check(one);
  }
  const Verdict others[] = {
      {R"(%r = "stablehlo.custom_call"(%t) <{call_target_name = "x", operand_layouts = [dense<> : tensor<0xindex>], result_layouts = [dense<> : tensor<0xindex>]}> : (!stablehlo.token) -> !stablehlo.token)"},
      {R"(%r = "stablehlo.custom_call"(%x) <{call_target_name = "x", operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]}> : (tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>)"},
  };
  check(others);
}

TEST(Verdicts, NamesOfComposites) {
  for (const char* good : {"foo.bar", "a1_.b2.c$d", "X.9"}) {
    const std::string op = "%r = stablehlo.composite \"" + std::string(good) +
                           "\" %x {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>";
    const Verdict one[] = {{op.c_str()}};
    check(one);
  }
  for (const char* bad : {"foo", ".bar", "foo.", "foo..bar", "1foo.bar", "foo.b-r", "fo$o.bar", ""}) {
    const std::string op = "%r = stablehlo.composite \"" + std::string(bad) +
                           "\" %x {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>";
    const Verdict one[] = {
        {op.c_str(), "line 3: stablehlo.composite: its name must be one such as my_namespace.my_op"}};
    check(one);
  }
  const std::string begin = "%r = stablehlo.composite \"a.b\" %x {decomposition = @f, ";
  const std::string end = "} : (tensor<4xf32>) -> tensor<4xf32>";
  const std::pair<const char*, const char*> attributes[] = {
      {"version = 1 : i32", nullptr},
      {"version = 1 : i64", "attribute version is 1"},
      {"composite_attributes = {a = 1 : i32}", nullptr},
      {"composite_attributes = 3 : i32", "composite_attributes must be a dictionary, but is 3 : i32"}};
  for (const auto& [attribute, error] : attributes) {
    const std::string op = begin + attribute + end;
    const Verdict one[] = {{op.c_str(), error}};
    check(one);
  }
}

TEST(Verdicts, OpsOfDynamicShape) {
  const auto broadcast = [](const std::string& attributes, const std::string& result = "tensor<?x4xf32>") {
    return "%r = \"stablehlo.dynamic_broadcast_in_dim\"(%x, %s) <{" + attributes +
           "}> : (tensor<4xf32>, tensor<2xi64>) -> " + result;
  };
  const std::string dims = "broadcast_dimensions = array<i64: 1>";
  const std::pair<std::string, const char*> broadcasts[] = {
      {broadcast(dims), nullptr},
      {broadcast(dims + ", known_nonexpanding_dimensions = array<i64: 0>"), nullptr},
      {broadcast(dims + ", known_expanding_dimensions = array<i64: 0, 0>"),
       "known_expanding_dimensions: dimension 0 is named twice"},
      {broadcast(dims + ", known_nonexpanding_dimensions = array<i64: 0, 0>"), "named twice"},
      {broadcast(dims + ", known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>"),
       "known_nonexpanding_dimensions: dimension 0 is named twice"},
      {broadcast(dims + ", known_expanding_dimensions = array<i64: 1>"), "the operand has no dimension 1"},
      {broadcast("broadcast_dimensions = array<i64: 2>"), "do not bring f32[4] to"},
      {broadcast("broadcast_dimensions = array<i64: 1, 0>"), "do not bring f32[4] to"},
      {broadcast(dims, "tensor<?x5xf32>"), "do not bring f32[4] to"},
      {broadcast(dims, "tensor<?x4xi32>"), "element types differ"},
      {broadcast(dims, "tensor<?x4x4xf32>"), "its operand of sizes is not the result's shape"},
  };
  for (const auto& [op, error] : broadcasts) {
    const Verdict one[] = {{op.c_str(), error}};
    check(one);
  }
  const Verdict cases[] = {
      {"%r = stablehlo.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>"},
      {"%r = stablehlo.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xi32>",
       "element types differ"},
      {"%r = stablehlo.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<?xf32>",
       "its operand of sizes is not the result's shape"},
      {"%r = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi64>) -> tensor<?x?xf32>"},
      {"%r = stablehlo.dynamic_iota %s, dim = 2 : (tensor<2xi64>) -> tensor<?x?xf32>", "has no dimension 2"},
      {"%r = stablehlo.dynamic_pad %d, %n, %s, %s, %s : (tensor<?x2xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, "
       "tensor<2xi64>) -> tensor<?x?xf32>"},
      {"%r = stablehlo.dynamic_pad %x, %n, %s, %s, %s : (tensor<4xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, "
       "tensor<2xi64>) -> tensor<?xf32>",
       "must be a list of 1 integers"},
      {"%r = stablehlo.real_dynamic_slice %d, %s, %s, %s : (tensor<?x2xf32>, tensor<2xi64>, tensor<2xi64>, "
       "tensor<2xi64>) "
       "-> tensor<?x?xi32>",
       "element types differ"},
      {R"(%r = "stablehlo.broadcast_in_dim"(%n) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<?xf32>)",
       "has a result of unknown size, f32[?]"},
      {R"(%r = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<?xf32>)", "has a result of unknown size"},
      {"%r = stablehlo.reshape %d : (tensor<?x2xf32>) -> tensor<?xf32>", "has a result of unknown size"},
      {"%o = stablehlo.constant dense<1.0> : tensor<1x4xf32>\n"
       "%r = stablehlo.broadcast_in_dim %o, dims = [1, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>",
       "broadcast_in_dim C4: broadcast_dimensions names 1 twice"},
  };
  check(cases);
}

TEST(Verdicts, ComplexNumbers) {
  const Verdict cases[] = {
      {"%r = stablehlo.remainder %z, %z : tensor<4xcomplex<f32>>"},
      {"%r = stablehlo.clamp %z, %z, %z : tensor<4xcomplex<f32>>"},
      {R"(%r = "chlo.constant_like"(%z) <{value = #complex.number<:f32 1.0, -2.5e+00> : complex<f32>}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>)"},
      {R"(%r = "chlo.constant_like"(%z) <{value = #complex.number<:f32 1.0, 2.0>}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>)"},
      {R"(%r = "chlo.constant_like"(%z) <{value = #complex.number<:f64 1.0, 2.0>}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>)",
       "its value is not of the result's element type"},
      {R"(%r = "chlo.constant_like"(%z) <{value = #complex.number<:f32 1.0>}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>)",
       "its value is not of the result's element type"},
      {R"(%r = "chlo.constant_like"(%z) <{value = 1.0 : f32}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>)",
       "its value is not of the result's element type"},
      {R"(%a = stablehlo.constant dense<1.0> : tensor<1x8x1xf32>
          %b = stablehlo.constant dense<(1.0, 2.0)> : tensor<3x1x1xcomplex<f32>>
          %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x1xf32>, tensor<3x1x1xcomplex<f32>>) -> tensor<1x6x1xf32>)",
       "element types differ"},
  };
  check(cases);
}

Expected<Literal> result_of(std::string_view text) {
  COLLET_ASSIGN(const auto program, mlir::read_text(text, "test"));
  COLLET_ASSIGN(const auto module, import_program(*program));
  COLLET_TRY(verify_module(*module));
  return Evaluator(*module).run({});
}

TEST(Verdicts, ComplexValues) {
  const auto clamped = result_of(R"(func.func @main() -> tensor<5xcomplex<f32>> {
    %a = stablehlo.constant dense<[(0.0, 9.0), (2.0, -9.0), (1.0, 0.0), (3.0, 4.0), (9.0, 0.0)]> : tensor<5xcomplex<f32>>
    %l = stablehlo.constant dense<(1.0, 1.0)> : tensor<complex<f32>>
    %h = stablehlo.constant dense<(3.0, 3.0)> : tensor<complex<f32>>
    %r = stablehlo.clamp %l, %a, %h : (tensor<complex<f32>>, tensor<5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<5xcomplex<f32>>
    return %r : tensor<5xcomplex<f32>>
  })");
  ASSERT_TRUE(clamped.ok()) << clamped.status().to_string();
  const std::pair<double, double> expected[] = {{1, 1}, {2, -9}, {1, 1}, {3, 3}, {3, 3}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(clamped->as_double(i), expected[i].first) << i;
    EXPECT_EQ(clamped->imaginary(i), expected[i].second) << i;
  }
  const auto like = result_of(R"(func.func @main() -> tensor<2xcomplex<f64>> {
    %a = stablehlo.constant dense<(0.0, 0.0)> : tensor<2xcomplex<f64>>
    %r = "chlo.constant_like"(%a) <{value = #complex.number<:f64 1.5, -2.0> : complex<f64>}> : (tensor<2xcomplex<f64>>) -> tensor<2xcomplex<f64>>
    return %r : tensor<2xcomplex<f64>>
  })");
  ASSERT_TRUE(like.ok()) << like.status().to_string();
  EXPECT_EQ(like->as_double(1), 1.5);
  EXPECT_EQ(like->imaginary(1), -2);
  // StableHLO allows complex operands of remainder, but does not define the result: the program is imported, but cannot
  // be evaluated.
  const auto remainder = result_of(R"(func.func @main() -> tensor<complex<f32>> {
    %a = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
    %r = stablehlo.remainder %a, %a : tensor<complex<f32>>
    return %r : tensor<complex<f32>>
  })");
  EXPECT_EQ(remainder.status().code(), Code::Unimplemented) << remainder.status().to_string();
}

TEST(Verdicts, ResourcesMayStandAnywhereBetweenOps) {
  const std::string block = R"({-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F00000040"
    }
  }
#-}
)";
  const std::string used = R"(func.func private @f() -> tensor<2xf32> {
  %s = "stablehlo.custom_call"() <{call_target_name = "a {-# string"}> : () -> tensor<f32>
  // and {-# a comment
  %0 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
)";
  const std::string main = R"(func.func @main() -> tensor<2xf32> {
  %0 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
)";
  for (const std::string& text :
       {block + used + main, used + block + main, used + main + block,
        used + main + block + "#loc = loc(\"a\")\n// the end\n", "module {\n" + used + main + "}\n" + block}) {
    const auto got = result_of(text);
    ASSERT_TRUE(got.ok()) << got.status().to_string() << "\n" << text;
    EXPECT_EQ(got->as_double(0), 1);
    EXPECT_EQ(got->as_double(1), 2);
  }
  std::string second = block, uses_second = main;
  second.replace(second.find("blob"), 4, "blub");
  uses_second.replace(uses_second.find("blob"), 4, "blub");
  EXPECT_EQ(complaint(block + used + second + uses_second), "");
  EXPECT_NE(complaint("module {\n" + block + main + "}\n").find("test:2:1: error: expected an op"), std::string::npos);
  EXPECT_NE(complaint(block.substr(0, block.size() - 4) + main).find("expected the end of the resources"),
            std::string::npos);
}

// An error of the verifier names the line of the op.
TEST(Verdicts, ComplaintsOfTheVerifierHaveLines) {
  EXPECT_NE(complaint("func.func @main(%x: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {\n"
                      "  %a = stablehlo.negate %x : tensor<8xcomplex<f32>>\n"
                      "  %r = stablehlo.fft %a, type = FFT, length = [7] : (tensor<8xcomplex<f32>>) -> "
                      "tensor<8xcomplex<f32>>\n"
                      "  return %r : tensor<8xcomplex<f32>>\n}")
                .find(":3: error: fft: fft C4"),
            std::string::npos);
  // The same holds for an op in a region.
  EXPECT_NE(
      complaint("func.func @main(%p: tensor<i1>, %x: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {\n"
                "  %r = \"stablehlo.if\"(%p) ({\n"
                "    %a = stablehlo.fft %x, type = FFT, length = [0] : (tensor<8xcomplex<f32>>) -> "
                "tensor<8xcomplex<f32>>\n"
                "    stablehlo.return %a : tensor<8xcomplex<f32>>\n  }, {\n"
                "    stablehlo.return %x : tensor<8xcomplex<f32>>\n  }) : (tensor<i1>) -> tensor<8xcomplex<f32>>\n"
                "  return %r : tensor<8xcomplex<f32>>\n}")
          .find(":3: error: fft: fft C4"),
      std::string::npos);
}

}  // namespace
}  // namespace collet::hlo
