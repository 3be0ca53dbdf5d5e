// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/libraries.h"

#include <dlfcn.h>

#include <vector>

namespace collet::gpu {
namespace {

/// The first of these that can be opened; null if none can.
void* open_first(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(dlsym(library, name));
  return out != nullptr;
}

void find_cublas(void* library, Libraries& out) {
  Libraries found;
  bool has_all = true;
#define COLLET_CUBLAS_FUNCTION(result, name, parameters) has_all = find(library, #name, found.name) && has_all;
#include "reference_backends/gpu/library/cublas_functions.def"
  if (!has_all) return;
#define COLLET_CUBLAS_FUNCTION(result, name, parameters) out.name = found.name;
#include "reference_backends/gpu/library/cublas_functions.def"
}

void find_cudnn(void* library, Libraries& out) {
  Libraries found;
  bool has_all = true;
#define COLLET_CUDNN_FUNCTION(result, name, parameters) has_all = find(library, #name, found.name) && has_all;
#include "reference_backends/gpu/library/cudnn_functions.def"
  if (!has_all) return;
#define COLLET_CUDNN_FUNCTION(result, name, parameters) out.name = found.name;
#include "reference_backends/gpu/library/cudnn_functions.def"
}

void find_cufft(void* library, Libraries& out) {
  Libraries found;
  bool has_all = true;
#define COLLET_CUFFT_FUNCTION(name, parameters) has_all = find(library, #name, found.name) && has_all;
#include "reference_backends/gpu/library/cufft_functions.def"
  if (!has_all) return;
#define COLLET_CUFFT_FUNCTION(name, parameters) out.name = found.name;
#include "reference_backends/gpu/library/cufft_functions.def"
}

}  // namespace

std::string Libraries::versions() const {
  std::string out;
  const auto add = [&](const char* name, size_t version) {
    out += (out.empty() ? "" : ", ") + (name + (" " + std::to_string(version)));
  };
  if (has_products()) add("cublasLt", cublasLtGetVersion());
  if (has_convolutions()) add("cudnn", cudnnGetVersion());
  int version = 0;
  if (has_fft() && cufftGetVersion(&version) == CUFFT_SUCCESS) add("cufft", static_cast<size_t>(version));
  return out;
}

Libraries open_libraries(const std::string& path) {
  const auto names = [&](std::vector<std::string> usual) { return path.empty() ? usual : std::vector{path}; };
  Libraries out;
  // Of CUDA 13, 12 and 11.
  if (void* const library = open_first(names({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"})))
    find_cublas(library, out);
  if (void* const library = open_first(names({"libcudnn.so.9", "libcudnn.so.8"}))) find_cudnn(library, out);
  if (void* const library = open_first(names({"libcufft.so.12", "libcufft.so.11", "libcufft.so.10"})))
    find_cufft(library, out);
  return out;
}

}  // namespace collet::gpu
