// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>
#include <collet/codegen/target.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sdk/codegen/llvm/jit.h"
#include "sdk/codegen/schedule/processor.h"
#include "sdk/codegen/testing/kernel_cases.h"

/// \file
/// Runs kernels as code of this machine and by the evaluator, and compares the contents of the buffers. For tests.

namespace collet::codegen {

/// Returns a target with registers of 128, 256 or 512 bits: the features that are switched off leave machines with and
/// without masks.
inline Target machine_of(int vector_bits) {
  const char* changes = vector_bits >= 512 ? "" : vector_bits >= 256 ? "-avx512f" : "-avx";
  Target target = host_target(check_features(changes).ok() ? changes : "");
  target.vector_bits = vector_bits;
  target.vector_registers = vector_bits >= 512 ? 32 : 16;
  return target;
}

/// Runs each of the kernels as its schedule says on the machine of `jit` and by the evaluator, and compares.
inline void compare_scheduled(Jit& jit, const std::vector<KernelCase>& cases) {
  std::vector<FunctionSource> sources;
  for (size_t i = 0; i < cases.size(); ++i) {
    FunctionSource& f = sources.emplace_back();
    f.name = "kernel" + std::to_string(i);
    f.body = cases[i].kernel;
  }
  std::unique_ptr<LoadedCode> code;
  const Status compiled = jit.compile(sources, false, code);
  for (size_t i = 0; i < cases.size() && !compiled.ok(); ++i)  // finds the one that is to blame
    EXPECT_TRUE(jit.compile({sources[i]}, false, code).ok()) << print_kernel(cases[i].kernel);
  ASSERT_TRUE(compiled.ok()) << compiled.message();
  for (size_t i = 0; i < cases.size(); ++i) {
    const Kernel& k = cases[i].kernel;
    SCOPED_TRACE(cases[i].name + ", registers of " + std::to_string(jit.target().vector_bits) + " bits\n" +
                 print_kernel(k));
    auto* f = reinterpret_cast<KernelFunction>(code->find(sources[i].name));
    ASSERT_NE(f, nullptr);
    compare_with_evaluator(cases[i], i, [&](size_t, Buffers& buffers) {
      const int64_t iterations = k.outer > 0 ? k.loops[0].size : 1;
      const std::vector<char*> addresses = buffers.addresses();
      if (k.sequential || k.outer == 0) {
        f(addresses.data(), 0, iterations, 0);
      } else {  // runs parts of the range, as threads do
        const bool is_lane_loop = k.lanes > 1 && k.lane_loop == 0;
        const int64_t middle =
            is_lane_loop ? iterations / 2 / k.lanes * k.lanes : std::min(iterations / 2 | 1, iterations);
        f(addresses.data(), 0, middle, 0);
        f(addresses.data(), middle, iterations, 0);
      }
    });
  }
}

/// Schedules each of the kernels, whose lanes have been chosen, and compares as compare_scheduled does.
inline void compare_with_evaluator(Jit& jit, std::vector<KernelCase> cases) {
  for (KernelCase& c : cases) {
    schedule_for(c.kernel, jit.target());
    const Status scheduled = verify_kernel(c.kernel);
    ASSERT_TRUE(scheduled.ok()) << scheduled.message() << "\n" << print_kernel(c.kernel);
    Kernel again;
    const Status read = parse_kernel(print_kernel(c.kernel), again);
    ASSERT_TRUE(read.ok()) << read.message() << "\n" << print_kernel(c.kernel);
    ASSERT_TRUE(again == c.kernel) << print_kernel(c.kernel);
  }
  compare_scheduled(jit, cases);
}

}  // namespace collet::codegen
