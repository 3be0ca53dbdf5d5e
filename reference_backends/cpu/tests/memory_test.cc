// SPDX-License-Identifier: Apache-2.0
#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include <cmath>
#include <fstream>
#include <thread>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

std::vector<float> count_from(float first, size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = first + static_cast<float>(i);
  return v;
}

TEST(MemoryTest, ArgumentsReturnedUnchangedAndTwice) {
  Plugin plugin;
  ProgramBuilder b;
  Handle x = b.entry().argument(kF32, {10});
  Handle y = b.entry().unary(COLLET_OP_NEGATE, x);
  b.entry().results({x, y, y, x});
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  auto in = count_from(1, 10);
  auto out = c.run({bytes_of(in)});
  EXPECT_EQ(elements_of<float>(out[0]), in);
  EXPECT_EQ(elements_of<float>(out[3]), in);
  EXPECT_EQ(elements_of<float>(out[1])[9], -10);
  EXPECT_EQ(out[1], out[2]);
}

#if defined(__linux__)
/// Returns the bytes of this process that are in memory.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(MemoryTest, ReleasedMemoryGoesBackToTheSystem) {
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  Plugin plugin;
  const int64_t before = resident_bytes();
  {
    std::vector<std::unique_ptr<Memory>> blocks;
    for (int i = 0; i < 8; ++i) {
      blocks.push_back(std::make_unique<Memory>(plugin, kBytes));
      blocks.back()->put(Bytes(kBytes, 1));
    }
    EXPECT_GT(resident_bytes(), before + static_cast<int64_t>(7 * kBytes));
  }
  EXPECT_LT(resident_bytes(), before + static_cast<int64_t>(2 * kBytes));
}
#endif

/// Indices within rows are 32 bits wide, so longer rows cannot be sorted.
TEST(MemoryTest, RowsTooLongToSortAreRefused) {
  Plugin plugin;
  for (int64_t length : {int64_t{1} << 10, (int64_t{1} << 31) + 8}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(COLLET_TYPE_S8, {length});
    RegionBuilder& less = b.region();
    Handle p = less.argument(COLLET_TYPE_S8);
    Handle q = less.argument(COLLET_TYPE_S8);
    collet_compare_attrs how{COLLET_DIRECTION_LT, COLLET_COMPARE_SIGNED};
    less.results({less.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {p, q}, how)});
    collet_sort_attrs a{};
    e.results({e.op(COLLET_OP_SORT, COLLET_TYPE_S8, {length}, {x}, a, {&less})});
    Compiled c(plugin, b.finish());
    EXPECT_EQ(c.status == COLLET_OK, length < INT32_MAX) << length;
  }
}

/// Tests results that share memory with arguments, in all ways that a launch may choose.
TEST(MemoryTest, SwappedArgumentsInEachOthersMemory) {
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kF32, {100});
  Handle y = e.argument(kF32, {100});
  e.results({y, x, e.binary(COLLET_OP_ADD, x, y)});
  b.alias(0, 0);
  b.alias(1, 1);
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  Memory p(plugin, 400);
  Memory q(plugin, 400);
  Memory r(plugin, 400);
  auto one = bytes_of(count_from(1, 100));
  auto two = bytes_of(count_from(1000, 100));
  p.put(one);
  q.put(two);
  c.launch({p.argument(), q.argument()}, {p.argument(), q.argument(), r.argument()});
  EXPECT_EQ(p.get(), two);
  EXPECT_EQ(q.get(), one);
  EXPECT_EQ(elements_of<float>(r.get())[99], 100 + 1099);
}

TEST(MemoryTest, AResultMustNotOverwriteWhatIsStillRead) {
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kF32, {8, 8});
  Handle turned = e.op(COLLET_OP_TRANSPOSE, kF32, {8, 8}, {x}, collet_dimensions_attrs{b.list({1, 0})});
  Handle sum = e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, x, e.scalar(kF32, 0.0f), {0, 1});
  e.results({turned, sum});
  b.alias(0, 0);
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  Memory p(plugin, 256);
  Memory s(plugin, 4);
  p.put(bytes_of(count_from(0, 64)));
  c.launch({p.argument()}, {p.argument(), s.argument()});
  auto out = elements_of<float>(p.get());
  for (size_t i = 0; i < 8; ++i) {
    for (size_t j = 0; j < 8; ++j) EXPECT_EQ(out[i * 8 + j], static_cast<float>(j * 8 + i));
  }
  EXPECT_EQ(elements_of<float>(s.get())[0], 63 * 64 / 2);
}

/// The loop while (i < n) { i += 1; (a, b, c) = (b, a + b, c with a written at i) }.
TEST(MemoryTest, LoopStatesChangePlaces) {
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle n = e.argument(kS32, {});
  Handle a = e.argument(kF32, {4});
  Handle f = e.argument(kF32, {4});
  Handle store = e.broadcast(e.scalar(kF32, 0.0f), {10, 4});
  e.results(loop(b, e, e.scalar(kS32, 0), n, {a, f, store},
                 [](RegionBuilder& body, const Handle& i, const Handles& s) -> Handles {
                   Handle put = body.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, kF32, {10, 4},
                                        {s[2], body.reshape(s[0], {1, 4}), i, body.scalar(kS32, 0)});
                   return {s[1], body.binary(COLLET_OP_ADD, s[0], s[1]), put};
                 }));
  Compiled compiled(plugin, b.finish());
  ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
  for (int32_t trips : {0, 1, 2, 7, 10}) {
    float x = 0;
    float y = 1;
    std::vector<float> rows(40, 0.0f);
    for (int32_t i = 0; i < trips; ++i) {
      for (size_t k = 0; k < 4; ++k) rows[static_cast<size_t>(i) * 4 + k] = x;
      float sum = x + y;
      x = y;
      y = sum;
    }
    auto got = compiled.run({bytes_of(std::vector<int32_t>{trips}), bytes_of(std::vector<float>(4, 0.0f)),
                             bytes_of(std::vector<float>(4, 1.0f))});
    EXPECT_EQ(elements_of<float>(got[0]), std::vector<float>(4, x)) << trips;
    EXPECT_EQ(elements_of<float>(got[1]), std::vector<float>(4, y)) << trips;
    EXPECT_EQ(elements_of<float>(got[2]), rows) << trips;
  }
}

/// The loop while (i < n) h = h w^T. w must be read in place, packed once, and returned; the final h is written to the
/// memory of w.
TEST(MemoryTest, LoopsReadInPlaceWhatTheyDoNotChange) {
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle n = e.argument(kS32, {});
  Handle h = e.argument(kF32, {48, 48});
  Handle w = e.argument(kF32, {48, 48});
  collet_dot_attrs dot{};
  dot.lhs_contracting = b.list({1});
  dot.rhs_contracting = b.list({1});
  e.results(
      loop(b, e, e.scalar(kS32, 0), n, {h, w}, [&](RegionBuilder& body, const Handle&, const Handles& s) -> Handles {
        return {body.op(COLLET_OP_DOT, kF32, {48, 48}, {s[0], s[1]}, dot), s[1]};
      }));
  b.alias(0, 2);
  Compiled compiled(plugin, b.finish());
  ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
  std::vector<float> weights(48 * 48);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>((i * 7 % 5) / 2) - 1;
  for (int32_t trips : {0, 1, 3}) {
    std::vector<float> want(48 * 48);
    for (size_t i = 0; i < want.size(); ++i) want[i] = static_cast<float>(i % 3);
    const std::vector<float> start = want;
    for (int32_t t = 0; t < trips; ++t) {
      const std::vector<float> old = want;
      for (size_t i = 0; i < 48; ++i) {
        for (size_t j = 0; j < 48; ++j) {
          float sum = 0;
          for (size_t k = 0; k < 48; ++k) sum += old[i * 48 + k] * weights[j * 48 + k];
          want[i * 48 + j] = sum;
        }
      }
    }
    Memory count(plugin, 4);
    Memory first(plugin, 48 * 48 * 4);
    Memory shared(plugin, 48 * 48 * 4);
    Memory other(plugin, 48 * 48 * 4);
    count.put(bytes_of(std::vector<int32_t>{trips}));
    first.put(bytes_of(start));
    shared.put(bytes_of(weights));
    compiled.launch({count.argument(), first.argument(), shared.argument()}, {shared.argument(), other.argument()});
    EXPECT_EQ(elements_of<float>(shared.get()), want) << trips;
    EXPECT_EQ(elements_of<float>(other.get()), weights) << trips;
    EXPECT_EQ(elements_of<float>(first.get()), start) << trips;
  }
}

/// A branch writes to its operand, which is still needed afterwards.
TEST(MemoryTest, BranchesDoNotSpoilTheirOperands) {
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle which = e.argument(kS32, {});
  Handle x = e.argument(kF32, {6});
  Handle y = e.unary(COLLET_OP_NEGATE, x);
  std::vector<RegionBuilder*> branches;
  for (int k = 0; k < 3; ++k) {
    RegionBuilder& r = b.region();
    Handle v = r.argument(kF32, {6});
    Handle one = r.broadcast(r.scalar(kF32, static_cast<float>(100 * k)), {1});
    r.results({k == 2 ? v : r.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, kF32, {6}, {v, one, r.scalar(kS32, k)})});
    branches.push_back(&r);
  }
  Handle chosen = e.op(COLLET_OP_CONDITIONAL, kF32, {6}, {which, y, y, y}, branches);
  e.results({chosen, e.binary(COLLET_OP_ADD, chosen, y)});
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  for (int32_t k : {0, 1, 2, 9, -1}) {
    std::vector<float> want{-1, -2, -3, -4, -5, -6};
    if (k == 0) want[0] = 0;
    if (k == 1) want[1] = 100;
    auto out = c.run({bytes_of(std::vector<int32_t>{k}), bytes_of(count_from(1, 6))});
    EXPECT_EQ(elements_of<float>(out[0]), want) << k;
    EXPECT_EQ(elements_of<float>(out[1])[5], -12) << k;
  }
}

TEST(MemoryTest, EmptyArrays) {
  Plugin plugin;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kF32, {0, 5});
  Handle zero = e.scalar(kF32, 3.0f);
  Handle sum = e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, x, zero, {0});
  Handle padded =
      e.op(COLLET_OP_PAD, kF32, {2, 5}, {x, zero}, collet_pad_attrs{b.list({1, 0}), b.list({1, 0}), b.list({0, 0})});
  e.results({e.unary(COLLET_OP_NEGATE, x), sum, padded});
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  auto out = c.run({Bytes()});
  EXPECT_EQ(elements_of<float>(out[1]), std::vector<float>(5, 3.0f));
  EXPECT_EQ(elements_of<float>(out[2]), std::vector<float>(10, 3.0f));
}

TEST(MemoryTest, RefusesWhatItCannotKnow) {
  Plugin plugin;
  auto compile_with = [&](auto change) {
    ProgramBuilder b;
    Handle x = b.entry().argument(kF32, {4});
    b.entry().results({b.entry().unary(COLLET_OP_NEGATE, x)});
    auto* program = const_cast<collet_program*>(b.finish());
    auto* op = const_cast<collet_op*>(collet_op_at(program, 0));
    change(program, op);
    Compiled c(plugin, program);
    EXPECT_NE(std::string(c.error.message), "");
    return c.status;
  };
  EXPECT_EQ(compile_with([](collet_program*, collet_op* op) { op->opcode = 200; }), COLLET_UNIMPLEMENTED);
  EXPECT_EQ(compile_with([](collet_program*, collet_op* op) { op->since = 99; }), COLLET_UNIMPLEMENTED);
  EXPECT_EQ(compile_with([](collet_program*, collet_op* op) { op->reserved = 1; }), COLLET_UNIMPLEMENTED);
  EXPECT_EQ(compile_with([](collet_program* p, collet_op*) { p->flags = 1; }), COLLET_UNIMPLEMENTED);
  EXPECT_EQ(
      compile_with([](collet_program* p, collet_op*) { const_cast<collet_type*>(collet_type_at(p, 0))->layout = 1; }),
      COLLET_UNIMPLEMENTED);
  EXPECT_EQ(compile_with([](collet_program*, collet_op* op) { op->opcode = COLLET_OP_CUSTOM_CALL; }),
            COLLET_UNIMPLEMENTED);
}

#if defined(__linux__)
TEST(MemoryTest, OfOneProcessor_TheBackendHasOneThread) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  std::thread([first] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    Plugin plugin("", "");
    collet_device_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(plugin.table->device_info(plugin.instance, 0, &info, &plugin.error), COLLET_OK);
    EXPECT_EQ(info.compute_units, 1u);
  }).join();
}
#endif

TEST(MemoryTest, ThreadsCompileAndRunAtOnce) {
  Plugin plugin;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&plugin, t] {
      for (int round = 0; round < 3; ++round) {
        const int64_t n = 1000 + 37 * t + round;
        ProgramBuilder b;
        RegionBuilder& e = b.entry();
        Handle x = e.argument(kF32, {n, 64});
        Handle y = e.unary(COLLET_OP_TANH, e.binary(COLLET_OP_MULTIPLY, x, x));
        collet_dot_attrs a{};
        a.lhs_contracting = a.rhs_contracting = b.list({1});
        e.results({e.op(COLLET_OP_DOT, kF32, {n, n}, {y, x}, a)});
        Compiled c(plugin, b.finish());
        ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
        auto out = elements_of<float>(c.run({bytes_of(std::vector<float>(static_cast<size_t>(n * 64), 0.5f))})[0]);
        for (float v : out) ASSERT_NEAR(v, 64 * 0.5 * std::tanh(0.25), 1e-4);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace collet::cpu::testing
