// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Factorizations of many small real matrices at once, one in each lane of a vector.

#include <collet/codegen/threads.h>

#include <cstdint>

namespace collet::codegen {

/// Most rows and columns of a matrix that is factored in a lane. Larger ones are factored one by one.
inline constexpr int64_t kMostSmall = 32;

/// True if factoring the batch in lanes is faster than one matrix after the other.
bool is_small_batch(int64_t batch, int64_t m, int64_t n);

/// Computes L of A = L L^T, or L^T if `lower` is false, in which case the upper triangle of A is read. The other
/// triangle is set to zero; all of the result is NaN for a matrix that is not positive definite. T is float or double.
template <typename T>
void factor_small_cholesky(const T* a, T* l, int64_t batch, int64_t n, bool lower, Threads& threads);

/// The form of a triangular system: op(A) X = B, or X op(A) = B.
struct SmallTriangle {
  bool left_side;
  /// Whether rows of op(A) (or of its transpose, if it is on the right) are solved from the first to the last.
  bool forward;
  bool transposed;  ///< whether element (i, j) of the system is stored at (j, i)
  bool unit_diagonal;
};

/// Solves for X, of m rows and n columns, for each matrix of a batch.
template <typename T>
void solve_small_triangle(const T* a, const T* b, T* x, int64_t batch, int64_t m, int64_t n, const SmallTriangle& form,
                          Threads& threads);

/// Computes L and U with partial pivoting, as LAPACK's getrf does. Pivots count from 0; `order` is the permutation of
/// the rows.
template <typename T>
void factor_small_lu(const T* a, T* lu, int32_t* pivots, int32_t* order, int64_t batch, int64_t m, int64_t n,
                     Threads& threads);

}  // namespace collet::codegen
