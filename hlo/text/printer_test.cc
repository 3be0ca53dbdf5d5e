// SPDX-License-Identifier: Apache-2.0
#include "hlo/text/printer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include "hlo/base/float_format.h"
#include "hlo/text/parser.h"

namespace collet::hlo {
namespace {

std::unique_ptr<Module> read(std::string_view text) {
  auto module = parse_module(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().message();
  if (!module.ok()) throw std::runtime_error("not read");
  return *std::move(module);
}

std::string print(const Module& module, PrintStyle style) {
  PrintOptions options;
  options.style = style;
  return print_module(module, options);
}

constexpr std::string_view kText = R"(HloModule m, entry_computation_layout={(f32[4]{0})->f32[]}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (p: f32[4]) -> f32[] {
  %p = f32[4]{0} parameter(0)
  %zero = f32[] constant(0), metadata={op_name="z" source_line=3}
  ROOT %r = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%sum
}

)";

TEST(Printer, LongFormIsReadAgainAsItWas) {
  EXPECT_EQ(print_module(*read(kText)), kText);
}

TEST(Printer, ShortForm) {
  EXPECT_EQ(print(*read(kText), PrintStyle::Short), R"(HloModule m, entry_computation_layout={(f32[4]{0})->f32[]}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  p = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(p, zero), dimensions={0}, to_apply=sum
}

)");
}

TEST(Printer, CanonicalFormHasNoNames) {
  const std::string text = print(*read(kText), PrintStyle::Canonical);
  EXPECT_EQ(text, R"(HloModule m, entry_computation_layout={(f32[4]{0})->f32[]}

ENTRY main {
  tmp_0 = f32[4]{0} parameter(0)
  tmp_1 = f32[] constant(0)
  ROOT tmp_2 = f32[] reduce(f32[4]{0} tmp_0, f32[] tmp_1), dimensions={0}, to_apply={
    tmp_0 = f32[] parameter(0)
    tmp_1 = f32[] parameter(1)
    ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
  }
}
)");
  EXPECT_EQ(print(*read(text), PrintStyle::Canonical), text);
}

TEST(Printer, FingerprintForgetsNamesAndOrder) {
  const auto a = read(
      "HloModule a\nf { x = f32[] constant(1) }\ng { x = f32[] constant(2) }\n"
      "ENTRY e { u = f32[] call(), to_apply=f\n ROOT v = f32[] call(), to_apply=g }");
  const auto b = read(
      "HloModule b\nh { y = f32[] constant(2) }\nk { z = f32[] constant(1) }\n"
      "ENTRY e { s = f32[] call(), to_apply=k\n ROOT t = f32[] call(), to_apply=h }");
  EXPECT_EQ(print(*a, PrintStyle::Fingerprint), print(*b, PrintStyle::Fingerprint));
  const auto c = read(
      "HloModule b\nh { y = f32[] constant(2) }\nk { z = f32[] constant(3) }\n"
      "ENTRY e { s = f32[] call(), to_apply=k\n ROOT t = f32[] call(), to_apply=h }");
  EXPECT_NE(print(*a, PrintStyle::Fingerprint), print(*c, PrintStyle::Fingerprint));
}

TEST(Printer, EveryConstructIsAFixedPoint) {
  for (const char* path :
       {"hlo/text/seeds/everything.hlo", "hlo/text/seeds/single.hlo", "hlo/text/seeds/headerless.hlo"}) {
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    ASSERT_FALSE(text.empty()) << path;
    for (PrintStyle style : {PrintStyle::Long, PrintStyle::Short}) {
      const std::string once = print(*read(text), style);
      EXPECT_EQ(print(*read(once), style), once);
    }
  }
}

TEST(Printer, WritesLiterals) {
  const auto text = [](const Literal& value) { return print_literal(value); };
  EXPECT_EQ(text(Literal::scalar(Type::F32, 0.1)), "0.1");
  EXPECT_EQ(text(Literal::scalar(Type::F32, -0.0)), "-0.0");
  EXPECT_EQ(text(Literal::scalar(Type::F64, 1e300)), "1e+300");
  EXPECT_EQ(text(Literal::scalar(Type::F64, 12345678901234567890.0)), "1.2345678901234567e+19");
  EXPECT_EQ(text(Literal::scalar(Type::BF16, 0.1)), "0.1");
  EXPECT_EQ(text(Literal::scalar(Type::F8E4M3FN, 448)), "448");
  EXPECT_EQ(text(Literal::scalar_int(Type::PRED, 1)), "true");
  EXPECT_EQ(text(Literal::scalar_int(Type::U64, -1)), "18446744073709551615");
  const uint32_t bits[] = {0x7FC00000, 0xFF80007F, 0xFF800000};
  EXPECT_EQ(text(Literal::from_bytes(Shape::array(Type::F32, {3}), bits)), "{nan, -nan(0x7f), -inf}");
  const int32_t four[] = {1, 2, 3, 4};
  EXPECT_EQ(text(Literal::from_bytes(Shape::array(Type::S32, {2, 2}), four)), "{ { 1, 2 }, { 3, 4 } }");
  EXPECT_EQ(text(Literal::from_bytes(Shape::array(Type::S32, {1, 2, 1, 2}), four)),
            "{ /*i0=0*/{ /*i1=0*/{ /*i2=0*/{ 1, 2 } }, /*i1=1*/{ /*i2=0*/{ 3, 4 } } } }");
  EXPECT_EQ(text(Literal::tuple({Literal::scalar(Type::C64, 1), Literal::ints(std::vector<int64_t>{1})})),
            "(c64[] (1, 0), s64[1]{0} {1})");
  EXPECT_EQ(print_literal(Literal::zeros(Shape::array(Type::S32, {11})), false), "{...}");
}

TEST(Printer, EveryFloatIsReadBackBitForBit) {
  std::mt19937_64 random(1);
  for (Type type :
       {Type::F16, Type::BF16, Type::F32, Type::F64, Type::F8E5M2, Type::F8E4M3, Type::F8E3M4, Type::F8E4M3FN,
        Type::F8E4M3B11FNUZ, Type::F8E5M2FNUZ, Type::F8E4M3FNUZ, Type::F4E2M1FN, Type::F8E8M0FNU}) {
    const TypeInfo& info = type_info(type);
    const int64_t count = info.bits <= 16 ? int64_t{1} << info.bits : 20000;
    Literal value = Literal::zeros(Shape::array(type, {count}));
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = info.bits <= 16 ? static_cast<uint64_t>(i) : random();
      std::memcpy(value.mutable_bytes() + i * info.bytes(), &bits, static_cast<size_t>(info.bytes()));
    }
    const auto module =
        read("ENTRY e { c = " + value.shape().to_string() + " constant(" + print_literal(value) + ") }");
    ASSERT_NE(module->entry(), CompId::None);
    const Literal back = module->literal((*module)[module->entry_computation().root]);
    for (int64_t i = 0; i < count; ++i) {
      const auto* a = value.bytes() + i * info.bytes();
      const auto* b = back.bytes() + i * info.bytes();
      if (std::memcmp(a, b, static_cast<size_t>(info.bytes())) == 0) continue;
      // Types without payloads have one NaN.
      EXPECT_TRUE(std::isnan(value.as_double(i)) && std::isnan(back.as_double(i))) << info.text << " " << i;
    }
  }
}

TEST(Printer, GivesDoubleAndStrangeNamesNewOnes) {
  Module module("jit(f)");
  const CompId c = module.add_computation("f32");
  module.set_entry(c);
  const InstrId a = module.append(c, Op::PARAMETER, Shape::scalar(Type::F32), {}, nullptr, {}, "x");
  module[c].parameters.push_back(a);
  const InstrId b = module.append(c, Op::NEGATE, Shape::scalar(Type::F32), std::vector{a}, nullptr, {}, "x");
  const InstrId d = module.append(c, Op::NEGATE, Shape::scalar(Type::F32), std::vector{b}, nullptr, {}, "a b/c");
  const InstrId e = module.append(c, Op::NEGATE, Shape::scalar(Type::F32), std::vector{d}, nullptr, {}, "s32");
  module[c].root = module.append(c, Op::NEGATE, Shape::scalar(Type::F32), std::vector{e}, nullptr, {}, "true");
  EXPECT_EQ(print(module, PrintStyle::Short), R"(HloModule jit_f_

ENTRY %f32 {
  x = f32[] parameter(0)
  x.1 = f32[] negate(x)
  a_b_c = f32[] negate(x.1)
  s32_ = f32[] negate(a_b_c)
  ROOT %true = f32[] negate(s32_)
}

)");
}

TEST(Printer, PrintsPieces) {
  const auto module = read(kText);
  EXPECT_EQ(print_instruction(*module, module->entry_computation().root),
            "ROOT %r = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%sum");
  EXPECT_TRUE(print_computation(*module, module->entry()).starts_with("ENTRY %main (p: f32[4]) -> f32[] {\n"));
}

TEST(Printer, MakesLabelsFromNumbers) {
  const auto module = read(
      "ENTRY e { p = f32[1,2,3] parameter(0)\n k = f32[1,2,3] parameter(1)\n"
      "ROOT c = f32[1,1,1] convolution(p, k), window={size=3}, dim_labels=bf0_oi0->bf0 }");
  Instruction& conv = (*module)[module->entry_computation().root];
  auto* attrs = module->make<ConvolutionAttrs>();
  *attrs = conv.as<ConvolutionAttrs>();
  std::swap(attrs->labels.input_batch, attrs->labels.input_feature);
  conv.attrs = attrs;
  EXPECT_NE(print_instruction(*module, module->entry_computation().root).find("dim_labels=fb0_oi0->bf0"),
            std::string::npos);
}

TEST(Printer, KeepsConstraintsOfNoOperandsAndGroupsOnMeshes) {
  for (const std::string line : {
           "ROOT %c = f32[2]{0} custom-call(), custom_call_target=\"f\", operand_layout_constraints={}",
           "ROOT %g = f32[4]{0} all-gather(%p), replica_groups=mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'x'}, "
           "channel_id=3, use_global_device_ids=true, dimensions={0}",
       }) {
    const auto module = read("ENTRY %e {\n  %p = f32[2]{0} parameter(0)\n  " + line + "\n}\n");
    EXPECT_EQ(print_instruction(*module, module->entry_computation().root), line);
    const auto copy = module->clone();
    EXPECT_EQ(print_instruction(*copy, copy->entry_computation().root), line);
  }
}

}  // namespace
}  // namespace collet::hlo
