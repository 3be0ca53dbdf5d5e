// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Factorizations of matrices that a program calls by name: as a composite "collet.NAME" (docs/patterns.md), or as one of XLA's
/// custom calls. Conventions are LAPACK's; leading dimensions are a batch.

#include <collet/program.h>

#include <cstdint>
#include <string_view>

namespace collet::codegen {

/// The comments list operands and results in brackets; m x n matrices, k = min(m, n).
enum class Factorization : uint8_t {
  kUnknown,
  kLu,          ///< "lu" [a] -> [l and u, s32 pivots k, s32 permutation m]
  kQr,          ///< "geqrf" [a] -> [r and reflectors, factors k]
  kReflectors,  ///< "householder_product" [reflectors, factors] -> [m x n columns of their product]
  kEigh,        ///< "eigh" [Hermitian a] -> [vectors, ascending real values]
  kSvd,         ///< "svd" [a] -> [real values], or [values, u, v^H], the last two with k or all columns and rows
  kEig,         ///< "eig" [a] -> [complex values], [values, right vectors], or [values, left vectors, right vectors]
  kSchur,       ///< "schur" [a] -> [t], or [t, vectors]
  kHessenberg,  ///< "hessenberg" [a] -> [h and reflectors, factors n - 1]
};

/// Returns the factorization that the name of a call or custom call denotes; kUnknown for any other op.
Factorization factorization_of(const collet_program* program, const collet_op* op);

/// True if an eigendecomposition reads the lower triangle of its array of rows alone: the custom call Eigh, unless its configuration
/// begins with 0. A composite's matrix is Hermitian, so that either triangle may be read.
bool reads_lower_triangle(const collet_program* program, const collet_op* op);

/// Returns the name with number `index` in the list of composites that are factorizations; null past the last.
const char* factorization_name(uint32_t index);

}  // namespace collet::codegen
