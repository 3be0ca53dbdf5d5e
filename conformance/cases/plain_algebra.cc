// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "conformance/cases/indices.h"
#include "conformance/cases/plain_answer.h"

/// \file
/// Computes transforms, factorizations and normalizations by their definitions in long double, whose rounding errors
/// are far smaller than the error bounds of these ops.

namespace collet::conformance {
namespace {

using Real = long double;
using Complex = std::complex<Real>;
using Operands = std::span<const Literal* const>;

std::vector<Complex> numbers_of(const Literal& value) {
  std::vector<Complex> out;
  for (int64_t i = 0; i < value.element_count(); ++i) out.emplace_back(value.as_double(i), value.imaginary(i));
  return out;
}

Literal literal_of(const Shape& shape, const std::vector<Complex>& numbers) {
  Literal out = Literal::zeros(shape);
  for (size_t i = 0; i < numbers.size(); ++i)
    out.set_double(static_cast<int64_t>(i), static_cast<double>(numbers[i].real()),
                   static_cast<double>(numbers[i].imag()));
  return out;
}

// An array, with access to the vectors along one axis.
struct Array {
  Indices sizes;
  std::vector<Complex> numbers;

  template <typename Each>
  Array along(size_t axis, int64_t size, Each each) const {
    Array out{sizes, {}};
    out.sizes[axis] = size;
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d < axis; ++d) outer *= sizes[d];
    for (size_t d = axis + 1; d < sizes.size(); ++d) inner *= sizes[d];
    out.numbers.resize(static_cast<size_t>(outer * size * inner));
    std::vector<Complex> line(static_cast<size_t>(sizes[axis]));
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        for (int64_t k = 0; k < sizes[axis]; ++k)
          line[static_cast<size_t>(k)] = numbers[static_cast<size_t>((o * sizes[axis] + k) * inner + i)];
        for (int64_t k = 0; k < size; ++k) out.numbers[static_cast<size_t>((o * size + k) * inner + i)] = each(line, k);
      }
    return out;
  }
};

// Returns e^(2 pi i k / n).
Complex root_of_unity(int64_t k, int64_t n) {
  const Real angle = 2 * std::numbers::pi_v<Real> * static_cast<Real>(k % n) / static_cast<Real>(n);
  return {std::cos(angle), std::sin(angle)};
}

Array transformed(const Array& from, size_t axis, int64_t results, bool inverse) {
  const int64_t n = from.sizes[axis];
  std::vector<Complex> roots;
  for (int64_t k = 0; k < n; ++k) roots.push_back(root_of_unity(inverse ? k : n - k, n));
  return from.along(axis, results, [&](const std::vector<Complex>& line, int64_t k) {
    Complex sum = 0;
    for (int64_t t = 0; t < n; ++t) sum += line[static_cast<size_t>(t)] * roots[static_cast<size_t>(k * t % n)];
    return inverse ? sum / static_cast<Real>(n) : sum;
  });
}

// Computes a real inverse transform from the first n / 2 + 1 numbers of the spectrum; the others are conjugates of
// these in reverse order.
Array real_inverse(const Array& from, size_t axis, int64_t n) {
  return from.along(axis, n, [&](const std::vector<Complex>& line, int64_t t) {
    Real sum = line[0].real();
    for (int64_t k = 1; k < static_cast<int64_t>(line.size()); ++k) {
      const bool is_alone = 2 * k == n;
      sum += (is_alone ? 1 : 2) * (line[static_cast<size_t>(k)] * root_of_unity(k * t, n)).real();
    }
    return Complex(sum / static_cast<Real>(n));
  });
}

std::optional<Literal> transform(const Instruction& instr, const Literal& from) {
  const auto& attrs = instr.as<hlo::FftAttrs>();
  Array array{sizes_of(from.shape()), numbers_of(from)};
  if (is_empty(array.sizes) || instr.shape.element_count() == 0) return std::nullopt;
  const size_t last = array.sizes.size() - 1, first = array.sizes.size() - attrs.length.size();
  const bool inverse = attrs.type == hlo::FftType::IFFT || attrs.type == hlo::FftType::IRFFT;
  const bool to_real = attrs.type == hlo::FftType::IRFFT, to_complex = attrs.type == hlo::FftType::RFFT;
  if (to_complex) array = transformed(array, last, array.sizes[last] / 2 + 1, false);
  for (size_t axis = first; axis <= last; ++axis)
    if (axis != last || (!to_complex && !to_real)) array = transformed(array, axis, array.sizes[axis], inverse);
  if (to_real) array = real_inverse(array, last, attrs.length.back());
  return literal_of(instr.shape, array.numbers);
}

// The matrices in the last two dimensions, one after another.
struct Matrix {
  std::vector<Complex> numbers;
  int64_t rows, columns;
  Complex& at(int64_t i, int64_t j) { return numbers[static_cast<size_t>(i * columns + j)]; }
};

template <typename Each>
void for_matrices(const Literal& value, Each each) {
  const int rank = value.shape().rank();
  const int64_t rows = value.shape().dim(rank - 2), columns = value.shape().dim(rank - 1);
  const std::vector<Complex> all = numbers_of(value);
  const auto size = static_cast<size_t>(rows * columns);
  for (size_t start = 0; size > 0 && start < all.size(); start += size)
    each(Matrix{
        {all.begin() + static_cast<std::ptrdiff_t>(start), all.begin() + static_cast<std::ptrdiff_t>(start + size)},
        rows,
        columns});
}

// Computes the Cholesky factor: A = L L^H from the lower triangle, or A = U^H U from the upper one, where U is the
// adjoint of L.
Literal factored(const Instruction& instr, const Literal& from) {
  const bool lower = instr.as<hlo::CholeskyAttrs>().lower;
  std::vector<Complex> out;
  for_matrices(from, [&](Matrix a) {
    const int64_t n = a.rows;
    Matrix l{std::vector<Complex>(a.numbers.size()), n, n};
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        Complex sum = lower ? a.at(i, j) : std::conj(a.at(j, i));
        for (int64_t k = 0; k < j; ++k) sum -= l.at(i, k) * std::conj(l.at(j, k));
        l.at(i, j) = i == j ? Complex(std::sqrt(sum.real())) : sum / l.at(j, j);
      }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) out.push_back(lower ? l.at(i, j) : std::conj(l.at(j, i)));
  });
  return literal_of(instr.shape, out);
}

// Solves op(A) X = B, or X op(A) = B as op(A)^T X^T = B^T.
Literal solved(const Instruction& instr, const Literal& from, const Literal& right) {
  const auto& attrs = instr.as<hlo::TriangularSolveAttrs>();
  std::vector<Matrix> rights;
  for_matrices(right, [&](Matrix b) { rights.push_back(std::move(b)); });
  std::vector<Complex> out;
  size_t number = 0;
  for_matrices(from, [&](Matrix a) {
    if (number == rights.size()) return;
    Matrix b = std::move(rights[number++]);
    const int64_t n = a.rows, many = attrs.left_side ? b.columns : b.rows;
    const bool turned = (attrs.transpose_a != hlo::Transpose::NONE) == attrs.left_side,
               adjoint = attrs.transpose_a == hlo::Transpose::ADJOINT;
    const auto part = [&](int64_t i, int64_t j) {
      const Complex x = turned ? a.at(j, i) : a.at(i, j);
      return i == j && attrs.unit_diagonal ? Complex(1) : adjoint ? std::conj(x) : x;
    };
    const auto unknown = [&](int64_t i, int64_t k) -> Complex& { return attrs.left_side ? b.at(i, k) : b.at(k, i); };
    const bool forward = attrs.lower != turned;
    for (int64_t k = 0; k < many; ++k)
      for (int64_t step = 0; step < n; ++step) {
        const int64_t i = forward ? step : n - 1 - step;
        Complex sum = unknown(i, k);
        for (int64_t s = 0; s < step; ++s) {
          const int64_t j = forward ? s : n - 1 - s;
          sum -= part(i, j) * unknown(j, k);
        }
        unknown(i, k) = sum / part(i, i);
      }
    out.insert(out.end(), b.numbers.begin(), b.numbers.end());
  });
  return literal_of(instr.shape, out);
}

// The sums over all elements of each feature, and the number of these elements.
struct Features {
  int64_t inner = 1, count = 0, elements = 0;

  Features(const Literal& value, int64_t feature) {
    const Shape& shape = value.shape();
    for (int d = static_cast<int>(feature) + 1; d < shape.rank(); ++d) inner *= shape.dim(d);
    count = shape.dim(static_cast<int>(feature));
    elements = value.element_count();
  }
  size_t of(int64_t i) const { return static_cast<size_t>(i / inner % count); }
  Real each() const { return static_cast<Real>(elements) / static_cast<Real>(count); }
  template <typename Term>
  std::vector<Real> sum(Term term) const {
    std::vector<Real> out(static_cast<size_t>(count));
    for (int64_t i = 0; i < elements; ++i) out[of(i)] += term(i, of(i));
    return out;
  }
};

std::vector<Real> reals_of(const Literal& value) {
  std::vector<Real> out;
  for (int64_t i = 0; i < value.element_count(); ++i) out.push_back(value.as_double(i));
  return out;
}

Literal literal_of(const Shape& shape, const std::vector<Real>& numbers) {
  return literal_of(shape, std::vector<Complex>(numbers.begin(), numbers.end()));
}

std::optional<std::vector<Literal>> normalized(const Instruction& instr, Operands operands) {
  const auto& attrs = instr.as<hlo::BatchNormAttrs>();
  const Features features(*operands[0], attrs.feature);
  if (features.elements == 0) return std::nullopt;
  std::vector<std::vector<Real>> in;
  for (const Literal* operand : operands) in.push_back(reals_of(*operand));
  const std::vector<Real>&x = in[0], &scale = in[1];
  const Real epsilon = attrs.epsilon, each = features.each();
  const bool training = instr.op == Op::BATCH_NORM_TRAINING, gradient = instr.op == Op::BATCH_NORM_GRAD;
  std::vector<Real> mean, variance;
  if (training) {
    mean = features.sum([&](int64_t i, size_t) { return x[static_cast<size_t>(i)] / each; });
    variance = features.sum([&](int64_t i, size_t f) {
      const Real from_mean = x[static_cast<size_t>(i)] - mean[f];
      return from_mean * from_mean / each;
    });
  } else {
    mean = in[gradient ? 2 : 3];
    variance = in[gradient ? 3 : 4];
  }
  const auto hat = [&](int64_t i, size_t f) {
    return (x[static_cast<size_t>(i)] - mean[f]) / std::sqrt(variance[f] + epsilon);
  };
  std::vector<Real> out(x.size());
  if (!gradient) {
    for (int64_t i = 0; i < features.elements; ++i) {
      const size_t f = features.of(i);
      out[static_cast<size_t>(i)] = hat(i, f) * scale[f] + in[2][f];
    }
    if (!training) return std::vector<Literal>{literal_of(instr.shape, out)};
    return std::vector<Literal>{literal_of(instr.shape.element(0), out), literal_of(instr.shape.element(1), mean),
                                literal_of(instr.shape.element(2), variance)};
  }
  const std::vector<Real>& g = in[4];
  const std::vector<Real> by_scale =
      features.sum([&](int64_t i, size_t f) { return g[static_cast<size_t>(i)] * hat(i, f); });
  const std::vector<Real> by_offset = features.sum([&](int64_t i, size_t) { return g[static_cast<size_t>(i)]; });
  for (int64_t i = 0; i < features.elements; ++i) {
    const size_t f = features.of(i);
    out[static_cast<size_t>(i)] = scale[f] / std::sqrt(variance[f] + epsilon) *
                                  (g[static_cast<size_t>(i)] - by_offset[f] / each - hat(i, f) * by_scale[f] / each);
  }
  return std::vector<Literal>{literal_of(instr.shape.element(0), out), literal_of(instr.shape.element(1), by_scale),
                              literal_of(instr.shape.element(2), by_offset)};
}

}  // namespace

std::optional<std::vector<Literal>> plain_algebra(const Instruction& instr, Operands operands) {
  std::optional<Literal> one;
  switch (instr.op) {
    case Op::FFT:
      one = transform(instr, *operands[0]);
      break;
    case Op::CHOLESKY:
      one = factored(instr, *operands[0]);
      break;
    case Op::TRIANGULAR_SOLVE:
      one = solved(instr, *operands[0], *operands[1]);
      break;
    case Op::BATCH_NORM_TRAINING:
    case Op::BATCH_NORM_INFERENCE:
    case Op::BATCH_NORM_GRAD:
      return normalized(instr, operands);
    default:
      break;
  }
  if (!one) return std::nullopt;
  std::vector<Literal> out;
  out.push_back(*std::move(one));
  return out;
}

}  // namespace collet::conformance
