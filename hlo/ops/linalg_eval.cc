// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/matrix.h"

namespace collet::hlo {
namespace {

using namespace eval;

/// Computes the lower Cholesky factor in place from the lower triangle; false if the matrix is not positive definite.
template <typename T>
bool factor(Matrix<T>& a) {
  using R = RealOf<T>;
  const int64_t n = a.rows();
  for (int64_t j = 0; j < n; ++j) {
    R diagonal = real_part(a(j, j));
    for (int64_t k = 0; k < j; ++k) diagonal -= squared(a(j, k));
    if (!(diagonal > 0) || std::isinf(diagonal)) return false;
    const R root = std::sqrt(diagonal);
    a(j, j) = T(root);
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= a(i, k) * conjugate(a(j, k));
      a(i, j) = sum / root;
    }
    for (int64_t k = j + 1; k < n; ++k) a(j, k) = T(0);
  }
  return true;
}

template <typename T>
Expected<Literal> cholesky(const EvalInput& in) {
  const bool lower = in.instr.as<CholeskyAttrs>().lower;
  return each_matrix<T>(in.operand(0), in.instr.shape, [&](Matrix<T> a) {
    if (!lower) a = adjoint(a);
    if (!factor(a)) {
      const T undefined(in.context.other_choices() ? 1 : std::numeric_limits<RealOf<T>>::quiet_NaN());
      for (int64_t i = 0; i < a.rows(); ++i)
        for (int64_t j = 0; j <= i; ++j) a(i, j) = undefined;
    }
    return lower ? a : adjoint(a);
  });
}

/// Solves a x = b for lower (or upper) triangular a.
template <typename T>
void solve(const Matrix<T>& a, bool lower, bool unit, Matrix<T>& b) {
  const int64_t n = a.rows();
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = lower ? step : n - 1 - step;
    for (int64_t c = 0; c < b.columns(); ++c) {
      T sum = b(i, c);
      for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) sum -= a(i, k) * b(k, c);
      b(i, c) = unit ? sum : sum / a(i, i);
    }
  }
}

template <typename T>
Expected<Literal> triangular_solve(const EvalInput& in) {
  const auto& attrs = in.instr.as<TriangularSolveAttrs>();
  const std::vector<Matrix<T>> factors = matrices<T>(in.operand(0));
  size_t next = 0;
  return each_matrix<T>(in.operand(1), in.instr.shape, [&](Matrix<T> b) {
    Matrix<T> a = factors[next++];
    bool lower = attrs.lower;
    const bool turn = attrs.transpose_a != Transpose::NONE;
    if (turn) {
      a = attrs.transpose_a == Transpose::ADJOINT ? adjoint(a) : transposed(a);
      lower = !lower;
    }
    if (attrs.left_side) {
      solve(a, lower, attrs.unit_diagonal, b);
      return b;
    }
    // x a = b is solved as a^T x^T = b^T.
    Matrix<T> t = transposed(b);
    solve(transposed(a), !lower, attrs.unit_diagonal, t);
    return transposed(t);
  });
}

template <typename T>
Expected<Literal> run(const EvalInput& in) {
  return in.instr.op == Op::CHOLESKY ? cholesky<T>(in) : triangular_solve<T>(in);
}

}  // namespace

Expected<Literal> evaluate_linalg(const EvalInput& in) {
  for (const Literal& operand : in.operands)
    if (operand.shape().rank() < 2) return invalid_argument("a matrix has two dimensions or more");
  if (in.operand_count() == 2 && in.operand(0).element_count() > 0) {
    const int64_t n = in.operand(0).shape().dims().back();
    const auto dims = in.operand(1).shape().dims();
    const bool left = in.instr.as<TriangularSolveAttrs>().left_side;
    const auto batch = in.operand(0).shape().dims();
    if (dims.size() != batch.size() || !std::equal(batch.begin(), batch.end() - 2, dims.begin()) ||
        dims[dims.size() - (left ? 2 : 1)] != n)
      return invalid_argument("the sides of triangular-solve do not fit");
  }
  switch (in.operand(0).type()) {
    case Type::F64:
      return run<long double>(in);
    case Type::C128:
      return run<std::complex<long double>>(in);
    case Type::C64:
      return run<std::complex<double>>(in);
    default:
      if (!is_float(in.operand(0).type())) return unimplemented("factors of matrices that are no floats");
      return run<double>(in);
  }
}

}  // namespace collet::hlo
