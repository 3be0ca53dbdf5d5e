// SPDX-License-Identifier: Apache-2.0
// Tests loops with short iterations, which run as one function: scalars and small arrays that are permuted, nested
// loops and branches, and arrays that are too large for registers.
#include <algorithm>
#include <cmath>
#include <functional>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

/// Runs a loop. Its arguments are the number of iterations and the initial state; its results are the final state.
std::vector<Numbers> run(
    Plugin& plugin, int32_t iterations, const std::vector<Numbers>& state,
    const std::function<Handles(ProgramBuilder&, RegionBuilder&, const Handle&, const Handles&)>& iteration,
    bool in_place = false) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle count = e.argument(kS32);
  Handles first;
  for (const Numbers& v : state) {
    first.push_back(e.argument(
        kS32, v.size() == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{static_cast<int64_t>(v.size())}));
  }
  e.results(loop(b, e, e.scalar(kS32, 0), count, first,
                 [&](RegionBuilder& r, const Handle& i, const Handles& s) { return iteration(b, r, i, s); }));
  for (uint32_t k = 0; in_place && k < state.size(); ++k) b.alias(k, k + 1);
  Compiled program(plugin, b.finish());
  EXPECT_EQ(program.status, COLLET_OK) << program.error.message;
  std::vector<Bytes> in{bytes_of(Numbers{iterations})};
  for (const Numbers& v : state) in.push_back(bytes_of(v));
  std::vector<Numbers> out;
  for (const Bytes& bytes : program.run(in)) out.push_back(elements_of<int32_t>(bytes));
  return out;
}

Handle plus(RegionBuilder& r, const Handle& x, int32_t y) {
  Handle c = r.scalar(kS32, y);
  return r.binary(COLLET_OP_ADD, x, x.dims.empty() ? c : r.broadcast(c, x.dims));
}

TEST(LoopTest, ScalarsThatChangePlaces_EndAsTheyShould) {
  Plugin plugin;
  for (const bool in_place : {false, true}) {
    for (const int32_t iterations : {0, 1, 2, 3, 1000}) {
      const auto got = run(
          plugin, iterations, {{1}, {2}, {3}, {4}},
          [](ProgramBuilder&, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
            return {s[1], s[2], s[3], r.binary(COLLET_OP_XOR, r.binary(COLLET_OP_ADD, s[0], s[1]), i)};
          },
          in_place);
      uint32_t s[4] = {1, 2, 3, 4};
      for (int32_t i = 0; i < iterations; ++i) {
        const uint32_t next = (s[0] + s[1]) ^ static_cast<uint32_t>(i);
        s[0] = s[1];
        s[1] = s[2];
        s[2] = s[3];
        s[3] = next;
      }
      for (size_t k = 0; k < 4; ++k) EXPECT_EQ(got[k], Numbers{static_cast<int32_t>(s[k])}) << iterations;
    }
  }
}

TEST(LoopTest, ArraysOfAllSizes_EndAsTheyShould) {
  Plugin plugin;
  for (const size_t size : {2U, 3U, 16U, 37U, 64U, 65U, 300U}) {
    Numbers x(size);
    Numbers y(size);
    for (size_t k = 0; k < size; ++k) {
      x[k] = static_cast<int32_t>(k * 7 % 31);
      y[k] = static_cast<int32_t>(k * 5 % 13);
    }
    const auto got = run(plugin, 25, {x, y, {5}},
                         [&](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
                           Handle back =
                               r.op(COLLET_OP_REVERSE, kS32, s[0].dims, {s[0]}, collet_dimensions_attrs{b.list({0})});
                           Handle sum = r.binary(COLLET_OP_ADD, s[1], r.broadcast(i, s[1].dims));
                           Handle total = r.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, s[0], s[2], {0});
                           return {sum, back, r.binary(COLLET_OP_AND, total, r.scalar(kS32, 0xffff))};
                         });
    int32_t z = 5;
    for (int32_t i = 0; i < 25; ++i) {
      for (int32_t v : x) z += v;
      z &= 0xffff;
      Numbers sum = y;
      for (int32_t& v : sum) v += i;
      y.assign(x.rbegin(), x.rend());
      x = sum;
    }
    EXPECT_EQ(got[0], x) << size;
    EXPECT_EQ(got[1], y) << size;
    EXPECT_EQ(got[2], Numbers{z}) << size;
  }
}

/// Short arrays are taken apart into elements, put together again and computed as a whole, several times in each turn.
TEST(LoopTest, ElementsOfShortArrays_EndAsTheyShould) {
  Plugin plugin;
  for (size_t size = 1; size < 10; ++size) {
    const auto n = static_cast<int64_t>(size);
    Numbers x(size);
    for (size_t k = 0; k < size; ++k) x[k] = static_cast<int32_t>(k * 7 % 31);
    const auto got = run(
        plugin, 30, {x, {1}}, [&](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
          Handle y = n == 1 ? r.reshape(s[0], {1}) : s[0];
          for (int turn = 0; turn < 4; ++turn) {
            Handles parts;
            for (int64_t k = 0; k < n; ++k) {
              const auto element = [&](int64_t at) {
                const collet_slice_attrs a{b.list({at}), b.list({at + 1}), b.list({1})};
                return r.op(COLLET_OP_SLICE, kS32, {1}, {y}, a);
              };
              parts.push_back(r.binary(COLLET_OP_SUBTRACT, plus(r, element(k), 3), element((k + 1) % n)));
            }
            Handle stack = n == 1 ? parts[0] : r.op(COLLET_OP_CONCATENATE, kS32, {n}, parts, collet_dimension_attrs{0});
            Handle sum = r.binary(COLLET_OP_ADD, r.binary(COLLET_OP_ADD, y, stack), r.broadcast(i, {n}));
            y = r.binary(COLLET_OP_AND, sum, r.broadcast(r.scalar(kS32, 0xffff), {n}));
          }
          return {n == 1 ? r.reshape(y, {}) : y, s[1]};
        });
    for (int32_t i = 0; i < 30; ++i) {
      for (int turn = 0; turn < 4; ++turn) {
        Numbers next = x;
        for (size_t k = 0; k < size; ++k) next[k] = (x[k] + x[k] + 3 - x[(k + 1) % size] + i) & 0xffff;
        x = next;
      }
    }
    EXPECT_EQ(got[0], x) << size;
  }
}

TEST(LoopTest, LoopsAndBranchesWithin_RunAsTheyShould) {
  Plugin plugin;
  const auto got = run(plugin, 40, {{1}, {0}, Numbers(8, 0)},
                       [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
                         // A nested loop runs i % 8 times and sums its counter; the sum replaces the number of
                         // iterations.
                         Handle few = r.binary(COLLET_OP_AND, i, r.scalar(kS32, 7));
                         Handle sum = loop(b, r, r.scalar(kS32, 0), few, {s[0]},
                                           [](RegionBuilder& inner, const Handle& k, const Handles& t) -> Handles {
                                             return {inner.binary(COLLET_OP_ADD, t[0], k)};
                                           })[0];
                         std::vector<RegionBuilder*> branches;
                         for (int32_t k = 0; k < 3; ++k) {
                           branches.push_back(&b.region());
                           Handle x = branches.back()->argument(kS32);
                           branches.back()->results({plus(*branches.back(), x, 10 * k + 1)});
                         }
                         Handle which = r.binary(COLLET_OP_REMAINDER, i, r.scalar(kS32, 4));
                         Handle chosen = r.ops(COLLET_OP_CONDITIONAL, {s[1]}, {which, s[1], s[1], sum},
                                               collet_dimensions_attrs{}, branches)[0];
                         Handle with = r.reshape(chosen, {1});
                         return {sum, chosen, r.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, kS32, {8}, {s[2], with, few})};
                       });
  int32_t x = 1;
  int32_t y = 0;
  Numbers z(8, 0);
  for (int32_t i = 0; i < 40; ++i) {
    for (int32_t k = 0; k < i % 8; ++k) x += k;
    const int32_t which = std::min(i % 4, 2);
    y = (which == 2 ? x : y) + 10 * which + 1;
    z[static_cast<size_t>(i % 8)] = y;
  }
  EXPECT_EQ(got[0], Numbers{x});
  EXPECT_EQ(got[1], Numbers{y});
  EXPECT_EQ(got[2], z);
}

/// Each iteration reads what the one before has written into a large array.
TEST(LoopTest, LargeArrays_AreWrittenInEachIteration) {
  Plugin plugin;
  constexpr size_t kLength = 4000;
  Numbers x(kLength);
  for (size_t k = 0; k < kLength; ++k) x[k] = static_cast<int32_t>(k % 9);
  for (const bool in_place : {false, true}) {
    const auto got = run(
        plugin, 3999, {x, {7}},
        [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
          Handle before = r.op(COLLET_OP_DYNAMIC_SLICE, kS32, {1}, {s[0], i}, collet_dynamic_slice_attrs{b.list({1})});
          Handle old =
              r.op(COLLET_OP_DYNAMIC_SLICE, kS32, {1}, {s[0], plus(r, i, 1)}, collet_dynamic_slice_attrs{b.list({1})});
          Handle with = r.binary(COLLET_OP_ADD, r.binary(COLLET_OP_ADD, before, old), r.broadcast(s[1], {1}));
          Handle next = r.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, kS32, s[0].dims, {s[0], with, plus(r, i, 1)});
          return {next, r.binary(COLLET_OP_AND, r.reshape(with, {}), r.scalar(kS32, 15))};
        },
        in_place);
    Numbers want = x;
    int32_t y = 7;
    for (size_t i = 0; i + 1 < kLength; ++i) {
      want[i + 1] += want[i] + y;
      y = want[i + 1] & 15;
    }
    EXPECT_EQ(got[0], want);
    EXPECT_EQ(got[1], Numbers{y});
  }
}

TEST(LoopTest, TwoLoopsAndAKernelOfBoth_KeepTheirOwn) {
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle count = e.argument(kS32);
  Handle x = e.argument(kF32);
  const Iteration half = [](RegionBuilder& r, const Handle&, const Handles& s) -> Handles {
    return {r.binary(COLLET_OP_ADD, r.binary(COLLET_OP_MULTIPLY, s[0], r.scalar(kF32, 0.5F)), r.scalar(kF32, 1.0F))};
  };
  Handle first = loop(b, e, e.scalar(kS32, 0), count, {x}, half)[0];
  Handle between = half(e, count, {first})[0];
  Handle second = loop(b, e, e.scalar(kS32, 2), count, {between}, half)[0];
  e.results({first, between, second});
  Compiled program(plugin, b.finish());
  ASSERT_EQ(program.status, COLLET_OK) << program.error.message;
  const auto got = program.run({bytes_of(Numbers{5}), bytes_of(std::vector<float>{64.0F})});
  float want = 64;
  for (int i = 0; i < 5; ++i) want = want * 0.5F + 1;
  EXPECT_EQ(elements_of<float>(got[0])[0], want);
  want = want * 0.5F + 1;
  EXPECT_EQ(elements_of<float>(got[1])[0], want);
  for (int i = 2; i < 5; ++i) want = want * 0.5F + 1;
  EXPECT_EQ(elements_of<float>(got[2])[0], want);
}

}  // namespace
}  // namespace collet::cpu::testing
