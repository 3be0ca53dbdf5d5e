// SPDX-License-Identifier: Apache-2.0
#include <collet/attributes.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <thread>

#include "sdk/codegen/base/factorization.h"
#include "sdk/codegen/routines/lapack.h"
#include "sdk/codegen/routines/routine.h"

namespace collet::codegen {
namespace {

template <typename T>
constexpr uint32_t kType = COLLET_TYPE_F32;
template <>
constexpr uint32_t kType<double> = COLLET_TYPE_F64;
template <>
constexpr uint32_t kType<std::complex<float>> = COLLET_TYPE_C64;
template <>
constexpr uint32_t kType<std::complex<double>> = COLLET_TYPE_C128;
template <>
constexpr uint32_t kType<int32_t> = COLLET_TYPE_S32;

template <typename T>
struct Array {
  Array(Dims dims) : type(make_type(kType<T>, std::move(dims))), data(static_cast<size_t>(type.elements)) {}
  /// Returns the element in row i and column j of matrix b.
  T at(int64_t b, int64_t i, int64_t j) const {
    const int64_t columns = type.dims.back();
    return data[static_cast<size_t>((b * type.dims[type.dims.size() - 2] + i) * columns + j)];
  }
  ArrayType type;
  std::vector<T> data;
};

template <typename T>
void fill(Array<T>& a) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (T& x : a.data) {
    const double re = normal(random);
    if constexpr (std::is_floating_point_v<T>) {
      x = static_cast<T>(re);
    } else {
      x = T(static_cast<typename T::value_type>(re), static_cast<typename T::value_type>(normal(random)));
    }
  }
}

void run(const RoutineCall& call, std::vector<char*> buffers) {
  const std::unique_ptr<Routine> routine = make_routine(call);
  ASSERT_TRUE(routine);
  std::vector<char> scratch(routine->scratch_bytes() + 64);
  buffers.push_back(scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64));
  Target target;
  target.threads = 3;
  Threads threads(target);
  routine->run(buffers.data(), threads);
}

template <typename A>
char* bytes(A& a) {
  return reinterpret_cast<char*>(a.data.data());
}

template <typename T>
class Factorizations : public testing::Test {
 protected:
  using Real = typename RealOf<T>::type;
  template <typename... Results>
  static void factorize(Factorization kind, Array<T>& a, Results&... results) {
    RoutineCall call;
    call.opcode = COLLET_OP_CALL;
    call.operands = {a.type};
    call.results = {results.type...};
    call.numbers = {static_cast<int64_t>(kind)};
    run(call, {bytes(a), bytes(results)...});
  }
  static double tolerance(int64_t n) { return 60.0 * static_cast<double>(n) * std::numeric_limits<Real>::epsilon(); }
  static T conjugate(T x) {
    if constexpr (std::is_floating_point_v<T>) return x;
    if constexpr (!std::is_floating_point_v<T>) return std::conj(x);
  }
};

// Started by a name that was found in PATH, an executable does not know its folder by that name, and the working folder is not
// trusted. The test runs itself under such a name, in a folder that has a LAPACK.
TEST(Lapack, IsNotLookedForInTheWorkingFolder) {
  namespace fs = std::filesystem;
  if (const char* folder = std::getenv("COLLET_TEST_FOLDER")) {
    fs::current_path(folder);
    EXPECT_TRUE(has_lapack());
    std::ifstream maps("/proc/self/maps");
    const std::string text{std::istreambuf_iterator<char>(maps), {}};
    EXPECT_EQ(text.find(folder), std::string::npos) << text;
    return;
  }
  const fs::path self = fs::read_symlink("/proc/self/exe"), library = "libcollet_lapack.so";
  const fs::path real = self.parent_path().parent_path() / "lib" / library;
  if (!fs::exists(real)) GTEST_SKIP() << "there is no LAPACK";
  const fs::path folder = fs::canonical(fs::temp_directory_path()) / ("collet_here." + std::to_string(getpid()));
  fs::create_directory(folder);
  fs::copy_file(real, folder / library);
  const pid_t child = fork();
  if (child == 0) {
    setenv("COLLET_TEST_FOLDER", folder.c_str(), 1);
    execl(self.c_str(), "name", "--gtest_filter=Lapack.IsNotLookedForInTheWorkingFolder", nullptr);
    _exit(99);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  fs::remove_all(folder);
  EXPECT_EQ(status, 0);
}

using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Factorizations, Types);

/// Factors the same matrices repeatedly in several threads at the same time, and checks that all get the same result.
TYPED_TEST(Factorizations, OfManyThreads_AreThoseOfOne) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  constexpr int kThreads = 8;
  constexpr int kTurns = 6;
  const int64_t n = 70;
  Array<TypeParam> a({3, n, n});
  fill(a);
  const auto factor = [&](std::vector<std::vector<TypeParam>>& out) {
    Array<TypeParam> matrix = a, q({3, n, n}), taus({3, n});
    Array<typename TestFixture::Real> values({3, n});
    Array<int32_t> pivots({3, n}), order({3, n});
    this->factorize(Factorization::kLu, matrix, q, pivots, order);
    out.push_back(q.data);
    this->factorize(Factorization::kQr, matrix, q, taus);
    out.push_back(q.data);
    this->factorize(Factorization::kEigh, matrix, q, values);
    out.push_back(q.data);
  };
  std::vector<std::vector<TypeParam>> want;
  factor(want);
  std::vector<std::thread> threads;
  std::array<int, kThreads> wrong{};
  for (int& mine : wrong) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        std::vector<std::vector<TypeParam>> got;
        factor(got);
        if (got != want) ++mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int mine : wrong) EXPECT_EQ(mine, 0);
}

TYPED_TEST(Factorizations, Lu_OfABatch_GivesTheRowsInTheOrderOfThePermutation) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  // For real numbers, the second shape and the third are small enough that each vector lane factors a matrix of its
  // own.
  for (const auto& [batch, m, n] : {std::array<int64_t, 3>{5, 37, 29},
                                    {21, 9, 9},
                                    {6, 5, 12},
                                    {7, 12, 3},
                                    {3, 33, 40},
                                    {2, 100, 100},
                                    {1, 64, 64},
                                    {1, 150, 70},
                                    {1, 70, 150},
                                    {1, 32, 200},
                                    {1, 200, 33}}) {
    const int64_t k = std::min(m, n);
    Array<TypeParam> a({batch, m, n}), lu({batch, m, n});
    Array<int32_t> pivots({batch, k}), order({batch, m});
    fill(a);
    this->factorize(Factorization::kLu, a, lu, pivots, order);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          TypeParam sum = i <= j ? lu.at(b, i, j) : TypeParam(0);
          for (int64_t l = 0; l < std::min(i, j + 1); ++l) sum += lu.at(b, i, l) * lu.at(b, l, j);
          const int32_t row = order.data[static_cast<size_t>(b * m + i)];
          ASSERT_LT(std::abs(sum - a.at(b, row, j)), this->tolerance(m)) << b << " " << i << " " << j;
          if constexpr (std::is_floating_point_v<TypeParam>) {
            ASSERT_TRUE(i <= j || std::abs(lu.at(b, i, j)) <= 1);
          }
        }
      }
    }
  }
}

TYPED_TEST(Factorizations, Lu_OfEqualElements_TakesTheFirstAndLeavesTheRestZero) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  for (const int64_t n : {5, 20, 70}) {
    for (const int64_t batch : {1, 9}) {
      Array<TypeParam> a({batch, n, n}), lu({batch, n, n});
      Array<int32_t> pivots({batch, n}), order({batch, n});
      std::fill(a.data.begin(), a.data.end(), TypeParam(2.0f));
      this->factorize(Factorization::kLu, a, lu, pivots, order);
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t i = 0; i < n; ++i) {
          EXPECT_EQ(pivots.data[static_cast<size_t>(b * n + i)], i);
          for (int64_t j = 0; j < n; ++j)
            ASSERT_EQ(lu.at(b, i, j), TypeParam(i == 0 ? 2.0f : j == 0 ? 1.0f : 0.0f)) << n << " " << i << " " << j;
        }
      }
    }
  }
}

TYPED_TEST(Factorizations, Lu_OfNaN_HasPivotsInRange) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  for (const int64_t n : {20, 70}) {
    Array<TypeParam> a({1, n, n}), lu({1, n, n});
    Array<int32_t> pivots({1, n}), order({1, n});
    fill(a);
    for (int64_t i = 0; i < n; ++i) a.data[static_cast<size_t>(i * n + 4)] = std::numeric_limits<float>::quiet_NaN();
    this->factorize(Factorization::kLu, a, lu, pivots, order);
    EXPECT_TRUE(std::isnan(std::real(lu.at(0, n - 1, n - 1))));
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_GE(pivots.data[static_cast<size_t>(i)], i);
      EXPECT_LT(pivots.data[static_cast<size_t>(i)], n);
    }
  }
}

/// Runs a linear-algebra op with the parameters `numbers` on `operands`.
template <typename T>
void run_linear(uint32_t opcode, std::vector<int64_t> numbers, std::vector<Array<T>*> operands, Array<T>& result) {
  RoutineCall call;
  call.opcode = opcode;
  std::vector<char*> buffers;
  for (Array<T>* a : operands) {
    call.operands.push_back(a->type);
    buffers.push_back(bytes(*a));
  }
  call.results = {result.type};
  call.numbers = std::move(numbers);
  buffers.push_back(bytes(result));
  run(call, buffers);
}

TYPED_TEST(Factorizations, Cholesky_OfEitherTriangle_GivesBackTheMatrix) {
  for (const auto& [batch, n] :
       {std::pair<int64_t, int64_t>{9, 7}, {2, 7}, {1, 16}, {1, 50}, {5, 32}, {5, 33}, {2, 96}, {1, 150}}) {
    for (const bool lower : {true, false}) {
      Array<TypeParam> half({batch, n, n}), a({batch, n, n}), l({batch, n, n});
      fill(half);
      const auto index = [n = n](int64_t b, int64_t i, int64_t j) { return static_cast<size_t>((b * n + i) * n + j); };
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            TypeParam sum = i == j ? TypeParam(static_cast<float>(n)) : TypeParam(0);
            for (int64_t k = 0; k < n; ++k) sum += half.at(b, i, k) * this->conjugate(half.at(b, j, k));
            a.data[index(b, i, j)] = sum;
          }
        }
      }
      run_linear<TypeParam>(COLLET_OP_CHOLESKY, {lower}, {&a}, l);
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            TypeParam sum(0);
            for (int64_t k = 0; k < n; ++k) {
              sum += lower ? l.at(b, i, k) * this->conjugate(l.at(b, j, k))
                           : this->conjugate(l.at(b, k, i)) * l.at(b, k, j);
            }
            ASSERT_LT(std::abs(sum - a.at(b, i, j)), this->tolerance(2 * n)) << batch << " " << n << " " << lower;
            const bool beyond = lower ? j > i : j < i;
            ASSERT_TRUE(!beyond || l.at(b, i, j) == TypeParam(0));
          }
        }
      }
    }
  }
}

TYPED_TEST(Factorizations, Cholesky_ReadsOneTriangleOnly) {
  for (const int64_t n : {7, 40, 65}) {
    for (const bool lower : {true, false}) {
      Array<TypeParam> a({1, n, n}), l({1, n, n});
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const float other = std::numeric_limits<float>::quiet_NaN();
          a.data[static_cast<size_t>(i * n + j)] = i == j ? 4.0f : (j < i) == lower ? 0.0f : other;
        }
      }
      run_linear<TypeParam>(COLLET_OP_CHOLESKY, {lower}, {&a}, l);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) ASSERT_EQ(l.at(0, i, j), TypeParam(i == j ? 2.0f : 0.0f)) << n << " " << lower;
      }
    }
  }
}

TYPED_TEST(Factorizations, Cholesky_OfAMatrixThatIsNotPositiveDefinite_GivesNaN) {
  for (const auto& [batch, n] : {std::array<int64_t, 2>{1, 7}, {20, 7}, {1, 40}, {1, 100}}) {
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -1.0f, 0.0f}) {
      Array<TypeParam> a({batch, n, n}), l({batch, n, n});
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t i = 0; i < n; ++i) a.data[static_cast<size_t>((b * n + i) * n + i)] = 1.0f;
      const int64_t bad = n / 2;
      a.data[static_cast<size_t>(bad * (n + 1))] = wrong;
      for (const int64_t lower : {0, 1}) {
        run_linear<TypeParam>(COLLET_OP_CHOLESKY, {lower}, {&a}, l);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const TypeParam x = lower ? l.at(0, i, j) : l.at(0, j, i);
            ASSERT_TRUE(j > i ? x == TypeParam(0.0f) : std::isnan(std::real(x))) << n << " " << wrong << " " << i;
          }
        }
        for (int64_t b = 1; b < batch; ++b) ASSERT_EQ(l.at(b, n - 1, n - 1), TypeParam(1.0f));
      }
    }
  }
}

TYPED_TEST(Factorizations, TriangularSolve_OfAllForms_GivesBackTheRightSide) {
  for (const auto& [batch, n, other] :
       {std::array<int64_t, 3>{9, 6, 4}, {2, 6, 4}, {1, 40, 9}, {1, 90, 70}, {1, 20, 0}, {5, 31, 33}}) {
    for (int form = 0; form < 24; ++form) {
      const bool left = form & 1, lower = form & 2, unit = form & 4;
      const int64_t transpose = form / 8 == 0   ? COLLET_TRANSPOSE_NONE
                                : form / 8 == 1 ? COLLET_TRANSPOSE_TRANSPOSE
                                                : COLLET_TRANSPOSE_ADJOINT;
      Array<TypeParam> a({batch, n, n}), b({batch, left ? n : other, left ? other : n}), x(b.type.dims);
      fill(a);
      fill(b);
      for (int64_t i = 0; i < a.type.elements; ++i) {
        const int64_t row = i / n % n, column = i % n;
        TypeParam& e = a.data[static_cast<size_t>(i)];
        e = row == column ? TypeParam(static_cast<float>(n)) : e / TypeParam(static_cast<float>(n));
      }
      run_linear<TypeParam>(COLLET_OP_TRIANGULAR_SOLVE, {left, lower, unit, transpose}, {&a, &b}, x);
      const auto element = [&](int64_t m, int64_t i, int64_t j) {
        if (transpose != COLLET_TRANSPOSE_NONE) std::swap(i, j);
        if (i == j && unit) return TypeParam(1);
        if (lower ? j > i : j < i) return TypeParam(0);
        const TypeParam e = a.at(m, i, j);
        return transpose == COLLET_TRANSPOSE_ADJOINT ? this->conjugate(e) : e;
      };
      for (int64_t m = 0; m < batch; ++m) {
        for (int64_t i = 0; i < (left ? n : other); ++i) {
          for (int64_t j = 0; j < (left ? other : n); ++j) {
            TypeParam sum(0);
            for (int64_t k = 0; k < n; ++k)
              sum += left ? element(m, i, k) * x.at(m, k, j) : x.at(m, i, k) * element(m, k, j);
            ASSERT_LT(std::abs(sum - b.at(m, i, j)), this->tolerance(n)) << batch << " " << n << " form " << form;
          }
        }
      }
    }
  }
}

TYPED_TEST(Factorizations, Eigh_OfAHermitianMatrix_GivesVectorsOfItsValues) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  using R = typename RealOf<TypeParam>::type;
  const int64_t n = 41;
  Array<TypeParam> half({1, n, n}), a({1, n, n}), vectors({1, n, n});
  Array<R> values({1, n});
  fill(half);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      a.data[static_cast<size_t>(i * n + j)] = half.at(0, i, j) + this->conjugate(half.at(0, j, i));
  }
  this->factorize(Factorization::kEigh, a, vectors, values);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      TypeParam sum(0);
      for (int64_t l = 0; l < n; ++l) sum += a.at(0, i, l) * vectors.at(0, l, j);
      const R value = values.data[static_cast<size_t>(j)];
      ASSERT_LT(std::abs(sum - vectors.at(0, i, j) * value), this->tolerance(n)) << i << " " << j;
    }
  }
  EXPECT_TRUE(std::is_sorted(values.data.begin(), values.data.end()));
}

TYPED_TEST(Factorizations, Svd_OfAnyShape_GivesBackTheMatrix) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  using R = typename RealOf<TypeParam>::type;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{23, 31}, {31, 23}, {1, 4}, {17, 17}}) {
    for (const bool full : {false, true}) {
      const int64_t k = std::min(m, n);
      Array<TypeParam> a({2, m, n}), u({2, m, full ? m : k}), v({2, full ? n : k, n});
      Array<R> s({2, k});
      fill(a);
      this->factorize(Factorization::kSvd, a, s, u, v);
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            TypeParam sum(0);
            for (int64_t l = 0; l < k; ++l)
              sum += u.at(b, i, l) * s.data[static_cast<size_t>(b * k + l)] * v.at(b, l, j);
            ASSERT_LT(std::abs(sum - a.at(b, i, j)), this->tolerance(m + n)) << m << " " << n << " " << i << " " << j;
          }
        }
      }
    }
  }
}

TYPED_TEST(Factorizations, Eig_WithRightVectors_GivesVectorsOfItsValues) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  using C = std::complex<typename RealOf<TypeParam>::type>;
  const int64_t n = 24;
  Array<TypeParam> a({1, n, n});
  Array<C> values({1, n}), vectors({1, n, n});
  fill(a);
  this->factorize(Factorization::kEig, a, values, vectors);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      C sum(0);
      for (int64_t l = 0; l < n; ++l) sum += a.at(0, i, l) * vectors.at(0, l, j);
      const C value = values.data[static_cast<size_t>(j)];
      ASSERT_LT(std::abs(sum - vectors.at(0, i, j) * value), 4 * this->tolerance(n)) << i << " " << j;
    }
  }
}

TYPED_TEST(Factorizations, QrAndItsReflectors_GiveBackTheMatrix) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  const int64_t m = 33, n = 20;
  Array<TypeParam> a({3, m, n}), packed({3, m, n}), factors({3, n}), q({3, m, n});
  fill(a);
  this->factorize(Factorization::kQr, a, packed, factors);
  RoutineCall call;
  call.opcode = COLLET_OP_CALL;
  call.operands = {packed.type, factors.type};
  call.results = {q.type};
  call.numbers = {static_cast<int64_t>(Factorization::kReflectors)};
  run(call, {bytes(packed), bytes(factors), bytes(q)});
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        TypeParam sum(0);
        for (int64_t l = 0; l <= j; ++l) sum += q.at(b, i, l) * packed.at(b, l, j);
        ASSERT_LT(std::abs(sum - a.at(b, i, j)), this->tolerance(m)) << i << " " << j;
      }
    }
  }
}

TYPED_TEST(Factorizations, OfWhatIsNotFinite_GivesNaN) {
  if (!has_lapack()) GTEST_SKIP() << "there is no LAPACK";
  using R = typename RealOf<TypeParam>::type;
  Array<TypeParam> a({2, 3, 3}), vectors({2, 3, 3});
  Array<R> values({2, 3});
  for (int i = 0; i < 9; ++i) a.data[static_cast<size_t>(9 + i)] = i % 4 == 0 ? 2 : 0;
  a.data[4] = std::numeric_limits<R>::infinity();
  this->factorize(Factorization::kEigh, a, vectors, values);
  EXPECT_TRUE(std::isnan(values.data[0]));
  EXPECT_TRUE(std::isnan(std::real(vectors.data[8])));
  EXPECT_EQ(values.data[3], R(2));
}

TEST(FactorizationNames, EndWithNull) {
  uint32_t n = 0;
  while (factorization_name(n)) ++n;
  EXPECT_GT(n, 4u);
}

}  // namespace
}  // namespace collet::codegen
