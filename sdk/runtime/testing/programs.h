// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// For tests: programs as HLO text that differ in a few instructions.

#include <cstdint>
#include <string>
#include <string_view>

namespace collet::testing {

/// Returns the computation `name`, which combines two scalars of `type` by `op`.
inline std::string combiner(const std::string& name, const std::string& op, const std::string& type) {
  return name + " {\n  a = " + type + "[] parameter(0)\n  b = " + type + "[] parameter(1)\n  ROOT c = " + type + "[] " +
         op + "(a, b)\n}\n";
}

/// Returns the computations `cond` and `body` of a loop of so many iterations. Its state is (s32[], type): the number i
/// of the iteration, and x. The instructions `step` compute y, which is the next x.
inline std::string loop_computations(int iterations, const std::string& step, const std::string& type = "f32[4]") {
  const std::string state = "(s32[], " + type + ")";
  return "cond {\n  s = " + state + R"( parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant()" +
         std::to_string(iterations) + R"()
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = )" +
         state +
         R"( parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = )" +
         type + " get-tuple-element(s), index=1\n  " + step + "\n  ROOT r = " + state + " tuple(j, y)\n}\n";
}

/// Returns a program that computes y by this loop from its parameter x, and then the instructions `rest`. `header` is
/// what stands between the module's name and the loop: attributes, then the computations that `step` calls.
inline std::string loop_program(int iterations, const std::string& step, const std::string& rest,
                                const std::string& header = "", const std::string& type = "f32[4]") {
  const std::string state = "(s32[], " + type + ")";
  return "HloModule m" + header + "\n" + loop_computations(iterations, step, type) + "ENTRY e {\n  x = " + type +
         " parameter(0)\n  zero = s32[] constant(0)\n  init = " + state + " tuple(zero, x)\n  w = " + state +
         " while(init), condition=cond, body=body\n  y = " + type + " get-tuple-element(w), index=1\n" + rest + "\n}";
}

/// Returns a program of so many parameters, each of which gives a result.
inline std::string program_of_many(int64_t parameters) {
  std::string text = "HloModule m\nENTRY e {\n", types, names;
  for (int64_t i = 0; i < parameters; ++i) {
    const std::string n = std::to_string(i);
    text += "  x" + n + " = f32[4] parameter(" + n + ")\n  y" + n + " = f32[4] add(x" + n + ", x" + n + ")\n";
    types += (i ? ", " : "") + std::string("f32[4]");
    names += (i ? ", y" : "y") + n;
  }
  return text + "  ROOT t = (" + types + ") tuple(" + names + ")\n}\n";
}

}  // namespace collet::testing
