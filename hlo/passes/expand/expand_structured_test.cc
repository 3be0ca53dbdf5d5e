// SPDX-License-Identifier: Apache-2.0
// Compares structured ops (convolution, sort, scatter, ...) as the evaluator runs them with their expansions, over many
// shapes and attributes.
#include <gtest/gtest.h>

#include <complex>
#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"
#include "sdk/include/tests/complex_specials.h"

namespace collet::hlo {
namespace {

Claim core_only(const Module& module, InstrId id) {
  const Op op = module[id].op;
  if (op == Op::COMPLEX || op == Op::REAL || op == Op::IMAG) return Claim::Take;
  const OpClass c = op_info(op).op_class;
  return c == OpClass::CORE || c == OpClass::EXECUTOR ? Claim::Take : Claim::Expand;
}

void check(const std::string& text, double tolerance = 1e-5) {
  auto module = parse_module(text, "test");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  ASSERT_TRUE(verify_module(**module).ok()) << verify_module(**module).to_string() << text;
  const auto inputs = testing::entry_inputs(**module);
  const auto truth = Evaluator(**module).run(inputs);
  ASSERT_TRUE(truth.ok()) << truth.status().to_string() << text;
  PassContext context;
  context.claim = core_only;
  PassObserver observer;
  observer.verify = [](const Module& m) { return verify_module(m); };
  auto status = prepare(**module, context, observer);
  ASSERT_TRUE(status.ok()) << status.status().to_string() << text;
  status = legalize(**module, context, observer);
  ASSERT_TRUE(status.ok()) << status.status().to_string() << text;
  for (CompId c : flow_computations(**module))
    for (InstrId id : (**module)[c].order)
      EXPECT_NE(core_only(**module, id), Claim::Expand) << op_info((**module)[id].op).text << " is left of\n" << text;
  const auto got = Evaluator(**module).run(inputs);
  ASSERT_TRUE(got.ok()) << got.status().to_string() << text;
  const std::string difference = testing::difference(*truth, *got, {1e-11, tolerance});
  EXPECT_TRUE(difference.empty()) << difference << "\n" << text;
}

std::string positive_definite(const std::string& type, int n) {
  const std::string shape = type + "[2," + std::to_string(n) + "," + std::to_string(n) + "]";
  const bool complex = type[0] == 'c';
  std::string out = "  m = " + shape + " parameter(0)\n";
  std::string other = "m";
  if (complex) {
    const std::string real = (type == "c64" ? "f32" : "f64") + shape.substr(type.size());
    out += "  re = " + real + " real(m)\n  im = " + real + " imag(m)\n  minus = " + real +
           " negate(im)\n  conj = " + shape + " complex(re, minus)\n";
    other = "conj";
  }
  out += "  mm = " + shape + " dot(m, " + other +
         "), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}\n";
  out += "  i = s32" + shape.substr(type.size()) + " iota(), iota_dimension=1\n  j = s32" + shape.substr(type.size()) +
         " iota(), iota_dimension=2\n  eq = pred" + shape.substr(type.size()) + " compare(i, j), direction=EQ\n";
  out += "  eye = " + shape + " convert(eq)\n  a = " + shape + " add(mm, eye)\n";
  return out;
}

TEST(Structured, cholesky) {
  for (const char* type : {"f32", "f64", "c64", "c128"})
    for (const char* lower : {"true", "false"})
      for (int n : {1, 2, 5, 16}) {
        const std::string shape = std::string(type) + "[2," + std::to_string(n) + "," + std::to_string(n) + "]";
        // Only one triangle of L is defined, so the test compares L L^H, computed from that triangle.
        std::string text = "HloModule m\nENTRY e {\n" + positive_definite(type, n) + "  l = " + shape +
                           " cholesky(a), lower=" + lower + "\n  nought = f32[] constant(0)\n  zero = " + type +
                           "[] convert(nought)\n";
        text += "  zeros = " + shape + " broadcast(zero), dimensions={}\n  keep = pred" +
                shape.substr(std::string(type).size()) +
                " compare(i, j), direction=" + (lower == std::string("true") ? "GE" : "LE") + "\n  ROOT r = " + shape +
                " select(keep, l, zeros)\n}\n";
        check(text, 1e-4);
      }
}

TEST(Structured, triangular_solve) {
  for (const char* type : {"f32", "c64", "f64"})
    for (const char* left : {"true", "false"})
      for (const char* lower : {"true", "false"})
        for (const char* unit : {"true", "false"})
          for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
            const std::string b = left == std::string("true") ? "[2,4,3]" : "[2,3,4]";
            check("HloModule m\nENTRY e {\n" + positive_definite(type, 4) + "  b = " + type + b + " parameter(1)\n" +
                      "  ROOT x = " + type + b + " triangular-solve(a, b), left_side=" + left + ", lower=" + lower +
                      ", unit_diagonal=" + unit + ", transpose_a=" + transpose + "\n}\n",
                  1e-4);
          }
}

TEST(Structured, fft) {
  for (const int n : {1, 2, 3, 8, 12, 30, 64, 97, 100, 131, 262, 1024})
    for (const char* kind : {"FFT", "IFFT", "RFFT", "IRFFT"}) {
      const std::string full = std::to_string(n), half = std::to_string(n / 2 + 1);
      const std::string k = kind;
      const std::string in = k == "RFFT" ? "f32[2," + full + "]" : "c64[2," + (k == "IRFFT" ? half : full) + "]";
      const std::string out = k == "IRFFT" ? "f32[2," + full + "]" : "c64[2," + (k == "RFFT" ? half : full) + "]";
      check("HloModule m\nENTRY e {\n  x = " + in + " parameter(0)\n  ROOT y = " + out + " fft(x), fft_type=" + k +
            ", fft_length={" + full + "}\n}\n");
    }
  check(
      "HloModule m\nENTRY e {\n  x = c128[3,4,5,6] parameter(0)\n  ROOT y = c128[3,4,5,6] fft(x), fft_type=FFT, "
      "fft_length={4,5,6}\n}\n");
  check(
      "HloModule m\nENTRY e {\n  x = f64[4,5,6] parameter(0)\n  ROOT y = c128[4,5,4] fft(x), fft_type=RFFT, "
      "fft_length={4,5,6}\n}\n");
  check(
      "HloModule m\nENTRY e {\n  x = c64[4,5,4] parameter(0)\n  ROOT y = f32[4,5,7] fft(x), fft_type=IRFFT, "
      "fft_length={4,5,7}\n}\n");
}

TEST(Structured, convolution) {
  const char* bodies[] = {
      "x = f32[2,9,4] parameter(0)\n k = f32[3,4,5] parameter(1)\n ROOT y = f32[2,7,5] convolution(x, k), "
      "window={size=3}, dim_labels=b0f_0io->b0f",
      "x = f32[2,8,9,4] parameter(0)\n k = f32[3,2,4,6] parameter(1)\n ROOT y = f32[2,4,6,6] convolution(x, k), "
      "window={size=3x2 stride=2x2 pad=1_1x1_3}, dim_labels=b01f_01io->b01f",
      "x = f32[4,2,8,9] parameter(0)\n k = f32[6,4,3,2] parameter(1)\n ROOT y = f32[2,6,4,15] convolution(x, k), "
      "window={size=3x2 pad=0_0x-1_0 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=1x0}, dim_labels=fb01_oi01->bf01",
      "x = f32[2,7,6] parameter(0)\n k = f32[3,2,9] parameter(1)\n ROOT y = f32[2,5,9] convolution(x, k), "
      "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=3",
      "x = f32[2,7,6] parameter(0)\n k = f32[3,1,12] parameter(1)\n ROOT y = f32[2,5,12] convolution(x, k), "
      "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=6",
      "x = f32[4,7,6] parameter(0)\n k = f32[3,6,8] parameter(1)\n ROOT y = f32[2,5,8] convolution(x, k), "
      "window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2",
      "x = s8[2,7,6] parameter(0)\n k = s8[3,6,8] parameter(1)\n ROOT y = s32[2,5,8] convolution(x, k), "
      "window={size=3}, dim_labels=b0f_0io->b0f",
      "x = bf16[2,7,6] parameter(0)\n k = bf16[3,6,8] parameter(1)\n ROOT y = bf16[2,5,8] convolution(x, k), "
      "window={size=3}, dim_labels=b0f_0io->b0f",
      "x = f32[1,20,20,2] parameter(0)\n k = f32[12,12,2,3] parameter(1)\n ROOT y = f32[1,5,9,3] convolution(x, k), "
      "window={size=12x12 stride=2x1}, dim_labels=b01f_01io->b01f",
      "x = f32[3,4] parameter(0)\n k = f32[4,5] parameter(1)\n ROOT y = f32[3,5] convolution(x, k), "
      "dim_labels=bf_io->bf",
  };
  for (const char* body : bodies) check("HloModule m\nENTRY e {\n  " + std::string(body) + "\n}\n");
}

TEST(Structured, random_bits_with_and_without_the_new_state) {
  for (const char* algorithm : {"rng_three_fry", "rng_philox", "rng_default"})
    for (const char* bits : {"u32[5,3]", "u64[4]", "u32[0]"})
      for (const char* result : {"(u64[2], BITS)", "BITS"}) {
        std::string shape = result;
        shape.replace(shape.find("BITS"), 4, bits);
        check("HloModule m\nENTRY e {\n  x = u64[2] parameter(0)\n  ROOT y = " + shape +
              " rng-bit-generator(x), algorithm=" + algorithm + "\n}\n");
      }
}

TEST(Structured, random_numbers_of_no_elements) {
  for (const std::string distribution : {"rng_uniform", "rng_normal"}) {
    for (const std::string type : {"f32", "bf16", "f64"}) {
      check("HloModule m\nENTRY e {\n a = " + type + "[] constant(0)\n b = " + type +
            "[] constant(1)\n ROOT r = " + type + "[42,0,40] rng(a, b), distribution=" + distribution + "\n}\n");
    }
  }
  check(
      "HloModule m\nENTRY e {\n a = s32[] constant(0)\n b = s32[] constant(9)\n ROOT r = s32[0] rng(a, b), "
      "distribution=rng_uniform\n}\n");
}

TEST(Structured, complex_functions) {
  for (const char* type : {"c64", "c128"})
    for (const char* op : {"negate", "exponential",  "exponential-minus-one",
                           "log",    "log-plus-one", "sqrt",
                           "rsqrt",  "sine",         "cosine",
                           "tan",    "tanh",         "logistic",
                           "sign",   "sinh",         "cosh",
                           "asin",   "acos",         "asinh",
                           "acosh",  "atanh"})
      check("HloModule m\nENTRY e {\n  x = " + std::string(type) + "[500] parameter(0)\n  ROOT y = " + type + "[500] " +
            op + "(x)\n}\n");
  for (const char* op : {"subtract", "power", "atan2"})
    check("HloModule m\nENTRY e {\n  x = c64[500] parameter(0)\n  z = c64[500] parameter(1)\n  ROOT y = c64[500] " +
          std::string(op) + "(x, z)\n}\n");
  check("HloModule m\nENTRY e {\n  x = c64[500] parameter(0)\n  ROOT y = f32[500] abs(x)\n}\n");
}

// The evaluator, and the expansion in which every function of complex numbers is made of real ones.
TEST(Structured, special_values_of_complex_functions) {
  const auto specials = collet::testing::complex_specials();
  for (const char* type : {"c64", "c128"}) {
    std::string text = "HloModule m\nENTRY e {\n", results, types;
    for (size_t i = 0; i < specials.size(); ++i) {
      const auto& s = specials[i];
      const std::string n = std::to_string(i), scalar = std::string(type) + "[]";
      const bool two = s.op == std::string("power") || s.op == std::string("divide");
      text += "  x" + n + " = " + scalar + " parameter(" + std::to_string(2 * i) + ")\n  y" + n + " = " + scalar +
              " parameter(" + std::to_string(2 * i + 1) + ")\n  r" + n + " = " + scalar + " " + s.op + "(x" + n +
              (two ? ", y" + n : "") + ")\n";
      results += (i ? ", r" : "r") + n;
      types += (i ? ", " : "") + scalar;
    }
    auto module = parse_module(text + "  ROOT t = (" + types + ") tuple(" + results + ")\n}\n", "test");
    ASSERT_TRUE(module.ok()) << module.status().to_string();
    std::vector<Literal> inputs;
    for (const auto& s : specials)
      for (const auto z : {s.x, s.y}) {
        Literal value = Literal::zeros(Shape::array(type == std::string("c64") ? Type::C64 : Type::C128, {}));
        value.set_double(0, z.real(), z.imag());
        inputs.push_back(std::move(value));
      }
    const auto compare = [&](const char* who) {
      const auto got = Evaluator(**module).run(inputs);
      ASSERT_TRUE(got.ok()) << got.status().to_string();
      for (size_t i = 0; i < specials.size(); ++i) {
        const Literal& r = got->elements()[i];
        const std::complex<double> value(r.as_double(0), r.imaginary(0));
        EXPECT_TRUE(collet::testing::same_special(value, specials[i].value))
            << who << " " << type << " " << specials[i].op << collet::testing::special_text(specials[i].x)
            << collet::testing::special_text(specials[i].y) << " is " << collet::testing::special_text(value)
            << ", not " << collet::testing::special_text(specials[i].value);
      }
    };
    compare("evaluator");
    PassContext context;
    context.claim = core_only;
    PassObserver observer;
    ASSERT_TRUE(prepare(**module, context, observer).ok());
    ASSERT_TRUE(legalize(**module, context, observer).ok());
    compare("expansion");
  }
}

}  // namespace
}  // namespace collet::hlo
