// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "sdk/codegen/base/factorization.h"
#include "sdk/codegen/routines/block_lu.h"
#include "sdk/codegen/routines/lapack.h"
#include "sdk/codegen/routines/matrix_batch.h"
#include "sdk/codegen/routines/routine.h"
#include "sdk/codegen/routines/small_matrices.h"
#include "sdk/codegen/routines/transpose_matrix.h"

namespace collet::codegen {
namespace {

template <typename T>
constexpr bool kComplex = !std::is_same_v<T, typename RealOf<T>::type>;

/// Transposes a matrix: to[c * rows + r] = from[r * columns + c].
template <typename T>
void transpose(const T* from, int64_t rows, int64_t columns, T* to) {
  if constexpr (sizeof(T) == sizeof(float)) {
    transpose_matrix(reinterpret_cast<const float*>(from), rows, columns, reinterpret_cast<float*>(to));
  } else if constexpr (sizeof(T) == sizeof(double)) {
    transpose_matrix(reinterpret_cast<const double*>(from), rows, columns, reinterpret_cast<double*>(to));
  } else {
    constexpr int64_t kBlock = 16;
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
      for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
        const int64_t r1 = std::min(r0 + kBlock, rows);
        const int64_t c1 = std::min(c0 + kBlock, columns);
        for (int64_t c = c0; c < c1; ++c) {
          for (int64_t r = r0; r < r1; ++r) to[c * rows + r] = from[r * columns + c];
        }
      }
    }
  }
}

/// Sets all elements of a result to NaN, because it could not be computed.
template <typename T>
void fill_nan(T* x, int64_t n) {
  using R = typename RealOf<T>::type;
  const R nan = std::numeric_limits<R>::quiet_NaN();
  if constexpr (kComplex<T>) {
    std::fill_n(x, n, T(nan, nan));
  } else {
    std::fill_n(x, n, nan);
  }
}

template <typename T>
bool all_finite(const T* x, int64_t n) {
  using R = typename RealOf<T>::type;
  const R* p = reinterpret_cast<const R*>(x);
  const int64_t all = n * (kComplex<T> ? 2 : 1);
  // Infinity and NaN times zero are NaN, so a single sum finds all of them.
  R sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= all; i += 8) {
    for (int64_t k = 0; k < 8; ++k) sums[k] += p[i + k] * R(0);
  }
  for (; i < all; ++i) sums[0] += p[i] * R(0);
  return std::all_of(sums, sums + 8, [](R sum) { return sum == 0; });
}

int64_t rounded(size_t bytes) {
  return static_cast<int64_t>((bytes + 63) / 64 * 64);
}

/// Allocates arrays one after the other in the work memory of a thread.
class WorkArrays {
 public:
  /// With a null `begin`, the object only adds up the sizes.
  explicit WorkArrays(char* begin) : begin_(begin) {}
  template <typename T>
  T* take(int64_t n) {
    char* x = begin_ ? begin_ + bytes_ : nullptr;
    bytes_ += rounded(static_cast<size_t>(n) * sizeof(T));
    return reinterpret_cast<T*>(x);
  }
  int64_t bytes() const { return bytes_; }

 private:
  char* begin_;
  int64_t bytes_ = 0;
};

/// Returns the length of a work array, which a query has stored in the array's first element. The conversion to float
/// may have rounded it down, so it is rounded up.
template <typename T>
int32_t work_length(T first) {
  return static_cast<int32_t>(std::real(first) * 1.001) + 16;
}

/// A factorization of each matrix of a batch.
template <typename T>
class Factorize : public Routine {
 public:
  using R = typename RealOf<T>::type;
  using C = std::complex<R>;

  Factorize(const RoutineCall& call, Factorization kind) : kind_(kind), lapack_(*lapack<T>()) {
    const Dims& dims = call.operands[0].dims;
    const size_t rank = dims.size();
    m_ = static_cast<int32_t>(dims[rank - 2]);
    n_ = static_cast<int32_t>(dims[rank - 1]);
    k_ = std::min(m_, n_);
    batch_ = batch_of(dims);
    results_ = call.results.size();
    places_ = call.operands.size() + results_;
    reads_lower_ = call.numbers.size() > 1 && call.numbers[1] != 0;
    if (kind == Factorization::kReflectors) factors_ = static_cast<int32_t>(call.operands[1].dims.back());
    if (kind == Factorization::kSvd && results_ == 3)
      full_ = call.results[1].dims.back() == m_ && call.results[2].dims[rank - 2] == n_;
    query();
  }

  uint64_t scratch_bytes() const override { return static_cast<uint64_t>(work_bytes_); }

  void run(char* const* buffers, Threads& threads) const override {
    if constexpr (!kComplex<T>) {
      if (kind_ == Factorization::kLu && is_small_batch(batch_, m_, n_)) {
        return factor_small_lu(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<T*>(buffers[1]),
                               reinterpret_cast<int32_t*>(buffers[2]), reinterpret_cast<int32_t*>(buffers[3]), batch_,
                               m_, n_, threads);
      }
    }
    const double ns = 4.0 * static_cast<double>(m_) * n_ * k_;
    char* own = buffers[places_];
    if constexpr (!kComplex<T>) {
      if (is_lu_in_blocks()) {
        return for_each_matrix(batch_, ns, own, work_bytes_, threads, [&](int64_t b, char* work) {
          const int64_t size = int64_t{m_} * n_;
          int32_t* pivots = matrix<int32_t>(buffers[2], b, k_);
          factor_block_lu(matrix<T>(buffers[0], b, size), matrix<T>(buffers[1], b, size), pivots, m_, n_, work);
          store_order(pivots, matrix<int32_t>(buffers[3], b, m_));
        });
      }
    }
    for_each_matrix(batch_, ns, own, work_bytes_, threads, [&](int64_t b, char* work) {
      const LapackCall call;
      one(b, buffers, WorkArrays(work));
    });
  }

 private:
  /// True if the code for matrices of moderate size is faster than LAPACK.
  bool is_lu_in_blocks() const {
    return kind_ == Factorization::kLu && !kComplex<T> && k_ >= 16 &&
           int64_t{m_} * n_ * static_cast<int64_t>(sizeof(T)) <= int64_t{4} << 20;
  }

  /// Asks LAPACK for the sizes of its work arrays.
  void query() {
    if (is_lu_in_blocks()) {
      work_bytes_ = block_lu_bytes(m_, n_, sizeof(T));
      return;
    }
    const LapackCall call;
    T first{};
    R real_first{};
    int32_t int_first = 0;
    int32_t info = 0;
    const int32_t ask = -1;
    const int32_t one = 1;
    const int64_t most = std::max(m_, n_);
    switch (kind_) {
      case Factorization::kQr:
        lapack_.geqrf(&m_, &n_, &first, &m_, &first, &first, &ask, &info);
        break;
      case Factorization::kReflectors:
        lapack_.orgqr(&m_, &n_, &factors_, &first, &m_, &first, &first, &ask, &info);
        break;
      case Factorization::kHessenberg:
        lapack_.gehrd(&n_, &one, &n_, &first, &n_, &first, &first, &ask, &info);
        break;
      case Factorization::kEigh:
        lapack_.syevd('V', 'L', n_, &first, &real_first, &first, ask, &real_first, ask, &int_first, ask, info);
        liwork_ = std::max(int_first, 1);
        if (kComplex<T>) lrwork_ = work_length(real_first);
        break;
      case Factorization::kSvd:
        lapack_.gesdd(jobz(), m_, n_, &first, &real_first, &first, m_, &first, full_ ? n_ : k_, &first, ask,
                      &real_first, &int_first, info);
        liwork_ = 8 * k_;
        if (kComplex<T>) {
          const int64_t k = k_;
          lrwork_ = static_cast<int32_t>(std::max(5 * k * k + 7 * k, 2 * most * k + 2 * k * k + k));
        }
        break;
      case Factorization::kEig: {
        T w[2]{};
        lapack_.geev(results_ == 3 ? 'V' : 'N', results_ >= 2 ? 'V' : 'N', n_, &first, w, &first, &first, &first, ask,
                     &real_first, info);
        if (kComplex<T>) lrwork_ = 2 * n_;
        break;
      }
      case Factorization::kSchur: {
        T w[2]{};
        lapack_.gees(results_ == 2 ? 'V' : 'N', n_, &first, w, &first, &first, ask, &real_first, info);
        if (kComplex<T>) lrwork_ = n_;
        break;
      }
      default:
        break;
    }
    lwork_ = work_length(first);
    WorkArrays all(nullptr);
    all.take<T>(int64_t{m_} * n_);
    all.take<T>(lwork_);
    all.take<R>(lrwork_);
    all.take<int32_t>(liwork_);
    if (kind_ == Factorization::kSvd && results_ == 3) {
      all.take<T>(int64_t{m_} * (full_ ? m_ : k_));
      all.take<T>(int64_t{n_} * (full_ ? n_ : k_));
    }
    if (kind_ == Factorization::kEig) {
      all.take<T>(2 * n_);
      all.take<T>(int64_t{n_} * n_);
      all.take<T>(int64_t{n_} * n_);
    }
    if (kind_ == Factorization::kSchur) {
      all.take<T>(2 * n_);
      all.take<T>(int64_t{n_} * n_);
    }
    work_bytes_ = all.bytes();
  }

  template <typename X>
  static X* matrix(char* buffer, int64_t b, int64_t elements) {
    return reinterpret_cast<X*>(buffer) + b * elements;
  }

  void one(int64_t b, char* const* buffers, WorkArrays work) const {
    const int64_t size = int64_t{m_} * n_;
    const T* in = matrix<T>(buffers[0], b, size);
    T* a = work.take<T>(size);
    T* space = work.take<T>(lwork_);
    R* rwork = work.take<R>(lrwork_);
    int32_t* iwork = work.take<int32_t>(liwork_);
    switch (kind_) {
      case Factorization::kLu:
        transpose(in, m_, n_, a);
        return lu(b, buffers, a);
      case Factorization::kQr: {
        transpose(in, m_, n_, a);
        int32_t info = 0;
        lapack_.geqrf(&m_, &n_, a, &m_, matrix<T>(buffers[2], b, k_), space, &lwork_, &info);
        return transpose(a, n_, m_, matrix<T>(buffers[1], b, size));
      }
      case Factorization::kReflectors: {
        transpose(in, m_, n_, a);
        int32_t info = 0;
        lapack_.orgqr(&m_, &n_, &factors_, a, &m_, matrix<T>(buffers[1], b, factors_), space, &lwork_, &info);
        return transpose(a, n_, m_, matrix<T>(buffers[2], b, size));
      }
      case Factorization::kHessenberg: {
        transpose(in, m_, n_, a);
        int32_t info = 0;
        const int32_t first = 1;
        lapack_.gehrd(&n_, &first, &n_, a, &n_, matrix<T>(buffers[2], b, n_ - 1), space, &lwork_, &info);
        return transpose(a, n_, m_, matrix<T>(buffers[1], b, size));
      }
      case Factorization::kEigh:
        return eigh(in, a, space, rwork, iwork, matrix<T>(buffers[1], b, size), matrix<R>(buffers[2], b, n_));
      case Factorization::kSvd:
        return svd(b, buffers, in, a, space, rwork, iwork, work);
      case Factorization::kEig:
        return eig(b, buffers, in, a, space, rwork, work);
      case Factorization::kSchur:
        return schur(b, buffers, in, a, space, rwork, work);
      default:
        return;
    }
  }

  void lu(int64_t b, char* const* buffers, T* a) const {
    int32_t* pivots = matrix<int32_t>(buffers[2], b, k_);
    int32_t* order = matrix<int32_t>(buffers[3], b, m_);
    int32_t info = 0;  // positive for a singular matrix, which needs no error: the factors show it
    const int32_t spoilt = first_column_with_nan(a);
    lapack_.getrf(&m_, &n_, a, &m_, pivots, &info);
    // A NaN spreads to all that is computed after its column. OpenBLAS 0.3.21 loses those of complex matrices on some
    // processors (Sapphire Rapids).
    for (int64_t j = spoilt; j < n_; ++j)
      if (spoilt < m_) fill_nan(a + j * m_ + spoilt, m_ - spoilt);
    transpose(a, n_, m_, matrix<T>(buffers[1], b, int64_t{m_} * n_));
    for (int32_t i = 0; i < k_; ++i) --pivots[i];
    store_order(pivots, order);
  }

  /// Returns the number of columns if there is no NaN. `a` is stored by columns.
  int32_t first_column_with_nan(const T* a) const {
    const int64_t size = int64_t{m_} * n_;
    const T* const found = std::find_if(a, a + size, [](const T& x) { return x != x; });
    return static_cast<int32_t>((found - a) / std::max(m_, 1));
  }

  /// Stores the order of the rows that the exchanges give.
  void store_order(const int32_t* pivots, int32_t* order) const {
    for (int32_t i = 0; i < m_; ++i) order[i] = i;
    for (int32_t i = 0; i < k_; ++i) std::swap(order[i], order[pivots[i]]);
  }

  /// True if all is finite that an eigendecomposition reads.
  bool read_part_is_finite(const T* in) const {
    if (!reads_lower_) return all_finite(in, int64_t{n_} * n_);
    for (int64_t i = 0; i < n_; ++i)
      if (!all_finite(in + i * n_, i + 1)) return false;
    return true;
  }

  void eigh(const T* in, T* a, T* space, R* rwork, int32_t* iwork, T* vectors, R* values) const {
    const int64_t size = int64_t{n_} * n_;
    int32_t info = 1;
    if (read_part_is_finite(in)) {
      // LAPACK reads the matrix, which is stored by rows, as its transpose. The transpose of a Hermitian matrix is its conjugate, which has the
      // same eigenvalues and the conjugate eigenvectors. So the matrix is copied as it is, and the vectors are conjugated below.
      std::memcpy(a, in, static_cast<size_t>(size) * sizeof(T));
      lapack_.syevd('V', reads_lower_ ? 'U' : 'L', n_, a, values, space, lwork_, rwork, lrwork_, iwork, liwork_, info);
    }
    if (info != 0) {
      fill_nan(vectors, size);
      fill_nan(values, n_);
      return;
    }
    if constexpr (kComplex<T>) {
      for (int64_t i = 0; i < size; ++i) a[i] = std::conj(a[i]);
    }
    transpose(a, n_, n_, vectors);
  }

  char jobz() const { return results_ == 1 ? 'N' : full_ ? 'A' : 'S'; }

  void svd(int64_t b, char* const* buffers, const T* in, T* a, T* space, R* rwork, int32_t* iwork,
           WorkArrays work) const {
    const int64_t size = int64_t{m_} * n_;
    const int64_t u_columns = full_ ? m_ : k_;
    const int64_t v_rows = full_ ? n_ : k_;
    const bool vectors = results_ == 3;
    R* s = matrix<R>(buffers[1], b, k_);
    T* u = vectors ? work.take<T>(m_ * u_columns) : a;
    T* v = vectors ? work.take<T>(n_ * v_rows) : a;
    T* u_out = vectors ? matrix<T>(buffers[2], b, m_ * u_columns) : nullptr;
    T* v_out = vectors ? matrix<T>(buffers[3], b, n_ * v_rows) : nullptr;
    int32_t info = 1;
    if (all_finite(in, size)) {
      transpose(in, m_, n_, a);
      lapack_.gesdd(jobz(), m_, n_, a, s, u, m_, v, static_cast<int32_t>(v_rows), space, lwork_, rwork, iwork, info);
    }
    if (info != 0) fill_nan(s, k_);
    if (!vectors) return;
    if (info != 0) {
      fill_nan(u_out, m_ * u_columns);
      fill_nan(v_out, n_ * v_rows);
      return;
    }
    transpose(u, u_columns, m_, u_out);
    transpose(v, n_, v_rows, v_out);
  }

  /// Writes eigenvectors as the columns of a row-major complex matrix. In the real form, a complex eigenvalue in `w`
  /// has two adjacent columns: the real and the imaginary part of its vector.
  void write_vectors(const T* v, const T* w, C* out) const {
    const int64_t n = n_;
    if constexpr (kComplex<T>) {
      transpose(v, n, n, out);
    } else {
      for (int64_t j = 0; j < n; ++j) {
        const bool pair = w[n + j] != 0 && j + 1 < n;
        for (int64_t i = 0; i < n; ++i) {
          const R re = v[j * n + i];
          const R im = pair ? v[(j + 1) * n + i] : R(0);
          out[i * n + j] = C(re, im);
          if (pair) out[i * n + j + 1] = C(re, -im);
        }
        j += pair;
      }
    }
  }

  void eig(int64_t b, char* const* buffers, const T* in, T* a, T* space, R* rwork, WorkArrays work) const {
    const int64_t n = n_;
    T* w = work.take<T>(2 * n);
    T* left = work.take<T>(n * n);
    T* right = work.take<T>(n * n);
    C* values = matrix<C>(buffers[1], b, n);
    C* right_out = results_ > 1 ? matrix<C>(buffers[results_], b, n * n) : nullptr;
    C* left_out = results_ > 2 ? matrix<C>(buffers[2], b, n * n) : nullptr;
    int32_t info = 1;
    if (all_finite(in, n * n)) {
      transpose(in, n, n, a);
      lapack_.geev(left_out ? 'V' : 'N', right_out ? 'V' : 'N', n_, a, w, left, right, space, lwork_, rwork, info);
    }
    if (info != 0) {
      fill_nan(values, n);
      if (right_out) fill_nan(right_out, n * n);
      if (left_out) fill_nan(left_out, n * n);
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (kComplex<T>) {
        values[i] = w[i];
      } else {
        values[i] = C(w[i], w[n + i]);
      }
    }
    if (right_out) write_vectors(right, w, right_out);
    if (left_out) write_vectors(left, w, left_out);
  }

  void schur(int64_t b, char* const* buffers, const T* in, T* a, T* space, R* rwork, WorkArrays work) const {
    const int64_t n = n_;
    T* w = work.take<T>(2 * n);
    T* vectors = work.take<T>(n * n);
    T* t_out = matrix<T>(buffers[1], b, n * n);
    T* z_out = results_ > 1 ? matrix<T>(buffers[2], b, n * n) : nullptr;
    int32_t info = 1;
    if (all_finite(in, n * n)) {
      transpose(in, n, n, a);
      lapack_.gees(z_out ? 'V' : 'N', n_, a, w, vectors, space, lwork_, rwork, info);
    }
    if (info != 0) {
      fill_nan(t_out, n * n);
      if (z_out) fill_nan(z_out, n * n);
      return;
    }
    transpose(a, n, n, t_out);
    if (z_out) transpose(vectors, n, n, z_out);
  }

  Factorization kind_;
  const Lapack<T>& lapack_;
  int64_t batch_ = 1;
  size_t results_ = 0;
  size_t places_ = 0;  ///< number of operands and results
  int32_t m_ = 0;
  int32_t n_ = 0;
  int32_t k_ = 0;
  int32_t factors_ = 0;
  bool full_ = false;         ///< true if u and v^H are square
  bool reads_lower_ = false;  ///< an eigendecomposition reads the lower triangle alone
  int32_t lwork_ = 0;
  int32_t lrwork_ = 0;
  int32_t liwork_ = 0;
  int64_t work_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Routine> make_factorization(const RoutineCall& call) {
  if (!has_lapack()) return nullptr;
  const auto kind = static_cast<Factorization>(call.numbers[0]);
  switch (call.operands[0].element) {
    case COLLET_TYPE_F32:
      return std::make_unique<Factorize<float>>(call, kind);
    case COLLET_TYPE_F64:
      return std::make_unique<Factorize<double>>(call, kind);
    case COLLET_TYPE_C64:
      return std::make_unique<Factorize<std::complex<float>>>(call, kind);
    default:
      return std::make_unique<Factorize<std::complex<double>>>(call, kind);
  }
}

}  // namespace collet::codegen
