// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/library_calls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace collet::gpu {
namespace {

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;  ///< the size that NVIDIA recommends for Hopper
/// Most bytes of workspace of a convolution; gradients of filters need more than products.
constexpr uint64_t kMostConvolutionWorkspaceBytes = uint64_t{256} << 20;
constexpr size_t kMostAlgorithms = 4;  ///< most algorithms of a call that are compared
constexpr uint64_t kAlignment = 64;    ///< least alignment of arrays in device memory, in bytes

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

void check(cudnnStatus_t status, const char* function) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw kernel::Error(COLLET_INTERNAL,
                      std::string(function) + ": cuDNN status " + std::to_string(static_cast<unsigned>(status)));
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

/// Returns the type in which cuBLASLt adds products of these types. Empty if it has no such product, or if it rounds at
/// other places than the op.
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

/// A matrix in the column-major order that cuBLASLt expects.
struct ColumnMajor {
  cublasOperation_t operation = CUBLAS_OP_N;
  uint64_t rows = 0;     ///< rows of the array in memory, before `operation`
  uint64_t columns = 0;  ///< columns of the array in memory, before `operation`
  int64_t leading = 0;   ///< distance in elements from one column to the next
};

/// Returns the transpose of `m`, which has `rows` and `columns`. Empty if neither of its distances is 1.
std::optional<ColumnMajor> transposed(const codegen::LibraryMatrix& m, int64_t rows, int64_t columns) {
  const bool by_rows = columns == 1 || m.column == 1;  // row-major, so that a row is a column of the transpose
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

/// Returns the largest number of bytes that divides the addresses of all batches of a matrix.
uint32_t alignment_of(const codegen::LibraryMatrix& m) {
  uint64_t bytes = kAlignment;
  for (const int64_t elements : {m.offset, m.batch}) {
    const uint64_t distance = static_cast<uint64_t>(elements) * collet_type_bytes(m.type);
    while (distance % bytes != 0) bytes /= 2;
  }
  return static_cast<uint32_t>(bytes);
}

/// The factors one and zero, in the type of the sum.
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

/// A product with one algorithm. The library computes the transposed product, because its matrices are column-major and
/// ours row-major.
class LibraryCalls::ProductWay final : public LibraryWay {
 public:
  /// The library's descriptors, which all algorithms of a product share.
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
    /// Layouts of b, a and c: the factors are exchanged for the transposed product.
    std::array<cublasLtMatrixLayout_t, 3> layouts{};
  };

  ProductWay(const LibraryCalls& calls, std::shared_ptr<const Product> product, const cublasLtMatmulAlgo_t& algorithm)
      : calls_(calls), product_(std::move(product)), algorithm_(algorithm) {}

  void launch(const uint64_t* addresses, CUstream stream) override {
    const codegen::LibraryProduct& p = product_->what;
    const auto at = [&](size_t place, const codegen::LibraryMatrix& m) {
      return reinterpret_cast<void*>(addresses[place] + static_cast<uint64_t>(m.offset) * collet_type_bytes(m.type));
    };
    void* const c = at(2, p.c);
    check(calls_.libraries_.cublasLtMatmul(
              calls_.cublas_, product_->operation, product_->scale.one.data(), at(1, p.b), product_->layouts[0],
              at(0, p.a), product_->layouts[1], product_->scale.zero.data(), c, product_->layouts[2], c,
              product_->layouts[2], &algorithm_, reinterpret_cast<void*>(calls_.workspace_), kWorkspaceBytes, stream),
          "cublasLtMatmul");
  }

 private:
  const LibraryCalls& calls_;
  const std::shared_ptr<const Product> product_;
  const cublasLtMatmulAlgo_t algorithm_;
};

/// The library's descriptors, which all algorithms of a convolution share.
struct LibraryCalls::ConvolutionDescriptors {
  explicit ConvolutionDescriptors(const Libraries& from) : libraries(from) {}
  ConvolutionDescriptors(const ConvolutionDescriptors&) = delete;
  ConvolutionDescriptors& operator=(const ConvolutionDescriptors&) = delete;
  ~ConvolutionDescriptors() {
    if (input) libraries.cudnnDestroyTensorDescriptor(input);
    if (filter) libraries.cudnnDestroyFilterDescriptor(filter);
    if (output) libraries.cudnnDestroyTensorDescriptor(output);
    if (operation) libraries.cudnnDestroyConvolutionDescriptor(operation);
  }
  const Libraries& libraries;
  cudnnTensorDescriptor_t input = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnTensorDescriptor_t output = nullptr;
  cudnnConvolutionDescriptor_t operation = nullptr;
};

/// A convolution, or a gradient of one, with one algorithm.
class LibraryCalls::ConvolutionWay final : public LibraryWay {
 public:
  /// An algorithm, by its number among those of the direction.
  struct Algorithm {
    codegen::LibraryConvolution::Direction direction{};
    uint32_t number = 0;
    uint64_t workspace_bytes = 0;
  };

  ConvolutionWay(LibraryCalls& calls, std::shared_ptr<const ConvolutionDescriptors> convolution, uint32_t sum_type,
                 const Algorithm& algorithm, CUdeviceptr workspace)
      : calls_(calls),
        convolution_(std::move(convolution)),
        scale_(sum_type),
        algorithm_(algorithm),
        workspace_(workspace) {}

  void launch(const uint64_t* addresses, CUstream stream) override {
    using Direction = codegen::LibraryConvolution::Direction;
    const auto at = [&](size_t place) { return reinterpret_cast<void*>(addresses[place]); };
    const ConvolutionDescriptors& c = *convolution_;
    const Libraries& l = calls_.libraries_;
    const void *const one = scale_.one.data(), *const zero = scale_.zero.data();
    void* const workspace = reinterpret_cast<void*>(workspace_);
    const uint64_t bytes = algorithm_.workspace_bytes;
    const std::lock_guard<std::mutex> lock(calls_.cudnn_mutex_);
    if (calls_.cudnn_stream_ != stream) check(l.cudnnSetStream(calls_.cudnn_, stream), "cudnnSetStream");
    calls_.cudnn_stream_ = stream;
    switch (algorithm_.direction) {
      case Direction::kForward:
        return check(l.cudnnConvolutionForward(calls_.cudnn_, one, c.input, at(0), c.filter, at(1), c.operation,
                                               static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_.number), workspace,
                                               bytes, zero, c.output, at(2)),
                     "cudnnConvolutionForward");
      case Direction::kInputGradient:
        return check(l.cudnnConvolutionBackwardData(calls_.cudnn_, one, c.filter, at(1), c.output, at(0), c.operation,
                                                    static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_.number),
                                                    workspace, bytes, zero, c.input, at(2)),
                     "cudnnConvolutionBackwardData");
      case Direction::kFilterGradient:
        return check(l.cudnnConvolutionBackwardFilter(calls_.cudnn_, one, c.input, at(0), c.output, at(1), c.operation,
                                                      static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_.number),
                                                      workspace, bytes, zero, c.filter, at(2)),
                     "cudnnConvolutionBackwardFilter");
    }
  }

 private:
  LibraryCalls& calls_;
  const std::shared_ptr<const ConvolutionDescriptors> convolution_;
  const Scale scale_;
  const Algorithm algorithm_;
  const CUdeviceptr workspace_;
};

/// A plan of cuFFT.
class LibraryCalls::FftWay final : public LibraryWay {
 public:
  /// `stream` is the plan's stream.
  FftWay(const Libraries& libraries, cufftHandle plan, int direction, CUstream stream)
      : libraries_(libraries), plan_(plan), direction_(direction), stream_(stream) {}
  FftWay(const FftWay&) = delete;
  FftWay& operator=(const FftWay&) = delete;
  ~FftWay() override { libraries_.cufftDestroy(plan_); }

  void launch(const uint64_t* addresses, CUstream stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stream_ != stream) check(libraries_.cufftSetStream(plan_, stream), "cufftSetStream");
    stream_ = stream;
    check(libraries_.cufftXtExec(plan_, reinterpret_cast<void*>(addresses[0]), reinterpret_cast<void*>(addresses[1]),
                                 direction_),
          "cufftXtExec");
  }

 private:
  const Libraries& libraries_;
  const cufftHandle plan_;
  const int direction_;
  std::mutex mutex_;  ///< one thread at a time may use a plan
  CUstream stream_;   ///< the plan's stream
};

LibraryCalls::LibraryCalls(const Libraries& libraries, const Driver& driver, MatrixKernels::Check check,
                           CUstream stream, WorkAreas::Allocate allocate)
    : libraries_(libraries),
      driver_(driver),
      check_(std::move(check)),
      stream_(stream),
      allocate_(std::move(allocate)),
      areas_(allocate_) {}

LibraryCalls::~LibraryCalls() {
  if (capture_stream_) driver_.cuStreamDestroy_v2(capture_stream_);
  if (cudnn_) libraries_.cudnnDestroy(cudnn_);
  if (cublas_) libraries_.cublasLtDestroy(cublas_);
}

std::vector<LibraryCalls::Handle> LibraryCalls::prepare(const codegen::LibraryCall& what) {
  try {
    if (const auto* product = std::get_if<codegen::LibraryProduct>(&what)) return prepare_product(*product);
    if (const auto* convolution = std::get_if<codegen::LibraryConvolution>(&what))
      return prepare_convolution(*convolution);
  } catch (const kernel::Error& error) {
    // If the library fails now, kernels are used instead. A lost device is always an error.
    if (error.code() == COLLET_UNAVAILABLE) throw;
    return {};
  }
  if (const auto* factorization = std::get_if<codegen::LibraryFactorization>(&what))
    return prepare_factorization(*factorization);
  return prepare_fft(std::get<codegen::LibraryFft>(what));
}

void LibraryCalls::drop(Handle way) noexcept {
  delete reinterpret_cast<LibraryWay*>(way);
}

void LibraryCalls::launch(Handle way, const uint64_t* addresses) {
  reinterpret_cast<LibraryWay*>(way)->launch(addresses, stream_);
}

CUgraph LibraryCalls::capture(Handle way, const uint64_t* addresses) {
  const std::lock_guard<std::mutex> lock(capture_mutex_);
  if (!capture_stream_) {
    check_(driver_.cuStreamCreateWithPriority(&capture_stream_, CU_STREAM_NON_BLOCKING, 0),
           "cuStreamCreateWithPriority");
  }
  CUgraph graph = nullptr;
  check_(driver_.cuStreamBeginCapture_v2(capture_stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
         "cuStreamBeginCapture_v2");
  try {
    reinterpret_cast<LibraryWay*>(way)->launch(addresses, capture_stream_);
  } catch (...) {
    driver_.cuStreamEndCapture(capture_stream_, &graph);
    if (graph) driver_.cuGraphDestroy(graph);
    throw;
  }
  check_(driver_.cuStreamEndCapture(capture_stream_, &graph), "cuStreamEndCapture");
  return graph;
}

std::vector<CUdeviceptr> LibraryCalls::areas() const {
  std::vector<CUdeviceptr> out;
  if (matrix_calls_) out = matrix_calls_->areas();
  areas_.list(out);
  return out;
}

cublasLtHandle_t LibraryCalls::cublas() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!cublas_) {
    make_workspace();
    check(libraries_.cublasLtCreate(&cublas_), "cublasLtCreate");
  }
  return cublas_;
}

cudnnHandle_t LibraryCalls::cudnn() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!cudnn_) {
    make_workspace();
    cudnnHandle_t made = nullptr;
    check(libraries_.cudnnCreate(&made), "cudnnCreate");
    const cudnnStatus_t set = libraries_.cudnnSetStream(made, stream_);
    if (set != CUDNN_STATUS_SUCCESS) libraries_.cudnnDestroy(made);
    check(set, "cudnnSetStream");
    cudnn_ = made;
    const std::lock_guard<std::mutex> stream_lock(cudnn_mutex_);
    cudnn_stream_ = stream_;
  }
  return cudnn_;
}

void LibraryCalls::make_workspace() {
  if (workspace_ != 0) return;
  workspace_ = areas_.get(kWorkspaceBytes);
}

CUdeviceptr LibraryCalls::area(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return areas_.get(bytes);
}

std::vector<LibraryCalls::Handle> LibraryCalls::prepare_product(const codegen::LibraryProduct& p) {
  const std::optional<cublasComputeType_t> compute = compute_type(p);
  if (!libraries_.has_products() || !compute) return {};
  for (const int64_t size : {p.batches, p.rows, p.columns, p.depth}) {
    if (size > INT32_MAX) return {};
  }
  if (p.a.batch < 0 || p.b.batch < 0 || p.c.batch < 0) return {};
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
    status = libraries_.cublasLtMatmulAlgoGetHeuristic(
        handle, product->operation, product->layouts[0], product->layouts[1], product->layouts[2], product->layouts[2],
        preference, static_cast<int>(kMostAlgorithms), found.data(), &count);
  }
  libraries_.cublasLtMatmulPreferenceDestroy(preference);
  // NOT_SUPPORTED, or INVALID_VALUE for a shape that it does not support
  if (status != CUBLAS_STATUS_SUCCESS) count = 0;
  std::vector<Handle> out;
  for (int i = 0; i < count; ++i) {
    if (found[static_cast<size_t>(i)].state != CUBLAS_STATUS_SUCCESS) continue;
    out.push_back(reinterpret_cast<Handle>(
        static_cast<LibraryWay*>(new ProductWay(*this, product, found[static_cast<size_t>(i)].algo))));
  }
  return out;
}

namespace {

std::optional<cudnnDataType_t> cudnn_type(uint32_t type) {
  switch (type) {
    case COLLET_TYPE_F32:
      return CUDNN_DATA_FLOAT;
    case COLLET_TYPE_F64:
      return CUDNN_DATA_DOUBLE;
    case COLLET_TYPE_F16:
      return CUDNN_DATA_HALF;
    case COLLET_TYPE_BF16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return std::nullopt;
  }
}

/// Converts numbers to int for cuDNN. Empty if one does not fit.
std::optional<std::vector<int>> to_ints(const std::vector<int64_t>& from) {
  std::vector<int> out;
  for (const int64_t x : from) {
    if (x < 0 || x > INT32_MAX) return std::nullopt;
    out.push_back(static_cast<int>(x));
  }
  return out;
}

/// True for algorithms that multiply and add as the op defines it. Algorithms that transform input and filter first
/// have larger errors.
bool is_direct(cudnnConvolutionFwdAlgo_t algorithm) {
  return algorithm <= CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
}
bool is_direct(cudnnConvolutionBwdDataAlgo_t algorithm) {
  return algorithm <= CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
}
bool is_direct(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  return algorithm <= CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 || algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
}

/// Returns the numbers of the algorithms that cuDNN proposes and that suit, the fastest first. `propose` fills in the
/// proposals and their number, and `bytes_of` the bytes of workspace of an algorithm; both return a status.
template <class Algorithm, class Propose, class BytesOf>
std::vector<std::pair<uint32_t, uint64_t>> algorithms(const Propose& propose, const BytesOf& bytes_of) {
  std::array<cudnnAlgorithmPerf<Algorithm>, 8> found{};
  int count = 0;
  std::vector<std::pair<uint32_t, uint64_t>> out;
  if (propose(static_cast<int>(found.size()), &count, found.data()) != CUDNN_STATUS_SUCCESS) return out;
  std::set<Algorithm> known;  // the library lists an algorithm once for each math type
  for (int i = 0; i < count && out.size() < kMostAlgorithms; ++i) {
    const cudnnAlgorithmPerf<Algorithm>& one = found[static_cast<size_t>(i)];
    size_t bytes = 0;
    const bool suits = one.status == CUDNN_STATUS_SUCCESS && is_direct(one.algo) &&
                       one.determinism == CUDNN_DETERMINISTIC && known.insert(one.algo).second &&
                       bytes_of(one.algo, &bytes) == CUDNN_STATUS_SUCCESS && bytes <= kMostConvolutionWorkspaceBytes;
    if (suits) out.emplace_back(one.algo, bytes);
  }
  return out;
}

/// The dimensions of a convolution's arrays in cuDNN's order: batch, features, spatial dimensions.
struct ConvolutionDims {
  std::vector<int64_t> input;
  std::vector<int64_t> input_strides;
  std::vector<int64_t> filter;
  std::vector<int64_t> output;
  std::vector<int64_t> output_strides;
  std::vector<int64_t> padding;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilation;
};

ConvolutionDims dims_of(const codegen::LibraryConvolution& c) {
  ConvolutionDims d;
  d.input = {c.batch, c.input_features};
  d.filter = {c.output_features, c.input_features / c.groups};
  d.output = {c.batch, c.output_features};
  d.input_strides = {c.input_strides[0], c.input_strides[1]};
  d.output_strides = {c.output_strides[0], c.output_strides[1]};
  const auto add = [&](const codegen::LibraryConvolution::Dimension& s, int64_t input_stride, int64_t output_stride) {
    d.input.push_back(s.input);
    d.input_strides.push_back(input_stride);
    d.filter.push_back(s.window);
    d.output.push_back(s.output);
    d.output_strides.push_back(output_stride);
    d.padding.push_back(s.padding);
    d.strides.push_back(s.stride);
    d.dilation.push_back(s.dilation);
  };
  // cuDNN has no convolution of one dimension, so a dimension of size 1 is added before it.
  if (c.dims.size() == 1)
    add({1, 1, 1, 1, 0, 1}, c.input_strides[2] * c.dims[0].input, c.output_strides[2] * c.dims[0].output);
  for (size_t i = 0; i < c.dims.size(); ++i) add(c.dims[i], c.input_strides[i + 2], c.output_strides[i + 2]);
  return d;
}

}  // namespace

std::vector<LibraryCalls::Handle> LibraryCalls::prepare_convolution(const codegen::LibraryConvolution& c) {
  const std::optional<cudnnDataType_t> type = cudnn_type(c.type), sum = cudnn_type(c.sum_type);
  if (!libraries_.has_convolutions() || !type || !sum) return {};
  const ConvolutionDims d = dims_of(c);
  const auto input = to_ints(d.input), input_strides = to_ints(d.input_strides), filter = to_ints(d.filter),
             output = to_ints(d.output), output_strides = to_ints(d.output_strides), padding = to_ints(d.padding),
             strides = to_ints(d.strides), dilation = to_ints(d.dilation);
  if (!input || !input_strides || !filter || !output || !output_strides || !padding || !strides || !dilation) return {};
  // The library uses int indices into arrays.
  for (const std::vector<int64_t>* dims : {&d.input, &d.filter, &d.output}) {
    double elements = 1;
    for (const int64_t size : *dims) elements *= static_cast<double>(size);
    if (elements > INT32_MAX) return {};
  }
  const int rank = static_cast<int>(input->size());
  cudnn();
  auto made = std::make_shared<ConvolutionDescriptors>(libraries_);
  check(libraries_.cudnnCreateTensorDescriptor(&made->input), "cudnnCreateTensorDescriptor");
  check(libraries_.cudnnCreateFilterDescriptor(&made->filter), "cudnnCreateFilterDescriptor");
  check(libraries_.cudnnCreateTensorDescriptor(&made->output), "cudnnCreateTensorDescriptor");
  check(libraries_.cudnnCreateConvolutionDescriptor(&made->operation), "cudnnCreateConvolutionDescriptor");
  const bool is_half = c.type == COLLET_TYPE_F16 || c.type == COLLET_TYPE_BF16;
  const cudnnMathType_t math = c.type == COLLET_TYPE_F32 && !c.tf32 ? CUDNN_FMA_MATH
                               : is_half                            ? CUDNN_TENSOR_OP_MATH
                                                                    : CUDNN_DEFAULT_MATH;
  // From here on, an error means that the library does not support the convolution.
  const bool is_there =
      libraries_.cudnnSetTensorNdDescriptor(made->input, *type, rank, input->data(), input_strides->data()) ==
          CUDNN_STATUS_SUCCESS &&
      libraries_.cudnnSetTensorNdDescriptor(made->output, *type, rank, output->data(), output_strides->data()) ==
          CUDNN_STATUS_SUCCESS &&
      libraries_.cudnnSetFilterNdDescriptor(made->filter, *type,
                                            c.filter_has_features_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, rank,
                                            filter->data()) == CUDNN_STATUS_SUCCESS &&
      libraries_.cudnnSetConvolutionNdDescriptor(made->operation, rank - 2, padding->data(), strides->data(),
                                                 dilation->data(), CUDNN_CROSS_CORRELATION,
                                                 *sum) == CUDNN_STATUS_SUCCESS &&
      libraries_.cudnnSetConvolutionGroupCount(made->operation, static_cast<int>(c.groups)) == CUDNN_STATUS_SUCCESS &&
      libraries_.cudnnSetConvolutionMathType(made->operation, math) == CUDNN_STATUS_SUCCESS;
  if (!is_there) return {};
  std::vector<std::pair<uint32_t, uint64_t>> found;
  {
    const std::lock_guard<std::mutex> lock(cudnn_mutex_);
    found = find_algorithms(c.direction, *made);
  }
  std::vector<Handle> out;
  for (const auto& [number, bytes] : found) {
    const CUdeviceptr workspace = bytes <= kWorkspaceBytes ? workspace_ : area(bytes);
    out.push_back(reinterpret_cast<Handle>(static_cast<LibraryWay*>(
        new ConvolutionWay(*this, made, c.sum_type, {c.direction, number, bytes}, workspace))));
  }
  return out;
}

std::vector<std::pair<uint32_t, uint64_t>> LibraryCalls::find_algorithms(
    codegen::LibraryConvolution::Direction direction, const ConvolutionDescriptors& c) {
  using Direction = codegen::LibraryConvolution::Direction;
  const Libraries& l = libraries_;
  switch (direction) {
    case Direction::kForward:
      return algorithms<cudnnConvolutionFwdAlgo_t>(
          [&](int wanted, int* count, auto* found) {
            return l.cudnnGetConvolutionForwardAlgorithm_v7(cudnn_, c.input, c.filter, c.operation, c.output, wanted,
                                                            count, found);
          },
          [&](auto algorithm, size_t* bytes) {
            return l.cudnnGetConvolutionForwardWorkspaceSize(cudnn_, c.input, c.filter, c.operation, c.output,
                                                             algorithm, bytes);
          });
    case Direction::kInputGradient:
      return algorithms<cudnnConvolutionBwdDataAlgo_t>(
          [&](int wanted, int* count, auto* found) {
            return l.cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnn_, c.filter, c.output, c.operation, c.input,
                                                                 wanted, count, found);
          },
          [&](auto algorithm, size_t* bytes) {
            return l.cudnnGetConvolutionBackwardDataWorkspaceSize(cudnn_, c.filter, c.output, c.operation, c.input,
                                                                  algorithm, bytes);
          });
    case Direction::kFilterGradient:
      return algorithms<cudnnConvolutionBwdFilterAlgo_t>(
          [&](int wanted, int* count, auto* found) {
            return l.cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnn_, c.input, c.output, c.operation, c.filter,
                                                                   wanted, count, found);
          },
          [&](auto algorithm, size_t* bytes) {
            return l.cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnn_, c.input, c.output, c.operation, c.filter,
                                                                    algorithm, bytes);
          });
  }
  return {};
}

std::vector<LibraryCalls::Handle> LibraryCalls::prepare_factorization(const codegen::LibraryFactorization& what) {
  if (!libraries_.has_factorizations()) return {};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!matrix_calls_) matrix_calls_ = std::make_unique<MatrixCalls>(libraries_, driver_, check_, stream_, allocate_);
  }
  std::vector<Handle> out;
  for (std::unique_ptr<LibraryWay>& way : matrix_calls_->prepare(what))
    out.push_back(reinterpret_cast<Handle>(way.release()));
  return out;
}

std::vector<LibraryCalls::Handle> LibraryCalls::prepare_fft(const codegen::LibraryFft& fft) {
  const std::optional<cudaDataType_t> in = data_type(fft.operand_type), out = data_type(fft.result_type);
  if (!libraries_.has_fft() || !in || !out || fft.lengths.empty() || fft.lengths.size() > 3) return {};
  std::vector<long long> lengths(fft.lengths.begin(), fft.lengths.end());
  const bool is_real_in = collet_type_kind(fft.operand_type) == COLLET_KIND_FLOAT;
  const bool is_real_out = collet_type_kind(fft.result_type) == COLLET_KIND_FLOAT;
  // The complex side of a real transform has only half of the last dimension.
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
  auto way = std::make_unique<FftWay>(libraries_, plan, fft.inverse ? kFftInverse : kFftForward, stream_);
  size_t work_bytes = 0;
  check(libraries_.cufftSetAutoAllocation(plan, 0), "cufftSetAutoAllocation");
  check(libraries_.cufftXtMakePlanMany(plan, static_cast<int>(lengths.size()), lengths.data(), from.data(), 1,
                                       points(from), *in, to.data(), 1, points(to), *out, fft.batches, &work_bytes,
                                       is_real_in ? *out : *in),
        "cufftXtMakePlanMany");
  if (work_bytes != 0) {
    check(libraries_.cufftSetWorkArea(plan, reinterpret_cast<void*>(area(work_bytes))), "cufftSetWorkArea");
  }
  check(libraries_.cufftSetStream(plan, stream_), "cufftSetStream");
  return {reinterpret_cast<Handle>(static_cast<LibraryWay*>(way.release()))};
}

}  // namespace collet::gpu
