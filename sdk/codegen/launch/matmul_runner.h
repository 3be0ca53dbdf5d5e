// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>
#include <collet/codegen/threads.h>

#include "sdk/codegen/launch/functions.h"

namespace collet::codegen {

/// Runs a MatmulCall with functions at known addresses. Holds a reference to the call.
class MatmulRunner {
 public:
  /// `addresses` are those of LaunchPlan::functions.
  MatmulRunner(const MatmulCall& call, const std::vector<void*>& addresses);

  /// Computes the product. `buffers` are the addresses of the step's places.
  void run(char* const* buffers, Threads& threads) const;

 private:
  class Interpreter;
  struct Work {
    const MatmulRunner& runner;
    char* const* buffers;
  };
  static void jobs(void* work, int64_t begin, int64_t end, int worker);

  const MatmulCall& c_;
  MicroFunction micro_[2][2] = {};
  MicroFunction after_[2] = {};
  KernelFunction pack_a_ = nullptr;
  KernelFunction pack_b_ = nullptr;
  KernelFunction copy_b_ = nullptr;
};

}  // namespace collet::codegen
