// SPDX-License-Identifier: Apache-2.0
// Tests bodies of map, reduce, reduce-window, scatter, sort and select-and-scatter that branch, loop and use arrays.
#include <algorithm>
#include <functional>
#include <numeric>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

constexpr int64_t kCount = 37;

/// Adds a loop that triples a positive number until it is at least 100. For other numbers the loop would not end.
Handle triple(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  RegionBuilder& condition = b.region();
  Handle c = condition.argument(kS32);
  condition.results({compare(condition, c, condition.scalar(kS32, 100), COLLET_DIRECTION_LT)});
  RegionBuilder& turn = b.region();
  Handle t = turn.argument(kS32);
  turn.results({turn.binary(COLLET_OP_MULTIPLY, t, turn.scalar(kS32, 3))});
  return r.ops(COLLET_OP_WHILE, {x}, {x}, collet_while_attrs{}, {&condition, &turn})[0];
}

Handle sum_of(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  RegionBuilder& add = b.region();
  Handle p = add.argument(kS32);
  Handle q = add.argument(kS32);
  add.combine = COLLET_COMBINE_ADD;
  add.results({add.binary(COLLET_OP_ADD, p, q)});
  return r.op(COLLET_OP_REDUCE, kS32, {}, {x, r.scalar(kS32, 0)}, collet_dimensions_attrs{b.list({0})}, {&add});
}

Handle counting(ProgramBuilder&, RegionBuilder& r, int64_t n) {
  return r.op(COLLET_OP_IOTA, kS32, {n}, {}, collet_iota_attrs{0});
}

/// A function of one number: a part of a body, and the same in C++.
struct Function {
  const char* name;
  Handle (*emit)(ProgramBuilder& b, RegionBuilder& r, const Handle& x);
  int32_t (*of)(int32_t x);
};

/// Adds the conditional x > 0 ? positive(x) : -x.
Handle where_positive(ProgramBuilder& b, RegionBuilder& r, const Handle& x,
                      const std::function<Handle(RegionBuilder&, const Handle&)>& positive) {
  RegionBuilder& yes = b.region();
  Handle p = yes.argument(kS32);
  yes.results({positive(yes, p)});
  RegionBuilder& no = b.region();
  Handle q = no.argument(kS32);
  no.results({no.unary(COLLET_OP_NEGATE, q)});
  Handle above = compare(r, x, r.scalar(kS32, 0), COLLET_DIRECTION_GT);
  return r.op(COLLET_OP_CONDITIONAL, kS32, {}, {above, x, x}, {&yes, &no});
}

Handle emit_branch(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  return where_positive(b, r, x,
                        [](RegionBuilder& yes, const Handle& p) { return yes.binary(COLLET_OP_MULTIPLY, p, p); });
}

Handle emit_switch(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  std::vector<RegionBuilder*> branches;
  for (int32_t k = 0; k < 3; ++k) {
    branches.push_back(&b.region());
    Handle p = branches.back()->argument(kS32);
    branches.back()->results({branches.back()->binary(COLLET_OP_ADD, p, branches.back()->scalar(kS32, 10 * k))});
  }
  return r.op(COLLET_OP_CONDITIONAL, kS32, {}, {x, x, x, x}, branches);
}

Handle emit_guarded_loop(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  return where_positive(b, r, x, [&](RegionBuilder& yes, const Handle& p) { return triple(b, yes, p); });
}

/// for (i = 0; i < |x| % 5; ++i) for (j = 0; j < i; ++j) x += j
Handle emit_nested_loops(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  auto loop = [&](RegionBuilder& at, const Handle& value, const Handle& end,
                  const std::function<Handle(RegionBuilder&, const Handle&, const Handle&)>& step) {
    const std::vector<Handle> state{value, at.scalar(kS32, 0), end};
    RegionBuilder& condition = b.region();
    condition.argument(kS32);
    Handle i = condition.argument(kS32);
    Handle n = condition.argument(kS32);
    condition.results({compare(condition, i, n, COLLET_DIRECTION_LT)});
    RegionBuilder& turn = b.region();
    Handle held = turn.argument(kS32);
    Handle at_turn = turn.argument(kS32);
    Handle last = turn.argument(kS32);
    turn.results({step(turn, held, at_turn), turn.binary(COLLET_OP_ADD, at_turn, turn.scalar(kS32, 1)), last});
    return at.ops(COLLET_OP_WHILE, state, state, collet_while_attrs{}, {&condition, &turn})[0];
  };
  Handle end = r.binary(COLLET_OP_REMAINDER, r.unary(COLLET_OP_ABS, x), r.scalar(kS32, 5));
  return loop(r, x, end, [&](RegionBuilder& outer, const Handle& held, const Handle& i) {
    return loop(outer, held, i, [](RegionBuilder& inner, const Handle& sum, const Handle& j) {
      return inner.binary(COLLET_OP_ADD, sum, j);
    });
  });
}

Handle emit_array(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {  // more points than are unrolled
  Handle all = r.binary(COLLET_OP_MULTIPLY, r.broadcast(x, {20}), counting(b, r, 20));
  return sum_of(b, r, all);
}

/// The branches compute arrays. Parts of the reduced values that do not depend on the reduction's points must be
/// computed before the reduction.
Handle emit_array_branch(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  RegionBuilder& yes = b.region();
  Handle p = yes.argument(kS32, {20});
  Handle total = sum_of(b, yes, p);
  yes.results({yes.binary(COLLET_OP_ADD, p, yes.broadcast(total, {20}))});
  RegionBuilder& no = b.region();
  Handle q = no.argument(kS32, {20});
  no.results({no.binary(COLLET_OP_SUBTRACT, q, counting(b, no, 20))});
  Handle all = r.binary(COLLET_OP_MULTIPLY, r.broadcast(x, {20}), counting(b, r, 20));
  Handle above = compare(r, x, r.scalar(kS32, 0), COLLET_DIRECTION_GT);
  return sum_of(b, r, r.op(COLLET_OP_CONDITIONAL, kS32, {20}, {above, all, all}, {&yes, &no}));
}

Handle emit_table(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  const int32_t table[] = {5, -3, 8, 1, 0, 13};
  Handle t = r.constant(kS32, {6}, std::span<const int32_t>(table));
  collet_dynamic_slice_attrs a{};
  a.sizes = b.list({1});
  return r.reshape(r.op(COLLET_OP_DYNAMIC_SLICE, kS32, {1}, {t, x}, a), {});
}

Handle emit_update(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  const int32_t seven[] = {7};
  Handle all = r.binary(COLLET_OP_MULTIPLY, r.broadcast(x, {4}), counting(b, r, 4));
  Handle put =
      r.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, kS32, {4}, {all, r.constant(kS32, {1}, std::span<const int32_t>(seven)), x});
  return sum_of(b, r, put);
}

Handle emit_product(ProgramBuilder& b, RegionBuilder& r, const Handle& x) {
  collet_dot_attrs a{};
  a.lhs_contracting = b.list({1});
  a.rhs_contracting = b.list({0});
  Handle p = r.op(COLLET_OP_DOT, kS32, {2}, {r.broadcast(x, {2, 30}), counting(b, r, 30)}, a);
  return sum_of(b, r, p);
}

const Function kFunctions[] = {
    {"branch", emit_branch, [](int32_t x) { return x > 0 ? x * x : -x; }},
    {"switch", emit_switch, [](int32_t x) { return x == 0   ? x
                                                   : x == 1 ? x + 10
                                                            : x + 20; }},
    {"guarded loop", emit_guarded_loop,
     [](int32_t x) {
       if (x <= 0) return -x;
       while (x < 100) x *= 3;
       return x;
     }},
    {"nested loops", emit_nested_loops,
     [](int32_t x) {
       const int32_t n = std::abs(x) % 5;
       for (int32_t i = 0; i < n; ++i) x += i * (i - 1) / 2;
       return x;
     }},
    {"array", emit_array, [](int32_t x) { return x * 190; }},
    {"array branch", emit_array_branch, [](int32_t x) { return x > 0 ? x * 190 + 20 * (x * 190) : x * 190 - 190; }},
    {"table", emit_table,
     [](int32_t x) {
       const int32_t table[] = {5, -3, 8, 1, 0, 13};
       return table[std::clamp(x, 0, 5)];
     }},
    {"update", emit_update, [](int32_t x) { return x * 6 - x * std::clamp(x, 0, 3) + 7; }},
    {"product", emit_product, [](int32_t x) { return 2 * x * 435; }},
};

/// Returns the body max(a, f(b)).
RegionBuilder& folding(ProgramBuilder& b, const Function& f) {
  RegionBuilder& r = b.region();
  Handle p = r.argument(kS32);
  Handle q = r.argument(kS32);
  r.results({r.binary(COLLET_OP_MAXIMUM, p, f.emit(b, r, q))});
  return r;
}

class BodyTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    in_.resize(kCount);
    for (size_t i = 0; i < in_.size(); ++i) in_[i] = static_cast<int32_t>(i * 7 % 23) - 9;
  }

  /// Runs a program with argument in_, whose ops `entry` adds.
  Numbers run(const std::function<Handle(ProgramBuilder&, RegionBuilder&, const Handle&)>& entry) {
    ProgramBuilder b;
    Handle x = b.entry().argument(kS32, {kCount});
    b.entry().results({entry(b, b.entry(), x)});
    Compiled c(plugin_, b.finish());
    EXPECT_EQ(c.status, COLLET_OK) << c.error.message;
    return c.status == COLLET_OK ? elements_of<int32_t>(c.run({bytes_of(in_)})[0]) : Numbers{};
  }

  collet_window_attrs window(ProgramBuilder& b, int64_t size, int64_t stride, int64_t low, int64_t high) {
    collet_window_attrs a{};
    a.window.size = b.list({size});
    a.window.stride = b.list({stride});
    a.window.padding_low = b.list({low});
    a.window.padding_high = b.list({high});
    a.window.base_dilation = a.window.window_dilation = b.list({1});
    return a;
  }

  Plugin plugin_{GetParam()};
  Numbers in_;
};

TEST_P(BodyTest, Map) {
  for (const Function& f : kFunctions) {
    Numbers want;
    for (int32_t v : in_) want.push_back(f.of(v));
    EXPECT_EQ(run([&](ProgramBuilder& b, RegionBuilder& e, const Handle& x) {
                RegionBuilder& r = b.region();
                r.results({f.emit(b, r, r.argument(kS32))});
                return e.op(COLLET_OP_MAP, kS32, {kCount}, {x}, {&r});
              }),
              want)
        << f.name;
  }
}

TEST_P(BodyTest, Reduce) {
  for (const Function& f : kFunctions) {
    int32_t want = -50;
    for (int32_t v : in_) want = std::max(want, f.of(v));
    EXPECT_EQ(run([&](ProgramBuilder& b, RegionBuilder& e, const Handle& x) {
                return e.op(COLLET_OP_REDUCE, kS32, {}, {x, e.scalar(kS32, -50)}, collet_dimensions_attrs{b.list({0})},
                            {&folding(b, f)});
              }),
              Numbers{want})
        << f.name;
  }
}

/// The body must not be run on the padding, for which its loop would not end.
TEST_P(BodyTest, ReduceWindow) {
  for (const Function& f : kFunctions) {
    for (const bool scan : {false, true}) {
      const int64_t size = scan ? kCount : 3;
      const int64_t low = scan ? kCount - 1 : 2;
      const int64_t high = scan ? 0 : 2;
      const int64_t count = kCount + low + high - size + 1;
      Numbers want;
      for (int64_t i = 0; i < count; ++i) {
        int32_t most = -50;
        for (int64_t k = std::max<int64_t>(i - low, 0); k < std::min(i - low + size, kCount); ++k) {
          most = std::max(most, f.of(in_[static_cast<size_t>(k)]));
        }
        want.push_back(most);
      }
      EXPECT_EQ(run([&](ProgramBuilder& b, RegionBuilder& e, const Handle& x) {
                  return e.op(COLLET_OP_REDUCE_WINDOW, kS32, {count}, {x, e.scalar(kS32, -50)},
                              window(b, size, 1, low, high), {&folding(b, f)});
                }),
                want)
          << f.name << scan;
    }
  }
}

TEST_P(BodyTest, Scatter) {
  for (const Function& f : kFunctions) {
    const int32_t places[] = {3, 1, 3, 50, -1};
    const int32_t updates[] = {4, -2, 2, 8, 8};
    Numbers want = in_;
    for (size_t k = 0; k < 3; ++k) {
      int32_t& at = want[static_cast<size_t>(places[k])];
      at = std::max(at, f.of(updates[k]));
    }
    EXPECT_EQ(run([&](ProgramBuilder& b, RegionBuilder& e, const Handle& x) {
                collet_scatter_attrs a{};
                a.inserted_window_dims = a.scatter_dims_to_operand_dims = b.list({0});
                a.index_vector_dim = 1;
                Handle at = e.constant(kS32, {5}, std::span<const int32_t>(places));
                Handle with = e.constant(kS32, {5}, std::span<const int32_t>(updates));
                return e.op(COLLET_OP_SCATTER, kS32, {kCount}, {x, at, with}, a, {&folding(b, f)});
              }),
              want)
        << f.name;
  }
}

TEST_P(BodyTest, Sort) {
  for (const Function& f : kFunctions) {
    Numbers want = in_;
    std::stable_sort(want.begin(), want.end(), [&](int32_t x, int32_t y) { return f.of(x) < f.of(y); });
    EXPECT_EQ(run([&](ProgramBuilder& b, RegionBuilder& e, const Handle& x) {
                RegionBuilder& r = b.region();
                Handle p = r.argument(kS32);
                Handle q = r.argument(kS32);
                r.results({compare(r, f.emit(b, r, p), f.emit(b, r, q), COLLET_DIRECTION_LT)});
                return e.op(COLLET_OP_SORT, kS32, {kCount}, {x}, collet_sort_attrs{0, 1, 0}, {&r});
              }),
              want)
        << f.name;
  }
}

TEST_P(BodyTest, SelectAndScatter) {
  for (const Function& f : kFunctions) {
    const int64_t windows = kCount / 4 + 1;
    Numbers want(kCount, -50);
    Numbers source;
    for (int64_t i = 0; i < windows; ++i) {
      source.push_back(static_cast<int32_t>(i % 4));
      int64_t chosen = i * 4;
      for (int64_t k = chosen; k < std::min(i * 4 + 4, kCount); ++k) {
        if (!(f.of(in_[static_cast<size_t>(chosen)]) >= f.of(in_[static_cast<size_t>(k)]))) chosen = k;
      }
      want[static_cast<size_t>(chosen)] = std::max(-50, f.of(source.back()));
    }
    EXPECT_EQ(run([&](ProgramBuilder& b, RegionBuilder& e, const Handle& x) {
                RegionBuilder& r = b.region();
                Handle p = r.argument(kS32);
                Handle q = r.argument(kS32);
                r.results({compare(r, f.emit(b, r, p), f.emit(b, r, q), COLLET_DIRECTION_GE)});
                Handle from = e.constant(kS32, {windows}, std::span<const int32_t>(source));
                return e.op(COLLET_OP_SELECT_AND_SCATTER, kS32, {kCount}, {x, from, e.scalar(kS32, -50)},
                            window(b, 4, 4, 0, 3), {&r, &folding(b, f)});
              }),
              want)
        << f.name;
  }
}

/// The message of a refusal must name the op.
TEST_P(BodyTest, WhatABodyCannotHoldIsNamed) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kS32, {kCount});
  RegionBuilder& r = b.region();
  Handle all = r.broadcast(r.argument(kS32), {4});
  RegionBuilder& less = b.region();
  Handle p = less.argument(kS32);
  Handle q = less.argument(kS32);
  less.results({compare(less, p, q, COLLET_DIRECTION_LT)});
  r.results({sum_of(b, r, r.op(COLLET_OP_SORT, kS32, {4}, {all}, collet_sort_attrs{}, {&less}))});
  e.results({e.op(COLLET_OP_MAP, kS32, {kCount}, {x}, {&r})});
  Compiled c(plugin_, b.finish());
  EXPECT_EQ(c.status, COLLET_UNIMPLEMENTED);
  EXPECT_NE(std::string(c.error.message).find("map whose body has sort"), std::string::npos) << c.error.message;
}

INSTANTIATE_TEST_SUITE_P(Targets, BodyTest, ::testing::ValuesIn(kLevels));

}  // namespace
}  // namespace collet::cpu::testing
