// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/choice.h"

#include <collet/codegen/kernel_text.h>

#include <gtest/gtest.h>

#include <string>

namespace collet::codegen {
namespace {

/// Returns whether is_associative_choice accepts the body of a reduction of f32 and s32 whose expressions from %4 on
/// are `lines`.
bool chooses(const std::string& lines) {
  Kernel kernel;
  const Status read = parse_kernel(R"(kernel (3 buffers) {
  inner i0: 100
  no lanes
  %0 = load f32 b0[i0]
  %1 = constant f32 0
  %2 = index i0
  %3 = convert s32 %2
  %4 = constant s32 0
  r0 = reduce other f32 %0, s32 %3 init %1, %4 body (4) {
    %0 = argument f32 0
    %1 = argument s32 1
    %2 = argument f32 2
    %3 = argument s32 3
)" + lines + R"(
  }
  %5 = reduced f32 r0 result 0
  store b1[0], %5
})",
                                   kernel);
  EXPECT_TRUE(read.ok()) << read.message();
  if (!read.ok()) return false;
  return is_associative_choice(kernel.reductions[0].body, kernel.reductions[0].types);
}

TEST(Choice, OfTheLargestAndItsPlace_IsAssociative) {
  EXPECT_TRUE(chooses(R"(    %4 = compare pred %0, %2 gt float
    %5 = compare pred %0, %0 ne float
    %6 = or pred %4, %5
    %7 = select f32 %6, %0, %2
    %8 = compare pred %0, %2 eq float
    %9 = compare pred %1, %3 lt signed
    %10 = and pred %8, %9
    %11 = or pred %6, %10
    %12 = select s32 %11, %1, %3
    yield %7, %12)"));
  EXPECT_TRUE(chooses(R"(    %4 = minimum s32 %1, %3
    yield %2, %4)"));
}

TEST(Choice, ThatForgetsNan_IsNot) {
  // ((NaN, 1), 2) gives 2, and (NaN, (1, 2)) gives 1.
  EXPECT_FALSE(chooses(R"(    %4 = compare pred %0, %2 lt float
    %5 = select f32 %4, %0, %2
    %6 = select s32 %4, %1, %3
    yield %5, %6)"));
}

TEST(Choice, ThatComputes_IsNot) {
  EXPECT_FALSE(chooses(R"(    %4 = add f32 %0, %2
    yield %4, %1)"));
  EXPECT_FALSE(chooses(R"(    %4 = constant f32 1
    %5 = compare pred %0, %4 gt float
    %6 = select f32 %5, %0, %2
    yield %6, %1)"));
  EXPECT_FALSE(chooses(R"(    %4 = maximum f32 %0, %2
    yield %4, %1)"));
}

TEST(Choice, OfTheMiddle_IsNot) {
  EXPECT_FALSE(chooses(R"(    %4 = compare pred %1, %3 lt signed
    %5 = select f32 %4, %2, %0
    yield %5, %1)"));
}

}  // namespace
}  // namespace collet::codegen
