// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "conformance/cases/case.h"
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

void add_convert_of(CaseList& list, Type from, Type to, std::string_view label, const Dims& dims, Values values) {
  Case one{fmt::format("convert/{}/{}to_{}_{}/{}", type_name(from), label, type_name(to), dims_name(dims),
                       values_name(values)),
           Op::CONVERT,
           from,
           "",
           {{.values = values, .low = -9, .high = 9}},
           {}};
  if (!list.names_only()) {
    Text text;
    const std::string x = text.parameter(Shape::array(from, dims));
    one.text = text.root(Shape::array(to, dims), fmt::format("convert({})", x));
  }
  list.add(std::move(one));
}

void add_convert(CaseList& list, Type from, Type to, Values values) {
  const int64_t size = values == Values::Edges      ? edge_count(from, 1)
                       : values == Values::Critical ? critical_count(from)
                                                    : 129;
  add_convert_of(list, from, to, "", {size}, values);
}

void add_converts(CaseList& list) {
  for (const Type from : types_of(hlo::TypeSet::ANY, true)) {
    for (const Type to : types_of(hlo::TypeSet::ANY, true)) {
      if (from == to || (hlo::is_complex(from) && !hlo::is_complex(to))) continue;
      add_convert(list, from, to, Values::Unit);
      if (hlo::is_complex(from)) continue;
      add_convert(list, from, to, Values::Edges);
      if (from == Type::PRED) continue;
      add_convert(list, from, to, Values::Large);
      add_convert(list, from, to, Values::Critical);
    }
  }
}

// Adds bitcast-converts between types of equal width, and between types of other widths, which add or remove the last
// dimension.
void add_bitcast_converts(CaseList& list) {
  struct Row {
    Type from;
    Dims in;
    Type to;
    Dims out;
  };
  const Row rows[] = {
      {Type::F32, {65}, Type::S32, {65}},
      {Type::S32, {65}, Type::F32, {65}},
      {Type::F64, {17}, Type::U64, {17}},
      {Type::BF16, {65}, Type::U16, {65}},
      {Type::F16, {65}, Type::S16, {65}},
      {Type::U8, {65}, Type::S8, {65}},
      {Type::F32, {}, Type::U32, {}},
      {Type::F32, {0}, Type::U32, {0}},
      {Type::F32, {17}, Type::U8, {17, 4}},
      {Type::U16, {5, 2}, Type::F32, {5}},
      {Type::S64, {3, 5}, Type::S32, {3, 5, 2}},
      {Type::S32, {3, 2}, Type::F64, {3}},
      {Type::U8, {7, 8}, Type::U64, {7}},
      {Type::F8E4M3FN, {65}, Type::U8, {65}},
  };
  for (const Row& row : rows) {
    Text text;
    const std::string x = text.parameter(Shape::array(row.from, row.in));
    Case one{
        fmt::format("bitcast-convert/{}/{}_to_{}/large", type_name(row.from), dims_name(row.in), type_name(row.to)),
        Op::BITCAST_CONVERT,
        row.from,
        "",
        {{.values = Values::Large}},
        {.kind = Bound::Kind::Bits}};
    one.text = text.root(Shape::array(row.to, row.out), fmt::format("bitcast-convert({})", x));
    list.add(std::move(one));
  }
}

void add_reduce_precision(CaseList& list) {
  constexpr std::pair<int, int> kFormats[] = {{8, 7},  {5, 10}, {5, 2}, {4, 3}, {11, 52},
                                              {8, 23}, {2, 1},  {1, 3}, {8, 1}};
  for (const Type type : types_of(hlo::TypeSet::FLOAT)) {
    for (const auto& [exponent, mantissa] : kFormats) {
      for (const Values values : {Values::Unit, Values::Edges, Values::Large}) {
        const int64_t size = values == Values::Edges ? edge_count(type, 1) : 129;
        Text text;
        const Shape shape = Shape::array(type, {size});
        const std::string x = text.parameter(shape);
        Case one{fmt::format("reduce-precision/{}/e{}m{}_{}/{}", type_name(type), exponent, mantissa, size,
                             values_name(values)),
                 Op::REDUCE_PRECISION,
                 type,
                 "",
                 {{.values = values}},
                 {}};
        one.text = text.root(
            shape, fmt::format("reduce-precision({}), exponent_bits={}, mantissa_bits={}", x, exponent, mantissa));
        list.add(std::move(one));
      }
    }
  }
}

// Adds numbers halfway between two of the shorter format, with even and odd digits before, and their neighbours.
void add_reduce_precision_ties(CaseList& list) {
  constexpr std::pair<int, int> kFormats[] = {{8, 7}, {5, 10}, {5, 2}, {4, 3}, {8, 23}, {11, 23}, {3, 1}};
  for (const Type type : types_of(hlo::TypeSet::FLOAT)) {
    for (const auto& [exponent, mantissa] : kFormats) {
      const double unit = 2 * unit_roundoff(type), step = std::ldexp(1.0, -mantissa);
      if (unit * 2 > step) continue;  // there is nothing between two numbers
      std::vector<double> numbers;
      for (const double digits : {0.0, 1.0, 2.0, 3.0, 1 / step - 2, 1 / step - 1})
        for (const double off : {0.0, unit, -unit})
          for (const double scale : {1.0, 2.0, -1.0, -2.0})
            if (digits * step < 1) numbers.push_back(scale * (1 + (digits + 0.5) * step + off));
      const auto size = static_cast<int64_t>(numbers.size());
      Text text;
      const Shape shape = Shape::array(type, {size});
      const std::string x = text.parameter(shape);
      Case one{fmt::format("reduce-precision/{}/e{}m{}_ties/fixed", type_name(type), exponent, mantissa),
               Op::REDUCE_PRECISION,
               type,
               "",
               {{.values = Values::Fixed, .fixed = std::move(numbers)}},
               {}};
      one.text = text.root(
          shape, fmt::format("reduce-precision({}), exponent_bits={}, mantissa_bits={}", x, exponent, mantissa));
      list.add(std::move(one));
    }
  }
}

void add_stochastic_convert(CaseList& list) {
  struct Row {
    Type from, random, to;
  };
  for (const Row& row : {Row{Type::F32, Type::U32, Type::S8}, Row{Type::F32, Type::U32, Type::S32},
                         Row{Type::BF16, Type::U16, Type::S8}}) {
    Text text;
    const std::string x = text.parameter(Shape::array(row.from, {129}));
    const std::string random = text.parameter(Shape::array(row.random, {129}));
    Case one{fmt::format("stochastic-convert/{}/to_{}_129/unit", type_name(row.from), type_name(row.to)),
             Op::STOCHASTIC_CONVERT,
             row.from,
             "",
             {{.low = -100, .high = 100}, {.values = Values::Large}},
             {}};
    one.text = text.root(Shape::array(row.to, {129}), fmt::format("stochastic-convert({}, {})", x, random));
    list.add(std::move(one));
  }
}

}  // namespace

void add_convert_grid(CaseList& list, Type from) {
  const bool is_narrow = hlo::type_info(from).bits < 32 && from != Type::PRED;
  for (const Type to : all_types_of(hlo::TypeSet::ANY)) {
    if (from == to || (hlo::is_complex(from) && !hlo::is_complex(to))) continue;
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{7}, Dims{16}, Dims{33}, Dims{65}, Dims{257}, Dims{3, 5, 7},
                             Dims{2, 1, 2, 1, 3, 2}, Dims{1025}, Dims{65537}}) {
      add_convert_of(list, from, to, "grid_", dims, Values::Unit);
      if (dims == Dims{0} || hlo::is_complex(from) || from == Type::PRED) continue;
      add_convert_of(list, from, to, "grid_", dims, Values::Large);
      if (is_narrow) add_convert_of(list, from, to, "grid_", dims, Values::Ties);
    }
    // The conversion of NaN to f4e2m1fn, which has none, is unspecified, and the inputs have NaN.
    if (to == Type::F4E2M1FN && hlo::is_float(from)) continue;
    if (const int64_t all = all_count(from, 1); all > 0) add_convert_of(list, from, to, "grid_", {all}, Values::All);
  }
}

void add_convert_cases(CaseList& list) {
  add_converts(list);
  for (const Type to : {Type::S32, Type::BF16, Type::F64, Type::PRED})
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{5, 7}, Dims{2, 1, 3, 2, 2}, Dims{2, 1, 3, 1, 2, 3}, Dims{70001}})
      add_convert_of(list, Type::F32, to, "", dims, Values::Unit);
  add_bitcast_converts(list);
  add_reduce_precision(list);
  add_reduce_precision_ties(list);
  add_stochastic_convert(list);
}

}  // namespace collet::conformance
