// SPDX-License-Identifier: Apache-2.0
// Tests that prepared programs compute functions accurately where the frontends' formulas lose digits or overflow.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/text/parser.h"

namespace collet::hlo {
namespace {

/// Returns the result of a prepared program on scalars.
double run(Module& module, const std::vector<double>& arguments, Type type) {
  PassContext context;
  const auto prepared = prepare(module, context);
  EXPECT_TRUE(prepared.ok()) << prepared.status().to_string();
  std::vector<Literal> inputs;
  for (double x : arguments) inputs.push_back(Literal::scalar(type, x));
  const auto got = Evaluator(module).run(inputs);
  EXPECT_TRUE(got.ok()) << got.status().to_string();
  return got.ok() ? got->as_double(0) : std::nan("");
}

double run_chlo(const std::string& op, const std::vector<double>& arguments, Type type) {
  const std::string scalar = type == Type::F64 ? "tensor<f64>" : "tensor<f32>";
  const bool two = arguments.size() == 2;
  const std::string types = two ? scalar + ", " + scalar : scalar;
  auto program = mlir::read_text("func.func @main(%a: " + scalar + (two ? ", %b: " + scalar : "") + ") -> " + scalar +
                                     " {\n  %0 = chlo." + op + (two ? " %a, %b : " : " %a : ") + types + " -> " +
                                     scalar + "\n  return %0 : " + scalar + "\n}",
                                 "test");
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  auto module = import_program(**program);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return run(**module, arguments, type);
}

/// `body` computes ROOT from x, y, and constants named after their values.
double run_hlo(const std::string& body, const std::vector<double>& arguments, Type type) {
  std::string text =
      "HloModule m\nENTRY main {\n  x = T[] parameter(0)\n  y = T[] parameter(1)\n  zero = T[] constant(0)\n"
      "  half = T[] constant(0.5)\n  one = T[] constant(1)\n  two = T[] constant(2)\n" +
      body + "}\n";
  const std::string name(collet_type_name(static_cast<uint32_t>(type)));
  for (size_t at; (at = text.find("T[]")) != std::string::npos;) text.replace(at, 1, name);
  auto module = parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? run(**module, arguments, type) : std::nan("");
}

struct Value {
  const char* op;
  std::vector<double> arguments;
  double expected;
};

// Errors are relative to the result, also where it is near zero.
TEST(RefineFunctions, GammaNearItsZerosAndZetaOfLargeArguments) {
  const Value values[] = {
      {"lgamma", {1.0009765625}, -0.000562903179991204632},
      {"lgamma", {0.9990234375}, 0.000564471911855123384},
      {"lgamma", {2.0009765625}, 0.000413182793064254264},
      {"lgamma", {1.9990234375}, -0.000412567735971489402},
      {"lgamma", {1.0000009536743164}, -5.50475006614886679e-7},
      {"lgamma", {1.9999990463256836}, -4.03198268480184763e-7},
      {"lgamma", {1.25}, -0.0982718364218131615},
      {"lgamma", {0.75}, 0.203280951431295371},
      {"lgamma", {1.75}, -0.084401121020485556},
      {"lgamma", {2.375}, 0.200698460377455841},
      {"lgamma", {0.5}, 0.572364942924700087},
      {"digamma", {1.4609375}, -0.00067240239024288040438},
      {"digamma", {1.4619140625}, 0.00027276858695440814547},
      {"digamma", {1.4616321325302124}, -1.2036052549106669488e-8},
      {"digamma", {1.2999999523162842}, -0.16919094295221948072},
      {"digamma", {1.7000000476837158}, 0.20854791269778212279},
      {"digamma", {1.2578125}, -0.21813969895120558898},
      {"digamma", {1.7421875}, 0.24148569622521330871},
      {"zeta", {100000.0, 1.0001220703125}, 4.99893207887397747e-6},
      {"zeta", {3000.0, 1.125}, 3.48684512568139842e-154},
      {"zeta", {1e+30, 1.0}, 1.0},
      {"zeta", {200.0, 1.5}, 6.04989989819374873e-36},
  };
  for (const auto& [op, arguments, expected] : values) {
    for (const auto& [type, tolerance] : {std::pair(Type::F64, 2e-15), std::pair(Type::F32, 1e-6)}) {
      const double least = type == Type::F32 ? 1e-44 : 0;  // the result may be subnormal
      EXPECT_NEAR(run_chlo(op, arguments, type), expected, tolerance * std::fabs(expected) + least)
          << op << " of " << arguments[0] << " in " << collet_type_name(static_cast<uint32_t>(type));
    }
  }
}

// Lanczos' terms cancel from 2.5 to 3, too.
TEST(RefineFunctions, LgammaAboveItsZeros) {
  for (double x = 2.25; x < 3.5; x += 1.0 / 64) {
    for (const auto& [type, tolerance] : {std::pair(Type::F64, 1e-15), std::pair(Type::F32, 5e-7)})
      EXPECT_NEAR(run_chlo("lgamma", {x}, type), std::lgamma(x), tolerance * std::lgamma(x)) << x;
  }
}

// Expansions of zeta compare the last term with the sum times a number that is 0 in f32.
TEST(RefineFunctions, SeriesThatEndsAtZero) {
  const std::string body =
      "  s = T[] exponential(x)\n  last = T[] abs(x)\n  magnitude = T[] abs(s)\n  least = T[] multiply(magnitude, "
      "zero)\n"
      "  p = pred[] compare(last, least), direction=LT\n  a = T[] multiply(x, y)\n  b = T[] divide(a, two)\n"
      "  c = T[] add(s, b)\n  d = T[] add(c, a)\n  ROOT r = T[] select(p, s, d)\n";
  EXPECT_EQ(run_hlo(body, {0, HUGE_VAL}, Type::F32), 1);
  EXPECT_EQ(run_hlo(body, {0, HUGE_VAL}, Type::F64), 1);
  EXPECT_EQ(run_hlo(body, {2, 2}, Type::F64), std::exp(2.0) + 2 + 4);
}

TEST(RefineFunctions, ProductOfAnExponentialThatOverflows) {
  const std::string body = "  m = T[] abs(x)\n  e = T[] exponential(m)\n  ROOT r = T[] multiply(e, y)\n";
  EXPECT_NEAR(run_hlo(body, {-91, 0.04}, Type::F32) / (std::exp(91.0) * 0.04), 1, 1e-6);
  EXPECT_NEAR(run_hlo(body, {712, 1e-3}, Type::F64) / (std::exp(709.0) * (std::exp(3.0) * 1e-3)), 1, 1e-14);
  EXPECT_NEAR(run_hlo(body, {12, 0.25}, Type::F16) / (std::exp(12.0) * 0.25), 1, 2e-3);
  EXPECT_EQ(run_hlo(body, {-3, 2}, Type::F32), static_cast<double>(2 * std::exp(3.0F)));
  EXPECT_EQ(run_hlo(body, {92, 1}, Type::F32), HUGE_VAL);
  EXPECT_TRUE(std::isnan(run_hlo(body, {std::nan(""), 1}, Type::F32)));
}

TEST(RefineFunctions, LogarithmNearOne) {
  const std::string direct = "  s = T[] subtract(one, x)\n  ROOT r = T[] log(s)\n";
  // The logarithm of a distribution function, as frontends write it: log((2 - y) / 2) or log(y / 2), by the sign of x.
  const std::string chosen =
      "  p = pred[] compare(x, zero), direction=GT\n  c = T[] subtract(two, y)\n"
      "  s = T[] select(p, c, y)\n  h = T[] multiply(half, s)\n  ROOT r = T[] log(h)\n";
  for (const auto& [type, tolerance] : {std::pair(Type::F64, 1e-15), std::pair(Type::F32, 5e-7)}) {
    for (const double y : {1e-12, 1e-7, 1e-3, 0.25}) {
      const auto rounded = Literal::scalar(type, y).as_double(0);
      const double expected = std::log1p(-rounded), half = std::log1p(-rounded / 2);
      EXPECT_NEAR(run_hlo(direct, {y, 0}, type) / expected, 1, tolerance) << y;
      EXPECT_NEAR(run_hlo(chosen, {1, y}, type) / half, 1, tolerance) << y;
      EXPECT_NEAR(run_hlo(chosen, {-1, y}, type) / std::log(rounded / 2), 1, tolerance) << y;
    }
    EXPECT_EQ(run_hlo(chosen, {1, 2}, type), -HUGE_VAL);
    EXPECT_EQ(run_hlo(chosen, {-1, 0}, type), -HUGE_VAL);
  }
}

// A program that divides by the rounded difference must get the logarithm of the rounded sum.
TEST(RefineFunctions, CorrectedLogarithmStays) {
  const std::string body =
      "  u = T[] add(one, x)\n  l = T[] log(u)\n  d = T[] subtract(u, one)\n  p = T[] multiply(l, x)\n"
      "  ROOT r = T[] divide(p, d)\n";
  EXPECT_NEAR(run_hlo(body, {3.3e-7, 0}, Type::F32) / std::log1p(3.3e-7), 1, 5e-7);
}

}  // namespace
}  // namespace collet::hlo
