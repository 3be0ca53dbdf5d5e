// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules for machines with grids of threads: which loops of a kernel become threads, and which loops each thread
/// runs.

#include <collet/codegen/kernel.h>
#include <collet/codegen/target.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/codegen/schedule/grid_attention.h"
#include "sdk/codegen/schedule/grid_tiles.h"
#include "sdk/codegen/schedule/grid_transpose.h"
#include "sdk/codegen/schedule/grid_updates.h"
#include "sdk/codegen/schedule/grid_warpgroups.h"
#include "sdk/codegen/schedule/split_reduction.h"

namespace collet::codegen {

/// The schedule of one kernel.
struct GridSchedule {
  enum class Form : uint8_t {
    /// Each thread computes points of the parallel outer loops, and runs the other loops in their order.
    kThreadPerPoint,
    /// A group of threads computes a point of the outer loops. Each thread computes some points of the inner loops, and
    /// the group combines the threads' partial reductions.
    kRows,
    /// Each block computes a tile of a matrix product's result, see `tiles`.
    kTiles,
    /// Each block computes tiles of a matrix product by warpgroups, see `tiles` and `warpgroups`.
    kWarpgroups,
    /// Each block computes square tiles of two loops and transposes them through shared memory, see `transpose`.
    kTransposedTiles,
    /// Each thread makes all updates of some elements, see `updates`. Only schedule_updates chooses this form.
    kUpdates,
    /// Each block computes the results of some queries of an attention, see `attention`. Only schedule_attention
    /// chooses this form.
    kAttention,
  };
  Form form = Form::kThreadPerPoint;
  uint64_t parallel = 0;  ///< the parallel outer loops, as a bit set
  int group = 1;          ///< for kRows: number of threads of a group, either a warp or the whole block
  /// For kRows: number of iterations of the inner loops per thread whose values the thread keeps in registers from one
  /// pass to the next; an iteration of a loop with lanes computes all lanes. 0 if there are too many, so that every pass
  /// computes them again.
  int kept = 0;
  /// For kRows: each thread computes adjacent points, and the partial results are combined in the order of the threads.
  bool in_order = false;
  int together = 1;  ///< for kThreadPerPoint: points that a thread computes at a time
  uint32_t blocks = 1;
  uint32_t block_threads = 1;
  /// Blocks that a processor should be able to run at a time, which limits the registers of a thread; 0 for no limit.
  uint32_t resident_blocks = 0;
  /// Bytes of shared memory that a block gets when it is started; 0 if the kernel declares its shared memory.
  uint32_t shared_bytes = 0;
  /// Arrays of which the kernel copies boxes, see KernelCall::maps.
  std::vector<TensorMap> maps;
  TileSchedule tiles;
  WarpgroupSchedule warpgroups;
  TransposeSchedule transpose;
  UpdateSchedule updates;
  AttentionSchedule attention;

  bool operator==(const GridSchedule&) const = default;
};

/// A kernel and its schedule.
struct GridKernel {
  Kernel kernel;
  GridSchedule schedule;
};

/// Chooses the schedule of a kernel whose loops are collapsed and have no lanes. If a thread can load and store
/// adjacent points of the last loop with one access, the kernel gets lanes along it: elementwise kernels, and rows that
/// are combined in any order.
GridKernel schedule_grid(Kernel kernel, const GridLimits& limits);

/// Returns the schedule of one of the two kernels that choose_updates describes.
GridKernel schedule_updates(Kernel kernel, const UpdateSchedule& updates, const GridLimits& limits);

/// Returns the schedule of an attention that choose_attention has accepted.
GridKernel schedule_attention(Kernel kernel, const AttentionSchedule& attention, const GridLimits& limits);

/// Returns when a reduction should be split into parts, because processors would be idle.
SplitLimits split_limits(const Kernel& kernel, const GridLimits& limits);

/// Returns the schedule as text, such as "rows, 32 threads each, 100 blocks of 128 threads".
std::string print_schedule(const GridSchedule& schedule);

}  // namespace collet::codegen
