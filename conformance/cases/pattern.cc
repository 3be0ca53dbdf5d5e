// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "conformance/cases/case.h"

/// \file
/// Adds programs in which the SDK finds a pattern of docs/patterns.md, written as frontends write them. A backend that
/// supports the pattern gets it as one call; any other backend gets the single ops.

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_short(Type type) {
  return hlo::type_info(type).bits < 32;
}

InputSpec between(double low, double high) {
  return {.low = low, .high = high};
}
InputSpec fixed(std::vector<double> numbers) {
  return {.values = Values::Fixed, .fixed = std::move(numbers)};
}

/// Writes ops along the last dimension of arrays of one shape.
class Writer {
 public:
  Writer(Type type, Dims dims) : type_(type), dims_(std::move(dims)) {
    for (size_t d = 0; d + 1 < dims_.size(); ++d) outer_.push_back(static_cast<int64_t>(d));
  }

  Shape shape(const Dims& dims) const { return Shape::array(type_, dims); }
  Shape whole() const { return shape(dims_); }
  Shape rows() const { return shape(Dims(dims_.begin(), dims_.end() - 1)); }
  Shape row() const { return shape({dims_.back()}); }

  std::string parameter(const Shape& shape, InputSpec values) {
    inputs_.push_back(std::move(values));
    return text_.parameter(shape);
  }
  std::string constant(double value) {
    const std::string number = std::isinf(value) ? (value < 0 ? "-inf" : "inf") : fmt::format("{}", value);
    return text_.line(Shape::scalar(type_), fmt::format("constant({})", number));
  }
  std::string filled(const Shape& shape, double value) {
    return text_.line(shape, fmt::format("broadcast({}), dimensions={{}}", constant(value)));
  }
  std::string line(const Shape& shape, std::string_view expression) { return text_.line(shape, expression); }
  std::string op(const Shape& shape, std::string_view name, std::string_view a) {
    return text_.line(shape, fmt::format("{}({})", name, a));
  }
  std::string op(const Shape& shape, std::string_view name, std::string_view a, std::string_view b) {
    return text_.line(shape, fmt::format("{}({}, {})", name, a, b));
  }
  std::string scaled(const Shape& shape, std::string_view a, double by) {
    return op(shape, "multiply", a, filled(shape, by));
  }
  std::string reduce(std::string_view what, std::string_view x, double start) {
    const std::string combiner = text_.combiner(what, type_);
    return text_.line(rows(), fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", x, constant(start),
                                          dims_.size() - 1, combiner));
  }
  /// Broadcasts one value per row along the row.
  std::string along(std::string_view row_values) {
    return text_.line(whole(), fmt::format("broadcast({}), dimensions={}", row_values, braces(outer_)));
  }
  /// Broadcasts one row to all rows.
  std::string each(std::string_view one_row) {
    return text_.line(whole(), fmt::format("broadcast({}), dimensions={{{}}}", one_row, dims_.size() - 1));
  }
  std::string mean(std::string_view x) {
    const std::string sum = reduce("add", x, 0);
    return op(rows(), "divide", sum, filled(rows(), static_cast<double>(dims_.back())));
  }
  std::string softmax(std::string_view x) {
    // As in jax.nn.softmax, the maximum is also taken with -inf.
    const std::string most = op(rows(), "maximum", filled(rows(), -kInfinity), reduce("maximum", x, -kInfinity));
    const std::string e = op(whole(), "exponential", op(whole(), "subtract", x, along(most)));
    return op(whole(), "divide", e, along(reduce("add", e, 0)));
  }
  std::string normalized(std::string_view x, double epsilon) {
    const std::string square = op(whole(), "multiply", x, x);
    const std::string safe = op(rows(), "add", mean(square), filled(rows(), epsilon));
    return op(whole(), "multiply", x, along(op(rows(), "rsqrt", safe)));
  }

  /// Adds the case `pattern/type/form_shape/values`; `ulps` are relative to the largest magnitude in the result.
  void finish(CaseList& list, std::string_view pattern, std::string_view form, std::string_view values,
              const Shape& shape, std::string_view root, double ulps) {
    const std::string prefix = form.empty() ? "" : std::string(form) + "_";
    list.add({.name = fmt::format("{}/{}/{}{}/{}", pattern, type_name(type_), prefix, dims_name(dims_), values),
              .op = Op::CALL,
              .type = type_,
              .text = text_.root(shape, root),
              .inputs = inputs_,
              .bound = {.kind = Bound::Kind::Scaled, .ulps = ulps, .exact = true},
              .pattern = std::string(pattern)});
  }

 private:
  Type type_;
  Dims dims_, outer_;
  Text text_;
  std::vector<InputSpec> inputs_;
};

// Allowed error, in ULPs: `times` sums over the last dimension with one rounding per term, and 12 further roundings.
double sum_ulps(const Dims& dims, double times = 1) {
  return 12 + times * static_cast<double>(dims.back());
}

std::vector<std::pair<std::string_view, InputSpec>> logits(Type type) {
  // "large" and "positive" have values whose exp overflows or underflows. "masked" has some values of -inf, but not all of a row.
  const double large = type == Type::F16 ? 60 : 300;
  return {{"unit", between(-4, 4)},
          {"large", between(-large, large)},
          {"positive", between(large, large + 3)},
          {"negative", between(-large - 3, -large)},
          {"masked", fixed({1, -kInfinity, 2.5, -3, 0, large, -large, 0.25, -kInfinity, 1, 1})},
          {"equal", fixed({large})}};
}

void add_softmax(CaseList& list, Type type, const Dims& dims) {
  for (const auto& [name, values] : logits(type)) {
    if (name == "masked" && dims.back() == 1) continue;  // a row of -inf only has no softmax
    Writer w(type, dims);
    const std::string x = w.parameter(w.whole(), values);
    const std::string s = w.softmax(x);
    w.finish(list, "softmax", "", name, w.whole(), fmt::format("copy({})", s), sum_ulps(dims));
  }
}

void add_norms(CaseList& list, Type type, const Dims& dims) {
  const InputSpec gamma = between(0.5, 2), beta = between(-1, 1);
  for (const double epsilon : {1e-5, 0.25}) {
    const std::string form = epsilon < 0.1 ? "" : "large_epsilon";
    for (const auto& [name, values] : {std::pair<std::string_view, InputSpec>{"unit", between(-2, 2)},
                                       {"small", between(-0.0625, 0.0625)},
                                       {"shifted", between(1, 3)}}) {
      if (epsilon > 0.1 && name != "small") continue;
      Writer rms(type, dims);
      const std::string x = rms.parameter(rms.whole(), values), scale = rms.parameter(rms.row(), gamma);
      const std::string normed = rms.normalized(x, epsilon);
      rms.finish(list, "rms_norm", form, name, rms.whole(), fmt::format("multiply({}, {})", normed, rms.each(scale)),
                 sum_ulps(dims, 2));
      Writer layer(type, dims);
      const std::string y = layer.parameter(layer.whole(), values), g = layer.parameter(layer.row(), gamma),
                        b = layer.parameter(layer.row(), beta);
      const std::string centred = layer.op(layer.whole(), "subtract", y, layer.along(layer.mean(y)));
      const std::string scaled = layer.op(layer.whole(), "multiply", layer.normalized(centred, epsilon), layer.each(g));
      // If the mean is large compared to the deviations from it, its rounding error is large compared to them, too.
      const double times = name == "shifted" ? 8 : 3;
      layer.finish(list, "layer_norm", form, name, layer.whole(), fmt::format("add({}, {})", scaled, layer.each(b)),
                   sum_ulps(dims, times));
    }
  }
}

void add_gelu(CaseList& list, Type type, const Dims& dims) {
  for (const auto& [name, values] :
       {std::pair<std::string_view, InputSpec>{"unit", between(-3, 3)}, {"large", between(-30, 30)}}) {
    Writer w(type, dims);
    const Shape shape = w.whole();
    const std::string x = w.parameter(shape, values);
    const std::string cube = w.op(shape, "multiply", w.op(shape, "multiply", x, x), x);
    const std::string inner = w.op(shape, "add", x, w.scaled(shape, cube, 0.044715));
    const std::string t = w.op(shape, "tanh", w.scaled(shape, inner, 0.7978845608028654));
    const std::string share = w.scaled(shape, w.op(shape, "add", w.filled(shape, 1), t), 0.5);
    w.finish(list, "gelu", "tanh", name, shape, fmt::format("multiply({}, {})", x, share), 24);
    Writer e(type, dims);
    const std::string y = e.parameter(shape, values);
    const std::string error = e.op(shape, "erf", e.scaled(shape, y, 0.7071067811865476));
    const std::string half = e.scaled(shape, y, 0.5);
    e.finish(list, "gelu", "erf", name, shape,
             fmt::format("multiply({}, {})", half, e.op(shape, "add", error, e.filled(shape, 1))), 24);
  }
}

void add_silu_gate(CaseList& list, Type type, const Dims& dims) {
  for (const auto& [name, values] :
       {std::pair<std::string_view, InputSpec>{"unit", between(-6, 6)}, {"large", between(-90, 90)}}) {
    for (const bool gate_first : {false, true}) {
      Writer w(type, dims);
      const Shape shape = w.whole();
      const std::string x = w.parameter(shape, values), y = w.parameter(shape, between(-2, 2));
      const std::string silu = w.op(shape, "multiply", x, w.op(shape, "logistic", x));
      w.finish(list, "silu_gate", gate_first ? "gate_first" : "", name, shape,
               gate_first ? fmt::format("multiply({}, {})", y, silu) : fmt::format("multiply({}, {})", silu, y), 24);
    }
  }
}

/// Sizes and inputs of an attention whose scores have the shape [batch, queries, keys].
struct Attention {
  std::string_view form, values;
  int64_t batch, queries, keys, depth, width;
  double scale;
  enum Mask { None, Add, Select } mask;
  InputSpec q, k, masked;
  double ulps;
};

void add_attention(CaseList& list, Type type, const Attention& a) {
  Writer w(type, {a.batch, a.queries, a.keys});
  const Shape scores = w.whole(), result = w.shape({a.batch, a.queries, a.width});
  const std::string q = w.parameter(w.shape({a.batch, a.queries, a.depth}), a.q),
                    k = w.parameter(w.shape({a.batch, a.keys, a.depth}), a.k),
                    v = w.parameter(w.shape({a.batch, a.keys, a.width}), between(-2, 2));
  std::string s = w.line(scores, fmt::format("dot({}, {}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
                                             "lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}",
                                             q, k));
  if (a.scale != 1) s = w.scaled(scores, s, a.scale);
  if (a.mask == Attention::Add) {
    s = w.op(scores, "add", s, w.parameter(scores, a.masked));
  } else if (a.mask == Attention::Select) {
    const std::string mask = w.parameter(Shape::array(Type::PRED, {a.batch, a.queries, a.keys}), a.masked);
    const double least = -largest_finite(type);
    s = w.line(scores, fmt::format("select({}, {}, {})", mask, s, w.filled(scores, least)));
  }
  const std::string weights = w.softmax(s);
  w.finish(list, "attention", a.form, a.values, result,
           fmt::format("dot({}, {}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, "
                       "rhs_contracting_dims={{1}}",
                       weights, v),
           a.ulps + static_cast<double>(a.keys));
}

void add_attentions(CaseList& list, Type type) {
  // Scores computed from integers are exact in every order of summation. Scores of random numbers have the error of a
  // matrix product, which exp magnifies.
  const InputSpec drawn = between(-1, 1), bits = fixed({0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1}),
                  added = fixed({0, -0.5, 1, -kInfinity, 0.25, -2, 0});
  const bool shorter = is_short(type);
  const InputSpec whole =
      shorter ? fixed({1, -2, 0, 3, -1, 2, 1, -3, 0, 2, 1}) : fixed({7, -12, 0, 20, -3, 11, 1, -18, 5, 2, -9});
  const double product = shorter ? 16 : 200;
  using enum Attention::Mask;
  add_attention(list, type, {"none", "unit", 2, 5, 7, 8, 8, 0.25, None, drawn, drawn, {}, product});
  add_attention(list, type, {"no_scale", "unit", 2, 5, 7, 4, 3, 1, None, drawn, drawn, {}, product});
  add_attention(list, type, {"large_scale", "unit", 1, 4, 6, 4, 4, 2, None, drawn, drawn, {}, 2 * product});
  add_attention(list, type, {"none", "whole", 2, 6, 9, 8, 5, 0.25, None, whole, whole, {}, 32});
  add_attention(list, type, {"one_query", "whole", 3, 1, 12, 8, 8, 0.5, None, whole, whole, {}, 32});
  add_attention(list, type, {"add", "unit", 2, 5, 8, 8, 8, 0.25, Add, drawn, drawn, drawn, product});
  add_attention(list, type, {"add", "masked", 2, 5, 8, 8, 8, 0.25, Add, whole, whole, added, 32});
  add_attention(list, type, {"select", "masked", 2, 5, 8, 8, 8, 0.25, Select, whole, whole, bits, 32});
  // A row in which all keys are masked out gives all keys the same weight.
  add_attention(
      list, type,
      {"select_all", "masked", 1, 3, 4, 4, 4, 0.5, Select, whole, whole, fixed({0, 0, 0, 0, 1, 0, 1, 1}), 32});
  if (!shorter) add_attention(list, type, {"long", "unit", 1, 3, 65, 16, 16, 0.25, None, drawn, drawn, {}, 400});
}

void add_quantized_dot(CaseList& list, Type type, Type weights, int64_t m, int64_t k, int64_t n) {
  Writer w(type, {m, n});
  const std::string x = w.parameter(w.shape({m, k}), between(-1, 1));
  InputSpec numbers = between(-8, 7);
  if (hlo::type_info(weights).bits >= 8) numbers = between(-127, 127);
  const std::string integers = w.parameter(Shape::array(weights, {k, n}), numbers),
                    scale = w.parameter(w.row(), between(0.01, 2));
  const std::string wide = w.op(w.shape({k, n}), "convert", integers);
  const std::string product =
      w.line(w.whole(), fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x, wide));
  w.finish(list, "quantized_dot", fmt::format("{}_by_{}", k, type_name(weights)), "unit", w.whole(),
           fmt::format("multiply({}, {})", product, w.each(scale)), 12 + static_cast<double>(k));
}

}  // namespace

void add_pattern_cases(CaseList& list) {
  for (const Type type : {Type::F32, Type::BF16, Type::F16}) {
    std::vector<Dims> shapes = {{4, 8}, {1, 17}, {2, 3, 33}};
    // For longer rows the error of a sum in a 16-bit type is so large that a check would accept anything.
    if (!is_short(type)) shapes.insert(shapes.end(), {{7, 128}, {2, 1000}});
    if (!is_short(type) || list.full()) shapes.insert(shapes.end(), {{2, 2, 3, 2}, {1, 4, 9}, {3, 1, 2, 8}});
    for (const Dims& dims : shapes) {
      add_softmax(list, type, dims);
      add_norms(list, type, dims);
    }
    for (const Dims& dims : {Dims{4, 8}, Dims{300}, Dims{}}) {
      add_gelu(list, type, dims);
      add_silu_gate(list, type, dims);
    }
    add_attentions(list, type);
    for (const Type weights : {Type::S8, Type::S4, Type::U8}) {
      add_quantized_dot(list, type, weights, 4, 16, 7);
      add_quantized_dot(list, type, weights, 1, 33, 8);
      add_quantized_dot(list, type, weights, 5, 8, 2);
    }
  }
  // Larger than a scratchpad of 16 KiB.
  const size_t first = list.cases().size();
  add_softmax(list, Type::F32, {213, 130});
  add_norms(list, Type::F32, {213, 130});
  add_gelu(list, Type::F32, {213, 130});
  const InputSpec whole = fixed({7, -12, 0, 20, -3, 11, 1, -18, 5, 2, -9});
  add_attention(list, Type::F32, {"none", "unit", 2, 75, 70, 16, 24, 0.25, Attention::None, whole, whole, {}, 32});
  mark_tiled(list, first);
}

}  // namespace collet::conformance
