// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// LU factorization of one matrix of moderate size.

#include <cstdint>

namespace collet::codegen {

/// Returns the bytes of work memory of factor_block_lu(), for elements of so many bytes.
int64_t block_lu_bytes(int64_t m, int64_t n, int64_t element_bytes);

/// Computes L and U of a matrix of m rows and n columns with partial pivoting, block by block. Pivot i is the number,
/// from 0 on, of the row that was exchanged with row i. `work` is aligned to 64 bytes. T is float or double.
template <typename T>
void factor_block_lu(const T* a, T* lu, int32_t* pivots, int64_t m, int64_t n, char* work);

}  // namespace collet::codegen
