// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sdk/codegen/kernel/verify.h"
#include "sdk/codegen/llvm/jit.h"
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
  return target;
}

/// Runs each of the kernels, whose lanes have been chosen, on the machine of `jit` and by the evaluator, and compares.
inline void compare_with_evaluator(Jit& jit, const std::vector<KernelCase>& cases) {
  std::vector<FunctionSource> sources;
  for (size_t i = 0; i < cases.size(); ++i) {
    FunctionSource& f = sources.emplace_back();
    f.name = "kernel" + std::to_string(i);
    f.body = cases[i].kernel;
  }
  std::unique_ptr<LoadedCode> code;
  const Status compiled = jit.compile(sources, false, code);
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
        f(addresses.data(), 0, iterations);
      } else {  // runs parts of the range, as threads do
        const bool is_lane_loop = k.lanes > 1 && k.lane_loop == 0;
        const int64_t middle =
            is_lane_loop ? iterations / 2 / k.lanes * k.lanes : std::min(iterations / 2 | 1, iterations);
        f(addresses.data(), 0, middle);
        f(addresses.data(), middle, iterations);
      }
    });
  }
}

}  // namespace collet::codegen
