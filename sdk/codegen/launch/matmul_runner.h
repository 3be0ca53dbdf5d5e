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

  /// `buffers`: the addresses of the step's places.
  void run(char* const* buffers, Threads& threads) const;

 private:
  /// Where the tiles of a part are.
  struct Where {
    Tile tile;  ///< what all of them share
    const char* a;
    const char* b;
    char* c;
    char* d;
    int64_t batch;  ///< number of the first
    int64_t first_tile;
    int64_t last_tile;
    int64_t first_panel;
    int64_t last_panel;
  };
  void part(char* const* buffers, int64_t job, int worker) const;
  void blocks(Where& at) const;
  void panel(Where& at, int64_t column, int64_t a_at, bool last) const;
  const char* packed_rows(char* const* buffers, int64_t matrix, int64_t first, int64_t rows, char* scratch) const;
  const char* packed_panels(char* const* buffers, int64_t matrix, int64_t first, int64_t last, char* scratch) const;

  const MatmulCall& c_;
  MicroFunction micro_[2][2] = {};
  MicroFunction after_[2] = {};
  KernelFunction pack_a_ = nullptr;
  KernelFunction pack_b_ = nullptr;
};

}  // namespace collet::codegen
