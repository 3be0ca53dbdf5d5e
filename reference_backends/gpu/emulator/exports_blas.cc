// SPDX-License-Identifier: Apache-2.0
// Implements the functions of cuBLASLt that the gpu backend calls. They compute on the host, in the order of the
// stream.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "reference_backends/gpu/emulator/entry.h"
#include "reference_backends/gpu/emulator/library_elements.h"

namespace collet::gpu {

struct cublasLtContext {
  int device = 0;
};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute{};
  cudaDataType_t scale{};
  int32_t operations[2] = {CUBLAS_OP_N, CUBLAS_OP_N};  ///< operations on a and on b
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type{};
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t leading = 0;
  int32_t batches = 1;
  int64_t distance = 0;  ///< distance in elements from one batch to the next
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspace_bytes = 0;
};
#define COLLET_CUBLAS_FUNCTION(result, name, parameters) COLLET_EXPORT result name parameters;
#include "reference_backends/gpu/library/cublas_functions.def"

namespace {

using emulator::bytes_of;
using emulator::Complex;
using emulator::Elements;
using emulator::Entry;
using emulator::in_context;
using emulator::mark_written;
using emulator::problem_of;

constexpr int kAlgorithms = 2;  ///< number of algorithms for each product; they add in different orders

/// A matrix of a product, in device memory.
struct Matrix {
  cublasLtMatrixLayoutOpaque_t layout;
  uint64_t address = 0;

  uint64_t at(int64_t batch, uint64_t row, uint64_t column) const {
    const int64_t element =
        batch * layout.distance + static_cast<int64_t>(column) * layout.leading + static_cast<int64_t>(row);
    return address + static_cast<uint64_t>(element) * bytes_of(layout.type);
  }
  /// Returns what is wrong with the access to one of the matrix's columns; empty if nothing is.
  std::string problem(const emulator::State& s, const char* name, bool is_write) const {
    for (int64_t batch = 0; batch < layout.batches; ++batch) {
      for (uint64_t column = 0; column < layout.columns; ++column) {
        const std::string found =
            problem_of(s, name, at(batch, 0, column), layout.rows * bytes_of(layout.type), is_write);
        if (!found.empty()) return found;
      }
    }
    return {};
  }
};

struct Product {
  Matrix a, b, c;
  bool transposes_a = false;
  bool transposes_b = false;
  bool is_backward = false;  ///< true if the sum is computed from its last term to its first
  int device = 0;

  uint64_t depth() const { return transposes_a ? a.layout.rows : a.layout.columns; }
  void run(emulator::State& s) const {
    for (const auto& [matrix, name, is_write] :
         {std::tuple{&a, "cublasLtMatmul reads a", false}, std::tuple{&b, "cublasLtMatmul reads b", false},
          std::tuple{&c, "cublasLtMatmul writes d", true}}) {
      const std::string problem = matrix->problem(s, name, is_write);
      if (!problem.empty()) return s.fail_device(device, CUDA_ERROR_ILLEGAL_ADDRESS, problem);
    }
    const Elements of_a(a.layout.type), of_b(b.layout.type), of_c(c.layout.type);
    const emulator::DeviceMemory& memory = *s.machine.memory;
    const uint64_t length = depth();
    const uint64_t columns = c.layout.columns;
    std::vector<Complex> row(length), other(columns * length);
    for (int64_t batch = 0; batch < c.layout.batches; ++batch) {
      for (uint64_t j = 0; j < columns; ++j) {
        for (uint64_t k = 0; k < length; ++k)
          other[j * length + k] = of_b.load(memory.host(transposes_b ? b.at(batch, j, k) : b.at(batch, k, j)));
      }
      for (uint64_t i = 0; i < c.layout.rows; ++i) {
        for (uint64_t k = 0; k < length; ++k)
          row[k] = of_a.load(memory.host(transposes_a ? a.at(batch, k, i) : a.at(batch, i, k)));
        for (uint64_t j = 0; j < columns; ++j) {
          Complex sum = 0;
          for (uint64_t n = 0; n < length; ++n) {
            const uint64_t k = is_backward ? length - 1 - n : n;
            sum += row[k] * other[j * length + k];
          }
          of_c.store(memory.host(c.at(batch, i, j)), sum);
        }
      }
      for (uint64_t j = 0; j < c.layout.columns; ++j) mark_written(s, c.at(batch, 0, j), c.layout.rows * of_c.bytes());
    }
  }
};

cublasStatus_t cublas_status(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return CUBLAS_STATUS_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
      return CUBLAS_STATUS_INVALID_VALUE;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return CUBLAS_STATUS_ALLOC_FAILED;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT:
      return CUBLAS_STATUS_NOT_INITIALIZED;
    default:
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

/// True if the library can compute a product of these types. `c` is the type of c and d.
bool has_product(const cublasLtMatmulDescOpaque_t& operation, cudaDataType_t a, cudaDataType_t b, cudaDataType_t c) {
  if (a != b) return false;
  switch (operation.compute) {
    case CUBLAS_COMPUTE_32F:
      if (operation.scale == CUDA_C_32F) return a == CUDA_C_32F && c == a;
      return operation.scale == CUDA_R_32F &&
             ((a == CUDA_R_32F && c == a) || ((a == CUDA_R_16F || a == CUDA_R_16BF) && (c == a || c == CUDA_R_32F)));
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return operation.scale == CUDA_R_32F && a == CUDA_R_32F && c == a;
    case CUBLAS_COMPUTE_64F:
      return (a == CUDA_R_64F || a == CUDA_C_64F) && operation.scale == a && c == a;
    case CUBLAS_COMPUTE_32I:
      return operation.scale == CUDA_R_32I && a == CUDA_R_8I && c == CUDA_R_32I;
    default:
      return false;
  }
}

/// True if the shapes and batches of a product match.
bool fits(const cublasLtMatmulDescOpaque_t& operation, const cublasLtMatrixLayoutOpaque_t& a,
          const cublasLtMatrixLayoutOpaque_t& b, const cublasLtMatrixLayoutOpaque_t& c) {
  const bool ta = operation.operations[0] == CUBLAS_OP_T, tb = operation.operations[1] == CUBLAS_OP_T;
  for (const auto* m : {&a, &b, &c}) {
    if (m->leading < static_cast<int64_t>(m->rows) || m->batches != c.batches || m->batches < 1) return false;
  }
  return (ta ? a.columns : a.rows) == c.rows && (tb ? b.rows : b.columns) == c.columns &&
         (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows);
}

template <class Made, class... Values>
cublasStatus_t create(Made** out, Values... values) {
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  *out = new (std::nothrow) Made{values...};
  return *out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

template <class T>
cublasStatus_t set(T& to, const void* value, size_t bytes) {
  if (!value || bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

size_t cublasLtGetVersion() {
  return 1;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return cublas_status(in_context([&](Entry& e) -> CUresult {
    return create(handle, e.index) == CUBLAS_STATUS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return create(operation, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete operation;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  if (!operation) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute != CUBLASLT_MATMUL_DESC_TRANSA && attribute != CUBLASLT_MATMUL_DESC_TRANSB)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return set(operation->operations[attribute == CUBLASLT_MATMUL_DESC_TRANSA ? 0 : 1], value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return create(layout, type, rows, columns, leading);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  if (!layout) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(layout->batches, value, bytes);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(layout->distance, value, bytes);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  if (!preference) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return set(preference->workspace_bytes, value, bytes);
  uint32_t ignored = 0;  // the emulator has one algorithm for all alignments and reduction schemes
  return set(ignored, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  if (!handle || !operation || !a || !b || !c || !d || !preference || wanted < 1 || !results || !count)
    return CUBLAS_STATUS_INVALID_VALUE;
  *count = 0;
  if (c->type != d->type || !fits(*operation, *a, *b, *d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!has_product(*operation, a->type, b->type, d->type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < std::min(wanted, kAlgorithms); ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<uint64_t>(i);
    results[i].wavesCount = 1;
    ++*count;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, CUstream stream) {
  if (!handle || !operation || !alpha || !beta || !a_layout || !b_layout || !c_layout || !d_layout || !algorithm)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto is_number = [&](const void* at, double value) {
    return Elements(operation->scale).load(static_cast<const uint8_t*>(at)) == Complex(value);
  };
  const bool fits_together = fits(*operation, *a_layout, *b_layout, *d_layout) &&
                             has_product(*operation, a_layout->type, b_layout->type, d_layout->type) && c == d &&
                             algorithm->data[0] < kAlgorithms;
  if (!fits_together) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_number(alpha, 1) || !is_number(beta, 0)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Product product{{*a_layout, reinterpret_cast<uint64_t>(a)},
                  {*b_layout, reinterpret_cast<uint64_t>(b)},
                  {*d_layout, reinterpret_cast<uint64_t>(d)}};
  product.transposes_a = operation->operations[0] == CUBLAS_OP_T;
  product.transposes_b = operation->operations[1] == CUBLAS_OP_T;
  product.is_backward = algorithm->data[0] == 1;
  return cublas_status(in_context([&](Entry& e) -> CUresult {
    const auto on = e.stream(stream);
    if (!on) return CUDA_ERROR_INVALID_HANDLE;
    if (handle->device != e.index) return CUDA_ERROR_INVALID_VALUE;
    if (workspace_bytes != 0 &&
        !e.memory().problem_of(reinterpret_cast<uint64_t>(workspace), workspace_bytes, true, false).empty())
      return CUDA_ERROR_INVALID_VALUE;
    product.device = e.index;
    emulator::State* const s = e.state;
    e.scheduler().enqueue(on, [s, product] { product.run(*s); });
    return CUDA_SUCCESS;
  }));
}

}  // namespace collet::gpu
