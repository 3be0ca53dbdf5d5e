// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sdk/codegen/llvm/product/product_emitter.h"

namespace collet::codegen {
namespace {

/// Steps of the depth whose products are added in one accumulator; a multiple of the depth of all kinds of rounds.
constexpr int64_t kBlockDepth = 128;
/// Most sums of a thread for which a second set of accumulators (see kBlockDepth) is used: with more, the registers
/// would not suffice for two blocks of the grid on a processor.
constexpr size_t kFewSums = 32;

/// Emits a matrix product in which each block computes a tile. A round covers some steps of the depth: the block
/// multiplies the slices of both operands that are in shared memory and adds the products to the sums that its threads
/// hold, while the slices of a later round are loaded. At the end the tile goes through shared memory, so that
/// neighbouring threads compute and store neighbouring results.
class TileEmitter final : public ProductEmitter {
 public:
  TileEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : ProductEmitter(kernel, module, target, function),
        tiles_(schedule_.tiles),
        type_(k_.reductions[0].types[0]),
        by_matrix_(tiles_.matrix_type != 0) {}

 private:
  void thread() override {
    const TileShape& shape = tiles_.shape;
    a_ = operand(tiles_.a, tiles_.matrix_type, type_, shape.rows, tiles_.round);
    b_side_ = operand(tiles_.b, tiles_.matrix_type, type_, shape.columns, tiles_.round);
    const bool contracts = k_.reductions[0].contract || type_ == COLLET_TYPE_F32;
    product_.emplace(ir_, shape, tiles_.matrix_type, type_, contracts, thread_, [this](Type* t) { return slot(t); });
    element_ = product_->element();
    round_bytes_ = tiles_.round_bytes(type_);
    const int64_t bytes = tiles_.shared_bytes(type_);
    shared_ = block_memory(bytes);
    const int64_t tile_bytes =
        int64_t{shape.rows} * shape.columns * static_cast<int64_t>(element_->getScalarSizeInBits() / 8);
    while (tile_bytes / parts_ > bytes) parts_ *= 2;

    // The rounding error of a sum grows with the number of terms of one accumulator, so floats are added in blocks of
    // the depth. For factors rounded to 11 bits or fewer this would not pay for its registers.
    const std::vector<Value*>& sums = product_->sums();
    const bool in_blocks =
        element_->isFloatingPointTy() && tiles_.depth >= 2 * kBlockDepth && (!by_matrix_ || sums.size() <= kFewSums);
    for (size_t i = 0; i < sums.size() && in_blocks; ++i) totals_.push_back(slot(element_));

    loop(block_, number(tiles_.tiles()), schedule_.blocks, [&](Value* tile) {
      Value* const column_tile = b_.CreateURem(tile, number(tiles_.column_tiles()));
      Value* const above = b_.CreateUDiv(tile, number(tiles_.column_tiles()));
      set_loops(0, k_.outer, tiles_.batch, b_.CreateUDiv(above, number(tiles_.row_tiles())));
      first_row_ = b_.CreateMul(b_.CreateURem(above, number(tiles_.row_tiles())), number(shape.rows));
      first_column_ = b_.CreateMul(column_tile, number(shape.columns));
      product_->clear();
      for (Value* total : totals_) b_.CreateStore(llvm::Constant::getNullValue(element_), total);
      all_rounds();
      if (!totals_.empty()) add_to_totals();
      for (int64_t part = 0; part < parts_; ++part) {
        barrier();
        put(part);
        barrier();
        results(part);
      }
      barrier();
    });
  }

  void add_to_totals() {
    for (size_t i = 0; i < totals_.size(); ++i) {
      Value* const sum = b_.CreateLoad(element_, product_->sums()[i]);
      b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(element_, totals_[i]), sum), totals_[i]);
    }
  }

  // Rounds of the depth.

  /// Emits all rounds of a tile, with loads of later rounds in progress. The memory of a round is overwritten only
  /// after the barrier that begins the next round, so no thread still reads it.
  void all_rounds() {
    const int64_t rounds = (tiles_.depth + tiles_.round - 1) / tiles_.round;
    const int64_t ahead = tiles_.rounds - 1;
    for (int64_t i = 0; i < ahead; ++i) {
      if (i < rounds) {
        begin_round(number(i));
        end_round(number(i));
      }
      commit();
    }
    loop(number(0), number(rounds), 1, [&](Value* round) {
      if (copies()) wait_for_copies(ahead - 1);
      barrier();
      Value* const later = b_.CreateAdd(round, number(ahead));
      Value* const exists = b_.CreateICmpSLT(later, number(rounds));
      branch(exists, [&] { begin_round(later); });
      commit();
      product_->multiply({base(round, 0), a_.storage}, {base(round, 1), b_side_.storage}, tiles_.round);
      if (!computed_.empty()) branch(exists, [&] { end_round(later); });
      if (totals_.empty()) return;
      const int64_t block = kBlockDepth / tiles_.round;
      Value* const at = b_.CreateURem(round, number(block));
      branch(b_.CreateICmpEQ(at, number(block - 1)), [&] {
        add_to_totals();
        product_->clear();
      });
    });
  }

  bool copies() const { return tiles_.a.is_copied || tiles_.b.is_copied; }

  void commit() {
    if (copies()) commit_copies();
  }

  /// Returns the address of the slice of operand 0 or 1 in a round.
  Value* base(Value* round, int operand) {
    Value* const memory = b_.CreateURem(round, number(tiles_.rounds));
    const int64_t offset = operand == 0 ? 0 : a_.storage.bytes();
    return behind(shared_, b_.CreateAdd(b_.CreateMul(memory, number(round_bytes_)), number(offset)));
  }

  /// Starts the asynchronous copies of a round, and computes the elements that cannot be copied.
  void begin_round(Value* round) {
    Value* const depth = b_.CreateMul(round, number(tiles_.round));
    size_t next = 0;
    begin_tile(a_, base(round, 0), first_row_, depth, computed_, next);
    begin_tile(b_side_, base(round, 1), first_column_, depth, computed_, next);
  }

  void end_round(Value* round) {
    size_t next = 0;
    end_tile(a_, base(round, 0), computed_, next);
    end_tile(b_side_, base(round, 1), computed_, next);
  }

  // Results. The tile goes through shared memory in parts_ parts.

  void put(int64_t part) {
    for (const BlockProduct::Held& h : product_->held(part, parts_)) {
      Value* const at = b_.CreateAdd(b_.CreateMul(h.row, number(tiles_.shape.columns)), h.column);
      b_.CreateStore(b_.CreateLoad(element_, final_sum(h.sum)), b_.CreateGEP(element_, shared_, at));
    }
  }

  /// Returns the variable that holds the sum over all of the depth.
  Value* final_sum(Value* sum) {
    if (totals_.empty()) return sum;
    const std::vector<Value*>& sums = product_->sums();
    return totals_[static_cast<size_t>(std::find(sums.begin(), sums.end(), sum) - sums.begin())];
  }

  /// Computes the epilogue for the elements of a part of the tile, and stores the results.
  void results(int64_t part) {
    const int64_t columns = tiles_.shape.columns;
    loop(thread_, number(tiles_.shape.rows / parts_ * columns), schedule_.block_threads, [&](Value* i) {
      Value* const row_of_part = b_.CreateUDiv(i, number(columns));
      Value* const row = b_.CreateAdd(first_row_, product_->row_of_product(part, parts_, row_of_part));
      Value* const column = b_.CreateAdd(first_column_, b_.CreateURem(i, number(columns)));
      Value* inside = b_.CreateICmpULT(row, number(tiles_.a.count));
      inside = b_.CreateAnd(inside, b_.CreateICmpULT(column, number(tiles_.b.count)));
      branch(inside, [&] {
        set_loops(0, k_.outer, tiles_.a.loops, row);
        set_loops(0, k_.outer, tiles_.b.loops, column);
        values_of_stage(0);
        finish_reduction(0, {{b_.CreateLoad(element_, b_.CreateGEP(element_, shared_, i))}}, true);
        values_of_stage(1);
        for (const Store& s : k_.stores) store(s);
      });
    });
  }

  const TileSchedule& tiles_;
  const uint32_t type_;
  const bool by_matrix_;
  std::optional<BlockProduct> product_;
  Type* element_ = nullptr;  ///< type in which products are added
  Operand a_, b_side_;
  int64_t round_bytes_ = 0;
  int64_t parts_ = 1;             ///< number of parts in which the tile goes through shared memory
  Value* shared_ = nullptr;       ///< shared memory: slices of the operands, later a part of the tile
  std::vector<Value*> computed_;  ///< this thread's computed elements of a round, until shared memory is free for them
  /// Sums over the blocks of the depth so far; empty if the depth is not cut into blocks.
  std::vector<Value*> totals_;
  Value* first_row_ = nullptr;
  Value* first_column_ = nullptr;
};

}  // namespace

void emit_grid_tiles(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function) {
  TileEmitter(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
