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

}  // namespace
}  // namespace collet::hlo
