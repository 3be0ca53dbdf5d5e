// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a machine with grids of threads computes a kernel: which loops become threads, and which thread walks what is left.

#include <collet/codegen/target.h>

#include <cstdint>
#include <string>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// How blocks compute a kernel that sums products of two expressions: the loops that only one of them depends on are the rows and the
/// columns of a matrix product, and a block computes a tile of it. Threads evaluate the expressions for the tile into shared memory, a
/// few steps of the depth at a time, and multiply from there.
struct TileSchedule {
  uint64_t rows = 0;  ///< outer loops, as bit sets
  uint64_t columns = 0;
  uint64_t batch = 0;
  int64_t row_count = 1;
  int64_t column_count = 1;
  int64_t batch_count = 1;
  int64_t depth = 1;  ///< points of the inner loops
  ExprId a = kNoExpr;
  ExprId b = kNoExpr;
  bool a_by_depth = false;  ///< neighbours in memory are neighbours along the depth
  bool b_by_depth = false;
  /// BF16 or F16: both expressions are of this type but for a conversion, and matrix instructions multiply. Else 0.
  uint32_t matrix_type = 0;

  bool operator==(const TileSchedule&) const = default;
};

/// Lengths of a tile, the same for all kernels. Every thread has as many rows as columns of it.
inline constexpr int64_t kTileRows = 64;
inline constexpr int64_t kTileColumns = 64;
inline constexpr int64_t kTileDepth = 16;        ///< steps of the depth in shared memory
inline constexpr int64_t kMatrixTileDepth = 32;  ///< the same where matrix instructions multiply
inline constexpr int kTileThreads = 256;
inline constexpr int kMatrixTileThreads = 128;

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
  };
  Form form = Form::kPoints;
  uint64_t parallel = 0;  ///< the parallel outer loops, as a bit set
  int group = 1;          ///< of kRows: threads of a group, those of a warp or of the whole block
  /// Of kRows: points of the inner loops that each thread takes, whose values it keeps in registers from one pass to the
  /// next. 0: there are too many, and every pass computes them anew.
  int kept = 0;
  bool in_order =
      false;  ///< of kRows: a thread takes neighbouring points, and what threads have is combined in their order
  uint32_t blocks = 1;
  uint32_t block_threads = 1;
  TileSchedule tiles;

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

/// So few rows leave processors idle: a reduction to fewer is better done in parts.
int64_t few_rows(const Kernel& kernel, const GridLimits& limits);

/// The schedule as text: "rows, 32 threads each, 100 blocks of 128 threads".
std::string print_schedule(const GridSchedule& schedule);

}  // namespace collet::codegen
