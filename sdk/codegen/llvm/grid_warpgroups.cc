// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/llvm/grid_emitter.h"
#include "sdk/codegen/llvm/grid_function.h"
#include "sdk/codegen/llvm/warpgroup_code.h"

namespace collet::codegen {
namespace {

/// Emits a matrix product by warpgroups, see WarpgroupSchedule. Rounds go through shared memory in turn: a barrier of
/// each place there tells the consumers that a round is there, and a second one the producer that they have read it.
/// The producer goes on to the next tile while the consumers compute and store the results of this one.
class WarpgroupEmitter final : public GridEmitter {
 public:
  WarpgroupEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : GridEmitter(kernel, module, target, function),
        tiles_(schedule_.tiles),
        warpgroups_(schedule_.warpgroups),
        type_(k_.reductions[0].types[0]),
        code_(ir_.b) {}

 private:
  static constexpr int kWarps = 4;  ///< warps of a warpgroup
  static constexpr int64_t kWarpRows = 16;  ///< rows of a product that each of them holds
  static constexpr int64_t kChunk = WarpgroupSchedule::kChunk;
  /// Most turns of the loop over a chunk, and most expressions of a kernel, for which the loop is unrolled.
  static constexpr int64_t kMostTurns = 8;
  static constexpr size_t kMostExpressions = 48;
  static constexpr int64_t kBarrierBytes = 8;
  /// Bytes along the depth that one matrix instruction multiplies.
  static constexpr int64_t kStepBytes = 32;
  /// Lines of a block of swizzled lines.
  static constexpr int64_t kBlockLines = 8;

  void thread() override {
    element_ = ir_.scalar(type_);
    llvm::GlobalVariable* const memory = make_given_array(function_);
    memory->setAlignment(llvm::Align(WarpgroupSchedule::kBoxAlignment));
    shared_ = memory;
    warp_number_ = b_.CreateUDiv(thread_, number(warp_));
    lane_ = b_.CreateURem(thread_, number(warp_));
    const int64_t rounds = warpgroups_.rounds;
    chunks_ = rounds * warpgroups_.round_bytes();
    const int64_t barriers = chunks_ + kWarps * warpgroups_.consumers() * WarpgroupSchedule::chunk_bytes();
    base_ = code_.address(shared_);
    full_ = b_.CreateAdd(base_, word(barriers));
    empty_ = b_.CreateAdd(full_, word(rounds * kBarrierBytes));
    branch(b_.CreateICmpEQ(thread_, number(0)), [&] {
      for (int64_t i = 0; i < rounds; ++i) {
        code_.init_barrier(b_.CreateAdd(full_, word(i * kBarrierBytes)), 1);
        code_.init_barrier(b_.CreateAdd(empty_, word(i * kBarrierBytes)),
                           static_cast<uint32_t>(kWarps * warpgroups_.consumers()));
      }
      code_.publish_barriers();
    });
    barrier();
    Value* const consumes = b_.CreateICmpULT(warp_number_, number(kWarps * warpgroups_.consumers()));
    Value* const produces = b_.CreateAnd(b_.CreateNot(consumes), b_.CreateICmpEQ(lane_, number(0)));
    branch(produces, [&] { produce(); });
    branch(consumes, [&] { consume(); });
  }

  llvm::ConstantInt* word(int64_t x) { return b_.getInt32(static_cast<uint32_t>(x)); }

  int64_t rounds_of_tile() const { return (tiles_.depth + warpgroups_.round - 1) / warpgroups_.round; }

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

  /// Emits the loop of one tile's rounds. `count`, a variable, counts rounds from tile to tile, and with it go the places
  /// in shared memory and the phases of their barriers.
  void each_round(Value* count, const std::function<void(Value* round, Value* place, Value* parity)>& body) {
    loop(number(0), number(rounds_of_tile()), 1, [&](Value* round) {
      Value* const n = b_.CreateLoad(b_.getInt32Ty(), count);
      Value* const place = b_.CreateURem(n, word(warpgroups_.rounds));
      Value* const parity = b_.CreateAnd(b_.CreateUDiv(n, word(warpgroups_.rounds)), word(1));
      body(round, place, parity);
      b_.CreateStore(b_.CreateAdd(n, word(1)), count);
    });
  }

  Value* count_from_zero() {
    Value* const count = slot(b_.getInt32Ty());
    b_.CreateStore(word(0), count);
    return count;
  }

  Value* barrier_at(Value* barriers, Value* place) {
    return b_.CreateAdd(barriers, b_.CreateMul(place, word(kBarrierBytes)));
  }

  /// Waits until the phase of a barrier with this parity has ended.
  void wait(Value* barrier, Value* parity) {
    llvm::BasicBlock* const test = llvm::BasicBlock::Create(ir_.context(), "wait", function_);
    llvm::BasicBlock* const after = llvm::BasicBlock::Create(ir_.context(), "ended", function_);
    b_.CreateBr(test);
    b_.SetInsertPoint(test);
    b_.CreateCondBr(code_.has_ended(barrier, parity), after, test);
    b_.SetInsertPoint(after);
  }

  // The producer, one thread.

  void produce() {
    Value* const maps[] = {map_of(0), map_of(1)};
    for (Value* map : maps) code_.prefetch_map(map);
    Value* const count = count_from_zero();
    each_tile([&](Value* first_row, Value* first_column) {
      each_round(count, [&](Value* round, Value* place, Value* parity) {
        wait(barrier_at(empty_, place), b_.CreateXor(parity, word(1)));
        Value* const full = barrier_at(full_, place);
        code_.arrive_with_bytes(full, warpgroups_.round_bytes());
        Value* const to = b_.CreateAdd(base_, b_.CreateMul(place, word(warpgroups_.round_bytes())));
        Value* const depth = b_.CreateMul(round, number(warpgroups_.round));
        copy(warpgroups_.a, maps[0], to, warpgroups_.rows, first_row, depth, full);
        copy(warpgroups_.b, maps[1], b_.CreateAdd(to, word(warpgroups_.a_bytes())), warpgroups_.columns, first_column,
             depth, full);
      });
    });
  }

  Value* map_of(unsigned operand) { return function_->getArg(k_.buffers + operand); }

  /// Starts the copies of the boxes of a factor for one round: `length` rows (columns) from `first` on.
  void copy(const BoxOperand& o, Value* map, Value* to, int64_t length, Value* first, Value* depth, Value* full) {
    const auto as_word = [&](Value* x) { return b_.CreateTrunc(x, b_.getInt32Ty()); };
    std::vector<Value*> batch;
    for (size_t l : o.batch_loops) batch.push_back(as_word(iv_[l]));
    const int64_t box = o.map.box[o.by_depth ? 1 : 0];
    for (int64_t i = 0; i < length; i += box) {
      Value* const own = as_word(b_.CreateAdd(first, number(i)));
      std::vector<Value*> coordinates{o.by_depth ? as_word(depth) : own, o.by_depth ? own : as_word(depth)};
      coordinates.insert(coordinates.end(), batch.begin(), batch.end());
      code_.copy_box(b_.CreateAdd(to, word(i * WarpgroupSchedule::kLineBytes)), map, coordinates, full);
    }
  }

  // The consumers.

  void consume() {
    std::vector<Value*> sums;
    for (int i = 0; i < warpgroups_.columns / 2; ++i) sums.push_back(slot(element_));
    const auto load_sums = [&] {
      std::vector<Value*> out;
      for (Value* s : sums) out.push_back(b_.CreateLoad(element_, s));
      return out;
    };
    const auto store_sums = [&](const std::vector<Value*>& values) {
      for (size_t i = 0; i < sums.size(); ++i) b_.CreateStore(values[i], sums[i]);
    };
    Value* const group = b_.CreateUDiv(warp_number_, number(kWarps));
    // All lanes of a warp agree on its warpgroup; the compiler is told so by taking the number from the first.
    Value* const own = b_.CreateMul(b_.CreateTrunc(of_thread(group, Exchange::kNumber, number(0)), b_.getInt32Ty()),
                                    word(WarpgroupSchedule::kGroupRows * WarpgroupSchedule::kLineBytes));
    Value* const count = count_from_zero();
    each_tile([&](Value* first_row, Value* first_column) {
      store_sums(std::vector<Value*>(sums.size(), llvm::Constant::getNullValue(element_)));
      each_round(count, [&](Value* round, Value* place, Value* parity) {
        wait(barrier_at(full_, place), parity);
        Value* const at = b_.CreateAdd(base_, b_.CreateMul(place, word(warpgroups_.round_bytes())));
        Value* const b_at = b_.CreateAdd(at, word(warpgroups_.a_bytes()));
        std::vector<Value*> a, b;
        for (int64_t step = 0; step < WarpgroupSchedule::kLineBytes / kStepBytes; ++step) {
          a.push_back(factor(warpgroups_.a, b_.CreateAdd(at, own), step));
          b.push_back(factor(warpgroups_.b, b_at, step));
        }
        store_sums(code_.start_products(product(), a, b, load_sums()));
        // The products of the round before have ended.
        Value* const n = b_.CreateLoad(b_.getInt32Ty(), count);
        branch(b_.CreateICmpNE(round, number(0)), [&] { release(b_.CreateSub(n, word(1))); });
      });
      store_sums(code_.finish_products(load_sums()));
      release(b_.CreateSub(b_.CreateLoad(b_.getInt32Ty(), count), word(1)));
      results(load_sums(), first_row, first_column);
    });
  }

  /// Tells the producer that this warp has read round number `n`.
  void release(Value* n) {
    branch(b_.CreateICmpEQ(lane_, number(0)),
           [&] { code_.arrive(barrier_at(empty_, b_.CreateURem(n, word(warpgroups_.rounds)))); });
  }

  /// Returns the descriptor of step `step` of a factor whose boxes begin at `at`. By depth, lines are rows, and blocks of
  /// eight rows follow each other. By rows, lines are steps of the depth for 64 rows, and boxes of all steps follow each
  /// other.
  Value* factor(const BoxOperand& o, Value* at, int64_t step) {
    constexpr int64_t kBlock = kBlockLines * WarpgroupSchedule::kLineBytes;
    if (o.by_depth) return code_.descriptor(b_.CreateAdd(at, word(step * kStepBytes)), kStepBytes / 2, kBlock);
    const int64_t lines = kStepBytes / static_cast<int64_t>(collet_type_bytes(warpgroups_.matrix_type));
    return code_.descriptor(b_.CreateAdd(at, word(step * lines * WarpgroupSchedule::kLineBytes)),
                            warpgroups_.round * WarpgroupSchedule::kLineBytes, kBlock);
  }

  WarpgroupCode::Product product() const {
    WarpgroupCode::Product out;
    out.columns = warpgroups_.columns;
    out.depth = static_cast<int>(kStepBytes / static_cast<int64_t>(collet_type_bytes(warpgroups_.matrix_type)));
    out.a_by_depth = warpgroups_.a.by_depth;
    out.b_by_depth = warpgroups_.b.by_depth;
    out.can_transpose = collet_type_bytes(warpgroups_.matrix_type) == 2;
    switch (warpgroups_.matrix_type) {
      case COLLET_TYPE_BF16:
        out.types = "f32.bf16.bf16";
        break;
      case COLLET_TYPE_F16:
        out.types = "f32.f16.f16";
        break;
      case COLLET_TYPE_S8:
        out.types = "s32.s8.s8";
        break;
      case COLLET_TYPE_U8:
        out.types = "s32.u8.u8";
        break;
      default:
        out.types = "f32.tf32.tf32";
        break;
    }
    return out;
  }

  // Results. Each warp holds 16 rows of the tile. Some columns of them at a time go through shared memory, so that
  // neighbouring threads compute and store neighbouring results.

  void results(const std::vector<Value*>& sums, Value* first_row, Value* first_column) {
    Value* const own_row = b_.CreateAdd(first_row, b_.CreateMul(warp_number_, number(kWarpRows)));
    Value* const chunk = b_.CreateGEP(
        b_.getInt8Ty(), shared_,
        b_.CreateAdd(b_.CreateMul(warp_number_, number(WarpgroupSchedule::chunk_bytes())), number(chunks_)));
    const auto all_chunks = [&](bool is_full) {
      for (int64_t first = 0; first < warpgroups_.columns; first += kChunk) {
        emit_warp_barrier(b_);
        put(sums, chunk, first);
        emit_warp_barrier(b_);
        results_of_chunk(chunk, own_row, b_.CreateAdd(first_column, number(first)), is_full);
      }
    };
    Value* is_full = nullptr;
    const auto test = [&](Value* first, int64_t length, int64_t count) {
      if (count % length == 0) return;
      Value* const fits = b_.CreateICmpULE(b_.CreateAdd(first, number(length)), number(count));
      is_full = is_full ? b_.CreateAnd(is_full, fits) : fits;
    };
    test(first_row, warpgroups_.rows, tiles_.a.count);
    test(first_column, warpgroups_.columns, tiles_.b.count);
    if (!is_full) return all_chunks(true);
    branch(is_full, [&] { all_chunks(true); });
    branch(b_.CreateNot(is_full), [&] { all_chunks(false); });
  }

  /// Computes and stores the results of a chunk, whose first column is `first_column`. `is_full`: all of the tile is
  /// inside of the result.
  void results_of_chunk(Value* chunk, Value* own_row, Value* first_column, bool is_full) {
    const int64_t lanes = warpgroups_.lanes;
    const int64_t in_row = kChunk / lanes;  // threads that compute a row
    const int64_t turns = kWarpRows * in_row / warp_;
    Type* const t = lanes == 1 ? element_ : llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes));
    const auto sum_at = [&](Value* i, Value*& row, Value*& column) {
      row = b_.CreateUDiv(i, number(in_row));
      column = b_.CreateMul(b_.CreateURem(i, number(in_row)), number(lanes));
      Value* const from = place_in_chunk(chunk, row, column);
      row = b_.CreateAdd(own_row, row);
      column = b_.CreateAdd(first_column, column);
      return b_.CreateAlignedLoad(t, from, llvm::Align(static_cast<uint64_t>(4 * lanes)));
    };
    const auto compute = [&](Value* sum, Value* row, Value* column) {
      set_loops(0, k_.outer, tiles_.a.loops, row);
      set_loops(0, k_.outer, tiles_.b.loops, lanes == 1 ? column : b_.CreateUDiv(column, number(lanes)));
      values_of_stage(0);
      finish_reduction(0, {{sum}}, true);
      values_of_stage(1);
    };
    const auto store_all = [&] {
      for (const Store& s : k_.stores) store(s);
    };
    const bool is_short = turns <= kMostTurns && k_.exprs.size() <= kMostExpressions;
    if (!is_full || !is_short) {
      return loop(lane_, number(kWarpRows * in_row), warp_, [&](Value* i) {
        Value *row = nullptr, *column = nullptr;
        Value* const sum = sum_at(i, row, column);
        const auto body = [&] {
          lanes_ = static_cast<int>(lanes);
          compute(sum, row, column);
          store_all();
          lanes_ = 1;
        };
        if (is_full) return body();
        branch(b_.CreateAnd(b_.CreateICmpULT(row, number(tiles_.a.count)),
                            b_.CreateICmpULT(column, number(tiles_.b.count))),
               body);
      });
    }
    // Loads of all turns come before their stores, so that they are in progress at the same time.
    struct Turn {
      Value *sum, *row, *column;
      std::vector<Val> values;
      std::vector<Value*> loops;
    };
    std::vector<Turn> all(static_cast<size_t>(turns));
    for (int64_t i = 0; i < turns; ++i) {
      Turn& turn = all[static_cast<size_t>(i)];
      turn.sum = sum_at(b_.CreateAdd(lane_, number(i * warp_)), turn.row, turn.column);
    }
    lanes_ = static_cast<int>(lanes);
    for (Turn& turn : all) {
      compute(turn.sum, turn.row, turn.column);
      turn.values = vals_;
      turn.loops = iv_;
    }
    for (const Turn& turn : all) {
      vals_ = turn.values;
      iv_ = turn.loops;
      store_all();
    }
    lanes_ = 1;
  }

  /// Returns the address of a sum. Each eight columns of a row are moved by the number of the row, so that the rows that a
  /// warp writes at a time are in different memory banks.
  Value* place_in_chunk(Value* chunk, Value* row, Value* column) {
    Value* const moved = b_.CreateXor(column, b_.CreateShl(b_.CreateAnd(row, number(3)), number(3)));
    return b_.CreateGEP(element_, chunk, b_.CreateAdd(b_.CreateMul(row, number(kChunk)), moved));
  }

  /// Writes this thread's sums of columns [first, first + kChunk) to the chunk. A thread has two neighbours in row lane / 4
  /// and two in the row eight below of each eight columns (PTX ISA, "Register Fragments for wgmma").
  void put(const std::vector<Value*>& sums, Value* chunk, int64_t first) {
    Value* const row = b_.CreateUDiv(lane_, number(4));
    Value* const pair = b_.CreateMul(b_.CreateURem(lane_, number(4)), number(2));
    for (int64_t c = 0; c < kChunk; c += 8) {
      for (int64_t half = 0; half < 2; ++half) {
        const auto at = static_cast<size_t>((first + c) / 2 + 2 * half);
        Value* two = llvm::PoisonValue::get(llvm::FixedVectorType::get(element_, 2));
        two = b_.CreateInsertElement(two, sums[at], uint64_t{0});
        two = b_.CreateInsertElement(two, sums[at + 1], uint64_t{1});
        Value* const to = place_in_chunk(chunk, b_.CreateAdd(row, number(8 * half)), b_.CreateAdd(pair, number(c)));
        b_.CreateAlignedStore(two, to, llvm::Align(8));
      }
    }
  }

  void values_of_stage(int stage) {
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const auto id = static_cast<ExprId>(k);
      if (passes_.level_of(id) <= k_.outer && passes_.stage_of(id) == stage && k_.exprs[k].op != ExprOp::kReduced)
        vals_[k] = instruction(k_.exprs[k]);
    }
  }

  const TileSchedule& tiles_;
  const WarpgroupSchedule& warpgroups_;
  const uint32_t type_;
  WarpgroupCode code_;
  Type* element_ = nullptr;  ///< type of the sums
  Value* shared_ = nullptr;  ///< shared memory: rounds, chunks, barriers
  int64_t chunks_ = 0;       ///< offset of the chunks in shared memory
  Value* base_ = nullptr;    ///< address of shared memory, i32
  Value* full_ = nullptr;    ///< address of the barriers of rounds that have come
  Value* empty_ = nullptr;   ///< address of the barriers of rounds that have been read
  Value* warp_number_ = nullptr;
  Value* lane_ = nullptr;
};

}  // namespace

void emit_grid_warpgroups(const GridKernel& kernel, llvm::Module& module, const Target& target,
                          llvm::Function* function) {
  WarpgroupEmitter(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
