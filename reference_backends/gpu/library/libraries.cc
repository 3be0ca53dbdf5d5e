// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/libraries.h"

#include <dlfcn.h>

#include <vector>

namespace collet::gpu {
namespace {

/// Opens the first of these libraries that can be opened, and returns it; null if none can.
void* open_first(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
bool find_function(void* library, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(dlsym(library, name));
  return out != nullptr;
}

/// Sets the functions of one library from the first of `names` that can be opened; leaves them null if one is missing.
template <class Functions>
void open_into(Functions& out, const std::vector<std::string>& names) {
  void* const library = open_first(names);
  Functions found;
  if (library && found.find(library)) out = found;
}

}  // namespace

bool CublasFunctions::find(void* library) {
  bool has_all = true;
#define COLLET_CUBLAS_FUNCTION(result, name, parameters) has_all = find_function(library, #name, name) && has_all;
#include "reference_backends/gpu/library/cublas_functions.def"
  return has_all;
}

bool BlasFunctions::find(void* library) {
  bool has_all = true;
#define COLLET_BLAS_FUNCTION(name, parameters) has_all = find_function(library, #name, name) && has_all;
#include "reference_backends/gpu/library/blas_functions.def"
  return has_all;
}

bool CusolverFunctions::find(void* library) {
  bool has_all = true;
#define COLLET_CUSOLVER_FUNCTION(name, parameters) has_all = find_function(library, #name, name) && has_all;
#define COLLET_CUSOLVER_OPTIONAL(name, parameters) find_function(library, #name, name);
#include "reference_backends/gpu/library/cusolver_functions.def"
  return has_all;
}

bool CudnnFunctions::find(void* library) {
  bool has_all = true;
#define COLLET_CUDNN_FUNCTION(result, name, parameters) has_all = find_function(library, #name, name) && has_all;
#include "reference_backends/gpu/library/cudnn_functions.def"
  return has_all;
}

bool CufftFunctions::find(void* library) {
  bool has_all = true;
#define COLLET_CUFFT_FUNCTION(name, parameters) has_all = find_function(library, #name, name) && has_all;
#include "reference_backends/gpu/library/cufft_functions.def"
  return has_all;
}

bool NcclFunctions::find(void* library) {
  bool has_all = true;
#define COLLET_NCCL_FUNCTION(result, name, parameters) has_all = find_function(library, #name, name) && has_all;
#define COLLET_NCCL_OPTIONAL(result, name, parameters) find_function(library, #name, name);
#include "reference_backends/gpu/library/nccl_functions.def"
  return has_all;
}

std::string Libraries::versions() const {
  std::string out;
  const auto add = [&](const char* name, size_t version) {
    out += (out.empty() ? "" : ", ") + (name + (" " + std::to_string(version)));
  };
  if (has_products()) add("cublasLt", cublasLtGetVersion());
  if (has_convolutions()) add("cudnn", cudnnGetVersion());
  int version = 0;
  if (has_fft() && cufftGetVersion(&version) == CUFFT_SUCCESS) add("cufft", static_cast<size_t>(version));
  if (has_factorizations() && cusolverGetVersion(&version) == CUSOLVER_STATUS_SUCCESS)
    add("cusolver", static_cast<size_t>(version));
  if (has_collectives() && ncclGetVersion(&version) == ncclSuccess) add("nccl", static_cast<size_t>(version));
  return out;
}

Libraries open_libraries(const std::string& path) {
  const auto names = [&](std::vector<std::string> usual) { return path.empty() ? usual : std::vector{path}; };
  Libraries out;
  // The library names of CUDA 13, 12 and 11.
  open_into<CublasFunctions>(out, names({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"}));
  open_into<BlasFunctions>(out, names({"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}));
  open_into<CusolverFunctions>(out, names({"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so.10"}));
  open_into<CudnnFunctions>(out, names({"libcudnn.so.9", "libcudnn.so.8"}));
  open_into<CufftFunctions>(out, names({"libcufft.so.12", "libcufft.so.11", "libcufft.so.10"}));
  open_into<NcclFunctions>(out, names({"libnccl.so.2"}));
  return out;
}

}  // namespace collet::gpu
