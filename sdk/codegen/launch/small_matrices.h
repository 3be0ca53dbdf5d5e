// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Factorizations of many small real matrices at once, one in each lane of a vector.

#include <collet/codegen/threads.h>

#include <cstdint>

namespace collet::codegen {

/// Matrices with more rows or columns are factored one by one.
inline constexpr int64_t kMostSmall = 32;

/// Whether a batch is worth the lanes.
bool is_small_batch(int64_t batch, int64_t m, int64_t n);

/// L of A = L L^T, or the transpose of it where `lower` is false, in which case the upper triangle of A is read. What stands beyond is
/// zero; NaN where a matrix is not positive definite. T is float or double.
template <typename T>
void factor_small_cholesky(const T* a, T* l, int64_t batch, int64_t n, bool lower, Threads& threads);

/// How a triangular system is solved: op(A) X = B, or X op(A) = B.
struct SmallTriangle {
  bool left_side;
  bool forward;     ///< rows of op(A), or of its transpose on the right, from the first to the last
  bool transposed;  ///< element i, j of what is solved stands at j, i
  bool unit_diagonal;
};

/// X of m rows and n columns for each matrix of a batch.
template <typename T>
void solve_small_triangle(const T* a, const T* b, T* x, int64_t batch, int64_t m, int64_t n, const SmallTriangle& form,
                          Threads& threads);

/// L and U with partial pivoting, as LAPACK's getrf; pivots count from 0, `order` is the permutation of the rows.
template <typename T>
void factor_small_lu(const T* a, T* lu, int32_t* pivots, int32_t* order, int64_t batch, int64_t m, int64_t n,
                     Threads& threads);

}  // namespace collet::codegen
