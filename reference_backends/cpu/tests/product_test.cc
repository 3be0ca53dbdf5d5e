// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <type_traits>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

/// Returns small integers, so that every sum is exact.
template <typename T>
std::vector<T> integers(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> v(n);
  for (T& x : v) x = static_cast<T>(static_cast<int>(random() % 9) - 4);
  return v;
}

class ProductTest : public ::testing::TestWithParam<const char*> {
 protected:
  Plugin plugin_{GetParam()};

  template <typename T>
  void dot(uint32_t type, int64_t batch, int64_t m, int64_t n, int64_t k, bool lhs_turned, bool rhs_turned) {
    dot<T, T>(type, type, integers<T>(static_cast<size_t>(batch * m * k), 1),
              integers<T>(static_cast<size_t>(batch * k * n), 2), batch, m, n, k, lhs_turned, rhs_turned);
  }

  template <typename T, typename R>
  void dot(uint32_t type, uint32_t result, const std::vector<T>& p, const std::vector<T>& q, int64_t batch, int64_t m,
           int64_t n, int64_t k, bool lhs_turned, bool rhs_turned) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(type, lhs_turned ? std::vector<int64_t>{batch, k, m} : std::vector<int64_t>{batch, m, k});
    Handle y = e.argument(type, rhs_turned ? std::vector<int64_t>{batch, n, k} : std::vector<int64_t>{batch, k, n});
    collet_dot_attrs a{};
    a.lhs_batch = b.list({0});
    a.rhs_batch = b.list({0});
    a.lhs_contracting = b.list({lhs_turned ? 1 : 2});
    a.rhs_contracting = b.list({rhs_turned ? 2 : 1});
    e.results({e.op(COLLET_OP_DOT, result, {batch, m, n}, {x, y}, a)});
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    auto got = elements_of<R>(c.run({bytes_of(p), bytes_of(q)})[0]);
    for (int64_t g = 0; g < batch; ++g) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          R want = 0;
          for (int64_t d = 0; d < k; ++d) {
            const int64_t at = lhs_turned ? (g * k + d) * m + i : (g * m + i) * k + d;
            const int64_t bt = rhs_turned ? (g * n + j) * k + d : (g * k + d) * n + j;
            want = static_cast<R>(want + static_cast<R>(p[static_cast<size_t>(at)]) * q[static_cast<size_t>(bt)]);
          }
          ASSERT_EQ(got[static_cast<size_t>((g * m + i) * n + j)], want)
              << batch << "x" << m << "x" << n << "x" << k << " at " << g << ", " << i << ", " << j;
        }
      }
    }
  }
};

TEST_P(ProductTest, EveryShapeAndLayout) {
  const int64_t sizes[][3] = {{1, 1, 1},    {1, 17, 33},  {14, 32, 64},  {15, 33, 65},  {13, 5, 9},
                              {3, 100, 7},  {35, 70, 1},  {100, 10, 78}, {29, 70, 400}, {64, 16, 513},
                              {2, 256, 31}, {257, 4, 12}, {7, 1, 1}};
  for (auto [m, n, k] : sizes) {
    for (bool lhs : {false, true}) {
      for (bool rhs : {false, true}) {
        dot<float>(COLLET_TYPE_F32, 1, m, n, k, lhs, rhs);
        dot<double>(COLLET_TYPE_F64, 2, m, n, k, lhs, rhs);
      }
    }
    dot<float>(COLLET_TYPE_F32, 3, m, n, k, false, true);
    dot<int32_t>(COLLET_TYPE_S32, 2, m, n, k, true, false);
  }
}

/// Products of 8-bit integers, including the smallest and the largest, must be exact.
TEST_P(ProductTest, SumsOfSmallIntegersAreExact) {
  const int64_t sizes[][3] = {{14, 32, 64}, {15, 33, 66}, {13, 5, 10},   {29, 70, 401},  {64, 16, 514}, {5, 7, 2},
                              {1, 40, 40},  {15, 33, 64}, {29, 70, 400}, {45, 40, 1700}, {15, 33, 1}};
  std::mt19937 random(7);
  const auto fill = [&](auto& v) {
    for (auto& x : v) {
      using T = std::decay_t<decltype(x)>;
      const uint32_t r = random();
      x = r % 3 == 0   ? std::numeric_limits<T>::min()
          : r % 3 == 1 ? std::numeric_limits<T>::max()
                       : static_cast<T>(r >> 8);
    }
  };
  for (auto [m, n, k] : sizes) {
    for (const int64_t batch : {1, 2}) {
      for (const int turned : {0, 1, 2, 3}) {
        std::vector<int8_t> p(static_cast<size_t>(batch * m * k));
        std::vector<int8_t> q(static_cast<size_t>(batch * k * n));
        fill(p);
        fill(q);
        dot<int8_t, int32_t>(COLLET_TYPE_S8, COLLET_TYPE_S32, p, q, batch, m, n, k, turned % 2 == 1, turned > 1);
        std::vector<uint8_t> r(p.size());
        std::vector<uint8_t> t(q.size());
        fill(r);
        fill(t);
        dot<uint8_t, int32_t>(COLLET_TYPE_U8, COLLET_TYPE_S32, r, t, batch, m, n, k, turned % 2 == 1, turned > 1);
      }
    }
  }
}

/// For u8 times s8 and s8 times u8, the conversions are part of the product.
TEST_P(ProductTest, SumsOfMixedIntegersAreExact) {
  for (const bool swapped : {false, true}) {
    const int64_t m = 29, n = 70, k = 404;
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    const Handle x = e.argument(swapped ? COLLET_TYPE_S8 : COLLET_TYPE_U8, {m, k});
    const Handle y = e.argument(swapped ? COLLET_TYPE_U8 : COLLET_TYPE_S8, {k, n});
    collet_dot_attrs a{};
    a.lhs_contracting = b.list({1});
    a.rhs_contracting = b.list({0});
    const auto wide = [&](const Handle& h) { return e.op(COLLET_OP_CONVERT, COLLET_TYPE_S32, h.dims, {h}); };
    e.results({e.op(COLLET_OP_DOT, COLLET_TYPE_S32, {m, n}, {wide(x), wide(y)}, a)});
    std::vector<uint8_t> p(static_cast<size_t>(m * k));
    std::vector<uint8_t> q(static_cast<size_t>(k * n));
    std::mt19937 random(7);
    for (auto* v : {&p, &q}) {
      for (uint8_t& byte : *v) byte = static_cast<uint8_t>(random());
    }
    const auto value = [](uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : int{byte}; };
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    const auto got = elements_of<int32_t>(c.run({bytes_of(p), bytes_of(q)})[0]);
    for (int64_t i = 0; i < m * n; ++i) {
      int32_t want = 0;
      for (int64_t d = 0; d < k; ++d)
        want += value(p[static_cast<size_t>(i / n * k + d)], swapped) *
                value(q[static_cast<size_t>(d * n + i % n)], !swapped);
      ASSERT_EQ(got[static_cast<size_t>(i)], want) << i;
    }
  }
}

/// Small integers as bf16, whose sums f32 holds exactly; operands are also transposed, computed, and batched.
TEST_P(ProductTest, SumsOfBf16AreExact) {
  const int64_t sizes[][3] = {{14, 32, 64},  {15, 33, 66},   {13, 5, 10}, {29, 70, 401},
                              {64, 16, 514}, {30, 66, 2048}, {33, 70, 1}};
  const auto halves = [](const std::vector<float>& x) {
    std::vector<uint16_t> out;
    for (const float v : x) out.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16));
    return out;
  };
  for (auto [m, n, k] : sizes) {
    for (const int64_t batch : {1, 3}) {
      for (const int turned : {0, 1, 2, 3}) {
        const bool lhs = turned % 2 == 1;
        const bool rhs = turned > 1;
        ProgramBuilder b;
        RegionBuilder& e = b.entry();
        Handle x = e.argument(COLLET_TYPE_BF16, lhs ? std::vector{batch, k, m} : std::vector{batch, m, k});
        const Handle y = e.argument(COLLET_TYPE_BF16, rhs ? std::vector{batch, n, k} : std::vector{batch, k, n});
        if (batch == 3) x = e.binary(COLLET_OP_ADD, x, x);
        collet_dot_attrs a{};
        a.lhs_batch = b.list({0});
        a.rhs_batch = b.list({0});
        a.lhs_contracting = b.list({lhs ? 1 : 2});
        a.rhs_contracting = b.list({rhs ? 2 : 1});
        e.results({e.op(COLLET_OP_DOT, COLLET_TYPE_F32, {batch, m, n}, {x, y}, a)});
        const auto p = integers<float>(static_cast<size_t>(batch * m * k), 1);
        const auto q = integers<float>(static_cast<size_t>(batch * k * n), 2);
        Compiled c(plugin_, b.finish());
        ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
        const auto got = elements_of<float>(c.run({bytes_of(halves(p)), bytes_of(halves(q))})[0]);
        for (int64_t i = 0; i < batch * m * n; ++i) {
          const int64_t g = i / (m * n), row = i / n % m, column = i % n;
          float want = 0;
          for (int64_t d = 0; d < k; ++d) {
            const int64_t at = lhs ? (g * k + d) * m + row : (g * m + row) * k + d;
            const int64_t bt = rhs ? (g * n + column) * k + d : (g * k + d) * n + column;
            want += p[static_cast<size_t>(at)] * q[static_cast<size_t>(bt)] * (batch == 3 ? 2.0F : 1.0F);
          }
          ASSERT_EQ(got[static_cast<size_t>(i)], want) << batch << "x" << m << "x" << n << "x" << k << " at " << i;
        }
      }
    }
  }
}

/// Times the sum of magnitudes: what these data reach, of which blocks of 384 terms make the most. docs/code_generation.md states the bound
/// for all data.
constexpr double kMostDrift = 128 * 0x1p-24;

/// Data on which rounding errors add up where products are added one after another: constants, signs that alternate, and
/// sorted numbers. Every row of x has the same data and y is constant, so that all results are the same.
TEST_P(ProductTest, ErrorsDoNotGrowWithTheDepth) {
  struct Case {
    int64_t batch, m, n, k;
    bool bias;
  };
  for (const Case& c : {Case{1, 1, 1, 1000003, false}, Case{1, 1, 3, 1000003, false}, Case{1, 1, 150, 50021, true},
                        Case{1, 1, 1100, 20011, false}, Case{1, 4, 130, 50021, false}, Case{1, 30, 40, 20011, true},
                        Case{1, 70, 3, 50021, false}, Case{3, 5, 17, 20011, true}, Case{1, 130, 65, 20011, false},
                        Case{1, 60, 66, 32768, false}}) {
    for (const int turned : {0, 1, 2, 3}) {
      const bool lhs = turned % 2 == 1;
      const bool rhs = turned > 1;
      ProgramBuilder b;
      RegionBuilder& e = b.entry();
      const Handle x = e.argument(kF32, lhs ? std::vector{c.batch, c.k, c.m} : std::vector{c.batch, c.m, c.k});
      const Handle y = e.argument(kF32, rhs ? std::vector{c.batch, c.n, c.k} : std::vector{c.batch, c.k, c.n});
      collet_dot_attrs a{};
      a.lhs_batch = b.list({0});
      a.rhs_batch = b.list({0});
      a.lhs_contracting = b.list({lhs ? 1 : 2});
      a.rhs_contracting = b.list({rhs ? 2 : 1});
      Handle product = e.op(COLLET_OP_DOT, kF32, {c.batch, c.m, c.n}, {x, y}, a);
      if (c.bias) product = e.op(COLLET_OP_NEGATE, kF32, product.dims, {product});
      e.results({product});
      Compiled compiled(plugin_, b.finish());
      ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
      const auto value = [&](int kind, int64_t i) {
        const float at = static_cast<float>(i) / static_cast<float>(2 * c.k);
        switch (kind) {
          case 0:
            return 0.1F;
          case 1:
            return i % 2 == 0 ? 1.1F : -0.1F;
          case 2:
            return 0.5F + at;
          default:
            return 1 - at;
        }
      };
      const std::vector<float> q(static_cast<size_t>(c.batch * c.n * c.k), 0.7F);
      std::vector<float> p;
      for (int kind = 0; kind < 4; ++kind) {
        std::vector<float> row(static_cast<size_t>(c.k));
        for (int64_t i = 0; i < c.k; ++i) row[static_cast<size_t>(i)] = value(kind, i);
        p.clear();
        p.reserve(static_cast<size_t>(c.batch * c.m * c.k));
        for (int64_t batch = 0; batch < c.batch; ++batch) {
          if (lhs) {
            for (const float number : row) p.insert(p.end(), static_cast<size_t>(c.m), number);
          } else {
            for (int64_t i = 0; i < c.m; ++i) p.insert(p.end(), row.begin(), row.end());
          }
        }
        double want = 0;
        double size = 0;
        for (int64_t i = 0; i < c.k; ++i) {
          const double term = double{row[static_cast<size_t>(i)]} * double{0.7F};
          want += c.bias ? -term : term;
          size += std::fabs(term);
        }
        for (const float got : elements_of<float>(compiled.run({bytes_of(p), bytes_of(q)})[0])) {
          ASSERT_NEAR(got, want, kMostDrift * size)
              << c.m << " x " << c.n << " x " << c.k << ", turned " << turned << ", data " << kind;
        }
      }
      // An infinite sum is not changed by the rounding errors that are kept.
      p.assign(static_cast<size_t>(c.batch * c.m * c.k), 1.0F);
      for (size_t i = 0; i < p.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        if ((lhs ? at / c.m % c.k : at % c.k) == c.k / 3) p[i] = std::numeric_limits<float>::infinity();
      }
      for (const float got : elements_of<float>(compiled.run({bytes_of(p), bytes_of(q)})[0]))
        ASSERT_EQ(std::fabs(got), std::numeric_limits<float>::infinity());
    }
  }
}

/// Factors that are subnormal, and products that are, count like all others, whatever instruction multiplies.
TEST_P(ProductTest, SmallBf16FactorsAreNotLost) {
  const auto half = [](float v) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16); };
  const auto widened = [](uint16_t v) { return std::bit_cast<float>(static_cast<uint32_t>(v) << 16); };
  struct Case {
    float small, large;
    int64_t every;  // one factor in so many is small, the others are 1
  };
  const int64_t sizes[][3] = {{16, 32, 64}, {1, 512, 512}, {33, 70, 514}, {64, 16, 1026}, {100, 300, 32}};
  for (const Case& c :
       {Case{7e-40F, 1e30F, 1}, {1e-40F, 1, 1}, {1e-20F, 1e-20F, 1}, {3e-39F, 2, 97}, {1e-25F, 1e-15F, 1}}) {
    for (auto [m, n, k] : sizes) {
      for (const int turned : {0, 1, 2, 3}) {
        SCOPED_TRACE(::testing::Message()
                     << c.small << " x " << c.large << ": " << m << "x" << n << "x" << k << ", " << turned);
        const bool lhs = turned % 2 == 1;
        const bool rhs = turned > 1;
        ProgramBuilder b;
        RegionBuilder& e = b.entry();
        const Handle x = e.argument(COLLET_TYPE_BF16, lhs ? std::vector{k, m} : std::vector{m, k});
        const Handle y = e.argument(COLLET_TYPE_BF16, rhs ? std::vector{n, k} : std::vector{k, n});
        collet_dot_attrs a{};
        a.lhs_contracting = b.list({lhs ? 0 : 1});
        a.rhs_contracting = b.list({rhs ? 1 : 0});
        e.results({e.op(COLLET_OP_DOT, COLLET_TYPE_F32, {m, n}, {x, y}, a)});
        for (const bool small_left : {true, false}) {
          std::vector<uint16_t> p(static_cast<size_t>(m * k), half(small_left ? c.small : c.large));
          std::vector<uint16_t> q(static_cast<size_t>(k * n), half(small_left ? c.large : c.small));
          std::vector<uint16_t>& mixed = small_left ? p : q;
          for (size_t i = 0; i < mixed.size(); ++i) {
            if (static_cast<int64_t>(i) % c.every != 0) mixed[i] = 0;
          }
          Compiled compiled(plugin_, b.finish());
          ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
          const auto got = elements_of<float>(compiled.run({bytes_of(p), bytes_of(q)})[0]);
          for (const int64_t i : {int64_t{0}, n - 1, m / 2 * n + n / 3, m * n - 1}) {
            double want = 0;
            for (int64_t d = 0; d < k; ++d) {
              const size_t at = static_cast<size_t>(lhs ? d * m + i / n : i / n * k + d);
              const size_t bt = static_cast<size_t>(rhs ? i % n * k + d : d * n + i % n);
              want += static_cast<double>(widened(p[at])) * static_cast<double>(widened(q[bt]));
            }
            const double unit = std::max(std::abs(want) * 1e-5, static_cast<double>(k) * 1.4e-45);
            ASSERT_NEAR(got[static_cast<size_t>(i)], want, unit) << i;
          }
        }
      }
    }
  }
}

TEST_P(ProductTest, ComplexFactorsInAllOrders) {
  using C = std::complex<float>;
  std::mt19937 random(3);
  const auto numbers = [&](int64_t n) {
    std::vector<C> v;
    const auto part = [&] { return static_cast<float>(static_cast<int>(random() % 7) - 3); };
    while (static_cast<int64_t>(v.size()) < n) {
      const float re = part();
      v.emplace_back(re, part());
    }
    return v;
  };
  for (auto [m, n, k] : {std::array<int64_t, 3>{40, 70, 33}, {64, 16, 256}, {70, 5, 40}, {33, 64, 1}}) {
    for (const int turned : {0, 1, 2, 3}) {
      dot<C, C>(COLLET_TYPE_C64, COLLET_TYPE_C64, numbers(2 * m * k), numbers(2 * k * n), 2, m, n, k, turned % 2 == 1,
                turned > 1);
    }
  }
}

TEST_P(ProductTest, PowersOfTwoThatArePacked) {
  dot<float>(COLLET_TYPE_F32, 1, 130, 96, 1024, false, false);
  dot<float>(COLLET_TYPE_F32, 1, 130, 96, 512, true, true);
  dot<float>(COLLET_TYPE_F32, 1, 1024, 70, 128, true, false);
}

/// The matrix is larger than the caches, so b is read by whole rows.
TEST_P(ProductTest, DeepOnesThatArePackedInBlocks) {
  for (const bool turned : {false, true}) {
    dot<float>(COLLET_TYPE_F32, 2, 60, 66, 2048, turned, false);
    dot<float>(COLLET_TYPE_F32, 1, 61, 70, 1800, turned, true);
  }
  dot<double>(COLLET_TYPE_F64, 1, 60, 40, 1024, false, false);
  // So deep that the sums of blocks are added in groups.
  dot<float>(COLLET_TYPE_F32, 2, 33, 50, 20011, false, false);
  dot<float>(COLLET_TYPE_F32, 1, 3, 70, 30001, true, true);
  dot<double>(COLLET_TYPE_F64, 1, 17, 40, 20011, true, false);
  const auto p = integers<int8_t>(60 * 4096, 1);
  const auto q = integers<int8_t>(4096 * 66, 2);
  dot<int8_t, int32_t>(COLLET_TYPE_S8, COLLET_TYPE_S32, p, q, 1, 60, 66, 4096, false, false);
}

TEST_P(ProductTest, PanelsOfALargeMatrixThatAreCopied) {
  // Rows of at least 4096 bytes, and more of them than the second cache holds. The last panel has fewer columns, and the last block fewer steps.
  dot<float>(COLLET_TYPE_F32, 1, 115, 1100, 410, false, false);
  dot<float>(COLLET_TYPE_F32, 2, 112, 1024, 260, true, false);
  dot<double>(COLLET_TYPE_F64, 1, 113, 600, 300, false, false);
}

TEST_P(ProductTest, FewRowsOfALargeMatrix) {
  for (const int64_t rows : {1, 2, 5, 13, 30}) dot<float>(COLLET_TYPE_F32, 1, rows, 2100, 1031, false, false);
  dot<double>(COLLET_TYPE_F64, 1, 3, 1100, 1031, true, false);
}

/// Long rows that are each read once and multiplied with all of a few other rows: with remaining rows, with batches,
/// and with few rows that are not contiguous in memory.
TEST_P(ProductTest, LongRowsWithAFewOthers) {
  const int64_t sizes[][3] = {{1000, 2, 300}, {37, 3, 513}, {16, 4, 1024}, {41, 5, 256}, {45, 8, 400}, {17, 2, 4096}};
  for (auto [m, n, k] : sizes) {
    for (const bool turned : {false, true}) {
      dot<float>(COLLET_TYPE_F32, 1, m, n, k, false, turned);
      dot<float>(COLLET_TYPE_F32, 3, n, m, k, turned, true);
    }
    dot<double>(COLLET_TYPE_F64, 1, m, n, k, false, false);
    dot<int32_t>(COLLET_TYPE_S32, 2, n, m, k, false, true);
  }
}

/// A transposed operand of a narrower type must be read in place, whatever its size: there is one kernel, and another
/// one if an operand is packed for all rows.
TEST_P(ProductTest, OperandsInAnotherOrder) {
  Plugin one(GetParam(), "1");
  const int64_t sizes[][3] = {{1, 70, 300}, {4, 100, 130}, {5, 1000, 40}, {33, 47, 129}, {64, 128, 256}, {200, 3, 90}};
  for (auto [m, n, k] : sizes) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    const Handle x = e.argument(COLLET_TYPE_F32, {m, k});
    const Handle y = e.argument(COLLET_TYPE_S8, {n, k});
    collet_dimensions_attrs order{};
    order.dimensions = b.list({1, 0});
    const Handle turned = e.op(COLLET_OP_TRANSPOSE, COLLET_TYPE_S8, {k, n}, {y}, order);
    const Handle wide = e.op(COLLET_OP_CONVERT, COLLET_TYPE_F32, {k, n}, {turned});
    collet_dot_attrs a{};
    a.lhs_contracting = b.list({1});
    a.rhs_contracting = b.list({0});
    e.results({e.op(COLLET_OP_DOT, COLLET_TYPE_F32, {m, n}, {x, wide}, a)});
    const auto p = integers<float>(static_cast<size_t>(m * k), 1);
    const auto q = integers<int8_t>(static_cast<size_t>(n * k), 2);
    const collet_program* program = b.finish();
    for (Plugin* plugin : {&plugin_, &one}) {
      Compiled c(*plugin, program);
      ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
      EXPECT_LE(c.info.kernels, m == 1 ? 1U : 2U) << m << "x" << n << "x" << k;
      const auto got = elements_of<float>(c.run({bytes_of(p), bytes_of(q)})[0]);
      for (int64_t i = 0; i < m * n; ++i) {
        float want = 0;
        for (int64_t d = 0; d < k; ++d)
          want += p[static_cast<size_t>(i / n * k + d)] * static_cast<float>(q[static_cast<size_t>(i % n * k + d)]);
        ASSERT_EQ(got[static_cast<size_t>(i)], want) << m << "x" << n << "x" << k << " at " << i;
      }
    }
  }
}

struct Convolution {
  int64_t batch, height, width, in, out, kernel, stride, pad, base, dilation, groups;
  bool channels_last;
  bool filters_first = false;  ///< the filter's output features come first, while the channels of the input come last
};

void PrintTo(const Convolution& c, std::ostream* out) {
  *out << c.batch << "x" << c.height << "x" << c.width << "x" << c.in << " to " << c.out << ", kernel " << c.kernel
       << ", stride " << c.stride << ", pad " << c.pad << ", dilations " << c.base << " " << c.dilation << ", groups "
       << c.groups << (c.channels_last ? ", channels last" : "") << (c.filters_first ? ", filters first" : "");
}

TEST_P(ProductTest, Convolutions) {
  const Convolution cases[] = {
      {2, 9, 11, 8, 20, 3, 1, 1, 1, 1, 1, true},
      {2, 9, 11, 8, 20, 3, 1, 1, 1, 1, 1, false},
      {1, 16, 16, 3, 33, 5, 2, 2, 1, 1, 1, true},
      {1, 16, 56, 16, 33, 3, 1, 1, 1, 1, 1, false},
      {3, 8, 8, 16, 16, 1, 1, 0, 1, 1, 1, true},
      {3, 8, 8, 16, 16, 1, 1, 0, 1, 1, 1, false},
      {2, 10, 10, 12, 12, 3, 1, 1, 1, 1, 12, true},
      {2, 10, 10, 12, 24, 3, 1, 1, 1, 1, 4, false},
      {1, 6, 7, 5, 9, 3, 1, 2, 2, 1, 1, true},
      {1, 12, 12, 4, 9, 3, 1, 0, 1, 2, 1, true},
      {1, 12, 12, 4, 9, 3, 1, -1, 1, 1, 1, false},
      {1, 7, 7, 32, 40, 3, 1, 1, 1, 1, 1, false},
      {1, 23, 23, 3, 17, 7, 2, 3, 1, 1, 1, true},
      {4, 14, 14, 1, 32, 5, 1, 2, 1, 1, 1, true},
      {2, 7, 7, 512, 33, 3, 1, 1, 1, 1, 1, true},
      {1, 9, 8, 6, 20, 3, 1, 1, 2, 1, 1, true},
      {2, 15, 13, 64, 96, 1, 2, 0, 1, 1, 1, true},
      {1, 12, 19, 70, 35, 3, 1, 2, 1, 2, 1, true},
      {1, 13, 21, 20, 20, 3, 1, 1, 1, 1, 20, true},
      {2, 17, 9, 40, 40, 5, 2, 2, 1, 1, 40, true},
      {1, 11, 23, 6, 6, 3, 1, 1, 1, 1, 6, false},
      {1, 9, 9, 130, 130, 3, 1, 0, 1, 1, 130, true},
      {2, 9, 8, 16, 24, 3, 1, 1, 2, 1, 1, true},
      {1, 7, 6, 16, 24, 4, 2, 1, 3, 1, 1, true},
      {1, 9, 9, 8, 12, 1, 1, 0, 2, 1, 1, true},
      {2, 7, 5, 8, 12, 3, 1, 2, 2, 1, 2, false},
      {1, 8, 9, 16, 20, 3, 3, 2, 2, 3, 1, true},
      {1, 5, 6, 8, 9, 5, 1, -1, 3, 2, 1, false},
      // Many phases of a dilated input, in groups, with strides and dilations of the window, and phases without products
      {1, 7, 6, 16, 3, 16, 1, 15, 8, 1, 1, true},
      {2, 5, 4, 6, 5, 13, 1, 9, 8, 1, 1, false},
      {1, 4, 5, 3, 2, 34, 1, 20, 17, 1, 1, false},
      {1, 6, 5, 8, 12, 5, 3, 4, 8, 1, 1, true},
      {1, 6, 5, 8, 12, 7, 1, 6, 7, 3, 1, true},
      {1, 5, 7, 4, 6, 9, 5, 8, 12, 5, 1, false},
      {1, 6, 5, 4, 6, 3, 1, 2, 9, 1, 1, true},
      {1, 6, 6, 8, 16, 9, 2, 3, 6, 1, 2, true},
      {1, 3, 3, 2, 2, 7, 3, 5, 40, 7, 1, false},
      {2, 9, 8, 32, 64, 3, 1, 1, 1, 1, 4, true},
      {1, 8, 8, 16, 24, 3, 1, 1, 1, 1, 2, false},
      {2, 10, 10, 40, 40, 3, 1, 1, 1, 1, 40, true, true},
      {1, 9, 7, 130, 130, 3, 2, 1, 1, 1, 130, true, true},
      {2, 9, 8, 32, 64, 3, 1, 1, 1, 1, 4, true, true},
      // Tiles whose rows are padding for a part of the depth, or for all of it
      {2, 7, 7, 300, 130, 3, 1, 1, 1, 1, 1, true},
      {8, 7, 7, 200, 150, 3, 1, 1, 1, 1, 1, true, true},
      {2, 14, 14, 200, 40, 3, 1, 1, 1, 1, 1, true},
      {2, 14, 14, 200, 40, 3, 1, 1, 1, 1, 1, true, true},
      {1, 3, 14, 64, 40, 5, 1, 2, 1, 1, 1, true},
      {1, 2, 28, 96, 40, 3, 1, 1, 1, 1, 1, true},
      {1, 2, 9, 32, 40, 3, 1, 4, 1, 1, 1, true},
      {3, 3, 7, 256, 40, 3, 1, 3, 1, 1, 1, true},
      {2, 13, 14, 200, 40, 3, 2, 1, 1, 1, 1, true},
      {2, 13, 13, 200, 40, 3, 2, 1, 1, 1, 1, true},
      {2, 14, 14, 48, 40, 3, 1, 2, 1, 2, 1, true},
      {8, 7, 7, 192, 40, 3, 1, 2, 1, 2, 1, true},
      {1, 12, 14, 700, 40, 3, 1, 1, 1, 1, 1, true},
  };
  for (const Convolution& c : cases) {
    const int64_t span = (c.kernel - 1) * c.dilation + 1;
    const int64_t oh = ((c.height - 1) * c.base + 1 + 2 * c.pad - span) / c.stride + 1;
    const int64_t ow = ((c.width - 1) * c.base + 1 + 2 * c.pad - span) / c.stride + 1;
    const int64_t in = c.in / c.groups;
    const bool filters_last = c.channels_last && !c.filters_first;
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    using D = std::vector<int64_t>;
    Handle x = e.argument(COLLET_TYPE_F32,
                          c.channels_last ? D{c.batch, c.height, c.width, c.in} : D{c.batch, c.in, c.height, c.width});
    Handle w =
        e.argument(COLLET_TYPE_F32, filters_last ? D{c.kernel, c.kernel, in, c.out} : D{c.out, in, c.kernel, c.kernel});
    collet_convolution_attrs a{};
    a.window.size = b.list({c.kernel, c.kernel});
    a.window.stride = b.list({c.stride, c.stride});
    a.window.padding_low = a.window.padding_high = b.list({c.pad, c.pad});
    a.window.base_dilation = b.list({c.base, c.base});
    a.window.window_dilation = b.list({c.dilation, c.dilation});
    a.window.reversal = b.list({0, 0});
    a.feature_groups = c.groups;
    a.batch_groups = 1;
    auto& l = a.labels;
    const int64_t first = c.channels_last ? 1 : 2;
    l.input_batch = l.output_batch = 0;
    l.input_feature = l.output_feature = c.channels_last ? 3 : 1;
    l.kernel_input_feature = filters_last ? 2 : 1;
    l.kernel_output_feature = filters_last ? 3 : 0;
    l.input_spatial = l.output_spatial = b.list({first, first + 1});
    l.kernel_spatial = filters_last ? b.list({0, 1}) : b.list({2, 3});
    e.results({e.op(COLLET_OP_CONVOLUTION, COLLET_TYPE_F32,
                    c.channels_last ? D{c.batch, oh, ow, c.out} : D{c.batch, c.out, oh, ow}, {x, w}, a)});
    Compiled compiled(plugin_, b.finish());
    ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
    auto p = integers<float>(static_cast<size_t>(c.batch * c.height * c.width * c.in), 1);
    auto q = integers<float>(static_cast<size_t>(c.kernel * c.kernel * in * c.out), 2);
    auto got = elements_of<float>(compiled.run({bytes_of(p), bytes_of(q)})[0]);
    for (int64_t n = 0; n < c.batch; ++n) {
      for (int64_t o = 0; o < c.out; ++o) {
        for (int64_t i = 0; i < oh; ++i) {
          for (int64_t j = 0; j < ow; ++j) {
            float want = 0;
            for (int64_t ki = 0; ki < c.kernel; ++ki) {
              for (int64_t kj = 0; kj < c.kernel; ++kj) {
                const int64_t y = i * c.stride + ki * c.dilation - c.pad;
                const int64_t z = j * c.stride + kj * c.dilation - c.pad;
                if (y < 0 || z < 0 || y % c.base || z % c.base || y / c.base >= c.height || z / c.base >= c.width)
                  continue;
                for (int64_t f = 0; f < in; ++f) {
                  const int64_t feature = o / (c.out / c.groups) * in + f;
                  const int64_t at = c.channels_last
                                         ? ((n * c.height + y / c.base) * c.width + z / c.base) * c.in + feature
                                         : ((n * c.in + feature) * c.height + y / c.base) * c.width + z / c.base;
                  const int64_t wt = filters_last ? ((ki * c.kernel + kj) * in + f) * c.out + o
                                                  : ((o * in + f) * c.kernel + ki) * c.kernel + kj;
                  want += p[static_cast<size_t>(at)] * q[static_cast<size_t>(wt)];
                }
              }
            }
            const int64_t at =
                c.channels_last ? ((n * oh + i) * ow + j) * c.out + o : ((n * c.out + o) * oh + i) * ow + j;
            ASSERT_EQ(got[static_cast<size_t>(at)], want) << ::testing::PrintToString(c);
          }
        }
      }
    }
  }
}

/// Convolutions as the gradients of filters have them: the images are summed, and their channels are the rows.
TEST_P(ProductTest, GradientsOfFilters) {
  struct Case {
    int64_t images, side, channels, filters, window, stride, pad;
  };
  const Case cases[] = {{2, 9, 128, 40, 3, 1, 1}, {3, 8, 96, 33, 3, 1, 1},   {1, 14, 20, 64, 5, 2, 2},
                        {4, 7, 13, 32, 3, 1, 1},  {2, 12, 64, 128, 1, 1, 0}, {2, 12, 64, 24, 1, 2, 0},
                        {1, 16, 3, 16, 7, 2, 3},  {2, 10, 28, 20, 3, 1, 0},  {6, 28, 16, 32, 3, 1, 1},
                        {2, 56, 8, 16, 3, 1, 1},  {1, 30, 20, 24, 3, 1, 1},  {1, 31, 16, 20, 3, 1, 1},
                        {2, 40, 24, 16, 5, 2, 1}, {7, 50, 8, 16, 3, 1, 1},   {9, 45, 3, 20, 5, 1, 2}};
  for (const Case& c : cases) {
    for (const uint32_t type : {kF32, static_cast<uint32_t>(COLLET_TYPE_BF16)}) {
      const int64_t out = (c.side + 2 * c.pad - c.window) / c.stride + 1;
      ProgramBuilder b;
      RegionBuilder& e = b.entry();
      const Handle x = e.argument(type, {c.images, c.side, c.side, c.channels});
      const Handle y = e.argument(type, {c.images, out, out, c.filters});
      const int64_t high = (c.window - 1) + (out - 1) * c.stride + 1 - c.side - c.pad;
      collet_convolution_attrs a{};
      a.window.size = b.list({out, out});
      a.window.stride = a.window.base_dilation = b.list({1, 1});
      a.window.padding_low = b.list({c.pad, c.pad});
      a.window.padding_high = b.list({high, high});
      a.window.window_dilation = b.list({c.stride, c.stride});
      a.window.reversal = b.list({0, 0});
      a.feature_groups = a.batch_groups = 1;
      auto& l = a.labels;
      l.input_feature = l.kernel_input_feature = 0;
      l.input_batch = l.kernel_output_feature = l.output_feature = 3;
      l.output_batch = 2;
      l.input_spatial = l.kernel_spatial = b.list({1, 2});
      l.output_spatial = b.list({0, 1});
      e.results({e.op(COLLET_OP_CONVOLUTION, kF32, {c.window, c.window, c.channels, c.filters}, {x, y}, a)});
      Compiled compiled(plugin_, b.finish());
      ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
      const auto p = integers<float>(static_cast<size_t>(c.images * c.side * c.side * c.channels), 1);
      const auto q = integers<float>(static_cast<size_t>(c.images * out * out * c.filters), 2);
      const auto given = [&](const std::vector<float>& v) {
        if (type == kF32) return bytes_of(v);
        std::vector<uint16_t> halves;
        for (const float f : v) halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(f) >> 16));
        return bytes_of(halves);
      };
      std::vector<float> want(static_cast<size_t>(c.window * c.window * c.channels * c.filters));
      for (int64_t at = 0; at < c.images * out * out * c.window * c.window; ++at) {
        const int64_t kx = at % c.window, ky = at / c.window % c.window, point = at / (c.window * c.window);
        const int64_t row = point / out % out * c.stride + ky - c.pad, column = point % out * c.stride + kx - c.pad;
        if (row < 0 || column < 0 || row >= c.side || column >= c.side) continue;
        const float* from =
            &p[static_cast<size_t>(((point / (out * out) * c.side + row) * c.side + column) * c.channels)];
        for (int64_t i = 0; i < c.channels * c.filters; ++i) {
          want[static_cast<size_t>((ky * c.window + kx) * c.channels * c.filters + i)] +=
              from[i / c.filters] * q[static_cast<size_t>(point * c.filters + i % c.filters)];
        }
      }
      EXPECT_EQ(elements_of<float>(compiled.run({given(p), given(q)})[0]), want)
          << "case " << &c - cases << ", type " << type;
    }
  }
}

/// A sum that begins with +0 is never -0, also if the sum has one term and no loop.
TEST_P(ProductTest, OuterProduct_OfNegativeZeros_IsPositiveZero) {
  for (int64_t depth : {1, 2}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(COLLET_TYPE_F32, {21, depth});
    Handle y = e.argument(COLLET_TYPE_F32, {depth, 19});
    collet_dot_attrs a{};
    a.lhs_contracting = b.list({1});
    a.rhs_contracting = b.list({0});
    const Handle zero = e.op(COLLET_OP_DOT, COLLET_TYPE_F32, {21, 19}, {x, y}, a);
    e.results({e.binary(COLLET_OP_DIVIDE, e.broadcast(e.scalar(COLLET_TYPE_F32, 1.0f), {21, 19}), zero)});
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    const std::vector<float> zeros(static_cast<size_t>(21 * depth), -0.0f);
    const std::vector<float> ones(static_cast<size_t>(19 * depth), 1.0f);
    for (float v : elements_of<float>(c.run({bytes_of(zeros), bytes_of(ones)})[0]))
      EXPECT_EQ(v, std::numeric_limits<float>::infinity());
  }
}

/// A convolution with a bias, the addition of another image, and a function after it, with channels last and first: all
/// in one kernel, plus one for the padded copy of an image.
TEST_P(ProductTest, WhatFollowsAConvolutionRunsWithIt) {
  Plugin one(GetParam(), "1");
  struct Case {
    int64_t batch, side, in, out, kernel, pad, groups;
    bool channels_last, slow;
    uint32_t kernels;
    int64_t base = 1;  ///< dilation of the input
  };
  const Case cases[] = {
      {2, 9, 8, 20, 3, 0, 1, true, false, 1},    {2, 9, 8, 20, 3, 1, 1, true, true, 2},
      {1, 28, 3, 16, 5, 2, 1, true, false, 2},   {2, 9, 24, 40, 1, 0, 1, false, false, 1},
      {2, 9, 24, 40, 1, 0, 1, false, true, 1},   {2, 10, 33, 33, 3, 1, 33, true, false, 1},
      {1, 10, 33, 33, 3, 1, 33, true, true, 1},  {2, 10, 7, 7, 3, 1, 7, false, false, 1},
      {2, 9, 8, 32, 3, 1, 1, true, false, 8, 2},
  };
  for (const Case& c : cases) {
    const int64_t to = (c.side - 1) * c.base + 1 + 2 * c.pad - c.kernel + 1;
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    using D = std::vector<int64_t>;
    const D dims = c.channels_last ? D{c.batch, to, to, c.out} : D{c.batch, c.out, to, to};
    Handle x = e.argument(COLLET_TYPE_F32,
                          c.channels_last ? D{c.batch, c.side, c.side, c.in} : D{c.batch, c.in, c.side, c.side});
    Handle w = e.argument(COLLET_TYPE_F32, {c.kernel, c.kernel, c.in / c.groups, c.out});
    Handle bias = e.argument(COLLET_TYPE_F32, {c.out});
    Handle more = e.argument(COLLET_TYPE_F32, dims);
    collet_convolution_attrs a{};
    a.window.size = b.list({c.kernel, c.kernel});
    a.window.stride = a.window.window_dilation = b.list({1, 1});
    a.window.base_dilation = b.list({c.base, c.base});
    a.window.padding_low = a.window.padding_high = b.list({c.pad, c.pad});
    a.window.reversal = b.list({0, 0});
    a.feature_groups = c.groups;
    a.batch_groups = 1;
    const int64_t first = c.channels_last ? 1 : 2;
    a.labels.input_feature = a.labels.output_feature = c.channels_last ? 3 : 1;
    a.labels.kernel_input_feature = 2;
    a.labels.kernel_output_feature = 3;
    a.labels.input_spatial = a.labels.output_spatial = b.list({first, first + 1});
    a.labels.kernel_spatial = b.list({0, 1});
    const Handle image = e.op(COLLET_OP_CONVOLUTION, COLLET_TYPE_F32, dims, {x, w}, a);
    Handle sum = e.binary(COLLET_OP_ADD, image, e.broadcast(bias, dims, {c.channels_last ? 3 : 1}));
    sum = e.binary(COLLET_OP_ADD, sum, more);
    const Handle zero = e.broadcast(e.scalar(COLLET_TYPE_F32, 0.0f), dims);
    e.results({c.slow ? e.unary(COLLET_OP_TANH, sum) : e.binary(COLLET_OP_MAXIMUM, sum, zero)});
    const collet_program* program = b.finish();
    ProgramBuilder only;
    {
      RegionBuilder& f = only.entry();
      Handle u = f.argument(COLLET_TYPE_F32, x.dims);
      Handle v = f.argument(COLLET_TYPE_F32, w.dims);
      a.window.size = only.list({c.kernel, c.kernel});
      a.window.stride = a.window.window_dilation = only.list({1, 1});
      a.window.base_dilation = only.list({c.base, c.base});
      a.window.padding_low = a.window.padding_high = only.list({c.pad, c.pad});
      a.window.reversal = only.list({0, 0});
      a.labels.input_spatial = a.labels.output_spatial = only.list({first, first + 1});
      a.labels.kernel_spatial = only.list({0, 1});
      f.results({f.op(COLLET_OP_CONVOLUTION, COLLET_TYPE_F32, dims, {u, v}, a)});
    }
    const collet_program* alone = only.finish();
    auto size = [](const D& d) {
      int64_t n = 1;
      for (int64_t i : d) n *= i;
      return static_cast<size_t>(n);
    };
    const auto p = integers<float>(size(x.dims), 1);
    const auto q = integers<float>(size(w.dims), 2);
    const auto r = integers<float>(static_cast<size_t>(c.out), 3);
    const auto t = integers<float>(size(dims), 4);
    for (Plugin* plugin : {&plugin_, &one}) {
      Compiled whole(*plugin, program);
      Compiled bare(*plugin, alone);
      ASSERT_EQ(whole.status, COLLET_OK) << whole.error.message;
      if (plugin == &one) {
        EXPECT_EQ(whole.info.kernels, c.kernels) << c.out << " of " << c.side;
      }
      const auto got = elements_of<float>(whole.run({bytes_of(p), bytes_of(q), bytes_of(r), bytes_of(t)})[0]);
      const auto sums = elements_of<float>(bare.run({bytes_of(p), bytes_of(q)})[0]);
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t channel = c.channels_last ? i % static_cast<size_t>(c.out)
                                               : i / static_cast<size_t>(to * to) % static_cast<size_t>(c.out);
        const float want = sums[i] + r[channel] + t[i];
        if (c.slow) {
          ASSERT_NEAR(got[i], std::tanh(want), 1e-6f) << i;
        } else {
          ASSERT_EQ(got[i], std::max(want, 0.0f)) << i;
        }
      }
    }
  }
}

/// max(x y + bias + more, 0), also with other readers of the product, and with readers that need whole rows.
TEST_P(ProductTest, WhatFollowsElementByElementRunsWithTheProduct) {
  Plugin one(GetParam(), "1");
  const int64_t sizes[][3] = {{5, 40, 30},    {64, 64, 64},   {33, 100, 17},  {200, 48, 400}, {300, 7, 90},
                              {100, 784, 10}, {57, 130, 900}, {100, 10, 784}, {70, 49, 1000}, {101, 3, 784}};
  for (auto [m, n, k] : sizes) {
    for (bool read_twice : {false, true}) {
      ProgramBuilder b;
      RegionBuilder& e = b.entry();
      Handle x = e.argument(COLLET_TYPE_F32, {m, k});
      Handle y = e.argument(COLLET_TYPE_F32, {k, n});
      Handle bias = e.argument(COLLET_TYPE_F32, {n});
      Handle more = e.argument(COLLET_TYPE_F32, {m, n});
      collet_dot_attrs a{};
      a.lhs_contracting = b.list({1});
      a.rhs_contracting = b.list({0});
      Handle product = e.op(COLLET_OP_DOT, COLLET_TYPE_F32, {m, n}, {x, y}, a);
      Handle sum = e.binary(COLLET_OP_ADD, product, e.broadcast(bias, {m, n}, {1}));
      sum = e.binary(COLLET_OP_ADD, sum, more);
      Handle zero = e.broadcast(e.scalar(COLLET_TYPE_F32, 0.0f), {m, n});
      Handle out = e.binary(COLLET_OP_MAXIMUM, sum, zero);
      e.results(read_twice ? std::vector<Handle>{out, product} : std::vector<Handle>{out});
      const collet_program* program = b.finish();
      const auto p = integers<float>(static_cast<size_t>(m * k), 1);
      const auto q = integers<float>(static_cast<size_t>(k * n), 2);
      const auto r = integers<float>(static_cast<size_t>(n), 3);
      const auto t = integers<float>(static_cast<size_t>(m * n), 4);
      for (Plugin* plugin : {&plugin_, &one}) {
        Compiled c(*plugin, program);
        ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
        if (plugin == &one && !read_twice) {
          // Few columns are packed as rows first; the remaining row has its own kernel.
          EXPECT_EQ(c.info.kernels, n == 3 ? 3U : 1U) << m << "x" << n << "x" << k;
        }
        const auto got = c.run({bytes_of(p), bytes_of(q), bytes_of(r), bytes_of(t)});
        const auto values = elements_of<float>(got[0]);
        const auto products = read_twice ? elements_of<float>(got[1]) : std::vector<float>();
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const auto at = static_cast<size_t>(i * n + j);
            float want = 0;
            for (int64_t d = 0; d < k; ++d)
              want += p[static_cast<size_t>(i * k + d)] * q[static_cast<size_t>(d * n + j)];
            if (read_twice) {
              ASSERT_EQ(products[at], want);
            }
            ASSERT_EQ(values[at], std::max(want + r[static_cast<size_t>(j)] + t[at], 0.0f)) << i << ", " << j;
          }
        }
      }
    }
  }
}

/// In w - rate / n * (x y), the quotient must be computed before the product although it comes later in the program. If
/// it depends on the product, it must not.
TEST_P(ProductTest, WhatAnEpilogueReadsIsComputedBefore) {
  Plugin one(GetParam(), "1");
  constexpr int64_t m = 70, n = 40, k = 90;
  for (bool depends : {false, true}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(COLLET_TYPE_F32, {m, k});
    Handle y = e.argument(COLLET_TYPE_F32, {k, n});
    Handle w = e.argument(COLLET_TYPE_F32, {m, n});
    Handle rate = e.argument(COLLET_TYPE_F32);
    collet_dot_attrs a{};
    a.lhs_contracting = b.list({1});
    a.rhs_contracting = b.list({0});
    Handle product = e.op(COLLET_OP_DOT, COLLET_TYPE_F32, {m, n}, {x, y}, a);
    Handle scale = e.binary(COLLET_OP_DIVIDE, rate, e.scalar(COLLET_TYPE_F32, 4.0f));
    if (depends) {
      Handle most =
          e.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, product, e.scalar(COLLET_TYPE_F32, 0.0f), {0, 1});
      scale = e.binary(COLLET_OP_ADD, scale, most);
    }
    Handle change = e.binary(COLLET_OP_MULTIPLY, product, e.broadcast(scale, {m, n}));
    e.results({e.binary(COLLET_OP_SUBTRACT, w, change)});
    const collet_program* program = b.finish();
    const auto p = integers<float>(static_cast<size_t>(m * k), 1);
    const auto q = integers<float>(static_cast<size_t>(k * n), 2);
    const auto r = integers<float>(static_cast<size_t>(m * n), 3);
    std::vector<float> products(static_cast<size_t>(m * n));
    float most = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float& sum = products[static_cast<size_t>(i * n + j)];
        for (int64_t d = 0; d < k; ++d) sum += p[static_cast<size_t>(i * k + d)] * q[static_cast<size_t>(d * n + j)];
        most = std::max(most, sum);
      }
    }
    for (Plugin* plugin : {&plugin_, &one}) {
      Compiled c(*plugin, program);
      ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
      if (plugin == &one && !depends) {
        EXPECT_EQ(c.info.kernels, 2u);
      }
      const auto got =
          elements_of<float>(c.run({bytes_of(p), bytes_of(q), bytes_of(r), bytes_of(std::vector<float>{2.0f})})[0]);
      const float by = 0.5f + (depends ? most : 0.0f);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], r[i] - products[i] * by) << i;
      }
    }
  }
}

/// (x0 + x1 + ...) y with broadcasts: the sum must be computed while the operand is packed, however many terms it has.
TEST_P(ProductTest, AnOperandOfManyTerms) {
  constexpr int64_t m = 64, n = 32, k = 64;
  for (int terms : {3, 60, 63, 64, 90}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle sum = e.argument(COLLET_TYPE_F32, {m, k});
    for (int i = 1; i < terms; ++i) sum = e.binary(COLLET_OP_ADD, sum, e.argument(COLLET_TYPE_F32, {m, k}));
    Handle y = e.argument(COLLET_TYPE_F32, {n, k});
    Handle products =
        e.binary(COLLET_OP_MULTIPLY, e.broadcast(sum, {m, n, k}, {0, 2}), e.broadcast(y, {m, n, k}, {1, 2}));
    e.results({e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, products, e.scalar(COLLET_TYPE_F32, 0.0f), {2})});
    Compiled c(plugin_, b.finish());
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    const auto p = integers<float>(static_cast<size_t>(m * k), 1);
    const auto q = integers<float>(static_cast<size_t>(n * k), 2);
    std::vector<Bytes> arguments(static_cast<size_t>(terms), bytes_of(p));
    arguments.push_back(bytes_of(q));
    const auto got = elements_of<float>(c.run(arguments)[0]);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float want = 0;
        for (int64_t d = 0; d < k; ++d)
          want += static_cast<float>(terms) * p[static_cast<size_t>(i * k + d)] * q[static_cast<size_t>(j * k + d)];
        ASSERT_EQ(got[static_cast<size_t>(i * n + j)], want) << terms << " terms, at " << i << ", " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ProductTest, ::testing::ValuesIn(kLevels));

}  // namespace
}  // namespace collet::cpu::testing
