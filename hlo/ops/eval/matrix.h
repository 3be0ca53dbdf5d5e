// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ops/eval/pack.h"

namespace collet::hlo::eval {

template <typename T>
struct RealOfType {
  using Real = T;
};
template <typename R>
struct RealOfType<std::complex<R>> {
  using Real = R;
};
template <typename T>
using RealOf = typename RealOfType<T>::Real;

template <typename T>
constexpr bool kIsComplex = !std::is_same_v<T, RealOf<T>>;

template <typename T>
RealOf<T> real_part(T x) {
  if constexpr (kIsComplex<T>)
    return x.real();
  else
    return x;
}
template <typename T>
T conjugate(T x) {
  if constexpr (kIsComplex<T>)
    return std::conj(x);
  else
    return x;
}
/// Returns |x|^2.
template <typename T>
RealOf<T> squared(T x) {
  if constexpr (kIsComplex<T>)
    return x.real() * x.real() + x.imag() * x.imag();
  else
    return x * x;
}

/// A small dense matrix, row-major.
template <typename T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), data_(static_cast<size_t>(rows * columns), T(0)) {}
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  T& operator()(int64_t i, int64_t j) { return data_[static_cast<size_t>(i * columns_ + j)]; }
  const T& operator()(int64_t i, int64_t j) const { return data_[static_cast<size_t>(i * columns_ + j)]; }
  std::vector<T>& data() { return data_; }

 private:
  int64_t rows_ = 0, columns_ = 0;
  std::vector<T> data_;
};

template <typename T>
Matrix<T> transposed(const Matrix<T>& a) {
  Matrix<T> out(a.columns(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.columns(); ++j) out(j, i) = a(i, j);
  return out;
}

template <typename T>
Matrix<T> adjoint(const Matrix<T>& a) {
  Matrix<T> out = transposed(a);
  for (T& x : out.data()) x = conjugate(x);
  return out;
}

/// Returns the matrices in the last two dimensions of a literal.
template <typename T>
std::vector<Matrix<T>> matrices(const Literal& literal) {
  const auto dims = literal.shape().dims();
  const int64_t rows = dims[dims.size() - 2], columns = dims[dims.size() - 1];
  std::vector<Matrix<T>> out;
  if (literal.element_count() == 0) return out;
  const WideArray values = pack(literal);
  for (int64_t at = 0; at < values.count();) {
    Matrix<T> m(rows, columns);
    for (T& x : m.data()) {
      if constexpr (kIsComplex<T>) {
        const Cx v = *static_cast<const Cx*>(values.at(at));
        x = T(static_cast<RealOf<T>>(v.real()), static_cast<RealOf<T>>(v.imag()));
      } else {
        x = static_cast<T>(*static_cast<const double*>(values.at(at)));
      }
      ++at;
    }
    out.push_back(std::move(m));
  }
  return out;
}

/// Returns a literal of `shape` from consecutive matrices.
template <typename T>
Literal from_matrices(std::vector<Matrix<T>>& list, const Shape& shape) {
  WideArray out(kIsComplex<T> ? Wide::Complex : Wide::Real, shape.element_count());
  int64_t at = 0;
  for (Matrix<T>& m : list)
    for (const T& x : m.data()) {
      if (at >= out.count()) break;
      if constexpr (kIsComplex<T>)
        out.complexes()[at++] = Cx(static_cast<double>(x.real()), static_cast<double>(x.imag()));
      else
        out.reals()[at++] = static_cast<double>(x);
    }
  return unpack(out, shape);
}

/// Applies f to each matrix of `literal`; returns a literal of `shape`.
template <typename T, typename F>
Expected<Literal> each_matrix(const Literal& literal, const Shape& shape, F&& f) {
  std::vector<Matrix<T>> list = matrices<T>(literal);
  for (Matrix<T>& m : list) m = f(std::move(m));
  return from_matrices(list, shape);
}

}  // namespace collet::hlo::eval
