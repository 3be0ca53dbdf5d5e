// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/library_calls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace collet::gpu {
namespace {

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;  ///< as NVIDIA recommends for Hopper
constexpr int kMostAlgorithms = 4;                        ///< of a product, to be compared
constexpr uint64_t kAlignment = 64;                       ///< of each array in device memory, at least

void check(cublasStatus_t status, const char* function) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw kernel::Error(status == CUBLAS_STATUS_ALLOC_FAILED ? COLLET_RESOURCE_EXHAUSTED : COLLET_INTERNAL,
                      std::string(function) + ": cuBLAS status " + std::to_string(static_cast<unsigned>(status)));
}

void check(cufftResult result, const char* function) {
  if (result == CUFFT_SUCCESS) return;
  throw kernel::Error(result == CUFFT_ALLOC_FAILED ? COLLET_RESOURCE_EXHAUSTED : COLLET_INTERNAL,
                      std::string(function) + ": cuFFT result " + std::to_string(static_cast<unsigned>(result)));
}

std::optional<cudaDataType_t> data_type(uint32_t type) {
  switch (type) {
    case COLLET_TYPE_F32:
      return CUDA_R_32F;
    case COLLET_TYPE_F64:
      return CUDA_R_64F;
    case COLLET_TYPE_F16:
      return CUDA_R_16F;
    case COLLET_TYPE_BF16:
      return CUDA_R_16BF;
    case COLLET_TYPE_C64:
      return CUDA_C_32F;
    case COLLET_TYPE_C128:
      return CUDA_C_64F;
    case COLLET_TYPE_S8:
      return CUDA_R_8I;
    case COLLET_TYPE_S32:
      return CUDA_R_32I;
    default:
      return std::nullopt;
  }
}

/// How cuBLASLt adds products with these types; none where it has no such product, or rounds in other places than the program.
std::optional<cublasComputeType_t> compute_type(const codegen::LibraryProduct& p) {
  const uint32_t in = p.a.type, out = p.c.type;
  if (p.b.type != in) return std::nullopt;
  const bool is_half = in == COLLET_TYPE_BF16 || in == COLLET_TYPE_F16;
  switch (p.sum_type) {
    case COLLET_TYPE_F32:
      if (in == COLLET_TYPE_F32 && out == COLLET_TYPE_F32)
        return p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
      if (is_half && (out == in || out == COLLET_TYPE_F32)) return CUBLAS_COMPUTE_32F;
      return std::nullopt;
    case COLLET_TYPE_C64:
      if (in == COLLET_TYPE_C64 && out == in) return CUBLAS_COMPUTE_32F;
      return std::nullopt;
    case COLLET_TYPE_F64:
    case COLLET_TYPE_C128:
      if (in == p.sum_type && out == in) return CUBLAS_COMPUTE_64F;
      return std::nullopt;
    case COLLET_TYPE_S32:
      if (in == COLLET_TYPE_S8 && out == COLLET_TYPE_S32) return CUBLAS_COMPUTE_32I;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

/// A matrix as cuBLASLt sees it, column by column.
struct ColumnMajor {
  cublasOperation_t operation = CUBLAS_OP_N;
  uint64_t rows = 0;     ///< of the array as it lies in memory
  uint64_t columns = 0;  ///< of the array as it lies in memory
  int64_t leading = 0;   ///< elements from one column to the next
};

/// The transpose of `m`, which has `rows` and `columns`; none where neither of its distances is 1.
std::optional<ColumnMajor> transposed(const codegen::LibraryMatrix& m, int64_t rows, int64_t columns) {
  const bool by_rows = columns == 1 || m.column == 1;  // a row is a column of the transpose
  const bool by_columns = rows == 1 || m.row == 1;
  const auto make = [](cublasOperation_t operation, int64_t inner, int64_t outer,
                       int64_t distance) -> std::optional<ColumnMajor> {
    if (outer == 1) distance = inner;
    if (distance < inner) return std::nullopt;
    return ColumnMajor{operation, static_cast<uint64_t>(inner), static_cast<uint64_t>(outer), distance};
  };
  std::optional<ColumnMajor> out;
  if (by_rows) out = make(CUBLAS_OP_N, columns, rows, m.row);
  if (!out && by_columns) out = make(CUBLAS_OP_T, rows, columns, m.column);
  return out;
}

/// Bytes that divide the addresses of all batches of a matrix.
uint32_t alignment_of(const codegen::LibraryMatrix& m) {
  uint64_t bytes = kAlignment;
  for (const int64_t elements : {m.offset, m.batch}) {
    const uint64_t distance = static_cast<uint64_t>(elements) * collet_type_bytes(m.type);
    while (distance % bytes != 0) bytes /= 2;
  }
  return static_cast<uint32_t>(bytes);
}

/// One and zero in the type of the sum.
struct Scale {
  alignas(16) std::array<char, 16> one{};
  alignas(16) std::array<char, 16> zero{};

  explicit Scale(uint32_t type) {
    const float f = 1;
    const double d = 1;
    const int32_t i = 1;
    const bool is_double = type == COLLET_TYPE_F64 || type == COLLET_TYPE_C128;
    const void* const from = type == COLLET_TYPE_S32 ? static_cast<const void*>(&i)
                             : is_double             ? static_cast<const void*>(&d)
                                                     : &f;
    std::copy_n(static_cast<const char*>(from), is_double ? sizeof d : sizeof f, one.data());
  }
};

}  // namespace

/// A product with one algorithm. The library computes the transpose: what is row by row for us is column by column for it.
class LibraryCalls::ProductWay final : public Way {
 public:
  /// Descriptors of the library, shared by all algorithms of a product.
  struct Product {
    explicit Product(const Libraries& from, const codegen::LibraryProduct& product)
        : libraries(from), what(product), scale(product.sum_type) {}
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;
    ~Product() {
      for (const cublasLtMatrixLayout_t layout : layouts) {
        if (layout) libraries.cublasLtMatrixLayoutDestroy(layout);
      }
      if (operation) libraries.cublasLtMatmulDescDestroy(operation);
    }
    const Libraries& libraries;
    const codegen::LibraryProduct what;
    const Scale scale;
    cublasLtMatmulDesc_t operation = nullptr;
    std::array<cublasLtMatrixLayout_t, 3> layouts{};  ///< of b, a and c: the library's first factor is our second
  };

  ProductWay(const LibraryCalls& calls, std::shared_ptr<const Product> product, const cublasLtMatmulAlgo_t& algorithm)
      : calls_(calls), product_(std::move(product)), algorithm_(algorithm) {}

  void launch(const uint64_t* addresses) override {
    const codegen::LibraryProduct& p = product_->what;
    const auto at = [&](size_t place, const codegen::LibraryMatrix& m) {
      return reinterpret_cast<void*>(addresses[place] + static_cast<uint64_t>(m.offset) * collet_type_bytes(m.type));
    };
    void* const c = at(2, p.c);
    check(calls_.libraries_.cublasLtMatmul(calls_.cublas_, product_->operation, product_->scale.one.data(), at(1, p.b),
                                           product_->layouts[0], at(0, p.a), product_->layouts[1],
                                           product_->scale.zero.data(), c, product_->layouts[2], c,
                                           product_->layouts[2], &algorithm_,
                                           reinterpret_cast<void*>(calls_.workspace_), kWorkspaceBytes, calls_.stream_),
          "cublasLtMatmul");
  }

 private:
  const LibraryCalls& calls_;
  const std::shared_ptr<const Product> product_;
  const cublasLtMatmulAlgo_t algorithm_;
};

/// A plan of cuFFT.
class LibraryCalls::FftWay final : public Way {
 public:
  FftWay(const Libraries& libraries, cufftHandle plan, int direction)
      : libraries_(libraries), plan_(plan), direction_(direction) {}
  FftWay(const FftWay&) = delete;
  FftWay& operator=(const FftWay&) = delete;
  ~FftWay() override { libraries_.cufftDestroy(plan_); }

  void launch(const uint64_t* addresses) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    check(libraries_.cufftXtExec(plan_, reinterpret_cast<void*>(addresses[0]), reinterpret_cast<void*>(addresses[1]),
                                 direction_),
          "cufftXtExec");
  }

 private:
  const Libraries& libraries_;
  const cufftHandle plan_;
  const int direction_;
  std::mutex mutex_;  ///< a plan is one thread's at a time
};

LibraryCalls::LibraryCalls(const Libraries& libraries, CUstream stream, Allocate allocate)
    : libraries_(libraries), stream_(stream), allocate_(std::move(allocate)) {}

LibraryCalls::~LibraryCalls() {
  if (cublas_) libraries_.cublasLtDestroy(cublas_);
}

std::vector<LibraryCalls::Handle> LibraryCalls::prepare(const codegen::LibraryCall& what) {
  if (const auto* product = std::get_if<codegen::LibraryProduct>(&what)) return prepare_product(*product);
  return prepare_fft(std::get<codegen::LibraryFft>(what));
}

void LibraryCalls::drop(Handle way) noexcept {
  delete reinterpret_cast<Way*>(way);
}

void LibraryCalls::launch(Handle way, const uint64_t* addresses) {
  reinterpret_cast<Way*>(way)->launch(addresses);
}

cublasLtHandle_t LibraryCalls::cublas() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!cublas_) {
    if (workspace_ == 0) workspace_ = allocate_(kWorkspaceBytes);
    check(libraries_.cublasLtCreate(&cublas_), "cublasLtCreate");
  }
  return cublas_;
}

std::vector<LibraryCalls::Handle> LibraryCalls::prepare_product(const codegen::LibraryProduct& p) {
  const std::optional<cublasComputeType_t> compute = compute_type(p);
  if (!libraries_.has_products() || !compute) return {};
  const std::optional<ColumnMajor> a = transposed(p.a, p.rows, p.depth), b = transposed(p.b, p.depth, p.columns),
                                   c = transposed(p.c, p.rows, p.columns);
  if (!a || !b || !c || c->operation != CUBLAS_OP_N) return {};
  const cublasLtHandle_t handle = cublas();
  auto product = std::make_shared<ProductWay::Product>(libraries_, p);
  check(libraries_.cublasLtMatmulDescCreate(&product->operation, *compute, *data_type(p.sum_type)),
        "cublasLtMatmulDescCreate");
  const auto set_operation = [&](cublasLtMatmulDescAttributes_t attribute, cublasOperation_t operation) {
    const auto value = static_cast<int32_t>(operation);
    check(libraries_.cublasLtMatmulDescSetAttribute(product->operation, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  };
  set_operation(CUBLASLT_MATMUL_DESC_TRANSA, b->operation);
  set_operation(CUBLASLT_MATMUL_DESC_TRANSB, a->operation);
  const auto make_layout = [&](size_t number, const codegen::LibraryMatrix& m, const ColumnMajor& as) {
    cublasLtMatrixLayout_t& layout = product->layouts[number];
    check(libraries_.cublasLtMatrixLayoutCreate(&layout, *data_type(m.type), as.rows, as.columns, as.leading),
          "cublasLtMatrixLayoutCreate");
    const auto batches = static_cast<int32_t>(p.batches);
    check(libraries_.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches,
                                                      sizeof batches),
          "cublasLtMatrixLayoutSetAttribute");
    check(libraries_.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.batch,
                                                      sizeof m.batch),
          "cublasLtMatrixLayoutSetAttribute");
  };
  make_layout(0, p.b, *b);
  make_layout(1, p.a, *a);
  make_layout(2, p.c, *c);

  cublasLtMatmulPreference_t preference = nullptr;
  check(libraries_.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    return libraries_.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  };
  std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> found{};
  int count = 0;
  cublasStatus_t status = prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  const std::pair<cublasLtMatmulPreferenceAttributes_t, uint32_t> numbers[] = {
      {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.b)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.a)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.c)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.c)}};
  for (const auto& [attribute, value] : numbers) {
    if (status == CUBLAS_STATUS_SUCCESS) status = prefer(attribute, value);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = libraries_.cublasLtMatmulAlgoGetHeuristic(handle, product->operation, product->layouts[0],
                                                       product->layouts[1], product->layouts[2], product->layouts[2],
                                                       preference, kMostAlgorithms, found.data(), &count);
  }
  libraries_.cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS) count = 0;  // NOT_SUPPORTED, or INVALID_VALUE where the shape is none of its
  std::vector<Handle> out;
  for (int i = 0; i < count; ++i) {
    if (found[static_cast<size_t>(i)].state != CUBLAS_STATUS_SUCCESS) continue;
    out.push_back(reinterpret_cast<Handle>(
        static_cast<Way*>(new ProductWay(*this, product, found[static_cast<size_t>(i)].algo))));
  }
  return out;
}

std::vector<LibraryCalls::Handle> LibraryCalls::prepare_fft(const codegen::LibraryFft& fft) {
  const std::optional<cudaDataType_t> in = data_type(fft.operand_type), out = data_type(fft.result_type);
  if (!libraries_.has_fft() || !in || !out || fft.lengths.empty() || fft.lengths.size() > 3) return {};
  std::vector<long long> lengths(fft.lengths.begin(), fft.lengths.end());
  const bool is_real_in = collet_type_kind(fft.operand_type) == COLLET_KIND_FLOAT;
  const bool is_real_out = collet_type_kind(fft.result_type) == COLLET_KIND_FLOAT;
  // Of complex values of a real transform, the last dimension has half.
  const auto stored = [&](bool is_real) {
    std::vector<long long> dims = lengths;
    if (!is_real && (is_real_in || is_real_out)) dims.back() = dims.back() / 2 + 1;
    return dims;
  };
  const auto points = [](const std::vector<long long>& dims) {
    long long n = 1;
    for (const long long d : dims) n *= d;
    return n;
  };
  std::vector<long long> from = stored(is_real_in), to = stored(is_real_out);
  cufftHandle plan = 0;
  check(libraries_.cufftCreate(&plan), "cufftCreate");
  auto way = std::make_unique<FftWay>(libraries_, plan, fft.inverse ? kFftInverse : kFftForward);
  size_t work_bytes = 0;
  check(libraries_.cufftXtMakePlanMany(plan, static_cast<int>(lengths.size()), lengths.data(), from.data(), 1,
                                       points(from), *in, to.data(), 1, points(to), *out, fft.batches, &work_bytes,
                                       is_real_in ? *out : *in),
        "cufftXtMakePlanMany");
  check(libraries_.cufftSetStream(plan, stream_), "cufftSetStream");
  return {reinterpret_cast<Handle>(static_cast<Way*>(way.release()))};
}

}  // namespace collet::gpu
