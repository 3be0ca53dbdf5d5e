// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

// Runs while the counter is below a limit: `trips` times. The state carries a vector that is scaled and a limit that is
// only read.
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

// A thousand trips with a state that each of them changes, and exactly: y = c - x.
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
  const Shape counter = Shape::scalar(Type::S32), vector = Shape::array(type, {33});
  const std::string i = text.parameter(counter), x = text.parameter(vector), c = text.parameter(vector),
                    n = text.parameter(counter);
  const Shape tuple = Shape::tuple({counter, vector, vector, counter});
  const std::string init = text.line(tuple, fmt::format("tuple({}, {}, {}, {})", i, x, c, n));
  Case one{fmt::format("while/{}/state_of_{}_trips/unit", t, trips),
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

// A loop in a loop, with the inner trip count taken from the outer counter.
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
  // An index outside takes the last branch.
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
  add_nested_while(list);
  add_conditionals(list);
  add_call(list);
}

}  // namespace collet::conformance
