// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class ReductionTest : public ::testing::TestWithParam<const char*> {
 protected:
  /// Returns the extremum of a row.
  float extremum(bool largest, const std::vector<float>& row) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kF32, {1, static_cast<int64_t>(row.size())});
    const float first = largest ? -kInfinity : kInfinity;
    e.results({e.reduce(largest ? COLLET_OP_MAXIMUM : COLLET_OP_MINIMUM,
                        largest ? COLLET_COMBINE_MAXIMUM : COLLET_COMBINE_MINIMUM, x, e.scalar(kF32, first), {1})});
    Compiled c(plugin_, b.finish());
    EXPECT_EQ(c.status, COLLET_OK) << c.error.message;
    return elements_of<float>(c.run({bytes_of(row)})[0])[0];
  }

  Plugin plugin_{GetParam()};
};

TEST_P(ReductionTest, ExtremaKnowZerosOfBothSignsAndNan) {
  for (size_t n : {1, 3, 15, 16, 17, 64, 200, 1000}) {
    for (size_t at : {size_t{0}, n / 2, n - 1}) {
      std::vector<float> row(n, -0.0f);
      row[at] = 0.0f;
      EXPECT_FALSE(std::signbit(extremum(true, row))) << n << ", " << at;
      EXPECT_EQ(std::signbit(extremum(false, row)), n > 1) << n << ", " << at;
      std::fill(row.begin(), row.end(), 1.5f);
      row[at] = 0.0f;
      EXPECT_FALSE(std::signbit(extremum(false, row))) << n << ", " << at;
      row[at] = -7.0f;
      EXPECT_EQ(extremum(false, row), -7.0f);
      row[at] = kNan;
      EXPECT_TRUE(std::isnan(extremum(true, row))) << n << ", " << at;
      EXPECT_TRUE(std::isnan(extremum(false, row))) << n << ", " << at;
      row[at] = kInfinity;
      EXPECT_EQ(extremum(true, row), kInfinity);
    }
  }
}

TEST_P(ReductionTest, LongReductionsToFewElementsAreOneStepOfManyParts) {
  // Reduces rows, columns, and everything; elementwise ops on the results are fused.
  for (const std::vector<int64_t>& reduced : {std::vector<int64_t>{0, 1}, {0}, {1}}) {
    const std::vector<int64_t> dims = reduced == std::vector<int64_t>{0}   ? std::vector<int64_t>{20000, 7}
                                      : reduced == std::vector<int64_t>{1} ? std::vector<int64_t>{3, 60000}
                                                                           : std::vector<int64_t>{600, 200};
    std::vector<int64_t> kept;
    for (int64_t d = 0; d < 2; ++d) {
      if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) kept.push_back(dims[static_cast<size_t>(d)]);
    }
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kF32, dims);
    Handle y = e.argument(kF32, kept);
    Handle sum =
        e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, e.binary(COLLET_OP_MULTIPLY, x, x), e.scalar(kF32, 2.0f), reduced);
    e.results({e.binary(COLLET_OP_ADD, sum, y)});
    Plugin one(GetParam(), "1");
    Plugin two(GetParam(), "2");
    std::mt19937 random(5);
    std::uniform_real_distribution<float> draw(-1, 1);
    const auto total = static_cast<size_t>(dims[0] * dims[1]);
    std::vector<float> in(total);
    for (float& v : in) v = draw(random);
    const size_t rows = kept.empty() ? 1 : static_cast<size_t>(kept[0]);
    std::vector<float> more(rows, 0.25f);
    std::vector<double> want(rows, 2.25);
    for (size_t i = 0; i < total; ++i) {
      const size_t row = kept.empty() ? 0 : reduced[0] == 0 ? i % 7 : i / 60000;
      want[row] += static_cast<double>(in[i]) * in[i];
    }
    const collet_program* program = b.finish();
    Compiled a(one, program);
    Compiled c(two, program);
    ASSERT_EQ(a.status, COLLET_OK) << a.error.message;
    ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
    const auto first = elements_of<float>(a.run({bytes_of(in), bytes_of(more)})[0]);
    const auto second = elements_of<float>(c.run({bytes_of(in), bytes_of(more)})[0]);
    EXPECT_EQ(first, second);  // for any number of threads
    for (size_t r = 0; r < rows; ++r) EXPECT_NEAR(first[r], want[r], 1e-5 * want[r]) << r;
  }
}

/// Computes the index of the first of the largest elements, or of the first NaN, in rows that are too long for one
/// lane.
TEST_P(ReductionTest, PlacesOfTheLargestAreTheFirst) {
  for (const int64_t length : {100, 2048, 4099, 50257}) {
    for (const int64_t rows : {1, 3}) {
      ProgramBuilder b;
      RegionBuilder& e = b.entry();
      const Handle x = e.argument(kF32, {rows, length});
      const Handle at = e.op(COLLET_OP_IOTA, COLLET_TYPE_S32, {rows, length}, {}, collet_iota_attrs{1});
      RegionBuilder& r = b.region();
      const Handle p = r.argument(kF32);
      const Handle i = r.argument(COLLET_TYPE_S32);
      const Handle q = r.argument(kF32);
      const Handle j = r.argument(COLLET_TYPE_S32);
      const auto compare = [&](const Handle& a, const Handle& c, uint32_t direction, uint32_t kind) {
        return r.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {a, c}, collet_compare_attrs{direction, kind});
      };
      const Handle more = r.binary(COLLET_OP_OR, compare(p, q, COLLET_DIRECTION_GT, COLLET_COMPARE_FLOAT),
                                   compare(p, p, COLLET_DIRECTION_NE, COLLET_COMPARE_FLOAT));
      const Handle first = r.binary(COLLET_OP_AND, compare(p, q, COLLET_DIRECTION_EQ, COLLET_COMPARE_FLOAT),
                                    compare(i, j, COLLET_DIRECTION_LT, COLLET_COMPARE_SIGNED));
      r.results({r.op(COLLET_OP_SELECT, kF32, {}, {more, p, q}),
                 r.op(COLLET_OP_SELECT, COLLET_TYPE_S32, {}, {r.binary(COLLET_OP_OR, more, first), i, j})});
      e.results(e.ops(COLLET_OP_REDUCE, {Handle{kF32, {rows}, 0}, Handle{COLLET_TYPE_S32, {rows}, 0}},
                      {x, at, e.scalar(kF32, -kInfinity), e.scalar(COLLET_TYPE_S32, 0)},
                      collet_dimensions_attrs{b.list({1})}, {&r}));
      Compiled c(plugin_, b.finish());
      ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
      std::mt19937 random(3);
      for (const float special : {5.0F, kInfinity, kNan}) {
        std::vector<float> in(static_cast<size_t>(rows * length));
        for (float& v : in) v = static_cast<float>(random() % 4);
        std::vector<int32_t> want(static_cast<size_t>(rows));
        for (int64_t row = 0; row < rows; ++row) {
          want[static_cast<size_t>(row)] = static_cast<int32_t>(random() % static_cast<uint32_t>(length));
          for (int64_t k = want[static_cast<size_t>(row)]; k < length; k += 1 + static_cast<int64_t>(random() % 900))
            in[static_cast<size_t>(row * length + k)] = special;
        }
        EXPECT_EQ(elements_of<int32_t>(c.run({bytes_of(in)})[1]), want) << rows << "x" << length << ", " << special;
      }
    }
  }
}

/// Divisions of a row by one number are computed by its inverse, and must be rounded like divisions.
TEST_P(ReductionTest, RowsDividedByTheirSumAreRoundedOnce) {
  const int64_t columns = 96;
  std::mt19937 random(11);
  std::vector<float> in;
  std::vector<float> by;
  const float edges[] = {0.0f, -0.0f, 1e-40f, -1e-45f, kInfinity, -kInfinity, kNan, 3e38f, 1.17549435e-38f, 1.0f};
  for (float divisor : {3.0f, 7.77f, -0.3f, 1e-38f, 1e38f, 1e-9f, 1e9f, 0.0f, kInfinity, kNan}) {
    by.push_back(divisor);
    for (int64_t i = 0; i < columns; ++i) {
      const float mantissa = 1.0f + static_cast<float>(random() & 0x7fffff) / 8388608.0f;
      float x = std::ldexp(random() & 1 ? mantissa : -mantissa, static_cast<int>(random() % 40) - 20);
      if (by.size() % 2 == 0 && i % 16 == 5) x = edges[static_cast<size_t>(i) / 16 + 4 * (by.size() % 4 / 2)];
      in.push_back(x);
    }
  }
  const auto rows = static_cast<int64_t>(by.size());
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kF32, {rows, columns});
  Handle y = e.argument(kF32, {rows});
  e.results({e.binary(COLLET_OP_DIVIDE, x, e.broadcast(y, {rows, columns}, {0}))});
  Compiled c(plugin_, b.finish());
  ASSERT_EQ(c.status, COLLET_OK) << c.error.message;
  const auto got = elements_of<float>(c.run({bytes_of(in), bytes_of(by)})[0]);
  for (size_t i = 0; i < in.size(); ++i) {
    const float want = in[i] / by[i / columns];
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got[i])) << in[i] << " / " << by[i / columns];
    } else {
      EXPECT_EQ(got[i], want) << in[i] << " / " << by[i / columns];
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << in[i] << " / " << by[i / columns];
    }
  }
}

// Data on which rounding errors add up where terms are added one after another: constants, signs that alternate, and
// sorted numbers.
std::vector<std::vector<float>> drifting(size_t n) {
  std::vector<std::vector<float>> all;
  for (const float c : {0.1f, 0.7f, -1.1f}) all.emplace_back(n, c);
  all.emplace_back(n);
  for (size_t i = 0; i < n; ++i) all.back()[i] = i % 2 == 0 ? 1.1f : -0.1f;
  all.emplace_back(n);
  for (size_t i = 0; i < n; ++i) all.back()[i] = 0.5f + static_cast<float>(i) / static_cast<float>(2 * n);
  all.push_back(all.back());
  std::reverse(all.back().begin(), all.back().end());
  return all;
}

/// Times the sum of magnitudes: what these data reach. docs/code_generation.md states the bound for all data.
constexpr double kMostDrift = 12 * 0x1p-24;

TEST_P(ReductionTest, ErrorsOfSumsDoNotGrowWithTheLength) {
  struct Case {
    std::vector<int64_t> dims, over;
  };
  for (const Case& c :
       {Case{{1000}, {0}}, Case{{3000017}, {0}}, Case{{3, 200003}, {1}}, Case{{500, 3001}, {1}}, Case{{200003, 3}, {0}},
        Case{{30011, 40}, {0}}, Case{{2003, 700}, {0}}, Case{{3, 20011, 5}, {1}}, Case{{1000, 703}, {0, 1}}}) {
    std::vector<int64_t> kept;
    int64_t count = 1;
    for (int64_t d = 0; d < static_cast<int64_t>(c.dims.size()); ++d) {
      count *= c.dims[static_cast<size_t>(d)];
      if (std::find(c.over.begin(), c.over.end(), d) == c.over.end()) kept.push_back(c.dims[static_cast<size_t>(d)]);
    }
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kF32, c.dims);
    e.results({e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, x, e.scalar(kF32, 0.0f), c.over)});
    Compiled compiled(plugin_, b.finish());
    ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
    for (std::vector<float> data : drifting(static_cast<size_t>(count))) {
      const auto got = elements_of<float>(compiled.run({bytes_of(data)})[0]);
      std::vector<double> sums(got.size());
      std::vector<double> sizes(got.size());
      const int64_t inner = c.over.back() + 1 < static_cast<int64_t>(c.dims.size()) ? c.dims.back() : 1;
      const int64_t rows = c.over.front() == 0 ? 1 : c.dims[0];
      for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<size_t>(i / (count / rows) * inner + i % inner);
        sums[at] += data[static_cast<size_t>(i)];
        sizes[at] += std::fabs(data[static_cast<size_t>(i)]);
      }
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], sums[i], kMostDrift * sizes[i]) << count << " by " << c.dims[0] << ", first " << data[0];
    }
    // Neither an infinite sum nor one of negative zeros is changed by the rounding errors that are kept.
    std::vector<float> data(static_cast<size_t>(count), kInfinity);
    for (const float y : elements_of<float>(compiled.run({bytes_of(data)})[0])) ASSERT_EQ(y, kInfinity);
    data[0] = -kInfinity;
    ASSERT_TRUE(std::isnan(elements_of<float>(compiled.run({bytes_of(data)})[0])[0]));
    std::fill(data.begin(), data.end(), 3e38f);
    for (const float y : elements_of<float>(compiled.run({bytes_of(data)})[0])) ASSERT_EQ(y, kInfinity);
  }
}

/// One accumulator would take all elements of a lane, or of the tails, of all rows.
TEST_P(ReductionTest, ErrorsOfSumsOverTwoLoopsDoNotGrowWithTheirNumber) {
  struct Case {
    int64_t outer, inner;
  };
  constexpr int64_t kSums = 64;
  for (const Case& c : {Case{2000, 1030}, Case{2000, 2050}, Case{20000, 63}, Case{2000, 1047}}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    const Handle one = e.argument(kF32, {c.outer}), other = e.argument(kF32, {kSums, c.inner});
    const std::vector<int64_t> dims = {c.outer, kSums, c.inner};
    const auto spread = [&](const Handle& x, const std::vector<int64_t>& over) {
      return e.op(COLLET_OP_BROADCAST, kF32, dims, {x}, collet_broadcast_attrs{b.list(over)});
    };
    e.results(
        {e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, e.binary(COLLET_OP_ADD, spread(one, {0}), spread(other, {1, 2})),
                  e.scalar(kF32, 0.0f), {0, 2})});
    Compiled compiled(plugin_, b.finish());
    ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
    const std::vector<float> x(static_cast<size_t>(c.outer), 0.05f), y(static_cast<size_t>(kSums * c.inner), 0.05f);
    const double sum = static_cast<double>(c.outer * c.inner) * static_cast<double>(0.05f + 0.05f);
    for (const float got : elements_of<float>(compiled.run({bytes_of(x), bytes_of(y)})[0]))
      ASSERT_NEAR(got, sum, 60 * 0x1p-24 * sum) << c.outer << " rows of " << c.inner;
  }
}

/// Each block is too small to change the total, and what rounding loses adds up to more than a unit in its last place.
TEST_P(ReductionTest, WhatManySmallBlocksAddIsNotLost) {
  constexpr int64_t n = 3000017, kColumns = 3;
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  Handle x = e.argument(kF32, {n, kColumns});
  RegionBuilder& r = b.region();
  Handle p = r.argument(kF32);
  Handle q = r.argument(kF32);
  r.combine = COLLET_COMBINE_ADD;
  r.results({r.binary(COLLET_OP_ADD, p, q)});
  collet_window_attrs a{};
  a.window.size = b.list({n, 1});
  a.window.stride = a.window.base_dilation = a.window.window_dilation = b.list({1, 1});
  a.window.padding_low = b.list({n - 1, 0});
  a.window.padding_high = b.list({0, 0});
  e.results({e.op(COLLET_OP_REDUCE_WINDOW, kF32, {n, kColumns}, {x, e.scalar(kF32, 0.0f)}, a, {&r})});
  Compiled compiled(plugin_, b.finish());
  ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
  std::vector<float> data(static_cast<size_t>(n * kColumns), 1e-8f);
  std::fill_n(data.begin(), kColumns, 1.0f);
  const auto got = elements_of<float>(compiled.run({bytes_of(data)})[0]);
  for (int64_t row = 0; row < n; row += 100000) {
    const double sum = 1.0 + static_cast<double>(row) * static_cast<double>(1e-8f);
    EXPECT_NEAR(static_cast<double>(got[static_cast<size_t>(row * kColumns)]), sum, kMostDrift) << row;
  }
}

/// Each multiplication loses up to half a unit in the last place, and the same one where factors are equal.
TEST_P(ReductionTest, ErrorsOfProductsDoNotGrowWithTheLength) {
  const float factor = std::nextafterf(std::nextafterf(1, 2), 2);
  const auto expect_power = [&](float got, int64_t n) {
    const double power = std::pow(double{factor}, static_cast<double>(n));
    ASSERT_NEAR(got / power, 1, 0x1p-23) << n << " factors";
  };
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1000003, 1}, {20011, 37}, {100, 700}}) {
    const int64_t n = dims[0], columns = dims[1];
    const std::vector<float> data(static_cast<size_t>(n * columns), factor);
    for (const size_t axis : {size_t{0}, size_t{1}}) {
      const std::vector<int64_t> in = axis == 0 ? dims : std::vector<int64_t>{columns, n};
      ProgramBuilder b;
      RegionBuilder& e = b.entry();
      Handle x = e.argument(kF32, in);
      RegionBuilder& r = b.region();
      Handle p = r.argument(kF32);
      Handle q = r.argument(kF32);
      r.combine = COLLET_COMBINE_MULTIPLY;
      r.results({r.binary(COLLET_OP_MULTIPLY, p, q)});
      std::vector<int64_t> ones(2, 1), size = ones, low(2, 0), high = low;
      size[axis] = n;
      low[axis] = n - 1;
      collet_window_attrs a{};
      a.window.size = b.list(size);
      a.window.stride = a.window.base_dilation = a.window.window_dilation = b.list(ones);
      a.window.padding_low = b.list(low);
      a.window.padding_high = b.list(high);
      const Handle one = e.scalar(kF32, 1.0f);
      e.results({e.reduce(COLLET_OP_MULTIPLY, COLLET_COMBINE_MULTIPLY, x, one, {static_cast<int64_t>(axis)}),
                 e.op(COLLET_OP_REDUCE_WINDOW, kF32, in, {x, one}, a, {&r})});
      Compiled compiled(plugin_, b.finish());
      ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
      const auto results = compiled.run({bytes_of(data)});
      for (const float y : elements_of<float>(results[0])) expect_power(y, n);
      const auto products = elements_of<float>(results[1]);
      for (int64_t i = 0; i < n; i += 99)
        expect_power(products[static_cast<size_t>(axis == 0 ? i * columns : (columns - 1) * n + i)], i + 1);
    }
  }
}

/// The product of the factors of each lane of a vector would be infinite or 0.
TEST_P(ReductionTest, ProductsOfLargeAndSmallFactorsAreFinite) {
  const auto check = [&]<typename T>(T large, uint32_t type) {
    for (const int64_t n : {2, 3, 17, 100, 1000, 70001}) {
      for (const size_t axis : {size_t{0}, size_t{1}}) {
        for (const int64_t other : {1, 5}) {
          const auto shape = [&](int64_t row, int64_t column) {
            return axis == 0 ? std::vector<int64_t>{row, column} : std::vector<int64_t>{column, row};
          };
          ProgramBuilder b;
          RegionBuilder& e = b.entry();
          const Handle x = e.argument(type, shape(n, other));
          e.results({e.reduce(COLLET_OP_MULTIPLY, COLLET_COMBINE_MULTIPLY, x, e.scalar(type, T{1}),
                              {static_cast<int64_t>(axis)})});
          std::vector<T> data(static_cast<size_t>(n * other));
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < other; ++j)
              data[static_cast<size_t>(axis == 0 ? i * other + j : j * n + i)] = i % 2 == 0 ? large : 1 / large;
          }
          Compiled compiled(plugin_, b.finish());
          ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
          const T want = n % 2 == 0 ? T{1} : large;
          for (const T y : elements_of<T>(compiled.run({bytes_of(data)})[0]))
            EXPECT_NEAR(y / want, 1, 2e-3) << n << " factors along axis " << axis << " of " << other;
        }
      }
    }
  };
  check(1e30F, kF32);
  check(1e300, COLLET_TYPE_F64);
}

/// Tails of rows, parts of a row, and the even elements of a vector have products that are infinite or 0.
TEST_P(ReductionTest, ProductsOverTwoLoopsKeepTheOrderOfTheirFactors) {
  struct Case {
    std::vector<int64_t> dims;
    int64_t large, small;  // places in a row of the factors that are not 1
  };
  for (const Case& c : {Case{{64, 4, 17}, 16, 3}, Case{{61, 2, 4096}, 0, 64}, Case{{64, 2, 4096}, 64, 0}}) {
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    const Handle x = e.argument(kF32, c.dims);
    e.results({e.reduce(COLLET_OP_MULTIPLY, COLLET_COMBINE_MULTIPLY, x, e.scalar(kF32, 1.0f), {0, 2})});
    const int64_t row = c.dims[2], rows = c.dims[0] * c.dims[1];
    std::vector<float> data(static_cast<size_t>(rows * row), 1.0f);
    for (int64_t i = 0; i < rows; ++i) {
      data[static_cast<size_t>(i * row + c.large)] = 0x1p100f;
      data[static_cast<size_t>(i * row + c.small)] = 0x1p-100f;
    }
    Compiled compiled(plugin_, b.finish());
    ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
    for (const float y : elements_of<float>(compiled.run({bytes_of(data)})[0])) EXPECT_EQ(y, 1) << row;
  }
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(COLLET_TYPE_BF16, {4, 1024});
  const std::vector<uint16_t> one = {0x3F80};
  e.results(
      {e.reduce(COLLET_OP_MULTIPLY, COLLET_COMBINE_MULTIPLY, x, e.constant<uint16_t>(COLLET_TYPE_BF16, {}, one), {1})});
  std::vector<uint16_t> data;
  for (int i = 0; i < 4 * 512; ++i) data.insert(data.end(), {0x7180, 0x0D80});  // 2^100 and 2^-100
  Compiled compiled(plugin_, b.finish());
  ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
  for (const uint16_t y : elements_of<uint16_t>(compiled.run({bytes_of(data)})[0])) EXPECT_EQ(y, one[0]);
}

TEST_P(ReductionTest, ErrorsOfPrefixSumsDoNotGrowWithTheLength) {
  struct Case {
    std::vector<int64_t> dims;
    size_t axis;
    bool reverse;
  };
  for (const Case& c : {Case{{1000003}, 0, false}, Case{{1000003}, 0, true}, Case{{100003, 3}, 0, false},
                        Case{{20011, 37}, 0, true}, Case{{7, 50021}, 1, false}}) {
    const int64_t n = c.dims[c.axis];
    ProgramBuilder b;
    RegionBuilder& e = b.entry();
    Handle x = e.argument(kF32, c.dims);
    RegionBuilder& r = b.region();
    Handle p = r.argument(kF32);
    Handle q = r.argument(kF32);
    r.combine = COLLET_COMBINE_ADD;
    r.results({r.binary(COLLET_OP_ADD, p, q)});
    std::vector<int64_t> ones(c.dims.size(), 1), size = ones, low(c.dims.size(), 0), high = low;
    size[c.axis] = n;
    (c.reverse ? high : low)[c.axis] = n - 1;
    collet_window_attrs a{};
    a.window.size = b.list(size);
    a.window.stride = a.window.base_dilation = a.window.window_dilation = b.list(ones);
    a.window.padding_low = b.list(low);
    a.window.padding_high = b.list(high);
    e.results({e.op(COLLET_OP_REDUCE_WINDOW, kF32, c.dims, {x, e.scalar(kF32, 0.0f)}, a, {&r})});
    Compiled compiled(plugin_, b.finish());
    ASSERT_EQ(compiled.status, COLLET_OK) << compiled.error.message;
    const int64_t inner = c.axis + 1 < c.dims.size() ? c.dims.back() : 1;
    size_t count = 1;
    for (const int64_t d : c.dims) count *= static_cast<size_t>(d);
    for (const std::vector<float>& data : drifting(count)) {
      const auto got = elements_of<float>(compiled.run({bytes_of(data)})[0]);
      for (size_t first = 0; first < count; first += first % static_cast<size_t>(inner) + 1 < static_cast<size_t>(inner)
                                                         ? 1
                                                         : static_cast<size_t>((n - 1) * inner + 1)) {
        double sum = 0;
        double size_so_far = 0;
        for (int64_t i = 0; i < n; ++i) {
          const size_t at = first + static_cast<size_t>((c.reverse ? n - 1 - i : i) * inner);
          sum += data[at];
          size_so_far += std::fabs(data[at]);
          ASSERT_NEAR(got[at], sum, kMostDrift * size_so_far) << i << " of " << n << ", first " << data[0];
        }
      }
    }
    std::vector<float> data(count, 1.0f);
    data[count / 2] = kInfinity;
    const auto got = elements_of<float>(compiled.run({bytes_of(data)})[0]);
    for (const float y : got) ASSERT_FALSE(std::isnan(y));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ReductionTest, ::testing::ValuesIn(kLevels));

}  // namespace
}  // namespace collet::cpu::testing
