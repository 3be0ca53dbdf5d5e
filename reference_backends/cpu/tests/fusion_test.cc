// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <random>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

using codegen::testing::Handle;
using codegen::testing::ProgramBuilder;
using codegen::testing::RegionBuilder;

constexpr uint32_t kF32 = COLLET_TYPE_F32;

std::vector<float> numbers(size_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-scale, scale);
  std::vector<float> v(n);
  for (float& x : v) x = draw(random);
  return v;
}

/// exp(x - max) / sum along the rows, as frontends write it.
Handle softmax(RegionBuilder& e, const Handle& x) {
  const int64_t rows = x.dims[0];
  Handle max = e.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, x, e.scalar(kF32, -INFINITY), {1});
  max = e.reshape(e.broadcast(e.reshape(max, {rows, 1}), {rows, 1}, {0, 1}), {rows});
  Handle shifted = e.unary(COLLET_OP_EXPONENTIAL, e.binary(COLLET_OP_SUBTRACT, x, e.broadcast(max, x.dims, {0})));
  Handle sum = e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, shifted, e.scalar(kF32, 0.0f), {1});
  return e.binary(COLLET_OP_DIVIDE, shifted, e.broadcast(sum, x.dims, {0}));
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

INSTANTIATE_TEST_SUITE_P(Targets, FusionTest, ::testing::Values("", "-avx512f", "-sse3"));

}  // namespace
}  // namespace collet::cpu::testing
