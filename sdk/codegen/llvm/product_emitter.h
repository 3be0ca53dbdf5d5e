// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sdk/codegen/llvm/block_product.h"
#include "sdk/codegen/llvm/grid_emitter.h"
#include "sdk/codegen/llvm/grid_function.h"

namespace collet::codegen {

/// The emitter of a kernel whose blocks multiply matrices: it brings factors to shared memory.
class ProductEmitter : public GridEmitter {
 protected:
  using GridEmitter::GridEmitter;

  /// A factor of a product, and its tile in shared memory.
  struct Operand {
    TileOperand of;
    TileStorage storage;
    int64_t length = 0;        ///< rows, or columns, of a tile
    int64_t steps = 0;         ///< of the depth, in a tile
    Type* stored = nullptr;    ///< the type of its elements in shared memory
    uint32_t stored_type = 0;  ///< the same as an element type; 0: as it is computed
    std::vector<bool> needed;  ///< expressions that its value follows from
  };
  /// The operand of a product with these types; see TileSchedule.
  Operand operand(const TileOperand& of, uint32_t matrix_type, uint32_t sum_type, int64_t length, int64_t steps);

  /// Starts to bring the tile from row (column) `first` and step `depth` on to shared memory at `base`. Copies are started; other
  /// elements are computed and left in variables, which are added to `computed` where it has too few from `next` on.
  void begin_tile(const Operand& o, Value* base, Value* first, Value* depth, std::vector<Value*>& computed,
                  size_t& next);
  /// Stores what begin_tile computed.
  void end_tile(const Operand& o, Value* base, const std::vector<Value*>& computed, size_t& next);
  /// Brings a tile to shared memory at once, a few elements of each thread at a time. Other threads see it after the next barrier.
  void bring_tile(const Operand& o, Value* base, Value* first, Value* depth);
  /// Starts the copies of a tile whose operand is copied. Beyond the depth its elements are 0.
  void begin_copies(const Operand& o, Value* base, Value* first, Value* depth);
  /// Ends a group of copies.
  void commit_copies();
  /// Waits for this thread's copies, but for those of the last `later` groups.
  void wait_for_copies(int64_t later);

  Value* at_most(Value* x, int64_t last) { return ir_.binary(llvm::Intrinsic::smin, x, number(last)); }
  /// The shared memory that the block uses: declared, or given when it is started.
  Value* block_memory(int64_t bytes) {
    return schedule_.shared_bytes == 0 ? shared_array(b_.getInt8Ty(), bytes) : make_given_array(function_);
  }
  /// The address of `base` plus so many bytes.
  Value* behind(Value* base, Value* bytes) { return b_.CreateGEP(b_.getInt8Ty(), base, bytes); }

 private:
  int64_t elements_of_thread(const Operand& o) const { return o.length * o.steps / schedule_.block_threads; }
  std::pair<Value*, Value*> point_of_thread(const Operand& o, Value* i);
  Value* place(const Operand& o, Value* base, Value* line, Value* x);
  Value* place_of_thread(const Operand& o, Value* base, Value* i);
  Value* element_of(const Operand& o, Value* at, Value* step);
};

}  // namespace collet::codegen
