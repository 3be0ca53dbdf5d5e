// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>
#include <collet/codegen/target.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"
#include "reference_backends/gpu/tensor_maps.h"
#include "sdk/codegen/llvm/object_compiler.h"
#include "sdk/codegen/schedule/grid.h"
#include "sdk/codegen/schedule/processor.h"
#include "sdk/codegen/testing/kernel_cases.h"

/// \file
/// Runs kernel IR on the driver emulator, for tests: a device, compilation to PTX, and kernels as text.

namespace collet::gpu {

using codegen::KernelCase;

/// A device of the emulator, of the newest compute capability that the code generator knows. It runs code for older
/// ones, too.
class Emulated {
 public:
  Emulated() {
    const codegen::Status opened = open_driver(COLLET_CUDA_EMULATOR_PATH, driver_, "sm=90");
    EXPECT_TRUE(opened.ok()) << opened.message();
    if (opened.ok()) open();
  }

  void open() {
    check(driver_.cuDeviceGet(&device_, 0));
    check(driver_.cuDevicePrimaryCtxRetain(&context_, device_));
    check(driver_.cuCtxSetCurrent(context_));
  }

  /// Releases the context and retains a new one, which is needed after a kernel has failed.
  void reopen() {
    driver_.cuDevicePrimaryCtxRelease_v2(device_);
    open();
  }

  bool is_open() const { return context_ != nullptr; }
  const Driver& driver() const { return driver_; }

  bool check(CUresult result) const {
    if (result == CUDA_SUCCESS) return true;
    const char* const found = driver_.colletCudaEmulatorLastError ? driver_.colletCudaEmulatorLastError() : "";
    ADD_FAILURE() << result_text(result) << " " << (found ? found : "");
    return false;
  }

  /// Runs a kernel with its buffers on the device. If the kernel fails, the test fails.
  void run(CUfunction function, const codegen::GridSchedule& schedule, codegen::Buffers& buffers) const {
    if (!try_run(function, schedule, buffers)) check(failed_);
  }

  /// Like `run`, but returns false if the kernel fails.
  bool try_run(CUfunction function, const codegen::GridSchedule& schedule, codegen::Buffers& buffers) const {
    std::vector<CUdeviceptr> memory(buffers.size(), 0);
    std::vector<void*> parameters;
    failed_ = CUDA_SUCCESS;
    const auto done = [&](CUresult result) {
      if (failed_ == CUDA_SUCCESS) failed_ = result;
    };
    for (size_t i = 0; i < buffers.size(); ++i) {
      parameters.push_back(&memory[i]);
      if (buffers[i].empty()) continue;
      done(driver_.cuMemAlloc_v2(&memory[i], buffers[i].size()));
      done(driver_.cuMemcpyHtoD_v2(memory[i], buffers[i].data(), buffers[i].size()));
    }
    std::vector<CUtensorMap> maps;
    const std::vector<uint64_t> addresses(memory.begin(), memory.end());
    done(append_tensor_maps(driver_, schedule.maps, addresses.data(), &maps));
    for (CUtensorMap& map : maps) parameters.push_back(&map);
    if (schedule.shared_bytes != 0)
      done(driver_.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      static_cast<int>(schedule.shared_bytes)));
    done(driver_.cuLaunchKernel(function, schedule.blocks, 1, 1, schedule.block_threads, 1, 1, schedule.shared_bytes,
                                nullptr, parameters.data(), nullptr));
    done(driver_.cuCtxSynchronize());
    for (size_t i = 0; i < buffers.size() && failed_ == CUDA_SUCCESS; ++i) {
      if (memory[i] == 0) continue;
      done(driver_.cuMemcpyDtoH_v2(buffers[i].data(), memory[i], buffers[i].size()));
      done(driver_.cuMemFree_v2(memory[i]));
    }
    return failed_ == CUDA_SUCCESS;
  }

 private:
  Driver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  mutable CUresult failed_ = CUDA_SUCCESS;  ///< the first error of the last run
};

inline Emulated& device() {
  static Emulated only;
  return only;
}

inline codegen::Target target(const std::string& cpu = "sm_80") {
  codegen::Target out;
  const codegen::Status found = codegen::cross_target("nvptx64:" + cpu, out);
  EXPECT_TRUE(found.ok()) << found.message();
  // Few processors give few blocks, so that each thread computes several points, and a block several tiles.
  out.grid.processors = out.grid.warpgroups ? 1 : 2;
  return out;
}

/// Compiled kernels.
struct Compiled {
  std::string ptx;
  codegen::Artifacts artifacts;
  std::vector<std::string> names;
  std::vector<codegen::GridSchedule> schedules;
};

inline Compiled compile_kernels(const std::vector<KernelCase>& cases, const std::string& cpu = "sm_80") {
  Compiled out;
  const codegen::Target machine = target(cpu);
  std::unique_ptr<codegen::ObjectCompiler> compiler;
  const codegen::Status created = codegen::ObjectCompiler::create(machine, compiler);
  EXPECT_TRUE(created.ok()) << created.message();
  if (!created.ok()) return out;
  std::vector<codegen::FunctionSource> sources;
  for (const KernelCase& c : cases) {
    codegen::GridKernel scheduled = schedule_grid(c.kernel, machine.grid);
    schedule_for(scheduled.kernel, machine);
    out.schedules.push_back(scheduled.schedule);
    out.names.push_back("kernel" + std::to_string(sources.size()));
    sources.push_back({out.names.back(), std::move(scheduled), false});
  }
  const auto fill = [&](llvm::Module& module) {
    for (const codegen::FunctionSource& source : sources) emit_function(source, module, machine);
  };
  const codegen::Status compiled = compiler->compile("kernels", fill, &out.artifacts, out.ptx);
  EXPECT_TRUE(compiled.ok()) << compiled.message();
  return out;
}

inline KernelCase from_text(const std::string& name, const std::string& text,
                            codegen::Fill fill = codegen::Fill::kSmall, double ulp = 0) {
  KernelCase out{name, {}, fill, {ulp}};
  const codegen::Status parsed = codegen::parse_kernel(text, out.kernel);
  EXPECT_TRUE(parsed.ok()) << parsed.message();
  const codegen::Status verified = codegen::verify_kernel(out.kernel);
  EXPECT_TRUE(verified.ok()) << verified.message();
  return out;
}

/// Returns the text of a kernel that combines the elements of each row of an array.
inline std::string sum_kernel(const std::string& type, const std::string& combine, int64_t rows, int64_t columns) {
  const std::string n = std::to_string(columns);
  return "kernel (2 buffers) {\nouter i0: " + std::to_string(rows) + "\ninner i1: " + n + "\n%0 = load " + type +
         " b0[" + n + "*i0 + i1]\nr0 = reduce " + combine + " " + type + " %0 init identity\n%1 = reduced " + type +
         " r0 result 0\nstore b1[i0], %1\n}";
}

/// Parameters of a kernel that computes a matrix product and adds a row to it.
struct ProductCase {
  std::string type;  ///< type of the factors; sums of 16-bit floats are f32, of bytes s32
  int64_t batch, rows, columns, depth;
  bool a_by_depth = true;  ///< whether the depth is contiguous in the first factor; else its rows are
  bool b_by_depth = true;  ///< whether the depth is contiguous in the second factor; else its columns are
  bool computed = false;   ///< whether the factors are negated before the product
  bool tf32 = false;       ///< whether f32 factors may be rounded to tf32
};

inline std::string product_kernel(const ProductCase& p) {
  const auto n = [](int64_t x) { return std::to_string(x); };
  const bool is_half = p.type == "bf16" || p.type == "f16";
  const bool is_byte = p.type == "s8" || p.type == "u8";
  const std::string sum = is_half ? "f32" : is_byte ? "s32" : p.type;
  std::string text = "kernel (4 buffers) {\nouter i0: " + n(p.batch) + "\nouter i1: " + n(p.rows) +
                     "\nouter i2: " + n(p.columns) + "\ninner i3: " + n(p.depth) + "\n";
  int next = 0;
  const auto line = [&](const std::string& expression) {
    text += "%" + n(next) + " = " + expression + "\n";
    return "%" + n(next++);
  };
  const auto factor = [&](const std::string& index) {
    std::string x = line("load " + p.type + " " + index);
    if (p.computed) x = line("negate " + p.type + " " + x);
    return p.type == sum ? x : line("convert " + sum + " " + x);
  };
  const std::string a = factor("b0[" + n(p.rows * p.depth) + "*i0 + " +
                               (p.a_by_depth ? n(p.depth) + "*i1 + i3" : "i1 + " + n(p.rows) + "*i3") + "]");
  const std::string b = factor("b1[" + n(p.columns * p.depth) + "*i0 + " +
                               (p.b_by_depth ? n(p.depth) + "*i2 + i3" : "i2 + " + n(p.columns) + "*i3") + "]");
  const std::string product = line("multiply " + sum + " " + a + ", " + b);
  text += "r0 = reduce add " + sum + " " + product + " init identity" + (p.tf32 ? " tf32\n" : "\n");
  const std::string reduced = line("reduced " + sum + " r0 result 0");
  const std::string result = line("add " + sum + " " + reduced + ", " + line("load " + sum + " b2[i2]"));
  return text + "store b3[" + n(p.rows * p.columns) + "*i0 + " + n(p.columns) + "*i1 + i2], " + result + "\n}";
}

}  // namespace collet::gpu
