// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules elementwise kernels that transpose on a grid: those that read arrays along one loop and write along
/// another.

#include <collet/codegen/kernel.h>
#include <collet/codegen/target.h>

#include <cstdint>
#include <vector>

namespace collet::codegen {

/// A block computes square tiles of kSide points of the last loop times kSide points of loop `across`. Values that are
/// contiguous along `across` are loaded along that loop and transposed through shared memory, so that neighbouring
/// threads load and store adjacent elements.
struct TransposeSchedule {
  static constexpr int kSide = 32;  ///< equals the number of threads of a warp
  static constexpr int kThreads = 256;

  uint32_t across = 0;             ///< number of the loop along which elements are loaded
  std::vector<ExprId> transposed;  ///< the loads that are transposed through shared memory

  bool operator==(const TransposeSchedule&) const = default;
};

/// Finds the loop along which a kernel should load. Returns false if there is none.
bool choose_transpose(const Kernel& kernel, const GridLimits& limits, TransposeSchedule& out);

/// Returns the number of tiles of a kernel.
int64_t count_tiles(const Kernel& kernel, const TransposeSchedule& transpose);

}  // namespace collet::codegen
