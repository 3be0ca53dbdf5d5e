// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/cases/case.h"

/// \file
/// Adds programs in which the SDK finds the patterns of quantized models (docs/patterns.md). Scales are powers of two, or
/// divisors and factors with which no quotient falls next to a tie without being one: each step is exact, or far from
/// where its rounding would show, so that every device that computes the pattern has the same integers.

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

/// Returns the least and the largest number of an integer type.
std::pair<double, double> ends_of(Type type) {
  const bool negative = hlo::is_signed(type);
  const int bits = hlo::type_info(type).bits;
  return {negative ? -std::ldexp(1, bits - 1) : 0, std::ldexp(1, negative ? bits - 1 : bits) - 1};
}

/// Inputs of a type of at most 8 bits: the ends of its range, and numbers between.
std::vector<std::pair<std::string_view, InputSpec>> stored_values(Type type) {
  const auto [low, high] = ends_of(type);
  return {{"whole_range", {.low = low, .high = high}},
          {"ends", {.values = Values::Fixed, .fixed = {low, high, high, low, high, low, low, high, high, high, low}}},
          {"least", {.values = Values::Fixed, .fixed = {low}}},
          {"few", {.values = Values::Fixed, .fixed = {0, 1, 0, 2, 1, 0, high, 0, 3, 0, 1, low, 0}}}};
}

InputSpec fixed(std::vector<double> numbers) {
  return {.values = Values::Fixed, .fixed = std::move(numbers)};
}

/// What follows a product, in the order in which it does.
struct Tail {
  std::string_view form;
  enum Bias { None, Integer, Float } bias = None;
  bool channels = false;  ///< a scale for each channel; else one number
  bool rows = false;      ///< a further scale for each row
  bool relu = false;
  double scale = 0.03125;  ///< the one number
  double most = 0;         ///< of an activation that has an upper limit, such as relu6; 0: none
  Type out = Type::S8;     ///< of the result; a float: it is not quantized
  double divisor = 0;      ///< result scale; 0: none
  double zero = 0;
  bool zero_first = false;   ///< the zero point is added before rounding
  bool round_first = false;  ///< rounding comes before the clamp
  double low = -128, high = 127;
  bool second = false;  ///< another integer bias is subtracted
};

constexpr Tail kTails[] = {
    {.form = "float", .out = Type::F32},
    {.form = "channels", .bias = Tail::Float, .channels = true, .relu = true, .out = Type::F32},
    {.form = "rows", .channels = true, .rows = true, .out = Type::F32},
    {.form = "relu", .bias = Tail::Float, .channels = true, .relu = true, .divisor = 3, .zero = 3},
    // The limits become stored integers inside of the clamp, so that it does not hide one that is left out.
    {.form = "limited",
     .bias = Tail::Integer,
     .channels = true,
     .relu = true,
     .most = 6,
     .divisor = 0.0625,
     .zero = -120},
    {.form = "float_limited", .channels = true, .relu = true, .most = 6, .out = Type::F32},
    {.form = "bias", .bias = Tail::Integer, .channels = true, .divisor = 0.5, .zero = -7, .zero_first = true},
    {.form = "narrow", .bias = Tail::Integer, .zero = 5, .zero_first = true, .low = -127},
    {.form = "two_biases", .bias = Tail::Integer, .zero = 3, .low = -128, .second = true},
    {.form = "zero_at_least", .zero = -128, .zero_first = true, .round_first = true},
    {.form = "zero_at_most", .zero = 127, .round_first = true, .low = -100, .high = 127},
    {.form = "unsigned", .channels = true, .out = Type::U8, .divisor = 5, .zero = 128, .low = 0, .high = 255},
};

/// Writes a program.
class Writer {
 public:
  std::string parameter(const Shape& shape, InputSpec values) {
    inputs_.push_back(std::move(values));
    return text_.parameter(shape);
  }
  std::string line(const Shape& shape, std::string_view expression) { return text_.line(shape, expression); }
  std::string op(const Shape& shape, std::string_view name, std::string_view a) {
    return line(shape, fmt::format("{}({})", name, a));
  }
  std::string op(const Shape& shape, std::string_view name, std::string_view a, std::string_view b) {
    return line(shape, fmt::format("{}({}, {})", name, a, b));
  }
  std::string filled(const Shape& shape, double value) {
    const std::string number = line(Shape::scalar(shape.type()), fmt::format("constant({})", value));
    return line(shape, fmt::format("broadcast({}), dimensions={{}}", number));
  }
  std::string spread(const Shape& shape, std::string_view array, std::initializer_list<int64_t> dims) {
    return line(shape, fmt::format("broadcast({}), dimensions={}", array, braces(dims)));
  }
  /// Names the last line, which is the root.
  void root(const Shape& shape, std::string expression) {
    shape_ = shape;
    root_ = std::move(expression);
  }

  /// Adds zero point, rounding and clamp to real values.
  void quantize(const Shape& real, std::string x, const Tail& t) {
    const auto clamp = [&] {
      x = line(real, fmt::format("clamp({}, {}, {})", filled(real, t.low), x, filled(real, t.high)));
    };
    if (t.zero != 0 && t.zero_first) x = op(real, "add", x, filled(real, t.zero));
    if (!t.round_first && t.zero_first) clamp();
    x = op(real, "round-nearest-even", x);
    if (t.zero != 0 && !t.zero_first) x = op(real, "add", x, filled(real, t.zero));
    if (t.round_first || !t.zero_first) clamp();
    root(real.with_type(t.out), fmt::format("convert({})", x));
  }

  /// Adds what follows a product: of s32, or of f32 where its operands were dequantized.
  void finish_product(const Shape& whole, std::string x, int64_t channel, const Tail& t) {
    const Shape sums = whole.with_type(Type::S32), real = whole.with_type(Type::F32);
    const Shape channels = Shape::array(Type::F32, {whole.dim(static_cast<int>(channel))});
    const bool integers = hlo::is_integer(whole.type());
    float_product_ = !integers;
    if (integers) {
      if (t.bias == Tail::Integer) {
        const std::string bias = parameter(channels.with_type(Type::S32), fixed({100, -2000, 0, 31, 4096, -1}));
        x = op(sums, "add", x, spread(sums, bias, {channel}));
        if (t.second) {
          const std::string more = parameter(channels.with_type(Type::S32), fixed({-64, 900, 7, 0, -2048}));
          x = op(sums, "subtract", x, spread(sums, more, {channel}));
        }
      }
      x = op(real, "convert", x);
      const std::string scale =
          t.channels ? spread(real, parameter(channels, fixed({0.015625, 0.25, 0.03125, 0.5, 0.0078125})), {channel})
                     : filled(real, t.scale);
      x = op(real, "multiply", x, scale);
      if (t.rows) {
        const std::string rows = parameter(Shape::array(Type::F32, {whole.dim(0)}), fixed({0.5, 2, 0.25, 1}));
        x = op(real, "multiply", x, spread(real, rows, {0}));
      }
    }
    if (t.bias == Tail::Float || (t.bias != Tail::None && !integers))
      x = op(real, "add", x, spread(real, parameter(channels, fixed({1.5, -20, 0, 3, 0.25})), {channel}));
    if (t.relu && t.most != 0)
      x = line(real, fmt::format("clamp({}, {}, {})", filled(real, 0), x, filled(real, t.most)));
    else if (t.relu)
      x = op(real, "maximum", x, filled(real, 0));
    if (hlo::is_float(t.out)) {
      root(real, fmt::format("copy({})", x));  // removed when the program is prepared
      return;
    }
    if (t.divisor != 0) x = op(real, "divide", x, filled(real, t.divisor));
    quantize(real, x, t);
  }

  /// Ends with softmax(scores) v, with softmax along the last dimension.
  void attend(const Shape& scores, const Shape& rows, const std::string& s, const std::string& v) {
    const std::string least = line(Shape::scalar(Type::F32), "constant(-inf)"),
                      none = line(Shape::scalar(Type::F32), "constant(0)");
    const auto reduced = [&](std::string_view how, const std::string& x, const std::string& start) {
      return line(
          rows, fmt::format("reduce({}, {}), dimensions={{2}}, to_apply={}", x, start, text_.combiner(how, Type::F32)));
    };
    const std::string most = spread(scores, reduced("maximum", s, least), {0, 1});
    const std::string e = op(scores, "exponential", op(scores, "subtract", s, most));
    const std::string weights = op(scores, "divide", e, spread(scores, reduced("add", e, none), {0, 1}));
    root(Shape::array(Type::F32, {scores.dim(0), scores.dim(1), 4}),
         fmt::format("dot({}, {}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, "
                     "rhs_contracting_dims={{1}}",
                     weights, v));
  }

  /// Adds the case `pattern/type/form/values`. ulps 0: the result is exact.
  void finish(CaseList& list, std::string_view pattern, Type type, std::string_view form, std::string_view values,
              double ulps = 0) {
    // Products of floats are known from their exact sums.
    Bound bound{.exact = float_product_};
    if (ulps > 0) bound = {.kind = Bound::Kind::Scaled, .ulps = ulps, .exact = true};
    list.add({.name = fmt::format("{}/{}/{}/{}", pattern, type_name(type), form, values),
              .op = Op::CALL,
              .type = type,
              .text = text_.root(shape_, root_),
              .inputs = inputs_,
              .bound = bound,
              .pattern = std::string(pattern)});
  }

 private:
  Text text_;
  std::vector<InputSpec> inputs_;
  Shape shape_;
  std::string root_;
  bool float_product_ = false;
};

struct Sizes {
  int64_t m, k, n;
};

/// Adds integer products whose operands have zero points, which are subtracted from s32: numbers, and one for each column
/// of the weights, and at both ends of the type. Two are computed in short floats from the scales on.
void add_zero_points(CaseList& list) {
  for (const Type type : {Type::S8, Type::U8}) {
    const double least = type == Type::S8 ? -128 : 0, most = type == Type::S8 ? 127 : 255;
    for (const bool convolves : {false, true}) {
      const Shape x_shape = convolves ? Shape::array(type, {1, 6, 5, 3}) : Shape::array(type, {4, 33}),
                  w_shape = convolves ? Shape::array(type, {3, 3, 3, 4}) : Shape::array(type, {33, 5}),
                  sums = convolves ? Shape::array(Type::S32, {1, 6, 5, 4}) : Shape::array(Type::S32, {4, 5});
      const int64_t channel = convolves ? 3 : 1;
      for (const std::string_view form : {"zeros", "least_and_most", "most_and_least", "columns", "bf16", "f16"}) {
        const double x_zero = form == "least_and_most"   ? least
                              : form == "most_and_least" ? most
                              : type == Type::S8         ? -3
                                                         : 130;
        const double w_zero = form == "least_and_most" ? most : form == "most_and_least" ? least : 5;
        for (const auto& [name, values] : stored_values(type)) {
          if (form != "zeros" && name != "ends" && name != "whole_range" && !list.full()) continue;
          Writer w;
          const std::string x = w.parameter(x_shape, values), y = w.parameter(w_shape, values);
          const Shape wide_x = x_shape.with_type(Type::S32), wide_w = w_shape.with_type(Type::S32);
          const std::string zero =
              form == "columns" ? w.spread(wide_w,
                                           w.parameter(Shape::array(Type::S32, {sums.dim(static_cast<int>(channel))}),
                                                       fixed({7, -128, 127, 0, 255})),
                                           {channel})
                                : w.filled(wide_w, w_zero);
          const std::string a = w.op(wide_x, "subtract", w.op(wide_x, "convert", x), w.filled(wide_x, x_zero)),
                            b = w.op(wide_w, "subtract", w.op(wide_w, "convert", y), zero);
          const std::string product =
              convolves
                  ? w.line(sums, fmt::format("convolution({}, {}), window={{size=3x3 pad=1_1x1_1}}, "
                                             "dim_labels=b01f_01io->b01f",
                                             a, b))
                  : w.line(sums,
                           fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", a, b));
          const Tail tail = {.form = form, .zero = 3, .zero_first = true};
          if (form != "bf16" && form != "f16") {
            w.finish_product(sums, product, channel, tail);
          } else {
            // The sum is scaled in f32, and the rest is of the short type.
            const Shape real = sums.with_type(form == "bf16" ? Type::BF16 : Type::F16), f32 = sums.with_type(Type::F32);
            const std::string scaled = w.op(f32, "multiply", w.op(f32, "convert", product), w.filled(f32, 0.0078125));
            w.quantize(real, w.op(real, "divide", w.op(real, "convert", scaled), w.filled(real, 5)), tail);
          }
          w.finish(list, convolves ? "integer_convolution" : "integer_dot", type, fmt::format("{}_less", form), name);
        }
      }
    }
  }
}

/// Adds residual sums: two arrays with scales and zero points of their own.
void add_integer_adds(CaseList& list) {
  for (const Type type : {Type::S8, Type::U8, Type::S4}) {
    const auto [low, high] = ends_of(type);
    const Tail tails[] = {
        {.form = "divided", .out = type, .divisor = 3, .zero = 2, .zero_first = true, .low = low, .high = high},
        {.form = "relu",
         .relu = true,
         .out = type,
         .divisor = 0.5,
         .zero = low + 4,
         .zero_first = true,
         .low = low,
         .high = high},
        {.form = "zero_last", .out = type, .zero = 3, .low = low, .high = high},
        {.form = "narrow", .out = type, .divisor = 0.25, .round_first = true, .low = low + 1, .high = high - 1}};
    for (const Tail& tail : tails) {
      for (const std::string_view how : {"add", "subtract"}) {
        if (how == "subtract" && tail.form != "divided") continue;
        for (const auto& [name, values] : stored_values(type)) {
          Writer w;
          const Shape narrow = Shape::array(type, {3, 5, 7}), real = narrow.with_type(Type::F32);
          const auto side = [&](double zero, double scale) {
            const std::string x = w.op(real, "convert", w.parameter(narrow, values));
            return w.op(real, "multiply", zero == 0 ? x : w.op(real, "subtract", x, w.filled(real, zero)),
                        w.filled(real, scale));
          };
          const std::string x = side(tail.divisor == 3 ? high : low, 0.25), y = side(tail.relu ? 0 : 1, 0.0625);
          std::string sum = w.op(real, how, x, y);
          if (tail.relu) sum = w.op(real, "maximum", sum, w.filled(real, 0));
          if (tail.divisor != 0) sum = w.op(real, "divide", sum, w.filled(real, tail.divisor));
          w.quantize(real, sum, tail);
          w.finish(list, "integer_add", type, fmt::format("{}_{}", how, tail.form), name);
        }
      }
    }
  }
}

void add_integer_dots(CaseList& list, const std::vector<Sizes>& sizes, bool tiled) {
  const size_t first = list.cases().size();
  for (const Type type : {Type::S8, Type::U8, Type::S4}) {
    for (const Sizes& s : sizes) {
      if (tiled && type != Type::S8) continue;
      for (const Tail& tail : kTails) {
        if ((s.k != 16 || tiled) && !list.full() && tail.form != "relu" && tail.form != "bias") continue;
        if (tail.rows && s.m == 1) continue;  // a scale of one row becomes a scalar, and its reshape an op of its own
        for (const auto& [name, values] : stored_values(type)) {
          if (type != Type::S8 && name != "ends" && !list.full()) continue;
          Writer w;
          const std::string x = w.parameter(Shape::array(type, {s.m, s.k}), values),
                            y = w.parameter(Shape::array(type, {s.k, s.n}), values);
          const Shape sums = Shape::array(Type::S32, {s.m, s.n});
          const std::string product =
              w.line(sums, fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x, y));
          w.finish_product(sums, product, 1, tail);
          w.finish(list, "integer_dot", type, fmt::format("{}_{}x{}x{}", tail.form, s.m, s.k, s.n), name);
        }
      }
    }
  }
  if (tiled) mark_tiled(list, first);
}

/// Adds products whose sums are divided by 2 in the end, so that half of them are ties of rounding. A device that multiplies by the
/// reciprocal of the result's scale, which is no float, gets next to most of them.
void add_halves(CaseList& list) {
  constexpr Tail kHalves = {.form = "halves", .scale = 1.875, .divisor = 3.75};
  std::vector<double> numbers;
  for (int i = -18; i <= 18; ++i) numbers.push_back(i);
  Writer w;
  const std::string x = w.parameter(Shape::array(Type::S8, {37, 4}), fixed(numbers)),
                    y = w.parameter(Shape::array(Type::S8, {4, 3}), fixed({1, -1, 2, 1, 0, 1, -1, 3, 1, 0, 1}));
  const Shape sums = Shape::array(Type::S32, {37, 3});
  const std::string product =
      w.line(sums, fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x, y));
  w.finish_product(sums, product, 1, kHalves);
  w.finish(list, "integer_dot", Type::S8, "halves_37x4x3", "fixed");
}

struct ConvolutionForm {
  std::string_view name, window;
  Dims input, kernel, output;
  bool pads = false;  ///< the input is padded by its zero point, before the convolution: one below, two above
};

void add_integer_convolutions(CaseList& list, bool tiled) {
  const size_t first = list.cases().size();
  std::vector<ConvolutionForm> forms = {{"same", "size=3x3 pad=1_1x1_1", {1, 6, 5, 3}, {3, 3, 3, 4}, {1, 6, 5, 4}},
                                        {"strided", "size=2x2 stride=2x2", {2, 6, 4, 2}, {2, 2, 2, 3}, {2, 3, 2, 3}},
                                        {"padded", "size=3x2", {1, 4, 3, 2}, {3, 2, 2, 3}, {1, 4, 5, 3}, true}};
  if (tiled) {
    forms = {{"same_45x41", "size=3x3 pad=1_1x1_1", {1, 45, 41, 10}, {3, 3, 10, 5}, {1, 45, 41, 5}},
             {"padded_45x41", "size=3x2", {1, 45, 41, 10}, {3, 2, 10, 5}, {1, 45, 43, 5}, true}};
  }
  for (const Type type : {Type::S8, Type::U8}) {
    for (const ConvolutionForm& form : forms) {
      if (tiled && type != Type::S8) continue;
      for (const Tail& tail : kTails) {
        if (tail.rows || (tiled && !list.full() && tail.form != "relu" && tail.form != "bias")) continue;
        for (const auto& [name, values] : stored_values(type)) {
          if ((type != Type::S8 || form.name != "same") && !tiled && name != "ends" && !list.full()) continue;
          Writer w;
          std::string x = w.parameter(Shape::array(type, form.input), values);
          const std::string y = w.parameter(Shape::array(type, form.kernel), values);
          if (form.pads) {
            const std::string zero = w.line(Shape::scalar(type), "constant(5)");
            const Shape padded = Shape::array(type, {1, form.input[1] + 2, form.input[2] + 3, form.input[3]});
            x = w.line(padded, fmt::format("pad({}, {}), padding=0_0x1_1x2_1x0_0", x, zero));
          }
          const Shape sums = Shape::array(Type::S32, form.output);
          const std::string product = w.line(
              sums, fmt::format("convolution({}, {}), window={{{}}}, dim_labels=b01f_01io->b01f", x, y, form.window));
          w.finish_product(sums, product, 3, tail);
          w.finish(list, "integer_convolution", type, fmt::format("{}_{}", tail.form, form.name), name);
        }
      }
    }
  }
  if (tiled) mark_tiled(list, first);
}

/// Sums whose halves, thirds and fifths are ties, in both directions, and numbers far beyond the result's range.
std::vector<std::pair<std::string_view, InputSpec>> sums() {
  return {{"ties", fixed({1, -1, 3, -3, 5, -5, 7, -7, 9, 253, -255, 255, -257, 0, 2, 4, 6})},
          {"extremes", fixed({2147483647, -2147483648.0, 65536, -65536, 254, 256, -256, -258, 0})},
          {"unit", {.low = -600, .high = 600}}};
}

void add_requantize(CaseList& list) {
  for (const Type type : {Type::S8, Type::U8, Type::S4}) {
    const auto [low, high] = ends_of(type);
    const Tail tails[] = {
        {.form = "zero_first", .out = type, .zero = 3, .zero_first = true, .low = low, .high = high},
        {.form = "zero_last", .out = type, .zero = 3, .low = low, .high = high},
        {.form = "zero_at_least",
         .out = type,
         .zero = low == 0 ? 1 : low,
         .zero_first = true,
         .round_first = true,
         .low = low,
         .high = high},
        {.form = "zero_at_most", .out = type, .zero = high, .zero_first = true, .low = low, .high = high},
        {.form = "no_zero", .out = type, .low = low, .high = high},
        {.form = "narrow", .out = type, .zero = 1, .zero_first = true, .low = low + 1, .high = high - 1},
        {.form = "divided", .out = type, .divisor = 3, .zero = 2, .low = low, .high = high}};
    for (const Tail& tail : tails) {
      for (const auto& [name, values] : sums()) {
        Writer w;
        const Shape from = Shape::array(Type::S32, {5, 17}), real = from.with_type(Type::F32);
        std::string x = w.op(real, "convert", w.parameter(from, values));
        x = w.op(real, "multiply", x, w.filled(real, 0.5));
        if (tail.divisor != 0) x = w.op(real, "divide", x, w.filled(real, tail.divisor));
        w.quantize(real, x, tail);
        w.finish(list, "requantize", type, fmt::format("{}_5x17", tail.form), name);
      }
    }
  }
}

void add_quantize(CaseList& list) {
  const std::pair<std::string_view, InputSpec> inputs[] = {
      {"ties", fixed({0.25, -0.25, 0.75, -0.75, 1.25, -1.25, 63.25, -64.25, 63.75, -64.75, 0, 0.5, -1})},
      {"extremes", fixed({1e30, -1e30, 1e-30, -1e-30, 64, -64, 63.5, -65, 128, -128})},
      {"unit", {.low = -80, .high = 80}}};
  for (const Type type : {Type::S8, Type::U8, Type::S4}) {
    const auto [low, high] = ends_of(type);
    const Tail tails[] = {
        {.form = "zero_first", .out = type, .zero = 3, .zero_first = true, .low = low, .high = high},
        {.form = "zero_last", .out = type, .zero = 3, .low = low, .high = high},
        {.form = "zero_at_most", .out = type, .zero = high, .zero_first = true, .low = low, .high = high},
        {.form = "symmetric", .out = type, .round_first = true, .low = low == 0 ? 0 : low + 1, .high = high}};
    for (const Tail& tail : tails) {
      for (const auto& [name, values] : inputs) {
        for (const bool rows : {false, true}) {
          Writer w;
          const Shape real = Shape::array(Type::F32, {4, 13});
          const std::string x = w.parameter(real, values);
          // The scale of each row, as programs have that quantize at run time.
          const std::string scale =
              rows ? w.spread(real, w.parameter(Shape::array(Type::F32, {4}), fixed({0.5, 0.25, 1, 2})), {0})
                   : w.filled(real, 0.5);
          w.quantize(real, w.op(real, "divide", x, scale), tail);
          w.finish(list, "quantize", type, fmt::format("{}{}_4x13", rows ? "rows_" : "", tail.form), name);
        }
      }
    }
  }
}

void add_scaled_products(CaseList& list) {
  // Both operands with a scale for each block of 32.
  struct Block {
    Type type, scale;
    InputSpec values;
  };
  const InputSpec scales = fixed({1, 0.5, 2, 0.25, 4, 1, 8, 0.125});
  for (const Block& b : {Block{Type::F8E4M3FN, Type::F8E8M0FNU, fixed({1, -2, 0.5, 448, -448, 0, 0.0625, 3.5, -15})},
                         Block{Type::F8E5M2, Type::F8E8M0FNU, fixed({1, -2, 0.5, 96, -1024, 0, 0.0625, 3.5, -12})},
                         Block{Type::F4E2M1FN, Type::F8E8M0FNU, fixed({0, 0.5, -1, 1.5, -2, 3, 4, -6, 6})},
                         Block{Type::F4E2M1FN, Type::F8E4M3FN, fixed({0, 0.5, -1, 1.5, -2, 3, 4, -6, 6})},
                         Block{Type::S8, Type::F32, fixed({-128, 127, 3, -5, 0, 64, -127, 1})}}) {
    for (const int64_t k : {int64_t{32}, int64_t{96}}) {
      constexpr int64_t kM = 3, kN = 4, kBlock = 32;
      Writer w;
      const auto side = [&](int64_t rows) {
        const Shape narrow = Shape::array(b.type, {rows, k}), wide = narrow.with_type(Type::F32),
                    blocks = Shape::array(Type::F32, {rows, k / kBlock, kBlock}),
                    few = Shape::array(b.scale, {rows, k / kBlock});
        const std::string x = w.op(blocks, "reshape", w.op(wide, "convert", w.parameter(narrow, b.values)));
        std::string scale = w.parameter(few, scales);
        if (b.scale != Type::F32) scale = w.op(few.with_type(Type::F32), "convert", scale);
        return w.op(wide, "reshape", w.op(blocks, "multiply", x, w.spread(blocks, scale, {0, 1})));
      };
      const std::string lhs = side(kM), rhs = side(kN);
      w.root(Shape::array(Type::F32, {kM, kN}),
             fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}", lhs, rhs));
      w.finish(list, "scaled_dot", b.type, fmt::format("blocks_{}_{}x{}x{}", type_name(b.scale), kM, k, kN), "fixed",
               16 + static_cast<double>(k));
    }
  }
  // As frontends write a quantized layer: both operands dequantized, the product in f32, the result quantized.
  for (const bool convolves : {false, true}) {
    for (const Tail& tail : kTails) {
      if (tail.rows || tail.bias == Tail::Integer) continue;
      for (const auto& [name, values] : stored_values(Type::S8)) {
        Writer w;
        const Dims left = convolves ? Dims{1, 5, 4, 3} : Dims{4, 12},
                   right = convolves ? Dims{3, 2, 3, 5} : Dims{12, 5}, out = convolves ? Dims{1, 3, 3, 5} : Dims{4, 5};
        const auto side = [&](const Dims& dims, double zero, double scale) {
          const Shape narrow = Shape::array(Type::S8, dims), real = narrow.with_type(Type::F32);
          std::string x = w.op(real, "convert", w.parameter(narrow, values));
          if (zero != 0) x = w.op(real, "subtract", x, w.filled(real, zero));
          return w.op(real, "multiply", x, w.filled(real, scale));
        };
        const std::string x = side(left, tail.divisor == 0 ? 127 : -128, 0.25), y = side(right, 0, 0.0625);
        const Shape real = Shape::array(Type::F32, out);
        const std::string product =
            convolves
                ? w.line(real,
                         fmt::format("convolution({}, {}), window={{size=3x2}}, dim_labels=b01f_01io->b01f", x, y))
                : w.line(real,
                         fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x, y));
        w.finish_product(real, product, convolves ? 3 : 1, tail);
        w.finish(list, convolves ? "scaled_convolution" : "scaled_dot", Type::S8, fmt::format("{}_layer", tail.form),
                 name);
      }
    }
  }
}

void add_dequantized_dots(CaseList& list) {
  struct Form {
    std::string_view name;
    int64_t group;  ///< 0: one scale for each column
    bool zero;
  };
  for (const Type type : {Type::S8, Type::S4, Type::U4}) {
    for (const Form& form : {Form{"columns", 0, false}, Form{"groups", 8, false}, Form{"zero_points", 8, true}}) {
      for (const auto& [name, values] : stored_values(type)) {
        constexpr int64_t kM = 3, kK = 16, kN = 5;
        Writer w;
        const std::string x = w.parameter(Shape::array(Type::F32, {kM, kK}), fixed({1, -0.5, 0.25, 2, -1, 0, 0.75}));
        const int64_t groups = form.group ? kK / form.group : 1;
        const Shape narrow = Shape::array(type, {groups, kK / groups, kN}), real = narrow.with_type(Type::F32),
                    few = Shape::array(Type::F32, {groups, kN});
        std::string weights = w.op(real, "convert", w.parameter(narrow, values));
        if (form.zero)
          weights = w.op(real, "subtract", weights, w.spread(real, w.parameter(few, fixed({3, -1, 0, 7})), {0, 2}));
        const std::string scale = w.parameter(few, fixed({0.5, 0.25, 1, 0.125}));
        weights = w.op(real, "multiply", weights, w.spread(real, scale, {0, 2}));
        weights = w.op(Shape::array(Type::F32, {kK, kN}), "reshape", weights);
        w.root(Shape::array(Type::F32, {kM, kN}),
               fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x, weights));
        w.finish(list, "dequantized_dot", type, fmt::format("{}_3x16x5", form.name), name, 16 + kK);
      }
    }
  }
}

void add_quantized_attention(CaseList& list) {
  constexpr int64_t kBatch = 2, kQueries = 3, kKeys = 7, kDepth = 4;
  for (const Type type : {Type::S8, Type::S4}) {
    for (const bool masked : {false, true}) {
      for (const bool tokens : {false, true}) {
        Writer w;
        const Shape scores = Shape::array(Type::F32, {kBatch, kQueries, kKeys}),
                    rows = Shape::array(Type::F32, {kBatch, kQueries}),
                    cache = Shape::array(type, {kBatch, kKeys, kDepth}), wide = cache.with_type(Type::F32);
        const std::string q =
            w.parameter(Shape::array(Type::F32, {kBatch, kQueries, kDepth}), fixed({1, -0.5, 0.25, 0, 0.5, -1, 0.125}));
        const InputSpec numbers =
            type == Type::S8 ? fixed({-128, 127, 3, -64, 0, 17, 90, -31}) : fixed({-8, 7, 3, -4, 0, 1, 6, -3});
        const double by = type == Type::S8 ? 0.03125 : 0.5;
        const auto dequantized = [&] {
          const std::string x = w.op(wide, "convert", w.parameter(cache, numbers));
          const std::string scale =
              tokens
                  ? w.spread(wide, w.parameter(Shape::array(Type::F32, {kBatch, kKeys}), fixed({by, by / 2, by * 2})),
                             {0, 1})
                  : w.filled(wide, by);
          return w.op(wide, "multiply", x, scale);
        };
        const std::string k = dequantized(), v = dequantized();
        std::string s = w.line(scores, fmt::format("dot({}, {}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
                                                   "lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}",
                                                   q, k));
        s = w.op(scores, "multiply", s, w.filled(scores, 0.5));
        if (masked) {
          const std::string mask = w.parameter(scores.with_type(Type::PRED), fixed({1, 0, 1, 1, 0, 1}));
          s = w.line(scores, fmt::format("select({}, {}, {})", mask, s, w.filled(scores, -1e9)));
        }
        w.attend(scores, rows, s, v);
        w.finish(list, "quantized_attention", type,
                 fmt::format("{}{}", tokens ? "tokens" : "number", masked ? "_masked" : ""), "fixed", 64);
      }
    }
  }
}

}  // namespace

void add_quantized_cases(CaseList& list) {
  add_integer_dots(list, {{4, 16, 5}, {1, 33, 8}, {3, 128, 2}}, false);
  add_halves(list);
  add_integer_dots(list, {{150, 130, 70}, {17, 600, 45}}, true);
  for (const bool tiled : {false, true}) add_integer_convolutions(list, tiled);
  add_zero_points(list);
  add_integer_adds(list);
  add_requantize(list);
  add_quantize(list);
  add_scaled_products(list);
  add_dequantized_dots(list);
  add_quantized_attention(list);
}

}  // namespace collet::conformance
