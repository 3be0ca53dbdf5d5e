// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference_backends/gpu/driver/driver_api.h"

/// Declares the parts of cuBLAS, cuBLASLt, cuDNN, cuFFT, cuSOLVER and NCCL that the gpu backend uses, so that no CUDA toolkit is needed to
/// build it. library_api_test.cc compares them with the toolkit's headers where those exist. Names and numbers are the
/// libraries'.
namespace collet::gpu {

using cublasHandle_t = struct cublasContext*;
using cublasLtHandle_t = struct cublasLtContext*;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque_t*;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque_t*;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque_t*;
using cufftHandle = int;
using cusolverDnHandle_t = struct cusolverDnContext*;
using cusolverDnParams_t = struct cusolverDnParams*;
using syevjInfo_t = struct syevjInfo*;
using gesvdjInfo_t = struct gesvdjInfo*;
using cudnnHandle_t = struct cudnnContext*;
using cudnnTensorDescriptor_t = struct cudnnTensorStruct*;
using cudnnFilterDescriptor_t = struct cudnnFilterStruct*;
using cudnnConvolutionDescriptor_t = struct cudnnConvolutionStruct*;

enum cublasStatus_t : unsigned int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};

enum cudaDataType_t : unsigned int {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_8I = 3,
  CUDA_C_32F = 4,
  CUDA_C_64F = 5,
  CUDA_R_32I = 10,
  CUDA_R_16BF = 14,
};

enum cublasComputeType_t : unsigned int {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

enum cublasOperation_t : unsigned int { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };

enum cublasFillMode_t : unsigned int { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 };

enum cublasDiagType_t : unsigned int { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };

enum cublasSideMode_t : unsigned int { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };

/// Complex numbers of cuBLAS and cuSOLVER.
struct alignas(8) cuComplex {
  float x;  ///< real part
  float y;  ///< imaginary part
};
struct alignas(16) cuDoubleComplex {
  double x;  ///< real part
  double y;  ///< imaginary part
};

enum cublasLtMatmulDescAttributes_t : unsigned int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
};

enum cublasLtMatrixLayoutAttribute_t : unsigned int {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,
};

enum cublasLtMatmulPreferenceAttributes_t : unsigned int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};

enum cublasLtReductionScheme_t : unsigned int {
  /// Partial sums of a result are added in the type of the sum, not in that of the result.
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
};

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};

struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

enum cufftResult : unsigned int {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_INVALID_SIZE = 8,
};

enum cusolverStatus_t : unsigned int {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_NOT_INITIALIZED = 1,
  CUSOLVER_STATUS_ALLOC_FAILED = 2,
  CUSOLVER_STATUS_INVALID_VALUE = 3,
  CUSOLVER_STATUS_EXECUTION_FAILED = 6,
  CUSOLVER_STATUS_NOT_SUPPORTED = 9,
};

enum cusolverEigMode_t : unsigned int { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 };

enum cudnnStatus_t : unsigned int { CUDNN_STATUS_SUCCESS = 0 };  // other codes differ between versions

enum cudnnDataType_t : unsigned int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_BFLOAT16 = 9,
};

enum cudnnTensorFormat_t : unsigned int { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 };

enum cudnnConvolutionMode_t : unsigned int { CUDNN_CROSS_CORRELATION = 1 };

enum cudnnMathType_t : unsigned int {
  CUDNN_DEFAULT_MATH = 0,  ///< f32 is rounded to tf32 if the hardware supports it
  CUDNN_TENSOR_OP_MATH = 1,
  CUDNN_FMA_MATH = 3,
};

enum cudnnConvolutionFwdAlgo_t : unsigned int {
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
  CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
  CUDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
};

enum cudnnConvolutionBwdDataAlgo_t : unsigned int {
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,  ///< the order of its sums changes from run to run
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1,
};

enum cudnnConvolutionBwdFilterAlgo_t : unsigned int {
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 = 0,  ///< the order of its sums changes from run to run
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 = 3,  ///< as algorithm 0
};

enum cudnnDeterminism_t : unsigned int { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 };

/// An algorithm that cuDNN proposes.
template <class Algorithm>
struct cudnnAlgorithmPerf {
  Algorithm algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};
using cudnnConvolutionFwdAlgoPerf_t = cudnnAlgorithmPerf<cudnnConvolutionFwdAlgo_t>;
using cudnnConvolutionBwdDataAlgoPerf_t = cudnnAlgorithmPerf<cudnnConvolutionBwdDataAlgo_t>;
using cudnnConvolutionBwdFilterAlgoPerf_t = cudnnAlgorithmPerf<cudnnConvolutionBwdFilterAlgo_t>;

// The directions CUFFT_FORWARD and CUFFT_INVERSE, which are macros in cuFFT's header.
inline constexpr int kFftForward = -1;
inline constexpr int kFftInverse = 1;

using ncclComm_t = struct ncclComm*;

enum ncclResult_t : unsigned int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

/// What the members of a communicator find each other by.
struct ncclUniqueId {
  char internal[128];
};

/// The settings of a communicator, as NCCL 2.14 has them. Later versions take this shorter struct, by its size and version.
struct ncclConfig_v21400 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;  ///< 0: functions return ncclInProgress rather than wait for other members
};
using ncclConfig_t = ncclConfig_v21400;
inline constexpr unsigned int kNcclConfigMagic = 0xcafebeef;
inline constexpr unsigned int kNcclConfigVersion = 21400;

enum ncclDataType_t : unsigned int {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
};

enum ncclRedOp_t : unsigned int { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3 };

}  // namespace collet::gpu
