// SPDX-License-Identifier: Apache-2.0
// Tests the import of quantized types: which ops keep their integers, and that results are those of the specification's
// formulas, computed here in double precision from the stored integers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/stablehlo/write.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::unique_ptr<Module> import_text(const std::string& text) {
  auto program = mlir::read_text(text, "test");
  EXPECT_TRUE(program.ok()) << program.status().to_string() << text;
  if (!program.ok()) return nullptr;
  auto module = import_program(**program);
  EXPECT_TRUE(module.ok()) << module.status().to_string() << text;
  if (!module.ok()) return nullptr;
  const Status sound = verify_module(**module);
  EXPECT_TRUE(sound.ok()) << sound.to_string() << text;
  return sound.ok() ? std::move(*module) : nullptr;
}

Literal filled(Type type, const std::vector<int64_t>& dims, const std::vector<int64_t>& numbers) {
  Literal out = Literal::zeros(Shape::array(type, dims));
  for (int64_t i = 0; i < out.shape().element_count(); ++i)
    out.set_int(i, numbers[static_cast<size_t>(i) % numbers.size()]);
  return out;
}

std::vector<int64_t> run(const Module& module, std::vector<Literal> arguments) {
  auto got = Evaluator(module).run(std::move(arguments));
  EXPECT_TRUE(got.ok()) << got.status().to_string();
  std::vector<int64_t> out;
  for (int64_t i = 0; got.ok() && i < got->shape().element_count(); ++i) out.push_back(got->as_int(i));
  return out;
}

/// Returns the number of the entry's instructions of this op, with a result of this type.
int count(const Module& module, Op op, Type type) {
  const auto& order = module.entry_computation().order;
  return static_cast<int>(std::count_if(order.begin(), order.end(), [&](InstrId id) {
    return module[id].op == op && module[id].shape.is_array() && module[id].shape.type() == type;
  }));
}

// The layer of a network: x w + b, requantized, and a relu. Scales are powers of two, so that each step is exact. For the
// first row of x, {-3, -2, 127}: x - zero = {0, 1, 130}; the products with w are {1175, 1306, 1423, -1552}; with b,
// {1275, 1106, 1723, -1152}; times {0.25, 0.125, 0.0625, 0.03125} / 4, plus 5, {84.6875, 39.5625, 31.921875, -4}; the
// relu's zero is 5. The second row, {-128, -4, -3}: {-125, -1, 0} gives {-130, 244, -368, -508}; {-30, 44, -68, -108};
// {3.125, 6.375, 3.9375, 4.15625}.
constexpr const char* kLayer = R"(
func.func @main(%x: tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<2x4x!quant.uniform<i8:f32, 4.0:5>> {
  %w = "stablehlo.constant"() <{value = dense<[[1,-2,3,4],[5,6,-7,8],[9,10,11,-12]]> : tensor<3x4xi8>}> : () ->
    tensor<3x4x!quant.uniform<i8:f32:1, {0.5:0,0.25:0,0.125:0,0.0625:0}>>
  %b = "stablehlo.constant"() <{value = dense<[100,-200,300,400]> : tensor<4xi32>}> : () ->
    tensor<4x!quant.uniform<i32:f32:0, {0.25:0,0.125:0,0.0625:0,0.03125:0}>>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>, tensor<3x4x!quant.uniform<i8:f32:1, {0.5:0,0.25:0,0.125:0,0.0625:0}>>)
    -> tensor<2x4x!quant.uniform<i32:f32:1, {0.25:0,0.125:0,0.0625:0,0.03125:0}>>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4x!quant.uniform<i32:f32:0, {0.25:0,0.125:0,0.0625:0,0.03125:0}>>)
    -> tensor<2x4x!quant.uniform<i32:f32:1, {0.25:0,0.125:0,0.0625:0,0.03125:0}>>
  %1 = stablehlo.add %0, %bb : tensor<2x4x!quant.uniform<i32:f32:1, {0.25:0,0.125:0,0.0625:0,0.03125:0}>>
  %2 = stablehlo.uniform_quantize %1 : (tensor<2x4x!quant.uniform<i32:f32:1, {0.25:0,0.125:0,0.0625:0,0.03125:0}>>)
    -> tensor<2x4x!quant.uniform<i8:f32, 4.0:5>>
  %z = "stablehlo.constant"() <{value = dense<5> : tensor<2x4xi8>}> : () -> tensor<2x4x!quant.uniform<i8:f32, 4.0:5>>
  %3 = stablehlo.maximum %2, %z : tensor<2x4x!quant.uniform<i8:f32, 4.0:5>>
  return %3 : tensor<2x4x!quant.uniform<i8:f32, 4.0:5>>
})";

TEST(Quantized, LayerIsComputedInIntegers) {
  const auto module = import_text(kLayer);
  ASSERT_TRUE(module);
  EXPECT_EQ(count(*module, Op::DOT, Type::S32), 1);
  EXPECT_EQ(count(*module, Op::DOT, Type::F32), 0);
  // Zero point and bias are one vector; only the requantization is in floats.
  EXPECT_EQ(count(*module, Op::ADD, Type::S32),
            3);  // of the vectors, and of the vector to the product, with and without b
  EXPECT_EQ(count(*module, Op::MULTIPLY, Type::F32), 1);
  EXPECT_EQ(count(*module, Op::MAXIMUM, Type::S8), 1);
  EXPECT_EQ(run(*module, {filled(Type::S8, {2, 3}, {-3, -2, 127, -128, -4, -3})}),
            (std::vector<int64_t>{85, 40, 32, 5, 5, 6, 5, 5}));
}

/// A product with drawn sizes and parameters.
struct Drawn {
  std::string text;
  std::vector<Literal> arguments;
  std::vector<double> exact;  ///< value / scale + zero point of each result, not rounded to an integer
  int64_t low = -128, high = 127;
  bool no_ties = false;  ///< `exact` has the roundings of the formulas
};

/// An integer type of stored values.
struct Storage {
  std::string name;
  Type type;
  int64_t low, high;
};
const Storage kStorages[] = {{"i8", Type::S8, -128, 127}, {"u8", Type::U8, 0, 255}, {"i4", Type::S4, -8, 7}};

/// Returns `x`, rounded to a type.
double rounded(Type type, double x) {
  Literal out = Literal::zeros(Shape::scalar(type));
  out.set_double(0, x);
  return out.as_double(0);
}

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  double scale(bool power) {
    // Scales are f32, as the specification has them.
    const auto any = static_cast<double>(std::uniform_real_distribution<float>(0.01F, 2)(random_));
    return power ? std::ldexp(1.0, static_cast<int>(between(-6, 2))) : any;
  }

  std::vector<int64_t> stored(int64_t count) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < count; ++i)
      out.push_back(between(0, 5) == 0 ? (between(0, 1) ? storage_.high : storage_.low)
                                       : between(storage_.low, storage_.high));
    return out;
  }

  int64_t zero() {
    const int64_t ends[] = {storage_.low, storage_.high, 0, between(storage_.low, storage_.high)};
    return ends[between(0, 3)];
  }

  /// x[m,k] w[k,n], or with a batch in front of both.
  Drawn dot() {
    const int64_t m = between(1, 4), k = between(1, 20), n = between(1, 4), batch = between(0, 3) == 0 ? 2 : 0;
    const bool per_axis = between(0, 1);
    start(per_axis ? n : 1);
    const std::string front = batch ? fmt::format("{}x", batch) : "";
    const std::string x = quantized(fmt::format("{}{}x{}", front, m, k), {x_scale_}, {x_zero_}, -1),
                      w = quantized(fmt::format("{}{}x{}", front, k, n), w_scales_, w_zeros_,
                                    per_axis ? (batch ? 2 : 1) : -1),
                      y = quantized(fmt::format("{}{}x{}", front, m, n), {y_scale_}, {y_zero_}, -1);
    Drawn out = program(x, w, y,
                        batch ? "stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
                              : "stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]");
    const int64_t batches = std::max<int64_t>(batch, 1);
    const auto xs = stored(batches * m * k), ws = stored(batches * k * n);
    const auto dims = [&](int64_t a, int64_t b) {
      return batch ? std::vector<int64_t>{batch, a, b} : std::vector<int64_t>{a, b};
    };
    out.arguments = {filled(storage_.type, dims(m, k), xs), filled(storage_.type, dims(k, n), ws)};
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum += less(xs, (b * m + i) * k + l) * weight(ws, (b * k + l) * n + j, per_axis ? j : 0);
          out.exact.push_back(real(sum, per_axis ? j : 0));
        }
    return out;
  }

  /// x[1,h,c] * w[size,c,n] in one dimension, with padding, stride, dilations and groups of features.
  Drawn convolution() {
    const int64_t groups = between(1, 2), h = between(1, 7), c = between(1, 3), n = groups * between(1, 3),
                  size = between(1, 3), stride = between(1, 2), low = between(0, 2), high = between(0, 2),
                  base = between(1, 2), window = between(1, 2);
    const int64_t padded = (h - 1) * base + 1 + low + high, extent = (size - 1) * window + 1;
    if (padded < extent) return convolution();
    const int64_t rows = (padded - extent) / stride + 1;
    const bool per_axis = between(0, 1);
    start(per_axis ? n : 1);
    const std::string x = quantized(fmt::format("1x{}x{}", h, groups * c), {x_scale_}, {x_zero_}, -1),
                      w = quantized(fmt::format("{}x{}x{}", size, c, n), w_scales_, w_zeros_, per_axis ? 2 : -1),
                      y = quantized(fmt::format("1x{}x{}", rows, n), {y_scale_}, {y_zero_}, -1);
    Drawn out = program(
        x, w, y,
        fmt::format("stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = "
                    "[{}], pad = [[{}, {}]], lhs_dilate = [{}], rhs_dilate = [{}]}} {{batch_group_count = 1 : i64, "
                    "feature_group_count = {} : i64}}",
                    stride, low, high, base, window, groups));
    const auto xs = stored(h * groups * c), ws = stored(size * c * n);
    out.arguments = {filled(storage_.type, {1, h, groups * c}, xs), filled(storage_.type, {size, c, n}, ws)};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t s = 0; s < size; ++s) {
          const int64_t place = i * stride + s * window - low;
          if (place < 0 || place % base != 0 || place / base >= h) continue;  // padding is the value 0
          for (int64_t f = 0; f < c; ++f)
            sum += less(xs, (place / base * groups + j / (n / groups)) * c + f) *
                   weight(ws, (s * c + f) * n + j, per_axis ? j : 0);
        }
        out.exact.push_back(real(sum, per_axis ? j : 0));
      }
    return out;
  }

 private:
  void start(int64_t channels) {
    storage_ = kStorages[between(0, 2)];
    power_ = between(0, 1);
    x_scale_ = scale(power_);
    y_scale_ = scale(power_) * (storage_.high > 100 ? 64 : 4);
    x_zero_ = zero();
    y_zero_ = zero();
    w_scales_.clear();
    w_zeros_.clear();
    const bool symmetric = between(0, 1), equal = between(0, 1);
    for (int64_t i = 0; i < channels; ++i) {
      w_scales_.push_back(scale(power_));
      w_zeros_.push_back(symmetric ? 0 : equal && i > 0 ? w_zeros_[0] : zero());
    }
    const Type types[] = {Type::F32, Type::F32, Type::BF16, Type::F16};
    expressed_ = types[between(0, 3)];
  }
  std::string quantized(const std::string& dims, const std::vector<double>& scales, const std::vector<int64_t>& zeros,
                        int axis) const {
    std::string list;
    for (size_t i = 0; i < scales.size(); ++i)
      list += fmt::format("{}{}:{}", list.empty() ? "" : ",", scales[i], zeros[i]);
    const std::string_view type = type_info(expressed_).text;
    return axis < 0 ? fmt::format("tensor<{}x!quant.uniform<{}:{}, {}>>", dims, storage_.name, type, list)
                    : fmt::format("tensor<{}x!quant.uniform<{}:{}:{}, {{{}}}>>", dims, storage_.name, type, axis, list);
  }
  Drawn program(const std::string& x, const std::string& w, const std::string& y, const std::string& op) const {
    Drawn out;
    out.text = fmt::format(
        "func.func @main(%x: {0}, %w: {1}) -> {2} {{\n  %0 = {3} : ({0}, {1}) -> {2}\n  return %0 : {2}\n}}", x, w, y,
        op);
    out.no_ties = power_ || expressed_ != Type::F32;
    out.low = storage_.low;
    out.high = storage_.high;
    return out;
  }
  double less(const std::vector<int64_t>& xs, int64_t i) const {
    return static_cast<double>(xs[static_cast<size_t>(i)] - x_zero_);
  }
  double weight(const std::vector<int64_t>& ws, int64_t i, int64_t channel) const {
    return static_cast<double>(ws[static_cast<size_t>(i)] - w_zeros_[static_cast<size_t>(channel)]);
  }
  double real(double sum, int64_t channel) const {
    const double w_scale = w_scales_[static_cast<size_t>(channel)];
    if (expressed_ == Type::F32) return sum * x_scale_ * w_scale / y_scale_ + static_cast<double>(y_zero_);
    // The exact sum is scaled, and rounded to the expressed type; each step behind that is one of this type.
    const auto step = [&](double x) { return rounded(expressed_, x); };
    const double factor = rounded(Type::F32, step(x_scale_) * step(w_scale));
    const double value = step(rounded(Type::F32, rounded(Type::F32, sum) * factor));
    return step(step(value / step(y_scale_)) + static_cast<double>(y_zero_));
  }

  std::mt19937 random_;
  Storage storage_;
  bool power_ = false;
  double x_scale_ = 1, y_scale_ = 1;
  int64_t x_zero_ = 0, y_zero_ = 0;
  std::vector<double> w_scales_;
  std::vector<int64_t> w_zeros_;
  Type expressed_ = Type::F32;
};

void check(const Drawn& one, Op op) {
  const auto module = import_text(one.text);
  ASSERT_TRUE(module);
  EXPECT_EQ(count(*module, op, Type::S32), 1) << one.text;
  const std::vector<int64_t> got = run(*module, one.arguments);
  ASSERT_EQ(got.size(), one.exact.size()) << one.text;
  for (size_t i = 0; i < got.size(); ++i) {
    const double clamped = std::clamp(one.exact[i], static_cast<double>(one.low), static_cast<double>(one.high));
    const auto expected = static_cast<int64_t>(std::nearbyint(clamped));
    // The formulas round to f32 on the way, so that a value next to a tie may fall on its other side.
    const bool near_tie = std::abs(std::abs(clamped - std::floor(clamped)) - 0.5) < 1e-4;
    if (near_tie && !one.no_ties)
      EXPECT_LE(std::abs(got[i] - expected), 1) << i << one.text;
    else
      EXPECT_EQ(got[i], expected) << i << " exactly " << one.exact[i] << one.text;
  }
}

TEST(Quantized, DrawnDotsAreWhatTheFormulasSay) {
  for (uint32_t seed = 0; seed < 300; ++seed) check(Draw(seed).dot(), Op::DOT);
}

TEST(Quantized, DrawnConvolutionsAreWhatTheFormulasSay) {
  for (uint32_t seed = 0; seed < 300; ++seed) check(Draw(seed).convolution(), Op::CONVOLUTION);
}

std::string product_text(int64_t k, const std::string& x, const std::string& w, const std::string& y) {
  return fmt::format(
      "func.func @main(%x: tensor<1x{0}x{1}>, %w: tensor<{0}x1x{2}>) -> tensor<1x1x{3}> {{\n"
      "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x{0}x{1}>, "
      "tensor<{0}x1x{2}>) -> tensor<1x1x{3}>\n  return %0 : tensor<1x1x{3}>\n}}",
      k, x, w, y);
}

TEST(Quantized, SumsThatMayLeaveS32AreInFloats) {
  const std::string q = "!quant.uniform<i8:f32, 0.5>", wide = "!quant.uniform<i32:f32, 0.25>";
  // 2^31 / 2^14 terms of -128 * -128 are one too many.
  for (const auto& [k, integers] : {std::pair<int64_t, bool>{131071, true}, {131072, false}}) {
    const auto module = import_text(product_text(k, q, q, wide));
    ASSERT_TRUE(module);
    EXPECT_EQ(count(*module, Op::DOT, Type::S32), integers ? 1 : 0) << k;
    EXPECT_EQ(count(*module, Op::DOT, Type::F32), integers ? 0 : 1) << k;
  }
  // A zero point at the end of the type makes the terms almost twice as large.
  const std::string shifted = "!quant.uniform<i8:f32, 0.5:127>";
  EXPECT_EQ(count(*import_text(product_text(65793, shifted, q, wide)), Op::DOT, Type::S32), 1);
  EXPECT_EQ(count(*import_text(product_text(65794, shifted, q, wide)), Op::DOT, Type::S32), 0);
  // A narrower range allows more terms.
  const std::string narrow = "!quant.uniform<i8<-127:127>:f32, 0.5>";
  EXPECT_EQ(count(*import_text(product_text(133144, narrow, narrow, wide)), Op::DOT, Type::S32), 1);
}

TEST(Quantized, OtherProductsAreInFloats) {
  const std::string q = "!quant.uniform<i8:f32, 0.5>", wide = "!quant.uniform<i32:f32, 0.25>";
  for (const auto& [x, w, y] : {std::tuple<std::string, std::string, std::string>{"!quant.uniform<i16:f32, 0.5>",
                                                                                  "!quant.uniform<i16:f32, 0.5>", wide},
                                {"f32", q, "f32"}}) {
    const auto module = import_text(product_text(4, x, w, y));
    ASSERT_TRUE(module);
    EXPECT_EQ(count(*module, Op::DOT, Type::S32), 0) << x << w << y;
  }
}

TEST(Quantized, PaddingThatTakesTooMuchMemoryStaysInTheWindow) {
  for (const auto& [pad, integers] : {std::pair<int64_t, bool>{1000, true}, {int64_t{1} << 33, false}}) {
    const auto module = import_text(fmt::format(
        "func.func @main(%x: tensor<1x3x1x!quant.uniform<i8:f32, 0.5:3>>, %w: tensor<1x1x1x!quant.uniform<i8:f32, "
        "0.5>>) -> "
        "tensor<1x{1}x1x!quant.uniform<i8:f32, 0.5>> {{\n  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, "
        "f]x[0, "
        "i, o]->[b, 0, f], window = {{pad = [[{0}, 0]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : "
        "i64}} : "
        "(tensor<1x3x1x!quant.uniform<i8:f32, 0.5:3>>, tensor<1x1x1x!quant.uniform<i8:f32, 0.5>>) -> "
        "tensor<1x{1}x1x!quant.uniform<i8:f32, 0.5>>\n  return %0 : tensor<1x{1}x1x!quant.uniform<i8:f32, 0.5>>\n}}",
        pad, pad + 3));
    ASSERT_TRUE(module);
    EXPECT_EQ(count(*module, Op::PAD, Type::S8), integers ? 1 : 0);
    EXPECT_EQ(count(*module, Op::CONVOLUTION, Type::S32), integers ? 1 : 0);
  }
}

TEST(Quantized, HugeEqualWeightsAreNotWrittenOut) {
  // The sums of 2^34 equal weights, of 2^20 channels, are known without a look at each.
  const auto module = import_text(R"(
func.func @main(%x: tensor<1x16384x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<1x1048576x!quant.uniform<i8:f32, 0.5>> {
  %w = "stablehlo.constant"() <{value = dense<2> : tensor<16384x1048576xi8>}> : () -> tensor<16384x1048576x!quant.uniform<i8:f32, 0.5>>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x16384x!quant.uniform<i8:f32, 0.5:3>>,
    tensor<16384x1048576x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x1048576x!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<1x1048576x!quant.uniform<i8:f32, 0.5>>
})");
  ASSERT_TRUE(module);
  EXPECT_EQ(count(*module, Op::DOT, Type::S32), 1);
}

// A dense layer whose weights have zero points, for each channel, and accumulators. x - zero = {1, 2}; w - zero =
// {{1, 3}, {-2, 5}}; the sums are {-3, 13}.
TEST(Quantized, AccumulatorsOfWeightsWithZeroPoints) {
  for (const std::string type : {"f32", "bf16", "f16"}) {
    const std::string w = "!quant.uniform<i8:" + type + ":1, {0.5:3, 0.25:-4}>",
                      wide = "!quant.uniform<i32:" + type + ":1, {0.25, 0.125}>";
    const auto module = import_text(fmt::format(R"(
func.func @main(%x: tensor<1x2x!quant.uniform<i8:{0}, 0.5:7>>, %w: tensor<2x2x{1}>) -> tensor<1x2x{2}> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<1x2x!quant.uniform<i8:{0}, 0.5:7>>, tensor<2x2x{1}>) -> tensor<1x2x{2}>
  return %0 : tensor<1x2x{2}>
}})",
                                                type, w, wide));
    ASSERT_TRUE(module);
    EXPECT_EQ(count(*module, Op::DOT, Type::S32), 1);
    EXPECT_EQ(count(*module, Op::CONVERT, Type::F32), 0);  // the sum itself is the result
    EXPECT_EQ(run(*module, {filled(Type::S8, {1, 2}, {8, 9}), filled(Type::S8, {2, 2}, {4, -1, 1, 1})}),
              (std::vector<int64_t>{-3, 13}));
  }
}

TEST(Quantized, ZeroPointsBeyondS32AreInFloats) {
  // Also where no term is summed, so that no sum can leave s32.
  for (const int64_t k : {0, 4}) {
    const std::string q = "!quant.uniform<i8:f32, 0.5:4611686018427387904>";
    const auto module = import_text(product_text(k, q, q, "!quant.uniform<i32:f32, 0.25>"));
    ASSERT_TRUE(module);
    EXPECT_EQ(count(*module, Op::DOT, Type::S32), 0);
  }
}

TEST(Quantized, SumsBeyondTheRangeOfTheExpressedTypeAreScaledFirst) {
  // 300 terms of 127 * 127 are 4838700, beyond f16; times 2^-14 they are 295.33, which f16 has as 295.25; divided by 4,
  // 73.8125.
  const auto module = import_text(product_text(300, "!quant.uniform<i8:f16, 0.0078125>",
                                               "!quant.uniform<i8:f16, 0.0078125>", "!quant.uniform<i8:f16, 4.0>"));
  ASSERT_TRUE(module);
  EXPECT_EQ(run(*module, {filled(Type::S8, {1, 300}, {127}), filled(Type::S8, {300, 1}, {127})}),
            std::vector<int64_t>{74});
}

// Blocks of two rows and of all columns: the scales are 0.5 and 0.25, the zero points 1 and 0. w is {{0, 2}, {3, 5}, {8,
// -4}, {4, 12}} less zero points, scaled: {{-.5, .5}, {1, 2}, {2, -1}, {1, 3}}. x is {1, 2, 3, 4} * 0.5. The products
// are {5.75, 6.75}; divided by 0.25, {23, 27}; plus the zero point -2.
TEST(Quantized, BlocksOfWeights) {
  const std::string x = "tensor<1x4x!quant.uniform<i8:f32, 0.5>>", y = "tensor<1x2x!quant.uniform<i8:f32, 0.25:-2>>",
                    w = "tensor<4x2x!quant.uniform<i8:f32:{0:2}, {{0.5:1},{0.25}}>>";
  const std::string text = fmt::format(
      "func.func @main(%x: {0}, %w: {1}) -> {2} {{\n  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] "
      ": "
      "({0}, {1}) -> {2}\n  return %0 : {2}\n}}",
      x, w, y);
  const auto check = [](const std::string& of) {
    const auto module = import_text(of);
    ASSERT_TRUE(module);
    EXPECT_EQ(
        run(*module, {filled(Type::S8, {1, 4}, {1, 2, 3, 4}), filled(Type::S8, {4, 2}, {0, 2, 3, 5, 8, -4, 4, 12})}),
        (std::vector<int64_t>{21, 25}));
  };
  check(text);
  // What is printed has the same meaning.
  const auto program = mlir::read_text(text, "test");
  ASSERT_TRUE(program.ok());
  const std::string printed = mlir::print_program(**program);
  EXPECT_NE(printed.find("i8<-128:127>:f32:{0:2}, {{0.5:1}, {0.25}}>"), std::string::npos) << printed;
  check(printed);
  // Artifacts have no such type.
  const auto version = mlir::parse_vhlo_version(kDefaultArtifactVersion);
  const auto artifact = mlir::write_bytecode(**program, *version);
  ASSERT_FALSE(artifact.ok());
  EXPECT_NE(artifact.status().message().find("quantization in blocks"), std::string::npos);
}

TEST(Quantized, BlocksAlongTwoDimensionsAndOfUsualTypes) {
  const auto dequantized = [](const std::string& quantization) {
    const auto module = import_text(fmt::format(
        "func.func @main(%x: tensor<2x4x{0}>) -> tensor<2x4xf32> {{\n  %0 = stablehlo.uniform_dequantize %x : "
        "(tensor<2x4x{0}>) -> tensor<2x4xf32>\n  return %0 : tensor<2x4xf32>\n}}",
        quantization));
    std::vector<double> out;
    if (!module) return out;
    const Literal got = *Evaluator(*module).run({filled(Type::S8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
    for (int64_t i = 0; i < 8; ++i) out.push_back(got.as_double(i));
    return out;
  };
  EXPECT_EQ(dequantized("!quant.uniform<i8:f32:{0:1, 1:2}, {{2.0:1, 3.0:2}, {4.0:3, 5.0:4}}>"),
            (std::vector<double>{0, 2, 3, 6, 8, 12, 15, 20}));
  EXPECT_EQ(dequantized("!quant.uniform<i8:f32:{1:1}, {{1.0, 2.0, 3.0, 4.0}}>"),
            dequantized("!quant.uniform<i8:f32:1, {1.0, 2.0, 3.0, 4.0}>"));
  EXPECT_EQ(dequantized("!quant.uniform<i8:f32:{0:2, 1:4}, {{0.5:3}}>"), dequantized("!quant.uniform<i8:f32, 0.5:3>"));
  EXPECT_EQ(dequantized("!quant.uniform<i8:f32:{}, {{0.5:3}}>"), dequantized("!quant.uniform<i8:f32, 0.5:3>"));
}

TEST(Quantized, BlocksThatDoNotFitAreErrors) {
  for (const auto& [quantization, message] :
       {std::pair<std::string, std::string>{"{0:2, 0:1}, {{1.0}, {2.0}}", "the blocks of a dimension are given twice"},
        {"{0:0}, {{1.0}, {2.0}}", "a block needs a dimension and a positive size"},
        {"{2:1}, {{1.0}, {2.0}}", "the scales have no dimension of a block"},
        {"{0:2}, {{1.0, 2.0}, {2.0, 3.0}}", "scales along a dimension without a block size"},
        {"{0:2, 1:2}, {{1.0, 2.0}, {2.0}}", "the lists of scales have different lengths"},
        {"{0:2}, {{1.0}, 2.0}", "the lists of scales have different depths"},
        {"{0:2}, {1.0, {2.0}}", "the lists of scales have different depths"},
        {"{0:3}, {{1.0}, {2.0}}", "does not fit it"},
        {"{0:4611686018427387904}, {{1.0}, {2.0}}", "does not fit it"},
        {"{0:2}, {1.0, 2.0}", "does not fit it"}}) {
    const std::string type = "tensor<4x2x!quant.uniform<i8:f32:" + quantization + ">>";
    const auto program = mlir::read_text(
        fmt::format("func.func @main(%x: {0}) -> tensor<4x2xf32> {{\n  %0 = stablehlo.uniform_dequantize %x : ({0}) -> "
                    "tensor<4x2xf32>\n  return %0 : tensor<4x2xf32>\n}}",
                    type),
        "test");
    std::string said;
    if (program.ok()) {
      const auto module = import_program(**program);
      ASSERT_FALSE(module.ok()) << quantization;
      said = module.status().message();
    } else {
      said = program.status().message();
    }
    EXPECT_NE(said.find(message), std::string::npos) << quantization << ": " << said;
  }
}

TEST(Quantized, ProductOfVectorsIsAnInteger) {
  const auto module = import_text(R"(
func.func @main(%x: tensor<3x!quant.uniform<i8:f32, 0.5>>, %w: tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<!quant.uniform<i32:f32, 0.25>> {
  %0 = stablehlo.dot %x, %w : (tensor<3x!quant.uniform<i8:f32, 0.5>>, tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<!quant.uniform<i32:f32, 0.25>>
  return %0 : tensor<!quant.uniform<i32:f32, 0.25>>
})");
  ASSERT_TRUE(module);
  EXPECT_EQ(count(*module, Op::DOT, Type::S32), 1);
  EXPECT_EQ(run(*module, {filled(Type::S8, {3}, {1, 2, 3}), filled(Type::S8, {3}, {-128, 127, 4})}),
            std::vector<int64_t>{138});
}

TEST(Quantized, AccumulatorsOfAnotherScaleAreRequantized) {
  // 3 * 5 products of scale 1/4 are 7.5 units of 1/2, which is a tie; then 8.5, whose even neighbour is 8, too.
  const auto module = import_text(
      product_text(1, "!quant.uniform<i8:f32, 0.5>", "!quant.uniform<i8:f32, 0.5>", "!quant.uniform<i32:f32, 0.5>"));
  ASSERT_TRUE(module);
  EXPECT_EQ(run(*module, {filled(Type::S8, {1, 1}, {3}), filled(Type::S8, {1, 1}, {5})}), std::vector<int64_t>{8});
  EXPECT_EQ(run(*module, {filled(Type::S8, {1, 1}, {1}), filled(Type::S8, {1, 1}, {17})}), std::vector<int64_t>{8});
}

TEST(Quantized, LargeAccumulatorsKeepEveryDigit) {
  // 2000 terms of -128 * -128 are 32768000, and one product of 1 more is beyond the digits of f32.
  const auto module = import_text(product_text(2001, "!quant.uniform<i8:f32, 0.3>", "!quant.uniform<i8:f32, 0.7>",
                                               "!quant.uniform<i32:f32, 0.21>"));
  ASSERT_TRUE(module);
  std::vector<int64_t> x(2001, -128);
  x.back() = 1;
  EXPECT_EQ(run(*module, {filled(Type::S8, {1, 2001}, x), filled(Type::S8, {2001, 1}, x)}),
            std::vector<int64_t>{2000 * 16384 + 1});
}

std::string binary_text(const std::string& op, const std::string& type) {
  return fmt::format(
      "func.func @main(%x: tensor<2x{0}>, %y: tensor<2x{0}>) -> tensor<2x{0}> {{\n  %0 = stablehlo.{1} %x, %y "
      ": tensor<2x{0}>\n  return %0 : tensor<2x{0}>\n}}",
      type, op);
}

TEST(Quantized, SumsOfUnknownAccumulatorsSaturate) {
  const auto module = import_text(binary_text("add", "!quant.uniform<i16:f32, 0.5>"));
  ASSERT_TRUE(module);
  EXPECT_EQ(run(*module, {filled(Type::S16, {2}, {32767, -32768}), filled(Type::S16, {2}, {1, -1})}),
            (std::vector<int64_t>{32767, -32768}));
}

TEST(Quantized, UnsignedStorageIsReadInEachForm) {
  const std::string text = R"(
func.func @main(%x: tensor<2x!quant.uniform<u8:f32, 0.5:100>>) -> tensor<2xf32> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<2x!quant.uniform<ui8<0:255>:f32, 0.5:100>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})";
  const auto check = [](const Module& module) {
    const Literal result = *Evaluator(module).run({filled(Type::U8, {2}, {0, 255})});
    EXPECT_EQ(result.as_double(0), -50);
    EXPECT_EQ(result.as_double(1), 77.5);
  };
  const auto module = import_text(text);
  ASSERT_TRUE(module);
  check(*module);
  const auto program = mlir::read_text(text, "test");
  ASSERT_TRUE(program.ok());
  const std::string printed = mlir::print_program(**program);
  EXPECT_NE(printed.find("!quant.uniform<u8<0:255>:f32, 0.5:100>"), std::string::npos) << printed;
  check(*import_text(printed));
  // In an artifact the storage type may be i8, with a flag that says that its values have no sign.
  std::string signed_text = text;
  for (size_t at; (at = signed_text.find("ui8<0:255>")) != std::string::npos;) signed_text.replace(at, 10, "i8<0:127>");
  for (size_t at; (at = signed_text.find("u8:")) != std::string::npos;) signed_text.replace(at, 3, "i8<0:127>:");
  const auto with_sign = mlir::read_text(signed_text, "test");
  ASSERT_TRUE(with_sign.ok()) << with_sign.status().to_string();
  const auto version = mlir::parse_vhlo_version(kDefaultArtifactVersion);
  ASSERT_TRUE(version.ok());
  auto artifact = mlir::write_bytecode(**with_sign, *version);
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  const std::string head = {0x31, 0x03};  // a quantized type (24), flags 1: two variable-length numbers
  const size_t place = artifact->find(head);
  ASSERT_NE(place, std::string::npos);
  ASSERT_EQ(artifact->find(head, place + 1), std::string::npos);
  (*artifact)[place + 1] = 0x01;
  const auto unsigned_program = mlir::read_bytecode(*artifact);
  ASSERT_TRUE(unsigned_program.ok()) << unsigned_program.status().to_string();
  const auto unsigned_module = import_program(**unsigned_program);
  ASSERT_TRUE(unsigned_module.ok()) << unsigned_module.status().to_string();
  check(**unsigned_module);
}

TEST(Quantized, MovementAndChoiceKeepStoredValues) {
  const std::string q = "!quant.uniform<i8:f32, 0.1:-7>";
  for (const std::string op : {"maximum", "minimum"}) {
    const auto module = import_text(binary_text(op, q));
    ASSERT_TRUE(module);
    EXPECT_EQ(count(*module, Op::MULTIPLY, Type::F32), 0);
    EXPECT_EQ(run(*module, {filled(Type::S8, {2}, {-128, 127}), filled(Type::S8, {2}, {-127, 126})}),
              op == "maximum" ? (std::vector<int64_t>{-127, 127}) : (std::vector<int64_t>{-128, 126}));
  }
  const std::string axis0 = "tensor<2x3x!quant.uniform<i8:f32:0, {0.5:1,0.25:2}>>",
                    axis1 = "tensor<3x2x!quant.uniform<i8:f32:1, {0.5:1,0.25:2}>>";
  const auto moved =
      import_text(fmt::format("func.func @main(%x: {0}) -> {1} {{\n  %0 = stablehlo.transpose %x, dims = [1, 0] : "
                              "({0}) -> {1}\n  return %0 : {1}\n}}",
                              axis0, axis1));
  ASSERT_TRUE(moved);
  EXPECT_EQ(count(*moved, Op::TRANSPOSE, Type::S8), 1);
  // A reshape that takes elements to other scales changes the integers.
  const std::string other = "tensor<3x2x!quant.uniform<i8:f32:1, {0.5:1,0.25:2}>>";
  const auto reshaped = import_text(fmt::format(
      "func.func @main(%x: {0}) -> {1} {{\n  %0 = stablehlo.reshape %x : ({0}) -> {1}\n  return %0 : {1}\n}}", axis0,
      other));
  ASSERT_TRUE(reshaped);
  EXPECT_EQ(count(*reshaped, Op::RESHAPE, Type::F32), 1);
}

}  // namespace
}  // namespace collet::hlo
