// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sdk/codegen/llvm/grid/grid_emitter.h"
#include "sdk/codegen/llvm/grid/grid_function.h"
#include "sdk/codegen/llvm/product/block_product.h"

namespace collet::codegen {

/// Base class for kernels whose blocks multiply matrices: loads the factors into shared memory.
class ProductEmitter : public GridEmitter {
 protected:
  using GridEmitter::GridEmitter;

  /// A factor of a product, and its tile in shared memory.
  struct Operand {
    TileOperand of;
    TileStorage storage;
    int64_t length = 0;        ///< rows (columns) of a tile
    int64_t steps = 0;         ///< depth of a tile
    Type* stored = nullptr;    ///< the type of its elements in shared memory
    uint32_t stored_type = 0;  ///< element type in shared memory; 0 for the type that the operand is computed in
    std::vector<bool> needed;  ///< by expression: whether the operand's value depends on it
  };
  /// Describes an operand of a product of these types; see TileSchedule.
  Operand operand(const TileOperand& of, uint32_t matrix_type, uint32_t sum_type, int64_t length, int64_t steps);

  /// Begins to load the tile from row (column) `first` and depth `depth` on into shared memory at `base`. Asynchronous
  /// copies are started. Elements that cannot be copied are computed into the variables `computed[next]`,
  /// `computed[next + 1]`, ..., which are added if there are too few.
  void begin_tile(const Operand& o, Value* base, Value* first, Value* depth, std::vector<Value*>& computed,
                  size_t& next);
  /// Stores the elements that begin_tile computed in shared memory.
  void end_tile(const Operand& o, Value* base, const std::vector<Value*>& computed, size_t& next);
  /// Loads a tile into shared memory without overlap with other work, a few elements of each thread at a time. Other
  /// threads see it after the next barrier.
  void bring_tile(const Operand& o, Value* base, Value* first, Value* depth);
  /// Starts the asynchronous copies of a tile. Elements beyond the depth become 0.
  void begin_copies(const Operand& o, Value* base, Value* first, Value* depth);
  /// Ends a group of asynchronous copies.
  void commit_copies();
  /// Waits for this thread's copies except those of the last `later` groups.
  void wait_for_copies(int64_t later);

  Value* at_most(Value* x, int64_t last) { return ir_.binary(llvm::Intrinsic::smin, x, number(last)); }
  /// Returns the shared memory of the block: declared in the kernel, or given when it is started.
  Value* block_memory(int64_t bytes) {
    return schedule_.shared_bytes == 0 ? shared_array(b_.getInt8Ty(), bytes) : make_given_array(function_);
  }
  /// Returns the address that is `bytes` bytes after `base`.
  Value* behind(Value* base, Value* bytes) { return b_.CreateGEP(b_.getInt8Ty(), base, bytes); }

 private:
  int64_t elements_of_thread(const Operand& o) const { return o.length * o.steps / schedule_.block_threads; }
  std::pair<Value*, Value*> point_of_thread(const Operand& o, Value* i);
  Value* place(const Operand& o, Value* base, Value* line, Value* x);
  Value* place_of_thread(const Operand& o, Value* base, Value* i);
  Value* element_of(const Operand& o, Value* at, Value* step);
};

}  // namespace collet::codegen
