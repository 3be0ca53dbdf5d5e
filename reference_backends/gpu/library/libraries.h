// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reference_backends/gpu/library/library_api.h"

namespace collet::gpu {

// The functions of each library, by their exported names. `find` looks up all of them in an opened library, and returns
// false if one is missing.
struct CublasFunctions {
#define COLLET_CUBLAS_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#include "reference_backends/gpu/library/cublas_functions.def"
  bool find(void* library);
};
struct BlasFunctions {
#define COLLET_BLAS_FUNCTION(name, parameters) cublasStatus_t(*name) parameters = nullptr;
#include "reference_backends/gpu/library/blas_functions.def"
  bool find(void* library);
};
struct CusolverFunctions {
#define COLLET_CUSOLVER_FUNCTION(name, parameters) cusolverStatus_t(*name) parameters = nullptr;
#define COLLET_CUSOLVER_OPTIONAL(name, parameters) cusolverStatus_t(*name) parameters = nullptr;
#include "reference_backends/gpu/library/cusolver_functions.def"
  bool find(void* library);
};
struct CudnnFunctions {
#define COLLET_CUDNN_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#include "reference_backends/gpu/library/cudnn_functions.def"
  bool find(void* library);
};
struct CufftFunctions {
#define COLLET_CUFFT_FUNCTION(name, parameters) cufftResult(*name) parameters = nullptr;
#include "reference_backends/gpu/library/cufft_functions.def"
  bool find(void* library);
};
struct NcclFunctions {
#define COLLET_NCCL_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#define COLLET_NCCL_OPTIONAL(result, name, parameters) result(*name) parameters = nullptr;
#include "reference_backends/gpu/library/nccl_functions.def"
  bool find(void* library);
};

/// The functions of NVIDIA's libraries that were found. Either all functions of a library are set, or none; optional ones
/// may be missing.
struct Libraries : CublasFunctions, BlasFunctions, CusolverFunctions, CudnnFunctions, CufftFunctions, NcclFunctions {
  bool has_products() const { return cublasLtMatmul != nullptr; }
  bool has_convolutions() const { return cudnnConvolutionForward != nullptr; }
  bool has_fft() const { return cufftXtExec != nullptr; }
  bool has_factorizations() const { return cublasCreate_v2 != nullptr && cusolverDnCreate != nullptr; }
  bool has_collectives() const { return ncclGroupEnd != nullptr; }
  /// True if NCCL has communicators over several processes.
  bool has_processes() const {
    return has_collectives() && ncclGetUniqueId != nullptr && ncclCommInitRank != nullptr &&
           ncclCommGetAsyncError != nullptr;
  }
  /// Returns names and versions of the libraries, for cache keys, such as "cublasLt 130002, cudnn 91002, cufft 12003, nccl 22803".
  /// Empty if there are none.
  std::string versions() const;
};

/// Opens the newest versions of cuBLASLt, cuDNN, cuFFT and NCCL that dlopen finds, or the library `path` for all of them
/// unless it is empty. The functions of a library that is missing or lacks a function stay null. The libraries stay
/// open until the process ends.
Libraries open_libraries(const std::string& path = {});

}  // namespace collet::gpu
