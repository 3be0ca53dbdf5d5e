// SPDX-License-Identifier: Apache-2.0
// Compares the declarations of library_api.h with those of the CUDA toolkit, if there is one.
#include "reference_backends/gpu/library/library_api.h"

#include <gtest/gtest.h>

#include "reference_backends/gpu/driver/theirs.h"
#include "reference_backends/gpu/library/libraries.h"

#ifdef COLLET_HAS_CUDA_LIBRARIES
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <cufftXt.h>
#include <cusolverDn.h>
#ifdef COLLET_HAS_NCCL
#include <nccl.h>
#endif

#include <type_traits>

COLLET_SAME_TYPE(CUstream, cudaStream_t)
COLLET_SAME_TYPE(cublasHandle_t, cublasHandle_t)
COLLET_SAME_TYPE(cublasOperation_t, cublasOperation_t)
COLLET_SAME_TYPE(cublasFillMode_t, cublasFillMode_t)
COLLET_SAME_TYPE(cublasDiagType_t, cublasDiagType_t)
COLLET_SAME_TYPE(cublasSideMode_t, cublasSideMode_t)
COLLET_SAME_TYPE(cuComplex, cuComplex)
COLLET_SAME_TYPE(cuDoubleComplex, cuDoubleComplex)
COLLET_SAME_TYPE(cusolverDnHandle_t, cusolverDnHandle_t)
COLLET_SAME_TYPE(cusolverDnParams_t, cusolverDnParams_t)
COLLET_SAME_TYPE(cusolverStatus_t, cusolverStatus_t)
COLLET_SAME_TYPE(cusolverEigMode_t, cusolverEigMode_t)
COLLET_SAME_TYPE(syevjInfo_t, syevjInfo_t)
COLLET_SAME_TYPE(gesvdjInfo_t, gesvdjInfo_t)
COLLET_SAME_TYPE(cublasLtHandle_t, cublasLtHandle_t)
COLLET_SAME_TYPE(cublasLtMatmulDesc_t, cublasLtMatmulDesc_t)
COLLET_SAME_TYPE(cublasLtMatrixLayout_t, cublasLtMatrixLayout_t)
COLLET_SAME_TYPE(cublasLtMatmulPreference_t, cublasLtMatmulPreference_t)
COLLET_SAME_TYPE(cublasStatus_t, cublasStatus_t)
COLLET_SAME_TYPE(cudaDataType_t, cudaDataType_t)
COLLET_SAME_TYPE(cublasComputeType_t, cublasComputeType_t)
COLLET_SAME_TYPE(cublasLtMatmulDescAttributes_t, cublasLtMatmulDescAttributes_t)
COLLET_SAME_TYPE(cublasLtMatrixLayoutAttribute_t, cublasLtMatrixLayoutAttribute_t)
COLLET_SAME_TYPE(cublasLtMatmulPreferenceAttributes_t, cublasLtMatmulPreferenceAttributes_t)
COLLET_SAME_TYPE(cublasLtMatmulAlgo_t, cublasLtMatmulAlgo_t)
COLLET_SAME_TYPE(cublasLtMatmulHeuristicResult_t, cublasLtMatmulHeuristicResult_t)
COLLET_SAME_TYPE(cufftResult, cufftResult)
COLLET_SAME_TYPE(cudnnHandle_t, cudnnHandle_t)
COLLET_SAME_TYPE(cudnnTensorDescriptor_t, cudnnTensorDescriptor_t)
COLLET_SAME_TYPE(cudnnFilterDescriptor_t, cudnnFilterDescriptor_t)
COLLET_SAME_TYPE(cudnnConvolutionDescriptor_t, cudnnConvolutionDescriptor_t)
COLLET_SAME_TYPE(cudnnStatus_t, cudnnStatus_t)
COLLET_SAME_TYPE(cudnnDataType_t, cudnnDataType_t)
COLLET_SAME_TYPE(cudnnTensorFormat_t, cudnnTensorFormat_t)
COLLET_SAME_TYPE(cudnnConvolutionMode_t, cudnnConvolutionMode_t)
COLLET_SAME_TYPE(cudnnMathType_t, cudnnMathType_t)
COLLET_SAME_TYPE(cudnnConvolutionFwdAlgo_t, cudnnConvolutionFwdAlgo_t)
COLLET_SAME_TYPE(cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgoPerf_t)
COLLET_SAME_TYPE(cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdDataAlgo_t)
COLLET_SAME_TYPE(cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgoPerf_t)
COLLET_SAME_TYPE(cudnnConvolutionBwdFilterAlgo_t, cudnnConvolutionBwdFilterAlgo_t)
COLLET_SAME_TYPE(cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgoPerf_t)
#ifdef COLLET_HAS_NCCL
COLLET_SAME_TYPE(ncclComm_t, ncclComm_t)
COLLET_SAME_TYPE(ncclResult_t, ncclResult_t)
COLLET_SAME_TYPE(ncclDataType_t, ncclDataType_t)
COLLET_SAME_TYPE(ncclRedOp_t, ncclRedOp_t)
COLLET_SAME_TYPE(ncclUniqueId, ncclUniqueId)
#if NCCL_VERSION_CODE >= 21400
// The toolkit's struct has more fields at its end.
template <>
struct Theirs<collet::gpu::ncclConfig_t> {
  using Type = ::ncclConfig_t;
  static_assert(sizeof(Type) >= sizeof(collet::gpu::ncclConfig_t));
  static_assert(offsetof(Type, size) == offsetof(collet::gpu::ncclConfig_t, size));
  static_assert(offsetof(Type, magic) == offsetof(collet::gpu::ncclConfig_t, magic));
  static_assert(offsetof(Type, version) == offsetof(collet::gpu::ncclConfig_t, version));
  static_assert(offsetof(Type, blocking) == offsetof(collet::gpu::ncclConfig_t, blocking));
};
#endif
#endif

namespace {

#define COLLET_CUBLAS_FUNCTION(result, name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/library/cublas_functions.def"
#define COLLET_BLAS_FUNCTION(name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/library/blas_functions.def"
#define COLLET_CUSOLVER_FUNCTION(name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#if CUSOLVER_VERSION >= 11701
#define COLLET_CUSOLVER_OPTIONAL(name, parameters) COLLET_CUSOLVER_FUNCTION(name, parameters)
#else
#define COLLET_CUSOLVER_OPTIONAL(name, parameters)
#endif
#include "reference_backends/gpu/library/cusolver_functions.def"
#define COLLET_CUDNN_FUNCTION(result, name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/library/cudnn_functions.def"
#define COLLET_CUFFT_FUNCTION(name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/library/cufft_functions.def"

#ifdef COLLET_HAS_NCCL
#define COLLET_NCCL_FUNCTION(result, name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Libraries::name)>::Type, decltype(&::name)>, #name);
#if NCCL_VERSION_CODE >= 21400
#define COLLET_NCCL_OPTIONAL(result, name, parameters) COLLET_NCCL_FUNCTION(result, name, parameters)
#else
#define COLLET_NCCL_OPTIONAL(result, name, parameters)
#endif
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
SAME_VALUE(CUBLAS_OP_C);
SAME_VALUE(CUBLAS_FILL_MODE_LOWER);
SAME_VALUE(CUBLAS_FILL_MODE_UPPER);
SAME_VALUE(CUBLAS_DIAG_NON_UNIT);
SAME_VALUE(CUBLAS_DIAG_UNIT);
SAME_VALUE(CUBLAS_SIDE_LEFT);
SAME_VALUE(CUBLAS_SIDE_RIGHT);
SAME_VALUE(CUSOLVER_STATUS_SUCCESS);
SAME_VALUE(CUSOLVER_STATUS_ALLOC_FAILED);
SAME_VALUE(CUSOLVER_STATUS_INVALID_VALUE);
SAME_VALUE(CUSOLVER_STATUS_EXECUTION_FAILED);
SAME_VALUE(CUSOLVER_STATUS_NOT_SUPPORTED);
SAME_VALUE(CUSOLVER_EIG_MODE_NOVECTOR);
SAME_VALUE(CUSOLVER_EIG_MODE_VECTOR);
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
SAME_VALUE(CUDNN_CONVOLUTION_BWD_DATA_ALGO_0);
SAME_VALUE(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
SAME_VALUE(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0);
SAME_VALUE(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
SAME_VALUE(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3);
SAME_VALUE(CUDNN_DETERMINISTIC);
static_assert(offsetof(cudnnConvolutionFwdAlgoPerf_t, memory) ==
              offsetof(collet::gpu::cudnnConvolutionFwdAlgoPerf_t, memory));
SAME_VALUE(CUFFT_INVALID_SIZE);
#ifdef COLLET_HAS_NCCL
SAME_VALUE(ncclUnhandledCudaError);
SAME_VALUE(ncclSystemError);
SAME_VALUE(ncclInternalError);
SAME_VALUE(ncclInvalidArgument);
SAME_VALUE(ncclInvalidUsage);
SAME_VALUE(ncclRemoteError);
#if NCCL_VERSION_CODE >= 21400
SAME_VALUE(ncclInProgress);
constexpr ::ncclConfig_t kInitializer = NCCL_CONFIG_INITIALIZER;
static_assert(kInitializer.magic == collet::gpu::kNcclConfigMagic);
static_assert(NCCL_VERSION(2, 14, 0) == collet::gpu::kNcclConfigVersion);
#endif
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
