// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Factorizations for libraries of a device: which nodes they compute, and the kernels before and after them. A library's
/// matrices are column-major, those of programs row-major.

#include <collet/codegen/launch_plan.h>

#include <optional>

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Returns the factorizations, or triangular systems, that a node computes, as a library is asked for them. `rows` and
/// `columns` are those of the library's matrices: of the transpose of a program's matrix if the library reads the program's
/// array as it is. Empty if libraries do not have the node for its types and sizes.
std::optional<LibraryFactorization> library_factorization(const Graph& graph, const Node& node);

/// What matrix_kernel does with the elements of matrices. The innermost two dimensions of its result are those of a
/// matrix, unless it is an array of vectors.
struct MatrixCopy {
  bool transposes = false;  ///< the innermost two dimensions of the source are exchanged
  bool conjugates = false;  ///< complex numbers become their conjugates
  int zeroes = 0;           ///< -1: what is below the diagonal becomes zero; 1: what is above
  /// An s32 for each matrix, of as many dimensions as the batch has: where it is not 0, what is not zeroed becomes NaN.
  /// kNone: nothing does.
  ValueId info = kNone;
};
/// Returns the kernel that copies matrices, or vectors, from `from` to `to`, which may share memory if nothing is
/// transposed.
KernelPlan matrix_kernel(const Graph& graph, ValueId from, const MatrixCopy& how, ValueId to);

/// Returns the kernel that subtracts one from the s32 elements of `from`, whose memory `to` may share.
KernelPlan decrement_kernel(const Graph& graph, ValueId from, ValueId to);

}  // namespace collet::codegen
