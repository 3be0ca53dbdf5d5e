// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Operations on tiles of row-major matrices, for factorizations in blocks.

#include <cstdint>
#include <cstring>
#include <utility>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

#define COLLET_INLINE [[gnu::always_inline]] inline

namespace collet::codegen {

/// Columns of a panel. Sizes are rounded up to a multiple of it, so that no loop has a tail.
constexpr int64_t kBlock = 32;

inline int64_t padded(int64_t n) {
  return (n + kBlock - 1) / kBlock * kBlock;
}

/// Returns the distance between rows of the work matrix. It is an odd number of blocks: with a power of two, neighbours
/// of a column would use the same places of the cache.
inline int64_t row_step(int64_t n) {
  return padded(n) + (padded(n) / kBlock % 2 == 0 ? kBlock : 0);
}

template <typename T, int kBytes>
struct MatrixTiles {
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  static constexpr int kRows = kBytes == 64 ? 8 : 4;  ///< rows of a tile that update() computes
  typedef T V __attribute__((vector_size(kBytes)));

  COLLET_INLINE static V read(const T* p) {
    V x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  COLLET_INLINE static void write(T* p, const V& x) { std::memcpy(p, &x, sizeof x); }

  template <int D, int... I>
  COLLET_INLINE static void exchange(V& x, V& y, std::integer_sequence<int, I...>) {
    const V low = __builtin_shufflevector(x, y, ((I & D) ? kLanes + I - D : I)...);
    y = __builtin_shufflevector(x, y, ((I & D) ? kLanes + I : I + D)...);
    x = low;
  }
  template <int D = 1>
  COLLET_INLINE static void transpose(V* x) {
    if constexpr (D < kLanes) {
#pragma GCC unroll 16
      for (int k = 0; k < kLanes; ++k) {
        if (!(k & D)) exchange<D>(x[k], x[k | D], std::make_integer_sequence<int, kLanes>());
      }
      transpose<2 * D>(x);
    }
  }

  /// Copies the transpose of kLanes x kLanes elements. Of the result, only the first `rows` rows are stored.
  COLLET_INLINE static void transpose_tile(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows) {
    V x[kLanes];
#pragma GCC unroll 16
    for (int k = 0; k < kLanes; ++k) x[k] = read(from + k * from_step);
    transpose(x);
#pragma GCC unroll 16
    for (int k = 0; k < kLanes; ++k) {
      if (k < rows) write(to + k * to_step, x[k]);
    }
  }

  /// Subtracts a product from a tile of kRows rows and two vectors of columns. Its factors have kBlock columns or rows,
  /// which are row_step (for the first factor, which is transposed) and column_step apart. The sum is subtracted as a
  /// whole, which rounds less often than to subtract each product.
  COLLET_INLINE static void update(const T* rows, int64_t row_step, const T* columns, int64_t column_step, T* w,
                                   int64_t w_step) {
    V x[kRows][2] = {};
    for (int64_t k = 0; k < kBlock; ++k) {
      const V low = read(columns + k * column_step);
      const V high = read(columns + k * column_step + kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const T factor = rows[k * row_step + r];
        x[r][0] += low * factor;
        x[r][1] += high * factor;
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      T* to = w + r * w_step;
      write(to, read(to) - x[r][0]);
      write(to + kLanes, read(to + kLanes) - x[r][1]);
    }
  }
};

}  // namespace collet::codegen

#pragma GCC diagnostic pop
