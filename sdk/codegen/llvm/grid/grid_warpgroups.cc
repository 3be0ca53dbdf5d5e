// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>
#include <vector>

#include "sdk/codegen/llvm/grid/warpgroup_emitter.h"

namespace collet::codegen {
namespace {

/// Emits a matrix product by warpgroups, see WarpgroupSchedule. The producer goes on to the next tile while the consumers
/// compute and store the results of this one.
class ProductByWarpgroups final : public WarpgroupEmitter {
 public:
  ProductByWarpgroups(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : WarpgroupEmitter(kernel, module, target, function),
        tiles_(schedule_.tiles),
        warpgroups_(schedule_.warpgroups) {}

 private:
  void thread() override {
    element_ = ir_.scalar(k_.reductions[0].types[0]);
    divide(warpgroups_.rounds, warpgroups_.round_bytes(), 0, warpgroups_.consumers());
    run([&] { produce(); }, [&] { consume(); });
  }

  /// Emits a loop over the tiles of this block, with the numbers of the first row and column of each. The tiles of
  /// `row_group` rows of tiles are computed column by column, so that blocks share what they read.
  void each_tile(const std::function<void(Value* first_row, Value* first_column)>& body) {
    loop(block_, number(tiles_.tiles()), schedule_.blocks, [&](Value* tile) {
      const int64_t rows = tiles_.row_tiles();
      const int64_t columns = tiles_.column_tiles();
      Value* const in_product = b_.CreateURem(tile, number(rows * columns));
      set_loops(0, k_.outer, tiles_.batch, b_.CreateUDiv(tile, number(rows * columns)));
      Value* const group = b_.CreateUDiv(in_product, number(warpgroups_.row_group * columns));
      Value* const in_group = b_.CreateURem(in_product, number(warpgroups_.row_group * columns));
      Value* const first = b_.CreateMul(group, number(warpgroups_.row_group));
      Value* const height =
          ir_.binary(llvm::Intrinsic::smin, number(warpgroups_.row_group), b_.CreateSub(number(rows), first));
      Value* const row = b_.CreateAdd(first, b_.CreateURem(in_group, height));
      Value* const column = b_.CreateUDiv(in_group, height);
      body(b_.CreateMul(row, number(warpgroups_.rows)), b_.CreateMul(column, number(warpgroups_.columns)));
    });
  }

  int64_t rounds_of_tile() const { return (tiles_.depth + warpgroups_.round - 1) / warpgroups_.round; }

  void produce() {
    for (unsigned i = 0; i < 2; ++i) code_.prefetch_map(map(i));
    Value* const count = count_places();
    each_tile([&](Value* first_row, Value* first_column) {
      loop(number(0), number(rounds_of_tile()), 1, [&](Value* round) {
        const Turn turn = next_place(count);
        wait_until_empty(turn);
        Value* const barrier = full(turn.place);
        code_.arrive_with_bytes(barrier, warpgroups_.round_bytes());
        Value* const to = address_of(turn.place);
        Value* const depth = b_.CreateMul(round, number(warpgroups_.round));
        copy(warpgroups_.a, map(0), to, warpgroups_.rows, warpgroups_.round, first_row, depth, barrier);
        copy(warpgroups_.b, map(1), b_.CreateAdd(to, word(warpgroups_.a_bytes())), warpgroups_.columns,
             warpgroups_.round, first_column, depth, barrier);
      });
    });
  }

  void consume() {
    const std::vector<Value*> sums = make_sums(warpgroups_.columns / 2);
    Value* const own = b_.CreateMul(warpgroup(), word(WarpgroupSchedule::kGroupRows * WarpgroupSchedule::kLineBytes));
    Value* const count = count_places();
    Value* const before = slot(b_.getInt32Ty());  // the place of the round before
    each_tile([&](Value* first_row, Value* first_column) {
      store_sums(sums, std::vector<Value*>(sums.size(), llvm::Constant::getNullValue(element_)));
      loop(number(0), number(rounds_of_tile()), 1, [&](Value* round) {
        const Turn turn = next_place(count);
        wait_until_full(turn);
        Value* const at = address_of(turn.place);
        Value* const b_at = b_.CreateAdd(at, word(warpgroups_.a_bytes()));
        std::vector<Value*> a, b;
        for (int64_t step = 0; step < WarpgroupSchedule::kLineBytes / kStepBytes; ++step) {
          a.push_back(factor(warpgroups_.a, b_.CreateAdd(at, own), warpgroups_.rows, warpgroups_.round, step));
          b.push_back(factor(warpgroups_.b, b_at, warpgroups_.columns, warpgroups_.round, step));
        }
        store_sums(sums, code_.start_products(product(), a, b, load_sums(sums), 1));
        // The products of the round before have ended.
        branch(b_.CreateICmpNE(round, number(0)), [&] { release(b_.CreateLoad(b_.getInt32Ty(), before)); });
        b_.CreateStore(turn.place, before);
      });
      store_sums(sums, code_.finish_products(load_sums(sums)));
      release(b_.CreateLoad(b_.getInt32Ty(), before));
      Value* const warp_row = b_.CreateMul(warp_number_, number(kWarpRows));
      Results what{tiles_.a,
                   tiles_.b,
                   warpgroups_.rows,
                   warpgroups_.columns,
                   warpgroups_.lanes,
                   first_row,
                   b_.CreateAdd(first_row, warp_row),
                   first_column,
                   {}};
      what.compute = [&](Value* sum, Value*) {
        values_of_stage(0);
        finish_reduction(0, {{sum}}, true);
        values_of_stage(1);
      };
      store_results(load_sums(sums), what);
    });
  }

  WarpgroupCode::Product product() const {
    return WarpgroupCode::product_of(warpgroups_.matrix_type, warpgroups_.columns, warpgroups_.a.by_depth,
                                     warpgroups_.b.by_depth);
  }

  const TileSchedule& tiles_;
  const WarpgroupSchedule& warpgroups_;
};

}  // namespace

void emit_grid_warpgroups(const GridKernel& kernel, llvm::Module& module, const Target& target,
                          llvm::Function* function) {
  ProductByWarpgroups(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
