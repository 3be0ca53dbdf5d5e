// SPDX-License-Identifier: Apache-2.0
// Tests that the patterns of quantized models are found in programs as JAX, torch and quantized StableHLO have them, and
// that the groups compute what the programs do.
#include <collet/tables.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::unique_ptr<Module> import_text(const std::string& text) {
  auto program = mlir::read_text(text, "test");
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  if (!program.ok()) return nullptr;
  auto module = import_program(**program);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? std::move(*module) : nullptr;
}

/// Inputs that cover the range of each type.
std::vector<Literal> inputs_of(const Module& module) {
  std::vector<Literal> out;
  for (InstrId id : module.entry_computation().parameters) {
    const Shape& shape = module[id].shape;
    Literal one = Literal::zeros(shape);
    for (int64_t i = 0; i < shape.element_count(); ++i) {
      const int64_t number = (i * 37 + static_cast<int64_t>(out.size()) * 11) % 255 - 127;
      if (is_float(shape.type()))
        one.set_double(i, static_cast<double>(number) / 64 + 2);
      else if (shape.type() == Type::PRED)
        one.set_int(i, i % 3 != 0);
      else
        one.set_int(i, type_info(shape.type()).bits >= 8 ? number : number / 16);
    }
    out.push_back(std::move(one));
  }
  return out;
}

struct Found {
  std::vector<std::string> names;       ///< of the groups, in the order of the program
  std::vector<std::string> attributes;  ///< of each
  size_t others = 0;                    ///< ops beside groups and parameters
};

/// Groups the ops of a program for a device that wants `wanted`, all patterns if it is empty, and knows these features.
Found find(const std::string& text, const std::vector<std::string>& wanted = {}, uint32_t known = COLLET_FEATURE_ALL) {
  Found out;
  const auto plain = import_text(text), grouped = import_text(text);
  if (!plain || !grouped) return out;
  PassContext context;
  context.keep_composite = [](const Module&, InstrId) { return true; };
  context.wants_pattern = [&](std::string_view name, uint32_t features) {
    const bool named = wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    return named && (features & ~known) == 0;
  };
  EXPECT_TRUE(prepare_patterns(*grouped, context).ok());
  EXPECT_TRUE(run_passes(*grouped, context, std::array{std::string_view("eliminate_dead")}).ok());
  const Status sound = verify_module(*grouped);
  EXPECT_TRUE(sound.ok()) << sound.to_string();
  const Module& m = *grouped;
  for (InstrId id : m.entry_computation().order) {
    if (m[id].op == Op::CALL && m[id].as<CallAttrs>().is_composite) {
      out.names.emplace_back(std::string_view(m[id].as<CallAttrs>().name));
      out.attributes.emplace_back(std::string_view(m[id].as<CallAttrs>().attributes));
    } else if (m[id].op != Op::PARAMETER && m[id].op != Op::CONSTANT) {
      ++out.others;
    }
  }
  auto expected = Evaluator(*plain).run(inputs_of(*plain)), got = Evaluator(m).run(inputs_of(m));
  EXPECT_TRUE(expected.ok() && got.ok()) << expected.status().to_string() << got.status().to_string();
  if (!expected.ok() || !got.ok()) return out;
  EXPECT_EQ(expected->shape(), got->shape());
  for (int64_t i = 0; i < got->shape().element_count(); ++i)
    if (is_float(got->shape().type()))
      EXPECT_NEAR(expected->as_double(i), got->as_double(i), 1e-5 * std::abs(expected->as_double(i)) + 1e-5);
    else
      EXPECT_EQ(expected->as_int(i), got->as_int(i));
  return out;
}

void expect_one(const Found& found, const std::string& name, const std::vector<std::string>& attributes,
                size_t others = 0) {
  ASSERT_EQ(found.names, std::vector<std::string>{name});
  EXPECT_EQ(found.others, others);
  for (const std::string& one : attributes)
    EXPECT_NE(found.attributes[0].find(one), std::string::npos) << one << " is not in " << found.attributes[0];
}

// A zero point is added in s32 alone: conversions to other types saturate before it.
TEST(FindQuantized, ZeroPointInOtherIntegersIsNone) {
  for (const std::string type : {"i32", "ui32", "i16"}) {
    const auto tensor = [](const std::string& of) { return "tensor<4x3x" + of + ">"; };
    const std::string own = tensor(type);
    const Found found = find("func.func @main(%x: " + tensor("i32") + ") -> " + tensor("i8") + R"( {
  %f = stablehlo.convert %x : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %by = stablehlo.constant dense<0.0625> : tensor<4x3xf32>
  %p = stablehlo.multiply %f, %by : tensor<4x3xf32>
  %r = stablehlo.round_nearest_even %p : tensor<4x3xf32>
  %u = stablehlo.convert %r : (tensor<4x3xf32>) -> )" +
                             own + R"(
  %z = stablehlo.constant dense<10> : )" +
                             own + R"(
  %a = stablehlo.add %u, %z : )" +
                             own + R"(
  %low = stablehlo.constant dense<0> : )" +
                             own + R"(
  %high = stablehlo.constant dense<100> : )" +
                             own + R"(
  %c = stablehlo.clamp %low, %a, %high : )" +
                             own + R"(
  %q = stablehlo.convert %c : ()" +
                             own + R"() -> tensor<4x3xi8>
  return %q : tensor<4x3xi8>
})");
    EXPECT_EQ(found.names.size(), type == "i32" ? 1u : 0u) << type;
  }
}

// jax: clip(round(relu(dot(x, w).astype(f32) * scale + bias) / 0.1) + 3, -128, 127).astype(int8)
TEST(FindQuantized, DenseLayerOfJax) {
  expect_one(
      find(R"(
func.func @main(%x: tensor<4x6xi8>, %w: tensor<6x3xi8>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<4x3xi8> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xi8>, tensor<6x3xi8>) -> tensor<4x3xi32>
  %1 = stablehlo.convert %0 : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %2 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<4x3xf32>
  %4 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %5 = stablehlo.add %3, %4 : tensor<4x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<4x3xf32>
  %6 = stablehlo.maximum %5, %zero : tensor<4x3xf32>
  %by = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %7 = stablehlo.divide %6, %by : tensor<4x3xf32>
  %8 = stablehlo.round_nearest_even %7 : tensor<4x3xf32>
  %three = stablehlo.constant dense<3.0> : tensor<4x3xf32>
  %9 = stablehlo.add %8, %three : tensor<4x3xf32>
  %low = stablehlo.constant dense<-128.0> : tensor<4x3xf32>
  %high = stablehlo.constant dense<127.0> : tensor<4x3xf32>
  %10 = stablehlo.maximum %low, %9 : tensor<4x3xf32>
  %11 = stablehlo.minimum %high, %10 : tensor<4x3xf32>
  %12 = stablehlo.convert %11 : (tensor<4x3xf32>) -> tensor<4x3xi8>
  return %12 : tensor<4x3xi8>
})"),
      "integer_dot",
      {R"(operands = "lhs,rhs,scale,bias")", "scale_dims = array<i64: 1>", R"(bias_type = "float")",
       R"(activation = "relu")", "result_scale = 0.1 : f64", "zero_point = 3 : i64",
       R"(zero_point_added = "after_rounding")", "low = -128 : i64", "high = 127 : i64", R"(rounding = "even")"});
}

// jax: x is quantized for each row at run time; dot(q, w).astype(f32) * x_scale * w_scale.
TEST(FindQuantized, DynamicQuantizationOfJax) {
  const std::string text = R"(
func.func @main(%x: tensor<4x6xf32>, %w: tensor<6x3xi8>, %sx: tensor<4x1xf32>, %sw: tensor<3xf32>) -> tensor<4x3xf32> {
  %a = stablehlo.broadcast_in_dim %sx, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
  %0 = stablehlo.divide %x, %a : tensor<4x6xf32>
  %1 = stablehlo.round_nearest_even %0 : tensor<4x6xf32>
  %low = stablehlo.constant dense<-127.0> : tensor<f32>
  %high = stablehlo.constant dense<127.0> : tensor<f32>
  %2 = stablehlo.clamp %low, %1, %high : (tensor<f32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %q = stablehlo.convert %2 : (tensor<4x6xf32>) -> tensor<4x6xi8>
  %3 = stablehlo.dot_general %q, %w, contracting_dims = [1] x [0] : (tensor<4x6xi8>, tensor<6x3xi8>) -> tensor<4x3xi32>
  %4 = stablehlo.convert %3 : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %b = stablehlo.broadcast_in_dim %sx, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x3xf32>
  %5 = stablehlo.multiply %4, %b : tensor<4x3xf32>
  %c = stablehlo.broadcast_in_dim %sw, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %6 = stablehlo.multiply %5, %c : tensor<4x3xf32>
  return %6 : tensor<4x3xf32>
})";
  const Found found = find(text);
  ASSERT_EQ(found.names, (std::vector<std::string>{"quantize", "integer_dot"}));
  EXPECT_NE(found.attributes[0].find("result_scale_dims = array<i64: 0>"), std::string::npos) << found.attributes[0];
  EXPECT_NE(found.attributes[1].find(R"(operands = "lhs,rhs,scale,second_scale")"), std::string::npos);
  EXPECT_NE(found.attributes[1].find("second_scale_dims = array<i64: 1>"), std::string::npos);
  // A device gets what it asks for, and no other group.
  EXPECT_EQ(find(text, {"quantize"}).names, std::vector<std::string>{"quantize"});
}

// torch's reference form of a quantized linear layer (quantize_per_tensor, dequantize_per_tensor, per channel weights):
// the product is of dequantized values.
TEST(FindQuantized, LinearLayerOfTorch) {
  expect_one(find(R"(
func.func @main(%x: tensor<4x6xi8>, %w: tensor<3x6xi8>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<4x3xi8> {
  %xf = stablehlo.convert %x : (tensor<4x6xi8>) -> tensor<4x6xf32>
  %zp = stablehlo.constant dense<-5.0> : tensor<4x6xf32>
  %xz = stablehlo.subtract %xf, %zp : tensor<4x6xf32>
  %xs = stablehlo.constant dense<0.05> : tensor<4x6xf32>
  %xd = stablehlo.multiply %xz, %xs : tensor<4x6xf32>
  %wf = stablehlo.convert %w : (tensor<3x6xi8>) -> tensor<3x6xf32>
  %ws = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>) -> tensor<3x6xf32>
  %wd = stablehlo.multiply %wf, %ws : tensor<3x6xf32>
  %wt = stablehlo.transpose %wd, dims = [1, 0] : (tensor<3x6xf32>) -> tensor<6x3xf32>
  %0 = stablehlo.dot_general %xd, %wt, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x3xf32>) -> tensor<4x3xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %1 = stablehlo.add %0, %bb : tensor<4x3xf32>
  %inverse = stablehlo.constant dense<7.3> : tensor<4x3xf32>
  %2 = stablehlo.multiply %1, %inverse : tensor<4x3xf32>
  %3 = stablehlo.round_nearest_even %2 : tensor<4x3xf32>
  %yz = stablehlo.constant dense<9.0> : tensor<4x3xf32>
  %4 = stablehlo.add %3, %yz : tensor<4x3xf32>
  %low = stablehlo.constant dense<-128.0> : tensor<f32>
  %high = stablehlo.constant dense<127.0> : tensor<f32>
  %5 = stablehlo.clamp %low, %4, %high : (tensor<f32>, tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %6 = stablehlo.convert %5 : (tensor<4x3xf32>) -> tensor<4x3xi8>
  return %6 : tensor<4x3xi8>
})"),
             "scaled_dot",
             {R"(operands = "lhs,rhs,rhs_scale,bias")", "lhs_scale = 0.05 : f64", "lhs_zero_point = -5 : f64",
              "rhs_group = 6 : i64", "lhs_group = 24 : i64", "result_factor = 7.3 : f64", "zero_point = 9 : i64"});
}

// torch._int_mm and what follows it in weights-and-activations schemes, with a result in bf16.
TEST(FindQuantized, IntegerProductWithScalesOfRowsAndColumns) {
  expect_one(find(R"(
func.func @main(%x: tensor<4x6xi8>, %w: tensor<6x3xi8>, %sx: tensor<4x1xf32>, %sw: tensor<3xf32>) -> tensor<4x3xbf16> {
  %x32 = stablehlo.convert %x : (tensor<4x6xi8>) -> tensor<4x6xi32>
  %w32 = stablehlo.convert %w : (tensor<6x3xi8>) -> tensor<6x3xi32>
  %3 = stablehlo.dot_general %x32, %w32, contracting_dims = [1] x [0] : (tensor<4x6xi32>, tensor<6x3xi32>) -> tensor<4x3xi32>
  %4 = stablehlo.convert %3 : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %b = stablehlo.broadcast_in_dim %sx, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x3xf32>
  %c = stablehlo.broadcast_in_dim %sw, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %5 = stablehlo.multiply %b, %c : tensor<4x3xf32>
  %6 = stablehlo.multiply %4, %5 : tensor<4x3xf32>
  %7 = stablehlo.convert %6 : (tensor<4x3xf32>) -> tensor<4x3xbf16>
  return %7 : tensor<4x3xbf16>
})"),
             "integer_dot", {R"(operands = "lhs,rhs,scale,second_scale")"},
             1);  // the column of scales becomes a vector
}

// Quantized StableHLO, with an asymmetric input, per-axis weights, a bias, and a relu in the range of the result.
TEST(FindQuantized, QuantizedLayerOfStableHlo) {
  expect_one(find(R"(
func.func @main(%x: tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<2x2x!quant.uniform<i8:f32, 3.5:5>> {
  %w = "stablehlo.constant"() <{value = dense<[[1,-2],[5,6],[9,10]]> : tensor<3x2xi8>}> : () ->
    tensor<3x2x!quant.uniform<i8:f32:1, {0.5:0,0.25:0}>>
  %b = "stablehlo.constant"() <{value = dense<[100,-200]> : tensor<2xi32>}> : () -> tensor<2x!quant.uniform<i32:f32:0, {0.25:0,0.125:0}>>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>, tensor<3x2x!quant.uniform<i8:f32:1, {0.5:0,0.25:0}>>)
    -> tensor<2x2x!quant.uniform<i32:f32:1, {0.25:0,0.125:0}>>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2x!quant.uniform<i32:f32:0, {0.25:0,0.125:0}>>)
    -> tensor<2x2x!quant.uniform<i32:f32:1, {0.25:0,0.125:0}>>
  %1 = stablehlo.add %0, %bb : tensor<2x2x!quant.uniform<i32:f32:1, {0.25:0,0.125:0}>>
  %2 = stablehlo.uniform_quantize %1 : (tensor<2x2x!quant.uniform<i32:f32:1, {0.25:0,0.125:0}>>) -> tensor<2x2x!quant.uniform<i8:f32, 3.5:5>>
  %z = "stablehlo.constant"() <{value = dense<5> : tensor<2x2xi8>}> : () -> tensor<2x2x!quant.uniform<i8:f32, 3.5:5>>
  %3 = stablehlo.maximum %2, %z : tensor<2x2x!quant.uniform<i8:f32, 3.5:5>>
  return %3 : tensor<2x2x!quant.uniform<i8:f32, 3.5:5>>
})"),
             "integer_dot",
             {R"(operands = "lhs,rhs,scale,bias")", R"(bias_type = "integer")", "result_scale = 3.5 : f64",
              "zero_point = 5 : i64", R"(zero_point_added = "before_rounding")", "low = 5 : i64", "high = 127 : i64"});
}

TEST(FindQuantized, QuantizedConvolutionOfStableHlo) {
  // The broadcast that makes equal weights is an op of its own.
  expect_one(find(R"(
func.func @main(%x: tensor<1x5x5x2x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<1x5x5x3x!quant.uniform<i8:f32, 3.5:5>> {
  %w = "stablehlo.constant"() <{value = dense<-7> : tensor<3x3x2x3xi8>}> : () -> tensor<3x3x2x3x!quant.uniform<i8:f32, 0.25>>
  %2 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1,1],[1,1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x5x2x!quant.uniform<i8:f32, 0.5:-3>>,
    tensor<3x3x2x3x!quant.uniform<i8:f32, 0.25>>) -> tensor<1x5x5x3x!quant.uniform<i8:f32, 3.5:5>>
  return %2 : tensor<1x5x5x3x!quant.uniform<i8:f32, 3.5:5>>
})"),
             "integer_convolution",
             {R"(bias_type = "integer")", "factor = 0.125 : f64", "lhs_pad_value = -3 : i64",
              "lhs_pad_low = array<i64: 0, 1, 1, 0>", "result_scale = 3.5 : f64"},
             1);
}

// jax.lax.scaled_dot's own computation, where the composite is not wanted: blocks of 32 with scales in f8e8m0fnu.
TEST(FindQuantized, ProductOfBlocks) {
  expect_one(find(R"(
func.func @main(%x: tensor<4x64xf8E4M3FN>, %w: tensor<64x3xf8E4M3FN>, %sx: tensor<4x2xf8E8M0FNU>, %sw: tensor<2x3xf8E8M0FNU>) -> tensor<4x3xf32> {
  %1 = stablehlo.broadcast_in_dim %sx, dims = [0, 1] : (tensor<4x2xf8E8M0FNU>) -> tensor<4x2x32xf8E8M0FNU>
  %2 = stablehlo.reshape %1 : (tensor<4x2x32xf8E8M0FNU>) -> tensor<4x64xf8E8M0FNU>
  %3 = stablehlo.convert %x : (tensor<4x64xf8E4M3FN>) -> tensor<4x64xbf16>
  %4 = stablehlo.convert %2 : (tensor<4x64xf8E8M0FNU>) -> tensor<4x64xbf16>
  %5 = stablehlo.multiply %3, %4 : tensor<4x64xbf16>
  %7 = stablehlo.broadcast_in_dim %sw, dims = [0, 2] : (tensor<2x3xf8E8M0FNU>) -> tensor<2x32x3xf8E8M0FNU>
  %8 = stablehlo.reshape %7 : (tensor<2x32x3xf8E8M0FNU>) -> tensor<64x3xf8E8M0FNU>
  %9 = stablehlo.convert %w : (tensor<64x3xf8E4M3FN>) -> tensor<64x3xbf16>
  %10 = stablehlo.convert %8 : (tensor<64x3xf8E8M0FNU>) -> tensor<64x3xbf16>
  %11 = stablehlo.multiply %9, %10 : tensor<64x3xbf16>
  %12 = stablehlo.dot_general %5, %11, contracting_dims = [1] x [0] : (tensor<4x64xbf16>, tensor<64x3xbf16>) -> tensor<4x3xf32>
  return %12 : tensor<4x3xf32>
})"),
             "scaled_dot",
             {R"(operands = "lhs,rhs,lhs_scale,rhs_scale")", "lhs_group = 32 : i64", "rhs_group = 32 : i64"});
}

TEST(FindQuantized, WeightsOfFourBitsInGroups) {
  expect_one(find(R"(
func.func @main(%x: tensor<4x16xf32>, %w: tensor<2x8x3xi4>, %s: tensor<2x3xf32>, %z: tensor<2x3xf32>) -> tensor<4x3xf32> {
  %0 = stablehlo.convert %w : (tensor<2x8x3xi4>) -> tensor<2x8x3xf32>
  %1 = stablehlo.broadcast_in_dim %z, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x8x3xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<2x8x3xf32>
  %3 = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x8x3xf32>
  %4 = stablehlo.multiply %2, %3 : tensor<2x8x3xf32>
  %5 = stablehlo.reshape %4 : (tensor<2x8x3xf32>) -> tensor<16x3xf32>
  %6 = stablehlo.dot_general %x, %5, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x3xf32>) -> tensor<4x3xf32>
  return %6 : tensor<4x3xf32>
})"),
             "dequantized_dot",
             {R"(operands = "x,weights,weights_scale,weights_zero_point")", "weights_group = 8 : i64",
              R"(weights_side = "rhs")"});
}

TEST(FindQuantized, RequantizeAddsItsZeroPointWhereTheProgramDoes) {
  const auto text = [](const std::string& steps) {
    return R"(
func.func @main(%x: tensor<4x3xi32>) -> tensor<4x3xi8> {
  %0 = stablehlo.convert %x : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %f = stablehlo.constant dense<0.25> : tensor<4x3xf32>
  %z = stablehlo.constant dense<5.0> : tensor<4x3xf32>
  %low = stablehlo.constant dense<-100.0> : tensor<f32>
  %high = stablehlo.constant dense<90.0> : tensor<f32>
  %1 = stablehlo.multiply %0, %f : tensor<4x3xf32>
)" + steps +
           R"(  %5 = stablehlo.convert %4 : (tensor<4x3xf32>) -> tensor<4x3xi8>
  return %5 : tensor<4x3xi8>
})";
  };
  const std::string clamp = "stablehlo.clamp %low, ",
                    types = ", %high : (tensor<f32>, tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>\n";
  expect_one(find(text("%2 = stablehlo.add %1, %z : tensor<4x3xf32>\n%3 = " + clamp + "%2" + types +
                       "%4 = stablehlo.round_nearest_even %3 : tensor<4x3xf32>\n")),
             "requantize", {R"("before_rounding")", "zero_point = 5", "low = -100", "high = 90", "factor = 0.25"});
  expect_one(
      find(text(
          "%2 = stablehlo.round_nearest_even %1 : tensor<4x3xf32>\n%3 = stablehlo.add %2, %z : tensor<4x3xf32>\n%4 = " +
          clamp + "%3" + types)),
      "requantize", {R"("after_rounding")", "zero_point = 5", "low = -100", "high = 90"});
  expect_one(find(text("%2 = stablehlo.round_nearest_afz %1 : tensor<4x3xf32>\n%4 = " + clamp + "%2" + types)),
             "requantize", {R"(rounding = "away")", "zero_point = 0"});
  // Without rounding it is another function.
  EXPECT_TRUE(find(text("%2 = stablehlo.add %1, %z : tensor<4x3xf32>\n%4 = " + clamp + "%2" + types)).names.empty());
}

TEST(FindQuantized, ClampsThatFollowEachOtherAreOne) {
  // max(min(x, 90), 100) is 100 everywhere.
  expect_one(find(R"(
func.func @main(%x: tensor<4x3xi32>) -> tensor<4x3xi8> {
  %0 = stablehlo.convert %x : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %f = stablehlo.constant dense<0.25> : tensor<4x3xf32>
  %1 = stablehlo.multiply %0, %f : tensor<4x3xf32>
  %2 = stablehlo.round_nearest_even %1 : tensor<4x3xf32>
  %most = stablehlo.constant dense<90.0> : tensor<4x3xf32>
  %3 = stablehlo.minimum %2, %most : tensor<4x3xf32>
  %4 = stablehlo.convert %3 : (tensor<4x3xf32>) -> tensor<4x3xi8>
  %least = stablehlo.constant dense<100> : tensor<4x3xi8>
  %5 = stablehlo.maximum %4, %least : tensor<4x3xi8>
  return %5 : tensor<4x3xi8>
})"),
             "requantize", {"low = 100 : i64", "high = 100 : i64"});
}

TEST(FindQuantized, AttentionWithACacheOfIntegers) {
  const std::string text = R"(
func.func @main(%q: tensor<2x1x4xf32>, %k: tensor<2x5x4xi8>, %v: tensor<2x5x4xi8>, %sk: tensor<2x5xf32>, %sv: tensor<2x5xf32>) -> tensor<2x1x4xf32> {
  %k0 = stablehlo.convert %k : (tensor<2x5x4xi8>) -> tensor<2x5x4xf32>
  %k1 = stablehlo.broadcast_in_dim %sk, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x4xf32>
  %k2 = stablehlo.multiply %k0, %k1 : tensor<2x5x4xf32>
  %v0 = stablehlo.convert %v : (tensor<2x5x4xi8>) -> tensor<2x5x4xf32>
  %v1 = stablehlo.broadcast_in_dim %sv, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x4xf32>
  %v2 = stablehlo.multiply %v0, %v1 : tensor<2x5x4xf32>
  %0 = stablehlo.dot_general %q, %k2, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x1x4xf32>, tensor<2x5x4xf32>) -> tensor<2x1x5xf32>
  %half = stablehlo.constant dense<0.5> : tensor<2x1x5xf32>
  %1 = stablehlo.multiply %0, %half : tensor<2x1x5xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x1x5xf32>, tensor<f32>) -> tensor<2x1xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x1x5xf32>
  %4 = stablehlo.subtract %1, %3 : tensor<2x1x5xf32>
  %5 = stablehlo.exponential %4 : tensor<2x1x5xf32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %6 = stablehlo.reduce(%5 init: %none) applies stablehlo.add across dimensions = [2] : (tensor<2x1x5xf32>, tensor<f32>) -> tensor<2x1xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x1x5xf32>
  %8 = stablehlo.divide %5, %7 : tensor<2x1x5xf32>
  %9 = stablehlo.dot_general %8, %v2, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x1x5xf32>, tensor<2x5x4xf32>) -> tensor<2x1x4xf32>
  return %9 : tensor<2x1x4xf32>
})";
  expect_one(find(text), "quantized_attention",
             {R"(operands = "q,k,v,k_scale,v_scale")", "k_group = 4 : i64", R"(mask = "none")", "scale = 0.5 : f64"});
  // A device that knows attention of floats alone gets that.
  EXPECT_EQ(find(text, {"attention"}).names, std::vector<std::string>{"attention"});
}

TEST(FindQuantized, CompositesKeepTheirNamesAndAttributes) {
  const Found found = find(R"(
func.func @main(%x: tensor<4x3xi32>) -> tensor<4x3xi8> {
  %0 = stablehlo.composite "collet.requantize" %x {composite_attributes = {factor = 0.5 : f32}, decomposition = @body} : (tensor<4x3xi32>) -> tensor<4x3xi8>
  return %0 : tensor<4x3xi8>
}
func.func private @body(%x: tensor<4x3xi32>) -> tensor<4x3xi8> {
  %0 = stablehlo.convert %x : (tensor<4x3xi32>) -> tensor<4x3xi8>
  return %0 : tensor<4x3xi8>
})");
  expect_one(found, "collet.requantize", {"factor = "});
}

TEST(FindQuantized, IntegersThatWrapAreNoSaturation) {
  const auto text = [](const std::string& step) {
    return R"(
func.func @main(%x: tensor<4x3xi32>) -> tensor<4x3xi8> {
  %0 = stablehlo.convert %x : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %f = stablehlo.constant dense<2.5> : tensor<4x3xf32>
  %1 = stablehlo.multiply %0, %f : tensor<4x3xf32>
  %2 = stablehlo.round_nearest_even %1 : tensor<4x3xf32>
  %3 = stablehlo.convert %2 : (tensor<4x3xf32>) -> tensor<4x3xi32>
  %low = stablehlo.constant dense<-100> : tensor<i32>
  %high = stablehlo.constant dense<127> : tensor<i32>
  %above = stablehlo.constant dense<128> : tensor<i32>
)" + step + R"(  %5 = stablehlo.convert %4 : (tensor<4x3xi32>) -> tensor<4x3xi8>
  return %5 : tensor<4x3xi8>
})";
  };
  const std::string clamp = "%4 = stablehlo.clamp %low, %3, ",
                    types = " : (tensor<i32>, tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>\n";
  expect_one(find(text(clamp + "%high" + types)), "requantize", {"low = -100 : i64", "high = 127 : i64"});
  EXPECT_TRUE(find(text(clamp + "%above" + types)).names.empty());
  EXPECT_TRUE(find(text("%4 = stablehlo.abs %3 : tensor<4x3xi32>\n")).names.empty());
}

// An input with a zero point, as programs write it that have no quantized types: acc - zero * sums of w + bias.
TEST(FindQuantized, TermsOfZeroPointAndBias) {
  expect_one(find(R"(
func.func @main(%x: tensor<4x6xi8>, %w: tensor<6x3xi8>, %z: tensor<3xi32>, %b: tensor<3xi32>) -> tensor<4x3xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xi8>, tensor<6x3xi8>) -> tensor<4x3xi32>
  %1 = stablehlo.broadcast_in_dim %z, dims = [1] : (tensor<3xi32>) -> tensor<4x3xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<4x3xi32>
  %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xi32>) -> tensor<4x3xi32>
  %4 = stablehlo.add %2, %3 : tensor<4x3xi32>
  %5 = stablehlo.convert %4 : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %s = stablehlo.constant dense<0.3> : tensor<4x3xf32>
  %6 = stablehlo.multiply %5, %s : tensor<4x3xf32>
  return %6 : tensor<4x3xf32>
})"),
             "integer_dot",
             {R"(operands = "lhs,rhs,bias,second_bias")", R"(bias_sign = "minus")", "second_bias_dims = array<i64: 1>",
              "factor = 0.3 : f64"});
}

TEST(FindQuantized, SumsOfNarrowIntegersAreNoAccumulators) {
  const Found found = find(R"(
func.func @main(%x: tensor<4x6xi8>, %w: tensor<6x3xi8>) -> tensor<4x3xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xi8>, tensor<6x3xi8>) -> tensor<4x3xi8>
  %1 = stablehlo.convert %0 : (tensor<4x3xi8>) -> tensor<4x3xf32>
  %s = stablehlo.constant dense<0.3> : tensor<4x3xf32>
  %2 = stablehlo.multiply %1, %s : tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
})");
  EXPECT_TRUE(found.names.empty()) << found.names[0];
}

// jax: clip(round(maximum(dot(x, w), 0).astype(f32) * scale).astype(int32) + 3, -128, 127).astype(int8)
constexpr const char* kIntegerSteps = R"(
func.func @main(%x: tensor<4x64xi8>, %w: tensor<64x32xi8>) -> tensor<4x32xi8> {
  %a = stablehlo.convert %x : (tensor<4x64xi8>) -> tensor<4x64xi32>
  %b = stablehlo.convert %w : (tensor<64x32xi8>) -> tensor<64x32xi32>
  %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x64xi32>, tensor<64x32xi32>) -> tensor<4x32xi32>
  %0 = stablehlo.constant dense<0> : tensor<4x32xi32>
  %r = stablehlo.maximum %d, %0 : tensor<4x32xi32>
  %f = stablehlo.convert %r : (tensor<4x32xi32>) -> tensor<4x32xf32>
  %s = stablehlo.constant dense<SCALE> : tensor<4x32xf32>
  %y = stablehlo.multiply %f, %s : tensor<4x32xf32>
  %n = stablehlo.round_nearest_even %y : tensor<4x32xf32>
  %i = stablehlo.convert %n : (tensor<4x32xf32>) -> tensor<4x32xi32>
  %3 = stablehlo.constant dense<3> : tensor<4x32xi32>
  %z = stablehlo.add %i, %3 : tensor<4x32xi32>
  %low = stablehlo.constant dense<-128> : tensor<i32>
  %high = stablehlo.constant dense<127> : tensor<i32>
  %c = stablehlo.clamp %low, %z, %high : (tensor<i32>, tensor<4x32xi32>, tensor<i32>) -> tensor<4x32xi32>
  %q = stablehlo.convert %c : (tensor<4x32xi32>) -> tensor<4x32xi8>
  return %q : tensor<4x32xi8>
})";

TEST(FindQuantized, ReluAndZeroPointOfIntegers) {
  const auto of_scale = [](const std::string& scale) {
    std::string text = kIntegerSteps;
    return text.replace(text.find("SCALE"), 5, scale);
  };
  expect_one(find(of_scale("0.01")), "integer_dot",
             {R"(activation = "relu")", "factor = 0.0", "zero_point = 3 : i64",
              R"(zero_point_added = "after_rounding")", "low = -128 : i64", "high = 127 : i64"});
  // The zero point may wrap around: the group ends before it.
  const Found large = find(of_scale("2.0"), {"integer_dot"});
  ASSERT_EQ(large.names.size(), 1u);
  EXPECT_EQ(large.attributes[0].find("zero_point"), std::string::npos) << large.attributes[0];
  EXPECT_TRUE(find(of_scale("-0.01"), {"integer_dot"}).names.empty());
}

// Products of a value with itself have two ways to each operand, and so have clamps and conversions in a row many ops.
TEST(FindQuantized, LongChainsTakeNoTime) {
  std::string steps = "  %0 = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xf32>\n";
  int last = 0;
  for (int i = 0; i < 300; ++i, ++last)
    steps += ("  %" + std::to_string(last + 1) + " = stablehlo.multiply %" + std::to_string(last) + ", %" +
              std::to_string(last) + " : tensor<4xf32>\n");
  for (int i = 0; i < 3000; ++i, ++last)
    steps += ("  %" + std::to_string(last + 1) + " = stablehlo." + (i % 2 ? "maximum" : "minimum") + " %" +
              std::to_string(last) + ", %c : tensor<4xf32>\n");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(find("func.func @main(%x: tensor<4xi8>, %c: tensor<4xf32>) -> tensor<4xf32> {\n" + steps + "  return %" +
                   std::to_string(last) + " : tensor<4xf32>\n}")
                  .names.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(FindQuantized, StepsInBfloat16AreNamed) {
  expect_one(find(R"(
func.func @main(%x: tensor<4x3xi32>) -> tensor<4x3xi8> {
  %0 = stablehlo.convert %x : (tensor<4x3xi32>) -> tensor<4x3xbf16>
  %f = stablehlo.constant dense<0.3> : tensor<4x3xbf16>
  %1 = stablehlo.multiply %0, %f : tensor<4x3xbf16>
  %2 = stablehlo.round_nearest_even %1 : tensor<4x3xbf16>
  %3 = stablehlo.convert %2 : (tensor<4x3xbf16>) -> tensor<4x3xi8>
  return %3 : tensor<4x3xi8>
})"),
             "requantize", {R"(scale_type = "bf16")", R"(step_type = "bf16")"});
}

/// A layer of quantized StableHLO from the product to the stored integers, expressed in `type`, with `w` as the type of the
/// weights' elements.
std::string layer(const std::string& type, const std::string& w) {
  std::string text = R"(
func.func @main(%x: tensor<4x6x!quant.uniform<i8:T, 0.5:-3>>, %w: tensor<6x3xW>) -> tensor<4x3x!quant.uniform<i8:T, 3.0:5>> {
  %b = "stablehlo.constant"() <{value = dense<[100,-200,300]> : tensor<3xi32>}> : () -> tensor<3xB>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6x!quant.uniform<i8:T, 0.5:-3>>, tensor<6x3xW>) -> tensor<4x3xS>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xB>) -> tensor<4x3xS>
  %2 = stablehlo.add %0, %1 : tensor<4x3xS>
  %3 = stablehlo.uniform_quantize %2 : (tensor<4x3xS>) -> tensor<4x3x!quant.uniform<i8:T, 3.0:5>>
  return %3 : tensor<4x3x!quant.uniform<i8:T, 3.0:5>>
})";
  const std::pair<std::string, std::string> names[] = {{"xW>", "x" + w + ">"},
                                                       {"xS>", "x!quant.uniform<i32:T:1, {0.25,0.125,0.0625}>>"},
                                                       {"xB>", "x!quant.uniform<i32:T:0, {0.25,0.125,0.0625}>>"},
                                                       {":T", ":" + type}};
  for (const auto& [from, to] : names)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

TEST(FindQuantized, WeightsWithZeroPoints) {
  const std::vector<std::string> always = {"lhs_zero_point = -3 : f64", "scale_dims = array<i64: 1>",
                                           R"(bias_type = "integer")",  "result_scale = 3 : f64",
                                           "zero_point = 5 : i64",      R"(zero_point_added = "before_rounding")",
                                           "low = -128 : i64"};
  Found found = find(layer("f32", "!quant.uniform<i8:T:1, {0.5:7,0.25:7,0.125:7}>"));
  expect_one(found, "integer_dot", always);
  expect_one(found, "integer_dot", {R"(operands = "lhs,rhs,scale,bias")", "rhs_zero_point = 7 : f64"});
  found = find(layer("f32", "!quant.uniform<i8:T:1, {0.5:7,0.25:-2,0.125}>"));
  expect_one(found, "integer_dot", always);
  expect_one(found, "integer_dot",
             {R"(operands = "lhs,rhs,rhs_zero_point,scale,bias")", "rhs_zero_point_dims = array<i64: 1>"});
}

TEST(FindQuantized, LayersExpressedInShortFloats) {
  for (const std::string type : {"bf16", "f16"}) {
    const Found found = find(layer(type, "!quant.uniform<i8:T:1, {0.5:7,0.25:-2,0.125}>"));
    expect_one(found, "integer_dot",
               {"scale_type = \"" + type + "\"", "step_type = \"" + type + "\"", "result_scale = 3 : f64"});
  }
  // Without an accumulator of its own, the sum is scaled in f32.
  const Found found = find(R"(
func.func @main(%x: tensor<4x6x!quant.uniform<i8:bf16, 0.5>>, %w: tensor<6x3x!quant.uniform<i8:bf16, 0.25>>) -> tensor<4x3x!quant.uniform<i8:bf16, 4.0:5>> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6x!quant.uniform<i8:bf16, 0.5>>, tensor<6x3x!quant.uniform<i8:bf16, 0.25>>) -> tensor<4x3x!quant.uniform<i8:bf16, 4.0:5>>
  return %0 : tensor<4x3x!quant.uniform<i8:bf16, 4.0:5>>
})");
  expect_one(found, "integer_dot", {"factor = 0.125 : f64", R"(step_type = "bf16")"});
  EXPECT_EQ(found.attributes[0].find("scale_type"), std::string::npos);
}

TEST(FindQuantized, ConvolutionWithZeroPoints) {
  expect_one(find(R"(
func.func @main(%x: tensor<1x7x2x!quant.uniform<i8:f32, 0.5:3>>, %w: tensor<3x2x4x!quant.uniform<i8:f32:2, {0.5:1,0.25:2,1.0:3,2.0:4}>>) -> tensor<1x7x4x!quant.uniform<i8:f32, 8.0:-5>> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x7x2x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x2x4x!quant.uniform<i8:f32:2, {0.5:1,0.25:2,1.0:3,2.0:4}>>) -> tensor<1x7x4x!quant.uniform<i8:f32, 8.0:-5>>
  return %0 : tensor<1x7x4x!quant.uniform<i8:f32, 8.0:-5>>
})"),
             "integer_convolution",
             {R"(operands = "lhs,rhs,rhs_zero_point,scale")", "rhs_zero_point_dims = array<i64: 2>",
              "lhs_zero_point = 3 : f64", "zero_point = -5 : i64"});
}

// Integer code of JAX: dot(x.astype(int32) - zx, w.astype(int32) - zw[:, None].T), batched.
TEST(FindQuantized, ZeroPointsOfJax) {
  expect_one(find(R"(
func.func @main(%x: tensor<2x4x6xi8>, %w: tensor<2x6x3xi8>, %z: tensor<2x3xi32>) -> tensor<2x4x3xf32> {
  %0 = stablehlo.convert %x : (tensor<2x4x6xi8>) -> tensor<2x4x6xi32>
  %c = stablehlo.constant dense<9> : tensor<2x4x6xi32>
  %1 = stablehlo.subtract %0, %c : tensor<2x4x6xi32>
  %2 = stablehlo.convert %w : (tensor<2x6x3xi8>) -> tensor<2x6x3xi32>
  %3 = stablehlo.broadcast_in_dim %z, dims = [0, 2] : (tensor<2x3xi32>) -> tensor<2x6x3xi32>
  %4 = stablehlo.subtract %2, %3 : tensor<2x6x3xi32>
  %5 = stablehlo.dot_general %1, %4, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x6xi32>, tensor<2x6x3xi32>) -> tensor<2x4x3xi32>
  %6 = stablehlo.convert %5 : (tensor<2x4x3xi32>) -> tensor<2x4x3xf32>
  %s = stablehlo.constant dense<0.3> : tensor<2x4x3xf32>
  %7 = stablehlo.multiply %6, %s : tensor<2x4x3xf32>
  return %7 : tensor<2x4x3xf32>
})"),
             "integer_dot", {"lhs_zero_point = 9 : f64", "rhs_zero_point_dims = array<i64: 0, 2>"});
}

TEST(FindQuantized, ZeroPointsAlongTheSumAreNotOfTheGroup) {
  const Found found = find(R"(
func.func @main(%x: tensor<4x6xi8>, %w: tensor<6x3xi8>, %z: tensor<6xi32>) -> tensor<4x3xf32> {
  %0 = stablehlo.convert %w : (tensor<6x3xi8>) -> tensor<6x3xi32>
  %1 = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<6xi32>) -> tensor<6x3xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<6x3xi32>
  %3 = stablehlo.convert %x : (tensor<4x6xi8>) -> tensor<4x6xi32>
  %4 = stablehlo.dot_general %3, %2, contracting_dims = [1] x [0] : (tensor<4x6xi32>, tensor<6x3xi32>) -> tensor<4x3xi32>
  %5 = stablehlo.convert %4 : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %s = stablehlo.constant dense<0.3> : tensor<4x3xf32>
  %6 = stablehlo.multiply %5, %s : tensor<4x3xf32>
  return %6 : tensor<4x3xf32>
})");
  EXPECT_TRUE(found.names.empty()) << found.names[0];
}

// A residual sum of quantized StableHLO, and a relu of its stored integers.
TEST(FindQuantized, ResidualSums) {
  const auto text = [](const std::string& op, const std::string& type) {
    return "func.func @main(%x: tensor<4x3x!quant.uniform<i8:" + type +
           ", 0.3:-3>>, %y: tensor<4x3x!quant.uniform<i8:" + type + ", 0.7>>) -> tensor<4x3x!quant.uniform<i8:" + type +
           ", 0.9:5>> {\n  %0 = stablehlo." + op + " %x, %y : (tensor<4x3x!quant.uniform<i8:" + type +
           ", 0.3:-3>>, tensor<4x3x!quant.uniform<i8:" + type + ", 0.7>>) -> tensor<4x3x!quant.uniform<i8:" + type +
           ", 0.9:5>>\n  %z = \"stablehlo.constant\"() <{value = dense<5> : tensor<4x3xi8>}> : () -> "
           "tensor<4x3x!quant.uniform<i8:" +
           type + ", 0.9:5>>\n  %1 = stablehlo.maximum %0, %z : tensor<4x3x!quant.uniform<i8:" + type +
           ", 0.9:5>>\n  return %1 : tensor<4x3x!quant.uniform<i8:" + type + ", 0.9:5>>\n}";
  };
  const std::vector<std::string> always = {
      R"(operands = "lhs,rhs")", "lhs_scale = 0.3 : f64",    "lhs_zero_point = -3 : f64",
      "rhs_scale = 0.7 : f64",   "result_scale = 0.9 : f64", "zero_point = 5 : i64",
      "low = 5 : i64",           "high = 127 : i64"};
  Found found = find(text("add", "f32"));
  expect_one(found, "integer_add", always);
  EXPECT_EQ(found.attributes[0].find("rhs_sign"), std::string::npos);
  found = find(text("subtract", "f32"));
  expect_one(found, "integer_add", always);
  expect_one(found, "integer_add", {R"(rhs_sign = "minus")"});
  expect_one(find(text("add", "bf16")), "integer_add", {R"(step_type = "bf16")", "zero_point = 5 : i64"});
}

TEST(FindQuantized, BlocksOfWeights) {
  const std::string w = "!quant.uniform<i8:f32:{0:3,1:1}, {{0.5:1,0.25:2,1.0:3},{2.0:4,0.125:5,0.75:6}}>";
  const auto text = [&](const std::string& x, const std::string& y) {
    return "func.func @main(%x: tensor<4x6x" + x + ">, %w: tensor<6x3x" + w + ">) -> tensor<4x3x" + y +
           "> {\n  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6x" + x +
           ">, tensor<6x3x" + w + ">) -> tensor<4x3x" + y + ">\n  return %0 : tensor<4x3x" + y + ">\n}";
  };
  expect_one(find(text("!quant.uniform<i8:f32, 0.5:-3>", "!quant.uniform<i8:f32, 9.0:5>")), "scaled_dot",
             {R"(operands = "lhs,rhs,rhs_scale,rhs_zero_point")", "lhs_scale = 0.5 : f64", "lhs_zero_point = -3 : f64",
              "rhs_group = 3 : i64", "result_scale = 9 : f64", "zero_point = 5 : i64"});
  expect_one(find(text("f32", "f32")), "dequantized_dot",
             {R"(operands = "x,weights,weights_scale,weights_zero_point")", "weights_group = 3 : i64"});
}

// Returns the attribute `features` of the only group of a program; -1 if there is not one group of that name.
int64_t features_of(const std::string& text, const std::string& pattern, uint32_t known = COLLET_FEATURE_ALL) {
  const Found found = find(text, std::vector<std::string>{pattern}, known);
  if (found.names != std::vector<std::string>{pattern}) return -1;
  const size_t at = found.attributes[0].find("features = ");
  return at == std::string::npos ? 0 : std::stoll(found.attributes[0].substr(at + 11));
}

// A group says which features it needs, and is not offered to a device that lacks one of them.
void expect_features(const std::string& text, const std::string& pattern, uint32_t features) {
  EXPECT_EQ(features_of(text, pattern), features) << text;
  EXPECT_EQ(features_of(text, pattern, features), features) << text;
  for (uint32_t bit = 1; bit <= features; bit *= 2) {
    if ((features & bit) == 0) continue;
    // A smaller part of it may be.
    const int64_t without = features_of(text, pattern, COLLET_FEATURE_ALL & ~bit);
    EXPECT_TRUE(without == -1 || (without & bit) == 0) << bit << text;
  }
}

TEST(FindQuantized, GroupsThatNeedUnknownFeaturesAreNotOffered) {
  const auto layer = [](const std::string& x, const std::string& w, const std::string& y) {
    return "func.func @main(%x: tensor<4x6x" + x + ">, %w: tensor<6x3x" + w + ">) -> tensor<4x3x" + y +
           "> {\n  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6x" + x +
           ">, tensor<6x3x" + w + ">) -> tensor<4x3x" + y + ">\n  return %0 : tensor<4x3x" + y + ">\n}";
  };
  const std::string x = "!quant.uniform<i8:f32, 0.5>", y = "!quant.uniform<i8:f32, 9.0:5>";
  const std::string blocks = "!quant.uniform<i8:f32:{0:3}, {0.5,0.25}>";
  expect_features(layer(x, "!quant.uniform<i8:f32, 0.25>", y), "integer_dot", 0);
  expect_features(layer(x, "!quant.uniform<i8:f32, 0.25:7>", y), "integer_dot", COLLET_FEATURE_ZERO_POINTS);
  expect_features(layer(x, "!quant.uniform<i8:f32:1, {0.5,0.25,1.0}>", y), "integer_dot", COLLET_FEATURE_CHANNELS);
  expect_features(
      layer("!quant.uniform<i8:bf16, 0.5>", "!quant.uniform<i8:bf16, 0.25>", "!quant.uniform<i8:bf16, 9.0:5>"),
      "integer_dot", COLLET_FEATURE_SHORT_FLOATS);
  expect_features(layer("f32", "!quant.uniform<i8:f32:1, {0.5,0.25,1.0}>", "f32"), "dequantized_dot",
                  COLLET_FEATURE_CHANNELS);
  expect_features(layer("f32", "!quant.uniform<i8:f32:{0:3,1:1}, {{0.5,0.25,1.0},{2.0,0.125,0.75}}>", "f32"),
                  "dequantized_dot", COLLET_FEATURE_CHANNELS | COLLET_FEATURE_BLOCKS);
  // Scales along the sum alone: as many elements share one as there are in a column.
  expect_features(layer("f32", "!quant.uniform<i8:f32:0, {0.5,0.25,1.0,2.0,4.0,8.0}>", "f32"), "dequantized_dot",
                  COLLET_FEATURE_CHANNELS | COLLET_FEATURE_BLOCKS);
}

TEST(FindQuantized, SumsThatOthersReadStayOutside) {
  // The sum of products is a result, too, so that no group may hold it.
  const Found found = find(R"(
func.func @main(%x: tensor<4x6xi8>, %w: tensor<6x3xi8>) -> (tensor<4x3xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xi8>, tensor<6x3xi8>) -> tensor<4x3xi32>
  %1 = stablehlo.convert %0 : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %s = stablehlo.constant dense<0.3> : tensor<4x3xf32>
  %2 = stablehlo.multiply %1, %s : tensor<4x3xf32>
  %3 = stablehlo.abs %0 : tensor<4x3xi32>
  %4 = stablehlo.convert %3 : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %5 = stablehlo.add %2, %4 : tensor<4x3xf32>
  return %5 : tensor<4x3xf32>
})");
  EXPECT_TRUE(found.names.empty()) << found.names[0];
}

}  // namespace
}  // namespace collet::hlo
