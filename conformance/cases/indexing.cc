// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "conformance/cases/case.h"
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

struct GatherRow {
  const char* label;
  Dims operand, indices, result;
  const char* attributes;
  double most = 3;  // indices are drawn from -1 ... most, so some are out of bounds
};

// clang-format off
const std::vector<GatherRow>& gathers() {
  static const std::vector<GatherRow> kRows = {
      {"rows", {9, 5}, {7}, {7, 5}, "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}", 9},
      {"rows_129", {17, 65}, {129}, {129, 65}, "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,65}", 17},
      {"columns", {5, 9}, {7}, {5, 7}, "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={5,1}", 9},
      {"elements", {9, 5}, {7, 2}, {7}, "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}", 8},
      {"elements_swapped", {5, 9}, {7, 2}, {7}, "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={1,1}", 8},
      {"windows", {9, 8}, {5, 2}, {5, 3, 2}, "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={3,2}", 9},
      {"index_vector_first", {9, 5}, {2, 7}, {7}, "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=0, slice_sizes={1,1}", 6},
      {"offset_first", {9, 5}, {3, 4}, {5, 3, 4}, "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,5}", 9},
      {"offset_between", {9, 5}, {3, 4}, {3, 5, 4}, "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,5}", 9},
      {"batched", {4, 9}, {4, 3, 1}, {4, 3}, "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}", 9},
      {"batched_twice", {3, 3, 9}, {3, 3, 4, 1}, {3, 3, 4}, "offset_dims={}, collapsed_slice_dims={2}, start_index_map={2}, operand_batching_dims={0,1}, start_indices_batching_dims={1,0}, index_vector_dim=3, slice_sizes={1,1,1}", 9},
      {"rows_of_300", {5, 300}, {3}, {3, 300}, "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,300}", 5},
      {"scalar_index", {9, 5}, {}, {5}, "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,5}", 9},
      {"no_indices", {9, 5}, {0}, {0, 5}, "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}", 9},
      {"three_dimensions", {4, 5, 6}, {3, 2}, {3, 2, 6}, "offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2,6}", 5},
      {"one_element", {9, 5}, {2}, {}, "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=0, slice_sizes={1,1}", 8},
      {"one_of_one", {9, 5}, {1, 2}, {1}, "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}", 8},
      {"five_dimensions", {2, 3, 2, 5, 2}, {3, 1}, {3, 2, 3, 2, 2}, "offset_dims={1,2,3,4}, collapsed_slice_dims={3}, start_index_map={3}, index_vector_dim=1, slice_sizes={2,3,2,1,2}", 5},
      {"many", {300, 3}, {23003}, {23003, 3}, "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}", 300},
      {"sorted", {129}, {17, 1}, {17}, "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}, indices_are_sorted=true", 0},
  };
  return kRows;
}

struct ScatterRow {
  const char* label;
  Dims operand, indices, updates;
  const char* attributes;
  double most = 3;
};
const std::vector<ScatterRow>& scatters() {
  static const std::vector<ScatterRow> kRows = {
      {"rows", {9, 5}, {7}, {7, 5}, "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1", 9},
      {"rows_129", {17, 65}, {129}, {129, 65}, "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1", 17},
      {"columns", {5, 9}, {7}, {5, 7}, "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1", 9},
      {"elements", {9, 5}, {7, 2}, {7}, "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1", 8},
      {"elements_swapped", {5, 9}, {7, 2}, {7}, "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1", 8},
      {"windows", {9, 8}, {5, 2}, {5, 3, 2}, "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1", 9},
      {"index_vector_first", {9, 5}, {2, 7}, {7}, "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0", 6},
      {"batched", {4, 9}, {4, 3, 1}, {4, 3}, "update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2", 9},
      {"batched_twice", {3, 3, 9}, {3, 3, 4, 1}, {3, 3, 4}, "update_window_dims={}, inserted_window_dims={2}, scatter_dims_to_operand_dims={2}, input_batching_dims={0,1}, scatter_indices_batching_dims={1,0}, index_vector_dim=3", 9},
      {"rows_of_300", {5, 300}, {3}, {3, 300}, "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1", 5},
      {"six_dimensions", {2, 1, 2, 3, 2, 3}, {3, 1}, {3, 2, 1, 2, 2, 3}, "update_window_dims={1,2,3,4,5}, inserted_window_dims={3}, scatter_dims_to_operand_dims={3}, index_vector_dim=1", 3},
      {"scalar_index", {9, 5}, {}, {5}, "update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0", 8},
      {"one_element", {1}, {3, 1}, {3}, "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1", 1},
      {"five_dimensions", {2, 3, 2, 5, 2}, {3, 1}, {3, 2, 3, 2, 2}, "update_window_dims={1,2,3,4}, inserted_window_dims={3}, scatter_dims_to_operand_dims={3}, index_vector_dim=1", 5},
      {"large_operand", {23003, 3}, {9}, {9, 3}, "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1", 23003},
      {"no_indices", {9, 5}, {0}, {0, 5}, "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1", 9},
  };
  return kRows;
}
// clang-format on

// Returns indices inside and outside of the array, which would become other valid indices if they were truncated to
// fewer bits or read with another signedness.
InputSpec far_indices(Type index) {
  InputSpec spec{.values = Values::Fixed};
  switch (index) {
    case Type::U32:
      spec.fixed = {0, 2147483648.0, 3, 4294967295.0, 2, 2147483650.0, 1};
      break;
    case Type::S64:
      spec.fixed = {2, 4294967297.0, -4294967295.0, 1, 1099511627777.0, 0, -1};
      break;
    case Type::U64:
      spec.fixed = {4294967297.0, 3, 9223372036854774784.0, 0, 2, 1099511627776.0, 1};
      break;
    case Type::U8:
      spec.fixed = {3, 129, 0, 255, 128, 1, 2};
      break;
    default:
      spec.fixed = {-128, 3, 127, 0, -127, 1, 2};
  }
  return spec;
}

InputSpec indices_of(double most, Type index) {
  if (most == 0) return {.values = Values::Fixed, .fixed = {0, 3, 3, 8, 15, 16, 17, 64, 65, 127, 128}};
  return {.low = hlo::is_unsigned(index) ? 0.0 : -1.0, .high = most};
}

void add_gather(CaseList& list, const GatherRow& row, Type type, Type index, bool far = false) {
  Text text;
  const std::string x = text.parameter(Shape::array(type, row.operand)),
                    i = text.parameter(Shape::array(index, row.indices));
  Case one{fmt::format("gather/{}/{}_{}{}/{}", type_name(type), row.label, far ? "far_" : "", type_name(index),
                       values_name(moving_values(type))),
           Op::GATHER,
           type,
           "",
           {{.values = moving_values(type)}, far ? far_indices(index) : indices_of(row.most, index)},
           {.kind = Bound::Kind::Bits}};
  if (row.most == 0) {  // the case states that its indices are sorted, so they are ascending
    std::vector<double> sorted;
    for (int k = 0; k < 17; ++k) sorted.push_back(k * 7);
    one.inputs[1].fixed = sorted;
  }
  one.text = text.root(Shape::array(type, row.result), fmt::format("gather({}, {}), {}", x, i, row.attributes));
  list.add(std::move(one));
}

// Adds a scatter. Updates with duplicate indices are combined in any order, so the body is commutative; updates outside
// of the array are dropped.
void add_scatter(CaseList& list, const ScatterRow& row, const char* body, Type type, Type index, bool far = false) {
  Text text;
  const std::string combine = text.combiner(body, type);
  const Shape operand = Shape::array(type, row.operand);
  const std::string x = text.parameter(operand), i = text.parameter(Shape::array(index, row.indices));
  const std::string updates = text.parameter(Shape::array(type, row.updates));
  const double most = hlo::is_integer(type) ? 9 : 1;
  double terms = 2;
  for (const int64_t d : row.indices) terms *= static_cast<double>(std::max<int64_t>(d, 1));
  const bool sum = std::string_view(body) == "add";
  Case one{
      fmt::format("scatter/{}/{}_{}_{}{}/unit", type_name(type), body, row.label, far ? "far_" : "", type_name(index)),
      Op::SCATTER,
      type,
      "",
      {{.low = -most, .high = most},
       far ? far_indices(index) : indices_of(row.most, index),
       {.low = -most, .high = most}},
      sum ? sum_bound(type, std::min(terms, 64.0), false) : Bound{}};
  one.text =
      text.root(operand, fmt::format("scatter({}, {}, {}), {}, to_apply={}", x, i, updates, row.attributes, combine));
  list.add(std::move(one));
}

// Adds a scatter that overwrites; each index occurs once.
void add_assign(CaseList& list, Type type) {
  Text text;
  text.computation("assign", fmt::format("  a = {0}[] parameter(0)\n  ROOT b = {0}[] parameter(1)\n", type_name(type)));
  const Shape operand = Shape::array(type, {17, 5});
  const std::string x = text.parameter(operand), i = text.parameter(Shape::array(Type::S32, {6, 1}));
  const std::string updates = text.parameter(Shape::array(type, {6, 5}));
  Case one{fmt::format("scatter/{}/assign_rows/{}", type_name(type), values_name(moving_values(type))),
           Op::SCATTER,
           type,
           "",
           {{.values = moving_values(type)},
            {.values = Values::Fixed, .fixed = {3, 16, 0, 17, 9, -1}},
            {.values = moving_values(type)}},
           {.kind = Bound::Kind::Bits}};
  one.text = text.root(
      operand,
      fmt::format("scatter({}, {}, {}), update_window_dims={{1}}, inserted_window_dims={{0}}, "
                  "scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, unique_indices=true, to_apply=assign",
                  x, i, updates));
  list.add(std::move(one));
}

// Adds a scatter of two operands with one body.
void add_pair_scatter(CaseList& list) {
  Text text;
  text.computation(
      "both",
      "  a = f32[] parameter(0)\n  b = s32[] parameter(1)\n  c = f32[] parameter(2)\n  d = s32[] parameter(3)\n"
      "  m = f32[] maximum(a, c)\n  s = s32[] add(b, d)\n  ROOT r = (f32[], s32[]) tuple(m, s)\n");
  const Shape x = Shape::array(Type::F32, {9}), y = Shape::array(Type::S32, {9});
  const std::string p0 = text.parameter(x), p1 = text.parameter(y),
                    i = text.parameter(Shape::array(Type::S32, {12, 1}));
  const std::string u0 = text.parameter(Shape::array(Type::F32, {12})),
                    u1 = text.parameter(Shape::array(Type::S32, {12}));
  Case one{"scatter/f32/pair_of_operands/unit",
           Op::SCATTER,
           Type::F32,
           "",
           {{}, {.low = -9, .high = 9}, {.low = -1, .high = 9}, {}, {.low = -9, .high = 9}},
           {}};
  one.text = text.root(Shape::tuple({x, y}),
                       fmt::format("scatter({}, {}, {}, {}, {}), update_window_dims={{}}, inserted_window_dims={{0}}, "
                                   "scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=both",
                                   p0, p1, i, u0, u1));
  list.add(std::move(one));
}

}  // namespace

void add_indexing_cases(CaseList& list) {
  for (const GatherRow& row : gathers()) {
    for (const Type type : moving_types()) add_gather(list, row, type, Type::S32);
    for (const Type index : {Type::S64, Type::U32, Type::S8}) add_gather(list, row, Type::F32, index);
  }
  for (const ScatterRow& row : scatters()) {
    for (const Type type : {Type::F32, Type::S32, Type::F64, Type::U8, Type::BF16}) {
      add_scatter(list, row, "add", type, Type::S32);
      add_scatter(list, row, "maximum", type, Type::S32);
    }
    add_scatter(list, row, "multiply", Type::S32, Type::S32);
    add_scatter(list, row, "add", Type::F32, Type::S64);
    add_scatter(list, row, "add", Type::F32, Type::U32);
  }
  const auto is_far = [](std::string_view label) {
    return label == "rows" || label == "elements" || label == "windows" || label == "batched";
  };
  for (const Type index : {Type::U32, Type::S64, Type::U64, Type::U8, Type::S8}) {
    for (const GatherRow& row : gathers())
      if (is_far(row.label)) add_gather(list, row, Type::F32, index, true);
    for (const ScatterRow& row : scatters())
      if (is_far(row.label)) add_scatter(list, row, "add", Type::S32, index, true);
  }
  for (const Type type : moving_types()) add_assign(list, type);
  add_pair_scatter(list);
  add_indexing_pairs(list);
}

}  // namespace collet::conformance
