// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"
#include "conformance/cases/pairwise.h"
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

// One spatial dimension of a window.
struct Spatial {
  int64_t input, size;
  int64_t stride = 1, low = 0, high = 0, base_dilation = 1, window_dilation = 1;
  bool reversed = false;

  int64_t output() const {
    const int64_t dilated = input == 0 ? 0 : (input - 1) * base_dilation + 1;
    const int64_t window = size == 0 ? 0 : (size - 1) * window_dilation + 1;
    const int64_t room = dilated + low + high - window;
    return room < 0 ? 0 : room / stride + 1;
  }
};

struct Row {
  std::string label;
  std::string labels;  // dim_labels; the digits are spatial dimensions
  int64_t batch, features, outputs;
  std::vector<Spatial> spatial;
  int64_t feature_groups = 1, batch_groups = 1;
};

// clang-format off
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"3x3", "b01f_01io->b01f", 2, 5, 7, {{9, 3, 1, 1, 1}, {8, 3, 1, 1, 1}}},
      {"3x3_valid", "b01f_01io->b01f", 1, 3, 4, {{9, 3}, {10, 3}}},
      {"1x1", "b01f_01io->b01f", 2, 17, 15, {{5, 1}, {6, 1}}},
      {"7x7_stride_2", "b01f_01io->b01f", 1, 3, 8, {{17, 7, 2, 3, 3}, {19, 7, 2, 3, 3}}},
      {"asymmetric_padding", "b01f_01io->b01f", 1, 2, 3, {{7, 3, 1, 2, 0}, {8, 2, 1, 0, 3}}},
      {"negative_padding", "b01f_01io->b01f", 1, 2, 3, {{9, 3, 1, -1, -2}, {8, 3, 1, 1, -1}}},
      {"unequal_strides", "b01f_01io->b01f", 1, 2, 3, {{11, 3, 2, 1, 1}, {12, 3, 3, 0, 1}}},
      {"input_dilation", "b01f_01io->b01f", 1, 3, 2, {{5, 3, 1, 2, 2, 2, 1}, {6, 3, 1, 2, 1, 3, 1}}},
      {"window_dilation", "b01f_01io->b01f", 1, 3, 2, {{11, 3, 1, 0, 0, 1, 2}, {12, 3, 1, 2, 2, 1, 3}}},
      {"both_dilations", "b01f_01io->b01f", 1, 2, 2, {{7, 3, 2, 1, 2, 2, 2}, {6, 2, 1, 1, 1, 3, 2}}},
      {"reversed", "b01f_01io->b01f", 1, 2, 3, {{7, 3, 1, 1, 1, 1, 1, true}, {8, 3, 1, 1, 1, 1, 1, true}}},
      {"reversed_in_one", "b01f_01io->b01f", 1, 2, 3, {{7, 3, 1, 1, 1}, {8, 3, 1, 1, 1, 1, 1, true}}},
      {"nchw", "bf01_oi01->bf01", 2, 3, 4, {{7, 3, 1, 1, 1}, {8, 3, 1, 1, 1}}},
      {"batch_last", "f01b_i01o->01bf", 3, 4, 5, {{6, 2}, {7, 3, 1, 1, 1}}},
      {"spatial_turned", "b10f_01io->b01f", 1, 2, 3, {{6, 2}, {9, 4, 1, 1, 2}}},
      {"grouped", "b01f_01io->b01f", 1, 6, 9, {{6, 3, 1, 1, 1}, {6, 3, 1, 1, 1}}, 3, 1},
      {"depthwise", "b01f_01io->b01f", 2, 5, 5, {{7, 3, 1, 1, 1}, {7, 3, 2, 1, 1}}, 5, 1},
      {"depthwise_multiplied", "b01f_01io->b01f", 1, 4, 8, {{6, 3, 1, 1, 1}, {6, 3, 1, 1, 1}}, 4, 1},
      {"batch_grouped", "b01f_01io->b01f", 6, 4, 6, {{6, 3, 1, 1, 1}, {6, 3, 1, 1, 1}}, 1, 3},
      {"batch_grouped_fully", "b01f_01io->b01f", 4, 3, 4, {{5, 2}, {5, 2}}, 1, 4},
      {"one_dimension", "b0f_0io->b0f", 2, 3, 4, {{65, 5, 2, 2, 2}}},
      {"three_dimensions", "b012f_012io->b012f", 1, 2, 3, {{5, 2, 1, 1, 0}, {6, 3, 2, 1, 1}, {4, 2}}},
      {"four_dimensions", "b0123f_0123io->b0123f", 2, 2, 3, {{3, 2, 1, 1, 0}, {4, 2, 2}, {2, 1}, {3, 2}}},
      {"many_outputs", "b0f_0io->b0f", 1, 2, 300, {{3, 2}}},
      {"no_dimension", "bf_io->bf", 5, 17, 7, {}},
      {"whole_window", "b01f_01io->b01f", 2, 3, 4, {{5, 5}, {6, 6}}},
      {"window_beyond", "b01f_01io->b01f", 1, 2, 3, {{2, 5}, {6, 3}}},
      {"channels_130_to_70", "b01f_01io->b01f", 1, 130, 70, {{4, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}},
      {"depthwise_130", "b01f_01io->b01f", 1, 130, 130, {{4, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}, 130, 1},
      {"one_result", "b01f_01io->b01f", 1, 3, 1, {{3, 3}, {4, 4}}},
      {"many_results", "b01f_01io->b01f", 1, 2, 9, {{85, 2}, {88, 2}}},
      {"large_image", "b01f_01io->b01f", 1, 1, 2, {{67, 3, 1, 1, 1}, {129, 3, 2, 1, 1}}},
      {"empty_batch", "b01f_01io->b01f", 0, 2, 3, {{5, 3}, {6, 3}}},
      {"no_features", "b01f_01io->b01f", 1, 0, 3, {{5, 3}, {6, 3}}},
  };
  return kRows;
}
// clang-format on

// Returns the dimensions in the order of `labels`; the letters `a` and `b` stand for the first two sizes.
Dims ordered(std::string_view labels, char a, int64_t size_a, char b, int64_t size_b, const Dims& spatial) {
  Dims dims;
  for (const char c : labels) {
    dims.push_back(c == a ? size_a : c == b ? size_b : spatial[static_cast<size_t>(c - '0')]);
  }
  return dims;
}

std::string window_text(const Row& row) {
  std::string size, stride, pad, lhs_dilate, rhs_dilate, reversal;
  for (const Spatial& s : row.spatial) {
    const char* x = size.empty() ? "" : "x";
    size += fmt::format("{}{}", x, s.size);
    stride += fmt::format("{}{}", x, s.stride);
    pad += fmt::format("{}{}_{}", x, s.low, s.high);
    lhs_dilate += fmt::format("{}{}", x, s.base_dilation);
    rhs_dilate += fmt::format("{}{}", x, s.window_dilation);
    reversal += fmt::format("{}{}", x, s.reversed ? 1 : 0);
  }
  if (size.empty()) return "";
  return fmt::format(", window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}", size, stride,
                     pad, lhs_dilate, rhs_dilate, reversal);
}

void add_convolution(CaseList& list, const Row& row, Type type, Type result, Values values,
                     std::string_view precision = {}) {
  const std::string_view labels = row.labels;
  const size_t underscore = labels.find('_'), arrow = labels.find("->");
  Dims inputs, windows, outputs;
  double terms = static_cast<double>(row.features / row.feature_groups);
  for (const Spatial& s : row.spatial) {
    inputs.push_back(s.input);
    windows.push_back(s.size);
    outputs.push_back(s.output());
    terms *= static_cast<double>(s.size);
  }
  Text text;
  const std::string lhs = text.parameter(
      Shape::array(type, ordered(labels.substr(0, underscore), 'b', row.batch, 'f', row.features, inputs)));
  const std::string rhs =
      text.parameter(Shape::array(type, ordered(labels.substr(underscore + 1, arrow - underscore - 1), 'i',
                                                row.features / row.feature_groups, 'o', row.outputs, windows)));
  std::string attributes = window_text(row) + fmt::format(", dim_labels={}", labels);
  if (row.feature_groups > 1) attributes += fmt::format(", feature_group_count={}", row.feature_groups);
  if (row.batch_groups > 1) attributes += fmt::format(", batch_group_count={}", row.batch_groups);
  if (!precision.empty()) attributes += fmt::format(", operand_precision={{{0},{0}}}", precision);
  std::string types(type_name(type));
  if (result != type) types += fmt::format("_to_{}", type_name(result));
  Case one{fmt::format("convolution/{}/{}{}{}/{}", types, row.label, precision.empty() ? "" : "_", precision,
                       values_name(values)),
           Op::CONVOLUTION,
           type,
           "",
           {},
           sum_bound(result, terms)};
  one.text = text.root(Shape::array(result, ordered(labels.substr(arrow + 2), 'b', row.batch / row.batch_groups, 'f',
                                                    row.outputs, outputs)),
                       fmt::format("convolution({}, {}){}", lhs, rhs, attributes));
  const double most = hlo::is_integer(type) ? 9 : 1;
  one.inputs = {{.values = values, .low = -most, .high = most}, {.values = values, .low = -most, .high = most}};
  list.add(std::move(one));
}

// Adds convolutions with constant inputs: ones, and a single element. The padding must still be zero.
void add_constant_inputs(CaseList& list, Type type) {
  const std::string_view t = type_name(type);
  const Shape kernel = Shape::array(type, {3, 2, 2, 3});
  Text text;
  const std::string ones =
      text.line(Shape::array(type, {1, 5, 6, 2}),
                fmt::format("broadcast({}), dimensions={{}}", text.line(Shape::scalar(type), "constant(1)")));
  const std::string rhs = text.parameter(kernel);
  Case one{fmt::format("convolution/{}/input_of_ones/unit", t),
           Op::CONVOLUTION,
           type,
           "",
           {{.low = -1, .high = 1}},
           sum_bound(type, 12)};
  one.text = text.root(
      Shape::array(type, {1, 6, 7, 3}),
      fmt::format("convolution({}, {}), window={{size=3x2 pad=2_1x1_1}}, dim_labels=b01f_01io->b01f", ones, rhs));
  list.add(std::move(one));
  Text small;
  const Shape single = Shape::array(type, {1, 1, 1});
  const std::string x = small.line(single, "constant({{{3}}})"), y = small.parameter(single);
  Case two{fmt::format("convolution/{}/input_of_one_constant/unit", t),
           Op::CONVOLUTION,
           type,
           "",
           {{.low = -1, .high = 1}},
           sum_bound(type, 1)};
  two.text =
      small.root(Shape::array(type, {1, 2, 1}),
                 fmt::format("convolution({}, {}), window={{size=1 stride=2 pad=2_0}}, dim_labels=b0f_0io->b0f", x, y));
  list.add(std::move(two));
}

// Adds a convolution in a program with `others` further values of other shapes (see add_select_and_scatter_beside in
// window.cc). Base dilation and padding may make a compiler create a copy of the input.
void add_beside(CaseList& list, int others) {
  Text text;
  const Shape lhs = Shape::array(Type::S32, {2, 5, 6, 3}), rhs = Shape::array(Type::S32, {3, 3, 3, 4}),
              result = Shape::array(Type::S32, {2, 11, 13, 4});
  const std::string x = text.parameter(lhs), y = text.parameter(rhs);
  const InputSpec drawn{.low = -9, .high = 9};
  Case one{
      fmt::format("convolution/s32/beside_{}_others/unit", others), Op::CONVOLUTION, Type::S32, "", {drawn, drawn}, {}};
  std::vector<Shape> shapes = {result};
  std::string results = text.line(
      result,
      fmt::format("convolution({}, {}), window={{size=3x3 pad=2_2x2_2 lhs_dilate=2x2}}, dim_labels=b01f_01io->b01f", x,
                  y));
  for (int i = 0; i < others; ++i) {
    shapes.push_back(Shape::array(Type::S32, {i + 1}));
    one.inputs.push_back(drawn);
    results += ", " + text.line(shapes.back(), fmt::format("negate({})", text.parameter(shapes.back())));
  }
  one.text = text.root(Shape::tuple(shapes), fmt::format("tuple({})", results));
  list.add(std::move(one));
}

struct Pair {
  Row row;
  Type type, result;
};
Pair choose(Factors& factors) {
  Pair pair;
  Row& row = pair.row;
  for (const int64_t input : {9, 10}) {
    Spatial& s = row.spatial.emplace_back(Spatial{input, 1});
    s.size = factors.next<int64_t>({3, 1, 2, 4});
    s.stride = factors.next<int64_t>({1, 2, 3});
    s.low = factors.next<int64_t>({0, 2, -1});
    s.high = factors.next<int64_t>({0, 1, -2, 3});
    s.base_dilation = factors.next<int64_t>({1, 2, 3});
    s.window_dilation = factors.next<int64_t>({1, 2});
    s.reversed = factors.next({false, true});
  }
  row.labels = factors.next<std::string_view>({"b01f_01io->b01f", "bf01_oi01->bf01", "f01b_i01o->01bf",
                                               "b10f_10io->b01f", "01bf_io01->f01b", "0b1f_o01i->bf10"});
  struct Groups {
    int64_t batch, features, outputs, feature_groups, batch_groups;
  };
  const Groups groups =
      factors.next<Groups>({{2, 3, 4, 1, 1}, {1, 4, 6, 2, 1}, {2, 3, 6, 3, 1}, {4, 2, 6, 1, 2}, {3, 1, 3, 1, 3}});
  row.batch = groups.batch;
  row.features = groups.features;
  row.outputs = groups.outputs;
  row.feature_groups = groups.feature_groups;
  row.batch_groups = groups.batch_groups;
  pair.type = factors.next({Type::F32, Type::BF16, Type::S32, Type::C64, Type::F64, Type::S8});
  pair.result = pair.type == Type::S8 ? Type::S32 : pair.type;
  return pair;
}

}  // namespace

void add_convolution_cases(CaseList& list) {
  for (const Type type : {Type::F32, Type::S32, Type::BF16}) add_constant_inputs(list, type);
  for (const Row& row : rows()) {
    for (const Type type : {Type::F32, Type::BF16, Type::F16, Type::F64, Type::S32})
      add_convolution(list, row, type, type, Values::Unit);
    add_convolution(list, row, Type::S8, Type::S32, Values::Unit);
    add_convolution(list, row, Type::BF16, Type::F32, Values::Unit);
    if (row.label == "3x3_valid") add_convolution(list, row, Type::S4, Type::S4, Values::Unit);
    if (row.spatial.size() == 2) add_convolution(list, row, Type::C64, Type::C64, Values::Unit);
  }
  // Without an attribute f32 is computed as f32, so that no precision asks for less.
  for (const char* precision : {"default", "high", "highest"})
    add_convolution(list, rows()[0], Type::F32, Type::F32, Values::Unit, precision);
  for (int others = 0; others < 16; ++others) add_beside(list, others);
  for_pairs(choose, [&](Pair pair, size_t number) {
    pair.row.label = fmt::format("pair{}", number);
    add_convolution(list, pair.row, pair.type, pair.result, Values::Unit);
  });
}

}  // namespace collet::conformance
