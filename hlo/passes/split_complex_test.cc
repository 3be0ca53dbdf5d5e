// SPDX-License-Identifier: Apache-2.0
// Tests that products and convolutions of complex numbers give what they gave when they are computed from the parts. All numbers
// are small integers, so all sums are exact.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/text/parser.h"

namespace collet::hlo {
namespace {

std::unique_ptr<Module> parsed(const std::string& text) {
  auto module = parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string() << "\n" << text;
  return module.ok() ? std::move(*module) : nullptr;
}

std::string program(const std::string& x, const std::string& y, const std::string& op) {
  return "HloModule m\nENTRY main {\n  x = " + x + " parameter(0)\n  y = " + y + " parameter(1)\n  ROOT r = " + op +
         "\n}\n";
}

/// Runs the pass; returns whether it changed the program.
bool split(Module& module) {
  PassContext context;
  const auto changed = split_complex(module, context);
  EXPECT_TRUE(changed.ok()) << changed.status().to_string();
  return changed.ok() && *changed;
}

/// Runs `op`, of arrays of shapes `x` and `y`, with and without the pass.
void expect_same(const std::string& x, const std::string& y, const std::string& op) {
  SCOPED_TRACE(op + " of " + x + " and " + y);
  const auto plain = parsed(program(x, y, op)), parts = parsed(program(x, y, op));
  ASSERT_TRUE(plain && parts);
  ASSERT_TRUE(split(*parts));
  EXPECT_FALSE(split(*parts)) << "a second time";
  for (const Op real : {Op::DOT, Op::CONVOLUTION})
    for (InstrId id : (*parts)[parts->entry()].order)
      EXPECT_FALSE((*parts)[id].op == real && is_complex((*parts)[id].shape.type()));
  std::mt19937 random(7);
  std::vector<Literal> inputs;
  for (const InstrId p : (*plain)[plain->entry()].parameters) {
    Literal z = Literal::zeros((*plain)[p].shape);
    const auto part = [&] { return static_cast<double>(random() % 7) - 3; };
    for (int64_t k = 0; k < z.element_count(); ++k) {
      const double re = part();
      z.set_double(k, re, part());
    }
    inputs.push_back(std::move(z));
  }
  const auto expected = Evaluator(*plain).run(inputs), got = Evaluator(*parts).run(inputs);
  ASSERT_TRUE(expected.ok() && got.ok());
  for (int64_t k = 0; k < expected->element_count(); ++k) {
    ASSERT_EQ(got->as_double(k), expected->as_double(k)) << "element " << k;
    ASSERT_EQ(got->imaginary(k), expected->imaginary(k)) << "element " << k;
  }
}

TEST(SplitComplex, ProductsOfAllForms) {
  for (const std::string type : {"c64", "c128"}) {
    expect_same(type + "[40,9]", type + "[9,33]",
                type + "[40,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
    expect_same(type + "[32,9]", type + "[50,9]",
                type + "[32,50] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}");
  }
  for (const auto& [rows, columns] : {std::pair("10", "4"), std::pair("7", "40")})
    expect_same(std::string("c64[3,16,5,") + rows + ",4]", std::string("c64[4,16,8,") + columns + ",3]",
                std::string("c64[3,4,5,") + rows + ",8," + columns +
                    "] dot(x, y), lhs_batch_dims={0,4}, rhs_batch_dims={4,0}, lhs_contracting_dims={1}, "
                    "rhs_contracting_dims={1}");
  expect_same("c64[6,40,5]", "c64[5,6,60]",
              "c64[40,60] dot(x, y), lhs_contracting_dims={0,2}, rhs_contracting_dims={1,0}");
}

TEST(SplitComplex, ConvolutionsOfAllForms) {
  expect_same("c64[2,9,9,5]", "c64[3,3,5,6]",
              "c64[2,9,9,6] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f");
  expect_same("c64[2,5,9,9]", "c64[6,5,3,3]",
              "c64[2,6,5,4] convolution(x, y), window={size=3x3 pad=1_1x0_0 stride=2x2}, dim_labels=bf01_oi01->bf01");
  expect_same("c64[17,4,3]", "c64[7,5,4]",
              "c64[7,3,27] convolution(x, y), window={size=5 pad=3_3 lhs_dilate=2 rhs_dilate=3 rhs_reversal=1}, "
              "dim_labels=0fb_o0i->fb0");
  expect_same("c64[2,9,9,12]", "c64[3,3,4,18]",
              "c64[2,7,7,18] convolution(x, y), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=3");
  expect_same("c64[6,9,9,5]", "c64[3,3,5,18]",
              "c64[2,7,7,18] convolution(x, y), window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=3");
}

TEST(SplitComplex, SmallAndRealOnesStay) {
  for (const auto& [x, y, op] : {
           std::array<std::string, 3>{"c64[8,8]", "c64[8,8]",
                                      "c64[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
           {"c64[4,4000]", "c64[4000,4]", "c64[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
           {"c64[400,1]", "c64[1,400]", "c64[400,400] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
           {"f32[64,64]", "f32[64,64]", "f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
           {"c64[0,64]", "c64[64,64]", "c64[0,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
           {"c64[1,3,8]", "c64[3,8,8]",
            "c64[1,3,8] convolution(x, y), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f"},
           {"c64[9,40,8]", "c64[3,1,8]",
            "c64[9,38,8] convolution(x, y), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=8"},
       }) {
    const auto module = parsed(program(x, y, op));
    ASSERT_TRUE(module);
    EXPECT_FALSE(split(*module)) << op;
  }
}

}  // namespace
}  // namespace collet::hlo
