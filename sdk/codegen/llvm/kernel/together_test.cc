// SPDX-License-Identifier: Apache-2.0
// Tests loops that compute several vectors at a time: generated code must leave the same memory as the evaluator of
// kernels, for all numbers of vectors that are left over.

#include <collet/codegen/kernel_text.h>

#include <gtest/gtest.h>

#include "sdk/codegen/kernel/passes.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/processor.h"
#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

class Together : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Widths, Together, ::testing::Values(128, 256, 512));

/// Returns the scheduled kernel with these lines.
Kernel kernel_of(int vector_bits, const std::string& lines) {
  Kernel kernel;
  const Status read = parse_kernel("kernel (2 buffers) {\n" + lines + "}", kernel);
  EXPECT_TRUE(read.ok()) << read.message() << "\n" << lines;
  choose_lanes(kernel, machine_of(vector_bits));
  return kernel;
}

/// Returns how many vectors the last pass over the kernel computes at a time.
int together(Kernel kernel, const Target& target) {
  schedule_for(kernel, target);
  const KernelPasses passes(kernel);
  return passes.together(passes.last());
}

void compare(const Target& target, const std::vector<Kernel>& kernels) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(target, jit).ok());
  std::vector<KernelCase> cases;
  for (const Kernel& k : kernels) {
    for (int i = 0; i < 2; ++i)
      cases.push_back({"", k, Fill::kTame, {}});  // buffers that are aligned, and that are not
  }
  compare_with_evaluator(*jit, cases);
}

TEST_P(Together, ElementsOfArrays_AreComputed) {
  const Target target = machine_of(GetParam());
  std::vector<Kernel> kernels;
  for (const int size : {1, 7, 16, 31, 32, 33, 47, 64, 65, 100, 128, 200, 255, 1000}) {
    const std::string n = std::to_string(size);
    kernels.push_back(
        kernel_of(GetParam(), "outer i0: " + n + "\n%0 = load f32 b0[i0]\n%1 = sqrt f32 %0\n" + "store b1[i0], %1\n"));
    if (size == 1000) {
      EXPECT_EQ(together(kernels.back(), target), GetParam() == 512 ? 2 : 4);
    }
    kernels.push_back(kernel_of(GetParam(), "outer i0: 5\nouter i1: " + n + "\n%0 = load f64 b0[" + n +
                                                "*i0 + i1]\n%1 = constant f64 0x3ff0000000000000\n" +
                                                "%2 = divide f64 %1, %0\nstore b1[" + n + "*i0 + i1], %2\n"));
  }
  compare(target, kernels);
}

TEST_P(Together, ResultsPastTheCaches_AreComputed) {
  Target target = machine_of(GetParam());
  target.second_cache = 1;
  const Kernel kernel =
      kernel_of(GetParam(), "outer i0: 4099\n%0 = load f32 b0[i0]\n%1 = sqrt f32 %0\nstore b1[i0], %1\n");
  EXPECT_TRUE(bypasses_caches(kernel, kernel.stores[0], target));
  compare(target, {kernel});
}

TEST_P(Together, RowsThatAreReducedBefore_AreComputed) {
  const Target target = machine_of(GetParam());
  std::vector<Kernel> kernels;
  for (const int size : {16, 33, 64, 100, 129, 700, 1024}) {
    const std::string n = std::to_string(size);
    kernels.push_back(kernel_of(
        GetParam(), "outer i0: 3\ninner i1: " + n + "\n%0 = load f32 b0[" + n + "*i0 + i1]\n%1 = sqrt f32 %0\n" +
                        "%2 = constant f32 0xff800000\nr0 = reduce maximum f32 %1 init %2\n" +
                        "%3 = reduced f32 r0 result 0\n%4 = multiply f32 %1, %3\n%5 = sqrt f32 %4\nstore b1[" + n +
                        "*i0 + i1], %5\n"));
    if (size == 1024) {
      EXPECT_EQ(together(kernels.back(), target), GetParam() == 512 ? 2 : 4);
    }
  }
  compare(target, kernels);
}

TEST_P(Together, LongBodiesAndCheapOnes_AreComputedVectorByVector) {
  const Target target = machine_of(GetParam());
  std::string body = "outer i0: 1000\n%0 = load f32 b0[i0]\n";
  const std::string cheap = body + "%1 = multiply f32 %0, %0\nstore b1[i0], %1\n";
  const int last = target.tuning.functions_together + 1;
  for (int i = 1; i <= last; ++i) body += "%" + std::to_string(i) + " = tanh f32 %" + std::to_string(i - 1) + "\n";
  EXPECT_EQ(together(kernel_of(GetParam(), body + "store b1[i0], %" + std::to_string(last) + "\n"), target), 1);
  EXPECT_EQ(together(kernel_of(GetParam(), cheap), target), 1);
}

}  // namespace
}  // namespace collet::codegen
