// SPDX-License-Identifier: Apache-2.0

#include <collet/codegen/kernel_contraction.h>
#include <collet/codegen/kernel_text.h>

#include <gtest/gtest.h>

#include <string>

namespace collet::codegen {
namespace {

Kernel parsed(const std::string& text) {
  Kernel kernel;
  const Status read = parse_kernel(text, kernel);
  EXPECT_TRUE(read.ok()) << read.message() << text;
  return kernel;
}

/// Returns a product of 4 matrices of 8 x 16 and 16 x 32 of bf16. `sum` is the reduction, and `more` follows it.
Kernel product(const std::string& sum = "reduce add f32 %4 init identity",
               const std::string& more = "  %5 = reduced f32 r0 result 0\n  store b2[256*i0 + 32*i1 + i2], %5\n") {
  return parsed(R"(kernel (3 buffers) {
  outer i0: 4
  outer i1: 8
  outer i2: 32
  inner i3: 16
  %0 = load bf16 b0[128*i0 + 16*i1 + i3]
  %1 = convert f32 %0
  %2 = load bf16 b1[512*i0 + i2 + 32*i3]
  %3 = convert f32 %2
  %4 = multiply f32 %1, %3
  r0 = )" + sum +
                "\n" + more + "}\n");
}

TEST(Contraction, Product_ItsLoopsAreSortedByTheFactors) {
  const Kernel kernel = product();
  const auto found = find_contraction(kernel);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->batch, 1u);
  EXPECT_EQ(found->rows, 2u);
  EXPECT_EQ(found->columns, 4u);
  EXPECT_EQ(found->depth, 8u);
  EXPECT_EQ(found->type(), COLLET_TYPE_F32);
  EXPECT_EQ(found->a, 1);
  EXPECT_EQ(before_conversion(kernel, found->a, found->type()), 0);
  EXPECT_TRUE(found->from_zero);
  EXPECT_TRUE(stores_sum(kernel));
  EXPECT_EQ(plain_load(kernel, 2), &kernel.exprs[2]);
  EXPECT_EQ(plain_load(kernel, found->b), nullptr);
}

TEST(Contraction, OtherSums_AreNone) {
  EXPECT_FALSE(find_contraction(product("reduce maximum f32 %4 init identity")));
  EXPECT_FALSE(find_contraction(product("reduce add f32 %1 init identity")));
  EXPECT_FALSE(
      find_contraction(parsed("kernel (1 buffer) {\n  outer i0: 4\n  %0 = load f32 b0[i0]\n  store b0[i0], %0\n}\n")));
}

TEST(Contraction, InitialValue_IsZeroOrNot) {
  const auto starts = [](uint64_t bits) {
    Kernel kernel = product();
    Expr constant;
    constant.type = COLLET_TYPE_F32;
    constant.bits[0] = bits;
    kernel.exprs.push_back(constant);
    kernel.reductions[0].inits[0] = static_cast<ExprId>(kernel.exprs.size() - 1);
    return find_contraction(kernel)->from_zero;
  };
  EXPECT_TRUE(starts(0));
  EXPECT_FALSE(starts(0x3f800000));
  EXPECT_FALSE(starts(0x80000000));  // -0: the sum of products that are all -0 differs
}

TEST(Contraction, Store_OfAConvertedSumOrOfAnythingElse) {
  const std::string sum = "reduce add f32 %4 init identity";
  EXPECT_TRUE(stores_sum(
      product(sum, "  %5 = reduced f32 r0 result 0\n  %6 = convert bf16 %5\n  store b2[256*i0 + 32*i1 + i2], %6\n")));
  EXPECT_FALSE(stores_sum(
      product(sum, "  %5 = reduced f32 r0 result 0\n  %6 = add f32 %5, %5\n  store b2[256*i0 + 32*i1 + i2], %6\n")));
}

}  // namespace
}  // namespace collet::codegen
