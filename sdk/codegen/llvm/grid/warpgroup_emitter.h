// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sdk/codegen/llvm/grid/grid_emitter.h"
#include "sdk/codegen/llvm/grid/warpgroup_code.h"

namespace collet::codegen {

/// Base class for kernels whose blocks multiply by warpgroups: one warp, the producer, starts copies to places in shared
/// memory; the others, the consumers, multiply from there. A barrier of each place tells the consumers that it is full, and
/// a second one the producer that it is empty again. The warps take the places in turn.
class WarpgroupEmitter : public GridEmitter {
 protected:
  WarpgroupEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : GridEmitter(kernel, module, target, function), code_(ir_.b) {}

  static constexpr int kWarps = 4;           ///< warps of a warpgroup
  static constexpr int64_t kWarpRows = 16;   ///< rows of a product that each of them holds
  static constexpr int64_t kStepBytes = 32;  ///< bytes along the depth that one matrix instruction multiplies
  static constexpr int64_t kChunk = WarpgroupSchedule::kChunk;

  /// Divides shared memory: `places` of `place_bytes` each, then `more` bytes, a chunk of results for each warp of the
  /// `consumers`, which are warpgroups, and two barriers for each place.
  void divide(int64_t places, int64_t place_bytes, int64_t more, int consumers);
  /// Prepares the barriers, and emits the two roles: one thread produces, the consumers' threads consume.
  void run(const std::function<void()>& produce, const std::function<void()>& consume);

  llvm::ConstantInt* word(int64_t x) { return b_.getInt32(static_cast<uint32_t>(x)); }
  Value* as_word(Value* x) { return b_.CreateTrunc(x, b_.getInt32Ty()); }

  /// A place that is used, and the parity of the phases of its barriers.
  struct Turn {
    Value* place = nullptr;
    Value* parity = nullptr;
  };
  /// Returns a variable that counts the places that a warp has used.
  Value* count_places();
  /// Returns the next place, and counts it.
  Turn next_place(Value* count);
  /// Returns the address of a place in shared memory, an i32.
  Value* address_of(Value* place) { return b_.CreateAdd(base_, b_.CreateMul(place, word(place_bytes_))); }
  Value* full(Value* place) { return b_.CreateAdd(full_, b_.CreateMul(place, word(kBarrierBytes))); }
  Value* empty(Value* place) { return b_.CreateAdd(empty_, b_.CreateMul(place, word(kBarrierBytes))); }
  /// Waits until the phase of a barrier with this parity has ended.
  void wait(Value* barrier, Value* parity);
  void wait_until_full(const Turn& turn) { wait(full(turn.place), turn.parity); }
  void wait_until_empty(const Turn& turn) { wait(empty(turn.place), b_.CreateXor(turn.parity, word(1))); }
  /// Tells the producer that this warp has read a place.
  void release(Value* place);

  /// Starts the copies of the boxes of a factor to shared memory at `to`: `length` rows (columns) from `first` on and
  /// `steps` of the depth from `depth` on. The barrier `full` counts their bytes.
  void copy(const BoxOperand& o, Value* map, Value* to, int64_t length, int64_t steps, Value* first, Value* depth,
            Value* full);
  /// Returns the descriptor of matrix instruction number `step` along the depth, for a factor of `length` rows (columns)
  /// and `steps` of the depth that `copy` has brought to `at`.
  Value* factor(const BoxOperand& o, Value* at, int64_t length, int64_t steps, int64_t step);
  /// Returns the parameter that describes array number `i`.
  Value* map(unsigned i) { return function_->getArg(k_.buffers + i); }
  /// Returns the number of this warp's warpgroup, the same value in all lanes, as an i32.
  Value* warpgroup();

  std::vector<Value*> make_sums(int64_t count);
  std::vector<Value*> load_sums(const std::vector<Value*>& sums);
  void store_sums(const std::vector<Value*>& sums, const std::vector<Value*>& values);

  /// Where a warp stores its results: 16 rows from `first_row` on, columns from `first_column` on.
  struct Results {
    const TileOperand& rows;     ///< whose loops are the rows
    const TileOperand& columns;  ///< whose loops are the columns
    int64_t tile_rows = 0;       ///< rows of a tile
    int64_t tile_columns = 0;
    int lanes = 1;               ///< neighbouring results that a thread computes together
    Value* tile_row = nullptr;   ///< first row of the tile
    Value* first_row = nullptr;  ///< first row of this warp
    Value* first_column = nullptr;
    /// Computes the values that are stored, from a sum. The row counts from the warp's first one.
    std::function<void(Value* sum, Value* row)> compute;
  };
  /// Stores the results of which this thread holds `sums`, as a matrix instruction leaves them. Chunks of their columns go
  /// through shared memory, so that neighbouring threads compute and store neighbouring results.
  void store_results(const std::vector<Value*>& sums, const Results& what);

  WarpgroupCode code_;
  Type* element_ = nullptr;  ///< type of sums
  Value* warp_number_ = nullptr;
  Value* lane_ = nullptr;
  Value* base_ = nullptr;  ///< address of shared memory, an i32
  Value* more_ = nullptr;  ///< shared memory behind the places

 private:
  static constexpr int64_t kBarrierBytes = 8;
  static constexpr int64_t kBlockLines = 8;  ///< lines of a block of swizzled lines
  /// Most turns of the loop over a chunk, and most expressions of a kernel, for which the loop is unrolled.
  static constexpr int64_t kMostTurns = 8;
  static constexpr size_t kMostExpressions = 48;

  void put(const std::vector<Value*>& sums, int64_t first);
  void store_chunk(const Results& what, Value* first_column, bool is_full);
  Value* place_in_chunk(Value* row, Value* column);

  int64_t places_ = 0;
  int64_t place_bytes_ = 0;
  int consumers_ = 0;
  Value* chunk_ = nullptr;  ///< this warp's chunk in shared memory
  Value* full_ = nullptr;   ///< addresses of the barriers
  Value* empty_ = nullptr;
};

}  // namespace collet::codegen
