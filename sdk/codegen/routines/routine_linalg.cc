// SPDX-License-Identifier: Apache-2.0
#include <collet/attributes.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sdk/codegen/routines/block_cholesky.h"
#include "sdk/codegen/routines/lapack.h"
#include "sdk/codegen/routines/matrix_batch.h"
#include "sdk/codegen/routines/routine.h"
#include "sdk/codegen/routines/small_matrices.h"
#include "sdk/codegen/routines/worker_memory.h"

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

/// The type in which sums are computed.
template <typename T>
struct Wide {
  using type = double;
};
template <typename T>
struct Wide<std::complex<T>> {
  using type = std::complex<double>;
};

/// For matrices with fewer rows, the code here is faster than the library.
constexpr int64_t kSmall = 12;
/// Matrices with fewer or more rows are factored by the library, which blocks for all caches.
constexpr int64_t kLeastInBlocks = 16;
constexpr int64_t kMostInBlocks = 1024;
/// The fewest right-hand sides of a triangular system for which a thread calls the library, and how many products it
/// computes in a ns.
constexpr int64_t kLeastSides = 16;
constexpr double kFlopsPerNs = 20;

/// Computes L of A = L L^H. Elements of A are read through functions, so that both triangles share the code.
template <typename T>
class Cholesky : public Routine {
 public:
  Cholesky(int64_t batch, int64_t n, bool lower) : batch_(batch), n_(n), lower_(lower) {}

  void run(char* const* buffers, Threads& threads) const override {
    const T* a = reinterpret_cast<const T*>(buffers[0]);
    T* l = reinterpret_cast<T*>(buffers[1]);
    if constexpr (std::is_floating_point_v<T>) {
      if (is_small_batch(batch_, n_, n_)) return factor_small_cholesky(a, l, batch_, n_, lower_, threads);
    }
    const auto n = static_cast<double>(n_);
    const int64_t bytes = work_bytes();
    for_each_matrix(batch_, n * n * n / 3, bytes ? buffers[2] : nullptr, bytes, threads, [&](int64_t b, char* work) {
      const T* from = a + b * n_ * n_;
      T* to = l + b * n_ * n_;
      if constexpr (std::is_floating_point_v<T>) {
        if (work && factor_block_cholesky(from, to, n_, work)) return;
      }
      if (work || !factor_by_library(from, to)) factor(from, to);
    });
  }

  uint64_t scratch_bytes() const override { return static_cast<uint64_t>(work_bytes()); }

 private:
  using W = typename Wide<T>::type;

  /// Returns the bytes of work memory, or 0 if the factorization does not need any.
  int64_t work_bytes() const {
    if (!std::is_floating_point_v<T> || !lower_ || n_ < kLeastInBlocks || n_ > kMostInBlocks) return 0;
    return is_small_batch(batch_, n_, n_) ? 0 : block_cholesky_bytes(n_, sizeof(T));
  }

  T& at(T* l, int64_t i, int64_t j) const { return lower_ ? l[i * n_ + j] : l[j * n_ + i]; }

  /// Returns false if there is no LAPACK, or if the matrix is not positive definite, in which case `l` is to be
  /// computed by the code below.
  bool factor_by_library(const T* a, T* l) const {
    const Lapack<T>* library = lapack<T>();
    if (!library || n_ < kSmall || n_ > INT32_MAX) return false;
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t first = lower_ ? 0 : i;
      const int64_t last = lower_ ? i + 1 : n_;
      std::fill(l + i * n_, l + (i + 1) * n_, T(0));
      std::copy(a + i * n_ + first, a + i * n_ + last, l + i * n_ + first);
    }
    // LAPACK reads row-major matrices as their transposes, so a lower triangle is an upper one, and so is its factor.
    const auto n = static_cast<int32_t>(n_);
    int32_t info = 0;
    const LapackCall call;
    library->potrf(lower_ ? "U" : "L", &n, l, &n, &info, 1);
    if (info != 0) return false;
    for (int64_t i = 0; i < n_; ++i)
      if (!(std::real(l[i * (n_ + 1)]) > 0)) return false;  // some libraries do not see a NaN
    return true;
  }

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
      if (root > 0) continue;
      // The matrix is not positive definite.
      constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
      for (int64_t i = 0; i < n_; ++i)
        for (int64_t k = 0; k < n_; ++k) at(l, i, k) = k <= i ? static_cast<T>(kNaN) : T(0);
      return;
    }
  }

  int64_t batch_;
  int64_t n_;
  bool lower_;
};

/// The attributes of a triangular system.
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

  void run(char* const* buffers, Threads& threads) const override {
    const T* a = reinterpret_cast<const T*>(buffers[0]);
    const T* b = reinterpret_cast<const T*>(buffers[1]);
    T* x = reinterpret_cast<T*>(buffers[2]);
    const int64_t side = a_.left_side ? m_ : n_;
    if constexpr (std::is_floating_point_v<T>) {
      if (is_small_batch(batch_, side, m_) && n_ <= kMostSmall) {
        const bool swap = (a_.transpose_a != COLLET_TRANSPOSE_NONE) != !a_.left_side;
        const SmallTriangle form{a_.left_side, a_.lower != swap, swap, a_.unit_diagonal};
        return solve_small_triangle(a, b, x, batch_, m_, n_, form, threads);
      }
    }
    const double ns = static_cast<double>(side) * static_cast<double>(m_) * static_cast<double>(n_);
    if (batch_ == 1 && can_use_library()) {
      // Threads share the right-hand sides.
      const int64_t others = a_.left_side ? n_ : m_;
      const int64_t parts = std::max<int64_t>(std::min<int64_t>(others / kLeastSides, threads.count()), 1);
      return for_each_part(parts, ns / kFlopsPerNs / static_cast<double>(parts), threads, [&](int64_t part, int) {
        const int64_t first = others * part / parts;
        solve_by_library(a, b, x, first, others * (part + 1) / parts - first);
      });
    }
    for_each_matrix(batch_, ns, nullptr, 0, threads, [&](int64_t k, char*) {
      const T* from = b + k * m_ * n_;
      T* to = x + k * m_ * n_;
      if (can_use_library()) {
        solve_by_library(a + k * side * side, from, to, 0, a_.left_side ? n_ : m_);
      } else {
        solve(a + k * side * side, from, to);
      }
    });
  }

 private:
  using W = typename Wide<T>::type;

  /// Returns false if there is no BLAS, or if the system is so small that calling it takes longer than solving.
  bool can_use_library() const {
    const int64_t side = a_.left_side ? m_ : n_;
    return lapack<T>() && side >= kSmall && m_ <= INT32_MAX && n_ <= INT32_MAX;
  }

  /// Solves for right-hand sides [first, first + count): columns of b, or rows if A is on the right.
  void solve_by_library(const T* a, const T* b, T* x, int64_t first, int64_t count) const {
    if (count == 0) return;
    const int64_t side = a_.left_side ? m_ : n_;
    T* to = x + (a_.left_side ? first : first * n_);
    if (b != x) {
      const T* from = b + (a_.left_side ? first : first * n_);
      const int64_t width = a_.left_side ? count : n_;
      for (int64_t i = 0; i < (a_.left_side ? m_ : count); ++i) std::copy_n(from + i * n_, width, to + i * n_);
    }
    // BLAS reads row-major matrices as their transposes: op(A) X = B becomes X^T op(A)^T = B^T.
    const char* trans = a_.transpose_a == COLLET_TRANSPOSE_NONE      ? "N"
                        : a_.transpose_a == COLLET_TRANSPOSE_ADJOINT ? "C"
                                                                     : "T";
    const auto rows = static_cast<int32_t>(a_.left_side ? count : n_);
    const auto columns = static_cast<int32_t>(a_.left_side ? m_ : count);
    const auto order = static_cast<int32_t>(side);
    const auto step = static_cast<int32_t>(n_);
    const T one(1);
    const LapackCall call;
    lapack<T>()->trsm(a_.left_side ? "R" : "L", a_.lower ? "U" : "L", trans, a_.unit_diagonal ? "U" : "N", &rows,
                      &columns, &one, a, &order, to, &step, 1, 1, 1, 1);
  }

  void solve(const T* a, const T* b, T* x) const {
    const int64_t side = a_.left_side ? m_ : n_;
    const int64_t others = a_.left_side ? n_ : m_;
    const bool transposed = a_.transpose_a != COLLET_TRANSPOSE_NONE;
    // A system X op(A) = B is solved as op(A)^T X^T = B^T.
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

/// Returns Call<T>(args...) for the element type.
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
