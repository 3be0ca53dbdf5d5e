// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"

/// \file
/// A test fixture that uses the emulator as a program uses a driver.
namespace collet::gpu::testing_only {

/// Returns the driver, which the first call opens with these options of COLLET_CUDA_EMULATOR. Later calls ignore their
/// options.
inline const Driver& open_emulator(const char* options = "quiet=1,memory=512,timeout=2,threads=2,sm=90") {
  static const Driver driver = [&] {
    setenv("COLLET_CUDA_EMULATOR", options, 0);
    const char* const folder = std::getenv("COLLET_BACKEND_PATH");
    Driver d;
    const codegen::Status status = open_driver((folder ? std::string(folder) : ".") + "/libcollet_cuda_emulator.so", d);
    if (!status.ok()) {
      ADD_FAILURE() << status.message();
      std::abort();
    }
    return d;
  }();
  return driver;
}

inline std::string ptx_header(int sm = 80) {
  return std::string(sm > 80 ? ".version 8.1" : ".version 7.8") + "\n.target sm_" + std::to_string(sm) +
         "\n.address_size 64\n";
}

/// A test with a context and helpers for modules, launches and memory.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CUcontext context = nullptr;
    ASSERT_EQ(d.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(d.cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  void TearDown() override {
    d.cuCtxSetCurrent(nullptr);
    d.cuDevicePrimaryCtxRelease_v2(0);
  }

  /// Loads a module and returns its kernel of this name. If the text is refused, returns null and sets `log`.
  CUfunction load(const std::string& text, const char* name) {
    char buffer[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {buffer, reinterpret_cast<void*>(sizeof buffer)};
    module = nullptr;
    load_result = d.cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
    log = buffer;
    CUfunction function = nullptr;
    if (load_result == CUDA_SUCCESS) {
      EXPECT_EQ(d.cuModuleGetFunction(&function, module, name), CUDA_SUCCESS) << name;
    } else {
      EXPECT_EQ(log, std::string(expects_problem ? log : "")) << text;
    }
    return function;
  }

  template <typename T>
  CUdeviceptr upload(const std::vector<T>& values) {
    CUdeviceptr p = 0;
    EXPECT_EQ(d.cuMemAlloc_v2(&p, values.size() * sizeof(T)), CUDA_SUCCESS);
    EXPECT_EQ(d.cuMemcpyHtoD_v2(p, values.data(), values.size() * sizeof(T)), CUDA_SUCCESS);
    return p;
  }
  CUdeviceptr allocated(size_t bytes) {
    CUdeviceptr p = 0;
    EXPECT_EQ(d.cuMemAlloc_v2(&p, bytes), CUDA_SUCCESS);
    return p;
  }
  template <typename T>
  std::vector<T> download(CUdeviceptr p, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(d.cuMemcpyDtoH_v2(values.data(), p, count * sizeof(T)), CUDA_SUCCESS) << d.colletCudaEmulatorLastError();
    return values;
  }

  /// Launches a kernel and waits for it.
  template <typename... A>
  CUresult run(CUfunction f, unsigned blocks, unsigned threads, unsigned shared, A... arguments) {
    void* parameters[] = {static_cast<void*>(&arguments)..., nullptr};
    const CUresult r = d.cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, nullptr, parameters, nullptr);
    return r == CUDA_SUCCESS ? d.cuCtxSynchronize() : r;
  }
  std::string finding() const { return d.colletCudaEmulatorLastError(); }

  const Driver& d = open_emulator();
  CUmodule module = nullptr;
  CUresult load_result = CUDA_SUCCESS;
  std::string log;
  bool expects_problem = false;
};

}  // namespace collet::gpu::testing_only
