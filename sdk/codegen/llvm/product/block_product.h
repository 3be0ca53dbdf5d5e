// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Emits the product of two matrices in shared memory, computed by all threads of a block.

#include <llvm/IR/Module.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "sdk/codegen/llvm/ir.h"
#include "sdk/codegen/schedule/grid_tiles.h"

namespace collet::codegen {

/// A matrix product whose factors are in shared memory. Each thread holds some of the sums in variables. A part of the
/// result belongs to a thread or, with matrix instructions, to a warp; see TileShape.
class BlockProduct {
 public:
  using Value = llvm::Value;

  /// A factor: the address of its first element in shared memory, and its layout from there.
  struct Factor {
    Value* base = nullptr;
    TileStorage storage;
  };

  /// A sum that this thread holds.
  struct Held {
    Value* row = nullptr;
    Value* column = nullptr;
    Value* sum = nullptr;  ///< a variable of type element()
  };

  /// `sum_type` is the type of the sums. `thread` is the number of the thread in its block, an i64. `slot` creates a
  /// local variable. `contracts` allows fusing a multiplication with an addition.
  BlockProduct(Ir& ir, const TileShape& shape, uint32_t matrix_type, uint32_t sum_type, bool contracts, Value* thread,
               const std::function<Value*(llvm::Type*)>& slot);

  llvm::Type* element() const { return element_; }
  const std::vector<Value*>& sums() const { return sums_; }
  void clear();
  /// Adds the product of `a` and `b` over `depth` steps to the sums. `depth` is a multiple of the depth of a matrix
  /// instruction or, without those, of kStepsTogether.
  void multiply(const Factor& a, const Factor& b, int64_t depth);

  /// Returns this thread's sums in part `part` of `parts`. Each part has some rows of each thread; Held::row counts the
  /// rows of the part.
  std::vector<Held> held(int64_t part = 0, int64_t parts = 1);
  /// Returns the row of the product that has number `row` in part `part` of `parts`.
  Value* row_of_product(int64_t part, int64_t parts, Value* row);

 private:
  static constexpr int64_t kStepsTogether = 4;
  // Without matrix instructions a thread has part_rows x part_columns sums, in groups of kGroup adjacent rows and
  // columns. The groups of a thread are spread over the tile, so that the threads of a warp read neighbouring elements.
  static constexpr int64_t kGroup = 4;
  // With matrix instructions a warp has part_rows x part_columns sums, in products of 16 x 8. mma.m16n8k* fixes which
  // thread has which element (PTX ISA, "Matrix Fragments"). Counted in 32-bit words along the depth, the mapping is the
  // same for all types; each instruction takes eight words.
  static constexpr int64_t kRows = 16, kColumns = 8, kWords = 8;

  Value* number(int64_t x) { return b_.getInt64(static_cast<uint64_t>(x)); }
  /// Returns the address of element `x` of line `line`.
  Value* place(const Factor& f, Value* line, Value* x);
  int64_t row_units() const { return by_matrix_ ? row_blocks() : shape_.part_rows; }

  int64_t row_groups() const { return shape_.part_rows / kGroup; }
  int64_t column_groups() const { return shape_.part_columns / kGroup; }
  Value* group_row(int64_t g);
  Value* group_column(int64_t g);
  Value* plain_sum(int64_t row, int64_t column) {
    return sums_[static_cast<size_t>(row * shape_.part_columns + column)];
  }
  void multiply_plain(const Factor& a, const Factor& b, int64_t depth);
  std::vector<Value*> line_of(const Factor& f, const std::vector<Value*>& at, Value* step);

  int64_t row_blocks() const { return shape_.part_rows / kRows; }
  int64_t column_blocks() const { return shape_.part_columns / kColumns; }
  Value* lane();
  Value* warp_row();
  Value* warp_column();
  Value* matrix_sum(int64_t row_block, int64_t column_block, int64_t i) {
    return sums_[static_cast<size_t>((row_block * column_blocks() + column_block) * 4 + i)];
  }
  void multiply_matrices(const Factor& a, const Factor& b, int64_t depth);
  std::vector<Value*> load_matrices(const Factor& f, Value* at, int64_t step, bool depth_first);
  Value* factor_of(Value* word);
  void matrix_product(const std::vector<Value*>& x, Value* y0, Value* y1, int64_t row_block, int64_t column_block);
  llvm::Intrinsic::ID matrix_instruction() const;

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const TileShape shape_;
  const uint32_t matrix_type_;
  const bool by_matrix_;
  const bool contracts_;
  Value* const thread_;
  llvm::Type* element_;  ///< type in which products are added
  llvm::Type* stored_;   ///< type of the factors in shared memory
  std::vector<Value*> sums_;
};

}  // namespace collet::codegen
