// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How the blocks of a grid transpose: an elementwise kernel that reads arrays along one loop and writes them along another.

#include <collet/codegen/target.h>

#include <cstdint>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// A block computes squares of kSide points of the last loop by as many of loop `across`. What is loaded along `across` goes through
/// shared memory, so that neighbouring threads read neighbours and write neighbours.
struct SquareSchedule {
  static constexpr int kSide = 32;  ///< threads of a warp
  static constexpr int kThreads = 256;

  uint32_t across = 0;         ///< a loop
  std::vector<ExprId> turned;  ///< the loads that go through shared memory

  bool operator==(const SquareSchedule&) const = default;
};

/// Finds the loop along which a kernel should be transposed; false where there is none.
bool choose_squares(const Kernel& kernel, const GridLimits& limits, SquareSchedule& out);

/// Squares of a kernel.
int64_t count_squares(const Kernel& kernel, const SquareSchedule& squares);

}  // namespace collet::codegen
