// SPDX-License-Identifier: Apache-2.0
// Compares custom calls of frontends, most of which are factorizations: as the evaluator computes them, and as their
// expansion does.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

Claim without_custom_calls(const Module& module, InstrId id) {
  return module[id].op == Op::CUSTOM_CALL ? Claim::Expand : Claim::Take;
}

bool has_custom_calls(const Module& module) {
  for (CompId c : flow_computations(module))
    for (InstrId id : module[c].order)
      if (module[id].op == Op::CUSTOM_CALL) return true;
  return false;
}

void check(const std::string& text, double tolerance) {
  auto module = parse_module(text, "test");
  ASSERT_TRUE(module.ok()) << module.status().to_string() << text;
  const auto inputs = testing::entry_inputs(**module);
  const auto truth = Evaluator(**module).run(inputs);
  ASSERT_TRUE(truth.ok()) << truth.status().to_string() << text;
  PassContext context;
  context.claim = without_custom_calls;
  PassObserver observer;
  observer.verify = [](const Module& m) { return verify_module(m); };
  auto status = prepare(**module, context, observer);
  ASSERT_TRUE(status.ok()) << status.status().to_string() << text;
  ASSERT_TRUE(has_custom_calls(**module)) << text;
  status = legalize(**module, context, observer);
  ASSERT_TRUE(status.ok()) << status.status().to_string() << text;
  EXPECT_FALSE(has_custom_calls(**module)) << text;
  const auto got = Evaluator(**module).run(inputs);
  ASSERT_TRUE(got.ok()) << got.status().to_string() << text;
  const std::string difference = testing::difference(*truth, *got, {tolerance / 1e3, tolerance});
  EXPECT_TRUE(difference.empty()) << difference << "\n" << text;
}

std::string array(const std::string& type, int rows, int columns) {
  return type + "[2," + std::to_string(rows) + "," + std::to_string(columns) + "]";
}

const struct {
  const char* type;
  const char* real;
  double tolerance;
} kTypes[] = {{"f32", "f32", 1e-3}, {"f64", "f64", 1e-10}, {"c64", "f32", 1e-3}, {"c128", "f64", 1e-10}};

TEST(Factorizations, QrAndTheProductOfItsReflections) {
  for (const auto& t : kTypes)
    for (const auto& [rows, columns] : {std::pair{1, 1}, {4, 4}, {7, 3}, {3, 7}, {12, 12}}) {
      const std::string a = array(t.type, rows, columns);
      const std::string tau = std::string(t.type) + "[2," + std::to_string(std::min(rows, columns)) + "]";
      check("HloModule m\nENTRY e {\n  a = " + a + " parameter(0)\n  qr = (" + a + ", " + tau +
                ") custom-call(a), custom_call_target=\"Qr\"\n  packed = " + a +
                " get-tuple-element(qr), index=0\n  taus = " + tau + " get-tuple-element(qr), index=1\n  q = " + a +
                " custom-call(packed, taus), custom_call_target=\"ProductOfElementaryHouseholderReflectors\"\n" +
                "  ROOT r = (" + a + ", " + tau + ", " + a + ") tuple(packed, taus, q)\n}\n",
            t.tolerance);
    }
}

TEST(Factorizations, QrOfWhatNeedsNoReflection) {
  check(
      "HloModule m\nENTRY e {\n  i = s32[3,3] iota(), iota_dimension=0\n  j = s32[3,3] iota(), iota_dimension=1\n"
      "  less = pred[3,3] compare(i, j), direction=LE\n  a = f32[3,3] convert(less)\n"
      "  z = f32[3,3] parameter(0)\n  zeros = f32[3,3] subtract(z, z)\n  b = f32[3,3] add(a, zeros)\n"
      "  qr = (f32[3,3], f32[3]) custom-call(b), custom_call_target=\"Qr\"\n"
      "  zero = (f32[3,3], f32[3]) custom-call(zeros), custom_call_target=\"Qr\"\n"
      "  ROOT r = ((f32[3,3], f32[3]), (f32[3,3], f32[3])) tuple(qr, zero)\n}\n",
      1e-6);
}

// The sign of an eigenvector is arbitrary, so the test compares V diag(values) V^H instead of the vectors.
TEST(Factorizations, Eigh) {
  for (const auto& t : kTypes)
    for (const int n : {1, 2, 3, 6, 9, 16})
      for (const char* config : {"1,1,15,0.00001", "0,1,15,0.00001"}) {
        const std::string a = array(t.type, n, n), size = std::to_string(n);
        const std::string row = std::string(t.real) + "[2," + size + "]";
        std::string text = "HloModule m\nENTRY e {\n  a = " + a + " parameter(0)\n  eigh = (" + a + ", " + row +
                           ") custom-call(a), custom_call_target=\"Eigh\", backend_config=\"" + config + "\"\n";
        text += "  v = " + a + " get-tuple-element(eigh), index=0\n  w = " + row +
                " get-tuple-element(eigh), index=1\n  ww = " + t.type + "[2," + size + "] convert(w)\n  wide = " + a +
                " broadcast(ww), dimensions={0,2}\n  vw = " + a + " multiply(v, wide)\n";
        std::string other = "v";
        if (std::string(t.type) != t.real) {
          const std::string part = array(t.real, n, n);
          text += "  re = " + part + " real(v)\n  im = " + part + " imag(v)\n  minus = " + part +
                  " negate(im)\n  conj = " + a + " complex(re, minus)\n";
          other = "conj";
        }
        text += "  again = " + a + " dot(vw, " + other +
                "), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}\n"
                "  ROOT r = (" +
                row + ", " + a + ") tuple(w, again)\n}\n";
        check(text, t.tolerance);
      }
}

// After hundreds of rotations the vectors are as orthogonal as after few.
TEST(Factorizations, ErrorsOfRotationsDoNotAddUp) {
  check(R"(HloModule m
ENTRY e {
  a = f32[1,64,64] parameter(0)
  eigh = (f32[1,64,64], f32[1,64]) custom-call(a), custom_call_target="Eigh", backend_config="1,1,15,0.00001"
  v = f32[1,64,64] get-tuple-element(eigh), index=0
  ROOT r = f32[1,64,64] dot(v, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
})",
        6e-7);
}

TEST(CustomCalls, TopKBecomesTopk) {
  for (const std::string type : {"f32", "bf16", "s32"}) {
    check("HloModule m\nENTRY e {\n  x = " + type + "[3,17] parameter(0)\n  ROOT r = (" + type +
              "[3,5], s32[3,5]) custom-call(x), custom_call_target=\"TopK\"\n}\n",
          0);
  }
}

TEST(Factorizations, OtherCustomCallsStay) {
  auto module = parse_module(
      "HloModule m\nENTRY e {\n  a = f32[3] parameter(0)\n  ROOT r = f32[3] custom-call(a), "
      "custom_call_target=\"Unheard\"\n}\n",
      "test");
  ASSERT_TRUE(module.ok());
  PassContext context;
  context.claim = without_custom_calls;
  ASSERT_TRUE(legalize(**module, context, {}).ok());
  EXPECT_TRUE(has_custom_calls(**module));
}

}  // namespace
}  // namespace collet::hlo
