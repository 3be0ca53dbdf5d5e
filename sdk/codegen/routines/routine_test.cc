// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/routine.h"

#include <collet/attributes.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "sdk/codegen/routines/sort_keys.h"

namespace collet::codegen {
namespace {

void run(const RoutineCall& call, std::vector<char*> buffers, CompareFunction compare = nullptr) {
  const std::unique_ptr<Routine> routine = make_routine(call, compare);
  ASSERT_TRUE(routine);
  std::vector<char> scratch(routine->scratch_bytes() + 128);
  buffers.push_back(scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64));
  Target target;
  target.threads = 3;
  Threads threads(target);
  routine->run(buffers.data(), threads);
}

template <typename T>
char* bytes(std::vector<T>& v) {
  return reinterpret_cast<char*>(v.data());
}

/// Returns numbers of which many are equal, with zeros of both signs, infinities and NaNs of several encodings.
std::vector<float> floats(int64_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) {
    const unsigned kind = static_cast<unsigned>(random() % 40);
    const float small = static_cast<float>(static_cast<int>(random() % 64) - 32) / 4;
    const float infinity = std::numeric_limits<float>::infinity();
    const float specials[] = {0.0f, -0.0f, infinity, -infinity, nan, -nan};
    out.push_back(kind < 6 ? specials[kind] : small);
  }
  return out;
}

/// Returns a number that is ordered as the rule orders x.
double rank(float x, const KeyRule& rule) {
  double r = x;
  if (std::isnan(x)) r = std::signbit(x) && !rule.equal_nans ? -1e300 : 1e300;
  if (std::isinf(x)) r = x > 0 ? 1e200 : -1e200;
  if (x == 0 && std::signbit(x) && !rule.equal_zeros) r = -1e-300;
  return rule.descending ? -r : r;
}

RoutineCall sort_call(const Dims& dims, int64_t dimension, const KeyRule& rule, int64_t flags, int64_t needed,
                      size_t operands) {
  RoutineCall call;
  call.opcode = COLLET_OP_SORT;
  for (size_t i = 0; i < operands; ++i) call.operands.push_back(make_type(i ? COLLET_TYPE_S32 : COLLET_TYPE_F32, dims));
  call.results = call.operands;
  call.numbers = {dimension, 1, rule.descending, flags, needed};
  return call;
}

TEST(Sort, ByKey_IsStableInEveryOrder) {
  for (const int64_t n : {1, 2, 17, 64, 65, 300, 9000}) {
    for (int flags = 0; flags < 4; ++flags) {
      for (const bool descending : {false, true}) {
        for (const int64_t needed : {n, std::max<int64_t>(n / 9, 1)}) {
          const KeyRule rule{COLLET_TYPE_F32, descending, (flags & kSortEqualZeros) != 0,
                             (flags & kSortEqualNaNs) != 0};
          std::vector<float> keys = floats(2 * n), sorted_keys(keys.size());
          std::vector<int32_t> places(keys.size()), sorted_places(keys.size());
          std::iota(places.begin(), places.end(), 0);
          run(sort_call({2, n}, 1, rule, flags, needed, 2),
              {bytes(keys), bytes(places), bytes(sorted_keys), bytes(sorted_places)});
          std::vector<float> alone(keys.size());
          run(sort_call({2, n}, 1, rule, flags, needed, 1), {bytes(keys), bytes(alone)});
          for (int64_t row = 0; row < 2; ++row) {
            const auto first = places.begin() + row * n;
            std::stable_sort(first, first + n, [&](int32_t x, int32_t y) {
              return rank(keys[static_cast<size_t>(x)], rule) < rank(keys[static_cast<size_t>(y)], rule);
            });
            for (int64_t i = row * n; i < row * n + needed; ++i) {
              const auto at = static_cast<size_t>(i);
              ASSERT_EQ(sorted_places[at], places[at]) << n << " " << flags << " " << descending << " " << i;
              const float want = keys[static_cast<size_t>(places[at])];
              ASSERT_EQ(std::memcmp(&sorted_keys[at], &want, 4), 0);
              ASSERT_EQ(std::memcmp(&alone[at], &want, 4), 0);
            }
          }
        }
      }
    }
  }
}

uint8_t first_is_less(char* const* buffers, int64_t i, int64_t j) {
  const float* x = reinterpret_cast<const float*>(buffers[0]);
  return x[i] < x[j];
}

TEST(Sort, ButForNaN_AsksTheComparatorWhereOneIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> keys{3, -1, 2, 0, nan, 2, 1, 3}, sorted(8);
  const KeyRule rule{COLLET_TYPE_F32, false, true, false};
  run(sort_call({2, 4}, 1, rule, kSortEqualZeros | kSortButForNaN, 4, 1), {bytes(keys), bytes(sorted)}, first_is_less);
  EXPECT_EQ(std::vector<float>(sorted.begin(), sorted.begin() + 4), (std::vector<float>{-1, 0, 2, 3}));
  EXPECT_TRUE(std::isnan(sorted[4]));  // the comparator finds no number less than NaN
  EXPECT_EQ(std::vector<float>(sorted.begin() + 5, sorted.end()), (std::vector<float>{1, 2, 3}));
}

TEST(Sort, AlongTheFirstDimension_SortsColumns) {
  std::vector<float> keys = floats(40 * 3), sorted(keys.size());
  const KeyRule rule{COLLET_TYPE_F32, false, true, true};
  run(sort_call({40, 3}, 0, rule, kSortEqualZeros | kSortEqualNaNs, 40, 1), {bytes(keys), bytes(sorted)});
  for (size_t i = 3; i < sorted.size(); ++i) EXPECT_LE(rank(sorted[i - 3], rule), rank(sorted[i], rule));
}

/// Sorts rows of small integers of type T, along the last dimension or along the first one, and compares with a stable
/// sort.
template <typename T>
void check_short_rows(uint32_t type, int64_t rows, int64_t n, bool columns, bool descending, int64_t needed) {
  std::mt19937_64 random(static_cast<uint64_t>(rows * 1000 + n));
  std::vector<T> keys(static_cast<size_t>(rows * n)), sorted(keys.size()), alone(keys.size());
  for (T& e : keys) e = static_cast<T>(static_cast<int>(random() % 100) - (std::is_unsigned_v<T> ? 0 : 50));
  std::vector<int32_t> values(keys.size()), moved(keys.size());
  std::iota(values.begin(), values.end(), 0);
  RoutineCall call;
  call.opcode = COLLET_OP_SORT;
  const Dims dims = columns ? Dims{n, rows} : Dims{rows, n};
  call.operands = {make_type(type, dims), make_type(COLLET_TYPE_S32, dims)};
  call.results = call.operands;
  call.numbers = {columns ? 0 : 1, 1, descending, 0, needed};
  run(call, {bytes(keys), bytes(values), bytes(sorted), bytes(moved)});
  call.operands.pop_back();
  call.results.pop_back();
  run(call, {bytes(keys), bytes(alone)});
  for (int64_t row = 0; row < rows; ++row) {
    const auto at = [&](int64_t i) { return static_cast<size_t>(columns ? i * rows + row : row * n + i); };
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      return descending ? keys[at(i)] > keys[at(j)] : keys[at(i)] < keys[at(j)];
    });
    for (int64_t i = 0; i < needed; ++i) {
      const size_t from = at(order[static_cast<size_t>(i)]);
      ASSERT_EQ(moved[at(i)], values[from]) << type << ": " << rows << " x " << n << ", " << row << ", " << i;
      ASSERT_EQ(sorted[at(i)], keys[from]);
      ASSERT_EQ(alone[at(i)], keys[from]);
    }
  }
}

TEST(Sort, ManyShortRows_AreEachStable) {
  for (const int64_t rows : {5, 131}) {
    for (const int64_t n : {2, 3, 7, 16, 44, 100, 257, 600, 1025}) {
      for (const bool columns : {false, true}) {
        for (const int64_t needed : {n, n / 2 + 1, int64_t{1}}) {
          const bool descending = (rows + n + needed) % 2 != 0;
          check_short_rows<float>(COLLET_TYPE_F32, rows, n, columns, descending, needed);
          check_short_rows<double>(COLLET_TYPE_F64, rows, n, columns, descending, needed);
          check_short_rows<int32_t>(COLLET_TYPE_S32, rows, n, columns, descending, needed);
          check_short_rows<uint32_t>(COLLET_TYPE_U32, rows, n, columns, descending, needed);
          check_short_rows<int64_t>(COLLET_TYPE_S64, rows, n, columns, descending, needed);
          check_short_rows<int16_t>(COLLET_TYPE_S16, rows, n, columns, descending, needed);
          check_short_rows<uint8_t>(COLLET_TYPE_U8, rows, n, columns, descending, needed);
          check_short_rows<int8_t>(COLLET_TYPE_S8, rows, n, columns, descending, needed);
        }
      }
    }
  }
}

// Rows with zeros of both signs or NaNs are sorted in lanes with their places, or by the comparator.
TEST(Sort, ManyShortRowsOfSpecialValues_AreEachStable) {
  for (int flags = 0; flags < 4; ++flags) {
    for (const int64_t n : {4, 19, 70}) {
      for (const bool columns : {false, true}) {
        const int64_t rows = 83;
        const KeyRule rule{COLLET_TYPE_F32, flags == 1, (flags & kSortEqualZeros) != 0, (flags & kSortEqualNaNs) != 0};
        const Dims dims = columns ? Dims{n, rows} : Dims{rows, n};
        std::vector<float> keys = floats(rows * n), sorted(keys.size()), alone(keys.size());
        std::vector<int32_t> values(keys.size()), moved(keys.size());
        std::iota(values.begin(), values.end(), 0);
        run(sort_call(dims, columns ? 0 : 1, rule, flags, n, 2),
            {bytes(keys), bytes(values), bytes(sorted), bytes(moved)});
        run(sort_call(dims, columns ? 0 : 1, rule, flags, n, 1), {bytes(keys), bytes(alone)});
        for (int64_t row = 0; row < rows; ++row) {
          const auto at = [&](int64_t i) { return static_cast<size_t>(columns ? i * rows + row : row * n + i); };
          std::vector<int64_t> order(static_cast<size_t>(n));
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(),
                           [&](int64_t i, int64_t j) { return rank(keys[at(i)], rule) < rank(keys[at(j)], rule); });
          for (int64_t i = 0; i < n; ++i) {
            const size_t from = at(order[static_cast<size_t>(i)]);
            ASSERT_EQ(moved[at(i)], values[from]) << flags << " " << n << " " << columns << " " << row << " " << i;
            ASSERT_EQ(std::memcmp(&sorted[at(i)], &keys[from], 4), 0);
            ASSERT_EQ(std::memcmp(&alone[at(i)], &keys[from], 4), 0);
          }
        }
      }
    }
  }
}

TEST(Sort, ManyShortRowsButForNaN_AskTheComparatorWhereOneIs) {
  const int64_t rows = 40;
  std::vector<float> keys(static_cast<size_t>(rows * 4)), sorted(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<float>((i * 7) % 11);
  keys[4 * 21] = std::numeric_limits<float>::quiet_NaN();
  const KeyRule rule{COLLET_TYPE_F32, false, true, false};
  run(sort_call({rows, 4}, 1, rule, kSortEqualZeros | kSortButForNaN, 4, 1), {bytes(keys), bytes(sorted)},
      first_is_less);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    if (row == 21) {
      EXPECT_TRUE(std::isnan(sorted[4 * row]));  // the comparator finds no number less than NaN
    } else {
      std::sort(keys.begin() + static_cast<int64_t>(4 * row), keys.begin() + static_cast<int64_t>(4 * row + 4));
      for (size_t i = 4 * row; i < 4 * row + 4; ++i) EXPECT_EQ(sorted[i], keys[i]);
    }
  }
}

template <typename T>
void check_topk(uint32_t type, int64_t n, int64_t k, bool smallest, int64_t rows = 2) {
  std::mt19937_64 random(9);
  std::vector<T> x(static_cast<size_t>(rows * n)), values(static_cast<size_t>(rows * k));
  for (T& e : x) e = static_cast<T>(random() % 1000);
  std::vector<int32_t> places(static_cast<size_t>(rows * k));
  RoutineCall call;
  call.opcode = COLLET_OP_TOPK;
  call.operands = {make_type(type, {rows, n})};
  call.results = {make_type(type, {rows, k}), make_type(COLLET_TYPE_S32, {rows, k})};
  call.numbers = {smallest};
  run(call, {bytes(x), bytes(values), bytes(places)});
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int32_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    const T* at = x.data() + row * n;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t i, int32_t j) { return smallest ? at[i] < at[j] : at[i] > at[j]; });
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_EQ(places[static_cast<size_t>(row * k + i)], order[static_cast<size_t>(i)]) << n << " " << k << " " << i;
      ASSERT_EQ(values[static_cast<size_t>(row * k + i)], at[order[static_cast<size_t>(i)]]);
    }
  }
}

TEST(TopK, OfManyLengths_GivesTheFirstOfEqualOnes) {
  for (const int64_t n : {1, 2, 15, 16, 17, 128, 129, 512, 1000, 5000}) {
    for (const int64_t k : {int64_t{1}, std::min<int64_t>(n, 2), std::min<int64_t>(n, 3), std::min<int64_t>(n, 7),
                            std::min<int64_t>(n, 12), n / 3 + 1, n}) {
      for (const bool smallest : {false, true}) {
        check_topk<float>(COLLET_TYPE_F32, n, k, smallest);
        check_topk<double>(COLLET_TYPE_F64, n, k, smallest);
        check_topk<int32_t>(COLLET_TYPE_S32, n, k, smallest);
        check_topk<uint16_t>(COLLET_TYPE_U16, n, k, smallest);
        check_topk<uint8_t>(COLLET_TYPE_U8, n, k, smallest);
        if (n > 1000) continue;
        check_topk<float>(COLLET_TYPE_F32, n, k, smallest, 37);
        check_topk<uint16_t>(COLLET_TYPE_U16, n, k, smallest, 37);
        check_topk<uint8_t>(COLLET_TYPE_U8, n, k, smallest, 37);
      }
    }
  }
}

template <typename T>
void check_fft(uint32_t kind, int64_t rows, int64_t n) {
  const bool wide = sizeof(T) == 8;
  const uint32_t real = wide ? COLLET_TYPE_F64 : COLLET_TYPE_F32;
  const uint32_t complex = wide ? COLLET_TYPE_C128 : COLLET_TYPE_C64;
  const bool from_real = kind == COLLET_FFT_RFFT;
  const bool to_real = kind == COLLET_FFT_IRFFT;
  const bool inverse = to_real || kind == COLLET_FFT_IFFT;
  const int64_t in = to_real ? n / 2 + 1 : n;
  const int64_t out = from_real ? n / 2 + 1 : n;
  std::mt19937 random(3);
  std::normal_distribution<T> normal;
  std::vector<T> x(static_cast<size_t>(rows * in * (from_real ? 1 : 2))),
      y(static_cast<size_t>(rows * out * (to_real ? 1 : 2)));
  for (T& e : x) e = normal(random);
  // The last row is quiet beside the others: no row may be computed with the digits of another one.
  constexpr T kLoud = 1 << 20;
  for (size_t i = 0; i < x.size() / static_cast<size_t>(rows) * static_cast<size_t>(rows - 1); ++i) x[i] *= kLoud;
  RoutineCall call;
  call.opcode = COLLET_OP_FFT;
  call.operands = {make_type(from_real ? real : complex, {rows, in})};
  call.results = {make_type(to_real ? real : complex, {rows, out})};
  call.numbers = {kind, n};
  run(call, {bytes(x), bytes(y)});
  const double tolerance =
      8 * static_cast<double>(std::numeric_limits<T>::epsilon()) * std::sqrt(static_cast<double>(n) + 8);
  for (int64_t r = 0; r < rows; r += std::max<int64_t>(rows - 1, 1)) {
    const auto element = [&](int64_t i) -> std::complex<double> {
      const auto at = static_cast<size_t>(r * in + std::min(i, to_real ? n - i : i));
      if (from_real) return x[at];
      std::complex<double> z(x[2 * at], x[2 * at + 1]);
      if (to_real && (i == 0 || 2 * i == n)) z = z.real();
      return to_real && 2 * i > n ? std::conj(z) : z;
    };
    for (int64_t k = 0; k < out; k += std::max<int64_t>(out / 5, 1)) {
      std::complex<double> sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double angle = 2 * 3.14159265358979323846 * static_cast<double>(i * k % n) / static_cast<double>(n);
        sum += element(i) * std::complex<double>(std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle));
      }
      if (inverse) sum /= static_cast<double>(n);
      const auto at = static_cast<size_t>(r * out + k);
      const std::complex<double> got =
          to_real ? std::complex<double>(y[at]) : std::complex<double>(y[2 * at], y[2 * at + 1]);
      const double size = (inverse ? 1 / std::sqrt(static_cast<double>(n)) : std::sqrt(static_cast<double>(n))) *
                          (r + 1 < rows ? kLoud : 1);
      ASSERT_LT(std::abs(got - sum), tolerance * size * 4) << kind << " " << rows << " x " << n << ": " << k;
    }
  }
}

TEST(Fft, OfManyLengths_IsTheSum) {
  for (const int64_t n :
       {1, 2, 3, 4, 5, 7, 8, 9, 16, 30, 32, 37, 64, 77, 100, 128, 243, 256, 338, 512, 1000, 1009, 4096, 5000, 8192}) {
    for (const int64_t rows : {1, 2, 5, 16, 33}) {
      if (n > 2000 && rows > 2) continue;
      for (const uint32_t kind : {COLLET_FFT_FFT, COLLET_FFT_IFFT, COLLET_FFT_RFFT, COLLET_FFT_IRFFT}) {
        check_fft<float>(kind, rows, n);
        check_fft<double>(kind, rows, n);
      }
    }
  }
}

// Real rows are transformed two to a lane or, if lanes would be unused or the rows are very long, each by itself.
TEST(Fft, OfRealRowsSideBySideOrHalved_IsTheSum) {
  for (const auto& [n, counts] : std::map<int64_t, std::vector<int64_t>>{{510, {9, 24}},
                                                                         {512, {8, 9, 24}},
                                                                         {1000, {17, 34}},
                                                                         {1024, {3, 33}},
                                                                         {2000, {3, 17, 40}},
                                                                         {2018, {2, 20}},
                                                                         {2046, {3, 17}},
                                                                         {257, {1, 5, 9, 40}},
                                                                         {2187, {1, 3, 33}},
                                                                         {10007, {1, 3, 33}},
                                                                         {65537, {1, 3}},
                                                                         {59049, {2}},
                                                                         {16384, {4, 33}},
                                                                         {65536, {1, 33}}}) {
    for (const int64_t rows : counts) {
      for (const uint32_t kind : {COLLET_FFT_RFFT, COLLET_FFT_IRFFT}) {
        check_fft<float>(kind, rows, n);
        check_fft<double>(kind, rows, n);
      }
    }
  }
}

TEST(Fft, OfOneRow_DoesNotReachTheOthers) {
  constexpr int64_t kRows = 18;
  for (const int64_t n : {1, 2, 3, 8, 9, 64, 100, 243, 509, 1000, 1009, 4096, 65537}) {
    std::vector<float> x(static_cast<size_t>(kRows * n), 1);
    std::vector<float> y(static_cast<size_t>(2 * kRows * (n / 2 + 1)));
    x[static_cast<size_t>(4 * n)] = std::numeric_limits<float>::quiet_NaN();
    x[static_cast<size_t>(7 * n)] = std::numeric_limits<float>::infinity();
    RoutineCall call;
    call.opcode = COLLET_OP_FFT;
    call.operands = {make_type(COLLET_TYPE_F32, {kRows, n})};
    call.results = {make_type(COLLET_TYPE_C64, {kRows, n / 2 + 1})};
    call.numbers = {COLLET_FFT_RFFT, n};
    run(call, {bytes(x), bytes(y)});
    std::vector<float> back(x.size());
    call.operands.swap(call.results);
    call.numbers = {COLLET_FFT_IRFFT, n};
    run(call, {bytes(y), bytes(back)});
    for (int64_t r = 0; r < kRows; ++r) {
      const float first = back[static_cast<size_t>(r * n)];
      if (r == 4 || r == 7) {
        EXPECT_FALSE(std::isfinite(first)) << n << ", row " << r;
      } else {
        EXPECT_NEAR(first, 1, 1e-4) << n << ", row " << r;
      }
    }
  }
}

TEST(Fft, OfRealRowsOfAnOddLength_TakesAboutTheMemoryOfComplexOnes) {
  for (const int64_t n : {4099, 59049, 65537, 531441, 1000003}) {
    const auto scratch = [&](uint32_t kind) {
      RoutineCall call;
      call.opcode = COLLET_OP_FFT;
      const uint32_t from = kind == COLLET_FFT_RFFT ? COLLET_TYPE_F32 : COLLET_TYPE_C64;
      const uint32_t to = kind == COLLET_FFT_IRFFT ? COLLET_TYPE_F32 : COLLET_TYPE_C64;
      call.operands = {make_type(from, {1, kind == COLLET_FFT_IRFFT ? n / 2 + 1 : n})};
      call.results = {make_type(to, {1, kind == COLLET_FFT_RFFT ? n / 2 + 1 : n})};
      call.numbers = {kind, n};
      return make_routine(call)->scratch_bytes();
    };
    const uint64_t row = static_cast<uint64_t>(n) * 8;
    for (const uint32_t kind : {COLLET_FFT_RFFT, COLLET_FFT_IRFFT})
      EXPECT_LE(scratch(kind), scratch(COLLET_FFT_FFT) + row + 4096) << kind << " of " << n;
  }
}

// Complex rows are transformed side by side or, if lanes would be unused or the caches too small, each as a matrix.
TEST(Fft, OfRowsSideBySideOrAsMatrices_IsTheSum) {
  for (const auto& [n, counts] : std::map<int64_t, std::vector<int64_t>>{
           {256, {9, 16, 40}}, {360, {5, 17}}, {512, {17, 33}}, {1024, {3, 40}}, {2048, {17}}, {30000, {3}}}) {
    for (const int64_t rows : counts) {
      for (const uint32_t kind : {COLLET_FFT_FFT, COLLET_FFT_IFFT}) {
        check_fft<float>(kind, rows, n);
        check_fft<double>(kind, rows, n);
      }
    }
  }
}

// The second dimension's rows are columns, which are transformed in place, also if their number does not fill the
// lanes.
TEST(Fft, OfTwoDimensions_IsTheSumOfBoth) {
  for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{6, 1024}, {1024, 6}, {40, 600}, {5, 4096}}) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> x(static_cast<size_t>(2 * rows * n)), y(x.size()), back(x.size());
    for (float& e : x) e = normal(random);
    RoutineCall call;
    call.opcode = COLLET_OP_FFT;
    call.operands = {make_type(COLLET_TYPE_C64, {rows, n})};
    call.results = call.operands;
    call.numbers = {COLLET_FFT_FFT, rows, n};
    run(call, {bytes(x), bytes(y)});
    call.numbers[0] = COLLET_FFT_IFFT;
    run(call, {bytes(y), bytes(back)});
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(back[i], x[i], 1e-4) << rows << " x " << n << ": " << i;
    std::complex<double> sum = 0;  // element (1, 2)
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const double angle =
            -2 * 3.14159265358979323846 *
            (static_cast<double>(i) / static_cast<double>(rows) + static_cast<double>(2 * j) / static_cast<double>(n));
        const auto at = static_cast<size_t>(2 * (i * n + j));
        sum += std::complex<double>(x[at], x[at + 1]) * std::polar(1.0, angle);
      }
    }
    const auto at = static_cast<size_t>(2 * (n + 2));
    ASSERT_LT(std::abs(std::complex<double>(y[at], y[at + 1]) - sum), 1e-4 * std::sqrt(static_cast<double>(rows * n)));
  }
}

// The words of one block of Threefry2x32 with 20 rounds, and of Philox4x32 with 10: J. Salmon and others, Parallel random
// numbers: as easy as 1, 2, 3.
std::vector<uint32_t> block_of(bool threefry, uint64_t key, uint64_t low, uint64_t high) {
  const auto half = [](uint64_t x, int which) { return static_cast<uint32_t>(x >> 32 * which); };
  std::vector<uint32_t> x{half(low, 0), half(low, 1), half(high, 0), half(high, 1)};
  if (threefry) {
    const uint32_t k[3] = {half(key, 0), half(key, 1), 0x1BD11BDA ^ half(key, 0) ^ half(key, 1)};
    const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    x = {x[0] + k[0], x[1] + k[1]};
    for (uint32_t round = 0; round < 20; ++round) {
      x[0] += x[1];
      x[1] = std::rotl(x[1], turns[round % 8]) ^ x[0];
      if (round % 4 != 3) continue;
      const uint32_t group = round / 4 + 1;
      x[0] += k[group % 3];
      x[1] += k[(group + 1) % 3] + group;
    }
    return x;
  }
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{x[0]} * 0xD2511F53, q = uint64_t{x[2]} * 0xCD9E8D57;
    x = {half(q, 1) ^ x[1] ^ (half(key, 0) + round * 0x9E3779B9), half(q, 0),
         half(p, 1) ^ x[3] ^ (half(key, 1) + round * 0xBB67AE85), half(p, 0)};
  }
  return x;
}

TEST(Random, BlocksOfTheReference_HaveTheKnownWords) {
  EXPECT_EQ(block_of(true, 0, 0, 0), (std::vector<uint32_t>{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(block_of(true, ~uint64_t{0}, ~uint64_t{0}, 0), (std::vector<uint32_t>{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(block_of(false, 0, 0, 0), (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

/// Compares what the routine writes with the words of the blocks, element by element.
template <typename T>
void expect_random_bits(uint32_t type, bool threefry, const Dims& dims, std::vector<uint64_t> state) {
  RoutineCall call;
  call.opcode = COLLET_OP_RNG_BIT_GENERATOR;
  call.operands = {make_type(COLLET_TYPE_U64, {static_cast<int64_t>(state.size())})};
  call.results = {call.operands[0], make_type(type, dims)};
  call.numbers = {threefry ? COLLET_RNG_THREE_FRY : COLLET_RNG_PHILOX};
  const int64_t n = call.results[1].elements;
  constexpr T kUntouched = 77;
  std::vector<T> got(static_cast<size_t>(n) + 8, kUntouched);
  std::vector<uint64_t> next(state.size());
  const std::vector<uint64_t> first = state;
  run(call, {bytes(state), bytes(next), bytes(got)});
  const uint64_t upper = first.size() > 2 ? first[2] : first[0];
  const auto words = [&](int64_t block) {
    const uint64_t low = first[1] + static_cast<uint64_t>(block);
    return block_of(threefry, first[0], low, low < first[1] ? upper + 1 : upper);
  };
  size_t dim = 0;
  for (size_t d = 1; d < dims.size(); ++d) {
    if (dims[d] > dims[dim]) dim = d;
  }
  for (size_t d = dims.size(); d-- > 0;) {
    if (std::none_of(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(d), [](int64_t x) { return x % 2 == 0; }) &&
        dims[d] % 2 == 0)
      dim = d;
  }
  const int64_t length = dims.empty() ? 1 : dims[dim];
  int64_t inner = 1;
  for (size_t d = dim + 1; d < dims.size(); ++d) inner *= dims[d];
  for (int64_t i = 0; i < n; ++i) {
    uint64_t want = 0;
    if constexpr (sizeof(T) == 8) {
      const std::vector<uint32_t> w = words(threefry ? i : i / 2);
      const size_t at = threefry ? 0 : static_cast<size_t>(i % 2 * 2);
      want = w[at] | uint64_t{w[at + 1]} << 32;
    } else if (threefry) {
      const int64_t outer = i / inner / length, j = i / inner % length;
      want = words((outer * ((length + 1) / 2) + j / 2) * inner + i % inner)[static_cast<size_t>(j % 2)];
    } else {
      want = words(i / 4)[static_cast<size_t>(i % 4)];
    }
    ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<T>(want)) << "element " << i << " of " << n;
  }
  for (int64_t i = n; i < n + 8; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], kUntouched);
  int64_t blocks = sizeof(T) == 8 ? (threefry ? n : (n + 1) / 2) : (n + 3) / 4;
  if (threefry && sizeof(T) < 8) blocks = n == 0 ? 0 : n / length * ((length + 1) / 2);
  EXPECT_EQ(next[0], first[0]);
  EXPECT_EQ(next[1], first[1] + static_cast<uint64_t>(blocks));
  if (next.size() > 2) {
    EXPECT_EQ(next[2], first[2] + (!threefry && next[1] < first[1] ? 1 : 0));
  }
}

TEST(Random, BitsAreTheWordsOfTheBlocks) {
  const Dims all[] = {{}, {0}, {1}, {5}, {8}, {1003}, {100001}, {7, 3}, {3, 4, 5}, {2, 333}, {1001, 3}, {5, 257, 2}};
  for (const Dims& dims : all) {
    for (const bool threefry : {true, false}) {
      // The counter's words carry after a few blocks.
      for (const uint64_t counter : {uint64_t{0}, (uint64_t{1} << 32) - 5, ~uint64_t{0} - 2}) {
        const std::vector<uint64_t> state{0x123456789abcdef0, counter};
        std::vector<uint64_t> with_upper = state;
        if (!threefry) with_upper.push_back(9);
        SCOPED_TRACE(testing::Message() << "threefry " << threefry << ", counter " << counter);
        expect_random_bits<uint8_t>(COLLET_TYPE_U8, threefry, dims, state);
        expect_random_bits<uint16_t>(COLLET_TYPE_U16, threefry, dims, with_upper);
        expect_random_bits<uint32_t>(COLLET_TYPE_U32, threefry, dims, state);
        expect_random_bits<uint64_t>(COLLET_TYPE_U64, threefry, dims, with_upper);
      }
    }
  }
}

}  // namespace
}  // namespace collet::codegen
