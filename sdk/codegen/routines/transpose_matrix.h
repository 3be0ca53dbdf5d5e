// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Transposition of a matrix by vectors.

#include <cstdint>

namespace collet::codegen {

/// Copies the transpose: to[c * rows + r] = from[r * columns + c]. T is float or double; elements of other types of the
/// same size may be passed as T, because their bits are kept.
template <typename T>
void transpose_matrix(const T* from, int64_t rows, int64_t columns, T* to);

}  // namespace collet::codegen
