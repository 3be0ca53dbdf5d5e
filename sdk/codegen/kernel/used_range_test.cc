// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/used_range.h"

#include <collet/codegen/kernel_text.h>

#include <gtest/gtest.h>

#include <string>

namespace collet::codegen {
namespace {

/// Returns the range of i1, of 100 iterations, in which a kernel uses what it loads from b0, for rows 10 to 19. `pred`
/// are expressions from %0 on, the last of which selects the element; `first` is its number.
LoopRange range_of(const std::string& pred, int last, bool second = false) {
  const auto number = [](int i) { return "%" + std::to_string(i); };
  const std::string load = number(last + 1);
  const std::string zero = number(last + 2);
  const std::string text = "kernel (3 buffers) {\n  outer i0: 100\n  outer i1: 100\n" + pred + "  " + load +
                           " = load f32 b0[100*i0 + i1]\n  " + zero + " = constant f32 0\n  " + number(last + 3) +
                           " = select f32 " + number(last) + ", " + (second ? zero + ", " + load : load + ", " + zero) +
                           "\n  store b1[100*i0 + i1], " + number(last + 3) + "\n}\n";
  Kernel kernel;
  const Status read = parse_kernel(text, kernel);
  EXPECT_TRUE(read.ok()) << read.message() << text;
  return used_range(kernel, 0, 1, {{10, 20}, {0, 100}}, {std::nullopt, std::nullopt, Sequence{5, 2}});
}

const std::string kRowAndColumn = R"(  %0 = index i0
  %1 = convert s32 %0
  %2 = index i1
  %3 = convert s32 %2
)";

std::string compare(const std::string& direction) {
  return kRowAndColumn + "  %4 = compare pred %1, %3 " + direction + " signed\n";
}

TEST(UsedRange, Comparison_BoundsTheColumns) {
  EXPECT_EQ(range_of(compare("ge"), 4), (LoopRange{0, 20}));
  EXPECT_EQ(range_of(compare("gt"), 4), (LoopRange{0, 19}));
  EXPECT_EQ(range_of(compare("le"), 4), (LoopRange{10, 100}));
  EXPECT_EQ(range_of(compare("lt"), 4), (LoopRange{11, 100}));
  EXPECT_EQ(range_of(compare("eq"), 4), (LoopRange{10, 20}));
  EXPECT_EQ(range_of(compare("ne"), 4), (LoopRange{0, 100}));
}

TEST(UsedRange, SecondOperandOfSelect_IsUsedWhereThePredIsFalse) {
  EXPECT_EQ(range_of(compare("lt"), 4, true), (LoopRange{0, 20}));
  EXPECT_EQ(range_of(compare("ge"), 4, true), (LoopRange{11, 100}));
  EXPECT_EQ(range_of(compare("ne"), 4, true), (LoopRange{10, 20}));
}

TEST(UsedRange, ConjunctionAndDisjunction_IntersectAndJoin) {
  const std::string both = kRowAndColumn + R"(  %4 = compare pred %1, %3 ge signed
  %5 = constant s32 4
  %6 = add s32 %3, %5
  %7 = compare pred %1, %6 le signed
)";
  EXPECT_EQ(range_of(both + "  %8 = and pred %4, %7\n", 8), (LoopRange{6, 20}));
  EXPECT_EQ(range_of(both + "  %8 = or pred %4, %7\n", 8), (LoopRange{0, 100}));
  EXPECT_EQ(range_of(both + "  %8 = not pred %4\n", 8), (LoopRange{11, 100}));
}

TEST(UsedRange, NothingIsUsed_GivesAnEmptyRange) {
  const std::string never = kRowAndColumn + R"(  %4 = constant s32 1000
  %5 = compare pred %1, %4 ge signed
)";
  const LoopRange range = range_of(never, 5);
  EXPECT_GE(range.first, range.end);
}

TEST(UsedRange, LoadFromSequence_IsAffine) {
  // b2 holds 5, 7, 9, ...: 5 + 2 * column <= row
  const std::string loaded = kRowAndColumn + R"(  %4 = load s32 b2[i1]
  %5 = compare pred %4, %1 le signed
)";
  EXPECT_EQ(range_of(loaded, 5), (LoopRange{0, 8}));
}

TEST(UsedRange, UnknownPred_BoundsNothing) {
  const std::string unsigned_sum = kRowAndColumn + R"(  %4 = convert u8 %1
  %5 = convert u8 %3
  %6 = compare pred %4, %5 ge unsigned
)";
  EXPECT_EQ(range_of(unsigned_sum, 6), (LoopRange{0, 100}));
  const std::string large = kRowAndColumn + R"(  %4 = constant s32 2147483647
  %5 = add s32 %1, %4
  %6 = compare pred %5, %3 ge signed
)";
  EXPECT_EQ(range_of(large, 6), (LoopRange{0, 100}));  // the sum overflows
}

TEST(UsedRange, UseOutsideOfTheSelect_BoundsNothing) {
  Kernel kernel;
  const Status read = parse_kernel(R"(kernel (2 buffers) {
  outer i0: 100
  outer i1: 100
  %0 = index i0
  %1 = index i1
  %2 = compare pred %0, %1 ge signed
  %3 = load f32 b0[100*i0 + i1]
  %4 = constant f32 0
  %5 = select f32 %2, %3, %4
  %6 = add f32 %5, %3
  store b1[100*i0 + i1], %6
}
)",
                                   kernel);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(used_range(kernel, 0, 1, {{0, 1}, {0, 100}}), (LoopRange{0, 100}));
}

/// Parses a kernel with rows i0 of 100 and columns i1 of 100, and returns what its last expression but the stored one is
/// elsewhere, for rows 10 to 19.
std::optional<ElsewhereConstant> elsewhere(const std::string& body, ExprId expr) {
  Kernel kernel;
  const Status read = parse_kernel("kernel (2 buffers) {\n  outer i0: 100\n  outer i1: 100\n" + body +
                                       "  store b1[100*i0 + i1], %" + std::to_string(expr) + "\n}\n",
                                   kernel);
  EXPECT_TRUE(read.ok()) << read.message() << body;
  return elsewhere_constant(kernel, expr, 1, {{10, 20}, {0, 100}});
}

/// What is loaded in and below the diagonal, and -8 above.
const std::string kCausal = compare("ge") + R"(  %5 = load f32 b0[100*i0 + i1]
  %6 = constant f32 -8
  %7 = select f32 %4, %5, %6
)";

TEST(ElsewhereConstant, Select_HasTheRangeOfItsPred) {
  const auto found = elsewhere(kCausal, 7);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->range, (LoopRange{0, 20}));
  EXPECT_EQ(real_of_element(COLLET_TYPE_F32, found->value), -8);
}

TEST(ElsewhereConstant, OperationsAreAppliedToTheConstant) {
  const auto found = elsewhere(kCausal + R"(  %8 = constant f32 0.5
  %9 = multiply f32 %7, %8
)",
                               9);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->range, (LoopRange{0, 20}));
  EXPECT_EQ(real_of_element(COLLET_TYPE_F32, found->value), -4);
  EXPECT_FALSE(elsewhere(kCausal + "  %8 = add f32 %7, %5\n", 8));
}

TEST(ElsewhereConstant, NestedSelectsOfOneConstant_Intersect) {
  const std::string window = kCausal + R"(  %8 = constant s32 4
  %9 = add s32 %3, %8
  %10 = compare pred %1, %9 le signed
)";
  const auto found = elsewhere(window + "  %11 = select f32 %10, %7, %6\n", 11);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->range, (LoopRange{6, 20}));
  // With another constant, the smaller of the two ranges counts.
  const auto other = elsewhere(window + "  %11 = constant f32 1\n  %12 = select f32 %10, %7, %11\n", 12);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->range, (LoopRange{0, 20}));
  EXPECT_EQ(real_of_element(COLLET_TYPE_F32, other->value), -8);
}

TEST(ElsewhereConstant, WhatIsLoaded_HasNone) {
  EXPECT_FALSE(elsewhere(compare("ge") + "  %5 = load f32 b0[100*i0 + i1]\n", 5));
}

}  // namespace
}  // namespace collet::codegen
