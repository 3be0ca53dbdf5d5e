// SPDX-License-Identifier: Apache-2.0
// Compares the declarations of library_api.h with those of the CUDA toolkit, if there is one.
#include "reference_backends/gpu/library/library_api.h"

#include <gtest/gtest.h>

#include "reference_backends/gpu/library/libraries.h"

#ifdef COLLET_HAS_CUDA_LIBRARIES
#include <cublasLt.h>
#include <cudnn.h>
#include <cufftXt.h>
#ifdef COLLET_HAS_NCCL
#include <nccl.h>
#endif

#include <type_traits>

namespace {

/// Maps a type of library_api.h to the toolkit's type.
template <typename T>
struct Theirs {
  using Type = T;
};
template <typename T>
struct Theirs<T*> {
  using Type = typename Theirs<T>::Type*;
};
template <typename T>
struct Theirs<const T> {
  using Type = const typename Theirs<T>::Type;
};
template <typename R, typename... A>
struct Theirs<R (*)(A...)> {
  using Type = typename Theirs<R>::Type (*)(typename Theirs<A>::Type...);
};
#define SAME(ours, theirs)                                      \
  template <>                                                   \
  struct Theirs<collet::gpu::ours> {                            \
    using Type = ::theirs;                                      \
    static_assert(sizeof(Type) == sizeof(collet::gpu::ours));   \
    static_assert(alignof(Type) == alignof(collet::gpu::ours)); \
  };
SAME(CUstream, cudaStream_t)
SAME(cublasLtHandle_t, cublasLtHandle_t)
SAME(cublasLtMatmulDesc_t, cublasLtMatmulDesc_t)
SAME(cublasLtMatrixLayout_t, cublasLtMatrixLayout_t)
SAME(cublasLtMatmulPreference_t, cublasLtMatmulPreference_t)
SAME(cublasStatus_t, cublasStatus_t)
SAME(cudaDataType_t, cudaDataType_t)
SAME(cublasComputeType_t, cublasComputeType_t)
SAME(cublasLtMatmulDescAttributes_t, cublasLtMatmulDescAttributes_t)
SAME(cublasLtMatrixLayoutAttribute_t, cublasLtMatrixLayoutAttribute_t)
SAME(cublasLtMatmulPreferenceAttributes_t, cublasLtMatmulPreferenceAttributes_t)
SAME(cublasLtMatmulAlgo_t, cublasLtMatmulAlgo_t)
SAME(cublasLtMatmulHeuristicResult_t, cublasLtMatmulHeuristicResult_t)
SAME(cufftResult, cufftResult)
SAME(cudnnHandle_t, cudnnHandle_t)
SAME(cudnnTensorDescriptor_t, cudnnTensorDescriptor_t)
SAME(cudnnFilterDescriptor_t, cudnnFilterDescriptor_t)
SAME(cudnnConvolutionDescriptor_t, cudnnConvolutionDescriptor_t)
SAME(cudnnStatus_t, cudnnStatus_t)
SAME(cudnnDataType_t, cudnnDataType_t)
SAME(cudnnTensorFormat_t, cudnnTensorFormat_t)
SAME(cudnnConvolutionMode_t, cudnnConvolutionMode_t)
SAME(cudnnMathType_t, cudnnMathType_t)
SAME(cudnnConvolutionFwdAlgo_t, cudnnConvolutionFwdAlgo_t)
SAME(cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgoPerf_t)
#ifdef COLLET_HAS_NCCL
SAME(ncclComm_t, ncclComm_t)
SAME(ncclResult_t, ncclResult_t)
SAME(ncclDataType_t, ncclDataType_t)
SAME(ncclRedOp_t, ncclRedOp_t)
#endif
#undef SAME

#define COLLET_CUBLAS_FUNCTION(result, name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/library/cublas_functions.def"
#define COLLET_CUDNN_FUNCTION(result, name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/library/cudnn_functions.def"
#define COLLET_CUFFT_FUNCTION(name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/library/cufft_functions.def"

#ifdef COLLET_HAS_NCCL
#define COLLET_NCCL_FUNCTION(result, name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/library/nccl_functions.def"
#endif

#define SAME_VALUE(name) static_assert(static_cast<int>(::name) == static_cast<int>(collet::gpu::name))
SAME_VALUE(CUBLAS_STATUS_ALLOC_FAILED);
SAME_VALUE(CUBLAS_STATUS_INVALID_VALUE);
SAME_VALUE(CUBLAS_STATUS_EXECUTION_FAILED);
SAME_VALUE(CUBLAS_STATUS_NOT_SUPPORTED);
SAME_VALUE(CUDA_R_32F);
SAME_VALUE(CUDA_R_64F);
SAME_VALUE(CUDA_R_16F);
SAME_VALUE(CUDA_R_8I);
SAME_VALUE(CUDA_C_32F);
SAME_VALUE(CUDA_C_64F);
SAME_VALUE(CUDA_R_32I);
SAME_VALUE(CUDA_R_16BF);
SAME_VALUE(CUBLAS_COMPUTE_32F);
SAME_VALUE(CUBLAS_COMPUTE_64F);
SAME_VALUE(CUBLAS_COMPUTE_32I);
SAME_VALUE(CUBLAS_COMPUTE_32F_FAST_TF32);
SAME_VALUE(CUBLAS_OP_N);
SAME_VALUE(CUBLAS_OP_T);
SAME_VALUE(CUBLASLT_MATMUL_DESC_TRANSA);
SAME_VALUE(CUBLASLT_MATMUL_DESC_TRANSB);
SAME_VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME_VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME_VALUE(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME_VALUE(CUFFT_ALLOC_FAILED);
SAME_VALUE(CUDNN_STATUS_SUCCESS);
SAME_VALUE(CUDNN_DATA_FLOAT);
SAME_VALUE(CUDNN_DATA_DOUBLE);
SAME_VALUE(CUDNN_DATA_HALF);
SAME_VALUE(CUDNN_DATA_BFLOAT16);
SAME_VALUE(CUDNN_TENSOR_NCHW);
SAME_VALUE(CUDNN_TENSOR_NHWC);
SAME_VALUE(CUDNN_CROSS_CORRELATION);
SAME_VALUE(CUDNN_DEFAULT_MATH);
SAME_VALUE(CUDNN_TENSOR_OP_MATH);
SAME_VALUE(CUDNN_FMA_MATH);
SAME_VALUE(CUDNN_CONVOLUTION_FWD_ALGO_DIRECT);
SAME_VALUE(CUDNN_DETERMINISTIC);
static_assert(offsetof(cudnnConvolutionFwdAlgoPerf_t, memory) ==
              offsetof(collet::gpu::cudnnConvolutionFwdAlgoPerf_t, memory));
SAME_VALUE(CUFFT_INVALID_SIZE);
#ifdef COLLET_HAS_NCCL
SAME_VALUE(ncclUnhandledCudaError);
SAME_VALUE(ncclInternalError);
SAME_VALUE(ncclInvalidArgument);
SAME_VALUE(ncclInvalidUsage);
SAME_VALUE(ncclInt8);
SAME_VALUE(ncclUint8);
SAME_VALUE(ncclInt32);
SAME_VALUE(ncclUint32);
SAME_VALUE(ncclInt64);
SAME_VALUE(ncclUint64);
SAME_VALUE(ncclFloat16);
SAME_VALUE(ncclFloat32);
SAME_VALUE(ncclFloat64);
SAME_VALUE(ncclBfloat16);
SAME_VALUE(ncclSum);
SAME_VALUE(ncclProd);
SAME_VALUE(ncclMax);
SAME_VALUE(ncclMin);
#endif
#undef SAME_VALUE
static_assert(CUFFT_FORWARD == collet::gpu::kFftForward && CUFFT_INVERSE == collet::gpu::kFftInverse);

}  // namespace
#endif

TEST(LibraryApi, MatchesTheToolkit) {
#ifndef COLLET_HAS_CUDA_LIBRARIES
  GTEST_SKIP() << "no CUDA toolkit with cuBLASLt and cuFFT: our declarations are not compared";
#endif
}
