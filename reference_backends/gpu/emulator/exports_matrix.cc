// SPDX-License-Identifier: Apache-2.0
// Implements the functions of cuBLAS and cuSOLVER for matrices that the gpu backend calls. They compute on the host, in the
// order of the stream.
#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/emulator/dense_algebra.h"
#include "reference_backends/gpu/emulator/entry.h"
#include "reference_backends/gpu/emulator/library_elements.h"

namespace collet::gpu {

struct cublasContext {
  int device = 0;
  CUstream stream = nullptr;
};
struct cusolverDnContext {
  int device = 0;
  CUstream stream = nullptr;
};
struct cusolverDnParams {};
struct syevjInfo {};
struct gesvdjInfo {};

#define COLLET_BLAS_FUNCTION(name, parameters) COLLET_EXPORT cublasStatus_t name parameters;
#include "reference_backends/gpu/library/blas_functions.def"
#define COLLET_CUSOLVER_FUNCTION(name, parameters) COLLET_EXPORT cusolverStatus_t name parameters;
#define COLLET_CUSOLVER_OPTIONAL(name, parameters) COLLET_EXPORT cusolverStatus_t name parameters;
#include "reference_backends/gpu/library/cusolver_functions.def"

namespace {

using emulator::bytes_of;
using emulator::Complex;
using emulator::Dense;
using emulator::Elements;
using emulator::Entry;
using emulator::in_context;
using emulator::mark_written;
using emulator::problem_of;

constexpr int kMostJacobiBatchRows = 32;

cublasStatus_t status_of(cublasHandle_t, CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return CUBLAS_STATUS_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
      return CUBLAS_STATUS_INVALID_VALUE;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return CUBLAS_STATUS_ALLOC_FAILED;
    default:
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

cusolverStatus_t status_of(cusolverDnHandle_t, CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return CUSOLVER_STATUS_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
      return CUSOLVER_STATUS_INVALID_VALUE;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return CUSOLVER_STATUS_ALLOC_FAILED;
    default:
      return CUSOLVER_STATUS_EXECUTION_FAILED;
  }
}

template <class T>
constexpr cudaDataType_t kType = CUDA_R_32F;
template <>
constexpr cudaDataType_t kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType_t kType<cuComplex> = CUDA_C_32F;
template <>
constexpr cudaDataType_t kType<cuDoubleComplex> = CUDA_C_64F;

cudaDataType_t real_type(cudaDataType_t type) {
  if (type == CUDA_C_32F) return CUDA_R_32F;
  return type == CUDA_C_64F ? CUDA_R_64F : type;
}

/// Device memory as a library function sees it while it runs. After an access that is not valid, the device has failed, and
/// nothing is read or written any more.
class Access {
 public:
  Access(emulator::State& state, int device, const char* function)
      : state_(state), device_(device), function_(function) {}

  bool failed() const { return failed_; }
  uint8_t* reads(uint64_t address, uint64_t bytes) { return checked(address, bytes, false); }
  uint8_t* writes(uint64_t address, uint64_t bytes) {
    uint8_t* const out = checked(address, bytes, true);
    if (out) mark_written(state_, address, bytes);
    return out;
  }
  Dense load(cudaDataType_t type, uint64_t address, int rows, int columns, int leading) {
    Dense out(rows, columns);
    const Elements elements(type);
    for (int j = 0; j < columns; ++j) {
      const uint8_t* const column =
          reads(address + static_cast<uint64_t>(j) * static_cast<uint64_t>(leading) * elements.bytes(),
                static_cast<uint64_t>(rows) * elements.bytes());
      if (!column) return out;
      for (int i = 0; i < rows; ++i) out(i, j) = elements.load(column + static_cast<size_t>(i) * elements.bytes());
    }
    return out;
  }
  /// Stores the begin of each column of a matrix: of all rows, or of those of a triangle, by `keep`.
  void store(cudaDataType_t type, uint64_t address, const Dense& a, int leading, int columns,
             const std::function<bool(int i, int j)>& keep = {}) {
    const Elements elements(type);
    for (int j = 0; j < columns; ++j) {
      uint8_t* const column =
          writes(address + static_cast<uint64_t>(j) * static_cast<uint64_t>(leading) * elements.bytes(),
                 static_cast<uint64_t>(a.rows) * elements.bytes());
      if (!column) return;
      for (int i = 0; i < a.rows; ++i) {
        if (!keep || keep(i, j)) elements.store(column + static_cast<size_t>(i) * elements.bytes(), a(i, j));
      }
    }
  }
  void store(cudaDataType_t type, uint64_t address, const std::vector<double>& values) {
    const Elements elements(type);
    uint8_t* const to = writes(address, values.size() * elements.bytes());
    for (size_t i = 0; to && i < values.size(); ++i) elements.store(to + i * elements.bytes(), values[i]);
  }
  void store(uint64_t address, const std::vector<int>& values) {
    uint8_t* const to = writes(address, values.size() * sizeof(int));
    if (to) std::memcpy(to, values.data(), values.size() * sizeof(int));
  }
  /// Overwrites work memory, as a library may.
  void spoil(uint64_t address, uint64_t bytes) {
    uint8_t* const to = bytes == 0 ? nullptr : writes(address, bytes);
    if (to) std::memset(to, 0xFF, bytes);
  }
  /// Returns the addresses in an array of pointers.
  std::vector<uint64_t> pointers(uint64_t address, int count) {
    std::vector<uint64_t> out(static_cast<size_t>(count));
    const uint8_t* const from = reads(address, out.size() * sizeof(uint64_t));
    if (from) std::memcpy(out.data(), from, out.size() * sizeof(uint64_t));
    return out;
  }

 private:
  uint8_t* checked(uint64_t address, uint64_t bytes, bool is_write) {
    if (failed_) return nullptr;
    const std::string what = function_ + (is_write ? " writes" : " reads");
    const std::string problem = problem_of(state_, what.c_str(), address, bytes, is_write);
    failed_ = !problem.empty();
    if (failed_) state_.fail_device(device_, CUDA_ERROR_ILLEGAL_ADDRESS, problem);
    return failed_ ? nullptr : state_.machine.memory->host(address);
  }

  emulator::State& state_;
  const int device_;
  const std::string function_;
  bool failed_ = false;
};

/// Puts `run` on the stream of a handle.
template <class Handle>
auto enqueue(Handle handle, const char* function, std::function<void(Access&)> run) {
  if (!handle) return status_of(handle, CUDA_ERROR_INVALID_VALUE);
  return status_of(handle, in_context([&](Entry& e) -> CUresult {
                     const auto on = e.stream(handle->stream);
                     if (!on || handle->device != e.index) return CUDA_ERROR_INVALID_VALUE;
                     emulator::State* const s = e.state;
                     e.scheduler().enqueue(on, [s, device = e.index, function, run = std::move(run)] {
                       Access access(*s, device, function);
                       run(access);
                     });
                     return CUDA_SUCCESS;
                   }));
}

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

template <class Handle>
auto refuse(Handle handle) {
  return status_of(handle, CUDA_ERROR_INVALID_VALUE);
}

/// A length of work memory, in elements: any number will do, and each function checks that it gets as much.
int work_length(int m, int n) {
  return 3 * std::max(m, n) + 5;
}

cusolverStatus_t give_length(cusolverDnHandle_t handle, int m, int n, int least_leading, int leading, int* length) {
  if (!handle || m < 0 || n < 0 || leading < std::max(1, least_leading) || !length)
    return CUSOLVER_STATUS_INVALID_VALUE;
  *length = work_length(m, n);
  return CUSOLVER_STATUS_SUCCESS;
}

/// A matrix of a call: where it is, and its sizes.
struct Place {
  cudaDataType_t type{};
  uint64_t address = 0;
  int rows = 0, columns = 0, leading = 0;
  bool is_valid() const { return rows >= 0 && columns >= 0 && leading >= std::max(1, rows); }
  Dense load(Access& access) const { return access.load(type, address, rows, columns, leading); }
  uint64_t work_bytes(int length) const { return static_cast<uint64_t>(length) * bytes_of(type); }
};

template <class T>
Place place(const T* a, int rows, int columns, int leading) {
  return {kType<T>, address_of(a), rows, columns, leading};
}

void run_cholesky(Access& access, const Place& a, bool lower, uint64_t info) {
  Dense m = a.load(access);
  const int failed = emulator::cholesky(m, lower);
  access.store(a.type, a.address, m, a.leading, a.columns, [&](int i, int j) { return lower ? i >= j : i <= j; });
  access.store(info, {failed});
}

void run_lu(Access& access, const Place& a, uint64_t pivots, uint64_t info) {
  Dense m = a.load(access);
  std::vector<int> exchanges;
  const int failed = emulator::factor_lu(m, exchanges);
  access.store(a.type, a.address, m, a.leading, a.columns);
  access.store(pivots, exchanges);
  access.store(info, {failed});
}

void run_qr(Access& access, const Place& a, uint64_t factors) {
  Dense m = a.load(access);
  const std::vector<Complex> found = emulator::factor_qr(m);
  access.store(a.type, a.address, m, a.leading, a.columns);
  Dense list(static_cast<int>(found.size()), 1);
  list.elements = found;
  access.store(a.type, factors, list, std::max(1, list.rows), 1);
}

void run_eigh(Access& access, const Place& a, bool lower, uint64_t values, uint64_t info) {
  Dense m = a.load(access);
  // The other triangle is not read.
  Dense read = m;
  for (int j = 0; j < m.columns; ++j) {
    for (int i = 0; i < m.rows; ++i) {
      if (lower ? i < j : i > j) read(i, j) = 0;
    }
  }
  const bool is_finite = emulator::is_finite(read);
  std::vector<double> found(static_cast<size_t>(a.rows), 0.0);
  if (is_finite) found = emulator::eigen_hermitian(m, lower);
  access.store(a.type, a.address, m, a.leading, a.columns);
  access.store(real_type(a.type), values, found);
  access.store(info, {is_finite ? 0 : 1});
}

/// Where the results of an svd go. Without vectors, `u` and `v` are not used.
struct SvdPlaces {
  uint64_t s = 0, u = 0, v = 0, info = 0;
  int u_columns = 0, u_leading = 0, v_leading = 0;
  bool adjoint = false;  ///< true if v^H is stored in place of v
};

void run_svd(Access& access, const Place& a, const SvdPlaces& to, bool vectors) {
  const Dense m = a.load(access);
  const bool is_finite = emulator::is_finite(m);
  emulator::SingularValues found{std::vector<double>(static_cast<size_t>(a.columns)), Dense(a.rows, a.rows),
                                 Dense(a.columns, a.columns)};
  if (is_finite) found = emulator::singular_values(m);
  access.spoil(a.address, static_cast<uint64_t>(a.leading) * static_cast<uint64_t>(a.columns) * bytes_of(a.type));
  access.store(real_type(a.type), to.s, found.s);
  access.store(to.info, {is_finite ? 0 : 1});
  if (!vectors) return;
  access.store(a.type, to.u, found.u, to.u_leading, to.u_columns);
  if (to.adjoint) {
    const Dense v = found.v;
    for (int j = 0; j < v.columns; ++j) {
      for (int i = 0; i < v.rows; ++i) found.v(i, j) = std::conj(v(j, i));
    }
  }
  access.store(a.type, to.v, found.v, to.v_leading, found.v.columns);
}

emulator::TriangularForm form_of(cublasSideMode_t side, cublasFillMode_t triangle, cublasOperation_t operation,
                                 cublasDiagType_t diagonal) {
  return {side == CUBLAS_SIDE_LEFT, triangle == CUBLAS_FILL_MODE_LOWER, diagonal == CUBLAS_DIAG_UNIT,
          operation != CUBLAS_OP_N, operation == CUBLAS_OP_C};
}

void run_solve(Access& access, const Place& a, const emulator::TriangularForm& form, const Place& b) {
  const Dense m = a.load(access);
  Dense x = b.load(access);
  emulator::solve_triangular(m, form, x);
  access.store(b.type, b.address, x, b.leading, b.columns);
}

template <class T>
bool is_number(const T* at, double value) {
  return at && Elements(kType<T>).load(reinterpret_cast<const uint8_t*>(at)) == Complex(value);
}

template <class T>
cublasStatus_t trsm(cublasHandle_t handle, const emulator::TriangularForm& form, const T* alpha, const Place& a,
                    const Place& b) {
  if (!is_number(alpha, 1) || !a.is_valid() || !b.is_valid()) return refuse(handle);
  return enqueue(handle, "trsm", [=](Access& access) { run_solve(access, a, form, b); });
}

template <class T>
cublasStatus_t trsm_batched(cublasHandle_t handle, const emulator::TriangularForm& form, const T* alpha, const Place& a,
                            const Place& b, int batches) {
  if (!is_number(alpha, 1) || !a.is_valid() || !b.is_valid() || batches < 0) return refuse(handle);
  return enqueue(handle, "trsmBatched", [=](Access& access) {
    const std::vector<uint64_t> as = access.pointers(a.address, batches), bs = access.pointers(b.address, batches);
    for (size_t i = 0; i < as.size() && !access.failed(); ++i) {
      Place one = a, other = b;
      one.address = as[i];
      other.address = bs[i];
      run_solve(access, one, form, other);
    }
  });
}

/// Calls `run` for each matrix of a batch that is given by an array of pointers.
template <class Run>
std::function<void(Access&)> for_each(const Place& a, int batches, const Run& run) {
  return [=](Access& access) {
    const std::vector<uint64_t> addresses = access.pointers(a.address, batches);
    for (size_t i = 0; i < addresses.size() && !access.failed(); ++i) {
      Place one = a;
      one.address = addresses[i];
      run(access, one, static_cast<uint64_t>(i));
    }
  };
}

template <class T>
cublasStatus_t geam(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, const T* alpha,
                    const Place& a, const T* beta, const Place& b, const Place& c) {
  if (!is_number(alpha, 1) || !is_number(beta, 0) || a_operation != b_operation || a.address != b.address ||
      a.address == c.address || !a.is_valid() || !b.is_valid() || !c.is_valid())
    return refuse(handle);
  return enqueue(handle, "geam", [=](Access& access) {
    const Dense from = a.load(access);
    Dense to(c.rows, c.columns);
    for (int j = 0; j < c.columns; ++j) {
      for (int i = 0; i < c.rows; ++i) {
        to(i, j) = a_operation == CUBLAS_OP_N   ? from(i, j)
                   : a_operation == CUBLAS_OP_T ? from(j, i)
                                                : std::conj(from(j, i));
      }
    }
    access.store(c.type, c.address, to, c.leading, c.columns);
  });
}

template <class Handle, class Made>
auto create(Handle* out, Made made) {
  return status_of(Handle(), in_context([&](Entry& e) -> CUresult {
                     if (!out) return CUDA_ERROR_INVALID_VALUE;
                     made.device = e.index;
                     *out = new Made(made);
                     return CUDA_SUCCESS;
                   }));
}

template <class Handle>
auto set_stream(Handle handle, CUstream stream) {
  return status_of(handle, in_context([&](Entry& e) -> CUresult {
                     if (!handle || handle->device != e.index || !e.stream(stream)) return CUDA_ERROR_INVALID_VALUE;
                     handle->stream = stream;
                     return CUDA_SUCCESS;
                   }));
}

template <class Info>
cusolverStatus_t make_info(Info** out) {
  if (!out) return CUSOLVER_STATUS_INVALID_VALUE;
  *out = new (std::nothrow) Info();
  return *out ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}

template <class Info>
cusolverStatus_t drop_info(Info* info) {
  delete info;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return create(handle, cublasContext());
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream stream) {
  return set_stream(handle, stream);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  return status_of(handle, in_context([&](Entry& e) -> CUresult {
                     const bool is_there = e.memory().problem_of(address_of(workspace), bytes, true, false).empty();
                     return handle && is_there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
                   }));
}

cusolverStatus_t cusolverGetVersion(int* version) {
  if (!version) return CUSOLVER_STATUS_INVALID_VALUE;
  *version = 1;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  return create(handle, cusolverDnContext());
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  delete handle;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, CUstream stream) {
  return set_stream(handle, stream);
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) {
  return make_info(params);
}

cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) {
  return drop_info(params);
}

cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t* params) {
  return make_info(params);
}

cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t params) {
  return drop_info(params);
}

cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* params) {
  return make_info(params);
}

cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t params) {
  return drop_info(params);
}

cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                   cusolverEigMode_t, cublasFillMode_t, int64_t n,
                                                   cudaDataType_t a_type, const void*, int64_t lda,
                                                   cudaDataType_t w_type, const void*, cudaDataType_t compute_type,
                                                   size_t* device_bytes, size_t* host_bytes, int64_t batches) {
  if (!handle || !params || n < 1 || lda < n || w_type != real_type(a_type) || compute_type != a_type ||
      !device_bytes || !host_bytes || batches < 1)
    return CUSOLVER_STATUS_INVALID_VALUE;
  *device_bytes = static_cast<size_t>(batches) * 24;
  *host_bytes = 16;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t mode,
                                        cublasFillMode_t triangle, int64_t n, cudaDataType_t a_type, void* a,
                                        int64_t lda, cudaDataType_t w_type, void* w, cudaDataType_t compute_type,
                                        void* device_work, size_t device_bytes, void* host_work, size_t host_bytes,
                                        int* info, int64_t batches) {
  size_t least = 0, least_host = 0;
  const cusolverStatus_t status = cusolverDnXsyevBatched_bufferSize(
      handle, params, mode, triangle, n, a_type, a, lda, w_type, w, compute_type, &least, &least_host, batches);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  if (mode != CUSOLVER_EIG_MODE_VECTOR || device_bytes < least || host_bytes < least_host || !host_work)
    return CUSOLVER_STATUS_INVALID_VALUE;
  return enqueue(handle, "XsyevBatched", [=](Access& access) {
    access.spoil(address_of(device_work), device_bytes);
    for (int64_t i = 0; i < batches && !access.failed(); ++i) {
      const auto at = static_cast<uint64_t>(i);
      const Place one{a_type, address_of(a) + at * static_cast<uint64_t>(lda * n) * bytes_of(a_type),
                      static_cast<int>(n), static_cast<int>(n), static_cast<int>(lda)};
      run_eigh(access, one, triangle == CUBLAS_FILL_MODE_LOWER,
               address_of(w) + at * static_cast<uint64_t>(n) * bytes_of(w_type), address_of(info + i));
    }
  });
}

#define COLLET_EMULATED_MATRIX_TYPE(P, T, R, SY, ORTHO)                                                                \
  cublasStatus_t cublas##P##trsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t triangle,           \
                                    cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n,              \
                                    const T* alpha, const T* a, int lda, T* b, int ldb) {                              \
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                                \
    return trsm(handle, form_of(side, triangle, operation, diagonal), alpha, place(a, order, order, lda),              \
                place(b, m, n, ldb));                                                                                  \
  }                                                                                                                    \
  cublasStatus_t cublas##P##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t triangle,       \
                                        cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n,          \
                                        const T* alpha, const T* const* a, int lda, T* const* b, int ldb,              \
                                        int batches) {                                                                 \
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                                \
    const Place of_a{kType<T>, address_of(a), order, order, lda}, of_b{kType<T>, address_of(b), m, n, ldb};            \
    return trsm_batched(handle, form_of(side, triangle, operation, diagonal), alpha, of_a, of_b, batches);             \
  }                                                                                                                    \
  cublasStatus_t cublas##P##getrfBatched(cublasHandle_t handle, int n, T* const* a, int lda, int* pivots, int* info,   \
                                         int batches) {                                                                \
    const Place of_a{kType<T>, address_of(a), n, n, lda};                                                              \
    if (!of_a.is_valid() || batches < 0) return refuse(handle);                                                        \
    return enqueue(handle, "getrfBatched", for_each(of_a, batches, [=](Access& access, const Place& one, uint64_t i) { \
                     run_lu(access, one, address_of(pivots + i * static_cast<uint64_t>(n)), address_of(info + i));     \
                   }));                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##P##geqrfBatched(cublasHandle_t handle, int m, int n, T* const* a, int lda, T* const* tau,     \
                                         int* host_info, int batches) {                                                \
    const Place of_a{kType<T>, address_of(a), m, n, lda};                                                              \
    if (!of_a.is_valid() || batches < 0 || !host_info) return refuse(handle);                                          \
    *host_info = 0;                                                                                                    \
    return enqueue(handle, "geqrfBatched", [=](Access& access) {                                                       \
      const std::vector<uint64_t> factors = access.pointers(address_of(tau), batches);                                 \
      for_each(of_a, batches,                                                                                          \
               [&](Access& inner, const Place& one, uint64_t i) { run_qr(inner, one, factors[i]); })(access);          \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##P##geam(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation,  \
                                 int m, int n, const T* alpha, const T* a, int lda, const T* beta, const T* b,         \
                                 int ldb, T* c, int ldc) {                                                             \
    const bool swaps = a_operation != CUBLAS_OP_N;                                                                     \
    const int rows = swaps ? n : m, columns = swaps ? m : n;                                                           \
    return geam(handle, a_operation, b_operation, alpha, place(a, rows, columns, lda), beta,                           \
                place(b, rows, columns, ldb), place(c, m, n, ldc));                                                    \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##potrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, int n, T*, int lda,    \
                                                   int* length) {                                                      \
    return give_length(handle, n, n, n, lda, length);                                                                  \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##potrf(cusolverDnHandle_t handle, cublasFillMode_t triangle, int n, T* a, int lda,    \
                                        T* work, int length, int* info) {                                              \
    const Place one = place(a, n, n, lda);                                                                             \
    if (!one.is_valid() || length < work_length(n, n)) return refuse(handle);                                          \
    return enqueue(handle, "potrf", [=](Access& access) {                                                              \
      access.spoil(address_of(work), one.work_bytes(length));                                                          \
      run_cholesky(access, one, triangle == CUBLAS_FILL_MODE_LOWER, address_of(info));                                 \
    });                                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##potrfBatched(cusolverDnHandle_t handle, cublasFillMode_t triangle, int n, T** a,     \
                                               int lda, int* info, int batches) {                                      \
    const Place of_a{kType<T>, address_of(a), n, n, lda};                                                              \
    if (!of_a.is_valid() || batches < 0) return refuse(handle);                                                        \
    return enqueue(handle, "potrfBatched", for_each(of_a, batches, [=](Access& access, const Place& one, uint64_t i) { \
                     run_cholesky(access, one, triangle == CUBLAS_FILL_MODE_LOWER, address_of(info + i));              \
                   }));                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##getrf_bufferSize(cusolverDnHandle_t handle, int m, int n, T*, int lda,               \
                                                   int* length) {                                                      \
    return give_length(handle, m, n, m, lda, length);                                                                  \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##getrf(cusolverDnHandle_t handle, int m, int n, T* a, int lda, T* work, int* pivots,  \
                                        int* info) {                                                                   \
    const Place one = place(a, m, n, lda);                                                                             \
    if (!one.is_valid()) return refuse(handle);                                                                        \
    return enqueue(handle, "getrf", [=](Access& access) {                                                              \
      access.spoil(address_of(work), one.work_bytes(work_length(m, n)));                                               \
      run_lu(access, one, address_of(pivots), address_of(info));                                                       \
    });                                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##geqrf_bufferSize(cusolverDnHandle_t handle, int m, int n, T*, int lda,               \
                                                   int* length) {                                                      \
    return give_length(handle, m, n, m, lda, length);                                                                  \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##geqrf(cusolverDnHandle_t handle, int m, int n, T* a, int lda, T* tau, T* work,       \
                                        int length, int* info) {                                                       \
    const Place one = place(a, m, n, lda);                                                                             \
    if (!one.is_valid() || length < work_length(m, n)) return refuse(handle);                                          \
    return enqueue(handle, "geqrf", [=](Access& access) {                                                              \
      access.spoil(address_of(work), one.work_bytes(length));                                                          \
      run_qr(access, one, address_of(tau));                                                                            \
      access.store(address_of(info), {0});                                                                             \
    });                                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##ORTHO##gqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k, const T*,      \
                                                        int lda, const T*, int* length) {                              \
    return k > n || n > m ? refuse(handle) : give_length(handle, m, n, m, lda, length);                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##ORTHO##gqr(cusolverDnHandle_t handle, int m, int n, int k, T* a, int lda,            \
                                             const T* tau, T* work, int length, int* info) {                           \
    const Place one = place(a, m, n, lda), of_tau = place(tau, k, 1, std::max(k, 1));                                  \
    if (!one.is_valid() || k > n || n > m || length < work_length(m, n)) return refuse(handle);                        \
    return enqueue(handle, "orgqr", [=](Access& access) {                                                              \
      access.spoil(address_of(work), one.work_bytes(length));                                                          \
      Dense q = one.load(access);                                                                                      \
      emulator::multiply_reflectors(q, of_tau.load(access).elements);                                                  \
      access.store(one.type, one.address, q, one.leading, n);                                                          \
      access.store(address_of(info), {0});                                                                             \
    });                                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##SY##evd_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t,   \
                                                     int n, const T*, int lda, const R*, int* length) {                \
    return give_length(handle, n, n, n, lda, length);                                                                  \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##SY##evd(cusolverDnHandle_t handle, cusolverEigMode_t mode,                           \
                                          cublasFillMode_t triangle, int n, T* a, int lda, R* w, T* work, int length,  \
                                          int* info) {                                                                 \
    const Place one = place(a, n, n, lda);                                                                             \
    if (mode != CUSOLVER_EIG_MODE_VECTOR || !one.is_valid() || length < work_length(n, n)) return refuse(handle);      \
    return enqueue(handle, "syevd", [=](Access& access) {                                                              \
      access.spoil(address_of(work), one.work_bytes(length));                                                          \
      run_eigh(access, one, triangle == CUBLAS_FILL_MODE_LOWER, address_of(w), address_of(info));                      \
    });                                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##SY##evjBatched_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t,              \
                                                            cublasFillMode_t, int n, const T*, int lda, const R*,      \
                                                            int* length, syevjInfo_t params, int batches) {            \
    return !params || batches < 1 ? refuse(handle) : give_length(handle, n, n, n, lda, length);                        \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##SY##evjBatched(cusolverDnHandle_t handle, cusolverEigMode_t mode,                    \
                                                 cublasFillMode_t triangle, int n, T* a, int lda, R* w, T* work,       \
                                                 int length, int* info, syevjInfo_t params, int batches) {             \
    const Place first = place(a, n, n, lda);                                                                           \
    if (mode != CUSOLVER_EIG_MODE_VECTOR || !first.is_valid() || length < work_length(n, n) || !params || batches < 1) \
      return refuse(handle);                                                                                           \
    return enqueue(handle, "syevjBatched", [=](Access& access) {                                                       \
      access.spoil(address_of(work), first.work_bytes(length));                                                        \
      for (int i = 0; i < batches && !access.failed(); ++i) {                                                          \
        Place one = first;                                                                                             \
        one.address = address_of(a + int64_t{i} * lda * n);                                                            \
        run_eigh(access, one, triangle == CUBLAS_FILL_MODE_LOWER, address_of(w + int64_t{i} * n),                      \
                 address_of(info + i));                                                                                \
      }                                                                                                                \
    });                                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##gesvd_bufferSize(cusolverDnHandle_t handle, int m, int n, int* length) {             \
    return m < n ? refuse(handle) : give_length(handle, m, n, m, m, length);                                           \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##gesvd(cusolverDnHandle_t handle, signed char u_job, signed char vt_job, int m,       \
                                        int n, T* a, int lda, R* s, T* u, int ldu, T* vt, int ldvt, T* work,           \
                                        int length, R*, int* info) {                                                   \
    const Place one = place(a, m, n, lda);                                                                             \
    const bool has_jobs = u_job == vt_job && (u_job == 'A' || u_job == 'S' || u_job == 'N');                           \
    if (!one.is_valid() || m < n || !has_jobs || ldu < m || ldvt < n || length < work_length(m, n))                    \
      return refuse(handle);                                                                                           \
    const SvdPlaces to{address_of(s),        address_of(u), address_of(vt), address_of(info),                          \
                       u_job == 'A' ? m : n, ldu,           ldvt,           true};                                     \
    return enqueue(handle, "gesvd", [=](Access& access) {                                                              \
      access.spoil(address_of(work), one.work_bytes(length));                                                          \
      run_svd(access, one, to, u_job != 'N');                                                                          \
    });                                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##gesvdj_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t, int, int m, int n,   \
                                                    const T*, int lda, const R*, const T*, int ldu, const T*, int ldv, \
                                                    int* length, gesvdjInfo_t params) {                                \
    return !params || ldu < m || ldv < n ? refuse(handle) : give_length(handle, m, n, m, lda, length);                 \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##gesvdj(cusolverDnHandle_t handle, cusolverEigMode_t mode, int economy, int m, int n, \
                                         T* a, int lda, R* s, T* u, int ldu, T* v, int ldv, T* work, int length,       \
                                         int* info, gesvdjInfo_t params) {                                             \
    const Place one = place(a, m, n, lda);                                                                             \
    if (!params || !one.is_valid() || m < n || ldu < m || ldv < n || length < work_length(m, n))                       \
      return refuse(handle);                                                                                           \
    const SvdPlaces to{address_of(s),        address_of(u), address_of(v), address_of(info),                           \
                       economy != 0 ? n : m, ldu,           ldv,           false};                                     \
    return enqueue(handle, "gesvdj", [=](Access& access) {                                                             \
      access.spoil(address_of(work), one.work_bytes(length));                                                          \
      run_svd(access, one, to, mode == CUSOLVER_EIG_MODE_VECTOR);                                                      \
    });                                                                                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##gesvdjBatched_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t, int m, int n, \
                                                           const T*, int lda, const R*, const T*, int ldu, const T*,   \
                                                           int ldv, int* length, gesvdjInfo_t params, int batches) {   \
    const bool is_small = m <= kMostJacobiBatchRows && n <= kMostJacobiBatchRows;                                      \
    return !is_small || !params || ldu < m || ldv < n || batches < 1 ? refuse(handle)                                  \
                                                                     : give_length(handle, m, n, m, lda, length);      \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##P##gesvdjBatched(cusolverDnHandle_t handle, cusolverEigMode_t mode, int m, int n, T* a, \
                                                int lda, R* s, T* u, int ldu, T* v, int ldv, T* work, int length,      \
                                                int* info, gesvdjInfo_t params, int batches) {                         \
    const Place first = place(a, m, n, lda);                                                                           \
    const bool is_small = m <= kMostJacobiBatchRows && n <= kMostJacobiBatchRows;                                      \
    if (!is_small || !params || !first.is_valid() || m < n || ldu < m || ldv < n || length < work_length(m, n) ||      \
        batches < 1)                                                                                                   \
      return refuse(handle);                                                                                           \
    return enqueue(handle, "gesvdjBatched", [=](Access& access) {                                                      \
      access.spoil(address_of(work), first.work_bytes(length));                                                        \
      for (int64_t i = 0; i < batches && !access.failed(); ++i) {                                                      \
        Place one = first;                                                                                             \
        one.address = address_of(a + i * lda * n);                                                                     \
        run_svd(access, one,                                                                                           \
                {address_of(s + i * n), address_of(u + i * ldu * m), address_of(v + i * ldv * n),                      \
                 address_of(info + i), m, ldu, ldv, false},                                                            \
                mode == CUSOLVER_EIG_MODE_VECTOR);                                                                     \
      }                                                                                                                \
    });                                                                                                                \
  }
COLLET_EMULATED_MATRIX_TYPE(S, float, float, sy, or)
COLLET_EMULATED_MATRIX_TYPE(D, double, double, sy, or)
COLLET_EMULATED_MATRIX_TYPE(C, cuComplex, float, he, un)
COLLET_EMULATED_MATRIX_TYPE(Z, cuDoubleComplex, double, he, un)
#undef COLLET_EMULATED_MATRIX_TYPE

}  // namespace collet::gpu
