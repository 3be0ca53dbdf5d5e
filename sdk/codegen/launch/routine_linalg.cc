// SPDX-License-Identifier: Apache-2.0
#include <collet/attributes.h>

#include <cmath>
#include <complex>
#include <type_traits>

#include "sdk/codegen/launch/routine.h"

namespace collet::codegen {
namespace {

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<std::complex<T>> : std::true_type {};

template <typename T>
T conjugate(T x) {
  if constexpr (IsComplex<T>::value) return std::conj(x);
  return x;
}

template <typename T>
T multiply(T x, T y) {
  if constexpr (IsComplex<T>::value) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  }
  return x * y;
}

/// The type in which sums are kept.
template <typename T>
struct Wide {
  using type = double;
};
template <typename T>
struct Wide<std::complex<T>> {
  using type = std::complex<double>;
};

/// L of A = L L^H; A is given by element functions so that both triangles share the code.
template <typename T>
class Cholesky : public Routine {
 public:
  Cholesky(int64_t batch, int64_t n, bool lower) : batch_(batch), n_(n), lower_(lower) {}

  void run(char* const* buffers, Threads&) const override {
    const T* a = reinterpret_cast<const T*>(buffers[0]);
    T* l = reinterpret_cast<T*>(buffers[1]);
    for (int64_t b = 0; b < batch_; ++b) factor(a + b * n_ * n_, l + b * n_ * n_);
  }

 private:
  using W = typename Wide<T>::type;

  T& at(T* l, int64_t i, int64_t j) const { return lower_ ? l[i * n_ + j] : l[j * n_ + i]; }

  void factor(const T* a, T* l) const {
    auto value = [&](int64_t i, int64_t j) { return lower_ ? a[i * n_ + j] : a[j * n_ + i]; };
    for (int64_t j = 0; j < n_; ++j) {
      W d = static_cast<W>(value(j, j));
      for (int64_t k = 0; k < j; ++k) {
        const W x = static_cast<W>(at(l, j, k));
        d -= multiply(x, conjugate(x));
      }
      const double root = std::sqrt(std::real(d));
      at(l, j, j) = static_cast<T>(root);
      for (int64_t i = j + 1; i < n_; ++i) {
        W s = static_cast<W>(value(i, j));
        for (int64_t k = 0; k < j; ++k) {
          // For the upper triangle the stored elements are those of U = L^H.
          const W x = static_cast<W>(at(l, i, k));
          const W y = static_cast<W>(at(l, j, k));
          s -= multiply(x, conjugate(y));
        }
        at(l, i, j) = static_cast<T>(s / root);
        at(l, j, i) = T(0);
      }
    }
  }

  int64_t batch_;
  int64_t n_;
  bool lower_;
};

/// What is solved.
struct Form {
  bool left_side;
  bool lower;
  bool unit_diagonal;
  int64_t transpose_a;
};

template <typename T>
class TriangularSolve : public Routine {
 public:
  TriangularSolve(int64_t batch, int64_t m, int64_t n, Form a) : batch_(batch), m_(m), n_(n), a_(a) {}

  void run(char* const* buffers, Threads&) const override {
    const T* a = reinterpret_cast<const T*>(buffers[0]);
    const T* b = reinterpret_cast<const T*>(buffers[1]);
    T* x = reinterpret_cast<T*>(buffers[2]);
    const int64_t side = a_.left_side ? m_ : n_;
    for (int64_t k = 0; k < batch_; ++k) solve(a + k * side * side, b + k * m_ * n_, x + k * m_ * n_);
  }

 private:
  using W = typename Wide<T>::type;

  void solve(const T* a, const T* b, T* x) const {
    const int64_t side = a_.left_side ? m_ : n_;
    const int64_t others = a_.left_side ? n_ : m_;
    const bool transposed = a_.transpose_a != COLLET_TRANSPOSE_NONE;
    // X op(A) = B is op(A)^T X^T = B^T.
    const bool swap = transposed != !a_.left_side;
    auto element = [&](int64_t i, int64_t j) {
      const T v = swap ? a[j * side + i] : a[i * side + j];
      return static_cast<W>(a_.transpose_a == COLLET_TRANSPOSE_ADJOINT ? conjugate(v) : v);
    };
    auto place = [&](int64_t i, int64_t j) { return a_.left_side ? i * n_ + j : j * n_ + i; };
    const bool forward = a_.lower != swap;
    for (int64_t j = 0; j < others; ++j) {
      for (int64_t step = 0; step < side; ++step) {
        const int64_t i = forward ? step : side - 1 - step;
        W s = static_cast<W>(b[place(i, j)]);
        const int64_t first = forward ? 0 : i + 1;
        const int64_t last = forward ? i : side;
        for (int64_t k = first; k < last; ++k) s -= multiply(element(i, k), static_cast<W>(x[place(k, j)]));
        if (!a_.unit_diagonal) s /= element(i, i);
        x[place(i, j)] = static_cast<T>(s);
      }
    }
  }

  int64_t batch_;
  int64_t m_;
  int64_t n_;
  Form a_;
};

/// Makes Call<T> for the element type.
template <template <typename> typename Call, typename... Args>
std::unique_ptr<Routine> make(uint32_t type, Args... args) {
  switch (type) {
    case COLLET_TYPE_F32:
      return std::make_unique<Call<float>>(args...);
    case COLLET_TYPE_F64:
      return std::make_unique<Call<double>>(args...);
    case COLLET_TYPE_C64:
      return std::make_unique<Call<std::complex<float>>>(args...);
    default:
      return std::make_unique<Call<std::complex<double>>>(args...);
  }
}

int64_t batch_of(const Dims& dims) {
  int64_t batch = 1;
  for (size_t d = 0; d + 2 < dims.size(); ++d) batch *= dims[d];
  return batch;
}

}  // namespace

std::unique_ptr<Routine> make_cholesky(const RoutineCall& call) {
  const ArrayType& type = call.operands[0];
  return make<Cholesky>(type.element, batch_of(type.dims), type.dims.back(), call.numbers[0] != 0);
}

std::unique_ptr<Routine> make_triangular_solve(const RoutineCall& call) {
  const ArrayType& b = call.operands[1];
  const size_t rank = b.dims.size();
  return make<TriangularSolve>(b.element, batch_of(b.dims), b.dims[rank - 2], b.dims[rank - 1],
                               Form{call.numbers[0] != 0, call.numbers[1] != 0, call.numbers[2] != 0, call.numbers[3]});
}

}  // namespace collet::codegen
