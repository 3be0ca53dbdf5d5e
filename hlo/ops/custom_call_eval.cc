// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/matrix.h"
#include "hlo/ops/library_calls.h"
#include "hlo/ops/markers.h"

namespace collet::hlo {
namespace {

using namespace eval;

using Function = Expected<Literal> (*)(const EvalInput&);

Expected<Literal> identity(const EvalInput& in) {
  Literal same = in.operand_count() != 1 ? Literal::tuple({in.operands.begin(), in.operands.end()}) : in.operand(0);
  if (!same.shape().compatible(in.instr.shape))
    return unimplemented("custom call '" + std::string(in.instr.as<CustomCallAttrs>().target) +
                         "' that changes the shape: the program is divided over several devices");
  return same;
}

Expected<Literal> buffer(const EvalInput& in) {
  if (!in.instr.operands.empty())
    return invalid_argument("'AllocateBuffer' takes no operands, but has " + std::to_string(in.instr.operands.size()));
  return Literal::zeros(in.instr.shape);
}

Expected<Literal> top_k(const EvalInput& in) {
  return evaluate_topk_of(in.operand(0), in.instr.shape.element(0).dims().back(), false, in.instr.shape);
}

/// Computes the Householder reflection that maps column j of `a`, from row j on, to a multiple of the first unit
/// vector. The vector, whose first entry is 1, is stored below the diagonal, the multiple on the diagonal; returns tau.
template <typename T>
T reflect_column(Matrix<T>& a, int64_t j) {
  using R = RealOf<T>;
  R below = 0;
  for (int64_t i = j + 1; i < a.rows(); ++i) below += squared(a(i, j));
  const T alpha = a(j, j);
  if (below == 0 && real_part(alpha) * real_part(alpha) == squared(alpha)) return T(0);
  const R norm = std::sqrt(squared(alpha) + below);
  const R beta = real_part(alpha) >= 0 ? -norm : norm;
  const T tau = (T(beta) - alpha) / T(beta);
  for (int64_t i = j + 1; i < a.rows(); ++i) a(i, j) = a(i, j) / (alpha - T(beta));
  a(j, j) = T(beta);
  return tau;
}

/// Applies a reflection: m -= tau v (v^H m) for columns from `first` on; v is column j of `a`, with 1 at row j.
template <typename T>
void apply_reflection(const Matrix<T>& a, int64_t j, T tau, Matrix<T>& m, int64_t first) {
  for (int64_t c = first; c < m.columns(); ++c) {
    T sum = m(j, c);
    for (int64_t i = j + 1; i < m.rows(); ++i) sum += conjugate(a(i, j)) * m(i, c);
    sum *= tau;
    m(j, c) -= sum;
    for (int64_t i = j + 1; i < m.rows(); ++i) m(i, c) -= a(i, j) * sum;
  }
}

template <typename T>
Expected<Literal> qr_of(const EvalInput& in) {
  std::vector<Matrix<T>> list = matrices<T>(in.operand(0)), taus;
  for (Matrix<T>& a : list) {
    const int64_t steps = std::min(a.rows(), a.columns());
    Matrix<T> tau(1, steps);
    for (int64_t j = 0; j < steps; ++j) {
      tau(0, j) = reflect_column(a, j);
      apply_reflection(a, j, conjugate(tau(0, j)), a, j + 1);
    }
    taus.push_back(std::move(tau));
  }
  std::vector<Literal> results;
  results.push_back(from_matrices(list, in.instr.shape.element(0)));
  results.push_back(from_matrices(taus, in.instr.shape.element(1)));
  return Literal::tuple(std::move(results));
}

template <typename T>
Expected<Literal> reflectors_of(const EvalInput& in) {
  const std::vector<Matrix<T>> list = matrices<T>(in.operand(0));
  const Literal& tau_literal = in.operand(1);
  const WideArray taus = widen_to(pack(tau_literal), Wide::Complex, tau_literal.type());
  const int64_t count = tau_literal.shape().rank() ? tau_literal.shape().dims().back() : 0;
  std::vector<Matrix<T>> results;
  for (size_t b = 0; b < list.size(); ++b) {
    const Matrix<T>& a = list[b];
    Matrix<T> q(a.rows(), a.columns());
    for (int64_t i = 0; i < std::min(q.rows(), q.columns()); ++i) q(i, i) = T(1);
    for (int64_t j = std::min({count, q.rows(), q.columns()}) - 1; j >= 0; --j) {
      const Cx v = *static_cast<const Cx*>(taus.at(static_cast<int64_t>(b) * count + j));
      T tau;
      if constexpr (kIsComplex<T>)
        tau = T(static_cast<RealOf<T>>(v.real()), static_cast<RealOf<T>>(v.imag()));
      else
        tau = static_cast<T>(v.real());
      apply_reflection(a, j, tau, q, 0);
    }
    results.push_back(std::move(q));
  }
  return from_matrices(results, in.instr.shape);
}

/// Diagonalizes a Hermitian matrix by Jacobi rotations: ascending eigenvalues on the diagonal, and their eigenvectors
/// in columns.
template <typename T>
void eigen(Matrix<T>& a, Matrix<T>& vectors, std::vector<RealOf<T>>& values) {
  using R = RealOf<T>;
  const int64_t n = a.rows();
  vectors = Matrix<T>(n, n);
  for (int64_t i = 0; i < n; ++i) vectors(i, i) = T(1);
  for (int sweep = 0; sweep < 60; ++sweep) {
    R off = 0, all = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        all += squared(a(i, j));
        if (i != j) off += squared(a(i, j));
      }
    if (!(off > all * std::numeric_limits<R>::epsilon() * std::numeric_limits<R>::epsilon())) break;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const R size = std::sqrt(squared(a(p, q)));
        if (size == 0) continue;
        const T phase = a(p, q) / size;
        const R theta = (real_part(a(q, q)) - real_part(a(p, p))) / (2 * size);
        const R t = (theta >= 0 ? R(1) : R(-1)) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const R c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (int64_t k = 0; k < n; ++k) {  // rotates columns
          const T x = a(k, p), y = a(k, q);
          a(k, p) = c * x - s * conjugate(phase) * y;
          a(k, q) = s * phase * x + c * y;
          const T u = vectors(k, p), v = vectors(k, q);
          vectors(k, p) = c * u - s * conjugate(phase) * v;
          vectors(k, q) = s * phase * u + c * v;
        }
        for (int64_t k = 0; k < n; ++k) {  // rotates rows
          const T x = a(p, k), y = a(q, k);
          a(p, k) = c * x - s * phase * y;
          a(q, k) = s * conjugate(phase) * x + c * y;
        }
      }
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return real_part(a(x, x)) < real_part(a(y, y)); });
  Matrix<T> sorted(n, n);
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[static_cast<size_t>(j)];
    values.push_back(real_part(a(from, from)));
    for (int64_t i = 0; i < n; ++i) sorted(i, j) = vectors(i, from);
  }
  vectors = std::move(sorted);
}

template <typename T>
Expected<Literal> eigh_of(const EvalInput& in) {
  using R = RealOf<T>;
  std::vector<Matrix<T>> list = matrices<T>(in.operand(0)), vectors;
  std::vector<Matrix<R>> values;
  const bool lower = !in.instr.as<CustomCallAttrs>().config.starts_with('0');
  for (Matrix<T>& a : list) {
    for (int64_t i = 0; i < a.rows(); ++i) {  // reads one triangle only
      for (int64_t j = i + 1; j < a.columns(); ++j)
        if (lower)
          a(i, j) = conjugate(a(j, i));
        else
          a(j, i) = conjugate(a(i, j));
      a(i, i) = T(real_part(a(i, i)));
    }
    Matrix<T> v;
    std::vector<R> w;
    eigen(a, v, w);
    Matrix<R> row(1, static_cast<int64_t>(w.size()));
    row.data() = w;
    vectors.push_back(std::move(v));
    values.push_back(std::move(row));
  }
  std::vector<Literal> results;
  results.push_back(from_matrices(vectors, in.instr.shape.element(0)));
  results.push_back(from_matrices(values, in.instr.shape.element(1)));
  return Literal::tuple(std::move(results));
}

/// Computes in the next wider type than that of operand 0.
#define COLLET_BY_TYPE(name, function)                  \
  Expected<Literal> name(const EvalInput& in) {         \
    switch (in.operand(0).type()) {                     \
      case Type::F64:                                   \
        return function<long double>(in);               \
      case Type::C128:                                  \
        return function<std::complex<long double>>(in); \
      case Type::C64:                                   \
        return function<std::complex<double>>(in);      \
      default:                                          \
        return function<double>(in);                    \
    }                                                   \
  }
COLLET_BY_TYPE(qr, qr_of)
COLLET_BY_TYPE(reflectors, reflectors_of)
COLLET_BY_TYPE(eigh, eigh_of)
#undef COLLET_BY_TYPE

struct Target {
  std::string_view name;
  Function function;
};

constexpr Target kTargets[] = {
    {"AllocateBuffer", buffer},
    {"CreateBuffer", buffer},
    {"TopK", top_k},
    {"Qr", qr},
    {"ProductOfElementaryHouseholderReflectors", reflectors},
    {"Eigh", eigh},
};

}  // namespace

Expected<Literal> evaluate_custom_call(const EvalInput& in) {
  Expected<Literal> registered = in.context.custom_call(in.instr, in.operands);
  if (registered.ok() || registered.status().code() != Code::Unimplemented) return registered;
  const std::string_view name = in.instr.as<CustomCallAttrs>().target;
  if (is_marker_target(name)) return identity(in);
  std::vector<const Shape*> operands;
  for (const Literal& operand : in.operands) operands.push_back(&operand.shape());
  COLLET_TRY(check_library_call(name, operands, in.instr.shape));
  for (const Target& target : kTargets)
    if (target.name == name) return target.function(in);
  return registered;
}

}  // namespace collet::hlo
