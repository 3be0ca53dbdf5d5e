// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/driver/driver.h"

#include <collet/dynamic_library.hpp>

#include <utility>

namespace collet::gpu {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

struct Result {
  CUresult number;
  const char* name;
  const char* meaning;
};
constexpr Result kResults[] = {
#define COLLET_CUDA_ERROR(name, number, text) {name, #name, text},
#include "reference_backends/gpu/driver/driver_errors.def"
};

const Result* find_result(CUresult number) {
  for (const Result& r : kResults) {
    if (r.number == number) return &r;
  }
  return nullptr;
}

}  // namespace

const char* result_name(CUresult result) {
  const Result* found = find_result(result);
  return found ? found->name : nullptr;
}

const char* result_meaning(CUresult result) {
  const Result* found = find_result(result);
  return found ? found->meaning : nullptr;
}

std::string result_text(CUresult result) {
  const std::string number = std::to_string(static_cast<unsigned int>(result));
  const Result* found = find_result(result);
  if (!found) return "CUDA error " + number;
  return std::string(found->name) + " (" + number + "): " + found->meaning;
}

codegen::Status open_driver(const std::string& name_or_path, Driver& out, const std::string& emulator_options) {
  const std::string name = name_or_path.empty() ? kLibrary : name_or_path;
  // The emulator must use the LLVM that it is linked with, also if the process has loaded another one before.
  void* library = dlopen(name.c_str(), name == kLibrary ? RTLD_NOW | RTLD_LOCAL : private_library());
  if (!library) {
    const char* problem = dlerror();
    return {COLLET_UNAVAILABLE, "no CUDA driver: " + std::string(problem ? problem : name + " does not open")};
  }
  Driver driver;
#define COLLET_CUDA_FUNCTION(name, parameters)                                                           \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #name));                          \
  if (!driver.name) {                                                                                    \
    dlclose(library);                                                                                    \
    return {COLLET_UNIMPLEMENTED, "the CUDA driver lacks " #name "; one of CUDA 12 or later is needed"}; \
  }
#include "reference_backends/gpu/driver/driver_functions.def"
  driver.colletCudaEmulatorLastError =
      reinterpret_cast<decltype(driver.colletCudaEmulatorLastError)>(dlsym(library, "colletCudaEmulatorLastError"));

  if (!emulator_options.empty()) {
    const auto configure = reinterpret_cast<CUresult (*)(const char*)>(dlsym(library, "colletCudaEmulatorConfigure"));
    if (!configure) return {COLLET_INVALID_ARGUMENT, name + " is not the emulator, and takes no options of it"};
    if (configure(emulator_options.c_str()) != CUDA_SUCCESS)
      return {COLLET_INVALID_ARGUMENT,
              "options of the CUDA emulator: " + std::string(driver.colletCudaEmulatorLastError())};
  }
  CUresult result = driver.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE) return {COLLET_NOT_FOUND, "no CUDA device: " + result_text(result)};
  if (result != CUDA_SUCCESS) {
    return {COLLET_UNAVAILABLE, "no CUDA driver: cuInit of " + name + " failed: " + result_text(result)};
  }
  result = driver.cuDriverGetVersion(&driver.version);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceGetCount(&driver.device_count);
  if (result != CUDA_SUCCESS) return {COLLET_UNAVAILABLE, "the CUDA driver " + name + ": " + result_text(result)};
  if (driver.device_count < 1) return {COLLET_NOT_FOUND, "no CUDA device: " + name + " finds none"};
  out = driver;
  return {};
}

}  // namespace collet::gpu
