// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/matrix_calls.h"

#include <collet/kernel_backend.hpp>

#include <algorithm>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace collet::gpu {
namespace {

using codegen::LibraryFactorization;
using Kind = LibraryFactorization::Kind;

constexpr uint64_t kBlasWorkspaceBytes = uint64_t{32} << 20;  ///< the size that NVIDIA recommends for Hopper
constexpr uint64_t kAlignment = 256;                          ///< alignment of each part of a call's work memory
/// Most matrices of a batch that are factorized by one call each where one call for the whole batch exists, too.
constexpr int64_t kMostSingleCalls = 64;
/// Largest matrices for which a call for a whole batch is expected to be faster than a call for each matrix. Such calls
/// give each matrix few threads.
constexpr int64_t kMostBatchedRows = 128;
/// Most rows and columns for gesvdjBatched. syevjBatched is fastest for as many.
constexpr int64_t kMostJacobiBatchRows = 32;
/// Most columns for which Jacobi's method for singular values is compared with the QR algorithm.
constexpr int64_t kMostJacobiColumns = 512;

void check(cublasStatus_t status, const char* function) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw kernel::Error(status == CUBLAS_STATUS_ALLOC_FAILED ? COLLET_RESOURCE_EXHAUSTED : COLLET_INTERNAL,
                      std::string(function) + ": cuBLAS status " + std::to_string(static_cast<unsigned>(status)));
}

void check(cusolverStatus_t status, const char* function) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  throw kernel::Error(status == CUSOLVER_STATUS_ALLOC_FAILED ? COLLET_RESOURCE_EXHAUSTED : COLLET_INTERNAL,
                      std::string(function) + ": cuSOLVER status " + std::to_string(static_cast<unsigned>(status)));
}

/// The functions for elements of type T.
template <class T>
struct Functions;

#define COLLET_MATRIX_FUNCTIONS(T, P, REAL, SY, ORTHO, DATA_TYPE, REAL_DATA_TYPE)                    \
  template <>                                                                                        \
  struct Functions<T> {                                                                              \
    using Real = REAL;                                                                               \
    static constexpr cudaDataType_t data_type = DATA_TYPE, real_data_type = REAL_DATA_TYPE;          \
    static constexpr auto trsm = &Libraries::cublas##P##trsm_v2;                                     \
    static constexpr auto trsm_batched = &Libraries::cublas##P##trsmBatched;                         \
    static constexpr auto getrf_batched = &Libraries::cublas##P##getrfBatched;                       \
    static constexpr auto geqrf_batched = &Libraries::cublas##P##geqrfBatched;                       \
    static constexpr auto geam = &Libraries::cublas##P##geam;                                        \
    static constexpr auto potrf_size = &Libraries::cusolverDn##P##potrf_bufferSize;                  \
    static constexpr auto potrf = &Libraries::cusolverDn##P##potrf;                                  \
    static constexpr auto potrf_batched = &Libraries::cusolverDn##P##potrfBatched;                   \
    static constexpr auto getrf_size = &Libraries::cusolverDn##P##getrf_bufferSize;                  \
    static constexpr auto getrf = &Libraries::cusolverDn##P##getrf;                                  \
    static constexpr auto geqrf_size = &Libraries::cusolverDn##P##geqrf_bufferSize;                  \
    static constexpr auto geqrf = &Libraries::cusolverDn##P##geqrf;                                  \
    static constexpr auto orgqr_size = &Libraries::cusolverDn##P##ORTHO##gqr_bufferSize;             \
    static constexpr auto orgqr = &Libraries::cusolverDn##P##ORTHO##gqr;                             \
    static constexpr auto syevd_size = &Libraries::cusolverDn##P##SY##evd_bufferSize;                \
    static constexpr auto syevd = &Libraries::cusolverDn##P##SY##evd;                                \
    static constexpr auto syevj_batched_size = &Libraries::cusolverDn##P##SY##evjBatched_bufferSize; \
    static constexpr auto syevj_batched = &Libraries::cusolverDn##P##SY##evjBatched;                 \
    static constexpr auto gesvd_size = &Libraries::cusolverDn##P##gesvd_bufferSize;                  \
    static constexpr auto gesvd = &Libraries::cusolverDn##P##gesvd;                                  \
    static constexpr auto gesvdj_size = &Libraries::cusolverDn##P##gesvdj_bufferSize;                \
    static constexpr auto gesvdj = &Libraries::cusolverDn##P##gesvdj;                                \
    static constexpr auto gesvdj_batched_size = &Libraries::cusolverDn##P##gesvdjBatched_bufferSize; \
    static constexpr auto gesvdj_batched = &Libraries::cusolverDn##P##gesvdjBatched;                 \
  };
COLLET_MATRIX_FUNCTIONS(float, S, float, sy, or, CUDA_R_32F, CUDA_R_32F)
COLLET_MATRIX_FUNCTIONS(double, D, double, sy, or, CUDA_R_64F, CUDA_R_64F)
COLLET_MATRIX_FUNCTIONS(cuComplex, C, float, he, un, CUDA_C_32F, CUDA_R_32F)
COLLET_MATRIX_FUNCTIONS(cuDoubleComplex, Z, double, he, un, CUDA_C_64F, CUDA_R_64F)
#undef COLLET_MATRIX_FUNCTIONS

/// Divides a call's work memory into parts.
class Parts {
 public:
  /// Adds a part; returns its offset in bytes.
  uint64_t add(uint64_t bytes) {
    return std::exchange(bytes_, bytes_ + (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

}  // namespace

/// A way that consists of what a function does.
class MatrixCalls::Way final : public LibraryWay {
 public:
  using Run = std::function<void(const uint64_t* addresses)>;
  Way(MatrixCalls& calls, bool may_be_captured, Run run)
      : calls_(calls), may_be_captured_(may_be_captured), run_(std::move(run)) {}
  void launch(const uint64_t* addresses, CUstream stream) override {
    const std::lock_guard<std::mutex> lock(calls_.mutex_);
    if (calls_.stream_ != stream) calls_.set_stream(stream);
    run_(addresses);
  }
  bool may_be_captured() const override { return may_be_captured_; }

 private:
  MatrixCalls& calls_;
  const bool may_be_captured_;
  const Run run_;
};

/// Prepares the ways of a factorization of matrices with elements of type T.
template <class T>
class MatrixCalls::Maker {
 public:
  /// `ways` receives the ways.
  Maker(MatrixCalls& calls, const LibraryFactorization& what, std::vector<std::unique_ptr<LibraryWay>>& ways)
      : calls_(calls),
        what_(what),
        rows_(static_cast<int>(what.rows)),
        columns_(static_cast<int>(what.columns)),
        least_(std::min(rows_, columns_)),
        batches_(static_cast<int>(what.batches)),
        ways_(&ways) {}

  void make() {
    switch (what_.kind) {
      case Kind::kCholesky:
        in_order(rows_, [&] { cholesky_batched(); }, [&] { cholesky(); });
        break;
      case Kind::kTriangularSolve:
        in_order(order(), [&] { solve_batched(); }, [&] { solve(); });
        break;
      case Kind::kLu:
        if (rows_ == columns_) {
          in_order(rows_, [&] { lu_batched(); }, [&] { lu(); });
        } else {
          lu();
        }
        break;
      case Kind::kQr:
        in_order(std::max(rows_, columns_), [&] { qr_batched(); }, [&] { qr(); });
        break;
      case Kind::kReflectors:
        reflectors();
        break;
      case Kind::kEigh:
        eigh_ways();
        break;
      case Kind::kSvd:
        svd_ways();
        break;
    }
    if (ways_->empty() && problem_) std::rethrow_exception(problem_);
  }

 private:
  using F = Functions<T>;
  using Real = typename F::Real;

  /// Calls `way`, which makes a way; leaves it out if the library refuses it.
  template <class Make>
  void attempt(const Make& way) {
    try {
      way();
    } catch (const kernel::Error& error) {
      if (error.code() == COLLET_UNAVAILABLE) throw;
      problem_ = std::current_exception();
    }
  }
  /// Makes a way with one call for the whole batch and a way with a call for each matrix, as far as they are reasonable.
  template <class Batched, class Single>
  void in_order(int rows, const Batched& batched, const Single& single) {
    if (batches_ == 1) return attempt(single);
    const bool has_singles = batches_ <= kMostSingleCalls;
    const bool prefers_singles = has_singles && rows > kMostBatchedRows;
    if (prefers_singles) attempt(single);
    attempt(batched);
    if (has_singles && !prefers_singles) attempt(single);
  }

  static T* array(uint64_t address) { return reinterpret_cast<T*>(address); }
  static Real* reals(uint64_t address) { return reinterpret_cast<Real*>(address); }
  static int* ints(uint64_t address) { return reinterpret_cast<int*>(address); }
  static T** pointers(uint64_t address) { return reinterpret_cast<T**>(address); }
  static T number(Real x) {
    if constexpr (std::is_same_v<T, Real>) {
      return x;
    } else {
      return {x, 0};
    }
  }

  int order() const { return what_.left ? rows_ : columns_; }
  int64_t elements() const { return int64_t{rows_} * columns_; }
  cublasFillMode_t triangle() const { return what_.lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER; }
  cublasSideMode_t side() const { return what_.left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT; }
  cublasDiagType_t diagonal() const { return what_.unit_diagonal ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT; }
  cublasOperation_t operation() const {
    return !what_.transposed ? CUBLAS_OP_N : what_.conjugated ? CUBLAS_OP_C : CUBLAS_OP_T;
  }
  /// Calls a function of a library with its handle.
  template <class Function, class... Arguments>
  void blas(const char* name, Function function, Arguments... arguments) const {
    check((calls_.libraries_.*function)(calls_.blas_, arguments...), name);
  }
  template <class Function, class... Arguments>
  void solver(const char* name, Function function, Arguments... arguments) const {
    check((calls_.libraries_.*function)(calls_.solver_, arguments...), name);
  }
  /// The same for a function that writes the length of a work array, in elements, through its last argument.
  template <class Function, class... Arguments>
  int length(const char* name, Function function, Arguments... arguments) const {
    int out = 0;
    solver(name, function, arguments..., &out);
    if (out < 0) throw kernel::Error(COLLET_INTERNAL, std::string(name) + ": a negative size");
    return out;
  }
  /// Whether functions of cuSOLVER, and cuBLAS' factorizations, only put work on the stream is not documented.
  void add(bool may_be_captured, Way::Run run) {
    ways_->push_back(std::make_unique<Way>(calls_, may_be_captured, std::move(run)));
  }
  uint64_t area(const Parts& parts) const { return calls_.areas_.get(parts.bytes()); }
  void write_pointers(uint64_t to, uint64_t first, int64_t elements) const {
    calls_.kernels_.write_pointers(to, first, static_cast<uint64_t>(elements) * sizeof(T),
                                   static_cast<uint64_t>(batches_), calls_.stream_);
  }

  void cholesky() {
    const int size = length("potrf_bufferSize", F::potrf_size, triangle(), rows_, array(0), rows_);
    Parts parts;
    parts.add(static_cast<uint64_t>(size) * sizeof(T));
    add(false, [self = *this, size, work = area(parts)](const uint64_t* at) {
      for (int b = 0; b < self.batches_; ++b) {
        self.solver("potrf", F::potrf, self.triangle(), self.rows_, array(at[0]) + b * self.elements(), self.rows_,
                    array(work), size, ints(at[1]) + b);
      }
    });
  }
  void cholesky_batched() {
    Parts parts;
    parts.add(static_cast<uint64_t>(batches_) * sizeof(T*));
    add(false, [self = *this, list = area(parts)](const uint64_t* at) {
      self.write_pointers(list, at[0], self.elements());
      self.solver("potrfBatched", F::potrf_batched, self.triangle(), self.rows_, pointers(list), self.rows_,
                  ints(at[1]), self.batches_);
    });
  }

  void solve() {
    add(true, [self = *this, one = number(1)](const uint64_t* at) {
      const int64_t n = self.order();
      for (int b = 0; b < self.batches_; ++b) {
        self.blas("trsm", F::trsm, self.side(), self.triangle(), self.operation(), self.diagonal(), self.rows_,
                  self.columns_, &one, array(at[0]) + b * n * n, self.order(), array(at[1]) + b * self.elements(),
                  self.rows_);
      }
    });
  }
  void solve_batched() {
    Parts parts;
    const uint64_t list_bytes = static_cast<uint64_t>(batches_) * sizeof(T*);
    const uint64_t first = parts.add(list_bytes), second = parts.add(list_bytes);
    const uint64_t begin = area(parts);
    add(true, [self = *this, one = number(1), a = begin + first, b = begin + second](const uint64_t* at) {
      self.write_pointers(a, at[0], int64_t{self.order()} * self.order());
      self.write_pointers(b, at[1], self.elements());
      self.blas("trsmBatched", F::trsm_batched, self.side(), self.triangle(), self.operation(), self.diagonal(),
                self.rows_, self.columns_, &one, pointers(a), self.order(), pointers(b), self.rows_, self.batches_);
    });
  }

  /// Writes the orders of rows from the pivots. `at` are the addresses of the places of an LU.
  void write_orders(const uint64_t* at) const {
    calls_.kernels_.write_orders(at[1], at[2], static_cast<uint64_t>(rows_), static_cast<uint64_t>(least_),
                                 static_cast<uint64_t>(batches_), calls_.stream_);
  }
  void lu() {
    const int size = length("getrf_bufferSize", F::getrf_size, rows_, columns_, array(0), rows_);
    Parts parts;
    parts.add(static_cast<uint64_t>(size) * sizeof(T));
    add(false, [self = *this, work = area(parts)](const uint64_t* at) {
      for (int b = 0; b < self.batches_; ++b) {
        self.solver("getrf", F::getrf, self.rows_, self.columns_, array(at[0]) + b * self.elements(), self.rows_,
                    array(work), ints(at[1]) + int64_t{b} * self.least_, ints(at[3]) + b);
      }
      self.write_orders(at);
    });
  }
  void lu_batched() {
    Parts parts;
    parts.add(static_cast<uint64_t>(batches_) * sizeof(T*));
    add(false, [self = *this, list = area(parts)](const uint64_t* at) {
      self.write_pointers(list, at[0], self.elements());
      self.blas("getrfBatched", F::getrf_batched, self.rows_, pointers(list), self.rows_, ints(at[1]), ints(at[3]),
                self.batches_);
      self.write_orders(at);
    });
  }

  void qr() {
    const int size = length("geqrf_bufferSize", F::geqrf_size, rows_, columns_, array(0), rows_);
    Parts parts;
    const uint64_t info = parts.add(sizeof(int)), work = parts.add(static_cast<uint64_t>(size) * sizeof(T));
    const uint64_t begin = area(parts);
    add(false, [self = *this, size, info = begin + info, work = begin + work](const uint64_t* at) {
      for (int b = 0; b < self.batches_; ++b) {
        self.solver("geqrf", F::geqrf, self.rows_, self.columns_, array(at[0]) + b * self.elements(), self.rows_,
                    array(at[1]) + int64_t{b} * self.least_, array(work), size, ints(info));
      }
    });
  }
  void qr_batched() {
    Parts parts;
    const uint64_t list_bytes = static_cast<uint64_t>(batches_) * sizeof(T*);
    const uint64_t first = parts.add(list_bytes), second = parts.add(list_bytes);
    const uint64_t begin = area(parts);
    add(false, [self = *this, a = begin + first, factors = begin + second](const uint64_t* at) {
      self.write_pointers(a, at[0], self.elements());
      self.write_pointers(factors, at[1], self.least_);
      int info = 0;  // tells of arguments that are not valid
      self.blas("geqrfBatched", F::geqrf_batched, self.rows_, self.columns_, pointers(a), self.rows_, pointers(factors),
                &info, self.batches_);
      if (info != 0) throw kernel::Error(COLLET_INTERNAL, "geqrfBatched: argument " + std::to_string(-info));
    });
  }

  void reflectors() {
    const int factors = static_cast<int>(what_.factors);
    const int size = length("orgqr_bufferSize", F::orgqr_size, rows_, columns_, factors, array(0), rows_, array(0));
    Parts parts;
    const uint64_t info = parts.add(sizeof(int)), work = parts.add(static_cast<uint64_t>(size) * sizeof(T));
    const uint64_t begin = area(parts);
    add(false, [self = *this, factors, size, info = begin + info, work = begin + work](const uint64_t* at) {
      for (int b = 0; b < self.batches_; ++b) {
        self.solver("orgqr", F::orgqr, self.rows_, self.columns_, factors, array(at[0]) + b * self.elements(),
                    self.rows_, array(at[1]) + int64_t{b} * factors, array(work), size, ints(info));
      }
    });
  }

  void eigh_ways() {
    if (rows_ <= kMostJacobiBatchRows) attempt([&] { eigh_jacobi(); });
    const bool prefers_singles = batches_ <= kMostSingleCalls;
    if (prefers_singles) attempt([&] { eigh(); });
    attempt([&] { eigh_batched(); });
    if (ways_->empty()) attempt([&] { eigh(); });
  }
  void eigh() {
    const int size = length("syevd_bufferSize", F::syevd_size, CUSOLVER_EIG_MODE_VECTOR, triangle(), rows_, array(0),
                            rows_, reals(0));
    Parts parts;
    parts.add(static_cast<uint64_t>(size) * sizeof(T));
    add(false, [self = *this, size, work = area(parts)](const uint64_t* at) {
      for (int b = 0; b < self.batches_; ++b) {
        self.solver("syevd", F::syevd, CUSOLVER_EIG_MODE_VECTOR, self.triangle(), self.rows_,
                    array(at[0]) + b * self.elements(), self.rows_, reals(at[1]) + int64_t{b} * self.rows_, array(work),
                    size, ints(at[2]) + b);
      }
    });
  }
  void eigh_jacobi() {
    int size = 0;
    solver("syevjBatched_bufferSize", F::syevj_batched_size, CUSOLVER_EIG_MODE_VECTOR, triangle(), rows_, array(0),
           rows_, reals(0), &size, calls_.syevj_, batches_);
    Parts parts;
    parts.add(static_cast<uint64_t>(size) * sizeof(T));
    add(false, [self = *this, size, work = area(parts)](const uint64_t* at) {
      self.solver("syevjBatched", F::syevj_batched, CUSOLVER_EIG_MODE_VECTOR, self.triangle(), self.rows_, array(at[0]),
                  self.rows_, reals(at[1]), array(work), size, ints(at[2]), self.calls_.syevj_, self.batches_);
    });
  }
  void eigh_batched() {
    if (!calls_.libraries_.cusolverDnXsyevBatched || !calls_.libraries_.cusolverDnXsyevBatched_bufferSize) return;
    size_t bytes = 0, host_bytes = 0;
    const cusolverStatus_t found = calls_.libraries_.cusolverDnXsyevBatched_bufferSize(
        calls_.solver_, calls_.params_, CUSOLVER_EIG_MODE_VECTOR, triangle(), rows_, F::data_type, nullptr, rows_,
        F::real_data_type, nullptr, F::data_type, &bytes, &host_bytes, batches_);
    if (found != CUSOLVER_STATUS_SUCCESS) return;
    Parts parts;
    parts.add(bytes);
    const auto host = std::make_shared<std::vector<char>>(host_bytes);
    add(false, [self = *this, bytes, host, work = area(parts)](const uint64_t* at) {
      self.solver("XsyevBatched", &Libraries::cusolverDnXsyevBatched, self.calls_.params_, CUSOLVER_EIG_MODE_VECTOR,
                  self.triangle(), int64_t{self.rows_}, F::data_type, reinterpret_cast<void*>(at[0]),
                  int64_t{self.rows_}, F::real_data_type, reinterpret_cast<void*>(at[1]), F::data_type,
                  reinterpret_cast<void*>(work), bytes, static_cast<void*>(host->data()), host->size(), ints(at[2]),
                  int64_t{self.batches_});
    });
  }

  /// The addresses of the places of an svd.
  struct SvdPlaces {
    SvdPlaces(const uint64_t* at, bool vectors)
        : a(at[0]), s(at[1]), u(vectors ? at[2] : 0), v(vectors ? at[3] : 0), info(at[vectors ? 4 : 2]) {}
    uint64_t a, s, u, v, info;
  };
  int u_columns() const { return what_.full ? rows_ : columns_; }
  cusolverEigMode_t mode() const { return what_.vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR; }
  void svd_ways() {
    const bool is_small = rows_ <= kMostJacobiBatchRows;
    if (is_small) attempt([&] { svd_jacobi_batched(); });
    const bool has_singles = !is_small || batches_ <= kMostSingleCalls;
    if (has_singles && columns_ <= kMostJacobiColumns) attempt([&] { svd_jacobi(); });
    if (has_singles) attempt([&] { svd(); });
  }
  void svd() {
    const int size = length("gesvd_bufferSize", F::gesvd_size, rows_, columns_);
    Parts parts;
    const uint64_t adjoint = parts.add(static_cast<uint64_t>(columns_) * static_cast<uint64_t>(columns_) * sizeof(T));
    const uint64_t work = parts.add(static_cast<uint64_t>(size) * sizeof(T));
    const uint64_t begin = area(parts);
    add(false, [self = *this, size, adjoint = begin + adjoint, work = begin + work, one = number(1),
                zero = number(0)](const uint64_t* addresses) {
      const SvdPlaces at(addresses, self.what_.vectors);
      const auto job = static_cast<signed char>(!self.what_.vectors ? 'N' : self.what_.full ? 'A' : 'S');
      const int n = self.columns_;
      for (int64_t b = 0; b < self.batches_; ++b) {
        T* const u = self.what_.vectors ? array(at.u) + b * self.rows_ * self.u_columns() : nullptr;
        T* const vt = self.what_.vectors ? array(adjoint) : nullptr;
        self.solver("gesvd", F::gesvd, job, job, self.rows_, n, array(at.a) + b * self.elements(), self.rows_,
                    reals(at.s) + b * n, u, self.rows_, vt, n, array(work), size, static_cast<Real*>(nullptr),
                    ints(at.info) + b);
        if (!self.what_.vectors) continue;
        self.blas("geam", F::geam, CUBLAS_OP_C, CUBLAS_OP_C, n, n, &one, vt, n, &zero, vt, n, array(at.v) + b * n * n,
                  n);
      }
    });
  }
  void svd_jacobi() {
    const int economy = what_.full ? 0 : 1;
    int size = 0;
    solver("gesvdj_bufferSize", F::gesvdj_size, mode(), economy, rows_, columns_, array(0), rows_, reals(0), array(0),
           rows_, array(0), columns_, &size, calls_.gesvdj_);
    // Memory for vectors that are not wanted: the function is given valid arrays in any case.
    const bool lacks_arrays = !what_.vectors;
    Parts parts;
    const uint64_t work = parts.add(static_cast<uint64_t>(size) * sizeof(T));
    const uint64_t unused =
        parts.add(lacks_arrays ? static_cast<uint64_t>(elements() + int64_t{columns_} * columns_) * sizeof(T) : 0);
    const uint64_t begin = area(parts);
    add(false, [self = *this, economy, size, work = begin + work, unused = begin + unused](const uint64_t* addresses) {
      const SvdPlaces at(addresses, self.what_.vectors);
      const int n = self.columns_;
      for (int64_t b = 0; b < self.batches_; ++b) {
        T* const u = self.what_.vectors ? array(at.u) + b * self.rows_ * self.u_columns() : array(unused);
        T* const v = self.what_.vectors ? array(at.v) + b * n * n : array(unused) + self.elements();
        self.solver("gesvdj", F::gesvdj, self.mode(), economy, self.rows_, n, array(at.a) + b * self.elements(),
                    self.rows_, reals(at.s) + b * n, u, self.rows_, v, n, array(work), size, ints(at.info) + b,
                    self.calls_.gesvdj_);
      }
    });
  }
  /// The function for a batch always writes all columns of u.
  void svd_jacobi_batched() {
    int size = 0;
    solver("gesvdjBatched_bufferSize", F::gesvdj_batched_size, mode(), rows_, columns_, array(0), rows_, reals(0),
           array(0), rows_, array(0), columns_, &size, calls_.gesvdj_, batches_);
    const bool cuts = what_.vectors && !what_.full && rows_ != columns_;
    const int64_t square = int64_t{rows_} * rows_;
    Parts parts;
    const uint64_t work = parts.add(static_cast<uint64_t>(size) * sizeof(T));
    const uint64_t all_u = parts.add(cuts || !what_.vectors ? static_cast<uint64_t>(square * batches_) * sizeof(T) : 0);
    const uint64_t all_v =
        parts.add(!what_.vectors ? static_cast<uint64_t>(int64_t{columns_} * columns_ * batches_) * sizeof(T) : 0);
    const uint64_t begin = area(parts);
    add(false, [self = *this, size, cuts, square, work = begin + work, all_u = begin + all_u, all_v = begin + all_v,
                one = number(1), zero = number(0)](const uint64_t* addresses) {
      const SvdPlaces at(addresses, self.what_.vectors);
      const uint64_t u = cuts || !self.what_.vectors ? all_u : at.u, v = self.what_.vectors ? at.v : all_v;
      self.solver("gesvdjBatched", F::gesvdj_batched, self.mode(), self.rows_, self.columns_, array(at.a), self.rows_,
                  reals(at.s), array(u), self.rows_, array(v), self.columns_, array(work), size, ints(at.info),
                  self.calls_.gesvdj_, self.batches_);
      if (!cuts) return;
      // The first columns of each u are the begin of its memory.
      const int used = static_cast<int>(self.elements());
      self.blas("geam", F::geam, CUBLAS_OP_N, CUBLAS_OP_N, used, self.batches_, &one, array(u),
                static_cast<int>(square), &zero, array(u), static_cast<int>(square), array(at.u), used);
    });
  }

  MatrixCalls& calls_;
  const LibraryFactorization what_;
  const int rows_, columns_, least_, batches_;
  std::vector<std::unique_ptr<LibraryWay>>* ways_;
  std::exception_ptr problem_{};  ///< why a way was left out
};

MatrixCalls::MatrixCalls(const Libraries& libraries, const Driver& driver, MatrixKernels::Check check_driver,
                         CUstream stream, const WorkAreas::Allocate& allocate)
    : libraries_(libraries), kernels_(driver, std::move(check_driver)), stream_(stream), areas_(allocate) {
  try {
    check(libraries_.cublasCreate_v2(&blas_), "cublasCreate_v2");
    check(libraries_.cusolverDnCreate(&solver_), "cusolverDnCreate");
    check(libraries_.cusolverDnCreateParams(&params_), "cusolverDnCreateParams");
    check(libraries_.cusolverDnCreateSyevjInfo(&syevj_), "cusolverDnCreateSyevjInfo");
    check(libraries_.cusolverDnCreateGesvdjInfo(&gesvdj_), "cusolverDnCreateGesvdjInfo");
    blas_workspace_ = allocate(kBlasWorkspaceBytes);
    set_stream(stream);
  } catch (...) {
    close();
    throw;
  }
}

MatrixCalls::~MatrixCalls() {
  close();
}

void MatrixCalls::set_stream(CUstream stream) {
  check(libraries_.cusolverDnSetStream(solver_, stream), "cusolverDnSetStream");
  check(libraries_.cublasSetStream_v2(blas_, stream), "cublasSetStream_v2");
  // With a new stream, cuBLAS goes back to a workspace of its own.
  check(libraries_.cublasSetWorkspace_v2(blas_, reinterpret_cast<void*>(blas_workspace_), kBlasWorkspaceBytes),
        "cublasSetWorkspace_v2");
  stream_ = stream;
}

void MatrixCalls::close() noexcept {
  if (gesvdj_) libraries_.cusolverDnDestroyGesvdjInfo(gesvdj_);
  if (syevj_) libraries_.cusolverDnDestroySyevjInfo(syevj_);
  if (params_) libraries_.cusolverDnDestroyParams(params_);
  if (solver_) libraries_.cusolverDnDestroy(solver_);
  if (blas_) libraries_.cublasDestroy_v2(blas_);
}

std::vector<std::unique_ptr<LibraryWay>> MatrixCalls::prepare(const LibraryFactorization& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::unique_ptr<LibraryWay>> ways;
  switch (what.type) {
    case COLLET_TYPE_F32:
      Maker<float>(*this, what, ways).make();
      break;
    case COLLET_TYPE_F64:
      Maker<double>(*this, what, ways).make();
      break;
    case COLLET_TYPE_C64:
      Maker<cuComplex>(*this, what, ways).make();
      break;
    case COLLET_TYPE_C128:
      Maker<cuDoubleComplex>(*this, what, ways).make();
      break;
    default:
      break;
  }
  return ways;
}

std::vector<CUdeviceptr> MatrixCalls::areas() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<CUdeviceptr> out;
  if (blas_workspace_ != 0) out.push_back(blas_workspace_);
  areas_.list(out);
  return out;
}

}  // namespace collet::gpu
