// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/transpose_matrix.h"

#include <algorithm>
#include <cstring>

#include "sdk/codegen/routines/matrix_tiles.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace collet::codegen {
namespace {

template <typename T, int kBytes>
COLLET_INLINE void by_tiles(const T* from, int64_t rows, int64_t columns, T* to) {
  using Tiles = MatrixTiles<T, kBytes>;
  constexpr int64_t kLanes = Tiles::kLanes;
  if (rows < kLanes || columns < kLanes) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) std::memcpy(to + c * rows + r, from + r * columns + c, sizeof(T));
    }
    return;
  }
  // The last tiles are moved back to whole tiles.
  for (int64_t r = 0; r < rows; r += kLanes) {
    const int64_t row = std::min(r, rows - kLanes);
    for (int64_t c = 0; c < columns; c += kLanes) {
      const int64_t column = std::min(c, columns - kLanes);
      Tiles::transpose_tile(from + row * columns + column, columns, to + column * rows + row, rows, kLanes);
    }
  }
}

template <typename T>
void run16(const T* from, int64_t rows, int64_t columns, T* to) {
  by_tiles<T, 16>(from, rows, columns, to);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2")]] void run32(const T* from, int64_t rows, int64_t columns, T* to) {
  by_tiles<T, 32>(from, rows, columns, to);
}
template <typename T>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,prefer-vector-width=512")]] void run64(const T* from,
                                                                                              int64_t rows,
                                                                                              int64_t columns, T* to) {
  by_tiles<T, 64>(from, rows, columns, to);
}
#endif

}  // namespace

template <typename T>
void transpose_matrix(const T* from, int64_t rows, int64_t columns, T* to) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  constexpr int64_t kWide = 64 / static_cast<int64_t>(sizeof(T));
  if (std::min(rows, columns) >= kWide && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return run64(from, rows, columns, to);
  }
  if (__builtin_cpu_supports("avx2")) return run32(from, rows, columns, to);
#endif
  run16(from, rows, columns, to);
}

template void transpose_matrix(const float*, int64_t, int64_t, float*);
template void transpose_matrix(const double*, int64_t, int64_t, double*);

}  // namespace collet::codegen
