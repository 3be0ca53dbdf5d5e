// SPDX-License-Identifier: Apache-2.0
// The functions of cuBLASLt and cuFFT that the gpu backend calls, computed on the host in the order of the stream.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "reference_backends/gpu/emulator/entry.h"
#include "reference_backends/gpu/emulator/numeric.h"
#include "reference_backends/gpu/library/library_api.h"

namespace collet::gpu {

struct cublasLtContext {
  int device = 0;
};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute{};
  cudaDataType_t scale{};
  int32_t operations[2] = {CUBLAS_OP_N, CUBLAS_OP_N};  ///< of a, of b
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type{};
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t leading = 0;
  int32_t batches = 1;
  int64_t distance = 0;  ///< elements from one batch to the next
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspace_bytes = 0;
};

#define COLLET_CUBLAS_FUNCTION(result, name, parameters) COLLET_EXPORT result name parameters;
#include "reference_backends/gpu/library/cublas_functions.def"
#define COLLET_CUFFT_FUNCTION(name, parameters) COLLET_EXPORT cufftResult name parameters;
#include "reference_backends/gpu/library/cufft_functions.def"

namespace {

using emulator::Entry;
using emulator::Format;
using emulator::in_context;
using Complex = std::complex<double>;

constexpr int kAlgorithms = 2;  ///< of each product: they add in different orders

size_t bytes_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_8I:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 4;
  }
}

bool is_complex(cudaDataType_t type) {
  return type == CUDA_C_32F || type == CUDA_C_64F;
}

Format format_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
      return Format::kF16;
    case CUDA_R_16BF:
      return Format::kBf16;
    case CUDA_R_64F:
    case CUDA_C_64F:
      return Format::kF64;
    case CUDA_R_8I:
      return Format::kS8;
    case CUDA_R_32I:
      return Format::kS32;
    default:
      return Format::kF32;
  }
}

/// Reads and writes elements of one type as complex numbers.
class Elements {
 public:
  explicit Elements(cudaDataType_t type)
      : bytes_(bytes_of(type)), part_(is_complex(type) ? bytes_ / 2 : bytes_), format_(format_of(type)) {}

  Complex load(const uint8_t* at) const { return {part(at), part_ == bytes_ ? 0.0 : part(at + part_)}; }
  void store(uint8_t* at, Complex value) const {
    put(at, value.real());
    if (part_ != bytes_) put(at + part_, value.imag());
  }
  size_t bytes() const { return bytes_; }

 private:
  double part(const uint8_t* at) const {
    uint64_t bits = 0;
    std::memcpy(&bits, at, part_);
    if (format_ == Format::kS8) return static_cast<int8_t>(bits);
    if (format_ == Format::kS32) return static_cast<int32_t>(bits);
    return emulator::to_double(bits, format_);
  }
  void put(uint8_t* at, double value) const {
    const bool is_integer = format_ == Format::kS32 || format_ == Format::kS8;
    // Sums of integers wrap; they are exact in a double.
    const uint64_t bits =
        is_integer ? static_cast<uint64_t>(static_cast<int64_t>(value)) : emulator::from_double(value, format_);
    std::memcpy(at, &bits, part_);
  }

  size_t bytes_;
  size_t part_;  ///< bytes of the real part
  Format format_;
};

/// A finding about an access of a library; empty where it is right.
std::string problem_of(const emulator::State& s, const char* what, uint64_t address, uint64_t bytes, bool is_write,
                       bool reads_all) {
  const std::string problem =
      s.machine.memory->problem_of(address, bytes, is_write, reads_all && s.machine.options.initialised);
  return problem.empty() ? problem : std::string(what) + ": " + problem;
}

/// Marks bytes as written.
void mark_written(emulator::State& s, uint64_t address, uint64_t bytes) {
  uint8_t* const states = s.machine.memory->states(address);
  for (uint64_t i = 0; i < bytes; ++i) states[i] |= emulator::kByteWritten;
}

/// A matrix of a product, in device memory.
struct Matrix {
  cublasLtMatrixLayoutOpaque_t layout;
  uint64_t address = 0;

  uint64_t at(int64_t batch, uint64_t row, uint64_t column) const {
    const int64_t element =
        batch * layout.distance + static_cast<int64_t>(column) * layout.leading + static_cast<int64_t>(row);
    return address + static_cast<uint64_t>(element) * bytes_of(layout.type);
  }
  /// What is wrong with access to one of its columns; empty where nothing is.
  std::string problem(const emulator::State& s, const char* name, bool is_write) const {
    for (int64_t batch = 0; batch < layout.batches; ++batch) {
      for (uint64_t column = 0; column < layout.columns; ++column) {
        const std::string found =
            problem_of(s, name, at(batch, 0, column), layout.rows * bytes_of(layout.type), is_write, !is_write);
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
  bool is_backward = false;  ///< the sum begins at its end
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

/// The discrete Fourier transform of `n` points, by the prime factors of n.
void transform(Complex* x, uint64_t n, double sign) {
  if (n < 2) return;
  uint64_t p = 2;
  while (n % p != 0) p = p * p > n ? n : p + 1;
  const uint64_t m = n / p;
  std::vector<Complex> parts(n);
  for (uint64_t r = 0; r < p; ++r) {
    for (uint64_t i = 0; i < m; ++i) parts[r * m + i] = x[i * p + r];
    transform(&parts[r * m], m, sign);
  }
  std::vector<Complex> roots(n);
  for (uint64_t k = 0; k < n; ++k)
    roots[k] = std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
  for (uint64_t k = 0; k < n; ++k) {
    Complex sum = 0;
    for (uint64_t r = 0; r < p; ++r) sum += parts[r * m + k % m] * roots[r * k % n];
    x[k] = sum;
  }
}

struct FftPlan {
  int device = 0;
  std::vector<uint64_t> lengths;  ///< empty: not made yet
  cudaDataType_t in{};
  cudaDataType_t out{};
  uint64_t batches = 1;
  CUstream stream = nullptr;

  uint64_t points() const {
    uint64_t n = 1;
    for (const uint64_t length : lengths) n *= length;
    return n;
  }
  bool is_real() const { return !is_complex(in) || !is_complex(out); }
  uint64_t last_half() const { return lengths.back() / 2 + 1; }
  uint64_t elements(cudaDataType_t type) const {
    return is_complex(type) && is_real() ? points() / lengths.back() * last_half() : points();
  }

  void run(emulator::State& s, uint64_t from, uint64_t to, int direction) const {
    const uint64_t in_bytes = batches * elements(in) * bytes_of(in),
                   out_bytes = batches * elements(out) * bytes_of(out);
    for (const std::string& problem : {problem_of(s, "cufftXtExec reads", from, in_bytes, false, true),
                                       problem_of(s, "cufftXtExec writes", to, out_bytes, true, false)}) {
      if (!problem.empty()) return s.fail_device(device, CUDA_ERROR_ILLEGAL_ADDRESS, problem);
    }
    const emulator::DeviceMemory& memory = *s.machine.memory;
    const Elements of_in(in), of_out(out);
    const double sign = !is_complex(in) ? -1 : !is_complex(out) ? 1 : direction;
    for (uint64_t batch = 0; batch < batches; ++batch) {
      uint8_t* const source = memory.host(from + batch * elements(in) * bytes_of(in));
      uint8_t* const target = memory.host(to + batch * elements(out) * bytes_of(out));
      std::vector<Complex> x = load(of_in, source);
      along_all(x, sign);
      store(of_out, target, x);
      // The library may use the operand of such a transform for itself.
      if (!is_complex(out)) std::memset(source, 0xFF, elements(in) * bytes_of(in));
    }
    mark_written(s, to, out_bytes);
  }

 private:
  std::vector<Complex> load(const Elements& type, const uint8_t* source) const {
    const uint64_t last = lengths.back(), rows = points() / last;
    const uint64_t stored = is_complex(in) && is_real() ? last_half() : last;
    std::vector<Complex> x(points());
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t k = 0; k < stored; ++k) x[row * last + k] = type.load(source + (row * stored + k) * type.bytes());
    }
    if (stored == last) return x;
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t k = stored; k < last; ++k) x[row * last + k] = std::conj(x[mirrored(row) * last + last - k]);
    }
    return x;
  }
  /// The row at the negative indices of a row.
  uint64_t mirrored(uint64_t row) const {
    uint64_t out_row = 0, scale = 1;
    for (size_t d = lengths.size() - 1; d-- > 0;) {
      out_row += (lengths[d] - row % lengths[d]) % lengths[d] * scale;
      scale *= lengths[d];
      row /= lengths[d];
    }
    return out_row;
  }
  void along_all(std::vector<Complex>& x, double sign) const {
    uint64_t step = 1;
    for (size_t d = lengths.size(); d-- > 0;) {
      const uint64_t n = lengths[d];
      std::vector<Complex> line(n);
      for (uint64_t begin = 0; begin < x.size(); ++begin) {
        if (begin / step % n != 0) continue;
        for (uint64_t k = 0; k < n; ++k) line[k] = x[begin + k * step];
        transform(line.data(), n, sign);
        for (uint64_t k = 0; k < n; ++k) x[begin + k * step] = line[k];
      }
      step *= n;
    }
  }
  void store(const Elements& type, uint8_t* target, const std::vector<Complex>& x) const {
    const uint64_t last = lengths.back(), rows = points() / last;
    const uint64_t stored = is_complex(out) && is_real() ? last_half() : last;
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t k = 0; k < stored; ++k) type.store(target + (row * stored + k) * type.bytes(), x[row * last + k]);
    }
  }
};

/// The plans that exist, by their handles, under the scheduler's lock.
std::map<cufftHandle, FftPlan>& fft_plans() {
  static auto* const plans = new std::map<cufftHandle, FftPlan>;
  return *plans;
}

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

cufftResult cufft_result(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return CUFFT_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE:
      return CUFFT_INVALID_VALUE;
    case CUDA_ERROR_INVALID_HANDLE:
      return CUFFT_INVALID_PLAN;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return CUFFT_ALLOC_FAILED;
    default:
      return CUFFT_EXEC_FAILED;
  }
}

/// Whether the library has a product with these types. `c`: of c and d.
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

/// Whether shapes and batches of a product fit together.
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
  uint32_t ignored = 0;  // there is one algorithm for all alignments and schemes
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

cufftResult cufftGetVersion(int* version) {
  if (!version) return CUFFT_INVALID_VALUE;
  *version = 1;
  return CUFFT_SUCCESS;
}

cufftResult cufftCreate(cufftHandle* plan) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    if (!plan) return CUDA_ERROR_INVALID_VALUE;
    auto& plans = fft_plans();
    *plan = plans.empty() ? 1 : plans.rbegin()->first + 1;
    plans[*plan].device = e.index;
    return CUDA_SUCCESS;
  }));
}

cufftResult cufftDestroy(cufftHandle plan) {
  return cufft_result(in_context(
      [&](Entry&) -> CUresult { return fft_plans().erase(plan) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }));
}

cufftResult cufftSetStream(cufftHandle plan, CUstream stream) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    const auto found = fft_plans().find(plan);
    if (found == fft_plans().end() || !e.stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    found->second.stream = stream;
    return CUDA_SUCCESS;
  }));
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long* lengths, long long* in_lengths,
                                long long in_stride, long long in_distance, cudaDataType_t in_type,
                                long long* out_lengths, long long out_stride, long long out_distance,
                                cudaDataType_t out_type, long long batches, size_t* work_bytes,
                                cudaDataType_t compute_type) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    const auto found = fft_plans().find(plan);
    if (found == fft_plans().end()) return CUDA_ERROR_INVALID_HANDLE;
    if (rank < 1 || rank > 3 || !lengths || !in_lengths || !out_lengths || batches < 1 || !work_bytes)
      return CUDA_ERROR_INVALID_VALUE;
    FftPlan made;
    made.device = e.index;
    made.stream = found->second.stream;
    for (int i = 0; i < rank; ++i) {
      if (lengths[i] < 1) return CUDA_ERROR_INVALID_VALUE;
      made.lengths.push_back(static_cast<uint64_t>(lengths[i]));
    }
    made.in = in_type;
    made.out = out_type;
    made.batches = static_cast<uint64_t>(batches);
    const auto is_dense = [&](cudaDataType_t type, const long long* dims, long long stride, long long distance) {
      for (int i = 0; i < rank; ++i) {
        const bool is_half = i + 1 == rank && is_complex(type) && made.is_real();
        const uint64_t length = is_half ? made.last_half() : made.lengths[static_cast<size_t>(i)];
        if (dims[i] != static_cast<long long>(length)) return false;
      }
      return stride == 1 && distance == static_cast<long long>(made.elements(type));
    };
    const cudaDataType_t complex_type = is_complex(in_type) ? in_type : out_type;
    const bool has_types =
        is_complex(complex_type) && compute_type == complex_type && format_of(in_type) == format_of(out_type);
    if (!has_types || !is_dense(in_type, in_lengths, in_stride, in_distance) ||
        !is_dense(out_type, out_lengths, out_stride, out_distance))
      return CUDA_ERROR_INVALID_VALUE;
    *work_bytes = 0;
    found->second = std::move(made);
    return CUDA_SUCCESS;
  }));
}

cufftResult cufftXtExec(cufftHandle handle, void* in, void* out, int direction) {
  return cufft_result(in_context([&](Entry& e) -> CUresult {
    const auto found = fft_plans().find(handle);
    if (found == fft_plans().end() || found->second.lengths.empty()) return CUDA_ERROR_INVALID_HANDLE;
    if (direction != kFftForward && direction != kFftInverse) return CUDA_ERROR_INVALID_VALUE;
    const FftPlan& plan = found->second;
    const auto on = e.stream(plan.stream);
    if (!on || plan.device != e.index) return CUDA_ERROR_INVALID_VALUE;
    emulator::State* const s = e.state;
    const auto from = reinterpret_cast<uint64_t>(in), to = reinterpret_cast<uint64_t>(out);
    e.scheduler().enqueue(on, [s, plan, from, to, direction] { plan.run(*s, from, to, direction); });
    return CUDA_SUCCESS;
  }));
}

}  // namespace collet::gpu
