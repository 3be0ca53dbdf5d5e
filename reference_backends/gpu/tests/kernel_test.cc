// SPDX-License-Identifier: Apache-2.0
// Kernels as a grid of threads runs them, on the driver emulator: what they leave in memory is what the evaluator does.

#include <collet/codegen/target.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"
#include "sdk/codegen/kernel/parse.h"
#include "sdk/codegen/kernel/transform.h"
#include "sdk/codegen/kernel/verify.h"
#include "sdk/codegen/llvm/object_compiler.h"
#include "sdk/codegen/schedule/grid.h"
#include "sdk/codegen/testing/kernel_cases.h"
#include "sdk/codegen/testing/random_kernels.h"

namespace collet::gpu {
namespace {

using codegen::KernelCase;

/// A device of the emulator.
class Emulated {
 public:
  Emulated() {
    const codegen::Status opened = open_driver(COLLET_CUDA_EMULATOR_PATH, driver_);
    EXPECT_TRUE(opened.ok()) << opened.message();
    if (!opened.ok()) return;
    CUdevice device = 0;
    check(driver_.cuDeviceGet(&device, 0));
    check(driver_.cuDevicePrimaryCtxRetain(&context_, device));
    check(driver_.cuCtxSetCurrent(context_));
  }

  bool is_open() const { return context_ != nullptr; }
  const Driver& driver() const { return driver_; }

  bool check(CUresult result) const {
    if (result == CUDA_SUCCESS) return true;
    const char* const found = driver_.colletCudaEmulatorLastError ? driver_.colletCudaEmulatorLastError() : "";
    ADD_FAILURE() << result_text(result) << " " << (found ? found : "");
    return false;
  }

  /// Runs a kernel with its buffers on the device.
  void run(CUfunction function, const codegen::GridSchedule& schedule, codegen::Buffers& buffers) const {
    std::vector<CUdeviceptr> memory(buffers.size(), 0);
    std::vector<void*> parameters;
    for (size_t i = 0; i < buffers.size(); ++i) {
      parameters.push_back(&memory[i]);
      if (buffers[i].empty()) continue;
      if (!check(driver_.cuMemAlloc_v2(&memory[i], buffers[i].size()))) return;
      check(driver_.cuMemcpyHtoD_v2(memory[i], buffers[i].data(), buffers[i].size()));
    }
    check(driver_.cuLaunchKernel(function, schedule.blocks, 1, 1, schedule.block_threads, 1, 1, 0, nullptr,
                                 parameters.data(), nullptr));
    check(driver_.cuCtxSynchronize());
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (memory[i] == 0) continue;
      check(driver_.cuMemcpyDtoH_v2(buffers[i].data(), memory[i], buffers[i].size()));
      check(driver_.cuMemFree_v2(memory[i]));
    }
  }

 private:
  Driver driver_;
  CUcontext context_ = nullptr;
};

Emulated& device() {
  static Emulated only;
  return only;
}

codegen::Target target() {
  codegen::Target out;
  const codegen::Status found = codegen::cross_target("nvptx64:sm_80", out);
  EXPECT_TRUE(found.ok()) << found.message();
  out.grid.processors = 2;  // few blocks, so that threads walk several points
  return out;
}

void compare(const std::vector<KernelCase>& cases) {
  ASSERT_TRUE(device().is_open());
  const codegen::Target machine = target();
  std::unique_ptr<codegen::ObjectCompiler> compiler;
  const codegen::Status created = codegen::ObjectCompiler::create(machine, compiler);
  ASSERT_TRUE(created.ok()) << created.message();
  std::vector<codegen::FunctionSource> sources;
  std::vector<codegen::GridSchedule> schedules;
  for (const KernelCase& c : cases) {
    codegen::GridKernel scheduled = schedule_grid(c.kernel, machine.grid);
    schedules.push_back(scheduled.schedule);
    sources.push_back({"kernel" + std::to_string(sources.size()), std::move(scheduled), false});
  }
  const auto fill = [&](llvm::Module& module) {
    for (const codegen::FunctionSource& source : sources) emit_function(source, module, machine);
  };
  std::string ptx;
  const codegen::Status compiled = compiler->compile("kernels", fill, nullptr, ptx);
  ASSERT_TRUE(compiled.ok()) << compiled.message();
  const Driver& driver = device().driver();
  CUmodule module = nullptr;
  ASSERT_TRUE(device().check(driver.cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr)));
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name + ", " + print_schedule(schedules[i]) + "\n" + print_kernel(cases[i].kernel));
    CUfunction function = nullptr;
    ASSERT_TRUE(device().check(driver.cuModuleGetFunction(&function, module, sources[i].name.c_str())));
    compare_with_evaluator(cases[i], i,
                           [&](size_t, codegen::Buffers& buffers) { device().run(function, schedules[i], buffers); });
    if (::testing::Test::HasFatalFailure()) return;
  }
  device().check(driver.cuModuleUnload(module));
}

KernelCase from_text(const std::string& name, const std::string& text, codegen::Fill fill = codegen::Fill::kSmall,
                     double ulp = 0) {
  KernelCase out{name, {}, fill, {ulp}};
  const codegen::Status parsed = codegen::parse_kernel(text, out.kernel);
  EXPECT_TRUE(parsed.ok()) << parsed.message();
  const codegen::Status verified = codegen::verify_kernel(out.kernel);
  EXPECT_TRUE(verified.ok()) << verified.message();
  return out;
}

/// Sums of narrow floats by a body: even of small numbers they are rounded, and threads add in another order than the evaluator.
bool is_rounded_in_another_order(const codegen::Kernel& kernel) {
  return std::any_of(kernel.reductions.begin(), kernel.reductions.end(), [](const codegen::Reduction& r) {
    return r.combine == COLLET_COMBINE_OTHER && codegen::is_narrow_float(r.types[0]);
  });
}

std::vector<KernelCase> random_cases(uint64_t seed, int count) {
  codegen::RandomKernels generator(seed);
  std::vector<KernelCase> cases;
  for (int i = 0; i < count; ++i) {
    codegen::Kernel kernel = generator.next();
    if (is_rounded_in_another_order(kernel)) continue;
    if (i % 2 == 0) codegen::collapse_loops(kernel);
    cases.push_back({"random " + std::to_string(i), std::move(kernel), codegen::Fill::kSmall, {}});
  }
  return cases;
}

TEST(GpuKernels, RandomOnes_LeaveWhatTheEvaluatorDoes) {
  compare(random_cases(1, 90));
}

std::string sum_kernel(const std::string& type, const std::string& combine, int64_t rows, int64_t columns) {
  const std::string n = std::to_string(columns);
  return "kernel (2 buffers) {\nouter i0: " + std::to_string(rows) + "\ninner i1: " + n + "\n%0 = load " + type +
         " b0[" + n + "*i0 + i1]\nr0 = reduce " + combine + " " + type + " %0 init identity\n%1 = reduced " + type +
         " r0 result 0\nstore b1[i0], %1\n}";
}

TEST(GpuKernels, Reductions_OfEveryLengthAndType) {
  std::vector<KernelCase> cases;
  for (const char* type : {"f32", "f64", "s32", "s64", "u8", "s16", "f16", "bf16", "pred", "c64", "c128", "s4"}) {
    for (const int64_t columns : {32, 33, 100, 1025, 3000}) {
      const std::string name = type;
      const bool is_pred = name == "pred";
      cases.push_back(
          from_text(name + " " + std::to_string(columns), sum_kernel(name, is_pred ? "or" : "add", 3, columns)));
    }
  }
  for (const char* combine : {"maximum", "minimum", "multiply", "and", "xor"}) {
    const std::string type = combine[0] == 'a' || combine[0] == 'x' ? "s32" : "f32";
    cases.push_back(from_text(combine, sum_kernel(type, combine, 2, 777), codegen::Fill::kBits, 8));
  }
  compare(cases);
}

std::string product_kernel(const std::string& type, int64_t batch, int64_t rows, int64_t columns, int64_t depth,
                           bool a_by_depth, bool b_by_depth) {
  const auto n = [](int64_t x) { return std::to_string(x); };
  const bool is_half = type == "bf16" || type == "f16";
  const std::string sum = is_half ? "f32" : type;
  std::string text = "kernel (4 buffers) {\nouter i0: " + n(batch) + "\nouter i1: " + n(rows) +
                     "\nouter i2: " + n(columns) + "\ninner i3: " + n(depth) + "\n";
  text += "%0 = load " + type + " b0[" + n(rows * depth) + "*i0 + " +
          (a_by_depth ? n(depth) + "*i1 + i3" : "i1 + " + n(rows) + "*i3") + "]\n";
  text += "%1 = load " + type + " b1[" + n(columns * depth) + "*i0 + " +
          (b_by_depth ? n(depth) + "*i2 + i3" : "i2 + " + n(columns) + "*i3") + "]\n";
  text += is_half ? "%2 = convert f32 %0\n%3 = convert f32 %1\n"
                  : "%2 = negate " + type + " %0\n%3 = negate " + type + " %1\n";
  text += "%4 = multiply " + sum + " %2, %3\nr0 = reduce add " + sum + " %4 init identity\n%5 = reduced " + sum +
          " r0 result 0\n%6 = load " + sum + " b2[i2]\n%7 = add " + sum + " %5, %6\nstore b3[" + n(rows * columns) +
          "*i0 + " + n(columns) + "*i1 + i2], %7\n}";
  return text;
}

TEST(GpuKernels, Products_InTiles) {
  std::vector<KernelCase> cases;
  const auto add = [&](const char* type, bool a_by_depth, bool b_by_depth) {
    const std::string name = std::string(type) + (a_by_depth ? " a by depth" : "") + (b_by_depth ? " b by depth" : "");
    cases.push_back(from_text(name, product_kernel(type, 2, 70, 65, 40, a_by_depth, b_by_depth)));
  };
  for (const char* type : {"f32", "bf16"}) {
    add(type, true, false);
    add(type, false, true);
    cases.push_back(from_text("whole tiles", product_kernel(type, 1, 64, 128, 64, true, true)));
    cases.push_back(from_text("long", product_kernel(type, 1, 17, 20, 300, false, false)));
  }
  for (const char* type : {"f64", "s32", "f16"}) add(type, true, true);
  compare(cases);
}

TEST(GpuKernels, Scans_OfEveryLength) {
  std::vector<KernelCase> cases;
  for (const char* type : {"f32", "s64", "c64", "bf16", "u8"}) {
    for (const int64_t length : {32, 70, 1024, 1025, 5000}) {
      for (const char* order : {"", " reverse"}) {
        const std::string n = std::to_string(length);
        const std::string text = "kernel (2 buffers) {\nouter i0: 3\ninner i1: " + n + "\n%0 = load " + type + " b0[" +
                                 n + "*i0 + i1]\nscan add " + type + " %0 init identity" + order + "\n%1 = scanned " +
                                 type + " result 0\nstore b1[" + n + "*i0 + i1], %1\n}";
        cases.push_back(from_text(std::string(type) + " " + n + order, text, codegen::Fill::kSmall,
                                  type == std::string("bf16") ? 4 : 0));
      }
    }
  }
  compare(cases);
}

}  // namespace
}  // namespace collet::gpu
