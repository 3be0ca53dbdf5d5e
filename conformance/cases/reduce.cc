// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

struct Row {
  const char* label;
  Dims operand, over;
};

// clang-format off
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"129_all", {129}, {0}},           {"1_all", {1}, {0}},             {"0_all", {0}, {0}},
      {"15_all", {15}, {0}},             {"16_all", {16}, {0}},           {"17_all", {17}, {0}},
      {"5x65_rows", {5, 65}, {1}},       {"5x65_columns", {5, 65}, {0}},  {"5x65_all", {5, 65}, {0, 1}},
      {"65x5_rows", {65, 5}, {1}},       {"3x7x5_middle", {3, 7, 5}, {1}},{"3x7x5_ends", {3, 7, 5}, {0, 2}},
      {"3x7x5_first_two", {3, 7, 5}, {0, 1}}, {"2x3x4x5_by_13", {2, 3, 4, 5}, {1, 3}}, {"3x0_rows", {3, 0}, {1}},
      {"0x3_rows", {0, 3}, {1}},         {"5x7_none", {5, 7}, {}},        {"2051_all", {2051}, {0}},
      {"1x129_rows", {1, 129}, {1}},     {"scalar_none", {}, {}},
  };
  return kRows;
}
// clang-format on

Dims kept(const Row& row) {
  Dims dims;
  for (size_t d = 0; d < row.operand.size(); ++d) {
    bool over = false;
    for (const int64_t dim : row.over) over |= dim == static_cast<int64_t>(d);
    if (!over) dims.push_back(row.operand[d]);
  }
  return dims;
}

bool has_elements(const Row& row) {
  return std::find(row.operand.begin(), row.operand.end(), 0) == row.operand.end();
}

double terms(const Row& row) {
  double n = 1;
  for (const int64_t d : row.over) n *= static_cast<double>(row.operand[static_cast<size_t>(d)]);
  return n + 1;
}

// The neutral element of `body` for the random inputs of these cases.
double neutral(std::string_view body, Type type) {
  if (body == "multiply") return 1;
  if (body == "maximum") return hlo::is_unsigned(type) ? 0 : -100;
  if (body == "minimum") return 100;
  return body == "and" ? -1 : 0;
}

// `start` is the initial value where it need not be neutral. In a reduction over no dimension it must be: whether that combines
// the initial value is undefined.
void add_reduce(CaseList& list, const Row& row, const char* body, Type type, double start, Values values) {
  if (row.over.empty() || (counts_initial_values(body) && has_elements(row))) start = neutral(body, type);
  Text text;
  const std::string combine = text.combiner(body, type);
  const std::string x = text.parameter(Shape::array(type, row.operand));
  const std::string init = text.parameter(Shape::scalar(type));
  const bool sum = std::string_view(body) == "add" || std::string_view(body) == "multiply";
  Case one{fmt::format("reduce/{}/{}_{}/{}", type_name(type), body, row.label, values_name(values)),
           Op::REDUCE,
           type,
           "",
           {},
           sum ? sum_bound(type, terms(row), false) : Bound{}};
  one.text = text.root(Shape::array(type, kept(row)),
                       fmt::format("reduce({}, {}), dimensions={}, to_apply={}", x, init, braces(row.over), combine));
  InputSpec spec{.values = values};
  if (hlo::is_integer(type)) spec = {.values = values, .low = -9, .high = 9};
  if (std::string_view(body) == "multiply" && !hlo::is_integer(type)) spec = {.low = 0.75, .high = 1.25};
  one.inputs = {spec, {.values = Values::Fixed, .fixed = {start}}};
  list.add(std::move(one));
}

void add_bodies(CaseList& list, const Row& row) {
  for (const Type type : types_of(hlo::TypeSet::NUMBER)) {
    const bool short_float = type == Type::BF16 || type == Type::F16;
    if (short_float && terms(row) > 40) continue;  // the error bound would be larger than the result
    add_reduce(list, row, "add", type, 0.5, Values::Unit);
    if (hlo::is_integer(type)) add_reduce(list, row, "add", type, 1, Values::Large);
    if (terms(row) < 40) add_reduce(list, row, "multiply", type, 2, Values::Unit);
  }
  for (const Type type : types_of(hlo::TypeSet::REAL)) {
    const double least = hlo::is_unsigned(type) ? 0 : -2;
    add_reduce(list, row, "maximum", type, least, Values::Unit);
    add_reduce(list, row, "minimum", type, 3, Values::Unit);
    add_reduce(list, row, "maximum", type, least, Values::Ties);
  }
  for (const Type type : types_of(hlo::TypeSet::INTEGER_PRED)) {
    add_reduce(list, row, "and", type, type == Type::PRED ? 1 : 127, Values::Large);
    add_reduce(list, row, "or", type, 0, Values::Large);
    add_reduce(list, row, "xor", type, 1, Values::Large);
  }
}

// The result of maximum and minimum is NaN if any element is NaN.
void add_nan(CaseList& list) {
  for (const char* body : {"maximum", "minimum"}) {
    Text text;
    const std::string combine = text.combiner(body, Type::F32);
    const std::string x = text.parameter(Shape::array(Type::F32, {22, 22})),
                      init = text.parameter(Shape::scalar(Type::F32));
    Case one{fmt::format("reduce/f32/{}_22x22_rows/edges", body),
             Op::REDUCE,
             Type::F32,
             "",
             {{.values = Values::Edges}, {.values = Values::Fixed, .fixed = {0.25}}},
             {}};
    one.text = text.root(Shape::array(Type::F32, {22}),
                         fmt::format("reduce({}, {}), dimensions={{1}}, to_apply={}", x, init, combine));
    list.add(std::move(one));
  }
}

// Adds a reduction to the index of the largest element: two operands, one body.
void add_argmax(CaseList& list, Type type, const Row& row, Values values) {
  Text text;
  const std::string t(type_name(type));
  text.computation("argmax",
                   fmt::format("  a = {0}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {0}[] parameter(2)\n"
                               "  j = s32[] parameter(3)\n  gt = pred[] compare(a, b), direction=GT\n"
                               "  eq = pred[] compare(a, b), direction=EQ\n  lt = pred[] compare(i, j), direction=LT\n"
                               "  both = pred[] and(eq, lt)\n  first = pred[] or(gt, both)\n"
                               "  v = {0}[] select(first, a, b)\n  k = s32[] select(first, i, j)\n"
                               "  ROOT r = ({0}[], s32[]) tuple(v, k)\n",
                               t));
  const std::string x = text.parameter(Shape::array(type, row.operand));
  const std::string least = text.parameter(Shape::scalar(type)), far = text.parameter(Shape::scalar(Type::S32));
  const Shape index = Shape::array(Type::S32, row.operand);
  const std::string iota =
      text.line(index, fmt::format("iota(), iota_dimension={}", row.over.empty() ? 0 : row.over[0]));
  Case one{fmt::format("reduce/{}/argmax_{}/{}", t, row.label, values_name(values)), Op::REDUCE, type, "", {}, {}};
  one.inputs = {{.values = values, .low = -9, .high = 9},
                {.values = Values::Fixed, .fixed = {hlo::is_unsigned(type) ? 0.0 : -100}},
                {.values = Values::Fixed, .fixed = {1000000}}};
  one.text = text.root(
      Shape::tuple({Shape::array(type, kept(row)), Shape::array(Type::S32, kept(row))}),
      fmt::format("reduce({}, {}, {}, {}), dimensions={}, to_apply=argmax", x, iota, least, far, braces(row.over)));
  list.add(std::move(one));
}

// Adds a reduction of two operands, one of whose results is then reversed.
void add_reduced_and_reversed(CaseList& list, const Dims& dims) {
  Text text;
  text.computation(
      "largest",
      "  a = s32[] parameter(0)\n  i = s32[] parameter(1)\n  b = s32[] parameter(2)\n  j = s32[] parameter(3)\n"
      "  v = s32[] maximum(a, b)\n  k = s32[] maximum(i, j)\n  ROOT r = (s32[], s32[]) tuple(v, k)\n");
  const Shape whole = Shape::array(Type::S32, dims), scalar = Shape::scalar(Type::S32),
              kept = Shape::array(Type::S32, Dims(dims.begin(), dims.end() - 1)), pair = Shape::tuple({kept, kept});
  const std::string x = text.parameter(whole), y = text.parameter(whole), least = text.parameter(scalar);
  const std::string both = text.line(pair, fmt::format("reduce({}, {}, {}, {}), dimensions={{{}}}, to_apply=largest", x,
                                                       y, least, least, dims.size() - 1));
  const std::string first = text.line(kept, fmt::format("get-tuple-element({}), index=0", both)),
                    second = text.line(kept, fmt::format("get-tuple-element({}), index=1", both)),
                    turned = text.line(kept, fmt::format("reverse({}), dimensions={{0}}", second));
  list.add({fmt::format("reduce/s32/pair_{}_and_reversed/unit", dims_name(dims)),
            Op::REDUCE,
            Type::S32,
            text.root(pair, fmt::format("tuple({}, {})", first, turned)),
            {{.low = -9, .high = 9}, {.low = -9, .high = 9}, {.values = Values::Fixed, .fixed = {-100}}},
            {}});
}

void add_map(CaseList& list, Type type, const Dims& dims) {
  Text text;
  const std::string t(type_name(type));
  text.computation("body", fmt::format("  a = {0}[] parameter(0)\n  b = {0}[] parameter(1)\n  m = {0}[] maximum(a, b)\n"
                                       "  ROOT r = {0}[] subtract(m, b)\n",
                                       t));
  const Shape shape = Shape::array(type, dims);
  const std::string x = text.parameter(shape), y = text.parameter(shape);
  std::vector<int64_t> all(dims.size());
  for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int64_t>(d);
  Case one{fmt::format("map/{}/{}/unit", t, dims_name(dims)), Op::MAP, type, "",
           {{.low = -9, .high = 9}, {.low = -9, .high = 9}},  {}};
  one.text = text.root(shape, fmt::format("map({}, {}), dimensions={}, to_apply=body", x, y, braces(all)));
  list.add(std::move(one));
}

// Long sums and prefix sums of data on which rounding errors add up: constants, signs that alternate, and sorted numbers.
void add_drift(CaseList& list, const Row& row, bool prefix) {
  const int64_t n = row.operand[static_cast<size_t>(row.over[0])];
  std::vector<double> rising;
  for (int64_t i = 0; i < n; ++i) rising.push_back(0.5 + 0.5 * static_cast<double>(i) / static_cast<double>(n));
  const std::vector<double> falling(rising.rbegin(), rising.rend());
  const std::pair<const char*, std::vector<double>> data[] = {
      {"constant", {0.1}}, {"alternating", {1.1, -0.1}}, {"rising", rising}, {"falling", falling}};
  for (const auto& [label, values] : data) {
    Text text;
    const std::string combine = text.combiner("add", Type::F32);
    const std::string x = text.parameter(Shape::array(Type::F32, row.operand));
    const std::string init = text.parameter(Shape::scalar(Type::F32));
    Case one{fmt::format("{}/f32/long_{}/{}", prefix ? "reduce-window" : "reduce", row.label, label),
             prefix ? Op::REDUCE_WINDOW : Op::REDUCE,
             Type::F32,
             "",
             {},
             sum_bound(Type::F32, kBlockedTerms, false)};
    const std::string last = fmt::format("to_apply={}", combine);
    if (prefix) {
      std::string size, pad;
      for (size_t d = 0; d < row.operand.size(); ++d) {
        const bool over = static_cast<int64_t>(d) == row.over[0];
        size += fmt::format("{}{}", d ? "x" : "", over ? n : 1);
        pad += fmt::format("{}{}_0", d ? "x" : "", over ? n - 1 : 0);
      }
      one.text =
          text.root(Shape::array(Type::F32, row.operand),
                    fmt::format("reduce-window({}, {}), window={{size={} pad={}}}, {}", x, init, size, pad, last));
    } else {
      one.text = text.root(Shape::array(Type::F32, kept(row)),
                           fmt::format("reduce({}, {}), dimensions={}, {}", x, init, braces(row.over), last));
    }
    one.inputs = {{.values = Values::Fixed, .fixed = values}, {.values = Values::Fixed, .fixed = {0}}};
    list.add(std::move(one));
  }
}

}  // namespace

void add_reduce_cases(CaseList& list) {
  for (const Row& row : rows()) {
    add_bodies(list, row);
    if (row.over.size() != 1) continue;
    for (const Type type : {Type::F32, Type::S32, Type::BF16}) {
      add_argmax(list, type, row, Values::Unit);
      add_argmax(list, type, row, Values::Ties);
    }
  }
  // More elements than 16 bits can count, and five dimensions.
  for (const Row& row : {Row{"70001_all", {70001}, {0}}, Row{"300x257_rows", {300, 257}, {1}},
                         Row{"300x257_columns", {300, 257}, {0}}, Row{"3x70001_columns", {3, 70001}, {0}},
                         Row{"2x3x1x2x2x3_by_3", {2, 3, 1, 2, 2, 3}, {3}}, Row{"4097x3_columns", {4097, 3}, {0}},
                         Row{"3x8191_rows", {3, 8191}, {1}}, Row{"2x3x2x4x3_by_024", {2, 3, 2, 4, 3}, {0, 2, 4}}}) {
    for (const Type type : {Type::F32, Type::S32}) {
      add_reduce(list, row, "add", type, type == Type::F32 ? 0.5 : 1, Values::Unit);
      add_reduce(list, row, "maximum", type, -2, Values::Unit);
    }
  }
  for (const Type type : {Type::S4, Type::U4, Type::F8E4M3FN, Type::F8E5M2}) {
    const Row row{"5x3_rows", {5, 3}, {1}}, last{"3x3x3_last", {3, 3, 3}, {2}};
    if (hlo::is_integer(type)) add_reduce(list, row, "add", type, 1, Values::Edges);
    add_reduce(list, row, "maximum", type, 0, Values::Unit);
    add_reduce(list, last, "minimum", type, 1, Values::Edges);
  }
  for (const Type type : {Type::F32, Type::S32})
    add_reduce(list, {"2x1x2x3x1x2x3_by_3", {2, 1, 2, 3, 1, 2, 3}, {3}}, "add", type, 1, Values::Unit);
  if (list.full()) {
    for (const Row& row : {Row{"300001_all", {300001}, {0}}, Row{"2x100003_rows", {2, 100003}, {1}},
                           Row{"50021x3_columns", {50021, 3}, {0}}})
      add_drift(list, row, false);
    for (const Row& row : {Row{"20011_all", {20011}, {0}}, Row{"2x10007_rows", {2, 10007}, {1}},
                           Row{"10007x3_columns", {10007, 3}, {0}}})
      add_drift(list, row, true);
  }
  add_nan(list);
  for (const Dims& dims : {Dims{5, 7}, Dims{2, 1, 1}, Dims{3, 4, 5}, Dims{17, 33}, Dims{6, 1}})
    add_reduced_and_reversed(list, dims);
  for (const Type type : {Type::F32, Type::S32, Type::F64, Type::BF16}) {
    for (const Dims& dims : {Dims{}, Dims{17}, Dims{5, 65}, Dims{0}}) add_map(list, type, dims);
  }
}

}  // namespace collet::conformance
