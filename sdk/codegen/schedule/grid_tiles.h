// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules for the blocks of a grid that compute a matrix product, a convolution or any other sum of products of two
/// expressions.

#include <collet/codegen/kernel.h>
#include <collet/codegen/target.h>

#include <cstdint>

namespace collet::codegen {

/// A factor of the products: a kernel expression, evaluated for a tile into shared memory.
struct TileOperand {
  /// The value that is stored in shared memory: before a conversion that matrix instructions do implicitly.
  ExprId value = kNoExpr;
  /// Loops that only this factor depends on, as a bit set: the rows, or the columns, of the product.
  uint64_t loops = 0;
  int64_t count = 1;         ///< product of the sizes of `loops`
  uint64_t depth_loops = 0;  ///< loops that are summed over, as a bit set
  int64_t depth = 1;         ///< product of the sizes of `depth_loops`
  /// True if adjacent elements in memory are neighbours along the depth, false if along `loops`.
  bool by_depth = false;
  /// True if the factor is an array in memory that can be copied to shared memory in aligned pieces of 16 bytes.
  bool is_copied = false;

  bool operator==(const TileOperand&) const = default;
};

/// The size of a tile, and of the part of it that a thread or, with matrix instructions, a warp computes.
struct TileShape {
  static constexpr int kWarp = 32;  ///< threads of a warp, for which matrix instructions are defined

  int rows = 64;
  int columns = 64;
  int part_rows = 4;
  int part_columns = 4;

  /// Returns the number of threads that compute a tile. `matrix_type`: see TileSchedule.
  int threads(uint32_t matrix_type) const {
    const int parts = rows / part_rows * (columns / part_columns);
    return matrix_type != 0 ? parts * kWarp : parts;
  }

  bool operator==(const TileShape&) const = default;
};

/// The layout of a factor of a tile in shared memory.
struct TileStorage {
  /// True: a line holds all rows (columns) at one step of the depth. False: a line holds all steps of one row (column).
  bool lines_of_depth = false;
  int64_t lines = 0;
  /// Distance in elements from one line to the next. It is more than the length of a line, so that the elements of a
  /// column are in different memory banks.
  int64_t pitch = 0;
  int element_bytes = 0;

  int64_t bytes() const { return lines * pitch * element_bytes; }
};

/// Returns the storage of a factor with `length` rows (columns) and `steps` of the depth. `by_depth`: see TileOperand.
TileStorage tile_storage(uint32_t matrix_type, uint32_t sum_type, bool by_depth, int length, int steps);

/// Describes how blocks compute a kernel that sums products of two expressions. The loops that only one of the two
/// depends on are the rows and the columns of a matrix product, and a block computes a tile of it. The depth, which is
/// the points of the inner loops, is processed in rounds: threads evaluate the expressions for some steps of the depth
/// into shared memory and multiply from there, while later rounds are loaded.
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
  int round = 16;   ///< steps of the depth in a round
  int rounds = 2;   ///< rounds that are in shared memory at the same time

  /// Return the bytes of shared memory for one round, and for all rounds that are in shared memory at the same time.
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

/// Returns the type in which matrix instructions multiply elements of type `type` with sums of type `sum_type`; 0 if
/// there is none.
uint32_t matrix_type_of(uint32_t type, uint32_t sum_type, bool rounds_to_tf32);

/// Sets `by_depth` of an operand whose loops are set.
void find_direction(const Kernel& kernel, TileOperand& o);

/// True if operand `o` is an array whose elements are stored in their own type and whose 16-byte pieces along the lines
/// are aligned.
bool is_copied(const Kernel& kernel, const TileOperand& o, const TileStorage& storage, uint32_t stored_type);

/// Recognises a kernel that is a matrix product, and chooses its tiles. Returns false if it is none, or too small for
/// tiles.
bool choose_tiles(const Kernel& kernel, const GridLimits& limits, TileSchedule& out);

}  // namespace collet::codegen
