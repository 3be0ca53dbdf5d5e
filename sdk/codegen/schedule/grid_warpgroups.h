// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules for matrix products by warpgroups: four warps run one matrix instruction, whose factors are in shared
/// memory. A device copies boxes of the arrays there by itself, and counts their bytes in barriers in shared memory.

#include <collet/codegen/kernel.h>
#include <collet/codegen/launch_plan.h>
#include <collet/codegen/target.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sdk/codegen/schedule/grid_tiles.h"

namespace collet::codegen {

/// A factor of a product, of which boxes are copied to shared memory.
struct BoxOperand {
  static constexpr int64_t kStrideBytes = 16;  ///< addresses and strides of copied arrays are multiples of this

  /// The array as the device copies it. Its first two dimensions are the depth and the rows (columns) of the product,
  /// in this order if `by_depth`; the others are those of `batch_loops`.
  TensorMap map;
  bool by_depth = true;  ///< true if neighbours along the depth are adjacent in memory
  std::vector<size_t> batch_loops;

  bool operator==(const BoxOperand&) const = default;
};

/// Describes how blocks compute a matrix product by warpgroups. A block computes one tile after the other. One of its
/// threads, the producer, starts the copies of each round of the depth as soon as shared memory is free for it. The
/// consumers are groups of four warps, each of which multiplies 64 rows of the tile.
struct WarpgroupSchedule {
  static constexpr int kGroupRows = 64;      ///< rows that a warpgroup multiplies
  static constexpr int kGroupThreads = 128;  ///< threads of a warpgroup
  /// Bytes along the contiguous dimension of a box: those that are swizzled.
  static constexpr int64_t kLineBytes = 128;
  static constexpr int64_t kBoxAlignment = 1024;  ///< of a box in shared memory, in bytes
  /// Columns of a tile that a warp writes to shared memory at a time, to compute and store neighbours together.
  static constexpr int kChunk = 64;

  BoxOperand a;              ///< rows by depth
  BoxOperand b;              ///< columns by depth
  uint32_t matrix_type = 0;  ///< the type that is multiplied: BF16, F16, F32 rounded to tf32, S8 or U8
  int rows = 128;            ///< rows of a tile: a multiple of kGroupRows
  int columns = 128;         ///< columns of a tile: a multiple of kChunk, at most 256
  int round = 64;            ///< steps of the depth in a round: kLineBytes of them
  int rounds = 4;            ///< rounds that are in shared memory at the same time
  int lanes = 1;             ///< neighbouring results that a thread computes and stores together
  int64_t row_group = 1;     ///< rows of tiles that blocks compute together, so that they share columns in the cache

  int consumers() const { return rows / kGroupRows; }
  int block_threads() const { return (consumers() + 1) * kGroupThreads; }
  int64_t a_bytes() const { return rows * kLineBytes; }
  int64_t b_bytes() const { return columns * kLineBytes; }
  int64_t round_bytes() const { return a_bytes() + b_bytes(); }
  /// Returns the bytes of one warp's chunk of results; an element of a sum has four bytes.
  static int64_t chunk_bytes() { return int64_t{16} * kChunk * 4; }
  /// Returns the bytes of shared memory: rounds, chunks, and two barriers for each round.
  int64_t shared_bytes() const { return rounds * (round_bytes() + 16) + 4 * consumers() * chunk_bytes(); }

  bool operator==(const WarpgroupSchedule&) const = default;
};

/// Describes a factor as an array of which boxes can be copied. `batch` are the loops beside its own and its depth.
/// Returns false if it is none. Matrix instructions take factors across their depth only if elements have 16 bits.
bool find_boxes(const Kernel& kernel, const TileOperand& of, uint64_t batch, uint32_t type, BoxOperand& out);

/// Sets the boxes of a factor: by depth they have `length` rows (columns), else `steps` of the depth. Each is a line wide.
void set_box(BoxOperand& o, int64_t length, int64_t steps);

/// Returns the outer loop along which all stores are contiguous; nullopt if there is none.
std::optional<size_t> contiguous_loop(const Kernel& kernel);

/// Returns how many neighbouring results along loop `along` a thread can compute and store together, at most `most`. What
/// depends on inner loops is not considered.
int lanes_along(const Kernel& kernel, size_t along, int most);

/// Chooses tiles for a product by warpgroups. `tiles` is what choose_tiles has found for the kernel; its shape and
/// operands are changed to those that are chosen. Returns false, and changes nothing, if the machine has no such
/// instructions, if a factor is not an array that it can copy, or if the product is too small.
bool choose_warpgroups(const Kernel& kernel, const GridLimits& limits, TileSchedule& tiles, WarpgroupSchedule& out);

/// Returns into how many parts the depth of a product by warpgroups should be split, so that few tiles keep
/// all processors busy; 1 if it should not, nullopt if warpgroups do not compute it. `tiles` is what choose_tiles has
/// found for the kernel. The parts divide an inner loop.
std::optional<int64_t> depth_parts(const Kernel& kernel, const GridLimits& limits, const TileSchedule& tiles);

}  // namespace collet::codegen
