// SPDX-License-Identifier: Apache-2.0
// Compares kernels that a grid of threads runs on the driver emulator with the evaluator: both must leave the same
// values in memory.

#include <collet/codegen/kernel_transform.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/tests/generated_kernels.h"
#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/testing/random_kernels.h"

namespace collet::gpu {
namespace {

void compare(const std::vector<KernelCase>& cases, const std::string& cpu = "sm_80") {
  ASSERT_TRUE(device().is_open());
  const Compiled compiled = compile_kernels(cases, cpu);
  const Driver& driver = device().driver();
  CUmodule module = nullptr;
  ASSERT_TRUE(device().check(driver.cuModuleLoadDataEx(&module, compiled.ptx.c_str(), 0, nullptr, nullptr)));
  for (size_t i = 0; i < cases.size(); ++i) {
    const codegen::GridSchedule& schedule = compiled.schedules[i];
    SCOPED_TRACE(cases[i].name + ", " + print_schedule(schedule) + "\n" + print_kernel(cases[i].kernel));
    CUfunction function = nullptr;
    ASSERT_TRUE(device().check(driver.cuModuleGetFunction(&function, module, compiled.names[i].c_str())));
    compare_with_evaluator(cases[i], i,
                           [&](size_t, codegen::Buffers& buffers) { device().run(function, schedule, buffers); });
    if (::testing::Test::HasFatalFailure()) return;
  }
  device().check(driver.cuModuleUnload(module));
}

/// True for sums of narrow floats by a body. They are rounded even for small numbers, and threads add in another order
/// than the evaluator.
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

TEST(GpuKernels, Reductions_OfEveryLengthAndType) {
  std::vector<KernelCase> cases;
  for (const char* type : {"f32", "f64", "s32", "s64", "u8", "s16", "f16", "bf16", "pred", "c64", "c128", "s4"}) {
    for (const int64_t columns : {32, 33, 100, 1025, 2048, 3000}) {
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

TEST(GpuKernels, Rows_InVectorsThatStayInRegisters) {
  std::vector<KernelCase> cases;
  for (const auto& [type, least] :
       {std::pair("f32", "0xff800000"), std::pair("bf16", "0xff80"), std::pair("f16", "0xfc00")}) {
    for (const int64_t columns : {64, 1000, 1026, 2048, 20000}) {
      const std::string t = type;
      const std::string n = std::to_string(columns);
      const std::string text = "kernel (2 buffers) {\nouter i0: 6\ninner i1: " + n + "\n%0 = load " + t + " b0[" + n +
                               "*i0 + i1]\n%1 = constant " + t + " " + least + "\nr0 = reduce maximum " + t +
                               " %0 init %1\n%2 = reduced " + t + " r0 result 0\n%3 = subtract " + t +
                               " %0, %2\n%4 = exponential " + t + " %3\n%5 = constant " + t + " 0\nr1 = reduce add " +
                               t + " %4 init %5\n%6 = reduced " + t + " r1 result 0\n%7 = divide " + t +
                               " %4, %6\nstore b1[" + n + "*i0 + i1], %7\n}";
      cases.push_back(from_text(t + " " + n, text, codegen::Fill::kTame, 16));
    }
  }
  compare(cases);
}

TEST(GpuKernels, Products_InTiles) {
  std::vector<KernelCase> cases;
  const auto add = [&](const ProductCase& p) {
    const auto n = [](int64_t x) { return std::to_string(x); };
    const std::string name = p.type + " " + n(p.rows) + " x " + n(p.columns) + " x " + n(p.depth) +
                             (p.a_by_depth ? " a by depth" : "") + (p.b_by_depth ? " b by depth" : "") +
                             (p.computed ? " computed" : "") + (p.tf32 ? " tf32" : "");
    cases.push_back(from_text(name, product_kernel(p)));
  };
  // Small and large tiles, with full and partial tiles, copied and computed operands, and all layouts.
  for (const char* type : {"f32", "bf16"}) {
    for (const bool by_depth : {false, true}) {
      add({type, 2, 70, 65, 40, by_depth, !by_depth});
      add({type, 1, 80, 48, 176, by_depth, by_depth});
      add({type, 1, 144, 256, 48, by_depth, !by_depth});
      add({type, 1, 129, 130, 33, by_depth, by_depth, true});
    }
    add({type, 1, 64, 128, 64, true, true, true});
    add({type, 1, 17, 20, 300, false, false});
  }
  for (const char* type : {"f64", "s32", "f16", "u8", "s8"}) {
    add({type, 1, 70, 65, 40});
    add({type, 1, 128, 144, 144, true, false});
  }
  add({"f32", 1, 70, 65, 40, true, true, false, true});
  add({"f32", 1, 256, 128, 80, true, false, false, true});
  compare(cases);
}

TEST(GpuKernels, Products_ByWarpgroups) {
  std::vector<KernelCase> cases;
  const auto add = [&](const ProductCase& p) {
    const auto n = [](int64_t x) { return std::to_string(x); };
    const std::string name = p.type + " " + n(p.batch) + " of " + n(p.rows) + " x " + n(p.columns) + " x " +
                             n(p.depth) + (p.a_by_depth ? " a by depth" : "") + (p.b_by_depth ? " b by depth" : "");
    cases.push_back(from_text(name, product_kernel(p)));
  };
  // Full and partial tiles of all shapes, one and several rounds, more rounds than places, several tiles of a block.
  for (const char* type : {"bf16", "f16"}) {
    for (const bool a_by_depth : {false, true}) {
      for (const bool b_by_depth : {false, true}) {
        add({type, 2, 72, 88, 40, a_by_depth, b_by_depth});
        if (type == std::string("bf16") && a_by_depth == b_by_depth)
          add({type, 1, 136, 136, 200, a_by_depth, b_by_depth});
      }
    }
  }
  add({"bf16", 1, 128, 256, 64});
  add({"bf16", 3, 72, 136, 328});
  add({"bf16", 1, 16, 24, 8});
  add({"s8", 1, 144, 136, 272});
  add({"u8", 2, 72, 88, 48});
  add({"f32", 1, 72, 136, 100, true, true, false, true});
  // A product whose result is stored by columns is that of the transposed factors.
  cases.push_back(from_text("transposed result",
                            "kernel (3 buffers) {\nouter i0: 72\nouter i1: 264\ninner i2: 128\n%0 = load bf16 "
                            "b0[128*i0 + i2]\n%1 = load bf16 b1[i1 + 264*i2]\n%2 = convert f32 %0\n%3 = convert "
                            "f32 %1\n%4 = multiply f32 %2, %3\nr0 = reduce add f32 %4 init identity\n%5 = reduced f32 "
                            "r0 result 0\n%6 = convert bf16 %5\nstore b2[i0 + 72*i1], %6\n}"));
  for (const KernelCase& c : cases) {
    codegen::Target machine = target("sm_90a");
    EXPECT_EQ(schedule_grid(c.kernel, machine.grid).schedule.form, codegen::GridSchedule::Form::kWarpgroups) << c.name;
  }
  compare(cases, "sm_90a");
}

// ptxas takes a variable that is undefined before the first iteration for that of the next one, and the block then waits for
// ever. No emulator shows that.
TEST(GpuKernels, VariablesOfLoops_AreDefinedBeforeTheFirstIteration) {
  const Compiled compiled =
      compile_kernels({from_text("product", product_kernel({"bf16", 1, 256, 512, 512}))}, "sm_90a");
  size_t phis = 0;
  for (const auto& [name, text] : compiled.artifacts) {
    if (!name.ends_with(".opt.ll")) continue;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" = phi ") == line.npos) continue;
      ++phis;
      EXPECT_EQ(line.find("undef"), line.npos) << line;
      EXPECT_EQ(line.find("poison"), line.npos) << line;
    }
  }
  EXPECT_GT(phis, 100U);
}

TEST(GpuKernels, Products_WhoseFactorsCannotBeCopied_AreNotByWarpgroups) {
  const codegen::Target machine = target("sm_90a");
  // Rows whose distance is no multiple of 16 bytes, factors that are computed, and bytes that lie by rows.
  for (const ProductCase& p : {ProductCase{"bf16", 1, 72, 88, 41}, ProductCase{"bf16", 1, 72, 88, 64, true, true, true},
                               ProductCase{"s8", 1, 64, 64, 64, true, false}, ProductCase{"f32", 1, 64, 64, 64}}) {
    EXPECT_NE(schedule_grid(from_text("product", product_kernel(p)).kernel, machine.grid).schedule.form,
              codegen::GridSchedule::Form::kWarpgroups)
        << product_kernel(p);
  }
}

TEST(GpuKernels, Transposes_InTiles) {
  std::vector<KernelCase> cases;
  for (const char* type : {"f32", "pred", "u8", "bf16", "f64", "c128", "s4"}) {
    const std::string name = type;
    cases.push_back(from_text(name,
                              "kernel (2 buffers) {\nouter i0: 3\nouter i1: 70\nouter i2: 45\n%0 = load " + name +
                                  " b0[3150*i0 + i1 + 70*i2]\nstore b1[3150*i0 + 45*i1 + i2], %0\n}",
                              codegen::Fill::kBits));
  }
  cases.push_back(
      from_text("with others",
                "kernel (4 buffers) {\nouter i0: 64\nouter i1: 2\nouter i2: 96\n%0 = load f32 b0[i0 + 128*i2 + "
                "64*i1]\n%1 = load f32 b1[192*i0 + 96*i1 + i2]\n%2 = load f32 b2[i0]\n%3 = load f32 b0[i0 + "
                "128*i2]\n%4 = multiply f32 %0, %1\n%5 = add f32 %4, %2\n%6 = subtract f32 %5, %3\n"
                "store b3[192*i0 + 96*i1 + i2], %6\n}"));
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
