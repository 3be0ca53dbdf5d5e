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
  ExprId value = kNoExpr;    ///< as it is stored in shared memory: before a conversion that matrix instructions make
  uint64_t loops = 0;        ///< loops that it alone depends on, as a bit set: the rows, or the columns, of the product
  int64_t count = 1;         ///< points of them
  uint64_t depth_loops = 0;  ///< loops that are summed over
  int64_t depth = 1;         ///< points of them
  bool by_depth = false;     ///< neighbours in memory are neighbours along the depth, not along `loops`
  /// It is an array in memory whose pieces of 16 bytes, all aligned, are copied to shared memory as they are.
  bool is_copied = false;

  bool operator==(const TileOperand&) const = default;
};

/// The lengths of a tile, and of the part of it that a thread or, with matrix instructions, a warp computes.
struct TileShape {
  static constexpr int kWarp = 32;  ///< threads of a warp, for which matrix instructions are defined

  int rows = 64;
  int columns = 64;
  int part_rows = 4;
  int part_columns = 4;

  /// Threads that compute a tile. `matrix_type`: see TileSchedule.
  int threads(uint32_t matrix_type) const {
    const int parts = rows / part_rows * (columns / part_columns);
    return matrix_type != 0 ? parts * kWarp : parts;
  }

  bool operator==(const TileShape&) const = default;
};

/// The layout of a factor of a tile in shared memory.
struct TileStorage {
  /// A line holds all rows (columns) at a step of the depth; else it holds all steps of a row (column).
  bool lines_of_depth = false;
  int64_t lines = 0;
  /// Elements from one line to the next: some more than a line has, so that its columns lie in different banks.
  int64_t pitch = 0;
  int element_bytes = 0;

  int64_t bytes() const { return lines * pitch * element_bytes; }
};

/// The storage of a factor with `length` rows, or columns, and `steps` of the depth. `by_depth`: see TileOperand.
TileStorage tile_storage(uint32_t matrix_type, uint32_t sum_type, bool by_depth, int length, int steps);

/// How blocks compute a kernel that sums products of two expressions: the loops that only one of them depends on are the rows and the
/// columns of a matrix product, and a block computes a tile of it. The depth, the points of the inner loops, is walked in rounds: threads
/// evaluate the expressions for some steps of it into shared memory, and multiply from there, while later rounds are loaded.
struct TileSchedule {
  TileOperand a;  ///< its loops are the rows
  TileOperand b;  ///< its loops are the columns
  uint64_t batch = 0;
  int64_t batch_count = 1;
  int64_t depth = 1;
  /// The type that matrix instructions multiply, or 0: BF16 and F16 with sums in F32, S8 and U8 with sums in S32, F32 rounded to
  /// tf32 where the program allows it.
  uint32_t matrix_type = 0;
  TileShape shape;  ///< of the tile that a block computes
  int round = 16;   ///< steps of the depth
  int rounds = 2;   ///< that are in shared memory at a time

  /// Bytes of shared memory for one round, and for all rounds that are there at a time.
  int64_t round_bytes(uint32_t sum_type) const {
    return tile_storage(matrix_type, sum_type, a.by_depth, shape.rows, round).bytes() +
           tile_storage(matrix_type, sum_type, b.by_depth, shape.columns, round).bytes();
  }
  int64_t shared_bytes(uint32_t sum_type) const { return rounds * round_bytes(sum_type); }
  int64_t row_tiles() const { return (a.count + shape.rows - 1) / shape.rows; }
  int64_t column_tiles() const { return (b.count + shape.columns - 1) / shape.columns; }
  int64_t tiles() const { return row_tiles() * column_tiles() * batch_count; }

  bool operator==(const TileSchedule&) const = default;
};

/// The type in which matrix instructions multiply what has type `type`, with sums of type `sum_type`; 0: none does.
uint32_t matrix_type_of(uint32_t type, uint32_t sum_type, bool rounds_to_tf32);

/// The product that a kernel sums: one reduction by addition, of a multiplication in the type of the sum, at all points of the inner loops.
/// Null if the kernel computes anything else.
const Expr* summed_product(const Kernel& kernel);

/// The argument of a conversion to the type of the sum, or the expression itself.
ExprId before_conversion(const Kernel& kernel, ExprId e, uint32_t sum_type);

/// Sets by_depth of an operand whose loops are known.
void find_direction(const Kernel& kernel, TileOperand& o);

/// Whether operand `o` is an array whose elements are stored as they are, and whose pieces of 16 bytes along its lines are aligned.
bool is_copied(const Kernel& kernel, const TileOperand& o, const TileStorage& storage, uint32_t stored_type);

/// Finds the matrix product that a kernel is, and chooses the tiles; false where it is none, or too small for tiles.
bool choose_tiles(const Kernel& kernel, const GridLimits& limits, TileSchedule& out);

}  // namespace collet::codegen
