// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "hlo/eval/text_modules_test.h"

// Tests each unary function for every value of f16 and bf16 against the host's function in long double, rounded once.

namespace collet::hlo {
namespace {

using Wide = long double;

struct Function {
  const char* op;
  Wide (*truth)(Wide);
};

constexpr Function kFunctions[] = {
    {"sine", [](Wide x) { return std::sin(x); }},
    {"cosine", [](Wide x) { return std::cos(x); }},
    {"tan", [](Wide x) { return std::tan(x); }},
    {"tanh", [](Wide x) { return std::tanh(x); }},
    {"exponential", [](Wide x) { return std::exp(x); }},
    {"exponential-minus-one", [](Wide x) { return std::expm1(x); }},
    {"log", [](Wide x) { return std::log(x); }},
    {"log-plus-one", [](Wide x) { return std::log1p(x); }},
    {"logistic", [](Wide x) { return 1 / (1 + std::exp(-x)); }},
    {"sqrt", [](Wide x) { return std::sqrt(x); }},
    {"rsqrt", [](Wide x) { return 1 / std::sqrt(x); }},
    {"cbrt", [](Wide x) { return std::cbrt(x); }},
    {"erf", [](Wide x) { return std::erf(x); }},
};

void check_all_values(const Function& function, Type type) {
  const Shape shape = Shape::array(type, {1 << 16});
  Literal all = Literal::zeros(shape);
  for (int i = 0; i < 1 << 16; ++i) all.mutable_data<uint16_t>()[i] = static_cast<uint16_t>(i);
  const std::string text = shape.to_string();
  const auto got = testing::evaluate_text(
      "HloModule m\nENTRY e {\n x = " + text + " parameter(0)\n ROOT r = " + text + " " + function.op + "(x)\n}\n",
      {all});
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  Literal truth = Literal::zeros(shape);
  int wrong = 0;
  for (int64_t i = 0; i < 1 << 16; ++i) {
    truth.set_double(i, static_cast<double>(function.truth(all.as_double(i))));
    const double a = got->as_double(i), b = truth.as_double(i);
    if (std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b)) continue;
    if (++wrong == 1)
      ADD_FAILURE() << function.op << " of " << std::hexfloat << all.as_double(i) << " in " << type_info(type).text
                    << " is " << a << ", not " << b;
  }
  EXPECT_EQ(wrong, 0) << function.op << " in " << type_info(type).text;
}

TEST(NarrowFloats, EveryValueOfEveryUnaryFunction) {
  for (const Function& function : kFunctions)
    for (Type type : {Type::F16, Type::BF16}) check_all_values(function, type);
}

// docs/programs.md: the running value of a reduction by one op is held in f32, whatever its length; other bodies round at each step.
TEST(NarrowFloats, ReductionsByOneOpAreHeldInF32) {
  const auto value = [](const std::string& type, const std::string& body, const std::string& data, int count) {
    const std::string scalar = type + "[]", array = type + "[" + std::to_string(count) + "]";
    const auto got = testing::evaluate_text(
        "HloModule m\nf {\n a = " + scalar + " parameter(0)\n b = " + scalar + " parameter(1)\n" + body +
            "}\nENTRY e {\n x = " + array + " constant({" + data + "})\n z = " + scalar +
            " constant(1)\n w = " + array + " reduce-window(x, z), window={size=" + std::to_string(count) +
            " pad=" + std::to_string(count - 1) + "_0}, to_apply=f\n l = " + type + "[1] slice(w), slice={[" +
            std::to_string(count - 1) + ":" + std::to_string(count) + "]}\n r = " + scalar +
            " reduce(x, z), dimensions={0}, to_apply=f\n s = " + type + "[1] reshape(r)\n ROOT c = " + type +
            "[2] concatenate(s, l), dimensions={0}\n}\n",
        {});
    EXPECT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_EQ(got->as_double(0), got->as_double(1)) << "reduce and reduce-window";
    return got->as_double(0);
  };
  const std::string ones = ", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1";
  const auto product = [](const std::string& type) { return " ROOT r = " + type + "[] multiply(a, b)\n"; };
  EXPECT_EQ(value("f16", product("f16"), "60000, 4, 0.25", 3), 60000);
  EXPECT_EQ(value("f16", product("f16"), "60000, 4, 0.25" + ones, 20), 60000);
  EXPECT_EQ(value("f8e5m2", product("f8e5m2"), "57344, 4, 0.25", 3), 57344);
  EXPECT_EQ(value("f8e4m3fn", product("f8e4m3fn"), "256, 4, 0.25", 3), 256);
  EXPECT_EQ(value("f16", " ROOT r = f16[] add(a, b)\n", "60000, 60000, -60000", 3), 60000);
  EXPECT_TRUE(std::isinf(value("bf16", product("bf16"), "3e38, 4, 0.25", 3)));
  const std::string two = " p = f16[] multiply(a, b)\n ROOT r = f16[] multiply(p, p)\n";
  EXPECT_TRUE(std::isinf(value("f16", two, "300, 0.00390625", 2)));
}

}  // namespace
}  // namespace collet::hlo
