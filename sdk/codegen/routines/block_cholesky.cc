// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/block_cholesky.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sdk/codegen/routines/matrix_tiles.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace collet::codegen {
namespace {

template <typename T, int kBytes>
struct BlockCholesky {
  using Tiles = MatrixTiles<T, kBytes>;
  using V = typename Tiles::V;
  static constexpr int kLanes = Tiles::kLanes;
  static constexpr int kRows = Tiles::kRows;
  static constexpr int kVectors = static_cast<int>(kBlock) / kLanes;

  COLLET_INLINE static V read(const T* p) { return Tiles::read(p); }
  COLLET_INLINE static void write(T* p, const V& x) { Tiles::write(p, x); }

  /// The factor of a diagonal block: L^T and L, and the inverses of the diagonal.
  struct Diagonal {
    alignas(64) T upper[kBlock][kBlock];
    alignas(64) T lower[kBlock][kBlock];
    T inverse[kBlock];
  };

  /// Factors the first n rows of a block.
  COLLET_INLINE static bool factor(const T* w, int64_t step, int64_t n, Diagonal& d) {
    for (int64_t r = 0; r < kBlock; r += kLanes) {
      for (int64_t c = 0; c < kBlock; c += kLanes)
        Tiles::transpose_tile(w + r * step + c, step, &d.upper[c][r], kBlock, kLanes);
    }
    for (int64_t k = 0; k < n; ++k) {
      T* row = d.upper[k];
      for (int64_t c = k / kLanes * kLanes; c < kBlock; c += kLanes) {
        V even{};
        V odd{};
        int64_t t = 0;
        for (; t + 2 <= k; t += 2) {
          even += read(d.upper[t] + c) * d.upper[t][k];
          odd += read(d.upper[t + 1] + c) * d.upper[t + 1][k];
        }
        if (t < k) even += read(d.upper[t] + c) * d.upper[t][k];
        write(row + c, read(row + c) - (even + odd));
      }
      const T pivot = row[k];
      if (!(pivot > 0)) return false;
      const T root = std::sqrt(pivot);
      const T inverse = 1 / root;
      d.inverse[k] = inverse;
      for (int64_t c = k / kLanes * kLanes; c < kBlock; c += kLanes) write(row + c, read(row + c) * inverse);
      row[k] = root;
    }
    for (int64_t r = 0; r < kBlock; r += kLanes) {
      for (int64_t c = 0; c < kBlock; c += kLanes)
        Tiles::transpose_tile(&d.upper[r][c], kBlock, &d.lower[c][r], kBlock, kLanes);
    }
    return true;
  }

  /// Solves for kCount vectors of columns of the transposed panel: L X = P.
  template <int kCount>
  COLLET_INLINE static void solve(const Diagonal& d, T* p, int64_t step) {
    for (int64_t k = 0; k < kBlock; ++k) {
      V x[kCount] = {};
      for (int64_t t = 0; t < k; ++t) {
        const T factor = d.lower[k][t];
#pragma GCC unroll 16
        for (int v = 0; v < kCount; ++v) x[v] += read(p + t * step + v * kLanes) * factor;
      }
#pragma GCC unroll 16
      for (int v = 0; v < kCount; ++v) {
        T* to = p + k * step + v * kLanes;
        write(to, (read(to) - x[v]) * d.inverse[k]);
      }
    }
  }

  COLLET_INLINE static bool run(const T* a, T* l, int64_t n, char* work) {
    const int64_t all = padded(n);
    const int64_t step = row_step(n);
    T* w = reinterpret_cast<T*>(work);  // the matrix that remains to be factored, of `all` rows
    T* panel = w + all * step;          // the transposed panel: a row for each of its columns
    for (int64_t i = 0; i < all; ++i) {
      const int64_t count = i < n ? i + 1 : 0;
      std::copy_n(a + std::min(i, n - 1) * n, count, w + i * step);
      std::fill(w + i * step + count, w + i * step + all, T(0));
    }
    Diagonal d;
    for (int64_t j = 0; j < n; j += kBlock) {
      const int64_t columns = std::min(kBlock, n - j);
      if (!factor(w + j * step + j, step, columns, d)) return false;
      for (int64_t r = 0; r < columns; ++r) {
        std::copy_n(d.lower[r], r + 1, l + (j + r) * n + j);
        std::fill(l + (j + r) * n + j + r + 1, l + (j + r + 1) * n, T(0));
      }
      const int64_t first = j + kBlock;
      for (int64_t i = first; i < all; i += kLanes) {
        for (int64_t k = 0; k < kBlock; k += kLanes)
          Tiles::transpose_tile(w + i * step + j + k, step, panel + k * step + i, step, kLanes);
      }
      int64_t c = first;
      for (; c + 2 * kBlock <= all && kVectors < 8; c += 2 * kBlock) solve<2 * kVectors>(d, panel + c, step);
      for (; c < all; c += kBlock) solve<kVectors>(d, panel + c, step);
      for (int64_t i = first; i < n; i += kLanes) {
        for (int64_t k = 0; k < kBlock; k += kLanes)
          Tiles::transpose_tile(panel + k * step + i, step, l + i * n + j + k, n, n - i);
      }
      for (c = first; c < all; c += 2 * kLanes) {
        for (int64_t i = c; i < n; i += kRows) Tiles::update(panel + i, step, panel + c, step, w + i * step + c, step);
      }
    }
    return true;
  }
};

template <typename T>
bool run16(const T* a, T* l, int64_t n, char* work) {
  return BlockCholesky<T, 16>::run(a, l, n, work);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2,fma")]] bool run32(const T* a, T* l, int64_t n, char* work) {
  return BlockCholesky<T, 32>::run(a, l, n, work);
}
template <typename T>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")]] bool run64(const T* a, T* l,
                                                                                                  int64_t n,
                                                                                                  char* work) {
  return BlockCholesky<T, 64>::run(a, l, n, work);
}
#endif

}  // namespace

int64_t block_cholesky_bytes(int64_t n, int64_t element_bytes) {
  return (padded(n) + kBlock) * row_step(n) * element_bytes;
}

template <typename T>
bool factor_block_cholesky(const T* a, T* l, int64_t n, char* work) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    return run64(a, l, n, work);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run32(a, l, n, work);
#endif
  return run16(a, l, n, work);
}

template bool factor_block_cholesky(const float*, float*, int64_t, char*);
template bool factor_block_cholesky(const double*, double*, int64_t, char*);

}  // namespace collet::codegen
