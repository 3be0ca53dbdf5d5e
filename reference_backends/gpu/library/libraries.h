// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reference_backends/gpu/library/library_api.h"

namespace collet::gpu {

// The functions of each library, by their exported names. `find` looks all of them up in an opened library; false if one is missing.
struct CublasFunctions {
#define COLLET_CUBLAS_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#include "reference_backends/gpu/library/cublas_functions.def"
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

/// The functions of NVIDIA's libraries that were found. All functions of a library are there, or none.
struct Libraries : CublasFunctions, CudnnFunctions, CufftFunctions {
  bool has_products() const { return cublasLtMatmul != nullptr; }
  bool has_convolutions() const { return cudnnConvolutionForward != nullptr; }
  bool has_fft() const { return cufftXtExec != nullptr; }
  /// Names and versions of the libraries, for cache keys: "cublasLt 130002, cudnn 91002, cufft 12003". Empty if there are none.
  std::string versions() const;
};

/// Opens cuBLASLt, cuDNN and cuFFT, the newest that dlopen finds, or all of them in the library `path` unless it is empty. What is missing, or lacks a
/// function, stays null. They stay open for the life of the process.
Libraries open_libraries(const std::string& path = {});

}  // namespace collet::gpu
