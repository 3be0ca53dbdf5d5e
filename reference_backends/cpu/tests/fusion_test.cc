// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

std::vector<float> numbers(size_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-scale, scale);
  std::vector<float> v(n);
  for (float& x : v) x = draw(random);
  return v;
}

/// Adds exp(x - max) / sum along the rows, in the form in which frontends write a softmax.
Handle softmax(RegionBuilder& e, const Handle& x) {
  const int64_t rows = x.dims[0];
  Handle max = e.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, x, e.scalar(kF32, -INFINITY), {1});
  max = e.reshape(e.broadcast(e.reshape(max, {rows, 1}), {rows, 1}, {0, 1}), {rows});
  Handle shifted = e.unary(COLLET_OP_EXPONENTIAL, e.binary(COLLET_OP_SUBTRACT, x, e.broadcast(max, x.dims, {0})));
  Handle sum = e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, shifted, e.scalar(kF32, 0.0f), {1});
  return e.binary(COLLET_OP_DIVIDE, shifted, e.broadcast(sum, x.dims, {0}));
}

/// Runs `body` on a thread with a stack of `bytes` bytes.
void on_small_stack(size_t bytes, const std::function<void()>& body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread{};
  auto start = [](void* f) -> void* {
    (*static_cast<const std::function<void()>*>(f))();
    return nullptr;
  };
  void* argument = const_cast<std::function<void()>*>(&body);
  ASSERT_EQ(pthread_create(&thread, &attributes, start, argument), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

class FusionTest : public ::testing::TestWithParam<const char*> {
 protected:
  Plugin plugin_{GetParam()};
};

TEST_P(FusionTest, SoftmaxIsOneKernelThatReadsAndWritesOnce) {
  for (int64_t columns : {1, 7, 16, 100, 1000, 5000}) {
    const int64_t rows = 33;
    ProgramBuilder b;
    Handle x = b.entry().argument(kF32, {rows, columns});
    b.entry().results({softmax(b.entry(), x)});
    const collet_program* program = b.finish();
    Compiled c(plugin_, program);
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    EXPECT_EQ(c.info.kernels, 1u) << columns;
    EXPECT_EQ(c.info.traffic_bytes, static_cast<uint64_t>(2 * rows * columns * 4));
    std::vector<float> in = numbers(static_cast<size_t>(rows * columns), 1, 20);
    std::vector<float> out = elements_of<float>(c.run({bytes_of(in)})[0]);
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = &in[static_cast<size_t>(r * columns)];
      double top = *std::max_element(row, row + columns);
      double sum = 0;
      for (int64_t i = 0; i < columns; ++i) sum += std::exp(row[i] - top);
      for (int64_t i = 0; i < columns; ++i) {
        ASSERT_NEAR(out[static_cast<size_t>(r * columns + i)], std::exp(row[i] - top) / sum, 1e-6) << r << ", " << i;
      }
    }
  }
}

/// Numbers that are only moved keep all their bits, also those of signalling NaNs.
TEST_P(FusionTest, BitsOfHalvesAreKept) {
  constexpr int64_t kCount = 65536;
  for (uint32_t type : {COLLET_TYPE_F16, COLLET_TYPE_BF16}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    const Handle bits = e.argument(COLLET_TYPE_U16, {kCount});
    const Handle x = e.op(COLLET_OP_BITCAST_CONVERT, type, {kCount}, {bits});
    const Handle reversed = e.op(COLLET_OP_REVERSE, type, {kCount}, {x}, collet_dimensions_attrs{b.list({0})});
    e.results({e.op(COLLET_OP_BITCAST_CONVERT, COLLET_TYPE_U16, {kCount}, {reversed})});
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    std::vector<uint16_t> all(kCount);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    const auto got = elements_of<uint16_t>(c.run({bytes_of(all)})[0]);
    std::reverse(all.begin(), all.end());
    EXPECT_EQ(got, all);
  }
}

/// A product and a sum that reads it are rounded once, wherever the limit on the size of a kernel falls: a value must
/// not depend on how much is computed before it.
TEST_P(FusionTest, SumsStayWithTheirProducts) {
  constexpr int64_t n = 16;
  const std::vector<float> x = numbers(n, 1), y = numbers(n, 2), z{1.7f};
  std::vector<float> first;
  for (int before : {1, 2, 50, 99, 100, 101, 102, 110, 129, 130, 131, 132, 133, 134, 135, 163, 164, 165, 166, 167}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle value = e.argument(kF32, {n}), factor = e.argument(kF32, {n}), scalar = e.argument(kF32, {});
    for (int i = 0; i < before; ++i) value = e.unary(COLLET_OP_ABS, value);
    const Handle product = e.binary(COLLET_OP_MULTIPLY, value, factor);
    const Handle term = e.broadcast(e.unary(COLLET_OP_LOG, scalar), {n}, {});
    e.results({e.binary(COLLET_OP_MAXIMUM, e.binary(COLLET_OP_ADD, product, term), term)});
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    const std::vector<float> out = elements_of<float>(c.run({bytes_of(x), bytes_of(y), bytes_of(z)})[0]);
    if (first.empty()) first = out;
    EXPECT_EQ(out, first) << before << " ops before the product";
  }
}

/// Computes forty costly values of a row that two passes need, on a thread with a small stack.
TEST_P(FusionTest, LongRowsOfManyCostlyValuesNeedLittleStack) {
  constexpr int64_t rows = 2;
  constexpr int64_t columns = 8192;
  constexpr int terms = 40;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  std::vector<Handle> values;
  Handle x = e.argument(COLLET_TYPE_F64, {rows, columns});
  for (int i = 0; i < terms; ++i) {
    Handle scale = e.broadcast(e.scalar(COLLET_TYPE_F64, 1.0 / (1 + i)), {rows, columns});
    values.push_back(e.unary(COLLET_OP_EXPONENTIAL, e.binary(COLLET_OP_MULTIPLY, x, scale)));
  }
  auto sum_of = [&](bool squares) {  // two sums of all values: without the second, it would not pay to keep them
    Handle sum = values[0];
    for (int i = 1; i < terms; ++i) {
      const Handle& v = values[static_cast<size_t>(i)];
      sum = e.binary(COLLET_OP_ADD, sum, squares ? e.binary(COLLET_OP_MULTIPLY, v, v) : v);
    }
    return sum;
  };
  Handle total = e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, sum_of(true), e.scalar(COLLET_TYPE_F64, 0.0), {1});
  e.results({e.binary(COLLET_OP_DIVIDE, sum_of(false), e.broadcast(total, {rows, columns}, {0}))});
  Plugin plugin(GetParam(), "1");
  Compiled c(plugin, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  std::vector<double> in(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i % 97) / 97;
  std::vector<double> out;
  on_small_stack(512 << 10, [&] { out = elements_of<double>(c.run({bytes_of(in)})[0]); });
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = &in[static_cast<size_t>(r * columns)];
    auto sum_at = [&](int64_t i, bool squares) {
      double sum = std::exp(row[i]);
      for (int k = 1; k < terms; ++k) sum += std::exp((squares ? 2 : 1) * row[i] / (1 + k));
      return sum;
    };
    double all = 0;
    for (int64_t i = 0; i < columns; ++i) all += sum_at(i, true);
    for (int64_t i = 0; i < columns; i += 37) {
      const double want = sum_at(i, false) / all;
      ASSERT_NEAR(out[static_cast<size_t>(r * columns + i)], want, 1e-12 * want) << r << ", " << i;
    }
  }
}

TEST_P(FusionTest, SumOfProductsIsOneKernel) {
  const int64_t n = 1000;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kF32, {n, n});
  Handle y = e.argument(kF32, {n, n});
  Handle z = e.argument(kF32, {n, n});
  Handle sum = e.binary(COLLET_OP_ADD, x, e.binary(COLLET_OP_MULTIPLY, y, z));
  e.results({e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, sum, e.scalar(kF32, 0.0f), {0, 1})});
  Compiled c(plugin_, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  EXPECT_EQ(c.info.kernels, 1u);
  EXPECT_EQ(c.info.traffic_bytes, static_cast<uint64_t>(3 * n * n * 4 + 4));
  auto a = numbers(1000000, 1);
  auto m = numbers(1000000, 2);
  auto k = numbers(1000000, 3);
  double want = 0;
  for (size_t i = 0; i < a.size(); ++i) want += a[i] + static_cast<double>(m[i]) * k[i];
  EXPECT_NEAR(elements_of<float>(c.run({bytes_of(a), bytes_of(m), bytes_of(k)})[0])[0], want, 5e-4);
}

TEST_P(FusionTest, ValuesWithSeveralReadersAreComputedOnce) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kF32, {50, 60});
  Handle t = e.unary(COLLET_OP_TANH, x);
  Handle u = e.binary(COLLET_OP_MULTIPLY, t, t);
  Handle v = e.binary(COLLET_OP_ADD, t, u);
  e.results({u, v});
  Compiled c(plugin_, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  EXPECT_EQ(c.info.kernels, 1u);
  auto in = numbers(3000, 5);
  auto out = c.run({bytes_of(in)});
  auto u_out = elements_of<float>(out[0]);
  auto v_out = elements_of<float>(out[1]);
  for (size_t i = 0; i < in.size(); ++i) {
    const double want = std::tanh(static_cast<double>(in[i]));
    ASSERT_NEAR(u_out[i], want * want, 1e-6);
    ASSERT_NEAR(v_out[i], want + want * want, 1e-6);
  }
}

/// If `last` were computed in the kernel of `third`, that kernel would wait for the second's, the second's for the
/// first's, and the first's for `last`.
TEST_P(FusionTest, KernelsDoNotWaitForEachOtherInACircle) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  auto exp = [&](const Handle& x) { return e.unary(COLLET_OP_EXPONENTIAL, x); };
  // Arrays with dimensions 2, 3, 5 in one order, and rotated by one.
  auto turned = [&](const Handle& x) {
    return e.op(COLLET_OP_TRANSPOSE, kF32, {x.dims[1], x.dims[2], x.dims[0]}, {x},
                collet_dimensions_attrs{b.list({1, 2, 0})});
  };
  const std::vector<std::vector<int64_t>> orders = {{2, 3, 5}, {3, 5, 2}, {5, 2, 3}};
  std::vector<Handle> x;
  x.reserve(orders.size());
  for (const auto& dims : orders) x.push_back(e.argument(kF32, dims));
  Handle first = exp(x[0]);
  Handle second = exp(x[1]);
  Handle second_too = exp(e.binary(COLLET_OP_ADD, second, turned(first)));
  Handle third = exp(x[2]);
  Handle first_too = exp(e.binary(COLLET_OP_ADD, first, turned(third)));
  Handle last = exp(e.binary(COLLET_OP_ADD, third, turned(second)));
  e.results({first_too, second_too, last});
  const collet_program* program = b.finish();
  Plugin unfused(GetParam(), "1", "0");
  Compiled one(plugin_, program);
  Compiled many(unfused, program);
  ASSERT_EQ(one.status, COLLET_OK) << one.error.message;
  ASSERT_EQ(many.status, COLLET_OK) << many.error.message;
  EXPECT_LT(one.info.kernels, many.info.kernels);
  std::vector<Bytes> in;
  for (unsigned i = 0; i < 3; ++i) in.push_back(bytes_of(numbers(30, i)));
  const auto got = one.run(in);
  const auto want = many.run(in);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto g = elements_of<float>(got[i]);
    const auto w = elements_of<float>(want[i]);
    for (size_t k = 0; k < g.size(); ++k) ASSERT_NEAR(g[k], w[k], 1e-5 * w[k]) << i << ", " << k;
  }
}

/// Returns `x` rotated by `by` along dimension `d`, as a concatenation of two slices.
Handle rotated(ProgramBuilder& b, RegionBuilder& e, const Handle& x, size_t d, int64_t by) {
  const auto slice = [&](int64_t begin, int64_t end) {
    std::vector<int64_t> from(x.dims.size(), 0), to = x.dims, size = x.dims;
    from[d] = begin;
    to[d] = end;
    size[d] = end - begin;
    const std::vector<int64_t> strides(x.dims.size(), 1);
    return e.op(COLLET_OP_SLICE, x.element, size, {x}, collet_slice_attrs{b.list(from), b.list(to), b.list(strides)});
  };
  return e.op(COLLET_OP_CONCATENATE, x.element, x.dims, {slice(by, x.dims[d]), slice(0, by)},
              collet_dimension_attrs{static_cast<int64_t>(d)});
}

TEST_P(FusionTest, AStencilOfRotationsReadsAndWritesOnce) {
  constexpr int64_t n = 100;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kF32, {n, n});
  Handle sum = e.binary(COLLET_OP_ADD, rotated(b, e, x, 0, 1), rotated(b, e, x, 0, n - 1));
  sum = e.binary(COLLET_OP_ADD, sum, e.binary(COLLET_OP_ADD, rotated(b, e, x, 1, 1), rotated(b, e, x, 1, n - 1)));
  e.results({sum});
  Compiled c(plugin_, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  EXPECT_EQ(c.info.kernels, 9u);  // the inner points, four edges, and four corners
  EXPECT_LT(c.info.workspace_bytes, static_cast<uint64_t>(n * n * 4));
  const std::vector<float> in = numbers(n * n, 1);
  const std::vector<float> out = elements_of<float>(c.run({bytes_of(in)})[0]);
  const auto at = [&](int64_t i, int64_t j) { return in[static_cast<size_t>((i + n) % n * n + (j + n) % n)]; };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float want = (at(i + 1, j) + at(i - 1, j)) + (at(i, j + 1) + at(i, j - 1));
      ASSERT_EQ(out[static_cast<size_t>(i * n + j)], want) << i << ", " << j;
    }
  }
}

/// Compares random expressions of rotated arrays, fused, with the same expressions in one kernel per op.
TEST_P(FusionTest, ConcatenationsInsideElementwiseOpsGiveTheSame) {
  Plugin unfused(GetParam(), "1", "0");
  std::mt19937 random(5);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const std::vector<std::vector<int64_t>> shapes = {{1500}, {40, 50}, {5, 500}, {300, 7}, {6, 20, 33}, {700, 500}};
  for (int trial = 0; trial < 25; ++trial) {
    const std::vector<int64_t>& dims = shapes[static_cast<size_t>(below(static_cast<int64_t>(shapes.size())))];
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    std::vector<Handle> values = {e.argument(kF32, dims), e.argument(kF32, dims)};
    const auto any = [&] { return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))]; };
    for (int step = 0; step < 8; ++step) {
      const auto d = static_cast<size_t>(below(static_cast<int64_t>(dims.size())));
      switch (below(4)) {
        case 0:
          values.push_back(e.unary(COLLET_OP_NEGATE, any()));
          break;
        case 1:
          values.push_back(e.binary(COLLET_OP_ADD, any(), values.back()));
          break;
        default:
          values.push_back(rotated(b, e, any(), d, 1 + below(dims[d] - 1)));
          values.push_back(e.binary(COLLET_OP_MAXIMUM, values.back(), any()));
      }
    }
    std::vector<Handle> results = {values.back()};
    if (below(2) == 0) results.push_back(values[values.size() / 2 + 1]);
    if (below(2) == 0) {
      const auto last = static_cast<int64_t>(dims.size()) - 1;
      results.push_back(
          e.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, values.back(), e.scalar(kF32, -INFINITY), {last}));
    }
    e.results(results);
    const collet_program* program = b.finish();
    Compiled one(plugin_, program);
    Compiled many(unfused, program);
    ASSERT_EQ(one.status, COLLET_OK) << one.error.message;
    ASSERT_EQ(many.status, COLLET_OK) << many.error.message;
    size_t elements = 1;
    for (const int64_t n : dims) elements *= static_cast<size_t>(n);
    const std::vector<Bytes> in = {bytes_of(numbers(elements, 1)), bytes_of(numbers(elements, 2))};
    ASSERT_EQ(one.run(in), many.run(in)) << "trial " << trial;
  }
}

/// Concatenates arrays whose rows are written in blocks, along any dimension but the first.
TEST_P(FusionTest, ConcatenationsOfRowsGiveTheirOperands) {
  struct Case {
    std::vector<int64_t> rows;   ///< dimensions before the one along which the operands follow each other
    std::vector<int64_t> sizes;  ///< of the operands along that dimension
    std::vector<int64_t> after;  ///< dimensions after it
  };
  const Case cases[] = {{{1024}, {512, 1024}, {}},     {{700, 3}, {40, 1, 300}, {}},
                        {{3, 500}, {2, 5}, {99}},      {{100}, {1, 2, 3}, {41, 17}},
                        {{1, 1000}, {37, 0, 400}, {}}, {{2, 3, 250}, {1, 1, 1, 1}, {16, 16}},
                        {{90000}, {2, 3}, {}},         {{3}, {100001, 100002}, {}},
                        {{65, 1}, {4096, 4096}, {}},   {{513}, {1000, 24, 3, 5, 999}, {}}};
  for (const Case& c : cases) {
    const int64_t rows = std::accumulate(c.rows.begin(), c.rows.end(), int64_t{1}, std::multiplies<>());
    const int64_t inside = std::accumulate(c.after.begin(), c.after.end(), int64_t{1}, std::multiplies<>());
    const int64_t size = std::accumulate(c.sizes.begin(), c.sizes.end(), int64_t{0});
    std::vector<int64_t> dims = c.rows;
    dims.push_back(size);
    dims.insert(dims.end(), c.after.begin(), c.after.end());
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    std::vector<Handle> operands;
    std::vector<Bytes> in;
    std::vector<float> want(static_cast<size_t>(rows * size * inside));
    int64_t begin = 0;
    for (const int64_t n : c.sizes) {
      dims[c.rows.size()] = n;
      const Handle x = e.argument(kF32, dims);
      const bool negates = operands.size() % 2 == 1;
      operands.push_back(negates ? e.unary(COLLET_OP_NEGATE, x) : x);
      const std::vector<float> values = numbers(static_cast<size_t>(rows * n * inside), static_cast<unsigned>(n));
      in.push_back(bytes_of(values));
      for (int64_t i = 0; i < rows * n * inside; ++i) {
        const int64_t row = i / (n * inside), at = i % (n * inside);
        const float x_i = values[static_cast<size_t>(i)];
        want[static_cast<size_t>((row * size + begin) * inside + at)] = negates ? -x_i : x_i;
      }
      begin += n;
    }
    dims[c.rows.size()] = size;
    e.results({e.op(COLLET_OP_CONCATENATE, kF32, dims, operands,
                    collet_dimension_attrs{static_cast<int64_t>(c.rows.size())})});
    Compiled compiled(plugin_, b.finish());
    ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
    EXPECT_EQ(compiled.run(in)[0], bytes_of(want)) << "case " << &c - cases;
  }
}

/// Transposes arrays of many small dimensions, which are merged before and after, and repeats the result.
TEST_P(FusionTest, MergedDimensionsAreTransposed) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 80; ++trial) {
    const size_t rank = 3 + random() % 4;
    std::vector<int64_t> dims(rank), order(rank), moved(rank), strides(rank, 1);
    int64_t elements = 1;
    for (size_t d = rank; d-- > 0;) {
      dims[d] = std::vector<int64_t>{1, 2, 3, 4, 5, 7, 16}[random() % 7];
      strides[d] = elements;
      elements *= dims[d];
      order[d] = static_cast<int64_t>(d);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (size_t d = 0; d < rank; ++d) moved[d] = dims[static_cast<size_t>(order[d])];
    const int64_t rows = moved[0] * moved[1];
    const int64_t columns = elements / rows;
    const int64_t times = 1 + static_cast<int64_t>(random() % 3);
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.unary(COLLET_OP_NEGATE, e.argument(kF32, {elements}));
    x = e.op(COLLET_OP_TRANSPOSE, kF32, moved, {e.reshape(x, dims)}, collet_dimensions_attrs{b.list(order)});
    x = e.broadcast(e.reshape(x, {rows, columns}), {rows, times, columns}, {0, 2});
    e.results({e.reshape(x, {rows, times * columns})});
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    const std::vector<float> in = numbers(static_cast<size_t>(elements), 3);
    const std::vector<float> out = elements_of<float>(c.run({bytes_of(in)})[0]);
    for (int64_t i = 0; i < elements * times; ++i) {
      int64_t at = i / (columns * times) * columns + i % columns;
      int64_t from = 0;
      for (size_t d = rank; d-- > 0; at /= moved[d]) from += at % moved[d] * strides[static_cast<size_t>(order[d])];
      ASSERT_EQ(out[static_cast<size_t>(i)], -in[static_cast<size_t>(from)]) << "trial " << trial << " at " << i;
    }
  }
}

/// Repeats each element of a row, with vectors that are full and vectors that are not.
template <typename T>
void expect_repeats(Plugin& plugin, uint32_t type) {
  for (const int64_t times : {2, 3, 4, 8, 16, 32}) {
    for (const int64_t columns : {1, 5, 16, 40, 67}) {
      constexpr int64_t rows = 3;
      ProgramBuilder b;
      RegionBuilder& e = b.entry();
      Handle x = e.argument(type, {rows, columns});
      e.results({e.reshape(e.broadcast(x, {rows, columns, times}, {0, 1}), {rows, columns * times})});
      Compiled c(plugin, b.finish());
      ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
      std::vector<T> in(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(i + 1);
      const std::vector<T> out = elements_of<T>(c.run({bytes_of(in)})[0]);
      ASSERT_EQ(out.size(), in.size() * static_cast<size_t>(times));
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], in[i / static_cast<size_t>(times)]) << times << " times " << columns << " at " << i;
    }
  }
}

TEST_P(FusionTest, ElementsAreRepeated) {
  expect_repeats<float>(plugin_, kF32);
  expect_repeats<double>(plugin_, COLLET_TYPE_F64);
  expect_repeats<uint8_t>(plugin_, COLLET_TYPE_U8);
  expect_repeats<uint16_t>(plugin_, COLLET_TYPE_U16);
}

TEST_P(FusionTest, UnfusedGivesTheSame) {
  ProgramBuilder b;
  Handle x = b.entry().argument(kF32, {9, 31});
  b.entry().results({softmax(b.entry(), x)});
  const collet_program* program = b.finish();
  Plugin unfused(GetParam(), "1", "0");
  Compiled one(plugin_, program);
  Compiled many(unfused, program);
  ASSERT_EQ(one.status, COLLET_OK);
  ASSERT_EQ(many.status, COLLET_OK);
  EXPECT_GT(many.info.kernels, 3u);
  auto in = bytes_of(numbers(9 * 31, 7));
  auto a = elements_of<float>(one.run({in})[0]);
  auto c = elements_of<float>(many.run({in})[0]);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], c[i], 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Targets, FusionTest, ::testing::ValuesIn(kLevels));

}  // namespace
}  // namespace collet::cpu::testing
