// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"
#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

// Adds programs that test the passing of arguments and results.
void add_plain(CaseList& list, const char* name, Op op, const Shape& result, const char* expression,
               const std::vector<Shape>& parameters) {
  Text text;
  std::vector<InputSpec> inputs;
  for (const Shape& shape : parameters) {
    text.parameter(shape);
    inputs.push_back({.low = -9, .high = 9});
  }
  const Type type = parameters.empty() ? Type::F32 : parameters[0].type();
  list.add({fmt::format("{}/{}/{}/unit", hlo::op_info(op).text, type_name(type), name),
            op,
            type,
            text.root(result, expression),
            inputs,
            {}});
}

void add_constants(CaseList& list) {
  add_plain(list, "alone", Op::CONSTANT, Shape::array(Type::F32, {3}), "constant({1, -2.5, 3e-3})", {});
  add_plain(list, "scalar", Op::CONSTANT, Shape::scalar(Type::F32), "constant(-0)", {});
  add_plain(list, "special", Op::CONSTANT, Shape::array(Type::F32, {3}), "constant({nan, inf, -inf})", {});
  add_plain(list, "empty", Op::CONSTANT, Shape::array(Type::F32, {0}), "constant({})", {});
  add_plain(list, "matrix", Op::CONSTANT, Shape::array(Type::S8, {2, 2}), "constant({{-128, 127}, {0, 1}})", {});
  // Constants of each width, whose elements all differ from their neighbours, so that a wrong position is detected.
  for (const Type type : moving_types()) {
    const bool fraction = hlo::is_float(type), small = type == Type::PRED || hlo::is_unsigned(type);
    const char* row = type == Type::PRED ? "1, 0, 0, 1, 1"
                      : small            ? "1, 0, 3, 2, 1"
                      : fraction         ? "1, -2, 0.5, 3, -1"
                                         : "1, -2, 0, 1, -1";
    if (hlo::is_complex(type)) row = "(1, 2), (0, -1), (3, 0), (0, 0), (-1, 1)";
    const Shape five = Shape::array(type, {5});
    add_plain(list, fmt::format("{}_five", type_name(type)).c_str(), Op::CONSTANT, five,
              fmt::format("constant({{{}}})", row).c_str(), {});
    Text two;
    const std::string a = two.line(five, fmt::format("constant({{{}}})", row));
    const std::string b = two.line(Shape::array(Type::S32, {3}), "constant({7, -8, 9})");
    const std::string y = two.parameter(five), i = two.parameter(Shape::array(Type::S32, {4}));
    const Shape ten = Shape::array(type, {10}), seven = Shape::array(Type::S32, {7});
    const std::string joined = two.line(ten, fmt::format("concatenate({}, {}), dimensions={{0}}", a, y));
    const std::string numbers = two.line(seven, fmt::format("concatenate({}, {}), dimensions={{0}}", i, b));
    list.add({fmt::format("constant/{}/beside_arguments/unit", type_name(type)),
              Op::CONSTANT,
              type,
              two.root(Shape::tuple({ten, seven}), fmt::format("tuple({}, {})", joined, numbers)),
              {{.low = 0, .high = 1}, {.low = -9, .high = 9}},
              {}});
  }
  Text text;
  const Shape shape = Shape::array(Type::F32, {4});
  const std::string x = text.parameter(shape), c = text.line(shape, "constant({1, 2, 3, 4})");
  list.add({"constant/f32/beside_an_argument/unit",
            Op::CONSTANT,
            Type::F32,
            text.root(Shape::tuple({shape, shape}), fmt::format("tuple({}, {})", c, x)),
            {{}},
            {}});
}

void add_tuples(CaseList& list) {
  const Shape f = Shape::array(Type::F32, {17}), s = Shape::array(Type::S32, {5, 7}), p = Shape::scalar(Type::PRED);
  add_plain(list, "three", Op::TUPLE, Shape::tuple({f, s, p}), "tuple(p0, p1, p2)", {f, s, p});
  add_plain(list, "twice_the_same", Op::TUPLE, Shape::tuple({f, f}), "tuple(p0, p0)", {f});
  add_plain(list, "swapped", Op::TUPLE, Shape::tuple({s, f}), "tuple(p1, p0)", {f, s});
  add_plain(list, "nothing", Op::TUPLE, Shape::tuple({}), "tuple()", {f});
  Text text;
  const std::string x = text.parameter(f), y = text.parameter(s);
  const Shape inner = Shape::tuple({f, s});
  const std::string t = text.line(inner, fmt::format("tuple({}, {})", x, y));
  list.add({"tuple/f32/nested/unit",
            Op::TUPLE,
            Type::F32,
            text.root(Shape::tuple({inner, f}), fmt::format("tuple({}, {})", t, x)),
            {{}, {}},
            {}});
}

void add_elements(CaseList& list, Type type) {
  Text text;
  const Shape a = Shape::array(type, {17}), b = Shape::array(type, {3, 4});
  const std::string x = text.parameter(a), y = text.parameter(b);
  const std::string t = text.line(Shape::tuple({a, b}), fmt::format("tuple({}, {})", x, y));
  list.add({fmt::format("get-tuple-element/{}/second_of_two/unit", type_name(type)),
            Op::GET_TUPLE_ELEMENT,
            type,
            text.root(b, fmt::format("get-tuple-element({}), index=1", t)),
            {{}, {}},
            {}});
}

void add_barrier(CaseList& list) {
  Text text;
  const Shape a = Shape::array(Type::F32, {17}), b = Shape::array(Type::S32, {3}), pair = Shape::tuple({a, b});
  const std::string x = text.parameter(a), y = text.parameter(b);
  const std::string t = text.line(pair, fmt::format("tuple({}, {})", x, y));
  list.add({"opt-barrier/f32/pair/unit",
            Op::OPT_BARRIER,
            Type::F32,
            text.root(pair, fmt::format("opt-barrier({})", t)),
            {{}, {}},
            {}});
}

void add_ids(CaseList& list) {
  for (const Op op : {Op::PARTITION_ID, Op::REPLICA_ID}) {
    Text text;
    const Shape scalar = Shape::scalar(Type::U32);
    const std::string x = text.parameter(scalar), id = text.line(scalar, fmt::format("{}()", hlo::op_info(op).text));
    list.add({fmt::format("{}/u32/one_participant/unit", hlo::op_info(op).text),
              op,
              Type::U32,
              text.root(scalar, fmt::format("add({}, {})", x, id)),
              {{.low = 0, .high = 9}},
              {}});
  }
}

}  // namespace

void add_structure_cases(CaseList& list) {
  add_constants(list);
  add_tuples(list);
  for (const Type type : moving_types()) add_elements(list, type);
  add_barrier(list);
  add_ids(list);
}

}  // namespace collet::conformance
