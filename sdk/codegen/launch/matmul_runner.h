// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>
#include <collet/codegen/threads.h>

#include "sdk/codegen/base/functions.h"

namespace collet::codegen {

/// Runs a MatmulCall with functions at known addresses. Holds a reference to the call.
class MatmulRunner {
 public:
  /// `addresses` are those of LaunchPlan::functions.
  MatmulRunner(const MatmulCall& call, const std::vector<void*>& addresses);

  /// Computes the product. `buffers` are the addresses of the step's places.
  void run(char* const* buffers, Threads& threads) const;
  /// Runs jobs [begin, end) of MatmulCall::jobs. `worker` selects the scratch memory. `finite`: the result of
  /// has_finite_b, for MatmulCall::checks_parts.
  void run_jobs(char* const* buffers, int64_t begin, int64_t end, int worker, bool finite = false) const {
    Work work{*this, buffers, finite};
    jobs(&work, begin, end, worker);
  }
  /// True if the call checks parts of the depth and all elements of b are finite.
  bool has_finite_b(char* const* buffers) const;

 private:
  class Interpreter;
  struct Work {
    const MatmulRunner& runner;
    char* const* buffers;
    bool finite;
  };
  /// True if the elements of a outside of first_step and end_step are zero in all tiles of a batch.
  bool is_zero_outside(char* const* buffers, int64_t batch) const;
  static void jobs(void* work, int64_t begin, int64_t end, int worker);

  const MatmulCall& c_;
  MicroFunction micro_[2][2] = {};
  MicroFunction after_[2] = {};
  MicroFunction fold_[2] = {};
  KernelFunction pack_a_ = nullptr;
  KernelFunction pack_b_ = nullptr;
  KernelFunction copy_b_ = nullptr;
};

}  // namespace collet::codegen
