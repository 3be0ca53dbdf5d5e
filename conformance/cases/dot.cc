// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/pairwise.h"
#include "conformance/cases/types.h"
#include "hlo/ops/constraint.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

struct Row {
  std::string label;
  Dims lhs, rhs, lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
};

// clang-format off
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"17x63_63x5", {17, 63}, {63, 5}, {}, {}, {1}, {0}},
      {"1x1_1x1", {1, 1}, {1, 1}, {}, {}, {1}, {0}},
      {"64x64_64x64", {64, 64}, {64, 64}, {}, {}, {1}, {0}},
      {"65x127_127x129", {65, 127}, {127, 129}, {}, {}, {1}, {0}},
      {"16x16_16x16_lhs_turned", {16, 16}, {16, 16}, {}, {}, {0}, {0}},
      {"16x16_16x16_rhs_turned", {16, 16}, {16, 16}, {}, {}, {1}, {1}},
      {"16x16_16x16_both_turned", {16, 16}, {16, 16}, {}, {}, {0}, {1}},
      {"15x33_17x33_rhs_turned", {15, 33}, {17, 33}, {}, {}, {1}, {1}},
      {"33x15_33x17_lhs_turned", {33, 15}, {33, 17}, {}, {}, {0}, {0}},
      {"vectors_129", {129}, {129}, {}, {}, {0}, {0}},
      {"matrix_vector", {31, 65}, {65}, {}, {}, {1}, {0}},
      {"vector_matrix", {65}, {65, 31}, {}, {}, {0}, {0}},
      {"outer", {7}, {9}, {}, {}, {}, {}},
      {"scalars", {}, {}, {}, {}, {}, {}},
      {"scalar_times_matrix", {}, {5, 7}, {}, {}, {}, {}},
      {"no_depth", {5, 0}, {0, 7}, {}, {}, {1}, {0}},
      {"no_rows", {0, 5}, {5, 7}, {}, {}, {1}, {0}},
      {"batch_2x3x5", {2, 3, 5}, {2, 5, 7}, {0}, {0}, {2}, {1}},
      {"batch_last", {3, 5, 4}, {5, 7, 4}, {2}, {2}, {1}, {0}},
      {"two_batches", {2, 3, 5, 7}, {2, 3, 7, 4}, {0, 1}, {0, 1}, {3}, {2}},
      {"two_batches_swapped", {2, 3, 5, 7}, {3, 2, 7, 4}, {0, 1}, {1, 0}, {3}, {2}},
      {"two_contracting", {5, 3, 4}, {3, 4, 7}, {}, {}, {1, 2}, {0, 1}},
      {"two_contracting_swapped", {5, 3, 4}, {4, 3, 7}, {}, {}, {1, 2}, {1, 0}},
      {"contracting_order_reversed", {5, 3, 4}, {4, 3, 7}, {}, {}, {2, 1}, {0, 1}},
      {"free_on_both_sides", {2, 9, 3}, {4, 9, 5}, {}, {}, {1}, {1}},
      {"batch_alone", {6, 5}, {6, 5}, {0, 1}, {0, 1}, {}, {}},
      {"flat_1x2051", {1, 2051}, {2051, 3}, {}, {}, {1}, {0}},
      // Several dimensions of equal size, which only their numbers distinguish.
      {"equal_batches", {3, 3, 5, 7}, {3, 3, 7, 4}, {0, 1}, {0, 1}, {3}, {2}},
      {"equal_batches_swapped", {3, 3, 5, 7}, {3, 3, 7, 4}, {0, 1}, {1, 0}, {3}, {2}},
      {"equal_free", {4, 4, 9}, {9, 5, 5}, {}, {}, {2}, {0}},
      {"equal_contracting_swapped", {5, 4, 4}, {4, 4, 7}, {}, {}, {1, 2}, {1, 0}},
      {"cubes", {4, 4, 4}, {4, 4, 4}, {1}, {2}, {0}, {1}},
      // More than 256 rows, columns, steps of the depth, or batches; then batches in four dimensions, and none.
      {"300x70_70x257", {300, 70}, {70, 257}, {}, {}, {1}, {0}},
      {"3x1025_1025x5", {3, 1025}, {1025, 5}, {}, {}, {1}, {0}},
      {"257_batches", {257, 3, 2}, {257, 2, 3}, {0}, {0}, {2}, {1}},
      {"four_batches", {2, 1, 3, 2, 3, 4}, {2, 1, 3, 2, 4, 2}, {0, 1, 2, 3}, {0, 1, 2, 3}, {5}, {4}},
      {"empty_batch", {0, 3, 5}, {0, 5, 7}, {0}, {0}, {2}, {1}},
  };
  return kRows;
}
// clang-format on

Dims result_dims(const Row& row) {
  Dims dims;
  for (const int64_t d : row.lhs_batch) dims.push_back(row.lhs[static_cast<size_t>(d)]);
  for (size_t d = 0; d < row.lhs.size(); ++d) {
    if (!hlo::contains(row.lhs_batch, d) && !hlo::contains(row.lhs_contracting, d)) dims.push_back(row.lhs[d]);
  }
  for (size_t d = 0; d < row.rhs.size(); ++d) {
    if (!hlo::contains(row.rhs_batch, d) && !hlo::contains(row.rhs_contracting, d)) dims.push_back(row.rhs[d]);
  }
  return dims;
}

double depth(const Row& row) {
  double terms = 1;
  for (const int64_t d : row.lhs_contracting) terms *= static_cast<double>(row.lhs[static_cast<size_t>(d)]);
  return terms;
}

struct Types {
  Type lhs, rhs, result;
};

void add_dot(CaseList& list, const Row& row, const Types& types, Values values, std::string_view extra = {},
             std::string_view extra_label = {}) {
  Text text;
  const std::string lhs = text.parameter(Shape::array(types.lhs, row.lhs));
  const std::string rhs = text.parameter(Shape::array(types.rhs, row.rhs));
  std::string mixed(type_name(types.lhs));
  if (types.rhs != types.lhs) mixed += fmt::format("_{}", type_name(types.rhs));
  if (types.result != types.lhs) mixed += fmt::format("_to_{}", type_name(types.result));
  Case one{fmt::format("dot/{}/{}{}/{}", mixed, row.label, extra_label, values_name(values)),
           Op::DOT,
           types.lhs,
           "",
           {},
           sum_bound(types.result, depth(row))};
  std::string attributes;
  const auto list_of = [&](const char* name, const Dims& dims) {
    if (!dims.empty()) attributes += fmt::format(", {}={}", name, braces(dims));
  };
  list_of("lhs_batch_dims", row.lhs_batch);
  list_of("lhs_contracting_dims", row.lhs_contracting);
  list_of("rhs_batch_dims", row.rhs_batch);
  list_of("rhs_contracting_dims", row.rhs_contracting);
  one.text = text.root(Shape::array(types.result, result_dims(row)),
                       fmt::format("dot({}, {}){}{}", lhs, rhs, attributes, extra));
  const double most = hlo::is_integer(types.lhs) ? 9 : 1;
  one.inputs = {{.values = values, .low = -most, .high = most}, {.values = values, .low = -most, .high = most}};
  list.add(std::move(one));
}

// Algorithms that round operands to a shorter type, with whole numbers that every such type has, and sums that f32 has: all of
// them give the exact result.
void add_algorithms(CaseList& list) {
  const Row& row = rows()[0];
  const Types f32{Type::F32, Type::F32, Type::F32};
  for (const char* algorithm : {"dot_f16_f16_f32", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6",
                                "dot_bf16_bf16_f32_x9", "dot_tf32_tf32_f32", "dot_tf32_tf32_f32_x3"}) {
    const size_t first = list.cases().size();
    add_dot(list, row, f32, Values::Fixed, fmt::format(", algorithm={}", algorithm), fmt::format("_{}", algorithm));
    list.cases()[first].inputs[0].fixed = {7, -3, 15, 1, 0, -12, 5, 9, -8, 13, 4};
    list.cases()[first].inputs[1].fixed = {11, 6, -13, 2, 14, -1, 4};
  }
  // Other numbers, which these types do not have. In sums of few terms an algorithm that rounds more than it should is seen best.
  struct Algorithm {
    hlo::Algorithm algorithm;
    const char* name;
    Types types;
  };
  using enum hlo::Algorithm;
  const Types f16{Type::F16, Type::F16, Type::F16}, bf16{Type::BF16, Type::BF16, Type::BF16},
      f64{Type::F64, Type::F64, Type::F64}, f8{Type::F8E4M3FN, Type::F8E4M3FN, Type::F32};
  const Algorithm all[] = {{F16_F16_F32, "f16_f16_f32", f32},
                           {BF16_BF16_F32, "bf16_bf16_f32", f32},
                           {BF16_BF16_F32_X3, "bf16_bf16_f32_x3", f32},
                           {BF16_BF16_F32_X6, "bf16_bf16_f32_x6", f32},
                           {BF16_BF16_F32_X9, "bf16_bf16_f32_x9", f32},
                           {TF32_TF32_F32, "tf32_tf32_f32", f32},
                           {TF32_TF32_F32_X3, "tf32_tf32_f32_x3", f32},
                           {F16_F16_F16, "f16_f16_f16", f16},
                           {BF16_BF16_BF16, "bf16_bf16_bf16", bf16},
                           {ANY_F8_ANY_F8_F32, "any_f8_any_f8_f32", f8},
                           {ANY_F8_ANY_F8_F32_FAST_ACCUM, "any_f8_any_f8_f32_fast_accum", f8},
                           {F64_F64_F64, "f64_f64_f64", f64}};
  const Row few{"17x2_2x13", {17, 2}, {2, 13}, {}, {}, {1}, {0}};
  for (const Algorithm& one : all) {
    for (const Row* shape : {&few, &row}) {
      add_dot(list, *shape, one.types, Values::Unit, fmt::format(", algorithm=dot_{}", one.name),
              fmt::format("_dot_{}", one.name));
      Case& made = list.cases().back();
      made.bound = product_bound(one.types.result, depth(*shape), one.algorithm);
      // No operand is below the least normal number of f16, where its precision ends.
      for (InputSpec& input : made.inputs) input.low = 0.125;
    }
  }
}

// Deep products of data on which rounding errors add up: constants, signs that alternate, and sorted numbers.
void add_drift(CaseList& list, const Row& row) {
  const int64_t n = row.lhs[static_cast<size_t>(row.lhs_contracting[0])];
  std::vector<double> rising;
  for (int64_t i = 0; i < n; ++i) rising.push_back(0.5 + 0.5 * static_cast<double>(i) / static_cast<double>(n));
  const std::vector<double> falling(rising.rbegin(), rising.rend());
  const std::pair<const char*, std::vector<double>> data[] = {
      {"constant", {0.1}}, {"alternating", {1.1, -0.1}}, {"rising", rising}, {"falling", falling}};
  for (const auto& [label, values] : data) {
    Text text;
    const std::string lhs = text.parameter(Shape::array(Type::F32, row.lhs));
    const std::string rhs = text.parameter(Shape::array(Type::F32, row.rhs));
    Case one{fmt::format("dot/f32/long_{}/{}", row.label, label),
             Op::DOT,
             Type::F32,
             "",
             {},
             sum_bound(Type::F32, kBlockedTerms)};
    one.text = text.root(Shape::array(Type::F32, result_dims(row)),
                         fmt::format("dot({}, {}), lhs_contracting_dims={}, rhs_contracting_dims={}", lhs, rhs,
                                     braces(row.lhs_contracting), braces(row.rhs_contracting)));
    one.inputs = {{.values = Values::Fixed, .fixed = values}, {.values = Values::Fixed, .fixed = {0.7}}};
    list.add(std::move(one));
  }
}

struct Operand {
  Dims dims, batch, contracting;
};
// Arranges groups of dimensions in the order given by `order`, with the letters b (batch), f (free) and c
// (contracting).
Operand arrange(std::string_view order, const Dims& batch, const Dims& free, const Dims& contracting) {
  Operand out;
  Dims others;
  for (const char c : order) {
    Dims& numbers = c == 'b' ? out.batch : c == 'c' ? out.contracting : others;
    for (const int64_t size : c == 'b' ? batch : c == 'c' ? contracting : free) {
      numbers.push_back(static_cast<int64_t>(out.dims.size()));
      out.dims.push_back(size);
    }
  }
  return out;
}

struct Pair {
  Row row;
  Types types;
};
// Chooses a number of dimensions of each role, their order in each operand, and the order in which they are listed.
Pair choose(Factors& factors) {
  struct Sizes {
    Dims batch, contracting, left, right;
  };
  Sizes sizes = factors.next<Sizes>(
      {{{2, 3}, {4, 3}, {5, 2}, {3, 4}}, {{3, 3}, {3, 3}, {3, 3}, {3, 3}}, {{1, 2}, {17, 2}, {1, 9}, {15, 1}}});
  for (Dims* dims : {&sizes.batch, &sizes.contracting, &sizes.left, &sizes.right})
    dims->resize(factors.next<size_t>({1, 0, 2}));
  const std::string_view left_order = factors.next<std::string_view>({"bfc", "bcf", "fbc", "fcb", "cbf", "cfb"}),
                         right_order = factors.next<std::string_view>({"bcf", "bfc", "fbc", "fcb", "cbf", "cfb"});
  const bool batch_turned = factors.next({false, true}), contracting_turned = factors.next({false, true}),
             listed_backward = factors.next({false, true});
  const Types types = factors.next<Types>({{Type::F32, Type::F32, Type::F32},
                                           {Type::BF16, Type::BF16, Type::F32},
                                           {Type::S8, Type::S8, Type::S32},
                                           {Type::C64, Type::C64, Type::C64},
                                           {Type::F64, Type::F64, Type::F64},
                                           {Type::F16, Type::F16, Type::F16}});
  const Operand lhs = arrange(left_order, sizes.batch, sizes.left, sizes.contracting);
  // If a group is reversed, its sizes are reversed too, and so are the numbers of its dimensions.
  const auto turn = [](Dims& dims, bool turned) {
    if (turned) std::reverse(dims.begin(), dims.end());
  };
  turn(sizes.batch, batch_turned);
  turn(sizes.contracting, contracting_turned);
  const Operand rhs = arrange(right_order, sizes.batch, sizes.right, sizes.contracting);
  Row row{"", lhs.dims, rhs.dims, lhs.batch, rhs.batch, lhs.contracting, rhs.contracting};
  turn(row.rhs_batch, batch_turned);
  turn(row.rhs_contracting, contracting_turned);
  turn(row.lhs_contracting, listed_backward);
  turn(row.rhs_contracting, listed_backward);
  row.label = fmt::format("{}_{}", dims_name(row.lhs), dims_name(row.rhs));
  return {std::move(row), types};
}

// Adds products of an array with itself, transposed or not.
void add_same(CaseList& list, Type type) {
  for (const int64_t lhs : {0, 1})
    for (const int64_t rhs : {0, 1}) {
      const Shape shape = Shape::array(type, {17, 17});
      Text text;
      const std::string x = text.parameter(shape);
      list.add(
          {fmt::format("dot/{}/17x17_same_by_{}{}/unit", type_name(type), lhs, rhs),
           Op::DOT,
           type,
           text.root(shape, fmt::format("dot({0}, {0}), lhs_contracting_dims={{{1}}}, rhs_contracting_dims={{{2}}}", x,
                                        lhs, rhs)),
           {{}},
           sum_bound(type, 17)});
    }
}

void add_ragged_dot(CaseList& list) {
  // m = 12 rows in 3 groups; k = 5, n = 7.
  Text text;
  const std::string lhs = text.parameter(Shape::array(Type::F32, {12, 5}));
  const std::string rhs = text.parameter(Shape::array(Type::F32, {3, 5, 7}));
  const std::string sizes = text.parameter(Shape::array(Type::S32, {3}));
  Case one{"ragged-dot/f32/12x5_3x5x7/unit",
           Op::RAGGED_DOT,
           Type::F32,
           "",
           {{}, {}, {.values = Values::Fixed, .fixed = {4, 0, 6}}},
           sum_bound(Type::F32, 5)};
  one.text = text.root(Shape::array(Type::F32, {12, 7}),
                       fmt::format("ragged-dot({}, {}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, "
                                   "lhs_ragged_dims={{0}}, rhs_group_dims={{0}}",
                                   lhs, rhs, sizes));
  list.add(std::move(one));
}

void add_scaled_dot(CaseList& list) {
  Text text;
  const std::string lhs = text.parameter(Shape::array(Type::F8E4M3FN, {5, 64}));
  const std::string rhs = text.parameter(Shape::array(Type::F8E4M3FN, {64, 7}));
  const std::string lhs_scale = text.parameter(Shape::array(Type::F8E8M0FNU, {5, 2}));
  const std::string rhs_scale = text.parameter(Shape::array(Type::F8E8M0FNU, {2, 7}));
  Case one{"scaled-dot/f8e4m3fn/5x64_64x7/unit", Op::SCALED_DOT, Type::F8E4M3FN, "", {}, sum_bound(Type::F32, 64)};
  one.inputs = {
      {}, {}, {.values = Values::Fixed, .fixed = {1, 2, 0.5}}, {.values = Values::Fixed, .fixed = {2, 1, 4, 0.25}}};
  one.text = text.root(Shape::array(Type::F32, {5, 7}),
                       fmt::format("scaled-dot({}, {}, {}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                                   lhs, rhs, lhs_scale, rhs_scale));
  list.add(std::move(one));
}

}  // namespace

void add_dot_cases(CaseList& list) {
  const Type same[] = {Type::F32, Type::F64, Type::BF16, Type::F16, Type::S32,
                       Type::S8,  Type::U8,  Type::U32,  Type::C64, Type::C128};
  for (const Row& row : rows()) {
    for (const Type type : same) {
      add_dot(list, row, {type, type, type}, Values::Unit);
      if (hlo::is_integer(type)) add_dot(list, row, {type, type, type}, Values::Large);
    }
    for (const Types& types : {Types{Type::BF16, Type::BF16, Type::F32}, Types{Type::F16, Type::F16, Type::F32},
                               Types{Type::S8, Type::S8, Type::S32}, Types{Type::U8, Type::U8, Type::S32},
                               Types{Type::F32, Type::F32, Type::F64}, Types{Type::F8E4M3FN, Type::F8E4M3FN, Type::F32},
                               Types{Type::F8E5M2, Type::F8E5M2, Type::BF16}, Types{Type::S4, Type::S4, Type::S32}}) {
      add_dot(list, row, types, Values::Unit);
    }
  }
  for (const Type type : {Type::S4, Type::U4, Type::F8E4M3FN, Type::F8E5M2}) {
    add_dot(list, rows()[0], {type, type, type}, Values::Unit);
    add_dot(list, rows()[0], {type, type, type}, Values::Edges);
  }
  const Types f32{Type::F32, Type::F32, Type::F32};
  add_dot(list, rows()[0], f32, Values::Unit, ", operand_precision={highest,highest}", "_highest");
  add_dot(list, rows()[0], f32, Values::Unit, ", algorithm=dot_f32_f32_f32", "_algorithm_f32");
  // Without an attribute f32 is computed as f32, so that no precision asks for less.
  add_dot(list, rows()[0], f32, Values::Unit, ", operand_precision={default,default}", "_default");
  add_dot(list, rows()[0], f32, Values::Unit, ", operand_precision={high,high}", "_high");
  add_dot(list, rows()[0], f32, Values::Unit, ", operand_precision={highest,default}", "_highest_default");
  add_algorithms(list);
  for (const Type type : {Type::F32, Type::BF16, Type::S32, Type::C64}) add_same(list, type);
  for_pairs(choose, [&](const Pair& pair, size_t number) {
    add_dot(list, pair.row, pair.types, Values::Unit, "", fmt::format("_pair{}", number));
  });
  if (list.full()) {
    for (const Row& row : {Row{"1x300001_300001", {1, 300001}, {300001}, {}, {}, {1}, {0}},
                           Row{"1x1000003_1000003x3", {1, 1000003}, {1000003, 3}, {}, {}, {1}, {0}},
                           Row{"1x100003_100003x150", {1, 100003}, {100003, 150}, {}, {}, {1}, {0}},
                           Row{"3x50021_50021x40", {3, 50021}, {50021, 40}, {}, {}, {1}, {0}}})
      add_drift(list, row);
  }
  add_ragged_dot(list);
  add_scaled_dot(list);
}

}  // namespace collet::conformance
