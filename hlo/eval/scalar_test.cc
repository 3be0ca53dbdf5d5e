// SPDX-License-Identifier: Apache-2.0
// Tests elementwise ops and conversions against values computed by hand.
#include "hlo/eval/text_modules_test.h"

namespace collet::hlo {
namespace {

using testing::expect_value;

/// Evaluates a binary op on two arrays and compares the result.
void binary(const std::string& op, const std::string& shape, const std::string& a, const std::string& b,
            const std::string& expected, const std::string& attributes = {}, const std::string& result = {}) {
  expect_value("a = " + shape + " constant(" + a + ")\nb = " + shape + " constant(" + b +
                   ")\nROOT r = " + (result.empty() ? shape : result) + " " + op + "(a, b)" + attributes,
               result.empty() ? shape : result, expected);
}

void unary(const std::string& op, const std::string& shape, const std::string& a, const std::string& expected,
           const std::string& result = {}, const std::string& attributes = {}) {
  expect_value("a = " + shape + " constant(" + a + ")\nROOT r = " + (result.empty() ? shape : result) + " " + op +
                   "(a)" + attributes,
               result.empty() ? shape : result, expected);
}

TEST(Integers, Wrap) {
  binary("add", "s8[2]", "{127, -128}", "{1, -1}", "{-128, 127}");
  binary("multiply", "s32[2]", "{65536, -2147483648}", "{65536, -1}", "{0, -2147483648}");
  binary("subtract", "u8[2]", "{0, 5}", "{1, 3}", "{255, 2}");
  binary("add", "s4[2]", "{7, -8}", "{1, -1}", "{-8, 7}");
  binary("multiply", "u4[2]", "{15, 3}", "{15, 6}", "{1, 2}");
  binary("add", "u64[1]", "{18446744073709551615}", "{2}", "{1}");
  unary("negate", "s8[2]", "{-128, 5}", "{-128, -5}");
  unary("negate", "u8[1]", "{1}", "{255}");
  unary("abs", "s32[2]", "{-2147483648, -3}", "{-2147483648, 3}");
}

TEST(Integers, DivideAndRemain) {
  binary("divide", "s32[5]", "{7, -7, 7, -2147483648, 5}", "{-2, 2, 0, -1, 3}", "{-3, -3, -1, -2147483648, 1}");
  binary("divide", "s64[2]", "{-9223372036854775808, 1}", "{-1, 0}", "{-9223372036854775808, -1}");
  binary("divide", "s8[1]", "{-128}", "{-1}", "{-128}");
  binary("divide", "u32[2]", "{7, 7}", "{2, 0}", "{3, 4294967295}");
  binary("divide", "u64[1]", "{18446744073709551615}", "{2}", "{9223372036854775807}");
  binary("remainder", "s32[5]", "{7, -7, 7, -2147483648, 5}", "{-2, 2, 0, -1, -3}", "{1, -1, 7, 0, 2}");
  binary("remainder", "u8[2]", "{200, 9}", "{7, 0}", "{4, 9}");
}

TEST(Integers, Power) {
  binary("power", "s32[7]", "{3, 1, -1, -1, 0, 2, 2}", "{-100, -2, -3, -2, 0, 31, 64}",
         "{0, 1, -1, 1, 1, -2147483648, 0}");
  binary("power", "u8[2]", "{3, 2}", "{5, 200}", "{243, 0}");
}

TEST(Integers, Shift) {
  binary("shift-left", "s8[4]", "{1, 1, 1, -1}", "{7, 8, -1, 4}", "{-128, 0, 0, -16}");
  binary("shift-right-logical", "s8[3]", "{-1, -1, -1}", "{1, 8, 0}", "{127, 0, -1}");
  binary("shift-right-arithmetic", "s8[4]", "{-128, 64, -1, -128}", "{7, 9, 100, -1}", "{-1, 0, -1, -1}");
  binary("shift-right-arithmetic", "u8[2]", "{128, 64}", "{7, 1}", "{255, 32}");
  binary("shift-left", "u64[2]", "{1, 3}", "{63, 64}", "{9223372036854775808, 0}");
  binary("shift-left", "s4[2]", "{1, 3}", "{3, 4}", "{-8, 0}");
}

TEST(Integers, Bits) {
  unary("popcnt", "s8[3]", "{-1, 0, 5}", "{8, 0, 2}");
  unary("count-leading-zeros", "s8[3]", "{-1, 0, 5}", "{0, 8, 5}");
  unary("count-leading-zeros", "u4[2]", "{0, 1}", "{4, 3}");
  unary("not", "u16[1]", "{1}", "{65534}");
  unary("not", "pred[2]", "{1, 0}", "{0, 1}");
  binary("xor", "pred[3]", "{1, 1, 0}", "{1, 0, 0}", "{0, 1, 0}");
  binary("add", "pred[3]", "{1, 1, 0}", "{1, 0, 0}", "{1, 1, 0}");
  binary("multiply", "pred[3]", "{1, 1, 0}", "{1, 0, 0}", "{1, 0, 0}");
  unary("sign", "s32[3]", "{-5, 0, 9}", "{-1, 0, 1}");
}

TEST(Floats, MaximumAndMinimum) {
  binary("maximum", "f32[5]", "{1, nan, -0, 0, -inf}", "{nan, 1, 0, -0, inf}", "{nan, nan, 0, 0, inf}");
  binary("minimum", "f32[5]", "{1, nan, -0, 0, -inf}", "{nan, 1, 0, -0, inf}", "{nan, nan, -0, -0, -inf}");
  binary("maximum", "bf16[2]", "{2, -0}", "{3, 0}", "{3, 0}");
  expect_value(
      "l = f32[3] constant({2, nan, 0})\nx = f32[3] constant({5, 1, -1})\nh = f32[3] constant({1, 2, nan})\n"
      "ROOT r = f32[3] clamp(l, x, h)",
      "f32[3]", "{1, nan, nan}");
  expect_value(
      "l = s32[] constant(-1)\nx = s32[3] constant({5, 0, -7})\nh = s32[] constant(2)\n"
      "ROOT r = s32[3] clamp(l, x, h)",
      "s32[3]", "{2, 0, -1}");
}

TEST(Floats, Compare) {
  const char* types[] = {"EQ", "NE", "LT", "GE"};
  const char* plain[] = {"{0, 1, 0, 0}", "{1, 0, 1, 1}", "{0, 0, 1, 0}", "{0, 1, 0, 0}"};
  for (int i = 0; i < 4; ++i)
    binary("compare", "f32[4]", "{nan, -0, -inf, 1}", "{nan, 0, 1, nan}", plain[i],
           std::string(", direction=") + types[i], "pred[4]");
  binary("compare", "f32[5]", "{-nan, -0, inf, 1, nan}", "{-inf, 0, nan, -nan, nan}", "{1, 1, 1, 0, 0}",
         ", direction=LT, type=TOTALORDER", "pred[5]");
  binary("compare", "bf16[2]", "{-0, nan}", "{0, inf}", "{1, 0}", ", direction=LT, type=TOTALORDER", "pred[2]");
  binary("compare", "u8[1]", "{200}", "{100}", "{0}", ", direction=LT", "pred[1]");
  binary("compare", "c64[2]", "{(1, 2), (nan, 0)}", "{(1, 2), (nan, 0)}", "{1, 0}", ", direction=EQ", "pred[2]");
}

TEST(Floats, RoundAndSign) {
  unary("round-nearest-afz", "f32[5]", "{0.5, -2.5, 0.49999997, 8388609, -0}", "{1, -3, 0, 8388609, -0}");
  unary("round-nearest-even", "f32[5]", "{0.5, 1.5, 2.5, -0.5, -inf}", "{0, 2, 2, -0, -inf}");
  unary("ceil", "f32[3]", "{-0.5, 1.1, nan}", "{-0, 2, nan}");
  unary("floor", "bf16[2]", "{-0.5, 1.5}", "{-1, 1}");
  unary("sign", "f32[5]", "{-2, -0, 0, 7, nan}", "{-1, -0, 0, 1, nan}");
  unary("is-finite", "f32[4]", "{inf, -inf, nan, 3}", "{0, 0, 0, 1}", "pred[4]");
  unary("negate", "f32[2]", "{0, -0}", "{-0, 0}");
  unary("abs", "f16[2]", "{-0, -3.5}", "{0, 3.5}");
}

TEST(Floats, Remainder) {
  binary("remainder", "f32[6]", "{5.5, -5.5, 1, inf, 1, -0}", "{2, 2, 0, 2, inf, 3}", "{1.5, -1.5, nan, nan, 1, -0}");
}

TEST(Floats, Functions) {
  for (const char* op : {"sqrt", "cbrt", "exponential-minus-one", "log-plus-one", "sine", "tanh", "asinh"})
    unary(op, "f32[2]", "{0, -0}", "{0, -0}");
  unary("sqrt", "f32[3]", "{-1, 4, inf}", "{nan, 2, inf}");
  unary("rsqrt", "f32[5]", "{0, -0, inf, 4, -1}", "{inf, -inf, 0, 0.5, nan}");
  unary("cbrt", "f32[2]", "{-8, 27}", "{-2, 3}");
  unary("log", "f32[4]", "{0, -1, 1, inf}", "{-inf, nan, 0, inf}");
  unary("log-plus-one", "f32[2]", "{-1, -2}", "{-inf, nan}");
  unary("logistic", "f32[4]", "{0, -inf, inf, 200}", "{0.5, 0, 1, 1}");
  binary("power", "f32[9]", "{nan, 1, -0, -0, -inf, -1, -8, 2, -2}", "{0, nan, -1, -2, 0.5, inf, 0.333, -1, 3}",
         "{1, 1, -inf, inf, inf, 1, nan, 0.5, -8}");
  binary("atan2", "f32[4]", "{0, -0, 0, -0}", "{-0, -0, 0, 0}", "{3.14159274, -3.14159274, 0, -0}");
}

TEST(Floats, RoundOnce) {
  // 1 + 2^-11 is a tie in f16; the second value is slightly larger. Rounding it to f32 first would make it a tie, too.
  unary("convert", "f64[2]", "{1.00048828125, 1.000488281250001}", "{1, 1.0009765625}", "f16[2]");
  unary("convert", "f64[1]", "{1.00390625000001}", "{1.0078125}", "bf16[1]");
  binary("add", "bf16[2]", "{1, 256}", "{0.00390625, 1}", "{1, 256}");
  binary("add", "f8e4m3fn[2]", "{448, 16}", "{448, 1}", "{nan, 16}");
  binary("multiply", "f8e5m2[1]", "{57344}", "{2}", "{inf}");
}

TEST(Complex, Arithmetic) {
  binary("multiply", "c64[2]", "{(1, 2), (0, 1)}", "{(3, -1), (0, 1)}", "{(5, 5), (-1, 0)}");
  binary("divide", "c64[1]", "{(5, 5)}", "{(3, -1)}", "{(1, 2)}");
  binary("divide", "c128[1]", "{(1e300, 1e300)}", "{(1e300, 1e300)}", "{(1, 0)}");
  unary("abs", "c64[2]", "{(3, -4), (inf, nan)}", "{5, inf}", "f32[2]");
  unary("abs", "c128[1]", "{(3e300, 4e300)}", "{5e300}", "f64[1]");
  unary("real", "c64[1]", "{(3, -4)}", "{3}", "f32[1]");
  unary("imag", "f32[1]", "{3}", "{0}");
  unary("sign", "c64[2]", "{(3, -4), (0, 0)}", "{(0.6, -0.8), (0, 0)}");
  unary("sqrt", "c64[1]", "{(-4, 0)}", "{(0, 2)}");
  binary("complex", "f32[2]", "{1, 2}", "{3, 4}", "{(1, 3), (2, 4)}", "", "c64[2]");
}

TEST(Complex, FunctionsNearTheirZerosAndPoles) {
  // |1 + z|^2 = 1 + 2x + x^2 + y^2 is computed without losing digits of small x and y beside the 1.
  const auto near = [](const std::string& op, const std::string& a, double re, double im) {
    auto got = testing::evaluate_text("HloModule m\nENTRY e {\n a = c128[] constant(" + a + ")\n ROOT r = c128[] " +
                                      op + "(a)\n}\n");
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_NEAR(got->as_double(0) / re, 1, 1e-15) << op;
    EXPECT_NEAR(got->imaginary(0) / im, 1, 1e-15) << op;
  };
  near("log-plus-one", "(1e-20, 1e-10)", 1.5e-20, 1e-10);
  near("log-plus-one", "(-1, 1e-20)", std::log(1e-20), std::acos(-1.0) / 2);
  near("log-plus-one", "(-1, -1e-200)", std::log(1e-200), std::acos(-1.0) / -2);
  near("exponential-minus-one", "(1e-20, 1e-10)", 5e-21, 1e-10);
  // The pole is at pi, which is 1.2246467991473532e-16 larger than the nearest f64.
  near("logistic", "(0, 3.141592653589793)", 0.5, 8165619676597685.0);
  near("tan", "(1.5707963267948966, 1e-30)", 16331239353195370.0, 266.7093788113571);
  near("logistic", "(-700, 1)", std::exp(-700.0) * std::cos(1.0), std::exp(-700.0) * std::sin(1.0));
  binary("power", "c64[2]", "{(0, 0), (0, 0)}", "{(0, 0), (2, 0)}", "{(1, 0), (0, 0)}");
}

TEST(Convert, FloatsToIntegers) {
  unary("convert", "f32[6]", "{-1.9, 1.9, nan, inf, -inf, 3e9}", "{-1, 1, 0, 2147483647, -2147483648, 2147483647}",
        "s32[6]");
  unary("convert", "f32[4]", "{-0.9, -5, 300, 255}", "{0, 0, 255, 255}", "u8[4]");
  unary("convert", "f32[2]", "{9.3e18, 1.9e19}", "{9223372036854775807, 9223372036854775807}", "s64[2]");
  unary("convert", "f64[2]", "{1.8446744073709550e19, 1e30}", "{18446744073709549568, 18446744073709551615}", "u64[2]");
  unary("convert", "f32[3]", "{100, -100, -3.7}", "{7, -8, -3}", "s4[3]");
  unary("convert", "f32[3]", "{nan, 0.1, -0}", "{1, 1, 0}", "pred[3]");
}

TEST(Convert, Integers) {
  unary("convert", "s32[3]", "{300, -1, 128}", "{44, -1, -128}", "s8[3]");
  unary("convert", "s32[2]", "{-1, 17}", "{15, 1}", "u4[2]");
  unary("convert", "s4[2]", "{-8, 7}", "{-8, 7}", "s32[2]");
  unary("convert", "s64[1]", "{9223372036854775807}", "{9223372036854775808}", "f32[1]");
  unary("convert", "s32[2]", "{16777217, 16777219}", "{16777216, 16777220}", "f32[2]");
  // 2^60 + 2^36 + 1 is just above a tie in f32; rounding to double first would lose the last bit.
  unary("convert", "s64[1]", "{1152921573326323713}", "{1152921642045800448}", "f32[1]");
  unary("convert", "u64[1]", "{18446744073709551615}", "{1.8446744073709552e19}", "f64[1]");
  unary("convert", "pred[2]", "{1, 0}", "{1, 0}", "bf16[2]");
  unary("convert", "s32[2]", "{256, 0}", "{1, 0}", "pred[2]");
  unary("convert", "c64[1]", "{(3, 4)}", "{3}", "s32[1]");
  unary("convert", "s32[1]", "{3}", "{(3, 0)}", "c64[1]");
}

TEST(Convert, SmallFloats) {
  unary("convert", "f32[4]", "{500, 464, -0.001, nan}", "{nan, 448, -0.001953125, nan}", "f8e4m3fn[4]");
  unary("convert", "f32[3]", "{300, 247.9, -0}", "{nan, 240, 0}", "f8e4m3fnuz[3]");
  unary("convert", "f32[4]", "{100, 5.1, 0.25, 5}", "{6, 6, 0, 4}", "f4e2m1fn[4]");
  unary("convert", "f32[4]", "{3, 6, 0, -1}", "{4, 8, nan, nan}", "f8e8m0fnu[4]");
  unary("convert", "f32[2]", "{65520, 65519}", "{inf, 65504}", "f16[2]");
  unary("convert", "f32[2]", "{5.9604645e-8, 2.9802322e-8}", "{5.9604645e-8, 0}", "f16[2]");
}

TEST(Convert, ReducePrecision) {
  const std::string e5m10 = ", exponent_bits=5, mantissa_bits=10";
  unary("reduce-precision", "f32[6]", "{65519, 65520, -65520, 6.1e-5, nan, 1.0001}", "{65504, inf, -inf, 0, nan, 1}",
        "", e5m10);
  unary("reduce-precision", "f32[3]", "{nan, 1.00390625, 1e-40}", "{nan, 1.00390625, 1e-40}", "",
        ", exponent_bits=4294967297, mantissa_bits=23");
  unary("reduce-precision", "f32[3]", "{nan, 3, 6}", "{inf, 2, 8}", "", ", exponent_bits=8, mantissa_bits=0");
}

TEST(Convert, Bits) {
  unary("bitcast-convert", "f32[1]", "{1}", "{{0, 0, -128, 63}}", "s8[1,4]");
  unary("bitcast-convert", "s8[1,4]", "{{0, 0, -128, 63}}", "{1}", "f32[1]");
  unary("bitcast-convert", "u8[1]", "{33}", "{{1, 2}}", "s4[1,2]");
  unary("bitcast-convert", "s4[1,2]", "{{-1, 2}}", "{47}", "u8[1]");
  unary("bitcast-convert", "f32[1]", "{-0}", "{2147483648}", "u32[1]");
}

TEST(Convert, Stochastic) {
  expect_value(
      "x = f32[6] constant({1.5, 1.5, -1.25, nan, inf, 3})\n"
      "r = u32[6] constant({0, 2147483648, 1073741823, 0, 0, 0})\nROOT c = s8[6] stochastic-convert(x, r)",
      "s8[6]", "{2, 1, -2, 0, 127, 3}");
}

TEST(Select, TakesWholeArraysByScalar) {
  expect_value(
      "p = pred[] constant(false)\na = s32[2] constant({1, 2})\nb = s32[2] constant({3, 4})\n"
      "ROOT r = s32[2] select(p, a, b)",
      "s32[2]", "{3, 4}");
  expect_value(
      "p = pred[2] constant({1, 0})\na = c128[2] constant({(1, 2), (3, 4)})\nb = c128[2] constant({(5, 6), (7, "
      "8)})\nROOT r = c128[2] select(p, a, b)",
      "c128[2]", "{(1, 2), (7, 8)}");
}

}  // namespace
}  // namespace collet::hlo
