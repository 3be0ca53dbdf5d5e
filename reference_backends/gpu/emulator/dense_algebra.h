// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "reference_backends/gpu/emulator/library_elements.h"

/// \file
/// Factorizations of matrices for the emulated libraries, by textbook algorithms in complex numbers of f64.
namespace collet::gpu::emulator {

/// A dense matrix in column-major order.
struct Dense {
  int rows = 0;
  int columns = 0;
  std::vector<Complex> elements;

  Dense(int r, int c) : rows(r), columns(c), elements(static_cast<size_t>(r) * static_cast<size_t>(c)) {}
  Complex& operator()(int i, int j) { return elements[at(i, j)]; }
  const Complex& operator()(int i, int j) const { return elements[at(i, j)]; }
  size_t at(int i, int j) const { return static_cast<size_t>(j) * static_cast<size_t>(rows) + static_cast<size_t>(i); }
};

/// True if all elements are finite.
bool is_finite(const Dense& a);

/// Replaces a triangle of a Hermitian matrix by its Cholesky factor; the other one is neither read nor written. Returns 0,
/// or the number, from 1 on, of the first leading minor that is not positive.
int cholesky(Dense& a, bool lower);

/// Solves op(a) x = b, or x op(a) = b unless `left`, for a triangular matrix. Replaces b by x.
struct TriangularForm {
  bool left = true, lower = true, unit_diagonal = false, transposed = false, conjugated = false;
};
void solve_triangular(const Dense& a, const TriangularForm& form, Dense& b);

/// Replaces a matrix by its factors L and U with partial pivoting. `pivots` receives the rows of the exchanges, from 1 on.
/// Returns 0, or the number, from 1 on, of the first zero on the diagonal of U.
int factor_lu(Dense& a, std::vector<int>& pivots);

/// Replaces a matrix by R and the vectors of Householder's reflectors; returns the reflectors' factors.
std::vector<Complex> factor_qr(Dense& a);

/// Replaces reflectors by the first columns of their product.
void multiply_reflectors(Dense& a, const std::vector<Complex>& factors);

/// Computes eigenvalues, in ascending order, and eigenvectors of a Hermitian matrix, of which one triangle is read, by
/// Jacobi's method. The vectors replace the matrix.
std::vector<double> eigen_hermitian(Dense& a, bool lower);

/// Computes singular values, in descending order, and vectors of a matrix with at least as many rows as columns, by
/// Jacobi's method on one side: a = u diag(s) v^H, u square.
struct SingularValues {
  std::vector<double> s;
  Dense u, v;
};
SingularValues singular_values(const Dense& a);

}  // namespace collet::gpu::emulator
