// SPDX-License-Identifier: Apache-2.0
// Tests reductions over the rows of a matrix that are computed row by row: generated code must leave the same memory as
// the evaluator of kernels.

#include <collet/codegen/kernel_text.h>
#include <collet/program.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sdk/codegen/kernel/passes.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/processor.h"
#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

class Rows : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Widths, Rows, ::testing::Values(128, 256, 512));

Kernel kernel_of(const std::string& text) {
  Kernel kernel;
  const Status read = parse_kernel(text, kernel);
  EXPECT_TRUE(read.ok()) << read.message() << "\n" << text;
  return kernel;
}

/// Returns a kernel that reduces the rows of each of `batches` matrices to one row.
Kernel reduction_of(const std::string& combine, const std::string& type, int64_t batches, int64_t rows,
                    int64_t columns) {
  const auto text = [](int64_t x) { return std::to_string(x); };
  return kernel_of("kernel (3 buffers) {\nouter i0: " + text(batches) + "\nouter i1: " + text(columns) +
                   "\ninner i2: " + text(rows) + "\n%0 = load " + type + " b0[" + text(rows * columns) + "*i0 + i1 + " +
                   text(columns) + "*i2]\n%1 = load " + type + " b1[0]\nr0 = reduce " + combine + " " + type +
                   " %0 init %1\n%2 = reduced " + type + " r0 result 0\nstore b2[" + text(columns) +
                   "*i0 + i1], %2\n}");
}

/// Schedules the kernels, checks that each is computed row by row, and compares their results with the evaluator's.
void compare(int vector_bits, std::vector<KernelCase> cases) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(vector_bits), jit).ok());
  for (KernelCase& c : cases) {
    choose_lanes(c.kernel, machine_of(vector_bits));
    const Status verified = verify_kernel(c.kernel);
    ASSERT_TRUE(verified.ok()) << verified.message() << "\n" << print_kernel(c.kernel);
    EXPECT_TRUE(reduces_rows(c.kernel, machine_of(512))) << c.name << "\n" << print_kernel(c.kernel);
  }
  compare_with_evaluator(*jit, cases);
}

TEST_P(Rows, OfAllTypes_AreFolded) {
  std::vector<KernelCase> cases;
  for (const char* type : {"f32", "f64", "bf16", "f16", "f8e4m3fn", "s32", "s8", "u16", "s64", "u4"}) {
    for (const char* combine : {"add", "multiply", "maximum", "minimum", "and", "xor"}) {
      Kernel kernel = reduction_of(combine, type, 1, 45, 300);
      if (!verify_kernel(kernel).ok()) continue;
      // Inputs are random bits, with infinities, zeros of both signs and NaNs, unless the combination rounds.
      const bool exact =
          kernel.reductions[0].combine != COLLET_COMBINE_ADD && kernel.reductions[0].combine != COLLET_COMBINE_MULTIPLY;
      cases.push_back(
          {std::string(combine) + " of " + type, std::move(kernel), exact ? Fill::kBits : Fill::kSmall, {}});
    }
  }
  EXPECT_GT(cases.size(), 35U);
  compare(GetParam(), std::move(cases));
}

TEST_P(Rows, AnyNumberAtATime_AreFoldedInStrips) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(GetParam()), jit).ok());
  std::vector<KernelCase> cases;
  for (const int factor : {2, 3, 6, 7, 16, 64}) {
    for (const int64_t rows : {63, 300, 331}) {
      for (const int64_t strip : {64, 256}) {
        Kernel kernel = reduction_of("add", "f32", 2, rows, 200);
        kernel.lane_loop = 1;
        kernel.lanes = 16;
        kernel.loops[1].strip = strip;
        kernel.loops[2].kind = LoopKind::kInterleave;
        kernel.loops[2].factor = factor;
        const Status verified = verify_kernel(kernel);
        ASSERT_TRUE(verified.ok()) << verified.message();
        cases.push_back({std::to_string(factor) + " rows", std::move(kernel), Fill::kSmall, {}});
      }
    }
  }
  compare_scheduled(*jit, cases);
}

TEST_P(Rows, OfAllSizes_AreFolded) {
  std::vector<KernelCase> cases;
  for (const int64_t rows : {33, 40, 257, 300}) {
    for (const int64_t columns : {150, 256}) {
      for (const int64_t batches : {1, 3})
        cases.push_back({"sum", reduction_of("add", "f32", batches, rows, columns), Fill::kSmall, {}});
    }
  }
  cases.push_back({"several strips", reduction_of("add", "f32", 1, 35, 4099), Fill::kSmall, {}});
  // The loop over the columns is the first one, which threads share.
  cases.push_back({"without batches",
                   kernel_of(R"(kernel (2 buffers) {
    outer i0: 1500
    inner i1: 70
    %0 = load s32 b0[i0 + 1500*i1]
    r0 = reduce maximum s32 %0 init identity
    %1 = reduced s32 r0 result 0
    store b1[i0], %1
  })"),
                   Fill::kBits,
                   {}});
  compare(GetParam(), std::move(cases));
}

TEST_P(Rows, OfSeveralFolds_AreFoldedInOnePass) {
  std::vector<KernelCase> cases;
  cases.push_back({"moments and extremes",
                   kernel_of(R"(kernel (7 buffers) {
    outer i0: 2
    outer i1: 333
    inner i2: 299
    %0 = load f32 b0[99567*i0 + i1 + 333*i2]
    %1 = load f32 b1[i1]
    %2 = subtract f32 %0, %1
    %3 = multiply f32 %2, %2
    %4 = load f32 b2[i2]
    %5 = multiply f32 %0, %4
    %6 = constant f32 0
    r0 = reduce add f32 %3 init %6
    r1 = reduce add f32 %5 init %1
    r2 = reduce minimum f32 %2 init identity
    %7 = reduced f32 r0 result 0
    %8 = reduced f32 r1 result 0
    %9 = reduced f32 r2 result 0
    %10 = add f32 %7, %8
    %11 = subtract f32 %9, %1
    store b3[333*i0 + i1], %10
    store b4[333*i0 + i1], %11
    store b5[333*i0 + i1], %7
    store b6[i0 + 2*i1], %9
  })"),
                   Fill::kSmall,
                   {}});
  cases.push_back({"some rows, at computed places",
                   kernel_of(R"(kernel (3 buffers) {
    outer i0: 200
    inner i1: 64
    %0 = load s32 b0[i1]
    %1 = start %0 limit 30
    %2 = in_range (i0 - i1) below 100
    %3 = load s16 b1[i0 + 200*%1] if %2
    r0 = reduce add s16 %3 init identity
    %4 = reduced s16 r0 result 0
    store b2[i0], %4
  })"),
                   Fill::kSmall,
                   {}});
  compare(GetParam(), std::move(cases));
}

TEST(Rows, ThatRegistersHold_AreFoldedThere) {
  for (const int64_t columns : {16, 32}) {
    Kernel kernel = reduction_of("add", "f32", 1, 400, columns);
    choose_lanes(kernel, machine_of(256));
    EXPECT_FALSE(reduces_rows(kernel, machine_of(512)));
  }
}

/// Returns a kernel that subtracts from each of `rows` rows its maximum and the sum of the differences.
Kernel row_wise(const std::string& type, int64_t rows, int64_t columns) {
  const auto text = [](int64_t x) { return std::to_string(x); };
  return kernel_of("kernel (3 buffers) {\nouter i0: " + text(rows) + "\ninner i1: " + text(columns) + "\n%0 = load " +
                   type + " b0[" + text(columns) + "*i0 + i1]\nr0 = reduce maximum " + type +
                   " %0 init identity\n%1 = reduced " + type + " r0 result 0\n%2 = subtract " + type +
                   " %0, %1\nr1 = reduce add " + type + " %2 init identity\n%3 = reduced " + type +
                   " r1 result 0\n%4 = multiply " + type + " %2, %2\n%5 = subtract " + type + " %4, %3\nstore b1[" +
                   text(columns) + "*i0 + i1], %5\nstore b2[i0], %3\n}");
}

TEST_P(Rows, OfFewVectors_AreInterleaved) {
  std::vector<KernelCase> cases;
  for (const char* type : {"f32", "f64", "bf16", "s32", "s64"}) {
    for (const int64_t rows : {16, 19, 30, 41}) {
      for (const int64_t columns : {12, 13, 16, 21, 31, 32, 45, 70, 128, 250}) {
        cases.push_back(
            {std::string(type) + " by " + std::to_string(columns), row_wise(type, rows, columns), Fill::kSmall, {}});
        choose_lanes(cases.back().kernel, machine_of(GetParam()));
      }
    }
  }
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(GetParam()), jit).ok());
  const auto interleaved = [&](KernelCase c) {
    schedule_for(c.kernel, jit->target());
    const KernelPasses passes(c.kernel);
    return passes.lanes_inside() && passes.side_unroll() > 1;
  };
  if (GetParam() > 128) {
    EXPECT_GT(std::count_if(cases.begin(), cases.end(), interleaved), 10);
  }
  compare_with_evaluator(*jit, cases);
}

TEST_P(Rows, OfBf16_AreReducedInAnyOrder) {
  std::vector<KernelCase> cases;
  for (const int64_t columns : {40, 64, 130, 256, 259, 2000}) {
    const std::string size = std::to_string(columns);
    cases.push_back({"sum of products",
                     kernel_of("kernel (3 buffers) {\nouter i0: 3\ninner i1: " + size + "\n%0 = load bf16 b0[" + size +
                               "*i0 + i1]\n%1 = convert f32 %0" + "\n%2 = load bf16 b1[i1 + 1]\n%3 = convert f32 %2" +
                               "\n%4 = multiply f32 %1, %3\nr0 = reduce add f32 %4 init identity" +
                               "\n%5 = reduced f32 r0 result 0\nstore b2[i0], %5\n}"),
                     Fill::kSmall,
                     {}});
    choose_lanes(cases.back().kernel, machine_of(GetParam()));
  }
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(GetParam()), jit).ok());
  schedule_for(cases.back().kernel, jit->target());
  EXPECT_TRUE(cases.back().kernel.unordered);
  compare_with_evaluator(*jit, cases);
}

}  // namespace
}  // namespace collet::codegen
