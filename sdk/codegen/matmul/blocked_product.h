// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace collet::codegen {

/// Returns x / y, rounded up.
inline int64_t divide_up(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

/// A batch of matrix products that is cut into blocks, tiles and jobs. It is the source of a KernelFunction, whose range are the jobs.
/// The function's buffers are: a and b, or the buffers that their packing kernels read; the result; scratch memory; the initial values
/// of rows, if there are any; for `checks_parts`, whether b is finite, one byte; then the target and the buffers of the epilogue, if
/// there is one.
///
/// Consecutive batches that share b are treated as one matrix with many rows, so that each block of b is read once for
/// all of them. Distances and offsets are in elements.
struct BlockedProduct {
  // Names of the functions that it calls; empty if there is none.
  /// The micro-kernels, indexed by [is the last tile of rows][is the last panel of columns].
  std::string micro[2][2];
  /// The epilogue as a separate function, indexed by [is the last panel of columns].
  std::string after[2];
  std::string pack_a;
  std::string pack_b;
  /// Adds the sums of a group of depth blocks to the totals, indexed by [is the last panel of columns].
  std::string fold[2];
  std::string copy_b;     ///< copies steps [begin, end) of a panel of b; buffers: source, destination
  bool epilogue = false;  ///< true if the micro-kernels or `after` apply an epilogue
  int64_t element_bytes = 4;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t ldc = 0;
  int64_t c_offset = 0;
  int64_t tile_rows = 1;
  int64_t tiles = 0;  ///< number of row tiles of one matrix
  int64_t lanes = 1;
  int64_t panel = 1;  ///< number of columns of a panel
  int64_t panels = 0;
  int64_t last_rows = 0;  ///< rows of the last tile if it is smaller; 0 if it is not
  int64_t last_columns = 0;
  int64_t tail = 0;  ///< number of valid lanes in the last vector of a row
  int64_t depth_block = 0;
  /// Depth blocks in a group; 0 if there are no groups. The sums of a group are added to totals in scratch memory together with the
  /// rounding errors of these additions, so that errors do not grow with the number of groups.
  int64_t group_blocks = 0;
  int64_t run = 0;        ///< steps of the depth (K) in a segment; within one, the elements of a are equally far apart
  int64_t run_block = 0;  ///< segments in a depth block
  std::vector<int64_t> segments;
  int64_t chunks = 1;        ///< number of parts into which the row tiles of batches that share b are cut for threads
  int64_t column_parts = 1;  ///< number of parts into which the column panels are cut for threads
  int64_t batches = 1;
  int64_t shared = 1;  ///< number of consecutive batches that use the same b
  bool a_packed = false;
  bool b_packed = false;
  bool b_in_panels = false;
  int64_t b_matrix = 0;  ///< elements of a packed matrix b
  /// 1 if each packed panel of b is followed by a row of sums, the initial values of its columns of the result
  int64_t b_starts = 0;
  bool row_starts = false;  ///< true if the sums of each row start with a value of the rows of a
  bool packs_b = false;     ///< true if the call packs each matrix b itself; false if an earlier step has packed it
  /// True if b is read in place, but each panel of a depth block is copied to scratch memory before tiles use it.
  bool copies_b = false;
  uint32_t a_buffers = 1;
  uint32_t b_buffers = 1;
  int64_t a_offset = 0;
  int64_t a_row = 0;
  int64_t a_depth = 0;
  int64_t a_tile = 0;
  int64_t a_pack_rows = 1;
  int64_t a_blocks = 1;  ///< number of depth blocks in which a is packed one at a time; 1 packs all of it at once
  int64_t b_offset = 0;
  int64_t b_depth = 0;
  int threads = 1;  ///< number of threads for which the work is cut
  double cost_ns = 0;
  std::vector<int64_t> a_at, b_at, c_at;  ///< offset of each batch: in elements, or in matrices for a packed operand
  std::vector<int64_t> start_at;          ///< for row_starts: offset of each batch in the initial values of rows
  std::vector<int64_t> positions;         ///< for each batch its index in each of the batch loops
  /// For each tile of rows of each batch, the part of the depth outside of which its rows of a are zero: the first step
  /// and the end, in segments if the depth has segments. Empty if nothing is known to be zero.
  std::vector<int64_t> first_step, end_step;
  /// True if `first_step` and `end_step` hold only for data that is checked when the product runs: the other elements
  /// of a must be zero, and b must be finite, which an earlier step has found out. Each batch is one job, and a is not packed.
  bool checks_parts = false;
  /// For each tile of rows of each batch, the columns that are used, [first, end). Empty if all are.
  std::vector<int64_t> first_column, end_column;
  uint64_t batch_rank = 0;

  auto operator<=>(const BlockedProduct&) const = default;
  /// Returns the names of all functions that it calls.
  std::vector<std::string> functions() const;
  /// Returns the number of parts that threads may compute at the same time.
  int64_t jobs() const;
  /// Returns the number of blocks into which the depth is cut.
  int64_t depth_blocks() const;
  /// Returns the number of columns of the totals of a job: whole panels.
  int64_t total_columns() const;
  /// Return the bytes of scratch memory that one thread needs for packed a, for packed b, and for the totals of groups.
  int64_t a_scratch() const;
  int64_t b_scratch() const;
  int64_t total_scratch() const;
  /// Returns the bytes of scratch memory that one thread needs.
  int64_t own_scratch() const { return a_scratch() + b_scratch() + total_scratch(); }
  uint64_t scratch_bytes() const { return static_cast<uint64_t>(threads * own_scratch()); }
};

/// Prints the blocking of a product in one line.
std::string print_blocking(const BlockedProduct& product);

}  // namespace collet::codegen
