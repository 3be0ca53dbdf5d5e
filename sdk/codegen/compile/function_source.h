// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sdk/codegen/kernel/kernel.h"
#include "sdk/codegen/lower/routines.h"
#include "sdk/codegen/matmul/matmul.h"
#include "sdk/codegen/schedule/grid.h"
#include "sdk/codegen/schedule/grid_sort.h"

namespace collet::codegen {

/// A micro-kernel with the epilogue of its registers, if any; without rows, the epilogue alone.
struct MicroSource {
  MicroKernel kernel;
  std::optional<Epilogue> epilogue;
};

/// A loop of the launch plan with all that it runs: kernels, copies, loops and branches. Its places lie in regions, which do not
/// overlap.
struct LoopSource {
  struct Region {
    uint32_t slot = 0;
    uint64_t begin = 0;  ///< in bytes, as is the end
    uint64_t end = 0;
    bool written = false;  ///< perhaps
  };
  struct RegionOffset {
    uint32_t region = 0;
    uint64_t offset = 0;  ///< from the region's begin
  };
  Step loop;
  std::vector<Region> regions;
  std::map<uint32_t, RegionOffset> region_offsets;  ///< by the number of a place in LaunchPlan::places
  std::map<FunctionId, Kernel> functions;           ///< by their numbers in the steps
};

/// The source of one function of a program: a KernelFunction, a MicroFunction, a CompareFunction, a LoopFunction, or what a
/// grid of threads runs.
struct FunctionSource {
  std::string name;
  std::variant<Kernel, MicroSource, Comparator, LoopSource, GridKernel, GridSort> body;
  /// Many programs have a function of this name, which is the same in all.
  bool shared = false;
};

}  // namespace collet::codegen
