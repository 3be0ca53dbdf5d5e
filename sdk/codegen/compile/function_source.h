// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/codegen/launch_plan.h>

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sdk/codegen/lower/routines.h"
#include "sdk/codegen/matmul/blocked_product.h"
#include "sdk/codegen/matmul/matmul.h"
#include "sdk/codegen/schedule/grid.h"
#include "sdk/codegen/schedule/grid_radix.h"
#include "sdk/codegen/schedule/grid_sort.h"

namespace collet::codegen {

/// A micro-kernel with the epilogue that it applies to its registers, if any. With zero rows, the function is the
/// epilogue alone or, if there is none, adds the sums of a tile to its totals.
struct MicroSource {
  MicroKernel kernel;
  std::optional<Epilogue> epilogue;
};

/// A loop of the launch plan and everything that it runs: kernels, copies, loops and branches. The memory that it uses
/// is divided into regions that do not overlap.
struct LoopSource {
  struct Region {
    uint32_t slot = 0;
    uint64_t begin = 0;  ///< in bytes, like `end`
    uint64_t end = 0;
    bool written = false;  ///< true if a step may write to the region
  };
  struct RegionOffset {
    uint32_t region = 0;
    uint64_t offset = 0;  ///< offset from the region's begin, in bytes
  };
  Step loop;
  std::vector<Region> regions;
  std::map<uint32_t, RegionOffset> region_offsets;  ///< indexed by the number of a place in LaunchPlan::places
  std::map<FunctionId, Kernel> functions;           ///< kernels by the function numbers that the steps use
};

/// The source of one function of a program: a KernelFunction of a kernel or of a product, a MicroFunction, a CompareFunction, a
/// LoopFunction, or a kernel for a grid of threads. The functions that a product calls come before it.
struct FunctionSource {
  std::string name;
  std::variant<Kernel, MicroSource, Comparator, LoopSource, BlockedProduct, GridKernel, GridSort, GridRadix> body;
  /// True for a function that has the same name and the same code in all programs that use it.
  bool shared = false;
  /// The ops that it was made for, as messages name them.
  std::string ops = {};
};

}  // namespace collet::codegen
