// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How the blocks of a grid compute a kernel that is a matrix product, a convolution or any other sum of products of two expressions.

#include <collet/codegen/target.h>

#include <cstdint>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// A factor of the products: a kernel expression, evaluated for a tile into shared memory.
struct TileOperand {
  ExprId value = kNoExpr;  ///< as it is stored in shared memory: before a conversion that matrix instructions make
  uint64_t loops = 0;  ///< outer loops that it alone depends on, as a bit set: the rows, or the columns, of the product
  int64_t count = 1;   ///< points of them
  bool by_depth = false;  ///< neighbours in memory are neighbours along the depth, not along `loops`
  /// It is an array in memory whose pieces of 16 bytes, all aligned, are copied to shared memory as they are.
  bool is_copied = false;

  bool operator==(const TileOperand&) const = default;
};

/// How blocks compute a kernel that sums products of two expressions: the loops that only one of them depends on are the rows and the
/// columns of a matrix product, and a block computes a tile of it. The depth, the points of the inner loops, is walked in rounds: threads
/// evaluate the expressions for some steps of it into shared memory, and multiply from there, while later rounds are loaded.
struct TileSchedule {
  static constexpr int kWarp = 32;  ///< threads of a warp, for which matrix instructions are defined

  TileOperand a;  ///< its loops are the rows
  TileOperand b;  ///< its loops are the columns
  uint64_t batch = 0;
  int64_t batch_count = 1;
  int64_t depth = 1;
  /// The type that matrix instructions multiply, or 0: BF16 and F16 with sums in F32, S8 and U8 with sums in S32, F32 rounded to
  /// tf32 where the program allows it.
  uint32_t matrix_type = 0;
  int tile_rows = 64;  ///< of a block
  int tile_columns = 64;
  int part_rows = 4;  ///< of a warp where matrix instructions multiply, else of a thread
  int part_columns = 4;
  int round = 16;  ///< steps of the depth
  int rounds = 2;  ///< that are in shared memory at a time

  /// Threads of a block: each part of a tile has a warp, or a thread.
  int block_threads() const {
    const int parts = tile_rows / part_rows * (tile_columns / part_columns);
    return matrix_type != 0 ? parts * kWarp : parts;
  }
  int64_t row_tiles() const { return (a.count + tile_rows - 1) / tile_rows; }
  int64_t column_tiles() const { return (b.count + tile_columns - 1) / tile_columns; }
  int64_t tiles() const { return row_tiles() * column_tiles() * batch_count; }

  bool operator==(const TileSchedule&) const = default;
};

/// Where an operand of a tile lies in shared memory, in each round.
struct TileStorage {
  bool lines_of_depth =
      false;  ///< a line holds all rows (columns) at a step of the depth; else it holds all steps of a row (column)
  int64_t lines = 0;
  int64_t pitch =
      0;  ///< elements from one line to the next: some more than a line has, so that its columns lie in different banks
  int element_bytes = 0;

  int64_t bytes() const { return lines * pitch * element_bytes; }
};

/// The storage of operand `o`, which has `length` rows, or columns, in a tile.
TileStorage tile_storage(const TileSchedule& tiles, const TileOperand& o, int length, uint32_t sum_type);

/// Finds the matrix product that a kernel is, and chooses the tiles; false where it is none, or too small for tiles.
bool choose_tiles(const Kernel& kernel, const GridLimits& limits, TileSchedule& out);

}  // namespace collet::codegen
