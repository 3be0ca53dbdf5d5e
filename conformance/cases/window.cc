// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/case.h"
#include "conformance/cases/pairwise.h"
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

struct Dimension {
  int64_t input, size;
  int64_t stride = 1, low = 0, high = 0, base_dilation = 1, window_dilation = 1;

  int64_t output() const {
    const int64_t dilated = input == 0 ? 0 : (input - 1) * base_dilation + 1;
    const int64_t room = dilated + low + high - ((size - 1) * window_dilation + 1);
    return room < 0 ? 0 : room / stride + 1;
  }
};

struct Row {
  std::string label;
  std::vector<Dimension> dims;
};

// clang-format off
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"17_by_3", {{17, 3}}},
      {"129_by_4_stride_2", {{129, 4, 2}}},
      {"17_padded", {{17, 5, 1, 2, 2}}},
      {"17_padded_unevenly", {{17, 3, 2, 0, 4}}},
      {"17_negative_padding", {{17, 3, 1, -2, -1}}},
      {"17_window_dilation", {{17, 3, 1, 1, 2, 1, 3}}},
      {"9_base_dilation", {{9, 3, 1, 1, 1, 2, 1}}},
      {"9_both_dilations", {{9, 3, 2, 2, 1, 2, 2}}},
      {"17_running", {{17, 17, 1, 16, 0}}},
      {"40_running_back", {{40, 40, 1, 0, 39}}},
      {"70_before", {{70, 70, 1, 70, -1}}},
      {"70_behind", {{70, 70, 1, -1, 70}}},
      {"70_running_on", {{70, 90, 1, 75, 60}}},
      {"columns_running", {{50, 50, 1, 49, 0}, {37, 1}}},
      {"rows_running_back", {{37, 1}, {50, 50, 1, 0, 49}}},
      {"plane_running", {{24, 24, 1, 23, 0}, {40, 40, 1, 0, 39}}},
      {"700_by_90", {{700, 90}}},
      {"700_by_90_padded", {{700, 90, 1, 60, 30}}},
      {"columns_of_400_by_100", {{400, 100, 1, 50, 49}, {5, 1}}},
      {"300_by_120_dilated", {{300, 120, 3, 80, 90, 2, 3}}},
      {"plane_20_by_9", {{20, 9, 1, 4, 4}, {20, 9, 2, 4, 4}}},
      {"pool_2x2", {{1, 1}, {8, 2, 2}, {10, 2, 2}, {3, 1}}},
      {"pool_3x3_overlapping", {{2, 1}, {9, 3, 2, 1, 1}, {7, 3, 2, 1, 1}, {5, 1}}},
      {"rows_of_5x65", {{5, 1}, {65, 3, 1, 1, 1}}},
      {"columns_of_65x5", {{65, 4, 3}, {5, 1}}},
      {"3d", {{5, 2}, {6, 3, 2, 1, 1}, {4, 2, 1, 1, 0}}},
      {"window_beyond", {{3, 5}}},
      {"1_by_1", {{1, 1}}},
      {"0_padded", {{0, 2, 1, 1, 2}}},
  };
  return kRows;
}
// clang-format on

Dims inputs(const Row& row) {
  Dims dims;
  for (const Dimension& d : row.dims) dims.push_back(d.input);
  return dims;
}

Dims outputs(const Row& row) {
  Dims dims;
  for (const Dimension& d : row.dims) dims.push_back(d.output());
  return dims;
}

double terms(const Row& row) {
  double n = 1;
  for (const Dimension& d : row.dims) n *= static_cast<double>(d.size);
  return n + 1;
}

std::string window_text(const Row& row) {
  std::string size, stride, pad, lhs_dilate, rhs_dilate;
  for (const Dimension& d : row.dims) {
    const char* x = size.empty() ? "" : "x";
    size += fmt::format("{}{}", x, d.size);
    stride += fmt::format("{}{}", x, d.stride);
    pad += fmt::format("{}{}_{}", x, d.low, d.high);
    lhs_dilate += fmt::format("{}{}", x, d.base_dilation);
    rhs_dilate += fmt::format("{}{}", x, d.window_dilation);
  }
  return fmt::format("window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={}}}", size, stride, pad, lhs_dilate,
                     rhs_dilate);
}

void add_reduce_window(CaseList& list, const Row& row, const char* body, Type type, double start, Values values) {
  Text text;
  const std::string combine = text.combiner(body, type);
  const std::string x = text.parameter(Shape::array(type, inputs(row)));
  const std::string init = text.parameter(Shape::scalar(type));
  const bool sum = std::string_view(body) == "add";
  const bool has_elements =
      std::all_of(row.dims.begin(), row.dims.end(), [](const Dimension& d) { return d.input > 0; });
  if (counts_initial_values(body) && has_elements) start = std::string_view(body) == "multiply" ? 1 : 0;
  Case one{fmt::format("reduce-window/{}/{}_{}/{}", type_name(type), body, row.label, values_name(values)),
           Op::REDUCE_WINDOW,
           type,
           "",
           {{.values = values, .low = hlo::is_integer(type) ? -9.0 : -1, .high = hlo::is_integer(type) ? 9.0 : 1},
            {.values = Values::Fixed, .fixed = {start}}},
           sum ? sum_bound(type, terms(row), false) : Bound{}};
  one.text = text.root(Shape::array(type, outputs(row)),
                       fmt::format("reduce-window({}, {}), {}, to_apply={}", x, init, window_text(row), combine));
  list.add(std::move(one));
}

// Adds a window reduction to the largest element and its index: two operands, one body.
void add_argmax_window(CaseList& list, const Row& row) {
  Text text;
  text.computation(
      "argmax",
      "  a = f32[] parameter(0)\n  i = s32[] parameter(1)\n  b = f32[] parameter(2)\n  j = s32[] parameter(3)\n"
      "  first = pred[] compare(a, b), direction=GE\n  v = f32[] select(first, a, b)\n"
      "  k = s32[] select(first, i, j)\n  ROOT r = (f32[], s32[]) tuple(v, k)\n");
  const std::string x = text.parameter(Shape::array(Type::F32, inputs(row))),
                    y = text.parameter(Shape::array(Type::S32, inputs(row)));
  const std::string least = text.parameter(Shape::scalar(Type::F32)), none = text.parameter(Shape::scalar(Type::S32));
  Case one{fmt::format("reduce-window/f32/argmax_{}/distinct", row.label),
           Op::REDUCE_WINDOW,
           Type::F32,
           "",
           {{.values = Values::Distinct},
            {.low = 0, .high = 99},
            {.values = Values::Fixed, .fixed = {-1000}},
            {.values = Values::Fixed, .fixed = {-1}}},
           {}};
  one.text =
      text.root(Shape::tuple({Shape::array(Type::F32, outputs(row)), Shape::array(Type::S32, outputs(row))}),
                fmt::format("reduce-window({}, {}, {}, {}), {}, to_apply=argmax", x, y, least, none, window_text(row)));
  list.add(std::move(one));
}

// With values of class Ties, the first of equal elements must be selected, which LT and GT leave open.
void add_select_and_scatter(CaseList& list, const Row& row, Type type, Values values,
                            std::string_view direction = "GE") {
  for (const Dimension& d : row.dims) {
    if (d.base_dilation != 1 || d.window_dilation != 1) return;
  }
  Text text;
  const std::string t(type_name(type));
  const std::string combine = text.combiner("add", type);
  text.computation(
      "select",
      fmt::format(
          "  a = {0}[] parameter(0)\n  b = {0}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction={1}\n", t,
          direction));
  const Shape operand = Shape::array(type, inputs(row));
  const std::string x = text.parameter(operand), source = text.parameter(Shape::array(type, outputs(row)));
  const std::string init = text.parameter(Shape::scalar(type));
  const double most = hlo::is_integer(type) ? 9 : 1;
  const std::string label = direction == "GE" ? row.label : fmt::format("{}_{}", direction, row.label);
  Case one{fmt::format("select-and-scatter/{}/{}/{}", t, label, values_name(values)),
           Op::SELECT_AND_SCATTER,
           type,
           "",
           {{.values = values, .low = -most, .high = most},
            {.low = -most, .high = most},
            {.values = Values::Fixed, .fixed = {0}}},
           sum_bound(type, terms(row), false)};
  one.bound.terms = hlo::is_float(type) ? terms(row) : 1;
  one.bound.signed_data = true;
  one.text = text.root(operand, fmt::format("select-and-scatter({}, {}, {}), {}, select=select, scatter={}", x, source,
                                            init, window_text(row), combine));
  list.add(std::move(one));
}

// Adds a program with `others` further values of other shapes: a compiler that stores values in a growing table may
// invalidate references to them while it adds to the table.
void add_select_and_scatter_beside(CaseList& list, int others) {
  Text text;
  const std::string combine = text.combiner("add", Type::S32);
  text.computation(
      "select", "  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE\n");
  const Shape operand = Shape::array(Type::S32, {3, 9, 7}), source = Shape::array(Type::S32, {3, 4, 5});
  const std::string x = text.parameter(operand), y = text.parameter(source),
                    z = text.parameter(Shape::scalar(Type::S32));
  Case one{fmt::format("select-and-scatter/s32/beside_{}_others/ties", others),
           Op::SELECT_AND_SCATTER,
           Type::S32,
           "",
           {{.values = Values::Ties}, {.low = -9, .high = 9}, {.values = Values::Fixed, .fixed = {0}}},
           {}};
  std::vector<Shape> shapes = {operand};
  std::string results =
      text.line(operand, fmt::format("select-and-scatter({}, {}, {}), window={{size=1x3x3 stride=1x2x1}}, "
                                     "select=select, scatter={}",
                                     x, y, z, combine));
  for (int i = 0; i < others; ++i) {
    shapes.push_back(Shape::array(Type::S32, {i + 1}));
    one.inputs.push_back({.low = -9, .high = 9});
    results += ", " + text.line(shapes.back(), fmt::format("negate({})", text.parameter(shapes.back())));
  }
  one.text = text.root(Shape::tuple(shapes), fmt::format("tuple({})", results));
  list.add(std::move(one));
}

struct Pair {
  Row row;
  const char* body;
  Type type;
};
Pair choose(Factors& factors) {
  Pair pair;
  for (const int64_t input : {11, 8}) {
    Dimension& d = pair.row.dims.emplace_back(Dimension{input, 1});
    d.size = factors.next<int64_t>({3, 1, 2, 5});
    d.stride = factors.next<int64_t>({1, 2, 3});
    d.low = factors.next<int64_t>({0, 2, -1, 4});
    d.high = factors.next<int64_t>({0, 1, -2, 3});
    d.base_dilation = factors.next<int64_t>({1, 2, 3});
    d.window_dilation = factors.next<int64_t>({1, 2});
  }
  pair.body = factors.next({"add", "maximum", "minimum"});
  pair.type = factors.next({Type::F32, Type::S32, Type::BF16, Type::F64, Type::S8, Type::U16});
  return pair;
}

// Chooses windows that each contain some element.
Pair choose_scatter(Factors& factors) {
  Pair pair;
  for (const int64_t input : {9, 7}) {
    Dimension& d = pair.row.dims.emplace_back(Dimension{input, 1});
    d.size = factors.next<int64_t>({3, 1, 2});
    d.stride = factors.next<int64_t>({1, 2, 3});
    d.low = std::min(factors.next<int64_t>({0, 1, 2, -1}), d.size - 1);
    d.high = std::min(factors.next<int64_t>({0, 1, -1}), d.size - 1);
  }
  pair.body = factors.next({"distinct", "ties"});
  pair.type = factors.next({Type::F32, Type::S32, Type::F64});
  return pair;
}

}  // namespace

void add_window_cases(CaseList& list) {
  for (const Row& row : rows()) {
    for (const Type type : {Type::F32, Type::S32, Type::F64, Type::BF16, Type::F16, Type::S8, Type::U32}) {
      add_reduce_window(list, row, "add", type, type == Type::F32 ? 0.5 : 0, Values::Unit);
      add_reduce_window(list, row, "maximum", type, hlo::is_unsigned(type) ? 0 : -100, Values::Unit);
    }
    add_reduce_window(list, row, "minimum", Type::F32, 0.25, Values::Ties);
    add_reduce_window(list, row, "multiply", Type::S32, 1, Values::Unit);
    add_reduce_window(list, row, "or", Type::PRED, 0, Values::Unit);
    add_reduce_window(list, row, "maximum", Type::F32, -3, Values::Edges);
    add_argmax_window(list, row);
    for (const Type type : {Type::F32, Type::S32, Type::F64}) {
      add_select_and_scatter(list, row, type, Values::Distinct);
      add_select_and_scatter(list, row, type, Values::Ties);
    }
    const bool is_chosen = row.label == "17_padded" || row.label == "pool_3x3_overlapping" || row.label == "700_by_90";
    for (const char* direction : {"LE", "LT", "GT"})
      for (const Type type : {Type::F32, Type::S32})
        if (is_chosen || list.full()) add_select_and_scatter(list, row, type, Values::Distinct, direction);
  }
  for (int others = 0; others < 16; ++others) add_select_and_scatter_beside(list, others);
  for_pairs(choose, [&](Pair pair, size_t number) {
    pair.row.label = fmt::format("pair{}", number);
    add_reduce_window(list, pair.row, pair.body, pair.type, 3, Values::Unit);
  });
  for_pairs(choose_scatter, [&](Pair pair, size_t number) {
    pair.row.label = fmt::format("pair{}", number);
    const bool distinct = std::string_view(pair.body) == "distinct";
    add_select_and_scatter(list, pair.row, pair.type, distinct ? Values::Distinct : Values::Ties);
  });
}

}  // namespace collet::conformance
