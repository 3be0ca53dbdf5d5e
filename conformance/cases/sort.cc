// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tuple>

#include "conformance/cases/case.h"
#include "conformance/cases/pairwise.h"
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

struct Row {
  Dims dims;
  int64_t dimension;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {{{17}, 0},   {{1}, 0},     {{0}, 0},       {{129}, 0},
                                         {{64}, 0},   {{5, 65}, 1}, {{65, 5}, 0},   {{3, 7, 5}, 1},
                                         {{2051}, 0}, {{3, 0}, 1},  {{2, 33, 4}, 1}};
  return kRows;
}

std::string comparator(Text& text, Type type, const char* direction, const char* order, std::span<const Type> payload) {
  std::string body = fmt::format("  a = {0}[] parameter(0)\n  b = {0}[] parameter(1)\n", type_name(type));
  for (size_t i = 0; i < payload.size(); ++i) {
    body += fmt::format("  x{0} = {1}[] parameter({2})\n  y{0} = {1}[] parameter({3})\n", i, type_name(payload[i]),
                        2 * i + 2, 2 * i + 3);
  }
  body += fmt::format("  ROOT r = pred[] compare(a, b), direction={}{}\n", direction, order);
  text.computation("compare", body);
  return "compare";
}

void add_sort(CaseList& list, const Row& row, Type type, const char* direction, bool total, Values values) {
  Text text;
  comparator(text, type, direction, total ? ", type=TOTALORDER" : "", {});
  const Shape shape = Shape::array(type, row.dims);
  const std::string x = text.parameter(shape);
  Case one{fmt::format("sort/{}/{}{}_{}_by_{}/{}", type_name(type), direction, total ? "_total" : "",
                       dims_name(row.dims), row.dimension, values_name(values)),
           Op::SORT,
           type,
           "",
           {{.values = values, .low = -9, .high = 9}},
           {}};
  one.text = text.root(shape, fmt::format("sort({}), dimensions={{{}}}, to_apply=compare", x, row.dimension));
  list.add(std::move(one));
}

// Adds a stable sort: the carried values of equal keys keep their order.
void add_stable(CaseList& list, const Row& row, Type key, Type carried, Values values) {
  Text text;
  const Type payload[] = {carried, Type::S32};
  comparator(text, key, "LT", "", payload);
  const Shape keys = Shape::array(key, row.dims), first = Shape::array(carried, row.dims),
              second = Shape::array(Type::S32, row.dims);
  const std::string x = text.parameter(keys), y = text.parameter(first), z = text.parameter(second);
  Case one{fmt::format("sort/{}/stable_with_{}_{}_by_{}/{}", type_name(key), type_name(carried), dims_name(row.dims),
                       row.dimension, values_name(values)),
           Op::SORT,
           key,
           "",
           {{.values = values}, {.values = Values::Large}, {.values = Values::Distinct}},
           {}};
  one.text = text.root(
      Shape::tuple({keys, first, second}),
      fmt::format("sort({}, {}, {}), dimensions={{{}}}, is_stable=true, to_apply=compare", x, y, z, row.dimension));
  list.add(std::move(one));
}

// A comparator of more than the first operand's elements a and b: x0 and y0 are those of the second one, of the same type.
struct Order {
  const char *label, *lines;
  bool stable = false;  ///< the second operand has equal elements, and a third one tells them apart
  Values keys = Values::Ties;
};
constexpr Order kOrders[] = {
    {"two_keys",
     "  l = pred[] compare(a, b), direction=LT\n  e = pred[] compare(a, b), direction=EQ\n"
     "  t = pred[] compare(x0, y0), direction=LT\n  u = pred[] and(e, t)\n  ROOT r = pred[] or(l, u)\n"},
    {"two_keys_stable",
     "  l = pred[] compare(a, b), direction=LT\n  e = pred[] compare(a, b), direction=EQ\n"
     "  t = pred[] compare(x0, y0), direction=LT\n  u = pred[] and(e, t)\n  ROOT r = pred[] or(l, u)\n",
     true},
    {"second_descending",
     "  e = pred[] compare(a, b), direction=EQ\n  t = pred[] compare(x0, y0), direction=GT\n"
     "  l = pred[] compare(a, b), direction=LT\n  ROOT r = pred[] select(e, t, l)\n"},
    {"by_second", "  ROOT r = pred[] compare(x0, y0), direction=LT\n"},
    {"by_second_descending", "  ROOT r = pred[] compare(x0, y0), direction=GT\n", true},
    {"negated", "  n = {0}[] negate(a)\n  m = {0}[] negate(b)\n  ROOT r = pred[] compare(n, m), direction=LT\n", false,
     Values::Distinct},
};

void add_order(CaseList& list, const Row& row, Type type, const Order& order) {
  const std::string t(type_name(type));
  Text text;
  std::string body = fmt::format(
      "  a = {0}[] parameter(0)\n  b = {0}[] parameter(1)\n  x0 = {0}[] parameter(2)\n  y0 = {0}[] parameter(3)\n", t);
  if (order.stable) body += "  x1 = s32[] parameter(4)\n  y1 = s32[] parameter(5)\n";
  text.computation("compare", body + fmt::format(fmt::runtime(order.lines), t));
  std::vector<Shape> shapes(2, Shape::array(type, row.dims));
  if (order.stable) shapes.push_back(Shape::array(Type::S32, row.dims));
  std::string names;
  for (const Shape& shape : shapes) names += (names.empty() ? "" : ", ") + text.parameter(shape);
  Case one{fmt::format("sort/{}/{}_{}_by_{}/{}", t, order.label, dims_name(row.dims), row.dimension,
                       values_name(order.keys)),
           Op::SORT,
           type,
           "",
           std::vector<InputSpec>(shapes.size(), InputSpec{.values = Values::Distinct}),
           {}};
  one.inputs[0].values = order.keys;
  if (order.stable) one.inputs[1].values = Values::Ties;
  one.text = text.root(Shape::tuple(shapes), fmt::format("sort({}), dimensions={{{}}}{}, to_apply=compare", names,
                                                         row.dimension, order.stable ? ", is_stable=true" : ""));
  list.add(std::move(one));
}

// Adds sorts of one float whose comparator is not a comparison of the two: the order of JAX, in which zeros are equal and each NaN is
// last, and that of the bits as an integer.
void add_order_of_floats(CaseList& list, const Row& row, Type type, Type bits) {
  const std::string t(type_name(type));
  const Shape keys = Shape::array(type, row.dims), numbers = Shape::array(Type::S32, row.dims);
  const std::string head = fmt::format(
      "  a = {0}[] parameter(0)\n  b = {0}[] parameter(1)\n  x = s32[] parameter(2)\n  y = s32[] parameter(3)\n", t);
  std::string jax = fmt::format("  z = {0}[] constant(0)\n  n = {0}[] constant(nan)\n", t);
  for (const char* which : {"a", "b"})
    jax += fmt::format(
        "  {1}_z = pred[] compare({1}, z), direction=EQ\n  {1}_0 = {0}[] select({1}_z, z, {1})\n"
        "  {1}_n = pred[] compare({1}, {1}), direction=NE\n  {1}_1 = {0}[] select({1}_n, n, {1}_0)\n",
        t, which);
  jax += "  ROOT r = pred[] compare(a_1, b_1), direction=LT, type=TOTALORDER\n";
  const std::string by_bits = fmt::format(
      "  c = {0}[] bitcast-convert(a)\n  d = {0}[] bitcast-convert(b)\n  ROOT r = pred[] compare(c, d), direction=LT\n",
      type_name(bits));
  for (const auto& [label, lines, values] :
       {std::tuple("nan_last", jax, Values::Edges), std::tuple("as_bits", by_bits, Values::Ties)}) {
    Text text;
    text.computation("compare", head + lines);
    const std::string x = text.parameter(keys), y = text.parameter(numbers);
    Case one{fmt::format("sort/{}/{}_{}_by_{}/{}", t, label, dims_name(row.dims), row.dimension, values_name(values)),
             Op::SORT,
             type,
             "",
             {{.values = values}, {.values = Values::Distinct}},
             {}};
    one.text = text.root(
        Shape::tuple({keys, numbers}),
        fmt::format("sort({}, {}), dimensions={{{}}}, is_stable=true, to_apply=compare", x, y, row.dimension));
    list.add(std::move(one));
  }
}

struct Pair {
  Dims dims;
  int64_t dimension;
  size_t operands;
  bool stable, total;
  const char* direction;
  Type type;
  Values values;
};
Pair choose(Factors& factors) {
  Pair pair;
  const int64_t size = factors.next<int64_t>({17, 1, 2, 16, 33, 65, 129});
  const int64_t front = factors.next<int64_t>({0, 1, 2}), behind = factors.next<int64_t>({0, 1, 2});
  pair.dims = {3, 2};
  pair.dims.resize(static_cast<size_t>(front));
  pair.dimension = front;
  pair.dims.push_back(size);
  for (const int64_t more : {5, 1})
    if (static_cast<int64_t>(pair.dims.size()) < front + 1 + behind) pair.dims.push_back(more);
  pair.operands = factors.next<size_t>({1, 2, 3});
  pair.stable = factors.next({false, true});
  pair.total = factors.next({false, true});
  pair.direction = factors.next({"LT", "GT"});
  pair.type = factors.next({Type::F32, Type::S32, Type::BF16, Type::F64, Type::U8, Type::S16, Type::S64, Type::F16});
  pair.values = factors.next({Values::Unit, Values::Ties, Values::Large, Values::Distinct});
  // The order of operands with equal keys is undefined, and these types have too few different keys.
  if (pair.type == Type::BF16 || pair.type == Type::U8) pair.stable = pair.operands > 1;
  if (pair.operands > 1 && !pair.stable) pair.values = Values::Distinct;
  pair.total = pair.total && hlo::is_float(pair.type);
  return pair;
}

void add_pair(CaseList& list, const Pair& pair, size_t number) {
  const Type payload[] = {Type::S32, Type::F16};
  const std::span<const Type> carried(payload, pair.operands - 1);
  Text text;
  comparator(text, pair.type, pair.direction, pair.total ? ", type=TOTALORDER" : "", carried);
  std::vector<Shape> shapes = {Shape::array(pair.type, pair.dims)};
  for (const Type type : carried) shapes.push_back(Shape::array(type, pair.dims));
  std::string names;
  for (const Shape& shape : shapes) names += (names.empty() ? "" : ", ") + text.parameter(shape);
  Case one{fmt::format("sort/{}/pair{}_{}_by_{}/{}", type_name(pair.type), number, dims_name(pair.dims), pair.dimension,
                       values_name(pair.values)),
           Op::SORT,
           pair.type,
           "",
           std::vector<InputSpec>(pair.operands, InputSpec{.values = Values::Large}),
           {}};
  one.inputs[0] = {.values = pair.values, .low = -9, .high = 9};
  one.text = text.root(pair.operands == 1 ? shapes[0] : Shape::tuple(shapes),
                       fmt::format("sort({}), dimensions={{{}}}{}, to_apply=compare", names, pair.dimension,
                                   pair.stable ? ", is_stable=true" : ""));
  list.add(std::move(one));
}

void add_topk(CaseList& list, const Dims& dims, int64_t k, Type type, bool largest, Values values) {
  Text text;
  Dims result = dims;
  result.back() = k;
  const std::string x = text.parameter(Shape::array(type, dims));
  Case one{fmt::format("topk/{}/{}_k{}_{}/{}", type_name(type), dims_name(dims), k, largest ? "largest" : "smallest",
                       values_name(values)),
           Op::TOPK,
           type,
           "",
           {{.values = values}},
           {}};
  one.text = text.root(Shape::tuple({Shape::array(type, result), Shape::array(Type::S32, result)}),
                       fmt::format("topk({}), k={}, largest={}", x, k, largest));
  list.add(std::move(one));
}

}  // namespace

void add_sort_cases(CaseList& list) {
  for (const Row& row : rows()) {
    for (const Type type : types_of(hlo::TypeSet::REAL_PRED)) {
      add_sort(list, row, type, "LT", false, Values::Unit);
      if (type == Type::F32 || type == Type::S32 || list.full()) add_sort(list, row, type, "GT", false, Values::Ties);
    }
    for (const Type key : {Type::F32, Type::S32, Type::U8, Type::BF16})
      add_stable(list, row, key, Type::F32, Values::Ties);
    add_stable(list, row, Type::F32, Type::C64, Values::Distinct);
  }
  for (const Type type : {Type::F32, Type::S32}) {
    add_sort(list, {{9001}, 0}, type, "LT", false, Values::Large);
    add_sort(list, {{2, 3, 2, 7, 2}, 3}, type, "LT", false, Values::Large);
    add_sort(list, {{9973, 7}, 1}, type, "GT", false, Values::Large);
    add_sort(list, {{3, 4099}, 1}, type, "GT", false, Values::Ties);
    add_stable(list, {{4099}, 0}, type, Type::F32, Values::Ties);
  }
  for (const Type type : {Type::S4, Type::U4, Type::F8E4M3FN, Type::F8E5M2}) {
    add_sort(list, {{17}, 0}, type, "LT", false, hlo::is_float(type) ? Values::Unit : Values::Edges);
    if (hlo::is_integer(type)) add_sort(list, {{5, 33}, 1}, type, "GT", false, Values::Unit);
  }
  add_sort(list, {{2, 1, 2, 5, 1, 3}, 3}, Type::F32, "LT", false, Values::Large);
  add_sort(list, {{edge_count(Type::F8E5M2, 1)}, 0}, Type::F8E5M2, "LT", true, Values::Edges);
  for (const Type type : types_of(hlo::TypeSet::FLOAT)) {
    add_sort(list, {{edge_count(type, 1)}, 0}, type, "LT", true, Values::Edges);
    add_sort(list, {{edge_count(type, 1)}, 0}, type, "GT", true, Values::Edges);
  }
  for (const Type type : {Type::F32, Type::BF16, Type::S32, Type::F64, Type::U8, Type::F16}) {
    for (const bool largest : {true, false}) {
      add_topk(list, {17}, 3, type, largest, Values::Distinct);
      add_topk(list, {5, 129}, 7, type, largest, Values::Distinct);
      add_topk(list, {3, 16}, 16, type, largest, Values::Ties);
      add_topk(list, {2, 3, 65}, 1, type, largest, Values::Ties);
    }
  }
  for (const Row& row : {Row{{17}, 0}, Row{{5, 65}, 1}, Row{{33, 4}, 0}}) {
    for (const Type type : {Type::F32, Type::S32})
      for (const Order& order : kOrders) add_order(list, row, type, order);
    add_order_of_floats(list, row, Type::F32, Type::S32);
    add_order_of_floats(list, row, Type::BF16, Type::S16);
  }
  for_pairs(choose, [&](const Pair& pair, size_t number) { add_pair(list, pair, number); });
}

}  // namespace collet::conformance
