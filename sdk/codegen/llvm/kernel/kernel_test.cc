// SPDX-License-Identifier: Apache-2.0
// Compares generated code with the evaluator of kernel IR: every elementwise op of every type, and all forms of
// kernels.

#include <collet/codegen/kernel_text.h>
#include <collet/program.h>
#include <gtest/gtest.h>

#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/testing/elementwise_cases.h"
#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

constexpr int kWidths[] = {128, 256, 512};
class EveryWidth : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const Status made = Jit::create(machine_of(GetParam()), jit_);
    ASSERT_TRUE(made.ok()) << made.message();
  }
  std::unique_ptr<Jit> jit_;
};

INSTANTIATE_TEST_SUITE_P(Kernel, EveryWidth, ::testing::ValuesIn(kWidths));

TEST_P(EveryWidth, ExactOpsOfAnyBits_GiveTheBitsOfTheEvaluator) {
  std::vector<KernelCase> cases = exact_op_cases();
  for (KernelCase& c : cases) choose_lanes(c.kernel, machine_of(GetParam()));
  compare_with_evaluator(*jit_, cases);
}

TEST_P(EveryWidth, ElementaryFunctions_AreNearTheEvaluator) {
  std::vector<KernelCase> cases = function_cases();
  for (KernelCase& c : cases) choose_lanes(c.kernel, machine_of(GetParam()));
  compare_with_evaluator(*jit_, cases);
}

TEST_P(EveryWidth, KernelsOfFiles_LeaveWhatTheEvaluatorDoes) {
  std::vector<KernelCase> cases = file_cases();
  for (KernelCase& c : cases) choose_lanes(c.kernel, machine_of(GetParam()));
  EXPECT_GE(cases.size(), 20U);
  compare_with_evaluator(*jit_, cases);
}

TEST_P(EveryWidth, SumOverTwoLoops_HasTheErrorOfManyAccumulators) {
  KernelCase c;
  c.name = "sum of 65,536";
  const Status read = parse_kernel(R"(kernel (2 buffers) {
    inner i0: 2048
    inner i1: 32
    %0 = load f32 b0[32*i0 + i1]
    %1 = multiply f32 %0, %0
    r0 = reduce add f32 %1 init identity
    %2 = reduced f32 r0 result 0
    store b1[0], %2
  })",
                                   c.kernel);
  ASSERT_TRUE(read.ok()) << read.message();
  choose_lanes(c.kernel, machine_of(GetParam()));
  c.fill = Fill::kTame;
  c.bound = {4};  // error in units in the last place; with a single accumulator it would be larger
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(GetParam()), jit).ok());
  compare_with_evaluator(*jit, {c});
}

TEST(Evaluator, AccessBeyondABuffer_IsNamedWithItsPoint) {
  Kernel kernel;
  ASSERT_TRUE(
      parse_kernel("kernel (2 buffers) {\nouter i0: 5\n%0 = load f32 b0[2*i0]\nstore b1[i0], %0\n}", kernel).ok());
  std::vector<std::byte> input(24);
  std::vector<std::byte> output(20);
  const std::vector<std::span<std::byte>> buffers{input, output};
  const Status status = evaluate_kernel(kernel, buffers);
  EXPECT_EQ(status.code(), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(status.message(), "%0 = load f32 b0[2*i0] at (i0=3): element 6 of b0, which has 6");
}

TEST(Evaluator, WhileWithoutEnd_IsStopped) {
  Kernel kernel;
  const Status read = parse_kernel(R"(kernel (1 buffer) {
    %0 = constant s32 1
    %1 = while s32 %0 {
      condition (1) { %0 = constant pred true yield %0 }
      body (1) { %0 = argument s32 0 yield %0 }
    }
    %2 = part s32 %1 result 0 field 0
    store b0[0], %2
  })",
                                   kernel);
  ASSERT_TRUE(read.ok()) << read.message();
  std::vector<std::byte> output(4);
  const std::vector<std::span<std::byte>> buffers{output};
  const Status status = evaluate_kernel(kernel, buffers, {.most_iterations = 10});
  EXPECT_EQ(status.code(), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(status.message(), "%1 at (): more than 10 iterations");
}

TEST(Evaluator, EveryElementwiseOpOfEveryType_IsEvaluated) {
  for (uint32_t type : array_types()) {
    for (uint32_t opcode : elementwise_opcodes()) {
      if (!has_elementwise(opcode, type)) continue;
      std::vector<uint32_t> types(operands_of(opcode), type);
      if (opcode == COLLET_OP_STOCHASTIC_CONVERT) types[1] = COLLET_TYPE_U32;
      const std::vector<Element> args(types.size());
      Element out{};
      const uint32_t result = opcode == COLLET_OP_STOCHASTIC_CONVERT ? uint32_t{COLLET_TYPE_S32} : type;
      const int64_t a = opcode == COLLET_OP_REDUCE_PRECISION ? 5 : 0;
      EXPECT_TRUE(evaluate_element({opcode, result, types, args, a, 0}, out))
          << collet_op_name(opcode) << " of " << collet_type_name(type);
    }
  }
}

}  // namespace
}  // namespace collet::codegen
