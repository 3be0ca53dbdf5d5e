// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/dense_algebra.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace collet::gpu::emulator {
namespace {

constexpr int kMostSweeps = 60;

/// A rotation of two vectors x and y that makes them orthogonal, or of a 2 x 2 Hermitian matrix: x' = c x - s conj(p) y,
/// y' = s p x + c y, where p is the phase of the element between them.
struct Rotation {
  double c = 1, s = 0;
  Complex phase = 1;

  /// `first` and `second` are the diagonal elements, `between` the one in row 1, column 2.
  Rotation(double first, double second, Complex between) {
    const double size = std::abs(between);
    phase = between / size;
    const double tau = (second - first) / (2 * size);
    const double t = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::hypot(1.0, tau));
    c = 1 / std::hypot(1.0, t);
    s = t * c;
  }
  /// Rotates columns p and q.
  void rotate_columns(Dense& a, int p, int q) const {
    for (int i = 0; i < a.rows; ++i) {
      const Complex x = a(i, p), y = a(i, q);
      a(i, p) = c * x - s * std::conj(phase) * y;
      a(i, q) = s * phase * x + c * y;
    }
  }
  /// Rotates rows p and q by the adjoint.
  void rotate_rows(Dense& a, int p, int q) const {
    for (int j = 0; j < a.columns; ++j) {
      const Complex x = a(p, j), y = a(q, j);
      a(p, j) = c * x - s * phase * y;
      a(q, j) = s * std::conj(phase) * x + c * y;
    }
  }
};

Dense identity(int n) {
  Dense out(n, n);
  for (int i = 0; i < n; ++i) out(i, i) = 1;
  return out;
}

Complex product(const Dense& a, int p, const Dense& b, int q) {
  Complex sum = 0;
  for (int i = 0; i < a.rows; ++i) sum += std::conj(a(i, p)) * b(i, q);
  return sum;
}

/// Applies I - factor v v^H to columns [first, columns) of `to`, where v is column `k` of `a` below its diagonal, which
/// counts as 1.
void reflect(const Dense& a, int k, Complex factor, Dense& to, int first) {
  for (int j = first; j < to.columns; ++j) {
    Complex sum = to(k, j);
    for (int i = k + 1; i < to.rows; ++i) sum += std::conj(a(i, k)) * to(i, j);
    sum *= factor;
    to(k, j) -= sum;
    for (int i = k + 1; i < to.rows; ++i) to(i, j) -= sum * a(i, k);
  }
}

/// Sets column `k` of `u` to a vector of length 1 that is orthogonal to the columns before it.
void complete(Dense& u, int k) {
  for (int unit = 0; unit < u.rows; ++unit) {
    for (int i = 0; i < u.rows; ++i) u(i, k) = i == unit ? 1 : 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (int j = 0; j < k; ++j) {
        const Complex along = product(u, j, u, k);
        for (int i = 0; i < u.rows; ++i) u(i, k) -= along * u(i, j);
      }
    }
    const double length = std::sqrt(product(u, k, u, k).real());
    if (length * length * u.rows < 0.5)
      continue;  // one of the unit vectors is at least this far from the others' space
    for (int i = 0; i < u.rows; ++i) u(i, k) /= length;
    return;
  }
}

}  // namespace

bool is_finite(const Dense& a) {
  return std::all_of(a.elements.begin(), a.elements.end(),
                     [](Complex x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); });
}

int cholesky(Dense& a, bool lower) {
  const auto at = [&](int i, int j) -> Complex& { return lower ? a(i, j) : a(j, i); };
  const auto conjugate = [&](Complex x) { return lower ? x : std::conj(x); };
  for (int j = 0; j < a.rows; ++j) {
    double diagonal = at(j, j).real();
    for (int k = 0; k < j; ++k) diagonal -= std::norm(at(j, k));
    if (!(diagonal > 0)) return j + 1;
    at(j, j) = std::sqrt(diagonal);
    for (int i = j + 1; i < a.rows; ++i) {
      Complex sum = conjugate(at(i, j));
      for (int k = 0; k < j; ++k) sum -= conjugate(at(i, k)) * std::conj(conjugate(at(j, k)));
      at(i, j) = conjugate(sum / at(j, j).real());
    }
  }
  return 0;
}

void solve_triangular(const Dense& a, const TriangularForm& form, Dense& b) {
  // x op(a) = b is op(a)^T x^T = b^T.
  const bool flips = form.transposed == form.left;
  const auto coefficient = [&](int i, int j) {
    const Complex x = flips ? a(j, i) : a(i, j);
    return form.conjugated ? std::conj(x) : x;
  };
  const bool lower = form.lower != flips;
  const int n = a.rows, count = form.left ? b.columns : b.rows;
  const auto at = [&](int i, int side) -> Complex& { return form.left ? b(i, side) : b(side, i); };
  for (int side = 0; side < count; ++side) {
    for (int step = 0; step < n; ++step) {
      const int i = lower ? step : n - 1 - step;
      Complex sum = at(i, side);
      for (int other = 0; other < step; ++other) {
        const int j = lower ? other : n - 1 - other;
        sum -= coefficient(i, j) * at(j, side);
      }
      at(i, side) = form.unit_diagonal ? sum : sum / coefficient(i, i);
    }
  }
}

int factor_lu(Dense& a, std::vector<int>& pivots) {
  const int least = std::min(a.rows, a.columns);
  const auto size = [](Complex x) { return std::abs(x.real()) + std::abs(x.imag()); };
  int info = 0;
  pivots.assign(static_cast<size_t>(least), 0);
  for (int k = 0; k < least; ++k) {
    int pivot = k;
    for (int i = k + 1; i < a.rows; ++i) {
      if (size(a(i, k)) > size(a(pivot, k))) pivot = i;
    }
    pivots[static_cast<size_t>(k)] = pivot + 1;
    if (a(pivot, k) == Complex(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (int j = 0; j < a.columns; ++j) std::swap(a(k, j), a(pivot, j));
    for (int i = k + 1; i < a.rows; ++i) a(i, k) /= a(k, k);
    for (int j = k + 1; j < a.columns; ++j) {
      for (int i = k + 1; i < a.rows; ++i) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return info;
}

std::vector<Complex> factor_qr(Dense& a) {
  const int least = std::min(a.rows, a.columns);
  std::vector<Complex> factors(static_cast<size_t>(least));
  for (int k = 0; k < least; ++k) {
    double rest = 0;
    for (int i = k + 1; i < a.rows; ++i) rest += std::norm(a(i, k));
    const Complex first = a(k, k);
    if (rest == 0 && first.imag() == 0) continue;
    const double length = std::sqrt(rest + std::norm(first));
    const double beta = first.real() >= 0 ? -length : length;
    const Complex factor((beta - first.real()) / beta, -first.imag() / beta);
    for (int i = k + 1; i < a.rows; ++i) a(i, k) /= first - beta;
    a(k, k) = beta;
    reflect(a, k, std::conj(factor), a, k + 1);
    factors[static_cast<size_t>(k)] = factor;
  }
  return factors;
}

void multiply_reflectors(Dense& a, const std::vector<Complex>& factors) {
  Dense q(a.rows, a.columns);
  for (int i = 0; i < a.columns; ++i) q(i, i) = 1;
  for (int k = static_cast<int>(factors.size()); k-- > 0;) reflect(a, k, factors[static_cast<size_t>(k)], q, 0);
  a = std::move(q);
}

std::vector<double> eigen_hermitian(Dense& a, bool lower) {
  const int n = a.rows;
  Dense m = a;
  for (int j = 0; j < n; ++j) {
    m(j, j) = a(j, j).real();
    for (int i = j + 1; i < n; ++i) {
      const Complex below = lower ? a(i, j) : std::conj(a(j, i));
      m(i, j) = below;
      m(j, i) = std::conj(below);
    }
  }
  Dense vectors = identity(n);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool rotates = false;
    for (int p = 0; p < n; ++p) {
      for (int q = p + 1; q < n; ++q) {
        const double size = std::abs(m(p, q));
        if (size <= 1e-17 * (std::abs(m(p, p).real()) + std::abs(m(q, q).real())) || size < 1e-300) continue;
        const Rotation rotation(m(p, p).real(), m(q, q).real(), m(p, q));
        rotation.rotate_columns(m, p, q);
        rotation.rotate_rows(m, p, q);
        rotation.rotate_columns(vectors, p, q);
        m(p, q) = m(q, p) = 0;
        rotates = true;
      }
    }
    if (!rotates) break;
  }
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int x, int y) { return m(x, x).real() < m(y, y).real(); });
  std::vector<double> values;
  for (int j = 0; j < n; ++j) {
    const int from = order[static_cast<size_t>(j)];
    values.push_back(m(from, from).real());
    for (int i = 0; i < n; ++i) a(i, j) = vectors(i, from);
  }
  return values;
}

SingularValues singular_values(const Dense& a) {
  const int n = a.columns;
  Dense w = a, v = identity(n);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool rotates = false;
    for (int p = 0; p < n; ++p) {
      for (int q = p + 1; q < n; ++q) {
        const double first = product(w, p, w, p).real(), second = product(w, q, w, q).real();
        const Complex between = product(w, p, w, q);
        const double size = std::abs(between);
        if (size <= 1e-16 * std::sqrt(first * second) || size < 1e-300) continue;
        const Rotation rotation(first, second, between);
        rotation.rotate_columns(w, p, q);
        rotation.rotate_columns(v, p, q);
        rotates = true;
      }
    }
    if (!rotates) break;
  }
  std::vector<double> lengths;
  for (int j = 0; j < n; ++j) lengths.push_back(std::sqrt(product(w, j, w, j).real()));
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int x, int y) { return lengths[static_cast<size_t>(x)] > lengths[static_cast<size_t>(y)]; });
  SingularValues out{{}, Dense(a.rows, a.rows), Dense(n, n)};
  for (int j = 0; j < a.rows; ++j) {
    if (j >= n) {
      complete(out.u, j);
      continue;
    }
    const int from = order[static_cast<size_t>(j)];
    const double length = lengths[static_cast<size_t>(from)];
    out.s.push_back(length);
    for (int i = 0; i < n; ++i) out.v(i, j) = v(i, from);
    if (length <= 1e-15 * out.s[0]) {
      complete(out.u, j);
    } else {
      for (int i = 0; i < a.rows; ++i) out.u(i, j) = w(i, from) / length;
    }
  }
  return out;
}

}  // namespace collet::gpu::emulator
