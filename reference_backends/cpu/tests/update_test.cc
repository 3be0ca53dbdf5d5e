// SPDX-License-Identifier: Apache-2.0
// Tests loops that change a small part of a large array in each iteration: the array must be updated in place, whatever
// parts of it are read before.
#include <chrono>
#include <functional>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

constexpr int64_t kLength = int64_t{1} << 20;
constexpr int32_t kIterations = 20000;
constexpr double kSeconds = 2;  ///< time limit in s; copying the array in each iteration takes several times as long

Handle add(RegionBuilder& r, const Handle& x, int32_t y) {
  Handle c = r.scalar(kS32, y);
  return r.binary(COLLET_OP_ADD, x, x.dims.empty() ? c : r.broadcast(c, x.dims));
}

Handle slice(ProgramBuilder& b, RegionBuilder& r, const Handle& x, const Handle& at, int64_t n = 1) {
  return r.op(COLLET_OP_DYNAMIC_SLICE, kS32, {n}, {x, at}, collet_dynamic_slice_attrs{b.list({n})});
}

Handle update(RegionBuilder& r, const Handle& x, const Handle& with, const Handle& at) {
  return r.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, kS32, x.dims, {x, with, at});
}

/// Adds a scatter of x[at] += with for several indices.
Handle scatter_add(ProgramBuilder& b, RegionBuilder& r, const Handle& x, const Handle& at, const Handle& with) {
  RegionBuilder& body = b.region();
  Handle p = body.argument(kS32);
  Handle q = body.argument(kS32);
  body.combine = COLLET_COMBINE_ADD;
  body.results({body.binary(COLLET_OP_ADD, p, q)});
  collet_scatter_attrs a{};
  a.inserted_window_dims = a.scatter_dims_to_operand_dims = b.list({0});
  a.index_vector_dim = 1;
  return r.op(COLLET_OP_SCATTER, kS32, x.dims, {x, at, with}, a, {&body});
}

size_t at(int32_t i) {
  return static_cast<size_t>(i);
}

/// One iteration of a loop, as ops and in C++.
struct Case {
  const char* name;
  std::function<Handles(ProgramBuilder&, RegionBuilder&, const Handle& i, const Handles&)> emit;
  std::function<void(int32_t i, std::vector<Numbers>&)> iteration;
  size_t arrays = 1;
};

const Case kCases[] = {
    {"an element from its neighbour",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       return {update(r, s[0], add(r, slice(b, r, s[0], add(r, i, -1)), 3), i)};
     },
     [](int32_t i, std::vector<Numbers>& s) { s[0][at(i)] = s[0][at(i - 1)] + 3; }},
    {"an element from itself and its neighbour",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       Handle sum = r.binary(COLLET_OP_SUBTRACT, slice(b, r, s[0], add(r, i, -1)), slice(b, r, s[0], i));
       return {update(r, s[0], sum, i)};
     },
     [](int32_t i, std::vector<Numbers>& s) { s[0][at(i)] = s[0][at(i - 1)] - s[0][at(i)]; }},
    {"elements from those before, which overlap them",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       return {update(r, s[0], add(r, slice(b, r, s[0], add(r, i, -3), 8), 1), i)};
     },
     [](int32_t i, std::vector<Numbers>& s) {
       const Numbers old(s[0].begin() + i - 3, s[0].begin() + i + 5);
       for (size_t k = 0; k < 8; ++k) s[0][at(i) + k] = old[k] + 1;
     }},
    {"elements from themselves",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       return {update(r, s[0], add(r, slice(b, r, s[0], i, 40), 1), i)};
     },
     [](int32_t i, std::vector<Numbers>& s) {
       for (size_t k = 0; k < 40; ++k) ++s[0][at(i) + k];
     }},
    {"scattered sums, some at one place, of what was there",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       const int32_t apart[] = {0, -2, 0};
       Handle places =
           r.binary(COLLET_OP_ADD, r.broadcast(i, {3, 1}), r.constant(kS32, {3, 1}, std::span<const int32_t>(apart)));
       return {scatter_add(b, r, s[0], places, slice(b, r, s[0], add(r, i, -2), 3))};
     },
     [](int32_t i, std::vector<Numbers>& s) {
       const Numbers old(s[0].begin() + i - 2, s[0].begin() + i + 1);
       auto plus = [](int32_t& x, int32_t y) {
         x = static_cast<int32_t>(static_cast<uint32_t>(x) + static_cast<uint32_t>(y));
       };
       plus(s[0][at(i)], old[0]);
       plus(s[0][at(i - 2)], old[1]);
       plus(s[0][at(i)], old[2]);
     }},
    {"two elements exchanged",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       Handle before = add(r, i, -1);
       Handle first = update(r, s[0], slice(b, r, s[0], before), i);
       return {update(r, first, slice(b, r, s[0], i), before)};
     },
     [](int32_t i, std::vector<Numbers>& s) { std::swap(s[0][at(i)], s[0][at(i - 1)]); }},
    {"two arrays from each other",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       Handle before = add(r, i, -1);
       return {update(r, s[0], add(r, slice(b, r, s[1], before), 1), i),
               update(r, s[1], add(r, slice(b, r, s[0], before), 2), i)};
     },
     [](int32_t i, std::vector<Numbers>& s) {
       s[0][at(i)] = s[1][at(i - 1)] + 1;
       s[1][at(i)] = s[0][at(i - 1)] + 2;
     },
     2},
    {"old and new read after the update",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       Handle next = update(r, s[0], add(r, slice(b, r, s[0], add(r, i, -1)), 1), i);
       Handle both = r.binary(COLLET_OP_SUBTRACT, slice(b, r, next, i), slice(b, r, s[0], i));
       return {next, update(r, s[1], both, i)};
     },
     [](int32_t i, std::vector<Numbers>& s) {
       const int32_t old = s[0][at(i)];
       s[0][at(i)] = s[0][at(i - 1)] + 1;
       s[1][at(i)] = s[0][at(i)] - old;
     },
     2},
    {"an update where a number is even",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       Handle odd = r.binary(COLLET_OP_AND, i, r.scalar(kS32, 1));
       Handle even = compare(r, odd, r.scalar(kS32, 0), COLLET_DIRECTION_EQ);
       Handle next = update(r, s[0], add(r, slice(b, r, s[0], add(r, i, -1), 8), 1), i);
       return {r.op(COLLET_OP_SELECT, kS32, {kLength}, {r.broadcast(even, {kLength}), next, s[0]})};
     },
     [](int32_t i, std::vector<Numbers>& s) {
       if (i % 2 != 0) return;
       const Numbers old(s[0].begin() + i - 1, s[0].begin() + i + 7);
       for (size_t k = 0; k < 8; ++k) s[0][at(i) + k] = old[k] + 1;
     }},
    {"an update except beyond a place",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       Handle place = r.op(COLLET_OP_IOTA, kS32, {kLength}, {}, collet_iota_attrs{0});
       Handle beyond = compare(r, place, r.broadcast(add(r, i, 3), {kLength}), COLLET_DIRECTION_GT);
       Handle next = update(r, s[0], add(r, slice(b, r, s[0], i, 8), 1), i);
       return {r.op(COLLET_OP_SELECT, kS32, {kLength}, {beyond, s[0], next})};
     },
     [](int32_t i, std::vector<Numbers>& s) {
       for (size_t k = 0; k < 4; ++k) ++s[0][at(i) + k];
     }},
    {"an update in one branch",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       Handle odd = r.binary(COLLET_OP_AND, i, r.scalar(kS32, 1));
       Handle even = compare(r, odd, r.scalar(kS32, 0), COLLET_DIRECTION_EQ);
       RegionBuilder& yes = b.region();
       Handle x = yes.argument(kS32, {kLength});
       Handle k = yes.argument(kS32);
       yes.results({update(yes, x, add(yes, slice(b, yes, x, add(yes, k, -1)), 1), k)});
       RegionBuilder& no = b.region();
       no.results({no.argument(kS32, {kLength})});
       return r.ops(COLLET_OP_CONDITIONAL, {s[0]}, {even, s[0], i, s[0]}, collet_dimensions_attrs{}, {&yes, &no});
     },
     [](int32_t i, std::vector<Numbers>& s) {
       if (i % 2 == 0) s[0][at(i)] = s[0][at(i - 1)] + 1;
     }},
    {"updates in both branches",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       Handle odd = r.binary(COLLET_OP_AND, i, r.scalar(kS32, 1));
       std::vector<RegionBuilder*> branches;
       for (int32_t k = 0; k < 2; ++k) {
         branches.push_back(&b.region());
         RegionBuilder& branch = *branches.back();
         Handle x = branch.argument(kS32, {kLength});
         Handle place = branch.argument(kS32);
         branch.results({update(branch, x, add(branch, slice(b, branch, x, add(branch, place, k - 2)), 1), place)});
       }
       return r.ops(COLLET_OP_CONDITIONAL, {s[0]}, {odd, s[0], i, s[0], i}, collet_dimensions_attrs{}, branches);
     },
     [](int32_t i, std::vector<Numbers>& s) { s[0][at(i)] = s[0][at(i - (i % 2 == 0 ? 2 : 1))] + 1; }},
    {"a loop in the loop",
     [](ProgramBuilder& b, RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
       return loop(b, r, r.scalar(kS32, 8), r.scalar(kS32, 10), s,
                   [&](RegionBuilder& inner, const Handle& k, const Handles& t) -> Handles {
                     (void)i;
                     return {update(inner, t[0], add(inner, slice(b, inner, t[0], add(inner, k, -1)), 1), k)};
                   });
     },
     [](int32_t, std::vector<Numbers>& s) {
       for (size_t k = 8; k < 10; ++k) s[0][k] = s[0][k - 1] + 1;
     }},
};

TEST(UpdateTest, LargeArraysStayInPlace) {
  Plugin plugin;
  for (const Case& c : kCases) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle iterations = e.argument(kS32);
    Handles state;
    for (size_t k = 0; k < c.arrays; ++k) state.push_back(e.argument(kS32, {kLength}));
    e.results(loop(b, e, e.scalar(kS32, 8), iterations, state,
                   [&](RegionBuilder& r, const Handle& i, const Handles& s) { return c.emit(b, r, i, s); }));
    Compiled program(plugin, b.finish());
    ASSERT_EQ(program.status, COLLET_OK) << c.name << program.error.message;
    for (const int32_t count : {int32_t{8}, int32_t{9}, int32_t{12}, kIterations}) {
      std::vector<Numbers> want(c.arrays, Numbers(kLength));
      for (size_t k = 0; k < c.arrays; ++k) {
        for (size_t i = 0; i < want[k].size(); ++i) want[k][i] = static_cast<int32_t>(i * 37 % 101 + 1000 * k);
      }
      std::vector<Bytes> in{bytes_of(Numbers{count})};
      for (const Numbers& v : want) in.push_back(bytes_of(v));
      for (int32_t i = 8; i < count; ++i) c.iteration(i, want);
      const auto start = std::chrono::steady_clock::now();
      const std::vector<Bytes> out = program.run(in);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      EXPECT_LT(seconds, kSeconds) << c.name;
      for (size_t k = 0; k < c.arrays; ++k) EXPECT_TRUE(elements_of<int32_t>(out[k]) == want[k]) << c.name << count;
    }
  }
}

/// Windows overlap, and the dimension within a window precedes the one that counts windows. The window that is written
/// last must determine the result.
TEST(UpdateTest, ScatteredWindowsAreWrittenOneAfterTheOther) {
  constexpr int64_t kWindow = 40;
  constexpr int64_t kWindows = 3;
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kS32, {100});
  Handle starts = e.argument(kS32, {kWindows, 1});
  Handle windows = e.argument(kS32, {kWindow, kWindows});
  RegionBuilder& body = b.region();
  body.argument(kS32);
  body.combine = COLLET_COMBINE_SECOND;
  body.results({body.argument(kS32)});
  collet_scatter_attrs a{};
  a.update_window_dims = a.scatter_dims_to_operand_dims = b.list({0});
  a.index_vector_dim = 1;
  e.results({e.op(COLLET_OP_SCATTER, kS32, x.dims, {x, starts, windows}, a, {&body})});
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  const Numbers first{10, 35, 3};
  Numbers updates(kWindow * kWindows);
  Numbers want(100, -1);
  const Bytes in = bytes_of(want);
  for (size_t w = 0; w < kWindows; ++w) {
    for (size_t i = 0; i < kWindow; ++i) {
      updates[i * kWindows + w] = static_cast<int32_t>(1000 * w + i);
      want[at(first[w]) + i] = updates[i * kWindows + w];
    }
  }
  EXPECT_EQ(elements_of<int32_t>(c.run({in, bytes_of(first), bytes_of(updates)})[0]), want);
}

/// Many updates whose indices are unique, as the program declares, so that several threads may make them.
TEST(UpdateTest, UniqueUpdatesAreAllMade) {
  constexpr int64_t kUpdates = 1 << 18;
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kS32, {kLength});
  Handle places = e.argument(kS32, {kUpdates, 1});
  Handle with = e.argument(kS32, {kUpdates});
  RegionBuilder& body = b.region();
  Handle p = body.argument(kS32);
  Handle q = body.argument(kS32);
  body.results({body.binary(COLLET_OP_SUBTRACT, q, p)});
  collet_scatter_attrs a{};
  a.inserted_window_dims = a.scatter_dims_to_operand_dims = b.list({0});
  a.index_vector_dim = 1;
  a.unique = 1;
  e.results({e.op(COLLET_OP_SCATTER, kS32, x.dims, {x, places, with}, a, {&body})});
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  Numbers want(kLength);
  for (size_t i = 0; i < want.size(); ++i) want[i] = static_cast<int32_t>(i);
  const Bytes in = bytes_of(want);
  Numbers to(kUpdates);
  Numbers updates(kUpdates);
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<int32_t>((i * 7919 + 5) % (kLength + 1000));  // some indices are out of range
    updates[i] = static_cast<int32_t>(3 * i);
    if (to[i] < kLength) want[at(to[i])] = updates[i] - want[at(to[i])];
  }
  EXPECT_TRUE(elements_of<int32_t>(c.run({in, bytes_of(to), bytes_of(updates)})[0]) == want);
}

/// Rows of all lengths are added to few rows, so that an update reads what the one before has written. Some are out of range.
TEST(UpdateTest, RowsOfEveryLengthAreAdded) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kUpdates = 64;
  Plugin plugin;
  for (int64_t length = 1; length <= 40; ++length) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kS32, {kRows, length});
    Handle places = e.argument(kS32, {kUpdates, 1});
    Handle rows = e.argument(kS32, {kUpdates, length});
    RegionBuilder& body = b.region();
    Handle p = body.argument(kS32);
    Handle q = body.argument(kS32);
    body.combine = COLLET_COMBINE_ADD;
    body.results({body.binary(COLLET_OP_ADD, p, q)});
    collet_scatter_attrs a{};
    a.inserted_window_dims = a.scatter_dims_to_operand_dims = b.list({0});
    a.update_window_dims = b.list({1});
    a.index_vector_dim = 1;
    e.results({e.op(COLLET_OP_SCATTER, kS32, x.dims, {x, places, rows}, a, {&body})});
    Compiled c(plugin, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    Numbers want(at(kRows * length), 7);
    const Bytes in = bytes_of(want);
    Numbers to(kUpdates);
    Numbers updates(at(kUpdates * length));
    for (size_t u = 0; u < kUpdates; ++u) {
      to[u] = static_cast<int32_t>(u / 4 % (kRows + 1));
      for (size_t i = 0; i < at(length); ++i) {
        int32_t& update = updates[u * at(length) + i];
        update = static_cast<int32_t>(100 * u + i);
        if (to[u] < kRows) want[at(to[u]) * at(length) + i] += update;
      }
    }
    EXPECT_EQ(elements_of<int32_t>(c.run({in, bytes_of(to), bytes_of(updates)})[0]), want) << length;
  }
}

/// Values that are read later or returned are not overwritten.
TEST(UpdateTest, WhatIsReadLaterIsKept) {
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle iterations = e.argument(kS32);
  Handle x = e.argument(kS32, {kLength});
  const Handles out = loop(b, e, e.scalar(kS32, 8), iterations, {x, x},
                           [&](RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
                             Handle one = update(r, s[0], add(r, slice(b, r, s[0], i), 5), i);
                             Handle two = update(r, s[0], add(r, slice(b, r, one, i), 7), add(r, i, 1));
                             return {two, r.binary(COLLET_OP_ADD, s[1], r.binary(COLLET_OP_SUBTRACT, one, s[0]))};
                           });
  e.results({out[0], out[1], x});
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  Numbers in(kLength);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i % 1000);
  Numbers first = in;
  Numbers second = in;
  for (size_t i = 8; i < 15; ++i) {
    first[i + 1] = first[i] + 5 + 7;
    second[i] += 5;
  }
  const std::vector<Bytes> got = c.run({bytes_of(Numbers{15}), bytes_of(in)});
  EXPECT_TRUE(elements_of<int32_t>(got[0]) == first);
  EXPECT_TRUE(elements_of<int32_t>(got[1]) == second);
  EXPECT_TRUE(elements_of<int32_t>(got[2]) == in);
}

/// An array is also read through a reshape: an update must not overwrite elements that are still to be read through it.
TEST(UpdateTest, OtherShapesOfAnArrayAreTheSameMemory) {
  constexpr int64_t kRows = 1 << 10;
  constexpr int64_t kColumns = kLength / kRows;
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle iterations = e.argument(kS32);
  Handle x = e.argument(kS32, {kLength});
  Handle sums = e.argument(kS32, {kRows});
  const Handles out =
      loop(b, e, e.scalar(kS32, 8), iterations, {x, sums},
           [&](RegionBuilder& r, const Handle& i, const Handles& s) -> Handles {
             Handle square = r.reshape(s[0], {kRows, kColumns});
             Handle row = r.op(COLLET_OP_DYNAMIC_SLICE, kS32, {1, kColumns}, {square, i, r.scalar(kS32, 0)},
                               collet_dynamic_slice_attrs{b.list({1, kColumns})});
             Handle back = r.op(COLLET_OP_REVERSE, kS32, {1, kColumns}, {row}, collet_dimensions_attrs{b.list({1})});
             Handle at = r.binary(COLLET_OP_MULTIPLY, i, r.scalar(kS32, static_cast<int32_t>(kColumns)));
             Handle next = update(r, s[0], add(r, r.reshape(back, {kColumns}), 1), add(r, at, 3));
             // A product reads the other shape from memory.
             collet_dot_attrs a{};
             a.lhs_contracting = b.list({1});
             a.rhs_contracting = b.list({0});
             Handle ones = r.broadcast(r.scalar(kS32, 1), {kColumns});
             return {next, r.op(COLLET_OP_DOT, kS32, {kRows}, {square, ones}, a)};
           });
  e.results(out);
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  Numbers want(kLength);
  for (size_t i = 0; i < want.size(); ++i) want[i] = static_cast<int32_t>(i * 37 % 101);
  const Bytes in = bytes_of(want);
  Numbers rows(kRows);
  for (size_t i = 8; i < 20; ++i) {
    for (size_t k = 0; k < rows.size(); ++k) {
      rows[k] = 0;
      for (size_t j = 0; j < kColumns; ++j) rows[k] += want[k * kColumns + j];
    }
    const Numbers old(want.begin() + static_cast<int64_t>(i * kColumns),
                      want.begin() + static_cast<int64_t>((i + 1) * kColumns));
    for (size_t j = 0; j < kColumns; ++j) want[i * kColumns + 3 + j] = old[kColumns - 1 - j] + 1;
  }
  const std::vector<Bytes> got = c.run({bytes_of(Numbers{20}), in, bytes_of(Numbers(kRows))});
  EXPECT_TRUE(elements_of<int32_t>(got[0]) == want);
  EXPECT_TRUE(elements_of<int32_t>(got[1]) == rows);
}

}  // namespace
}  // namespace collet::cpu::testing
