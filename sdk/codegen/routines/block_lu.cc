// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/block_lu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "sdk/codegen/routines/matrix_tiles.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace collet::codegen {
namespace {

/// Vectors that begin within a row end before the next one.
int64_t wide_row_step(int64_t n) {
  return row_step(n + kBlock);
}

template <typename T, int kBytes>
struct BlockLu {
  using Tiles = MatrixTiles<T, kBytes>;
  using V = typename Tiles::V;
  using S = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  static constexpr int kLanes = Tiles::kLanes;
  static constexpr int kVectors = static_cast<int>(kBlock) / kLanes;
  typedef S M __attribute__((vector_size(kBytes)));

  COLLET_INLINE static V read(const T* p) { return Tiles::read(p); }
  COLLET_INLINE static void write(T* p, const V& x) { Tiles::write(p, x); }

  /// L of a diagonal block by columns: below[k][r] is its element in row r and column k, and zero for rows up to k.
  struct Diagonal {
    alignas(64) T below[kBlock][kBlock];
  };

  /// Returns the number of the largest of elements [first, end), of several the first one.
  COLLET_INLINE static int64_t largest(const T* x, int64_t first, int64_t end) {
    V best = V{} - 1;
    M place{};
    int64_t i = first;
    for (; i + kLanes <= end; i += kLanes) {
      V size = read(x + i);
      size = size < 0 ? -size : size;
      const M more = size > best;
      best = more ? size : best;
      place = more ? M{} + static_cast<S>(i - first) : place;
    }
    T most = -1;
    int64_t at = 0;
    T sizes[kLanes];
    S places[kLanes];
    std::memcpy(sizes, &best, sizeof sizes);
    std::memcpy(places, &place, sizeof places);
    for (int64_t l = 0; l < kLanes; ++l) {
      const int64_t p = places[l] + l;
      if (sizes[l] > most || (sizes[l] == most && p < at)) {
        most = sizes[l];
        at = p;
      }
    }
    at = most < 0 ? 0 : at;
    for (; i < end; ++i) {
      if (std::abs(x[i]) > most) {
        most = std::abs(x[i]);
        at = i - first;
      }
    }
    return first + at;
  }

  /// Factors `columns` columns of a panel, which is stored by columns, from row j on.
  COLLET_INLINE static void factor(T* panel, int64_t step, int64_t j, int64_t columns, int64_t m, Diagonal& d,
                                   int32_t* pivots) {
    for (int64_t k = 0; k < columns; ++k) {
      T* x = panel + k * step;
      // The rows of the diagonal block, one after the other.
      for (int64_t t = 0; t < k; ++t) {
        const T factor = x[j + t];
        for (int64_t r = 0; r < kBlock; r += kLanes) write(x + j + r, read(x + j + r) - read(d.below[t] + r) * factor);
      }
      int64_t i = j + kBlock;
      for (; i + 2 * kLanes < m; i += 4 * kLanes) subtract<4>(panel, step, j, k, i);
      for (; i < m; i += kLanes) subtract<1>(panel, step, j, k, i);
      const int64_t pivot = largest(x, j + k, m);
      pivots[j + k] = static_cast<int32_t>(pivot);
      if (pivot != j + k) {
        for (int64_t c = 0; c < kBlock; ++c) std::swap(panel[c * step + j + k], panel[c * step + pivot]);
        for (int64_t t = 0; t < k; ++t) {
          d.below[t][k] = panel[t * step + j + k];
          if (pivot < j + kBlock) d.below[t][pivot - j] = panel[t * step + pivot];
        }
      }
      const T value = x[j + k];
      if (value != 0) {
        for (i = j + k + 1; i < m; i += kLanes) write(x + i, read(x + i) / value);
      }
      for (int64_t r = 0; r < kBlock; ++r) d.below[k][r] = r > k ? x[j + r] : T(0);
    }
  }

  /// Subtracts what the first k columns of the panel contribute to rows of column k.
  template <int kCount>
  COLLET_INLINE static void subtract(T* panel, int64_t step, int64_t j, int64_t k, int64_t row) {
    V sum[kCount] = {};
    T* x = panel + k * step;
    for (int64_t t = 0; t < k; ++t) {
      const T factor = x[j + t];
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) sum[v] += read(panel + t * step + row + v * kLanes) * factor;
    }
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) write(x + row + v * kLanes, read(x + row + v * kLanes) - sum[v]);
  }

  /// Solves L X = W for kCount vectors of columns.
  template <int kCount>
  COLLET_INLINE static void solve(const Diagonal& d, T* w, int64_t step, int64_t rows) {
    for (int64_t k = 1; k < rows; ++k) {
      V sum[kCount] = {};
      for (int64_t t = 0; t < k; ++t) {
        const T factor = d.below[t][k];
#pragma GCC unroll 16
        for (int v = 0; v < kCount; ++v) sum[v] += read(w + t * step + v * kLanes) * factor;
      }
#pragma GCC unroll 16
      for (int v = 0; v < kCount; ++v) {
        T* to = w + k * step + v * kLanes;
        write(to, read(to) - sum[v]);
      }
    }
  }

  COLLET_INLINE static void run(const T* a, T* lu, int32_t* pivots, int64_t m, int64_t n, char* work) {
    const int64_t rows = padded(m);
    const int64_t step = wide_row_step(n);
    const int64_t panel_step = wide_row_step(m);
    T* w = reinterpret_cast<T*>(work);
    T* panel = w + rows * step;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t count = i < m ? n : 0;
      std::copy_n(a + std::min(i, m - 1) * n, count, w + i * step);
      std::fill(w + i * step + count, w + (i + 1) * step, T(0));
    }
    std::fill(panel, panel + kBlock * panel_step, T(0));
    Diagonal d;
    for (int64_t j = 0; j < std::min(m, n); j += kBlock) {
      const int64_t columns = std::min(kBlock, std::min(m, n) - j);
      for (int64_t i = j; i < rows; i += kLanes) {
        for (int64_t k = 0; k < kBlock; k += kLanes)
          Tiles::transpose_tile(w + i * step + j + k, step, panel + k * panel_step + i, panel_step, kLanes);
      }
      factor(panel, panel_step, j, columns, m, d, pivots);
      for (int64_t i = j; i < j + columns; ++i) {
        if (pivots[i] != i) std::swap_ranges(w + i * step, w + i * step + n, w + pivots[i] * step);
      }
      for (int64_t i = j; i < rows; i += kLanes) {
        for (int64_t k = 0; k < kBlock; k += kLanes)
          Tiles::transpose_tile(panel + k * panel_step + i, panel_step, w + i * step + j + k, step, kLanes);
      }
      int64_t c = j + columns;
      for (; c + kBlock < n && kVectors < 8; c += 2 * kBlock) {
        if (c + 2 * kBlock > step) break;
        solve<2 * kVectors>(d, w + j * step + c, step, columns);
      }
      for (; c < n; c += kBlock) solve<kVectors>(d, w + j * step + c, step, columns);
      for (c = j + columns; c < n; c += 2 * kLanes) {
        for (int64_t i = j + kBlock; i < m; i += Tiles::kRows) {
          Tiles::update(panel + i, panel_step, w + j * step + c, step, w + i * step + c, step);
        }
      }
    }
    for (int64_t i = 0; i < m; ++i) std::copy_n(w + i * step, n, lu + i * n);
  }
};

template <typename T>
void run16(const T* a, T* lu, int32_t* pivots, int64_t m, int64_t n, char* work) {
  BlockLu<T, 16>::run(a, lu, pivots, m, n, work);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2,fma")]] void run32(const T* a, T* lu, int32_t* pivots, int64_t m, int64_t n, char* work) {
  BlockLu<T, 32>::run(a, lu, pivots, m, n, work);
}
template <typename T>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")]] void run64(const T* a, T* lu,
                                                                                                  int32_t* pivots,
                                                                                                  int64_t m, int64_t n,
                                                                                                  char* work) {
  BlockLu<T, 64>::run(a, lu, pivots, m, n, work);
}
#endif

}  // namespace

int64_t block_lu_bytes(int64_t m, int64_t n, int64_t element_bytes) {
  return (padded(m) * wide_row_step(n) + kBlock * wide_row_step(m)) * element_bytes;
}

template <typename T>
void factor_block_lu(const T* a, T* lu, int32_t* pivots, int64_t m, int64_t n, char* work) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    return run64(a, lu, pivots, m, n, work);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run32(a, lu, pivots, m, n, work);
#endif
  run16(a, lu, pivots, m, n, work);
}

template void factor_block_lu(const float*, float*, int32_t*, int64_t, int64_t, char*);
template void factor_block_lu(const double*, double*, int32_t*, int64_t, int64_t, char*);

}  // namespace collet::codegen
