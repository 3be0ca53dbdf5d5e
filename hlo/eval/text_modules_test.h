// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "hlo/eval/evaluator.h"
#include "hlo/text/parser.h"

/// \file
/// For tests: evaluates programs that are given as HLO text.

namespace collet::hlo::testing {

/// Returns the result of the entry of `text`, or an error.
inline Expected<Literal> evaluate_text(const std::string& text, std::vector<Literal> arguments = {},
                                       EvalOptions options = {}) {
  COLLET_ASSIGN(const std::unique_ptr<Module> module, parse_module(text));
  return Evaluator(*module, std::move(options)).run(std::move(arguments));
}

/// Returns a constant as HLO text has it: value("f32[2]", "{1, 2}").
inline Literal value(const std::string& shape, const std::string& text) {
  auto result = evaluate_text("HloModule m\nENTRY e {\n ROOT c = " + shape + " constant(" + text + ")\n}\n");
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.ok() ? *result : Literal();
}

/// Expects equal values; NaN equals NaN, and +0 differs from -0.
inline void expect_same(const Literal& got, const Literal& expected) {
  ASSERT_TRUE(got.shape().compatible(expected.shape()))
      << got.shape().to_string() << " instead of " << expected.shape().to_string();
  if (expected.shape().is_tuple()) {
    for (size_t k = 0; k < expected.elements().size(); ++k) expect_same(got.element(k), expected.element(k));
    return;
  }
  const bool exact = is_integer(expected.type()) || expected.type() == Type::PRED;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    if (exact) {
      EXPECT_EQ(got.as_int(i), expected.as_int(i)) << "element " << i;
      continue;
    }
    for (bool imaginary : {false, true}) {
      const double a = imaginary ? got.imaginary(i) : got.as_double(i);
      const double b = imaginary ? expected.imaginary(i) : expected.as_double(i);
      if (std::isnan(b)) {
        EXPECT_TRUE(std::isnan(a)) << "element " << i << " is " << a << ", not NaN";
      } else {
        EXPECT_EQ(a, b) << "element " << i;
        EXPECT_EQ(std::signbit(a), std::signbit(b)) << "sign of element " << i;
      }
    }
  }
}

/// Expects that the root of an entry computation with the instructions `body` has this value. `before`: other
/// computations.
inline void expect_value(const std::string& body, const std::string& shape, const std::string& text,
                         const std::string& before = {}) {
  SCOPED_TRACE(body);
  auto got = evaluate_text("HloModule m\n" + before + "\nENTRY e {\n" + body + "\n}\n");
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  expect_same(*got, value(shape, text));
}

}  // namespace collet::hlo::testing
