// SPDX-License-Identifier: Apache-2.0
// Tests every way in which the libraries of the gpu backend compute factorizations, with the emulator's cuBLAS and cuSOLVER:
// whether arguments, layouts and places are right. The residuals of each factorization are compared with its definition.
// With COLLET_TEST_DRIVER=cuda in the environment, the tests run on the machine's GPU and with its libraries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "reference_backends/gpu/device.h"

namespace collet::gpu {
namespace {

using codegen::LibraryFactorization;
using Kind = LibraryFactorization::Kind;
using Z = std::complex<double>;

bool uses_gpu() {
  const char* const chosen = std::getenv("COLLET_TEST_DRIVER");
  return chosen && std::strcmp(chosen, "cuda") == 0;
}

std::shared_ptr<const Driver> driver() {
  static const std::shared_ptr<const Driver> opened = [] {
    auto made = std::make_shared<Driver>();
    const codegen::Status status = open_driver(uses_gpu() ? "" : COLLET_CUDA_EMULATOR_PATH, *made,
                                               uses_gpu() ? "" : "quiet=1,memory=512,threads=2");
    if (!status.ok()) {
      ADD_FAILURE() << status.message();
      std::abort();
    }
    return made;
  }();
  return opened;
}

/// The options of a device that uses the libraries.
Device::Options with_libraries() {
  Device::Options out;
  out.libraries = std::make_shared<Libraries>(open_libraries(uses_gpu() ? "" : COLLET_CUDA_EMULATOR_PATH));
  EXPECT_TRUE(out.libraries->has_factorizations());
  return out;
}

template <class T>
struct Element {
  using Real = T;
  static constexpr bool is_complex = false;
  static constexpr uint32_t type = std::is_same_v<T, float> ? COLLET_TYPE_F32 : COLLET_TYPE_F64;
};
template <class R>
struct Element<std::complex<R>> {
  using Real = R;
  static constexpr bool is_complex = true;
  static constexpr uint32_t type = std::is_same_v<R, float> ? COLLET_TYPE_C64 : COLLET_TYPE_C128;
};

/// A batch of column-major matrices.
struct Batch {
  int64_t count = 1, rows = 0, columns = 0;
  std::vector<Z> elements;

  Batch(int64_t n, int64_t r, int64_t c) : count(n), rows(r), columns(c), elements(static_cast<size_t>(n * r * c)) {}
  Z& operator()(int64_t b, int64_t i, int64_t j) { return elements[static_cast<size_t>((b * columns + j) * rows + i)]; }
  Z operator()(int64_t b, int64_t i, int64_t j) const {
    return elements[static_cast<size_t>((b * columns + j) * rows + i)];
  }
};

Batch product(const Batch& x, const Batch& y) {
  Batch out(x.count, x.rows, y.columns);
  for (int64_t b = 0; b < x.count; ++b) {
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t j = 0; j < y.columns; ++j) {
        for (int64_t k = 0; k < x.columns; ++k) out(b, i, j) += x(b, i, k) * y(b, k, j);
      }
    }
  }
  return out;
}

Batch made(int64_t count, int64_t rows, int64_t columns, const std::function<Z(int64_t, int64_t, int64_t)>& element) {
  Batch out(count, rows, columns);
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) out(b, i, j) = element(b, i, j);
    }
  }
  return out;
}

Batch adjoint(const Batch& x) {
  return made(x.count, x.columns, x.rows, [&](int64_t b, int64_t i, int64_t j) { return std::conj(x(b, j, i)); });
}

Batch identity(int64_t count, int64_t n) {
  return made(count, n, n, [](int64_t, int64_t i, int64_t j) { return Z(i == j); });
}

double distance(const Batch& x, const Batch& y) {
  EXPECT_EQ(x.elements.size(), y.elements.size());
  double most = 0;
  for (size_t i = 0; i < x.elements.size(); ++i) {
    const double apart = std::abs(x.elements[i] - y.elements[i]);
    most = apart <= most ? most : apart;  // NaN counts
  }
  return most;
}

template <class T>
class FactorizationTest : public ::testing::Test {
 protected:
  using Real = typename Element<T>::Real;
  static constexpr double kBound = std::is_same_v<Real, float> ? 2e-4 : 1e-11;

  Batch random(int64_t count, int64_t rows, int64_t columns) {
    const auto number = [&] {
      state_ = state_ * 6364136223846793005U + 1442695040888963407U;
      return static_cast<double>(static_cast<Real>(static_cast<double>(state_ >> 11) * 0x1p-52 - 1));
    };
    return made(count, rows, columns, [&](int64_t, int64_t, int64_t) {
      const double re = number();
      return Z(re, Element<T>::is_complex ? number() : 0.0);
    });
  }
  Batch hermitian(int64_t count, int64_t n, double diagonal) {
    const Batch x = random(count, n, n);
    return made(count, n, n, [&](int64_t b, int64_t i, int64_t j) {
      return i == j ? Z(x(b, i, i).real() + diagonal) : i > j ? x(b, i, j) : std::conj(x(b, j, i));
    });
  }
  static T narrowed(Z x) {
    if constexpr (Element<T>::is_complex) {
      return T(static_cast<Real>(x.real()), static_cast<Real>(x.imag()));
    } else {
      return static_cast<T>(x.real());
    }
  }
  kernel::Memory upload(const Batch& x) {
    std::vector<T> data;
    for (const Z one : x.elements) data.push_back(narrowed(one));
    const kernel::Memory at = allocate(data.size() * sizeof(T));
    device.write(at, 0, data.data(), data.size() * sizeof(T));
    return at;
  }
  kernel::Memory allocate(size_t bytes) {
    memory_.push_back(device.allocate(std::max<size_t>(bytes, 1), 256));
    return memory_.back();
  }
  Batch download(kernel::Memory at, int64_t count, int64_t rows, int64_t columns) {
    std::vector<T> data(static_cast<size_t>(count * rows * columns));
    device.read(at, 0, data.data(), data.size() * sizeof(T));
    Batch out(count, rows, columns);
    for (size_t i = 0; i < data.size(); ++i) out.elements[i] = data[i];
    return out;
  }
  template <class E>
  std::vector<E> read(kernel::Memory at, int64_t count) {
    std::vector<E> out(static_cast<size_t>(count));
    device.read(at, 0, out.data(), out.size() * sizeof(E));
    return out;
  }
  LibraryFactorization call(Kind kind, int64_t count, int64_t rows, int64_t columns) const {
    LibraryFactorization f;
    f.kind = kind;
    f.type = Element<T>::type;
    f.batches = count;
    f.rows = rows;
    f.columns = columns;
    return f;
  }
  /// Calls `check` for each way, which has it started by its argument. Frees all memory after each way.
  void each_way(const LibraryFactorization& f,
                const std::function<void(const std::function<void(std::vector<uint64_t>)>&)>& check) {
    const auto ways = device.prepare(f);
    ASSERT_FALSE(ways.empty());
    for (size_t i = 0; i < ways.size(); ++i) {
      SCOPED_TRACE("way " + std::to_string(i) + " of " + name_of(f.kind) + ", " + std::to_string(f.batches) + " of " +
                   std::to_string(f.rows) + " x " + std::to_string(f.columns));
      check([&](std::vector<uint64_t> addresses) {
        const std::string name = "library";
        codegen::GridDevice::LibraryLaunch what;
        what.way = ways[i];
        what.addresses = addresses.data();
        what.name = &name;
        device.launch_library(what);
      });
      device.drop_prepared(ways[i]);
      for (const kernel::Memory at : memory_) device.free(at);
      memory_.clear();
    }
  }

  Device device{driver(), 0, with_libraries()};

 private:
  uint64_t state_ = 1;
  std::vector<kernel::Memory> memory_;
};

using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(FactorizationTest, Types);

constexpr int64_t kCounts[] = {1, 3};

TYPED_TEST(FactorizationTest, Cholesky_ReadsAndWritesOneTriangle) {
  constexpr int64_t n = 6;
  for (const int64_t count : kCounts) {
    for (const bool lower : {true, false}) {
      LibraryFactorization f = this->call(Kind::kCholesky, count, n, n);
      f.lower = lower;
      const Batch a = this->hermitian(count, n, 8);
      const auto is_used = [&](int64_t i, int64_t j) { return lower ? i >= j : i <= j; };
      this->each_way(f, [&](const auto& start) {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const kernel::Memory at = this->upload(
            made(count, n, n, [&](int64_t b, int64_t i, int64_t j) { return is_used(i, j) ? a(b, i, j) : Z(nan, 0); }));
        const kernel::Memory info = this->allocate(sizeof(int32_t) * static_cast<size_t>(count));
        start({at, info});
        const Batch found = this->download(at, count, n, n);
        const Batch factor =
            made(count, n, n, [&](int64_t b, int64_t i, int64_t j) { return is_used(i, j) ? found(b, i, j) : Z(0); });
        EXPECT_LT(distance(lower ? product(factor, adjoint(factor)) : product(adjoint(factor), factor), a),
                  this->kBound);
        for (const int32_t one : this->template read<int32_t>(info, count)) EXPECT_EQ(one, 0);
      });
    }
  }
}

TYPED_TEST(FactorizationTest, Cholesky_SaysWhichMatrixIsNotDefinite) {
  constexpr int64_t n = 4;
  Batch a = this->hermitian(3, n, 8);
  a(1, 2, 2) = -1;
  this->each_way(this->call(Kind::kCholesky, 3, n, n), [&](const auto& start) {
    const kernel::Memory at = this->upload(a), info = this->allocate(3 * sizeof(int32_t));
    start({at, info});
    EXPECT_EQ(this->template read<int32_t>(info, 3), (std::vector<int32_t>{0, 3, 0}));
  });
}

TYPED_TEST(FactorizationTest, TriangularSolve_AllForms) {
  constexpr int64_t kRows = 5, kColumns = 3;
  for (const int64_t count : kCounts) {
    for (int form = 0; form < 24; ++form) {
      LibraryFactorization f = this->call(Kind::kTriangularSolve, count, kRows, kColumns);
      f.left = (form & 1) != 0;
      f.lower = (form & 2) != 0;
      f.unit_diagonal = (form & 4) != 0;
      f.transposed = form >= 8;
      f.conjugated = form >= 16;
      const int64_t n = f.left ? kRows : kColumns;
      const Batch a = made(count, n, n, [x = this->random(count, n, n)](int64_t b, int64_t i, int64_t j) {
        return i == j ? x(b, i, j) + 4.0 : x(b, i, j);
      });
      const Batch right = this->random(count, kRows, kColumns);
      const Batch used = made(count, n, n, [&](int64_t b, int64_t i, int64_t j) {
        const int64_t row = f.transposed ? j : i, column = f.transposed ? i : j;
        if (row == column && f.unit_diagonal) return Z(1);
        if (row != column && (row > column) != f.lower) return Z(0);
        return f.conjugated ? std::conj(a(b, row, column)) : a(b, row, column);
      });
      this->each_way(f, [&](const auto& start) {
        const kernel::Memory at_a = this->upload(a), at_b = this->upload(right);
        start({at_a, at_b});
        const Batch x = this->download(at_b, count, kRows, kColumns);
        EXPECT_LT(distance(f.left ? product(used, x) : product(x, used), right), 10 * this->kBound) << form;
      });
    }
  }
}

TYPED_TEST(FactorizationTest, Lu_GivesFactorsPivotsAndOrder) {
  for (const int64_t count : kCounts) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{6, 6}, {7, 4}, {4, 7}, {1, 1}, {1, 5}}) {
      const int64_t least = std::min(rows, columns);
      const Batch a = this->random(count, rows, columns);
      this->each_way(this->call(Kind::kLu, count, rows, columns), [&, m = rows, n = columns](const auto& start) {
        const auto int_bytes = [](int64_t elements) { return static_cast<size_t>(elements) * sizeof(int32_t); };
        const kernel::Memory at = this->upload(a), pivots = this->allocate(int_bytes(count * least)),
                             order = this->allocate(int_bytes(count * m)), info = this->allocate(int_bytes(count));
        start({at, pivots, order, info});
        const Batch found = this->download(at, count, m, n);
        const Batch l = made(count, m, least, [&](int64_t b, int64_t i, int64_t j) {
          return i == j ? Z(1) : i > j ? found(b, i, j) : Z(0);
        });
        const Batch u =
            made(count, least, n, [&](int64_t b, int64_t i, int64_t j) { return i <= j ? found(b, i, j) : Z(0); });
        const std::vector<int32_t> rows_of = this->template read<int32_t>(order, count * m);
        const Batch exchanged = made(count, m, n, [&](int64_t b, int64_t i, int64_t j) {
          return a(b, rows_of[static_cast<size_t>(b * m + i)], j);
        });
        EXPECT_LT(distance(product(l, u), exchanged), this->kBound);
        const std::vector<int32_t> exchanges = this->template read<int32_t>(pivots, count * least);
        for (int64_t b = 0; b < count; ++b) {
          std::vector<int32_t> expected;
          for (int32_t i = 0; i < m; ++i) expected.push_back(i);
          for (int64_t i = 0; i < least; ++i) {
            const auto with = static_cast<size_t>(exchanges[static_cast<size_t>(b * least + i)] - 1);
            std::swap(expected[static_cast<size_t>(i)], expected.at(with));
          }
          EXPECT_TRUE(std::equal(expected.begin(), expected.end(), rows_of.begin() + b * m));
        }
      });
    }
  }
}

TYPED_TEST(FactorizationTest, QrAndItsReflectors) {
  for (const int64_t count : kCounts) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{6, 6}, {7, 4}, {4, 7}, {1, 1}, {5, 1}}) {
      const int64_t least = std::min(m, n);
      const Batch a = this->random(count, m, n);
      Batch found(count, m, n), factors(count, least, 1);
      this->each_way(this->call(Kind::kQr, count, m, n), [&, rows = m, columns = n](const auto& start) {
        const kernel::Memory at = this->upload(a),
                             at_factors = this->allocate(sizeof(TypeParam) * static_cast<size_t>(count * least));
        start({at, at_factors});
        found = this->download(at, count, rows, columns);
        factors = this->download(at_factors, count, least, 1);
        for (const int64_t width : {least, rows}) {
          LibraryFactorization of_q = this->call(Kind::kReflectors, count, rows, width);
          of_q.factors = least;
          const auto ways = this->device.prepare(of_q);
          ASSERT_EQ(ways.size(), 1U);
          const kernel::Memory at_q = this->upload(made(
              count, rows, width, [&](int64_t b, int64_t i, int64_t j) { return j < least ? found(b, i, j) : Z(0); }));
          const std::string name = "library";
          const uint64_t addresses[] = {at_q, at_factors};
          codegen::GridDevice::LibraryLaunch what;
          what.way = ways[0];
          what.addresses = addresses;
          what.name = &name;
          this->device.launch_library(what);
          const Batch q = this->download(at_q, count, rows, width);
          this->device.drop_prepared(ways[0]);
          const Batch r = made(count, width, columns, [&](int64_t b, int64_t i, int64_t j) {
            return i <= j && i < least ? found(b, i, j) : Z(0);
          });
          EXPECT_LT(distance(product(q, r), a), this->kBound);
          EXPECT_LT(distance(product(adjoint(q), q), identity(count, width)), this->kBound);
        }
      });
    }
  }
}

TYPED_TEST(FactorizationTest, Eigh_ReadsOneTriangleAndValuesAscend) {
  for (const int64_t count : kCounts) {
    for (const int64_t n : {1, 7, 40}) {
      LibraryFactorization f = this->call(Kind::kEigh, count, n, n);
      f.lower = true;
      const Batch a = this->hermitian(count, n, 0);
      const double nan = std::numeric_limits<double>::quiet_NaN();
      const Batch triangle =
          made(count, n, n, [&](int64_t b, int64_t i, int64_t j) { return i >= j ? a(b, i, j) : Z(nan, 0); });
      this->each_way(f, [&](const auto& start) {
        const kernel::Memory at = this->upload(triangle),
                             values =
                                 this->allocate(sizeof(typename TestFixture::Real) * static_cast<size_t>(count * n)),
                             info = this->allocate(sizeof(int32_t) * static_cast<size_t>(count));
        start({at, values, info});
        const Batch v = this->download(at, count, n, n);
        const auto w = this->template read<typename TestFixture::Real>(values, count * n);
        for (int64_t b = 0; b < count; ++b) EXPECT_TRUE(std::is_sorted(w.begin() + b * n, w.begin() + (b + 1) * n));
        const Batch scaled = made(count, n, n, [&](int64_t b, int64_t i, int64_t j) {
          return v(b, i, j) * static_cast<double>(w[static_cast<size_t>(b * n + j)]);
        });
        EXPECT_LT(distance(product(a, v), scaled), this->kBound);
        EXPECT_LT(distance(product(adjoint(v), v), identity(count, n)), this->kBound);
        for (const int32_t one : this->template read<int32_t>(info, count)) EXPECT_EQ(one, 0);
      });
    }
  }
}

TYPED_TEST(FactorizationTest, Svd_AllFormsOfVectors) {
  using Of = typename TestFixture::Real;
  for (const int64_t count : kCounts) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{6, 6}, {7, 4}, {1, 1}, {5, 1}, {40, 5}, {40, 35}}) {
      for (const int vectors : {0, 1, 2}) {
        LibraryFactorization f = this->call(Kind::kSvd, count, m, n);
        f.vectors = vectors != 0;
        f.full = vectors == 2;
        const Batch a = this->random(count, m, n);
        this->each_way(f, [&, rows = m, columns = n](const auto& start) {
          const int64_t width = f.full ? rows : columns;
          const auto bytes = [&](int64_t elements, size_t size) {
            return static_cast<size_t>(count * elements) * size;
          };
          const kernel::Memory at = this->upload(a), values = this->allocate(bytes(columns, sizeof(Of))),
                               u = this->allocate(bytes(rows * width, sizeof(TypeParam))),
                               v = this->allocate(bytes(columns * columns, sizeof(TypeParam))),
                               info = this->allocate(bytes(1, sizeof(int32_t)));
          start(f.vectors ? std::vector<uint64_t>{at, values, u, v, info} : std::vector<uint64_t>{at, values, info});
          const auto s = this->template read<Of>(values, count * columns);
          for (int64_t b = 0; b < count; ++b) {
            EXPECT_TRUE(std::is_sorted(s.begin() + b * columns, s.begin() + (b + 1) * columns, std::greater<Of>()));
            double squares = 0, norm = 0;
            for (int64_t j = 0; j < columns; ++j) {
              squares += std::norm(Z(s[static_cast<size_t>(b * columns + j)]));
              for (int64_t i = 0; i < rows; ++i) norm += std::norm(a(b, i, j));
            }
            EXPECT_NEAR(squares, norm, norm * this->kBound);
          }
          for (const int32_t one : this->template read<int32_t>(info, count)) EXPECT_EQ(one, 0);
          if (!f.vectors) return;
          const Batch left = this->download(u, count, rows, width), right = this->download(v, count, columns, columns);
          const Batch scaled = made(count, rows, columns, [&](int64_t b, int64_t i, int64_t j) {
            return left(b, i, j) * static_cast<double>(s[static_cast<size_t>(b * columns + j)]);
          });
          EXPECT_LT(distance(product(scaled, adjoint(right)), a), this->kBound);
          EXPECT_LT(distance(product(adjoint(left), left), identity(count, width)), this->kBound);
          EXPECT_LT(distance(product(adjoint(right), right), identity(count, columns)), this->kBound);
        });
      }
    }
  }
}

TEST(Factorizations, OtherTypesAndMissingLibrariesHaveNone) {
  LibraryFactorization f;
  f.rows = f.columns = 4;
  f.type = COLLET_TYPE_F16;
  Device with{driver(), 0, with_libraries()};
  EXPECT_TRUE(with.prepare(f).empty());
  f.type = COLLET_TYPE_F32;
  Device without{driver(), 0};
  EXPECT_TRUE(without.prepare(f).empty()) << "no library was opened";
}

}  // namespace
}  // namespace collet::gpu
