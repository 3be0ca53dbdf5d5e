// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

// Adds a loop that runs `trips` iterations, while a counter is below a limit. The state has a vector that is scaled in
// each iteration, and the limit, which is only read.
void add_while(CaseList& list, int trips, Type type) {
  Text text;
  const std::string state = fmt::format("(s32[], {}[17], s32[])", type_name(type));
  const std::string t(type_name(type));
  text.computation("cond", fmt::format("  s = {} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] "
                                       "get-tuple-element(s), index=2\n"
                                       "  ROOT r = pred[] compare(i, n), direction=LT\n",
                                       state));
  text.computation(
      "body",
      fmt::format("  s = {0} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  x = {1}[17] "
                  "get-tuple-element(s), index=1\n"
                  "  n = s32[] get-tuple-element(s), index=2\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
                  "  y = {1}[17] add(x, x)\n  ROOT r = {0} tuple(j, y, n)\n",
                  state, t));
  const Shape counter = Shape::scalar(Type::S32), vector = Shape::array(type, {17});
  const std::string i = text.parameter(counter), x = text.parameter(vector), n = text.parameter(counter);
  const Shape tuple = Shape::tuple({counter, vector, counter});
  const std::string init = text.line(tuple, fmt::format("tuple({}, {}, {})", i, x, n));
  Case one{fmt::format("while/{}/{}_trips/unit", t, trips),
           Op::WHILE,
           type,
           "",
           {{.values = Values::Fixed, .fixed = {0}},
            {.low = -1, .high = 1},
            {.values = Values::Fixed, .fixed = {double(trips)}}},
           {}};
  one.text = text.root(tuple, fmt::format("while({}), condition=cond, body=body", init));
  list.add(std::move(one));
}

// Adds a loop over the state (s32 counter, two vectors, s32 trip count), whose computations `cond` and `body` are in
// `text`.
void add_vector_loop(CaseList& list, Text text, const std::string& name, Type type, const Shape& vector, int trips) {
  const Shape counter = Shape::scalar(Type::S32);
  const std::string i = text.parameter(counter), x = text.parameter(vector), y = text.parameter(vector),
                    n = text.parameter(counter);
  const Shape tuple = Shape::tuple({counter, vector, vector, counter});
  const std::string init = text.line(tuple, fmt::format("tuple({}, {}, {}, {})", i, x, y, n));
  Case one{name,
           Op::WHILE,
           type,
           "",
           {{.values = Values::Fixed, .fixed = {0}},
            {.low = -9, .high = 9},
            {.low = -9, .high = 9},
            {.values = Values::Fixed, .fixed = {double(trips)}}},
           {}};
  one.text = text.root(tuple, fmt::format("while({}), condition=cond, body=body", init));
  list.add(std::move(one));
}

// Adds a loop of many iterations, each of which changes the state exactly: y = c - x.
void add_long_while(CaseList& list, int trips, Type type) {
  Text text;
  const std::string t(type_name(type));
  const std::string state = fmt::format("(s32[], {0}[33], {0}[33], s32[])", t);
  text.computation("cond", fmt::format("  s = {} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] "
                                       "get-tuple-element(s), index=3\n"
                                       "  ROOT r = pred[] compare(i, n), direction=LT\n",
                                       state));
  text.computation(
      "body",
      fmt::format("  s = {0} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
                  "  x = {1}[33] get-tuple-element(s), index=1\n  c = {1}[33] get-tuple-element(s), index=2\n"
                  "  n = s32[] get-tuple-element(s), index=3\n  one = s32[] constant(1)\n"
                  "  j = s32[] add(i, one)\n  y = {1}[33] subtract(c, x)\n  d = {1}[33] reverse(c), dimensions={{0}}\n"
                  "  ROOT r = {0} tuple(j, y, d, n)\n",
                  state, t));
  add_vector_loop(list, std::move(text), fmt::format("while/{}/state_of_{}_trips/unit", t, trips), type,
                  Shape::array(type, {33}), trips);
}

// Loops whose state a device may update in place, and where this is easily done wrong. `body` is the lines that compute
// the next state j, u, v from i, x, y, n. x and y have `size` elements.
struct InPlace {
  const char* label;
  const char* body;
};
constexpr InPlace kInPlace[] = {
    // Two arrays are exchanged; a device must not overwrite one before it is read.
    {"swapped", "  u = {0} copy(y)\n  v = {0} copy(x)\n"},
    // One element is written, and another is read from the array before the update.
    {"updated_and_read",
     "  a = {1}[1] dynamic-slice(x, i), dynamic_slice_sizes={{1}}\n  b = {1}[1] dynamic-slice(y, i), "
     "dynamic_slice_sizes={{1}}\n"
     "  c = {1}[1] add(a, b)\n  u = {0} dynamic-update-slice(x, c, j)\n  v = {0} dynamic-update-slice(y, a, i)\n"},
    // The array before the update is also needed after it.
    {"old_and_new",
     "  a = {1}[1] dynamic-slice(y, i), dynamic_slice_sizes={{1}}\n  u = {0} dynamic-update-slice(x, a, i)\n"
     "  v = {0} maximum(x, y)\n"},
    // Each element moves to another position of the same array.
    {"turned", "  u = {0} reverse(x), dimensions={{0}}\n  v = {0} subtract(y, x)\n"},
    // Both arrays become the same value.
    {"both_the_same", "  u = {0} minimum(x, y)\n  v = {0} minimum(x, y)\n"},
    // Neither changes.
    {"unchanged", "  u = {0} copy(x)\n  v = {0} copy(y)\n"},
};

void add_in_place(CaseList& list, const InPlace& how, int trips, Type type) {
  constexpr int kSize = 37;
  Text text;
  const std::string t(type_name(type)), array = fmt::format("{}[{}]", t, kSize);
  const std::string state = fmt::format("(s32[], {0}, {0}, s32[])", array);
  const std::string parts = fmt::format(
      "  s = {0} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  x = {1} get-tuple-element(s), index=1\n"
      "  y = {1} get-tuple-element(s), index=2\n  n = s32[] get-tuple-element(s), index=3\n",
      state, array);
  text.computation("cond", parts + "  ROOT r = pred[] compare(i, n), direction=LT\n");
  text.computation("body", parts + "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n" +
                               fmt::format(fmt::runtime(how.body), array, t) +
                               fmt::format("  ROOT r = {} tuple(j, u, v, n)\n", state));
  // These bodies are exact in every type: they have only copies, maximum and minimum, and sums of integers or single
  // roundings.
  add_vector_loop(list, std::move(text), fmt::format("while/{}/in_place_{}_{}_trips/unit", t, how.label, trips), type,
                  Shape::array(type, {kSize}), trips);
}

// Adds a loop of a hundred thousand iterations on a few integers; the result depends on the number of iterations.
void add_hundred_thousand_trips(CaseList& list) {
  Text text;
  const std::string parts =
      "  s = (s32[], u32[3], s32[]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
      "  x = u32[3] get-tuple-element(s), index=1\n  n = s32[] get-tuple-element(s), index=2\n";
  text.computation("cond", parts + "  ROOT r = pred[] compare(i, n), direction=LT\n");
  text.computation("body", parts +
                               "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
                               "  c = u32[3] constant({1664525, 22695477, 1103515245})\n  a = u32[3] multiply(x, c)\n"
                               "  d = u32[3] constant({1013904223, 1, 12345})\n  y = u32[3] add(a, d)\n"
                               "  ROOT r = (s32[], u32[3], s32[]) tuple(j, y, n)\n");
  const Shape counter = Shape::scalar(Type::S32), array = Shape::array(Type::U32, {3});
  const std::string i = text.parameter(counter), x = text.parameter(array), n = text.parameter(counter);
  const Shape tuple = Shape::tuple({counter, array, counter});
  const std::string init = text.line(tuple, fmt::format("tuple({}, {}, {})", i, x, n));
  list.add({"while/u32/100000_trips/large",
            Op::WHILE,
            Type::U32,
            text.root(tuple, fmt::format("while({}), condition=cond, body=body", init)),
            {{.values = Values::Fixed, .fixed = {0}},
             {.values = Values::Large},
             {.values = Values::Fixed, .fixed = {100000}}},
            {}});
}

// Adds a nested loop; the trip count of the inner loop is the outer counter.
void add_nested_while(CaseList& list) {
  Text text;
  text.computation("inner_cond",
                   "  s = (s32[], s32[], s32[]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
                   "  n = s32[] get-tuple-element(s), index=2\n  ROOT r = pred[] compare(i, n), direction=LT\n");
  text.computation("inner_body",
                   "  s = (s32[], s32[], s32[]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
                   "  x = s32[] get-tuple-element(s), index=1\n  n = s32[] get-tuple-element(s), index=2\n  one = "
                   "s32[] constant(1)\n"
                   "  j = s32[] add(i, one)\n  y = s32[] add(x, j)\n  ROOT r = (s32[], s32[], s32[]) tuple(j, y, n)\n");
  text.computation(
      "cond",
      "  s = (s32[], s32[]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  five = s32[] constant(5)\n"
      "  ROOT r = pred[] compare(i, five), direction=LT\n");
  text.computation("body",
                   "  s = (s32[], s32[]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  x = s32[] "
                   "get-tuple-element(s), index=1\n"
                   "  zero = s32[] constant(0)\n  t = (s32[], s32[], s32[]) tuple(zero, x, i)\n"
                   "  w = (s32[], s32[], s32[]) while(t), condition=inner_cond, body=inner_body\n"
                   "  y = s32[] get-tuple-element(w), index=1\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
                   "  ROOT r = (s32[], s32[]) tuple(j, y)\n");
  const Shape scalar = Shape::scalar(Type::S32), pair = Shape::tuple({scalar, scalar});
  const std::string i = text.parameter(scalar), x = text.parameter(scalar);
  const std::string init = text.line(pair, fmt::format("tuple({}, {})", i, x));
  list.add({"while/s32/nested/fixed",
            Op::WHILE,
            Type::S32,
            text.root(pair, fmt::format("while({}), condition=cond, body=body", init)),
            {{.values = Values::Fixed, .fixed = {0}}, {.values = Values::Fixed, .fixed = {7}}},
            {}});
}

void branch(Text& text, const std::string& name, const char* op) {
  text.computation(name, fmt::format("  x = f32[17] parameter(0)\n  ROOT r = f32[17] {}(x)\n", op));
}

void add_conditionals(CaseList& list) {
  const Shape vector = Shape::array(Type::F32, {17});
  for (const double value : {0.0, 1.0}) {
    Text text;
    branch(text, "yes", "negate");
    branch(text, "no", "floor");
    const std::string p = text.parameter(Shape::scalar(Type::PRED)), x = text.parameter(vector),
                      y = text.parameter(vector);
    list.add(
        {fmt::format("conditional/f32/pred_{}/unit", value),
         Op::CONDITIONAL,
         Type::F32,
         text.root(vector, fmt::format("conditional({}, {}, {}), true_computation=yes, false_computation=no", p, x, y)),
         {{.values = Values::Fixed, .fixed = {value}}, {.low = -9, .high = 9}, {.low = -9, .high = 9}},
         {}});
  }
  // An index out of range selects the last branch.
  for (const double value : {0.0, 1.0, 2.0, 3.0, -1.0}) {
    Text text;
    branch(text, "first", "negate");
    branch(text, "second", "floor");
    branch(text, "third", "abs");
    const std::string i = text.parameter(Shape::scalar(Type::S32)), x = text.parameter(vector);
    list.add({fmt::format("conditional/f32/index_{}/unit", value),
              Op::CONDITIONAL,
              Type::F32,
              text.root(vector, fmt::format("conditional({}, {}, {}, {}), branch_computations={{first, second, third}}",
                                            i, x, x, x)),
              {{.values = Values::Fixed, .fixed = {value}}, {.low = -9, .high = 9}},
              {}});
  }
}

void add_call(CaseList& list) {
  Text text;
  text.computation("callee",
                   "  x = f32[17] parameter(0)\n  y = f32[17] parameter(1)\n  s = f32[17] subtract(x, y)\n  ROOT r = "
                   "(f32[17], f32[17]) tuple(s, x)\n");
  const Shape vector = Shape::array(Type::F32, {17}), pair = Shape::tuple({vector, vector});
  const std::string x = text.parameter(vector), y = text.parameter(vector);
  list.add({"call/f32/17/unit",
            Op::CALL,
            Type::F32,
            text.root(pair, fmt::format("call({}, {}), to_apply=callee", x, y)),
            {{}, {}},
            {}});
}

}  // namespace

void add_control_flow_cases(CaseList& list) {
  for (const int trips : {0, 1, 2, 7, 100}) {
    for (const Type type : {Type::F32, Type::S32, Type::BF16}) add_while(list, trips, type);
  }
  for (const Type type : {Type::F32, Type::S32}) {
    add_long_while(list, 10, type);
    add_long_while(list, 1003, type);
  }
  for (const InPlace& how : kInPlace)
    for (const int trips : {0, 1, 2, 35})
      for (const Type type : {Type::F32, Type::S32}) add_in_place(list, how, trips, type);
  add_hundred_thousand_trips(list);
  add_nested_while(list);
  add_conditionals(list);
  add_call(list);
}

}  // namespace collet::conformance
