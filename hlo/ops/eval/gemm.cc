// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace collet::hlo::eval {
namespace {

constexpr int64_t kRows = 4;     // rows of a tile of c, which is held in registers
constexpr int64_t kColumns = 8;  // columns of that tile
constexpr int64_t kDepth = 256;  // block size along k
constexpr int64_t kPanel = 512;  // columns of b that are packed at a time

// Computes a full tile of kRows x kColumns sums over `depth` steps. `panel` is b, packed as [depth][kColumns].
inline void tile_body(int64_t depth, const double* __restrict a, int64_t a_stride, const double* __restrict panel,
                      double* __restrict c, int64_t c_stride) {
  double sums[kRows][kColumns];
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) sums[i][j] = c[i * c_stride + j];
  for (int64_t p = 0; p < depth; ++p)
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kColumns; ++j) sums[i][j] += a[i * a_stride + p] * panel[p * kColumns + j];
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) c[i * c_stride + j] = sums[i][j];
}

using Tile = void (*)(int64_t, const double*, int64_t, const double*, double*, int64_t);

void tile_plain(int64_t depth, const double* a, int64_t a_stride, const double* panel, double* c, int64_t c_stride) {
  tile_body(depth, a, a_stride, panel, c, c_stride);
}

#if defined(__x86_64__)
// The same function with wider registers. It has no fused multiply-add, so that results do not depend on the machine.
__attribute__((target("avx2"))) void tile_avx2(int64_t depth, const double* a, int64_t a_stride, const double* panel,
                                               double* c, int64_t c_stride) {
  tile_body(depth, a, a_stride, panel, c, c_stride);
}
Tile choose_tile() {
  return __builtin_cpu_supports("avx2") ? tile_avx2 : tile_plain;
}
#else
Tile choose_tile() {
  return tile_plain;
}
#endif

void edge(int64_t rows, int64_t columns, int64_t depth, const double* a, int64_t a_stride, const double* panel,
          double* c, int64_t c_stride) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t j = 0; j < columns; ++j) c[i * c_stride + j] += a[i * a_stride + p] * panel[p * kColumns + j];
}

template <typename T>
void simple(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      const T factor = a[i * k + p];
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += factor * b[p * n + j];
    }
}

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c) {
  static const Tile tile = choose_tile();
  std::vector<double> packed(static_cast<size_t>(std::min(kDepth, k) * (std::min(kPanel, n) + kColumns)));
  for (int64_t n0 = 0; n0 < n; n0 += kPanel) {
    const int64_t width = std::min(kPanel, n - n0);
    for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
      const int64_t depth = std::min(kDepth, k - p0);
      for (int64_t j = 0; j < width; j += kColumns)
        for (int64_t p = 0; p < depth; ++p)
          for (int64_t x = 0; x < kColumns; ++x)
            packed[static_cast<size_t>((j * depth) + p * kColumns + x)] =
                j + x < width ? b[(p0 + p) * n + n0 + j + x] : 0;
      for (int64_t i = 0; i < m; i += kRows) {
        const int64_t rows = std::min(kRows, m - i);
        for (int64_t j = 0; j < width; j += kColumns) {
          const int64_t columns = std::min(kColumns, width - j);
          const double* panel = packed.data() + j * depth;
          const double* from = a + i * k + p0;
          double* to = c + i * n + n0 + j;
          if (rows == kRows && columns == kColumns)
            tile(depth, from, k, panel, to, n);
          else
            edge(rows, columns, depth, from, k, panel, to, n);
        }
      }
    }
  }
}

void gemm(int64_t m, int64_t n, int64_t k, const uint64_t* a, const uint64_t* b, uint64_t* c) {
  simple(m, n, k, a, b, c);
}

void gemm(int64_t m, int64_t n, int64_t k, const std::complex<double>* a, const std::complex<double>* b,
          std::complex<double>* c) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      const double re = a[i * k + p].real(), im = a[i * k + p].imag();
      for (int64_t j = 0; j < n; ++j) {
        const std::complex<double> x = b[p * n + j];
        c[i * n + j] += std::complex<double>(re * x.real() - im * x.imag(), re * x.imag() + im * x.real());
      }
    }
}

void gemm_narrow(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        c[i * n + j] = static_cast<float>(c[i * n + j] + static_cast<float>(a[i * k + p] * b[p * n + j]));
}

void gemm_narrow(int64_t m, int64_t n, int64_t k, const std::complex<double>* a, const std::complex<double>* b,
                 std::complex<double>* c) {
  const auto narrow = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      const double re = a[i * k + p].real(), im = a[i * k + p].imag();
      for (int64_t j = 0; j < n; ++j) {
        const std::complex<double> x = b[p * n + j];
        std::complex<double>& sum = c[i * n + j];
        sum = {narrow(sum.real() + narrow(narrow(re * x.real()) - narrow(im * x.imag()))),
               narrow(sum.imag() + narrow(narrow(re * x.imag()) + narrow(im * x.real())))};
      }
    }
}

void gemm_wide(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c) {
  std::vector<long double> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) row[static_cast<size_t>(j)] = c[i * n + j];
    for (int64_t p = 0; p < k; ++p) {
      const long double factor = a[i * k + p];
      for (int64_t j = 0; j < n; ++j) row[static_cast<size_t>(j)] += factor * b[p * n + j];
    }
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = static_cast<double>(row[static_cast<size_t>(j)]);
  }
}

}  // namespace collet::hlo::eval
