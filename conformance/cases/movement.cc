// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/cases/case.h"
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

// One case: an op, its operands and attributes, in one or several element types.
struct Row {
  Op op;
  const char* label;  // what is special about the case; part of its name
  std::vector<Dims> operands;
  Dims result;
  const char* attributes;
};

// clang-format off
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {Op::BROADCAST, "scalar_to_5x7", {{}}, {5, 7}, "dimensions={}"},
      {Op::BROADCAST, "scalar_to_scalar", {{}}, {}, "dimensions={}"},
      {Op::BROADCAST, "17_to_17x3_by_0", {{17}}, {17, 3}, "dimensions={0}"},
      {Op::BROADCAST, "17_to_3x17_by_1", {{17}}, {3, 17}, "dimensions={1}"},
      {Op::BROADCAST, "3x5_to_3x2x5", {{3, 5}}, {3, 2, 5}, "dimensions={0,2}"},
      {Op::BROADCAST, "3x5_to_2x5x3_swapped", {{3, 5}}, {2, 5, 3}, "dimensions={2,1}"},
      {Op::BROADCAST, "129_to_2x129x65", {{129}}, {2, 129, 65}, "dimensions={1}"},
      {Op::BROADCAST, "3_to_3x0", {{3}}, {3, 0}, "dimensions={0}"},
      {Op::BROADCAST, "1x4_to_1x4x1", {{1, 4}}, {1, 4, 1}, "dimensions={0,1}"},
      {Op::TRANSPOSE, "5x7", {{5, 7}}, {7, 5}, "dimensions={1,0}"},
      {Op::TRANSPOSE, "64x129", {{64, 129}}, {129, 64}, "dimensions={1,0}"},
      {Op::TRANSPOSE, "8x8x8_by_120", {{8, 8, 8}}, {8, 8, 8}, "dimensions={1,2,0}"},
      {Op::TRANSPOSE, "8x8x8_by_201", {{8, 8, 8}}, {8, 8, 8}, "dimensions={2,0,1}"},
      {Op::TRANSPOSE, "3x5x7_by_021", {{3, 5, 7}}, {3, 7, 5}, "dimensions={0,2,1}"},
      {Op::TRANSPOSE, "2x3x4x5_by_3142", {{2, 3, 4, 5}}, {5, 3, 2, 4}, "dimensions={3,1,0,2}"},
      {Op::TRANSPOSE, "2x3x2x3x5_by_43120", {{2, 3, 2, 3, 5}}, {5, 3, 3, 2, 2}, "dimensions={4,3,1,2,0}"},
      {Op::TRANSPOSE, "3x0x2", {{3, 0, 2}}, {2, 0, 3}, "dimensions={2,1,0}"},
      {Op::TRANSPOSE, "scalar", {{}}, {}, "dimensions={}"},
      {Op::RESHAPE, "12x5_to_3x4x5", {{12, 5}}, {3, 4, 5}, ""},
      {Op::RESHAPE, "3x4x5_to_60", {{3, 4, 5}}, {60}, ""},
      {Op::RESHAPE, "6x35_to_10x21", {{6, 35}}, {10, 21}, ""},
      {Op::RESHAPE, "1_to_scalar", {{1}}, {}, ""},
      {Op::RESHAPE, "scalar_to_1x1", {{}}, {1, 1}, ""},
      {Op::RESHAPE, "0x3_to_7x0", {{0, 3}}, {7, 0}, ""},
      {Op::BITCAST, "12x5_to_60", {{12, 5}}, {60}, ""},
      {Op::COPY, "5x7", {{5, 7}}, {5, 7}, ""},
      {Op::COPY, "scalar", {{}}, {}, ""},
      {Op::SLICE, "17_middle", {{17}}, {9}, "slice={[4:13]}"},
      {Op::SLICE, "129_stride_3", {{129}}, {42}, "slice={[2:128:3]}"},
      {Op::SLICE, "129_stride_beyond", {{129}}, {1}, "slice={[5:129:200]}"},
      {Op::SLICE, "5x7x9", {{5, 7, 9}}, {3, 7, 4}, "slice={[1:4],[0:7],[1:8:2]}"},
      {Op::SLICE, "5x65_rows", {{5, 65}}, {2, 65}, "slice={[1:5:3],[0:65]}"},
      {Op::SLICE, "17_empty", {{17}}, {0}, "slice={[3:3]}"},
      {Op::SLICE, "17_whole", {{17}}, {17}, "slice={[0:17]}"},
      {Op::PAD, "17_low_high", {{17}, {}}, {24}, "padding=3_4"},
      {Op::PAD, "17_low", {{17}, {}}, {20}, "padding=3_0"},
      {Op::PAD, "17_high", {{17}, {}}, {21}, "padding=0_4"},
      {Op::PAD, "0_to_1", {{0}, {}}, {1}, "padding=1_0"},
      {Op::SLICE, "17_one", {{17}}, {1}, "slice={[9:10]}"},
      {Op::PAD, "17_interior", {{17}, {}}, {54}, "padding=2_3_2"},
      {Op::PAD, "17_negative", {{17}, {}}, {12}, "padding=-3_-2"},
      {Op::PAD, "17_negative_interior", {{17}, {}}, {29}, "padding=-5_1_1"},
      {Op::PAD, "5x7_mixed", {{5, 7}, {}}, {8, 19}, "padding=1_2x0_0_2"},
      {Op::PAD, "5x7_cut_and_grown", {{5, 7}, {}}, {4, 12}, "padding=-2_1x3_2"},
      {Op::PAD, "0_to_5", {{0}, {}}, {5}, "padding=2_3"},
      {Op::PAD, "3x0", {{3, 0}, {}}, {3, 4}, "padding=0_0x1_3_2"},
      {Op::PAD, "4x4_all_cut", {{4, 4}, {}}, {0, 4}, "padding=-2_-2x0_0"},
      {Op::PAD, "2x3x5_inner", {{2, 3, 5}, {}}, {2, 7, 5}, "padding=0_0x1_1_1x0_0"},
      {Op::CONCATENATE, "17_and_15", {{17}, {15}}, {32}, "dimensions={0}"},
      {Op::CONCATENATE, "one", {{17}}, {17}, "dimensions={0}"},
      {Op::CONCATENATE, "with_empty", {{3}, {0}, {5}}, {8}, "dimensions={0}"},
      {Op::CONCATENATE, "3x5_3x7_by_1", {{3, 5}, {3, 7}}, {3, 12}, "dimensions={1}"},
      {Op::CONCATENATE, "2x3x4_by_middle", {{2, 3, 4}, {2, 1, 4}, {2, 5, 4}}, {2, 9, 4}, "dimensions={1}"},
      {Op::CONCATENATE, "five_parts", {{1, 2}, {2, 2}, {3, 2}, {1, 2}, {4, 2}}, {11, 2}, "dimensions={0}"},
      {Op::REVERSE, "17", {{17}}, {17}, "dimensions={0}"},
      {Op::REVERSE, "5x65_by_1", {{5, 65}}, {5, 65}, "dimensions={1}"},
      {Op::REVERSE, "5x65_by_0", {{5, 65}}, {5, 65}, "dimensions={0}"},
      {Op::REVERSE, "3x4x5_by_02", {{3, 4, 5}}, {3, 4, 5}, "dimensions={0,2}"},
      {Op::REVERSE, "5x7_by_none", {{5, 7}}, {5, 7}, "dimensions={}"},
      {Op::REVERSE, "3x0", {{3, 0}}, {3, 0}, "dimensions={0,1}"},
      // Operands of equal shape, and an empty one: only the dimension determines where they go.
      {Op::CONCATENATE, "4x5_twice_by_0", {{4, 5}, {4, 5}}, {8, 5}, "dimensions={0}"},
      {Op::CONCATENATE, "4x5_twice_by_1", {{4, 5}, {4, 5}}, {4, 10}, "dimensions={1}"},
      {Op::CONCATENATE, "2x3_2x0_2x4_by_1", {{2, 3}, {2, 0}, {2, 4}}, {2, 7}, "dimensions={1}"},
      {Op::BROADCAST, "5_to_5x5_by_0", {{5}}, {5, 5}, "dimensions={0}"},
      {Op::BROADCAST, "5_to_5x5_by_1", {{5}}, {5, 5}, "dimensions={1}"},
      {Op::TRANSPOSE, "6x6", {{6, 6}}, {6, 6}, "dimensions={1,0}"},
      {Op::PAD, "5x5_low_first", {{5, 5}, {}}, {6, 6}, "padding=1_0x0_1"},
      {Op::SLICE, "6x6_last_rows", {{6, 6}}, {3, 3}, "slice={[3:6],[0:3]}"},
      // Five and more dimensions.
      {Op::BROADCAST, "3_to_2x3x2x2x3x2_by_4", {{3}}, {2, 3, 2, 2, 3, 2}, "dimensions={4}"},
      {Op::TRANSPOSE, "2x3x2x2x3x2_by_534120", {{2, 3, 2, 2, 3, 2}}, {2, 2, 3, 3, 2, 2}, "dimensions={5,3,4,1,2,0}"},
      {Op::SLICE, "3x2x4x2x5", {{3, 2, 4, 2, 5}}, {2, 2, 2, 1, 3}, "slice={[1:3],[0:2],[0:4:2],[1:2],[0:5:2]}"},
      {Op::PAD, "2x1x2x3x2", {{2, 1, 2, 3, 2}, {}}, {3, 1, 3, 3, 4}, "padding=1_0x0_0x0_0_1x0_0x1_1"},
      {Op::CONCATENATE, "2x2x1x2x3_by_2", {{2, 2, 1, 2, 3}, {2, 2, 3, 2, 3}}, {2, 2, 4, 2, 3}, "dimensions={2}"},
      {Op::REVERSE, "2x3x2x2x3_by_034", {{2, 3, 2, 2, 3}}, {2, 3, 2, 2, 3}, "dimensions={0,3,4}"},
      {Op::SLICE, "3x2x4x2x5x3", {{3, 2, 4, 2, 5, 3}}, {2, 2, 2, 1, 3, 2}, "slice={[1:3],[0:2],[0:4:2],[1:2],[0:5:2],[1:3]}"},
      {Op::PAD, "2x1x2x3x2x2", {{2, 1, 2, 3, 2, 2}, {}}, {3, 1, 3, 3, 4, 3}, "padding=1_0x0_0x1_0x0_0x1_1x0_1"},
      {Op::CONCATENATE, "2x1x2x1x2x3_by_3", {{2, 1, 2, 1, 2, 3}, {2, 1, 2, 3, 2, 3}}, {2, 1, 2, 4, 2, 3}, "dimensions={3}"},
      {Op::REVERSE, "2x3x1x2x2x3_by_0145", {{2, 3, 1, 2, 2, 3}}, {2, 3, 1, 2, 2, 3}, "dimensions={0,1,4,5}"},
      // More elements than 16 bits can count.
      {Op::BROADCAST, "scalar_to_70001", {{}}, {70001}, "dimensions={}"},
      {Op::BROADCAST, "257_to_300x257_by_1", {{257}}, {300, 257}, "dimensions={1}"},
      {Op::TRANSPOSE, "300x257", {{300, 257}}, {257, 300}, "dimensions={1,0}"},
      {Op::RESHAPE, "300x257_to_77100", {{300, 257}}, {77100}, ""},
      {Op::SLICE, "140003_stride_2", {{140003}}, {70001}, "slice={[1:140002:2]}"},
      {Op::PAD, "70001_low_high", {{70001}, {}}, {70004}, "padding=1_2"},
      {Op::CONCATENATE, "40000_and_30001", {{40000}, {30001}}, {70001}, "dimensions={0}"},
      {Op::REVERSE, "70001", {{70001}}, {70001}, "dimensions={0}"},
      {Op::TRANSPOSE, "65537x2", {{65537, 2}}, {2, 65537}, "dimensions={1,0}"},
      {Op::BROADCAST, "2_to_65537x2_by_1", {{2}}, {65537, 2}, "dimensions={1}"},
      {Op::PAD, "65537x2_inner", {{65537, 2}, {}}, {65539, 3}, "padding=1_1x0_0_1"},
      {Op::CONCATENATE, "65537x1_and_65537x2_by_1", {{65537, 1}, {65537, 2}}, {65537, 3}, "dimensions={1}"},
      {Op::REVERSE, "65537x2_by_1", {{65537, 2}}, {65537, 2}, "dimensions={1}"},
  };
  return kRows;
}
// clang-format on

void add_row(CaseList& list, const Row& row, Type type) {
  Text text;
  const std::string_view op = hlo::op_info(row.op).text;
  Case one{fmt::format("{}/{}/{}/{}", op, type_name(type), row.label, values_name(moving_values(type))),
           row.op,
           type,
           "",
           {},
           {.kind = Bound::Kind::Bits}};
  std::string operands;
  for (const Dims& dims : row.operands) {
    operands += (operands.empty() ? "" : ", ") + text.parameter(Shape::array(type, dims));
    one.inputs.push_back({.values = moving_values(type)});
  }
  const std::string_view attributes = row.attributes;
  one.text = text.root(Shape::array(type, row.result),
                       fmt::format("{}({}){}{}", op, operands, attributes.empty() ? "" : ", ", attributes));
  list.add(std::move(one));
}

// Adds cases with values whose bits must not change: NaN, denormals, zeros of both signs.
void add_bits(CaseList& list, Type type) {
  const int64_t n = edge_count(type, 1);
  const Shape shape = Shape::array(type, {n});
  const auto add = [&](Op op, const char* attributes) {
    Text text;
    const std::string x = text.parameter(shape);
    const std::string_view name = hlo::op_info(op).text;
    list.add({fmt::format("{}/{}/{}/edges", name, type_name(type), n),
              op,
              type,
              text.root(shape, fmt::format("{}({}){}", name, x, attributes)),
              {{.values = Values::Edges}},
              {.kind = Bound::Kind::Bits}});
  };
  add(Op::REVERSE, ", dimensions={0}");
  add(Op::COPY, "");
}

void add_iota(CaseList& list) {
  struct IotaRow {
    Dims dims;
    int dimension;
  };
  const IotaRow rows[] = {{{17}, 0}, {{129}, 0},  {{5, 7}, 0},          {{5, 7}, 1},  {{2, 3, 65}, 2}, {{4, 4, 4}, 1},
                          {{0}, 0},  {{3, 0}, 1}, {{2, 2, 3, 2, 3}, 2}, {{70001}, 0}, {{257, 300}, 0}};
  for (const Type type : types_of(hlo::TypeSet::NUMBER)) {
    for (const IotaRow& row : rows) {
      // The value is added to a parameter, so that constant folding does not remove the op.
      Text text;
      const Shape shape = Shape::array(type, row.dims);
      const std::string x = text.parameter(shape);
      const std::string iota = text.line(shape, fmt::format("iota(), iota_dimension={}", row.dimension));
      Case one{fmt::format("iota/{}/{}_by_{}/ties", type_name(type), dims_name(row.dims), row.dimension),
               Op::IOTA,
               type,
               "",
               {{.values = Values::Ties}},
               {}};
      one.text = text.root(shape, fmt::format("add({}, {})", x, iota));
      list.add(std::move(one));
    }
  }
}

struct SliceRow {
  const char* label;
  Dims operand, part;
  std::vector<double> starts;
};
// Start indices that are negative or too large are clamped so that the slice fits.
const std::vector<SliceRow>& slice_rows() {
  static const std::vector<SliceRow> kRows = {
      {"17_inside", {17}, {5}, {4}},
      {"17_beyond", {17}, {5}, {15}},
      {"17_below", {17}, {5}, {-3}},
      {"17_far", {17}, {5}, {2147483647}},
      {"5x65", {5, 65}, {2, 17}, {1, 40}},
      {"5x65_beyond", {5, 65}, {2, 17}, {4, 60}},
      {"3x4x5", {3, 4, 5}, {1, 4, 2}, {2, 0, 1}},
      {"17_top", {17}, {5}, {4294967295}},
      {"17_whole", {17}, {17}, {3}},
      {"3x2x4x2x5", {3, 2, 4, 2, 5}, {2, 1, 3, 2, 2}, {1, 1, 0, 0, 2}},
      {"70001_late", {70001}, {5}, {69000}},
      {"17_empty", {17}, {0}, {20}},
      // Start indices that change if they are truncated to fewer bits or read as signed.
      {"17_beyond_32_bits", {17}, {5}, {4294967299}},
      {"17_below_32_bits", {17}, {5}, {-4294967293}},
      {"17_above_31_bits", {17}, {5}, {2147483651}},
      {"200_above_7_bits", {200}, {5}, {150}},
      {"17_least_of_8_bits", {17}, {5}, {-128}},
      {"scalar", {}, {}, {}},
  };
  return kRows;
}

void add_dynamic(CaseList& list, const SliceRow& row, Type type, Type index, bool update) {
  Text text;
  const Op op = update ? Op::DYNAMIC_UPDATE_SLICE : Op::DYNAMIC_SLICE;
  const Shape whole = Shape::array(type, row.operand), part = Shape::array(type, row.part);
  Case one{fmt::format("{}/{}/{}_{}/large", hlo::op_info(op).text, type_name(type), row.label, type_name(index)),
           op,
           type,
           "",
           {},
           {.kind = Bound::Kind::Bits}};
  std::string operands = text.parameter(whole);
  one.inputs.push_back({.values = Values::Large});
  if (update) {
    operands += ", " + text.parameter(part);
    one.inputs.push_back({.values = Values::Large});
  }
  for (const double start : row.starts) {
    operands += ", " + text.parameter(Shape::scalar(index));
    one.inputs.push_back({.values = Values::Fixed, .fixed = {start}});
  }
  one.text =
      update ? text.root(whole, fmt::format("dynamic-update-slice({})", operands))
             : text.root(part, fmt::format("dynamic-slice({}), dynamic_slice_sizes={}", operands, braces(row.part)));
  list.add(std::move(one));
}

}  // namespace

void add_movement_cases(CaseList& list) {
  for (const Row& row : rows()) {
    for (const Type type : moving_types()) {
      const bool all = type == Type::F32 || type == Type::BF16 || type == Type::PRED || list.full();
      if (all || row.result.size() == 2) add_row(list, row, type);
    }
  }
  for (const Type type : types_of(hlo::TypeSet::ANY, true)) add_bits(list, type);
  add_iota(list);
  const auto may_start = [](const SliceRow& row, Type index) {
    return std::all_of(row.starts.begin(), row.starts.end(), [&](double start) {
      const int bits = hlo::type_info(index).bits - (hlo::is_signed(index) ? 1 : 0);
      return start < std::exp2(bits) && (start >= 0 || hlo::is_signed(index));
    });
  };
  for (const SliceRow& row : slice_rows()) {
    for (const bool update : {false, true}) {
      for (const Type type : {Type::F32, Type::S8, Type::F64, Type::PRED, Type::C64})
        if (may_start(row, Type::S32)) add_dynamic(list, row, type, Type::S32, update);
      for (const Type index : {Type::S64, Type::U32, Type::S8, Type::U8})
        if (may_start(row, index)) add_dynamic(list, row, Type::F32, index, update);
    }
  }
}

}  // namespace collet::conformance
