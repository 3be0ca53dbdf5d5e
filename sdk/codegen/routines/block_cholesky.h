// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cholesky factorization of one matrix of moderate size.

#include <cstdint>

namespace collet::codegen {

/// Returns the bytes of work memory of factor_block_cholesky(), for elements of so many bytes.
int64_t block_cholesky_bytes(int64_t n, int64_t element_bytes);

/// Computes L of A = L L^T from the lower triangle of A, block by block. The upper triangle of the result is zero.
/// Returns false, with an unspecified result, if A is not positive definite. `work` is aligned to 64 bytes. T is float
/// or double.
template <typename T>
bool factor_block_cholesky(const T* a, T* l, int64_t n, char* work);

}  // namespace collet::codegen
