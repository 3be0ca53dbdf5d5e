// SPDX-License-Identifier: Apache-2.0
// Compares windows of all shapes with a computation one element after the other: small windows, scans from either edge,
// long windows.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

struct Dimension {
  int64_t input;
  int64_t size = 1;
  int64_t stride = 1;
  int64_t low = 0;
  int64_t high = 0;
  int64_t base_dilation = 1;
  int64_t dilation = 1;

  int64_t output() const {
    const int64_t room = (input - 1) * base_dilation + 1 + low + high - ((size - 1) * dilation + 1);
    return room < 0 ? 0 : room / stride + 1;
  }
};
using Dimensions = std::vector<Dimension>;

std::vector<int64_t> each(const Dimensions& dims, const std::function<int64_t(const Dimension&)>& what) {
  std::vector<int64_t> v;
  for (const Dimension& d : dims) v.push_back(what(d));
  return v;
}

std::vector<int64_t> inputs(const Dimensions& dims) {
  return each(dims, [](const Dimension& d) { return d.input; });
}
std::vector<int64_t> outputs(const Dimensions& dims) {
  return each(dims, [](const Dimension& d) { return d.output(); });
}

collet_window_attrs window_of(ProgramBuilder& b, const Dimensions& dims) {
  collet_window_attrs a{};
  a.window.size = b.list(each(dims, [](const Dimension& d) { return d.size; }));
  a.window.stride = b.list(each(dims, [](const Dimension& d) { return d.stride; }));
  a.window.padding_low = b.list(each(dims, [](const Dimension& d) { return d.low; }));
  a.window.padding_high = b.list(each(dims, [](const Dimension& d) { return d.high; }));
  a.window.base_dilation = b.list(each(dims, [](const Dimension& d) { return d.base_dilation; }));
  a.window.window_dilation = b.list(each(dims, [](const Dimension& d) { return d.dilation; }));
  return a;
}

int64_t product(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

std::string text_of(const Dimensions& dims) {
  std::string s;
  for (const Dimension& d : dims) {
    s += " {" + std::to_string(d.input) + " by " + std::to_string(d.size) + " stride " + std::to_string(d.stride) +
         " pad " + std::to_string(d.low) + " " + std::to_string(d.high) + " dilate " + std::to_string(d.base_dilation) +
         " " + std::to_string(d.dilation) + "}";
  }
  return s;
}

/// Calls `visit` with the linear index of each element that result `at` combines, in the order of the window.
void walk(const Dimensions& dims, const std::vector<int64_t>& at, size_t d, int64_t index,
          const std::function<void(int64_t)>& visit) {
  if (d == dims.size()) return visit(index);
  const Dimension& w = dims[d];
  for (int64_t e = 0; e < w.input; ++e) {
    const int64_t position = e * w.base_dilation + w.low - at[d] * w.stride;
    if (position < 0 || position % w.dilation != 0 || position / w.dilation >= w.size) continue;
    walk(dims, at, d + 1, index * w.input + e, visit);
  }
}

template <typename T>
std::vector<T> folded(const Dimensions& dims, const std::vector<T>& x, T init, const std::function<T(T, T)>& fold) {
  const std::vector<int64_t> out = outputs(dims);
  std::vector<T> y;
  for (int64_t i = 0; i < product(out); ++i) {
    std::vector<int64_t> at(dims.size());
    int64_t rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= out[d]) at[d] = rest % out[d];
    T sum = init;
    walk(dims, at, 0, 0, [&](int64_t e) { sum = fold(sum, x[static_cast<size_t>(e)]); });
    y.push_back(sum);
  }
  return y;
}

/// A way to combine two s32, as a body and in C++.
struct Combiner {
  const char* name;
  uint32_t opcode;  ///< 0: a body that returns its second argument unless that is 0
  uint32_t combine;
  int32_t init;
  int32_t (*of)(int32_t, int32_t);
};

const Combiner kCombiners[] = {
    {"add", COLLET_OP_ADD, COLLET_COMBINE_ADD, 7,
     [](int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }},
    {"multiply", COLLET_OP_MULTIPLY, COLLET_COMBINE_MULTIPLY, 3,
     [](int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b)); }},
    {"maximum", COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, -5, [](int32_t a, int32_t b) { return std::max(a, b); }},
    {"xor", COLLET_OP_XOR, COLLET_COMBINE_XOR, 1, [](int32_t a, int32_t b) { return a ^ b; }},
    // The combination is associative but not commutative.
    {"last", 0, COLLET_COMBINE_OTHER, 0, [](int32_t a, int32_t b) { return b != 0 ? b : a; }},
};

RegionBuilder& body_of(ProgramBuilder& b, const Combiner& c) {
  RegionBuilder& r = b.region();
  Handle p = r.argument(kS32);
  Handle q = r.argument(kS32);
  r.combine = c.combine;
  if (c.opcode != 0) {
    r.results({r.binary(c.opcode, p, q)});
  } else {
    Handle some = compare(r, q, r.scalar(kS32, 0), COLLET_DIRECTION_NE);
    r.results({r.op(COLLET_OP_SELECT, kS32, {}, {some, q, p})});
  }
  return r;
}

/// Adds the select-and-scatter that adds each element of `source` to the largest element under its window of `x`.
Handle add_to_largest(ProgramBuilder& b, RegionBuilder& e, const Handle& x, const Handle& source, const Handle& init,
                      const Dimensions& dims) {
  RegionBuilder& select = b.region();
  Handle p = select.argument(kS32);
  Handle q = select.argument(kS32);
  select.results({compare(select, p, q, COLLET_DIRECTION_GE)});
  return e.op(COLLET_OP_SELECT_AND_SCATTER, kS32, x.dims, {x, source, init}, window_of(b, dims),
              {&select, &body_of(b, kCombiners[0])});
}

std::vector<int32_t> draw(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> x(n);
  for (int32_t& v : x) v = random() % 3 == 0 ? 0 : static_cast<int32_t>(random() % 2001) - 1000;
  return x;
}

class WindowTest : public ::testing::TestWithParam<const char*> {
 protected:
  void check(const Dimensions& dims, const Combiner& c) {
    SCOPED_TRACE(std::string(c.name) + text_of(dims));
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kS32, inputs(dims));
    e.results({e.op(COLLET_OP_REDUCE_WINDOW, kS32, outputs(dims), {x, e.scalar(kS32, c.init)}, window_of(b, dims),
                    {&body_of(b, c)})});
    Compiled program(plugin_, b.finish());
    ASSERT_EQ(program.status, COLLET_OK) << program.error.message;
    const auto in = draw(static_cast<size_t>(product(inputs(dims))), 5);
    EXPECT_EQ(elements_of<int32_t>(program.run({bytes_of(in)})[0]), folded<int32_t>(dims, in, c.init, c.of));
  }

  Plugin plugin_{GetParam()};
};

TEST_P(WindowTest, ScansFromEitherEdge) {
  for (const Combiner& c : kCombiners) {
    check({{.input = 100, .size = 100, .low = 99}}, c);
    check({{.input = 100, .size = 100, .high = 99}}, c);
    check({{.input = 100, .size = 100, .low = 100, .high = -1}}, c);
    check({{.input = 100, .size = 100, .low = -1, .high = 100}}, c);
    check({{.input = 70, .size = 90, .low = 140, .high = 60}}, c);
    check({{.input = 70, .size = 90, .low = 60, .high = 140}}, c);
    check({{.input = 5}, {.input = 61, .size = 61, .low = 60}}, c);
    check({{.input = 61, .size = 61, .high = 60}, {.input = 35}}, c);
    check({{.input = 3}, {.input = 50, .size = 50, .low = 49}, {.input = 7}}, c);
    for (const int64_t few : {2, 3, 5, 8}) {
      check({{.input = 150}, {.input = few, .size = few, .low = few - 1}}, c);
      check({{.input = 133}, {.input = few, .size = few, .high = few - 1}}, c);
      check({{.input = 3}, {.input = few, .size = few, .low = few - 1}, {.input = 70}}, c);
      check({{.input = 3}, {.input = few, .size = few, .high = few - 1}, {.input = 33}}, c);
    }
  }
}

TEST_P(WindowTest, RowsThatThreadsShare) {
  const int64_t n = 1 << 17;
  for (bool reverse : {false, true}) {
    for (int64_t ahead : {0, 1}) {
      const int64_t pad = n - 1 + ahead;
      const Dimensions dims{{.input = n, .size = n, .low = reverse ? -ahead : pad, .high = reverse ? pad : -ahead}};
      ProgramBuilder b;
      RegionBuilder& e = b.entry();
      Handle x = e.argument(kS32, {n});
      e.results({e.op(COLLET_OP_REDUCE_WINDOW, kS32, {n}, {x, e.scalar(kS32, 7)}, window_of(b, dims),
                      {&body_of(b, kCombiners[0])})});
      Compiled program(plugin_, b.finish());
      ASSERT_EQ(program.status, COLLET_OK) << program.error.message;
      const auto in = draw(static_cast<size_t>(n), 6);
      std::vector<int32_t> want(in.size());
      int32_t sum = 7;
      for (size_t k = 0; k < in.size(); ++k) {
        const size_t i = reverse ? in.size() - 1 - k : k;
        if (ahead == 1) want[i] = sum;
        sum += in[i];
        if (ahead == 0) want[i] = sum;
      }
      EXPECT_EQ(elements_of<int32_t>(program.run({bytes_of(in)})[0]), want) << reverse << ahead;
    }
  }
}

TEST_P(WindowTest, LongWindows) {
  for (const Combiner& c : kCombiners) {
    check({{.input = 500, .size = 120}}, c);
    check({{.input = 500, .size = 120, .low = 60, .high = 59}}, c);
    check({{.input = 600, .size = 99, .stride = 2, .low = 5, .high = 8}}, c);
    check({{.input = 4}, {.input = 300, .size = 97, .low = 48, .high = 48}}, c);
    check({{.input = 300, .size = 97, .low = -3, .high = 48}, {.input = 9}}, c);
    check({{.input = 400, .size = 110, .low = 8, .high = 7, .dilation = 3}}, c);
    check({{.input = 300, .size = 200, .low = 8, .high = 7, .base_dilation = 2}}, c);
  }
}

TEST_P(WindowTest, SeveralDimensions) {
  for (const Combiner& c : kCombiners) {
    check({{.input = 20, .size = 20, .low = 19}, {.input = 30, .size = 30, .high = 29}}, c);
    check({{.input = 20, .size = 9, .low = 4, .high = 4}, {.input = 25, .size = 11, .stride = 2}}, c);
    check({{.input = 40, .size = 40, .low = 39}, {.input = 9, .size = 3, .stride = 2, .low = 1}}, c);
  }
}

TEST_P(WindowTest, AnyWindow) {
  std::mt19937_64 random(17);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int k = 0; k < 60; ++k) {
    Dimensions dims;
    for (int64_t d = below(2); d >= 0; --d) {
      Dimension w{.input = 1 + below(dims.empty() ? 120 : 20)};
      w.size = 1 + below(2 * w.input);
      w.base_dilation = below(4) == 0 ? 1 + below(3) : 1;
      w.dilation = below(4) == 0 ? 1 + below(3) : 1;
      w.stride = below(3) == 0 ? 1 + below(4) : 1;
      w.low = below(2) == 0 ? w.size - 1 : below(w.size + 2) - 1;
      w.high = below(2) == 0 ? w.size - 1 : below(w.size + 2) - 1;
      if (w.low + w.high + w.input < 1) w.low = 1;
      dims.push_back(w);
    }
    check(dims, kCombiners[static_cast<size_t>(below(5))]);
  }
}

TEST_P(WindowTest, WindowsAndPaddingWithoutEndOverFewElements) {
  for (const Combiner& c : kCombiners) {
    check({{.input = 8, .size = kHuge, .low = kHuge - 1}}, c);
    check({{.input = 8, .size = kHuge, .stride = 3, .low = kHuge / 2, .high = kHuge / 2 + 3}}, c);
    check({{.input = 8, .size = kHuge, .low = kHuge / 2, .high = kHuge / 2, .base_dilation = 1003}}, c);
    check({{.input = 8, .size = 1000, .stride = kHuge, .low = kHuge, .high = 3 * kHuge}}, c);
    check({{.input = 8, .size = kHuge / 4, .low = kHuge / 2, .high = kHuge / 2, .dilation = 4}}, c);
    check({{.input = 3, .size = kHuge, .low = kHuge - 1}, {.input = 4, .size = kHuge, .high = kHuge}}, c);
  }
}

TEST_P(WindowTest, SelectionAmongPaddingWithoutEnd) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Dimensions dims{{.input = 8, .size = kHuge, .low = kHuge / 2, .high = kHuge / 2}};
  Handle x = e.argument(kS32, {8});
  Handle source = e.argument(kS32, outputs(dims));
  e.results({add_to_largest(b, e, x, source, e.scalar(kS32, 0), dims)});
  Compiled c(plugin_, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  const std::vector<int32_t> in{1, 5, 2, 9, 9, 0, -1, 3};
  std::vector<int32_t> from(static_cast<size_t>(outputs(dims)[0]));
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int32_t>(i + 1);
  std::vector<int32_t> want(8, 0);
  want[3] = static_cast<int32_t>(from.size() * (from.size() + 1) / 2);
  EXPECT_EQ(elements_of<int32_t>(c.run({bytes_of(in), bytes_of(from)})[0]), want);
}

/// Windows that overlap, that leave elements out, or that cover only padding, also with equal elements.
TEST_P(WindowTest, SelectionsAreAddedToTheirElements) {
  const Dimensions cases[] = {
      {{.input = 9, .size = 3, .stride = 2, .low = 1, .high = 1}, {.input = 37, .size = 2, .stride = 3}},
      {{.input = 5, .size = 4, .low = 3, .high = 2}, {.input = 6, .size = 3, .stride = 3}, {.input = 40}},
      {{.input = 4, .size = 2, .stride = 2, .low = 6, .high = 5}, {.input = 19, .size = 5, .stride = 2, .low = 2}},
      {{.input = 70, .size = 7, .stride = 1, .low = 3, .high = 3}},
  };
  for (const Dimensions& dims : cases) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kS32, inputs(dims));
    Handle source = e.argument(kS32, outputs(dims));
    e.results({add_to_largest(b, e, x, source, e.scalar(kS32, 100), dims)});
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    std::vector<int32_t> in(static_cast<size_t>(product(inputs(dims))));
    std::vector<int32_t> from(static_cast<size_t>(product(outputs(dims))));
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i * 7 % 5);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int32_t>(i + 1);
    std::vector<int32_t> want(in.size(), 100);
    const std::vector<int64_t> out = outputs(dims);
    for (size_t i = 0; i < from.size(); ++i) {
      std::vector<int64_t> at(dims.size());
      auto rest = static_cast<int64_t>(i);
      for (size_t d = dims.size(); d-- > 0; rest /= out[d]) at[d] = rest % out[d];
      int64_t best = -1;
      walk(dims, at, 0, 0, [&](int64_t element) {
        if (best < 0 || in[static_cast<size_t>(best)] < in[static_cast<size_t>(element)]) best = element;
      });
      if (best >= 0) want[static_cast<size_t>(best)] += from[i];
    }
    EXPECT_EQ(elements_of<int32_t>(c.run({bytes_of(in), bytes_of(from)})[0]), want) << text_of(dims);
  }
}

/// Two operands whose results do not depend on each other are reduced separately; others together, as here a value and
/// its index.
TEST_P(WindowTest, SeveralOperands) {
  const int64_t n = 200;
  const Dimensions dims{{.input = n, .size = n, .low = n - 1}};
  for (bool apart : {false, true}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kS32, {n});
    Handle y = e.argument(kS32, {n});
    RegionBuilder& r = b.region();
    Handle held = r.argument(kS32);
    Handle at = r.argument(kS32);
    Handle next = r.argument(kS32);
    Handle here = r.argument(kS32);
    if (apart) {
      r.results({r.binary(COLLET_OP_MAXIMUM, held, next), r.binary(COLLET_OP_ADD, at, here)});
    } else {
      Handle keep = compare(r, held, next, COLLET_DIRECTION_GE);
      r.results(
          {r.op(COLLET_OP_SELECT, kS32, {}, {keep, held, next}), r.op(COLLET_OP_SELECT, kS32, {}, {keep, at, here})});
    }
    e.results(e.ops(COLLET_OP_REDUCE_WINDOW, {x, y}, {x, y, e.scalar(kS32, -5000), e.scalar(kS32, -1)},
                    window_of(b, dims), {&r}));
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    const auto in = draw(static_cast<size_t>(n), 9);
    std::vector<int32_t> places(static_cast<size_t>(n));
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int32_t>(i);
    const auto out = c.run({bytes_of(in), bytes_of(places)});
    std::vector<int32_t> largest;
    std::vector<int32_t> second;
    int32_t best = -5000;
    int32_t sum = -1;
    int32_t place = -1;
    for (size_t i = 0; i < in.size(); ++i) {
      if (best < in[i]) place = places[i];
      best = std::max(best, in[i]);
      sum += places[i];
      largest.push_back(best);
      second.push_back(apart ? sum : place);
    }
    EXPECT_EQ(elements_of<int32_t>(out[0]), largest);
    EXPECT_EQ(elements_of<int32_t>(out[1]), second);
  }
}

/// Compares with sums in f64. The error must not exceed that of as many additions in f32.
TEST_P(WindowTest, SumsOfFloatsStayWithinTheirBound) {
  for (const Dimensions& dims : {Dimensions{{.input = 1 << 18, .size = 1 << 18, .low = (1 << 18) - 1}},
                                 Dimensions{{.input = 1 << 18, .size = 1 << 18, .high = (1 << 18) - 1}},
                                 Dimensions{{.input = 5000, .size = 5000, .low = 4999}, {.input = 20}},
                                 Dimensions{{.input = 5000, .size = 999}}}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kF32, inputs(dims));
    RegionBuilder& r = b.region();
    Handle p = r.argument(kF32);
    Handle q = r.argument(kF32);
    r.combine = COLLET_COMBINE_ADD;
    r.results({r.binary(COLLET_OP_ADD, p, q)});
    e.results(
        {e.op(COLLET_OP_REDUCE_WINDOW, kF32, outputs(dims), {x, e.scalar(kF32, 0.0f)}, window_of(b, dims), {&r})});
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    std::mt19937 random(4);
    std::vector<float> in(static_cast<size_t>(product(inputs(dims))));
    for (float& v : in) v = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
    const auto got = elements_of<float>(c.run({bytes_of(in)})[0]);
    // Prefix sums in f64, whose differences are accurate enough here.
    const int64_t columns = dims.size() == 2 ? dims[1].input : 1;
    const int64_t n = dims[0].input;
    std::vector<double> sums(static_cast<size_t>((n + 1) * columns), 0);
    std::vector<double> sizes(sums.size(), 0);
    for (int64_t i = 0; i < n * columns; ++i) {
      const auto from = static_cast<size_t>(i);
      const auto to = static_cast<size_t>(i + columns);
      sums[to] = sums[from] + in[from];
      sizes[to] = sizes[from] + std::fabs(in[from]);
    }
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
      const int64_t start = i / columns - dims[0].low;
      const auto first = static_cast<size_t>(std::clamp<int64_t>(start, 0, n) * columns + i % columns);
      const auto end = static_cast<size_t>(std::clamp<int64_t>(start + dims[0].size, 0, n) * columns + i % columns);
      const double bound = static_cast<double>(dims[0].size) * 0x1p-24 * (sizes[end] - sizes[first]);
      ASSERT_NEAR(got[static_cast<size_t>(i)], sums[end] - sums[first], bound) << i << text_of(dims);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, WindowTest, ::testing::ValuesIn(kLevels));

}  // namespace
}  // namespace collet::cpu::testing
