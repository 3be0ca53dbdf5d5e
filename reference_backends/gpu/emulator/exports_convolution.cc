// SPDX-License-Identifier: Apache-2.0
// Implements the functions of cuDNN that the gpu backend calls. They compute on the host, in the order of the stream.
#include <algorithm>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/emulator/entry.h"
#include "reference_backends/gpu/emulator/library_elements.h"

namespace collet::gpu {

struct cudnnContext {
  int device = 0;
  CUstream stream = nullptr;
};
struct cudnnTensorStruct {
  cudnnDataType_t type{};
  std::vector<int64_t> dims;  ///< batch, features, spatial dimensions
  std::vector<int64_t> strides;
};
struct cudnnFilterStruct {
  cudnnDataType_t type{};
  std::vector<int64_t> dims;  ///< output features, input features, spatial dimensions
  std::vector<int64_t> strides;
};
struct cudnnConvolutionStruct {
  std::vector<int64_t> padding;
  std::vector<int64_t> steps;
  std::vector<int64_t> dilation;
  cudnnDataType_t sum_type{};
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int64_t groups = 1;
};

#define COLLET_CUDNN_FUNCTION(result, name, parameters) COLLET_EXPORT result name parameters;
#include "reference_backends/gpu/library/cudnn_functions.def"

namespace {

using emulator::bytes_of;
using emulator::Complex;
using emulator::Elements;
using emulator::Entry;
using emulator::in_context;
using emulator::mark_written;
using emulator::problem_of;

cudaDataType_t data_type(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return CUDA_R_64F;
    case CUDNN_DATA_HALF:
      return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

/// Returns the strides of a dense array whose dimensions are in the given order, the outermost first.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& dims, const std::vector<size_t>& order) {
  std::vector<int64_t> out(dims.size(), 1);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    out[order[i]] = stride;
    stride *= dims[order[i]];
  }
  return out;
}

/// Returns the number of elements from the first element of an array to its last, including both.
uint64_t extent(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) last += (dims[d] - 1) * strides[d];
  return static_cast<uint64_t>(last) + 1;
}

/// Calls `visit` for all positions within `dims`.
void for_each(const std::vector<int64_t>& dims, const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> at(dims.size(), 0);
  for (;;) {
    visit(at);
    size_t d = dims.size();
    while (d > 0 && ++at[d - 1] == dims[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

/// Which of the three arrays of a convolution is computed from the others.
enum class Target { kY, kX, kW };

struct Convolution {
  cudnnTensorStruct x;
  cudnnFilterStruct w;
  cudnnTensorStruct y;
  cudnnConvolutionStruct what;
  Target target = Target::kY;
  const char* function = "";
  uint64_t x_address = 0;
  uint64_t w_address = 0;
  uint64_t y_address = 0;
  int device = 0;

  void run(emulator::State& s) const {
    const cudaDataType_t type = data_type(x.type);
    const uint64_t x_count = extent(x.dims, x.strides), w_count = extent(w.dims, w.strides),
                   y_count = extent(y.dims, y.strides);
    const auto problem = [&](const char* name, uint64_t address, uint64_t count, Target array) {
      const bool is_write = array == target;
      const std::string text = std::string(function) + (is_write ? " writes " : " reads ") + name;
      return problem_of(s, text.c_str(), address, count * bytes_of(type), is_write);
    };
    for (const std::string& found :
         {problem("x", x_address, x_count, Target::kX), problem("w", w_address, w_count, Target::kW),
          problem("y", y_address, y_count, Target::kY)}) {
      if (!found.empty()) return s.fail_device(device, CUDA_ERROR_ILLEGAL_ADDRESS, found);
    }
    std::vector<double> of_x = load(s, x_address, x_count, Target::kX), of_w = load(s, w_address, w_count, Target::kW),
                        of_y = load(s, y_address, y_count, Target::kY);
    for_each(y.dims, [&](const std::vector<int64_t>& at) { add_terms(at, of_x, of_w, of_y); });
    const bool is_x = target == Target::kX, is_w = target == Target::kW;
    const std::vector<int64_t>&dims = is_x   ? x.dims
                                      : is_w ? w.dims
                                             : y.dims,
          &strides = is_x   ? x.strides
                     : is_w ? w.strides
                            : y.strides;
    const std::vector<double>& from = is_x ? of_x : is_w ? of_w : of_y;
    const uint64_t address = is_x ? x_address : is_w ? w_address : y_address;
    const Elements elements(type);
    uint8_t* const out = s.machine.memory->host(address);
    for_each(dims, [&](const std::vector<int64_t>& at) {
      const auto i = static_cast<size_t>(offset(at, strides));
      elements.store(out + i * elements.bytes(), from[i]);
    });
    mark_written(s, address, extent(dims, strides) * elements.bytes());
  }

 private:
  static int64_t offset(const std::vector<int64_t>& at, const std::vector<int64_t>& strides) {
    int64_t out = 0;
    for (size_t d = 0; d < at.size(); ++d) out += at[d] * strides[d];
    return out;
  }
  /// Returns the elements of an array; zeros for the one that is computed.
  std::vector<double> load(const emulator::State& s, uint64_t address, uint64_t count, Target array) const {
    const Elements elements(data_type(x.type));
    const uint8_t* const from = s.machine.memory->host(address);
    std::vector<double> out(count);
    if (array == target) return out;
    for (uint64_t i = 0; i < count; ++i) out[i] = elements.load(from + i * elements.bytes()).real();
    return out;
  }
  /// Adds the products in which element `at` of y takes part to the array that is computed.
  void add_terms(const std::vector<int64_t>& at, std::vector<double>& of_x, std::vector<double>& of_w,
                 std::vector<double>& of_y) const {
    const int64_t features = w.dims[1], group = at[1] / (y.dims[1] / what.groups);
    double& of_this = of_y[static_cast<size_t>(offset(at, y.strides))];
    std::vector<int64_t> window(w.dims.begin() + 1, w.dims.end());
    for_each(window, [&](const std::vector<int64_t>& k) {
      int64_t from = at[0] * x.strides[0] + (group * features + k[0]) * x.strides[1];
      int64_t filter = at[1] * w.strides[0] + k[0] * w.strides[1];
      for (size_t d = 0; d + 2 < at.size(); ++d) {
        const int64_t i = at[d + 2] * what.steps[d] + k[d + 1] * what.dilation[d] - what.padding[d];
        if (i < 0 || i >= x.dims[d + 2]) return;
        from += i * x.strides[d + 2];
        filter += k[d + 1] * w.strides[d + 2];
      }
      double &one = of_x[static_cast<size_t>(from)], &weight = of_w[static_cast<size_t>(filter)];
      if (target == Target::kY) {
        of_this += one * weight;
      } else if (target == Target::kX) {
        one += of_this * weight;
      } else {
        weight += of_this * one;
      }
    });
  }
};

// Status codes of cuDNN differ between versions. The backend only distinguishes success from errors.
constexpr auto kBadParameter = static_cast<cudnnStatus_t>(2000);
constexpr auto kNotSupported = static_cast<cudnnStatus_t>(3000);
constexpr auto kExecutionFailed = static_cast<cudnnStatus_t>(5000);

template <class Made>
cudnnStatus_t make(Made** out) {
  if (!out) return kBadParameter;
  *out = new (std::nothrow) Made;
  return *out ? CUDNN_STATUS_SUCCESS : kExecutionFailed;
}

template <class Made>
cudnnStatus_t drop(Made* one) {
  delete one;
  return CUDNN_STATUS_SUCCESS;
}

bool is_positive(const std::vector<int64_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](int64_t x) { return x > 0; });
}

/// Returns success if the shapes of the arrays match and the library has the convolution.
cudnnStatus_t fits(const cudnnTensorStruct& x, const cudnnFilterStruct& w, const cudnnConvolutionStruct& c,
                   const cudnnTensorStruct& y) {
  const size_t rank = x.dims.size();
  if (rank < 4 || w.dims.size() != rank || y.dims.size() != rank || c.padding.size() + 2 != rank) return kBadParameter;
  if (x.type != w.type || x.type != y.type) return kBadParameter;
  if ((x.type == CUDNN_DATA_DOUBLE) != (c.sum_type == CUDNN_DATA_DOUBLE)) return kNotSupported;
  if (x.type != CUDNN_DATA_DOUBLE && c.sum_type != CUDNN_DATA_FLOAT) return kNotSupported;
  if (x.dims[0] != y.dims[0] || x.dims[1] != w.dims[1] * c.groups || y.dims[1] != w.dims[0] ||
      w.dims[0] % c.groups != 0)
    return kBadParameter;
  for (size_t d = 2; d < rank; ++d) {
    const int64_t reach = (w.dims[d] - 1) * c.dilation[d - 2] + 1;
    if (y.dims[d] != (x.dims[d] + 2 * c.padding[d - 2] - reach) / c.steps[d - 2] + 1) return kBadParameter;
  }
  return CUDNN_STATUS_SUCCESS;
}

/// Lists a non-deterministic algorithm first, to test that the backend does not use it, then one that it may use.
template <class Perf>
cudnnStatus_t propose(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                      cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y, int wanted, int* count,
                      Perf* found, decltype(Perf::algo) random, decltype(Perf::algo) usable) {
  if (!handle || !x || !w || !convolution || !y || wanted < 1 || !count || !found) return kBadParameter;
  const cudnnStatus_t status = fits(*x, *w, *convolution, *y);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  *count = 0;
  for (const auto& [algorithm, determinism] :
       {std::pair{random, CUDNN_NON_DETERMINISTIC}, std::pair{usable, CUDNN_DETERMINISTIC}}) {
    if (*count == wanted) break;
    found[*count] = {};
    found[*count].algo = algorithm;
    found[*count].determinism = determinism;
    ++*count;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give_workspace_size(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y, size_t* bytes) {
  if (!handle || !x || !w || !convolution || !y || !bytes) return kBadParameter;
  *bytes = 64;
  return fits(*x, *w, *convolution, *y);
}

/// The arguments of the three functions that compute.
struct Arguments {
  cudnnHandle_t handle;
  const void *alpha, *beta;
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  cudnnTensorDescriptor_t y;
  const void *at_x, *at_w, *at_y;
  void* workspace;
  size_t workspace_bytes;
};

cudnnStatus_t start(const Arguments& a, Target target, const char* function, bool has_algorithm) {
  if (!a.handle || !a.alpha || !a.x || !a.w || !a.convolution || !a.beta || !a.y) return kBadParameter;
  const cudnnStatus_t status = fits(*a.x, *a.w, *a.convolution, *a.y);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (!has_algorithm) return kNotSupported;
  const Elements scale(data_type(a.convolution->sum_type));
  if (scale.load(static_cast<const uint8_t*>(a.alpha)) != Complex(1) ||
      scale.load(static_cast<const uint8_t*>(a.beta)) != Complex(0))
    return kNotSupported;
  Convolution run{*a.x, *a.w, *a.y, *a.convolution, target, function};
  run.x_address = reinterpret_cast<uint64_t>(a.at_x);
  run.w_address = reinterpret_cast<uint64_t>(a.at_w);
  run.y_address = reinterpret_cast<uint64_t>(a.at_y);
  const CUresult started = in_context([&](Entry& e) -> CUresult {
    const auto on = e.stream(a.handle->stream);
    if (!on) return CUDA_ERROR_INVALID_HANDLE;
    if (a.handle->device != e.index) return CUDA_ERROR_INVALID_VALUE;
    size_t least = 0;
    give_workspace_size(a.handle, a.x, a.w, a.convolution, a.y, &least);
    if (a.workspace_bytes < least ||
        !e.memory().problem_of(reinterpret_cast<uint64_t>(a.workspace), a.workspace_bytes, true, false).empty())
      return CUDA_ERROR_INVALID_VALUE;
    run.device = e.index;
    emulator::State* const s = e.state;
    e.scheduler().enqueue(on, [s, run] { run.run(*s); });
    return CUDA_SUCCESS;
  });
  return started == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : kExecutionFailed;
}

}  // namespace

size_t cudnnGetVersion() {
  return 1;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const CUresult made = in_context([&](Entry& e) -> CUresult {
    if (make(handle) != CUDNN_STATUS_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    (*handle)->device = e.index;
    return CUDA_SUCCESS;
  });
  return made == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : kExecutionFailed;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return drop(handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  if (!handle) return kBadParameter;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return make(tensor);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int rank,
                                         const int* dims, const int* strides) {
  if (!tensor || !dims || !strides || rank < 4 || rank > 8) return kBadParameter;
  tensor->type = type;
  tensor->dims.assign(dims, dims + rank);
  tensor->strides.assign(strides, strides + rank);
  return is_positive(tensor->dims) && is_positive(tensor->strides) ? CUDNN_STATUS_SUCCESS : kBadParameter;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return drop(tensor);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  return make(filter);
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int* dims) {
  if (!filter || !dims || rank < 4 || rank > 8) return kBadParameter;
  filter->type = type;
  filter->dims.assign(dims, dims + rank);
  std::vector<size_t> order;
  for (size_t d = 0; d < filter->dims.size(); ++d) order.push_back(d);
  if (format == CUDNN_TENSOR_NHWC) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  filter->strides = dense_strides(filter->dims, order);
  return is_positive(filter->dims) ? CUDNN_STATUS_SUCCESS : kBadParameter;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return drop(filter);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return make(convolution);
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution, int dims, const int* padding,
                                              const int* strides, const int* dilation, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t sum_type) {
  if (!convolution || dims < 2 || !padding || !strides || !dilation) return kBadParameter;
  if (mode != CUDNN_CROSS_CORRELATION) return kNotSupported;
  convolution->padding.assign(padding, padding + dims);
  convolution->steps.assign(strides, strides + dims);
  convolution->dilation.assign(dilation, dilation + dims);
  convolution->sum_type = sum_type;
  return is_positive(convolution->steps) && is_positive(convolution->dilation) ? CUDNN_STATUS_SUCCESS : kBadParameter;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  if (!convolution) return kBadParameter;
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
  if (!convolution || groups < 1) return kBadParameter;
  convolution->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return drop(convolution);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t convolution,
                                                     cudnnTensorDescriptor_t y, int wanted, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* found) {
  return propose(handle, x, w, convolution, y, wanted, count, found, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t convolution,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t,
                                                      size_t* bytes) {
  return give_workspace_size(handle, x, w, convolution, y, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_tensor,
                                      const void* x, cudnnFilterDescriptor_t filter, const void* w,
                                      cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, size_t workspace_bytes, const void* beta,
                                      cudnnTensorDescriptor_t y_tensor, void* y) {
  return start({handle, alpha, beta, x_tensor, filter, convolution, y_tensor, x, w, y, workspace, workspace_bytes},
               Target::kY, "cudnnConvolutionForward", algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t dy,
                                                          cudnnConvolutionDescriptor_t convolution,
                                                          cudnnTensorDescriptor_t dx, int wanted, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return propose(handle, dx, w, convolution, dy, wanted, count, found, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                 CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy,
                                                           cudnnConvolutionDescriptor_t convolution,
                                                           cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t,
                                                           size_t* bytes) {
  return give_workspace_size(handle, dx, w, convolution, dy, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t filter,
                                           const void* w, cudnnTensorDescriptor_t dy_tensor, const void* dy,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_bytes, const void* beta, cudnnTensorDescriptor_t dx_tensor,
                                           void* dx) {
  return start({handle, alpha, beta, dx_tensor, filter, convolution, dy_tensor, dx, w, dy, workspace, workspace_bytes},
               Target::kX, "cudnnConvolutionBackwardData", algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t dy,
                                                            cudnnConvolutionDescriptor_t convolution,
                                                            cudnnFilterDescriptor_t dw, int wanted, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return propose(handle, x, dw, convolution, dy, wanted, count, found, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                 CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t dy,
                                                             cudnnConvolutionDescriptor_t convolution,
                                                             cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t, size_t* bytes) {
  return give_workspace_size(handle, x, dw, convolution, dy, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_tensor,
                                             const void* x, cudnnTensorDescriptor_t dy_tensor, const void* dy,
                                             cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             size_t workspace_bytes, const void* beta,
                                             cudnnFilterDescriptor_t dw_filter, void* dw) {
  return start(
      {handle, alpha, beta, x_tensor, dw_filter, convolution, dy_tensor, x, dw, dy, workspace, workspace_bytes},
      Target::kW, "cudnnConvolutionBackwardFilter", algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
}

}  // namespace collet::gpu
