// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a machine with grids of threads computes a kernel: which loops become threads, and which thread walks what is left.

#include <collet/codegen/target.h>

#include <cstdint>
#include <string>

#include "sdk/codegen/kernel/kernel.h"
#include "sdk/codegen/schedule/grid_attention.h"
#include "sdk/codegen/schedule/grid_squares.h"
#include "sdk/codegen/schedule/grid_tiles.h"
#include "sdk/codegen/schedule/grid_updates.h"

namespace collet::codegen {

/// The schedule of one kernel.
struct GridSchedule {
  enum class Form : uint8_t {
    /// A thread takes a point of the parallel outer loops, and walks the other loops in their order.
    kPoints,
    /// A group of threads takes a point of the outer loops; each of them takes some points of the inner loops, and what they
    /// reduce is combined among them.
    kRows,
    /// A block takes a tile of the result of a matrix product: `tiles`.
    kTiles,
    /// A block takes squares of two loops: `squares`.
    kSquares,
    /// A thread takes updates of the same elements: `updates`. Only schedule_updates makes it.
    kUpdates,
    /// A block computes the results of some queries of an attention: `attention`. Only schedule_attention makes it.
    kAttention,
  };
  Form form = Form::kPoints;
  uint64_t parallel = 0;  ///< the parallel outer loops, as a bit set
  int group = 1;          ///< of kRows: threads of a group, those of a warp or of the whole block
  /// For kRows: points of the inner loops that each thread takes, whose values it keeps in registers from one pass to the
  /// next. 0: there are too many, and every pass computes them anew.
  int kept = 0;
  bool in_order =
      false;  ///< of kRows: a thread takes neighbouring points, and what threads have is combined in their order
  uint32_t blocks = 1;
  uint32_t block_threads = 1;
  uint32_t shared_bytes = 0;  ///< that a block gets when it is started; 0: the kernel declares what it needs
  TileSchedule tiles;
  SquareSchedule squares;
  UpdateSchedule updates;
  AttentionSchedule attention;

  bool operator==(const GridSchedule&) const = default;
};

/// A kernel and its schedule.
struct GridKernel {
  Kernel kernel;
  GridSchedule schedule;
};

/// Chooses the schedule of a kernel whose loops are collapsed and have no lanes. Where a thread can read and write neighbours of the last
/// loop at once, the kernel gets lanes along it.
GridKernel schedule_grid(Kernel kernel, const GridLimits& limits);

/// The schedule of one of the two kernels that choose_updates tells of.
GridKernel schedule_updates(Kernel kernel, const UpdateSchedule& updates, const GridLimits& limits);

/// The schedule of an attention that choose_attention has accepted.
GridKernel schedule_attention(Kernel kernel, const AttentionSchedule& attention, const GridLimits& limits);

/// So few rows leave processors idle: a reduction to fewer is better done in parts.
int64_t few_rows(const Kernel& kernel, const GridLimits& limits);

/// The schedule as text: "rows, 32 threads each, 100 blocks of 128 threads".
std::string print_schedule(const GridSchedule& schedule);

}  // namespace collet::codegen
