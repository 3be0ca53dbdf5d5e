// SPDX-License-Identifier: Apache-2.0
// Tests quantized programs: what is stored, that the text is read again, accuracy on trained models, and errors.
#include "hlo/quantize/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/quantize/compare.h"
#include "hlo/quantize/prepare.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/stablehlo/write.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

const std::string kFolder = "hlo/quantize/testdata/";

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::unique_ptr<mlir::Program> program_of(const std::string& text) {
  auto program = mlir::read_text(text, "test");
  EXPECT_TRUE(program.ok()) << program.status().to_string() << text;
  return program.ok() ? std::move(*program) : nullptr;
}

std::unique_ptr<Module> import(const std::string& text) {
  const auto program = program_of(text);
  if (!program) return nullptr;
  auto module = import_program(*program);
  EXPECT_TRUE(module.ok()) << module.status().to_string() << text;
  if (!module.ok()) return nullptr;
  EXPECT_TRUE(verify_module(**module).ok()) << verify_module(**module).to_string() << text;
  return std::move(*module);
}

std::unique_ptr<Module> prepared(const std::string& text, const std::map<int64_t, Literal>& weights = {}) {
  auto module = import(text);
  if (!module) return nullptr;
  EXPECT_TRUE(bind_parameters(*module, weights).ok());
  const Status status = prepare_for_quantization(*module);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return module;
}

Expected<RunProgram> evaluate_module(const Module& module) {
  std::shared_ptr<Module> copy = module.clone();
  return RunProgram([copy](const Literals& inputs) -> Expected<Literals> {
    COLLET_ASSIGN(const Literal result, Evaluator(*copy).run(inputs));
    return flatten(result);
  });
}

Literals run(const std::string& text, const Literals& inputs) {
  const auto module = import(text);
  if (!module) return {};
  auto result = Evaluator(*module).run(inputs);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.ok() ? flatten(*result) : Literals();
}

Literal array(const std::vector<int64_t>& dims, const std::vector<double>& values) {
  Literal out = Literal::zeros(Shape::array(Type::F32, dims));
  for (int64_t i = 0; i < out.element_count(); ++i) out.set_double(i, values[static_cast<size_t>(i) % values.size()]);
  return out;
}

/// Numbers between -1 and 1.
Literal drawn(const std::vector<int64_t>& dims, int64_t seed = 1) {
  Literal out = Literal::zeros(Shape::array(Type::F32, dims));
  for (int64_t i = 0; i < out.element_count(); ++i)
    out.set_double(i, static_cast<double>((i * 7919 + seed * 104729) % 2001 - 1000) / 1000);
  return out;
}

struct Made {
  std::string text;
  QuantizeReport report;
  std::string error;
};

Made quantized(const Module& module, const std::vector<Literals>& batches, const QuantizeOptions& options = {}) {
  auto made = quantize(module, batches, options, evaluate_module);
  if (!made.ok()) return {{}, {}, made.status().message()};
  return {mlir::print_program(*made->program), made->report, ""};
}

QuantizeOptions with_scheme(const char* name) {
  QuantizeOptions out;
  out.scheme = find_scheme(name);
  return out;
}

int count(const Module& module, Op op, Type type) {
  const auto& order = module.entry_computation().order;
  return static_cast<int>(std::count_if(order.begin(), order.end(), [&](InstrId id) {
    return module[id].op == op && module[id].shape.is_array() && module[id].shape.type() == type;
  }));
}

/// Returns the names of the quantized patterns that the passes find, in order.
std::vector<std::string> patterns(const std::string& text) {
  const auto module = import(text);
  PassContext context;
  EXPECT_TRUE(prepare_patterns(*module, context).ok());
  std::vector<std::string> out;
  for (InstrId id : module->entry_computation().order)
    if ((*module)[id].op == Op::CALL && (*module)[id].as<CallAttrs>().is_composite)
      out.emplace_back((*module)[id].as<CallAttrs>().name);
  return out;
}

/// A trained model and the images that it reads.
struct Digits {
  std::vector<Literals> batches;
  std::vector<int> labels;

  Digits() {
    std::ifstream file(kFolder + "digits.txt");
    EXPECT_TRUE(file);
    Literal batch;
    int64_t row = 0;
    std::string label, pixels;
    while (file >> label >> pixels) {
      if (row == 0) batch = Literal::zeros(Shape::array(Type::F32, {50, 64}));
      labels.push_back(std::stoi(label));
      for (size_t i = 0; i < 64; ++i)
        batch.set_double(row * 64 + static_cast<int64_t>(i), std::stoi(pixels.substr(i, 1), nullptr, 16) / 15.0);
      if (++row < 50) continue;
      batches.push_back({batch});
      row = 0;
    }
    EXPECT_EQ(labels.size(), 200u);
  }
  /// Returns how many images a program reads rightly.
  int right(const std::string& text) const {
    int out = 0;
    for (size_t b = 0; b < batches.size(); ++b) {
      const Literals results = run(text, batches[b]);
      for (size_t i = 0; i < 50 && !results.empty(); ++i) {
        int64_t best = 0;
        for (int64_t k = 0; k < 10; ++k) {
          const auto at = static_cast<int64_t>(i) * 10;
          if (results[0].as_double(at + k) > results[0].as_double(at + best)) best = k;
        }
        out += best == labels[b * 50 + i] ? 1 : 0;
      }
    }
    return out;
  }
};

class TrainedModel : public testing::TestWithParam<const char*> {};

// Half of the images are data for the ranges. 1 % of 200 images are 2.
TEST_P(TrainedModel, IsAsAccurateInEightBits) {
  const Digits digits;
  const std::string text = contents(kFolder + GetParam() + ".mlir");
  const int wanted = digits.right(text);
  EXPECT_GE(wanted, 190);
  const auto module = prepared(text);
  const std::vector<Literals> data(digits.batches.begin(), digits.batches.begin() + 2);
  for (const CalibrationMethod method :
       {CalibrationMethod::MinMax, CalibrationMethod::Percentile, CalibrationMethod::Entropy, CalibrationMethod::Mse}) {
    for (const char* scheme : {"w8a8", "w8a8-symmetric"}) {
      QuantizeOptions options = with_scheme(scheme);
      options.method = method;
      options.layer_errors = false;
      const Made made = quantized(*module, data, options);
      ASSERT_EQ(made.error, "");
      EXPECT_GE(digits.right(made.text), wanted - 2) << scheme << " " << static_cast<int>(method);
    }
  }
}

// All products are groups of integers, and what stands between them is stored in 8 bits.
TEST_P(TrainedModel, StaysInIntegersBetweenItsEnds) {
  const Digits digits;
  const Made made = quantized(*prepared(contents(kFolder + GetParam() + ".mlir")), digits.batches);
  ASSERT_EQ(made.error, "");
  const bool cnn = std::string(GetParam()) == "cnn";
  std::vector<std::string> wanted = {"quantize", "integer_dot", "integer_dot"};
  if (cnn)
    wanted = {"quantize",    "integer_convolution", "integer_convolution", "integer_convolution",
              "integer_add", "integer_dot"};
  EXPECT_EQ(patterns(made.text), wanted) << made.text;
  const auto module = import(made.text);
  EXPECT_EQ(count(*module, Op::DOT, Type::F32) + count(*module, Op::CONVOLUTION, Type::F32), 0);
  EXPECT_EQ(count(*module, Op::REDUCE_WINDOW, Type::S8), cnn ? 2 : 0);
  EXPECT_EQ(count(*module, Op::REDUCE_WINDOW, Type::F32), 0);
  EXPECT_LE(made.report.float_ops.size(), 1u) << "a reshape of the input";
  ASSERT_TRUE(made.report.error);
  EXPECT_GT(made.report.error->decibels(), 35);
  for (const LayerReport& layer : made.report.layers) {
    ASSERT_TRUE(layer.error) << layer.name;
    EXPECT_GT(layer.error->decibels(), 35) << layer.name;
    EXPECT_EQ(layer.form, LayerForm::Integers) << layer.name;
  }
}

TEST(Quantize, WeightsOnly_AreDequantizedByTheDevice) {
  const Digits digits;
  const Made made = quantized(*prepared(contents(kFolder + "mlp.mlir")), digits.batches, with_scheme("w8"));
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(patterns(made.text).size() > 0 ? patterns(made.text)[0] : "", "dequantized_dot") << made.text;
  EXPECT_GE(digits.right(made.text), 195);
}

TEST_P(TrainedModel, IsReadAgainAsItWasWritten) {
  const Digits digits;
  const auto module = prepared(contents(kFolder + GetParam() + ".mlir"));
  for (const QuantizationScheme& scheme : quantization_schemes()) {
    const Made made = quantized(*module, digits.batches, with_scheme(std::string(scheme.name).c_str()));
    ASSERT_EQ(made.error, "");
    const auto read = program_of(made.text);
    ASSERT_TRUE(read);
    EXPECT_EQ(mlir::print_program(*read), made.text);
    const std::string wanted = print_module(*import(made.text));
    const auto version = mlir::parse_vhlo_version(kDefaultArtifactVersion);
    auto bytes = mlir::write_bytecode(*read, *version);
    ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
    auto again = mlir::read_bytecode(*bytes);
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    auto module_again = import_program(**again);
    ASSERT_TRUE(module_again.ok()) << module_again.status().to_string();
    EXPECT_EQ(print_module(**module_again), wanted);
  }
}

TEST_P(TrainedModel, IsComparedLayerByLayer) {
  const Digits digits;
  const std::string text = contents(kFolder + GetParam() + ".mlir");
  const Made made = quantized(*prepared(text), digits.batches);
  const auto program = program_of(made.text);
  const auto compared = compare_layers(*program, *import(text), digits.batches[3], evaluate_module);
  ASSERT_TRUE(compared.ok()) << compared.status().to_string();
  EXPECT_FALSE(compared->by_order);
  EXPECT_EQ(compared->why_unpaired, "");
  EXPECT_EQ(compared->first_growth, std::nullopt);
  std::vector<std::string> names;
  for (const ComparedLayer& layer : compared->layers) {
    names.push_back(layer.name);
    EXPECT_GT(layer.error.decibels(), 30) << layer.name;
    EXPECT_GT(layer.error.cosine, 0.999) << layer.name;
  }
  for (const LayerReport& layer : made.report.layers)
    EXPECT_NE(std::find(names.begin(), names.end(), layer.name), names.end()) << layer.name;
  EXPECT_GT(compared->results.decibels(), 35);
}

INSTANTIATE_TEST_SUITE_P(Digits, TrainedModel, testing::Values("mlp", "cnn"),
                         [](const auto& one) { return std::string(one.param); });

// One layer, by hand. x is in [-1, 1.55]: scale 0.01, zero point -28. Columns of w have magnitudes 2.54 and 1.27: scales
// 0.02 and 0.01. b / (0.01 * scale) = {500, -3000}.
constexpr const char* kLayer = R"(
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = stablehlo.constant dense<[[2.54, -0.4], [-1.0, 1.27]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[0.1, -0.3]> : tensor<2xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
})";

TEST(Quantize, LayerByHand) {
  const Literal x = array({2, 2}, {-1, 1.55, 0, 0.5});
  const Made made = quantized(*prepared(kLayer), {{x}});
  ASSERT_EQ(made.error, "");
  EXPECT_NE(made.text.find("dense<[[127, -40], [-50, 127]]>"), std::string::npos) << made.text;
  EXPECT_NE(made.text.find("!quant.uniform<i8<-127:127>:f32:1, {"), std::string::npos) << made.text;
  EXPECT_NE(made.text.find("dense<[500, -3000]> : tensor<2xi32>"), std::string::npos) << made.text;
  ASSERT_EQ(made.report.layers.size(), 1u);
  const LayerReport& layer = made.report.layers[0];
  ASSERT_EQ(layer.inputs.size(), 1u);
  EXPECT_EQ(layer.inputs[0].low, -1);
  EXPECT_FLOAT_EQ(static_cast<float>(layer.inputs[0].high), 1.55F);
  EXPECT_EQ(layer.inputs[0].uniform.zero_point, -28);
  EXPECT_EQ(layer.weight_axis, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(layer.least_scale), 0.01F);
  EXPECT_FLOAT_EQ(static_cast<float>(layer.most_scale), 0.02F);
  EXPECT_FALSE(layer.output);
  // -1 * 2.54 + 1.55 * -1 + 0.1, and so on: all numbers are multiples of the scales.
  const Literals results = run(made.text, {x});
  ASSERT_EQ(results.size(), 1u);
  const double wanted[] = {-3.99, 2.0685, -0.4, 0.335};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(results[0].as_double(i), wanted[i], 1e-5);
}

TEST(Quantize, WeightsOnly_NeedsNoData) {
  const Made made = quantized(*prepared(kLayer), {}, with_scheme("w4"));
  ASSERT_EQ(made.error, "");
  EXPECT_NE(made.text.find("dense<[[7, -2], [-3, 7]]> : tensor<2x2xi4>"), std::string::npos) << made.text;
  EXPECT_FALSE(made.report.error);
  EXPECT_EQ(quantized(*prepared(kLayer), {}).error, "the scheme needs data for the ranges of activations");
}

std::string layer_of_six(const std::string& weights) {
  return "func.func @main(%x: tensor<2x6xf32>) -> tensor<2x2xf32> {\n  %w = stablehlo.constant dense<" + weights +
         "> : tensor<6x2xf32>\n  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x6xf32>, "
         "tensor<6x2xf32>) -> tensor<2x2xf32>\n  return %0 : tensor<2x2xf32>\n}";
}

// Each block of three weights is a multiple of its own scale, so that the result is exact.
TEST(Quantize, WeightsInBlocks_HaveAScaleForEachBlock) {
  const std::string text =
      layer_of_six("[[7.0, -1.0], [-3.0, 14.0], [1.0, 2.0], [3.5, 0.7], [0.5, -0.1], [-1.0, 0.2]]");
  QuantizeOptions options = with_scheme("w4");
  options.block = 3;
  const Literal x = drawn({2, 6});
  const Made made = quantized(*prepared(text), {{x}}, options);
  ASSERT_EQ(made.error, "");
  EXPECT_NE(made.text.find("{0:3, 1:1}, {{1.0"), std::string::npos) << made.text;
  EXPECT_EQ(made.report.layers[0].weight_block, 3);
  const Literals wanted = run(text, {x}), got = run(made.text, {x});
  for (int64_t i = 0; i < 4; ++i) {
    // 14 is 7 steps of 2, so that -1 is rounded to the even number of steps, 0.
    const double lost = i % 2 == 1 ? -x.as_double(i / 2 * 6) : 0;
    EXPECT_NEAR(got[0].as_double(i), wanted[0].as_double(i) - lost, 1e-5) << i;
  }
  // One scale for a column has fewer digits.
  const Made channels = quantized(*prepared(text), {{x}}, with_scheme("w4"));
  EXPECT_LT(made.report.error->relative, channels.report.error->relative);
}

TEST(Quantize, WeightsInBlocks_ThatDoNotDivideKeepTheirChannels) {
  const std::string text =
      layer_of_six("[[7.0, -1.0], [-3.0, 14.0], [1.0, 2.0], [3.5, 0.7], [0.5, -0.1], [-1.0, 0.2]]");
  for (const int64_t size : {4, 6, 8}) {
    QuantizeOptions options = with_scheme("w8");
    options.block = size;
    const Made made = quantized(*prepared(text), {}, options);
    ASSERT_EQ(made.error, "");
    EXPECT_EQ(made.report.layers[0].weight_block, 0);
    ASSERT_EQ(made.report.notes.size(), 1u);
    EXPECT_NE(made.report.notes[0].find("do not divide what is summed over"), std::string::npos);
  }
  QuantizeOptions integers;
  integers.block = 3;
  EXPECT_EQ(quantized(*prepared(text), {{drawn({2, 6})}}, integers).error,
            "products of integers have no weights in blocks");
}

// Devices get what is too large to be dequantized at compile time as a group.
TEST(Quantize, WeightsInBlocks_AreDequantizedByTheDevice) {
  const std::string text = R"(
func.func @main(%x: tensor<2x64xf32>, %w: tensor<64x40xf32>) -> tensor<2x40xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x64xf32>, tensor<64x40xf32>) -> tensor<2x40xf32>
  return %0 : tensor<2x40xf32>
})";
  QuantizeOptions options = with_scheme("w4");
  options.block = 16;
  const Made made = quantized(*prepared(text, {{1, drawn({64, 40})}}), {}, options);
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(patterns(made.text), std::vector<std::string>{"dequantized_dot"});
}

// The blocks of a convolution run along its input features.
TEST(Quantize, WeightsInBlocks_OfAConvolution) {
  const std::string text = R"(
func.func @main(%x: tensor<1x5x5x4xf32>, %w: tensor<3x3x4x2xf32>) -> tensor<1x3x3x2xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x3x3x2xf32>
  return %0 : tensor<1x3x3x2xf32>
})";
  QuantizeOptions options = with_scheme("w8");
  options.block = 2;
  const Literal x = drawn({1, 5, 5, 4});
  const Made made = quantized(*prepared(text, {{1, drawn({3, 3, 4, 2}, 3)}}), {{x}}, options);
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(made.report.layers[0].weight_block, 2);
  EXPECT_NE(made.text.find("0:3, 1:3, 2:2, 3:1"), std::string::npos) << made.text;
  EXPECT_GT(made.report.error->decibels(), 35);
}

TEST(Quantize, Parameters_BecomeConstantsAndKeepTheirNumbers) {
  const std::string text = R"(
func.func @main(%w: tensor<3x2xf32>, %x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
})";
  const Literal w = drawn({3, 2}), x = drawn({2, 3}, 5);
  QuantizeOptions options;
  options.parameters = {1};
  const Made made = quantized(*prepared(text, {{0, w}}), {{x}}, options);
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(made.report.layers[0].weight_bits, 8);
  const auto program = program_of(made.text);
  EXPECT_EQ(float_parameters(*program), std::vector<int64_t>{1});
  const auto compared = compare_layers(*program, *import(text), {w, x}, evaluate_module);
  ASSERT_TRUE(compared.ok()) << compared.status().to_string();
  ASSERT_EQ(compared->layers.size(), 1u);
  EXPECT_GT(compared->layers[0].error.decibels(), 35);
  // As a parameter the right operand is quantized in each run, and the report says so.
  const Made open = quantized(*prepared(text), {{w, x}});
  ASSERT_EQ(open.report.notes.size(), 1u);
  EXPECT_NE(open.report.notes[0].find("parameter 0"), std::string::npos) << open.report.notes[0];
}

// Products of two activations: the right one has no zero point, and neither has the left one where there is a batch.
TEST(Quantize, ProductOfActivations_IsSymmetric) {
  const std::string text = R"(
func.func @main(%x: tensor<2x3x4xf32>, %y: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] :
    (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
})";
  const Made made = quantized(*prepared(text), {{drawn({2, 3, 4}), drawn({2, 4, 5}, 3)}});
  ASSERT_EQ(made.error, "");
  ASSERT_EQ(made.report.layers[0].inputs.size(), 2u);
  for (const ValueReport& input : made.report.layers[0].inputs) EXPECT_EQ(input.uniform.zero_point, 0);
  EXPECT_EQ(count(*import(made.text), Op::DOT, Type::S32), 1);
  EXPECT_GT(made.report.error->decibels(), 35);
}

// Without a batch the left operand may have a zero point, but never the right one.
TEST(Quantize, RightOperand_HasNoZeroPoint) {
  const std::string text = R"(
func.func @main(%x: tensor<3x4xf32>, %y: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
})";
  const Made made = quantized(*prepared(text), {{array({3, 4}, {0, 1, 2, 3}), array({4, 5}, {0, 0.5, 1})}});
  ASSERT_EQ(made.error, "");
  ASSERT_EQ(made.report.layers[0].inputs.size(), 2u);
  EXPECT_EQ(made.report.layers[0].inputs[0].uniform.zero_point, -128);
  EXPECT_EQ(made.report.layers[0].inputs[1].uniform.zero_point, 0);
  EXPECT_EQ(count(*import(made.text), Op::DOT, Type::S32), 1);
}

TEST(Quantize, WeightsOnTheLeft_HaveOneScale) {
  const std::string text = R"(
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %w = stablehlo.constant dense<[[0.5, -1.27], [1.0, 0.25]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %0 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
})";
  const Made made = quantized(*prepared(text), {{array({2, 3}, {0, 1, 2, 0.5})}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(made.report.layers[0].weight_bits, 8);
  EXPECT_EQ(count(*import(made.text), Op::DOT, Type::S32), 1) << made.text;
  EXPECT_GT(made.report.error->decibels(), 35);
}

// One scale serves all channels, so that a bias such as a mask must not decide it.
TEST(Quantize, WeightsOnTheLeft_AreNotDecidedByALargeBias) {
  const std::string text = R"(
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %w = stablehlo.constant dense<[[0.5, -1.27], [1.0, 0.25]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[1.0, -1.0e9]> : tensor<2xf32>
  %0 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
})";
  const Literal x = array({2, 3}, {0, 1, 2, 0.5, 1, 1.5});
  const Made made = quantized(*prepared(text), {{x}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(count(*import(made.text), Op::DOT, Type::S32), 1) << made.text;
  EXPECT_EQ(made.report.notes.size(), 1u);
  const Literal got = run(made.text, {x})[0];
  EXPECT_NEAR(got.as_double(0), 1 - 1.27 * 0.5, 0.02);
  EXPECT_NEAR(got.as_double(3), -1e9, 100);
}

TEST(Quantize, BiasThatIsNotFinite_StaysFloat) {
  std::string text = kLayer;
  text.replace(text.find("[0.1, -0.3]"), 11, "[0.1, 0xFF800000]");
  const Literal x = array({2, 2}, {-1, 1.55, 0, 0.5});
  const Made made = quantized(*prepared(text), {{x}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(count(*import(made.text), Op::DOT, Type::S32), 1) << made.text;
  EXPECT_EQ(run(made.text, {x})[0].as_double(1), run(text, {x})[0].as_double(1));
}

TEST(Quantize, ProductOfTwoFloatTypes_StaysFloat) {
  const std::string text = R"(
func.func @main(%x: tensor<2x3xbf16>, %y: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = stablehlo.constant dense<[[1.0, -1.0], [-2.0, 0.5], [0.5, 1.0]]> : tensor<3x2xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xbf16>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
})";
  Literal narrow = Literal::zeros(Shape::array(Type::BF16, {2, 3}));
  const Made made = quantized(*prepared(text), {{narrow, array({2, 3}, {0, 1, 2, 3, 4, 5})}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(made.report.layers[0].why_float, "it is a product of bf16 and f32");
  EXPECT_EQ(made.report.layers[1].why_float, "");
}

TEST(Quantize, ValueOfAPad_IsInTheRange) {
  const std::string text = R"(
func.func @main(%x: tensor<2x2xf32>) -> tensor<3x2xf32> {
  %w = stablehlo.constant dense<[[1.0, -1.0], [-2.0, 0.5]]> : tensor<2x2xf32>
  %edge = stablehlo.constant dense<10.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.pad %0, %edge, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %2 = stablehlo.slice %1 [0:2, 0:2] : (tensor<3x2xf32>) -> tensor<2x2xf32>
  %3 = stablehlo.concatenate %2, %0, dim = 0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %4 = stablehlo.slice %3 [0:3, 0:2] : (tensor<4x2xf32>) -> tensor<3x2xf32>
  %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0] : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %5 : tensor<3x2xf32>
})";
  const Made made = quantized(*prepared(text), {{array({2, 2}, {1, 1, 0.5, 0.25})}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(made.report.layers[0].output->high, 10);
  EXPECT_GT(made.report.error->decibels(), 35);
}

TEST(Quantize, SumThatMayLeaveS32_StaysFloat) {
  const std::string text = R"(
func.func @main(%x: tensor<1x33156xf32>, %y: tensor<33156x1xf32>) -> tensor<1x1xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<1x33156xf32>, tensor<33156x1xf32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
})";
  EXPECT_EQ(quantized(*prepared(text), {{drawn({1, 33156}), drawn({33156, 1})}}).error,
            "nothing to quantize: no product can be quantized; dot: a sum of 33156 products may leave s32");
}

// Movement, pooling, clamps, concatenations and sums between two layers are computed on integers, with results that are
// those of the float program within the steps of 8 bits.
TEST(Quantize, OpsBetweenLayers_StayInIntegers) {
  const std::string text = R"(
func.func @main(%x: tensor<4x8xf32>) -> tensor<6x3xf32> {
  %w = stablehlo.constant dense<"0x)" +
                           [] {
                             std::string hex;
                             for (int i = 0; i < 64; ++i) {
                               const float value = static_cast<float>(i % 13 - 6) / 7;
                               uint32_t bits = 0;
                               std::memcpy(&bits, &value, 4);
                               char buffer[9];
                               for (int b = 0; b < 4; ++b, bits >>= 8) {
                                 std::snprintf(buffer, sizeof buffer, "%02X", bits & 0xFF);
                                 hex += buffer;
                               }
                             }
                             return hex;
                           }() +
                           R"("> : tensor<8x8xf32>
  %v = stablehlo.constant dense<[[0.5, -1.0, 0.25], [1.0, 0.3, -0.7], [0.2, 0.1, 0.9]]> : tensor<3x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %six = stablehlo.constant dense<6.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.clamp %zero, %0, %six : (tensor<f32>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.reverse %2, dims = [0] : tensor<8x4xf32>
  %4 = stablehlo.add %2, %3 : tensor<8x4xf32>
  %5 = "stablehlo.reduce_window"(%4, %least) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %6 = stablehlo.pad %5, %zero, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<6x4xf32>
  %7 = stablehlo.slice %6 [0:6, 0:2] : (tensor<6x4xf32>) -> tensor<6x2xf32>
  %8 = stablehlo.slice %6 [0:6, 3:4] : (tensor<6x4xf32>) -> tensor<6x1xf32>
  %9 = stablehlo.concatenate %7, %8, dim = 1 : (tensor<6x2xf32>, tensor<6x1xf32>) -> tensor<6x3xf32>
  %10 = stablehlo.dot_general %9, %v, contracting_dims = [1] x [0] : (tensor<6x3xf32>, tensor<3x3xf32>) -> tensor<6x3xf32>
  return %10 : tensor<6x3xf32>
})";
  const Literal x = drawn({4, 8});
  const Made made = quantized(*prepared(text), {{x}});
  ASSERT_EQ(made.error, "");
  EXPECT_TRUE(made.report.float_ops.empty()) << made.report.float_ops[0];
  const auto module = import(made.text);
  for (const Op op : {Op::CLAMP, Op::TRANSPOSE, Op::REVERSE, Op::REDUCE_WINDOW, Op::PAD, Op::SLICE, Op::CONCATENATE}) {
    EXPECT_GE(count(*module, op, Type::S8), 1) << op_info(op).text;
    EXPECT_EQ(op == Op::CLAMP ? 0 : count(*module, op, Type::F32), 0) << op_info(op).text;
  }
  EXPECT_GT(made.report.error->decibels(), 30);
}

// The range of a value that a relu reads is that of the relu's result, so that no step stands for what it drops.
TEST(Quantize, RangeBeforeARelu_IsThatBehindIt) {
  const std::string text = R"(
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = stablehlo.constant dense<[[10.0, 1.0], [-20.0, 0.5]]> : tensor<2x2xf32>
  %z = stablehlo.constant dense<0.0> : tensor<2x2xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.maximum %0, %z : tensor<2x2xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
})";
  const Made made = quantized(*prepared(text), {{array({2, 2}, {1, 1, 0.5, 0.25})}});
  ASSERT_EQ(made.error, "");
  ASSERT_TRUE(made.report.layers[0].output);
  EXPECT_EQ(made.report.layers[0].output->low, 0);
  EXPECT_EQ(made.report.layers[0].output->high, 1.5);
  EXPECT_EQ(made.report.layers[0].output->uniform.zero_point, -128);
}

// Integers stand for numbers of f32 also where the program has bf16 between its layers; conversions between floats vanish.
TEST(Quantize, LayersOfNarrowFloats_BecomeIntegers) {
  const std::string text = R"(
func.func @main(%x: tensor<4x3xf32>) -> tensor<4x2xbf16> {
  %w = stablehlo.constant dense<[[0.5, -1.0], [1.0, 0.25], [-0.75, 2.0]]> : tensor<3x2xbf16>
  %v = stablehlo.constant dense<[[1.0, -0.5], [0.25, 1.5]]> : tensor<2x2xbf16>
  %b = stablehlo.constant dense<[0.5, -0.25]> : tensor<2xbf16>
  %z = stablehlo.constant dense<0.0> : tensor<4x2xf32>
  %h = stablehlo.convert %x : (tensor<4x3xf32>) -> tensor<4x3xbf16>
  %0 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<4x3xbf16>, tensor<3x2xbf16>) -> tensor<4x2xbf16>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2xbf16>) -> tensor<4x2xbf16>
  %2 = stablehlo.add %0, %1 : tensor<4x2xbf16>
  %3 = stablehlo.convert %2 : (tensor<4x2xbf16>) -> tensor<4x2xf32>
  %4 = stablehlo.maximum %3, %z : tensor<4x2xf32>
  %5 = stablehlo.convert %4 : (tensor<4x2xf32>) -> tensor<4x2xbf16>
  %6 = stablehlo.dot_general %5, %v, contracting_dims = [1] x [0] : (tensor<4x2xbf16>, tensor<2x2xbf16>) -> tensor<4x2xbf16>
  return %6 : tensor<4x2xbf16>
})";
  const Literal x = drawn({4, 3});
  const Made made = quantized(*prepared(text), {{x}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(count(*import(made.text), Op::DOT, Type::S32), 2) << made.text;
  EXPECT_EQ(count(*import(made.text), Op::MAXIMUM, Type::S8), 1) << made.text;
  EXPECT_GT(made.report.error->decibels(), 30);
  const Made weights = quantized(*prepared(text), {{x}}, with_scheme("w8"));
  ASSERT_EQ(weights.error, "");
  EXPECT_GT(weights.report.error->decibels(), 30);
  const auto program = program_of(made.text);
  const auto compared = compare_layers(*program, *import(text), {x}, evaluate_module);
  ASSERT_TRUE(compared.ok()) << compared.status().to_string();
  EXPECT_EQ(compared->layers.size(), 2u);
}

// As jax.lax.scan writes layers of one form: each has its own weights, ranges and scales.
TEST(Quantize, LoopOverLayers_BecomesIntegers) {
  const std::string text = R"(
func.func @main(%x: tensor<4x3xf32>, %w: tensor<6x3x3xf32>) -> tensor<4x3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %layers = stablehlo.constant dense<6> : tensor<i32>
  %least = stablehlo.constant dense<0.0> : tensor<4x3xf32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<4x3xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %layers, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 3, 3] : (tensor<6x3x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x3xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x3x3xf32>) -> tensor<3x3xf32>
    %3 = stablehlo.dot_general %h, %2, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
    %4 = stablehlo.maximum %3, %least : tensor<4x3xf32>
    %5 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %5, %4 : tensor<i32>, tensor<4x3xf32>
  }
  return %0#1 : tensor<4x3xf32>
})";
  const Literal x = drawn({4, 3});
  const std::map<int64_t, Literal> weights = {{1, drawn({6, 3, 3})}};
  const Made made = quantized(*prepared(text, weights), {{x}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(count(*import(made.text), Op::DOT, Type::S32), 6) << made.text;
  EXPECT_EQ(made.report.layers.size(), 6u);
  EXPECT_GT(made.report.error->decibels(), 20);
}

// As torch writes a pooling with padding.
TEST(Quantize, PadWithInfinityBeforeAPooling_StaysInIntegers) {
  const std::string text = R"(
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = stablehlo.constant dense<[[1.0, -1.0], [-2.0, 0.5]]> : tensor<2x2xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.pad %0, %least, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %2 = "stablehlo.reduce_window"(%1, %least) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
  }) : (tensor<3x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %3 : tensor<2x2xf32>
})";
  const Made made = quantized(*prepared(text), {{array({2, 2}, {1, 1, 0.5, 0.25})}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(count(*import(made.text), Op::REDUCE_WINDOW, Type::S8), 1);
  EXPECT_GT(made.report.error->decibels(), 35);
}

// The other pooling needs the padded value as floats, which no stored integer gives.
TEST(Quantize, PadWithInfinityThatIsAlsoNeededAsFloats_StaysFloat) {
  const std::string text = R"(
func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<1x2xf32>) {
  %w = stablehlo.constant dense<[[1.0, -1.0], [-2.0, 0.5]]> : tensor<2x2xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.pad %0, %least, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %2 = "stablehlo.reduce_window"(%1, %least) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
  }) : (tensor<3x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %3 = "stablehlo.reduce_window"(%1, %least) <{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
  }) : (tensor<3x2xf32>, tensor<f32>) -> tensor<1x2xf32>
  %4 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = stablehlo.exponential %3 : tensor<1x2xf32>
  return %4, %5 : tensor<2x2xf32>, tensor<1x2xf32>
})";
  const Made made = quantized(*prepared(text), {{array({2, 2}, {1, 1, 0.5, 0.25})}});
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(count(*import(made.text), Op::REDUCE_WINDOW, Type::S8), 0);
  EXPECT_GT(made.report.error->decibels(), 35);
}

TEST(Quantize, WeightsWithoutElements_StayFloat) {
  const std::string text = R"(
func.func @main(%x: tensor<4x0xf32>) -> tensor<4x8xf32> {
  %w = stablehlo.constant dense<> : tensor<0x8xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x0xf32>, tensor<0x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
})";
  EXPECT_EQ(quantized(*prepared(text), {{drawn({4, 0})}}).error,
            "nothing to quantize: no product can be quantized; dot: a shape is dynamic, or has no elements");
}

// (x w) * s - m, then a quotient and a factor: one product of scaled weights and one sum, with the values that it had.
TEST(Quantize, FactorsOfChannels_BecomePartOfTheWeights) {
  const std::string text = R"(
func.func @main(%x: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %w = stablehlo.constant dense<[[1.0, -0.5], [0.25, 2.0], [-1.5, 0.75]]> : tensor<3x2xf32>
  %s = stablehlo.constant dense<[3.0, 0.5]> : tensor<2xf32>
  %m = stablehlo.constant dense<[0.25, -1.0]> : tensor<2xf32>
  %v = stablehlo.constant dense<[3.0, 15.0]> : tensor<2xf32>
  %e = stablehlo.constant dense<1.0> : tensor<2xf32>
  %ve = stablehlo.add %v, %e : tensor<2xf32>
  %d = stablehlo.sqrt %ve : tensor<2xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
  %db = stablehlo.broadcast_in_dim %d, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
  %1 = stablehlo.multiply %0, %sb : tensor<4x2xf32>
  %2 = stablehlo.subtract %1, %mb : tensor<4x2xf32>
  %3 = stablehlo.divide %2, %db : tensor<4x2xf32>
  %4 = stablehlo.multiply %3, %sb : tensor<4x2xf32>
  return %4 : tensor<4x2xf32>
})";
  const Literal x = drawn({4, 3});
  const auto module = prepared(text);
  EXPECT_EQ(count(*module, Op::MULTIPLY, Type::F32) + count(*module, Op::SUBTRACT, Type::F32) +
                count(*module, Op::DIVIDE, Type::F32),
            0);
  EXPECT_EQ(count(*module, Op::ADD, Type::F32), 1);
  const Literals wanted = run(text, {x});
  auto got = Evaluator(*module).run({x});
  ASSERT_TRUE(got.ok());
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(got->as_double(i), wanted[0].as_double(i), 1e-6);
  const Made made = quantized(*module, {{x}});
  EXPECT_EQ(patterns(made.text), (std::vector<std::string>{"quantize", "integer_dot"}));
}

// A channel whose weights are tiny has a scale that keeps its bias within s32.
TEST(Quantize, LargeBias_StaysInRange) {
  std::string text = kLayer;
  text.replace(text.find("[[2.54, -0.4], [-1.0, 1.27]]"), 28, "[[0.0, 1.0e-12], [-1.0, -1.0e-12]]");
  text.replace(text.find("[0.1, -0.3]"), 11, "[0.5, 8000.0]");
  const Literal x = array({2, 2}, {-1, 1.55, 0, 0.5});
  const Made made = quantized(*prepared(text), {{x}});
  ASSERT_EQ(made.error, "");
  EXPECT_NEAR(run(made.text, {x})[0].as_double(1), 8000, 1e-2);
}

TEST(Quantize, KeepsLayersFloat) {
  const Digits digits;
  const auto module = prepared(contents(kFolder + "cnn.mlir"));
  QuantizeOptions options;
  options.keep_float = {"convolution*"};
  Made made = quantized(*module, digits.batches, options);
  ASSERT_EQ(made.error, "");
  EXPECT_EQ(patterns(made.text), (std::vector<std::string>{"quantize", "integer_dot"}));
  EXPECT_EQ(made.report.layers[0].why_float, "kept float by 'convolution*'");
  options.keep_float = {"dense"};
  EXPECT_EQ(quantized(*module, digits.batches, options).error, "'dense' matches no product of the program");
  options.keep_float = {"*"};
  EXPECT_NE(quantized(*module, digits.batches, options).error.find("nothing to quantize"), std::string::npos);
}

TEST(Quantize, KeepsTheMostSensitiveLayersFloat) {
  const Digits digits;
  const auto module = prepared(contents(kFolder + "cnn.mlir"));
  const Made all = quantized(*module, digits.batches);
  ASSERT_EQ(all.error, "");
  size_t worst = 0;
  for (size_t i = 0; i < all.report.layers.size(); ++i)
    if (all.report.layers[i].error->relative > all.report.layers[worst].error->relative) worst = i;
  QuantizeOptions options;
  options.mixed = 1;
  const Made mixed = quantized(*module, digits.batches, options);
  ASSERT_EQ(mixed.error, "");
  for (size_t i = 0; i < all.report.layers.size(); ++i)
    EXPECT_EQ(mixed.report.layers[i].form == LayerForm::Float, i == worst) << all.report.layers[i].name;
  EXPECT_LT(mixed.report.error->relative, all.report.error->relative);
  options.mixed = all.report.layers.size();
  EXPECT_NE(quantized(*module, digits.batches, options).error.find("nothing to quantize"), std::string::npos);
  options.mixed.reset();
  options.max_error = all.report.error->relative * 0.9;
  const Made limited = quantized(*module, digits.batches, options);
  ASSERT_EQ(limited.error, "");
  EXPECT_LE(limited.report.error->relative, *options.max_error);
  options.max_error = all.report.error->relative * 1.1;
  EXPECT_EQ(quantized(*module, digits.batches, options).text, all.text);
  options.max_error = 1e-9;
  EXPECT_NE(quantized(*module, digits.batches, options).error.find("the error is above"), std::string::npos);
}

TEST(Quantize, SaysWhatCannotBeDone) {
  const auto error = [](const std::string& text, const Literals& batch) {
    return quantized(*prepared(text), {batch}).error;
  };
  EXPECT_EQ(error("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }", {drawn({2})}),
            "nothing to quantize: the program has no dot and no convolution");
  const std::string wide = R"(
func.func @main(%x: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return %0 : tensor<2x2xf64>
})";
  EXPECT_EQ(error(wide, {Literal::zeros(Shape::array(Type::F64, {2, 2}))}),
            "nothing to quantize: no product can be quantized; dot: it is a product of f64, not of f32, bf16 or f16");
  std::string weights = kLayer;
  weights.replace(weights.find("2.54"), 4, "0x7FC00000");
  EXPECT_EQ(error(weights, {drawn({2, 2})}), "weights of dot: element 0 is NaN or infinite");
  Literal x = drawn({2, 2});
  x.set_double(3, std::numeric_limits<double>::infinity());
  EXPECT_EQ(error(kLayer, {x}).substr(0, 9), "batch 0: ");
}

TEST(Compare, NamesTheFirstLayerWhoseErrorGrows) {
  const Digits digits;
  const std::string text = contents(kFolder + "mlp.mlir");
  Made made = quantized(*prepared(text), digits.batches);
  // Weights of the second layer that are all 1 are wrong.
  const size_t second = made.text.find("tensor<12x10xi8>"), begin = made.text.rfind("dense<", second);
  ASSERT_NE(second, std::string::npos) << made.text;
  made.text.replace(begin, made.text.find('>', begin) - begin, "dense<1");
  const auto program = program_of(made.text);
  const auto compared = compare_layers(*program, *import(text), digits.batches[0], evaluate_module);
  ASSERT_TRUE(compared.ok()) << compared.status().to_string();
  ASSERT_EQ(compared->layers.size(), 2u);
  EXPECT_EQ(compared->first_growth, 1u);
}

TEST(Compare, PairsProductsByTheirOrderWhereNoLayersAreNamed) {
  const std::string quantized_text = R"(
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = "stablehlo.constant"() <{value = dense<[[127, -40], [-50, 127]]> : tensor<2x2xi8>}> : () ->
    tensor<2x2x!quant.uniform<i8:f32:1, {0.02, 0.01}>>
  %q = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32, 0.01:-28>>
  %0 = stablehlo.dot_general %q, %w, contracting_dims = [1] x [0] : (tensor<2x2x!quant.uniform<i8:f32, 0.01:-28>>,
    tensor<2x2x!quant.uniform<i8:f32:1, {0.02, 0.01}>>) -> tensor<2x2x!quant.uniform<i32:f32:1, {0.0002, 0.0001}>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<2x2x!quant.uniform<i32:f32:1, {0.0002, 0.0001}>>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
})";
  const Literal x = array({2, 2}, {-1, 1.55, 0, 0.5});
  auto program = program_of(quantized_text);
  auto compared = compare_layers(*program, *import(kLayer), {x}, evaluate_module);
  ASSERT_TRUE(compared.ok()) << compared.status().to_string();
  EXPECT_TRUE(compared->by_order);
  ASSERT_EQ(compared->layers.size(), 1u);
  EXPECT_EQ(compared->layers[0].name, "dot");
  EXPECT_GT(compared->layers[0].error.decibels(), 80);
  EXPECT_LT(compared->results.decibels(), 40);  // the bias is missing
  program = program_of(quantized_text);
  const std::string two = contents(kFolder + "mlp.mlir");
  const auto unpaired =
      compare_layers(*program, *import(two), {Literal::zeros(Shape::array(Type::F32, {50, 64}))}, evaluate_module);
  EXPECT_FALSE(unpaired.ok());
}

TEST(Compare, SaysWhyLayersAreNotPaired) {
  const Made made = quantized(*prepared(kLayer), {{drawn({2, 2})}});
  const std::string other = R"(
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.tanh %x : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
})";
  auto program = program_of(made.text);
  const auto wrong = compare_layers(*program, *import(other), {drawn({2, 2})}, evaluate_module);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("it is not the program that was quantized"), std::string::npos)
      << wrong.status().message();
  const std::string unnamed = R"(
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %q = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32, 0.01:-28>>
  %0 = stablehlo.uniform_dequantize %q : (tensor<2x2x!quant.uniform<i8:f32, 0.01:-28>>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
})";
  program = program_of(unnamed);
  const auto unpaired = compare_layers(*program, *import(kLayer), {drawn({2, 2})}, evaluate_module);
  ASSERT_TRUE(unpaired.ok()) << unpaired.status().to_string();
  EXPECT_NE(unpaired->why_unpaired.find("has 0 products"), std::string::npos) << unpaired->why_unpaired;
  EXPECT_TRUE(unpaired->layers.empty());
}

TEST(Compare, RefusesResultsOfOtherSizes) {
  const Made made = quantized(*prepared(kLayer), {{drawn({2, 2})}});
  std::string other = R"(
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x3xf32> {
  %w = stablehlo.constant dense<1.0> : tensor<2x3xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
})";
  std::string unnamed = made.text;
  for (size_t at = 0; (at = unnamed.find("collet.layer", at)) != std::string::npos;)
    unnamed.replace(at, 12, "other.layer");
  auto program = program_of(unnamed);
  const auto compared = compare_layers(*program, *import(other), {drawn({2, 2})}, evaluate_module);
  ASSERT_FALSE(compared.ok());
  EXPECT_NE(compared.status().message().find("result 0"), std::string::npos) << compared.status().message();
}

TEST(ErrorSum, AddsUpErrors) {
  ErrorSum sum;
  sum.add(array({2}, {3, 4}), array({2}, {3, 4.5}));
  EXPECT_DOUBLE_EQ(sum.error().relative, 0.1);
  EXPECT_DOUBLE_EQ(sum.error().decibels(), 20);
  EXPECT_DOUBLE_EQ(sum.error().largest, 0.5);
  EXPECT_NEAR(sum.error().cosine, (9 + 18) / (5 * std::sqrt(9 + 20.25)), 1e-12);
  sum.add(array({1}, {std::nan("")}), array({1}, {std::nan("")}));
  EXPECT_EQ(sum.error().not_finite, 1u);
  EXPECT_DOUBLE_EQ(sum.error().relative, 0.1);
  sum.add(array({1}, {1}), array({1}, {std::nan("")}));
  EXPECT_TRUE(std::isinf(sum.error().relative));
  ErrorSum whole;
  Literal a = Literal::zeros(Shape::array(Type::S32, {4})), b = a;
  b.set_int(2, 7);
  whole.add(a, b);
  EXPECT_DOUBLE_EQ(whole.error().relative, 0.5);
  ErrorSum numbers;
  Literal x = Literal::zeros(Shape::array(Type::C64, {1})), y = x;
  x.set_double(0, 3, 4);
  y.set_double(0, 3, 4.5);
  numbers.add(x, y);
  EXPECT_DOUBLE_EQ(numbers.error().relative, 0.1);
  numbers.add(array({2}, {1, 2}), array({3}, {1, 2, 3}));
  EXPECT_TRUE(std::isinf(numbers.error().relative));
}

}  // namespace
}  // namespace collet::hlo
