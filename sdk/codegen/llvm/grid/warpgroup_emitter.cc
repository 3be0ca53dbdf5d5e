// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/grid/warpgroup_emitter.h"

#include <utility>

#include "sdk/codegen/llvm/grid/grid_function.h"

namespace collet::codegen {

void WarpgroupEmitter::divide(int64_t places, int64_t place_bytes, int64_t more, int consumers) {
  places_ = places;
  place_bytes_ = place_bytes;
  consumers_ = consumers;
  llvm::GlobalVariable* const memory = make_given_array(function_);
  memory->setAlignment(llvm::Align(WarpgroupSchedule::kBoxAlignment));
  warp_number_ = b_.CreateUDiv(thread_, number(warp_));
  lane_ = b_.CreateURem(thread_, number(warp_));
  int64_t offset = places * place_bytes;
  more_ = b_.CreateGEP(b_.getInt8Ty(), memory, number(offset));
  offset += more;
  chunk_ =
      b_.CreateGEP(b_.getInt8Ty(), memory,
                   b_.CreateAdd(b_.CreateMul(warp_number_, number(WarpgroupSchedule::chunk_bytes())), number(offset)));
  offset += kWarps * consumers * WarpgroupSchedule::chunk_bytes();
  base_ = code_.address(memory);
  full_ = b_.CreateAdd(base_, word(offset));
  empty_ = b_.CreateAdd(full_, word(places * kBarrierBytes));
}

void WarpgroupEmitter::run(const std::function<void()>& produce, const std::function<void()>& consume) {
  branch(b_.CreateICmpEQ(thread_, number(0)), [&] {
    for (int64_t i = 0; i < places_; ++i) {
      code_.init_barrier(full(word(i)), 1);
      code_.init_barrier(empty(word(i)), static_cast<uint32_t>(kWarps * consumers_));
    }
    code_.publish_barriers();
  });
  barrier();
  Value* const consumes = b_.CreateICmpULT(warp_number_, number(kWarps * consumers_));
  // The producer is a warpgroup, too, which gives registers that it does not need to the consumers.
  struct Registers {
    int producer, consumer;
  };
  constexpr Registers kRegisters[] = {{0, 0}, {0, 0}, {40, 232}, {32, 160}};
  const Registers registers = kRegisters[consumers_];
  llvm::BasicBlock* const of_consumers = llvm::BasicBlock::Create(ir_.context(), "consumers", function_);
  llvm::BasicBlock* const of_producer = llvm::BasicBlock::Create(ir_.context(), "producer", function_);
  llvm::BasicBlock* const end = llvm::BasicBlock::Create(ir_.context(), "end", function_);
  b_.CreateCondBr(consumes, of_consumers, of_producer);
  b_.SetInsertPoint(of_consumers);
  if (registers.consumer != 0) code_.set_registers(registers.consumer, true);
  consume();
  b_.CreateBr(end);
  b_.SetInsertPoint(of_producer);
  if (registers.producer != 0) code_.set_registers(registers.producer, false);
  branch(b_.CreateICmpEQ(thread_, number(int64_t{consumers_} * WarpgroupSchedule::kGroupThreads)), produce);
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
}

llvm::Value* WarpgroupEmitter::count_places() {
  Value* const count = slot(b_.getInt32Ty());
  b_.CreateStore(word(0), count);
  return count;
}

WarpgroupEmitter::Turn WarpgroupEmitter::next_place(Value* count) {
  Value* const n = b_.CreateLoad(b_.getInt32Ty(), count);
  b_.CreateStore(b_.CreateAdd(n, word(1)), count);
  return {b_.CreateURem(n, word(places_)), b_.CreateAnd(b_.CreateUDiv(n, word(places_)), word(1))};
}

void WarpgroupEmitter::wait(Value* barrier, Value* parity) {
  llvm::BasicBlock* const test = llvm::BasicBlock::Create(ir_.context(), "wait", function_);
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(ir_.context(), "ended", function_);
  b_.CreateBr(test);
  b_.SetInsertPoint(test);
  b_.CreateCondBr(code_.has_ended(barrier, parity), after, test);
  b_.SetInsertPoint(after);
}

void WarpgroupEmitter::release(Value* place) {
  branch(b_.CreateICmpEQ(lane_, number(0)), [&] { code_.arrive(empty(place)); });
}

void WarpgroupEmitter::copy(const BoxOperand& o, Value* map, Value* to, int64_t length, int64_t steps, Value* first,
                            Value* depth, Value* full) {
  std::vector<Value*> batch;
  for (size_t l : o.batch_loops) batch.push_back(as_word(iv_[l]));
  // A box is a line wide. By depth it has all rows (columns), else all steps.
  const int64_t line = o.map.box[0];
  const int64_t all = o.by_depth ? steps : length;
  const int64_t box_bytes = WarpgroupSchedule::kLineBytes * (o.by_depth ? length : steps);
  for (int64_t i = 0; i * line < all; ++i) {
    Value* const along = as_word(b_.CreateAdd(o.by_depth ? depth : first, number(i * line)));
    std::vector<Value*> coordinates{along, as_word(o.by_depth ? first : depth)};
    coordinates.insert(coordinates.end(), batch.begin(), batch.end());
    code_.copy_box(b_.CreateAdd(to, word(i * box_bytes)), map, coordinates, full);
  }
}

llvm::Value* WarpgroupEmitter::factor(const BoxOperand& o, Value* at, int64_t length, int64_t steps, int64_t step) {
  constexpr int64_t kLine = WarpgroupSchedule::kLineBytes;
  constexpr int64_t kBlock = kBlockLines * kLine;
  const auto bytes = static_cast<int64_t>(collet_type_bytes(o.map.element_type));
  if (o.by_depth) {
    // Lines are rows, and blocks of eight rows follow each other.
    constexpr int64_t kSteps = kLine / kStepBytes;
    const int64_t offset = step / kSteps * length * kLine + step % kSteps * kStepBytes;
    return code_.descriptor(b_.CreateAdd(at, word(offset)), kStepBytes / 2, kBlock);
  }
  // Lines are steps of the depth for as many rows as a line has elements; blocks of eight steps follow each other.
  const int64_t lines = kStepBytes / bytes;
  return code_.descriptor(b_.CreateAdd(at, word(step * lines * kLine)), steps * kLine, kBlock);
}

llvm::Value* WarpgroupEmitter::warpgroup() {
  // The compiler is told that all lanes agree: the value comes from the first.
  return as_word(of_thread(b_.CreateUDiv(warp_number_, number(kWarps)), Exchange::kNumber, number(0)));
}

std::vector<llvm::Value*> WarpgroupEmitter::make_sums(int64_t count) {
  std::vector<Value*> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(slot(element_));
  return out;
}

std::vector<llvm::Value*> WarpgroupEmitter::load_sums(const std::vector<Value*>& sums) {
  std::vector<Value*> out;
  for (Value* s : sums) out.push_back(b_.CreateLoad(element_, s));
  return out;
}

void WarpgroupEmitter::store_sums(const std::vector<Value*>& sums, const std::vector<Value*>& values) {
  for (size_t i = 0; i < sums.size(); ++i) b_.CreateStore(values[i], sums[i]);
}

void WarpgroupEmitter::store_results(const std::vector<Value*>& sums, const Results& what) {
  const auto all_chunks = [&](bool is_full) {
    for (int64_t first = 0; first < what.tile_columns; first += kChunk) {
      emit_warp_barrier(b_);
      put(sums, first);
      emit_warp_barrier(b_);
      store_chunk(what, b_.CreateAdd(what.first_column, number(first)), is_full);
    }
  };
  Value* is_full = nullptr;
  const auto test = [&](Value* first, int64_t length, int64_t count) {
    if (count % length == 0) return;
    Value* const fits = b_.CreateICmpULE(b_.CreateAdd(first, number(length)), number(count));
    is_full = is_full ? b_.CreateAnd(is_full, fits) : fits;
  };
  test(what.tile_row, what.tile_rows, what.rows.count);
  test(what.first_column, what.tile_columns, what.columns.count);
  if (!is_full) return all_chunks(true);
  branch(is_full, [&] { all_chunks(true); });
  branch(b_.CreateNot(is_full), [&] { all_chunks(false); });
}

/// Computes and stores the results of a chunk, whose first column is `first_column`. `is_full`: all of the tile is inside
/// of the result.
void WarpgroupEmitter::store_chunk(const Results& what, Value* first_column, bool is_full) {
  const int64_t lanes = what.lanes;
  const int64_t in_row = kChunk / lanes;  // threads that compute a row
  const int64_t turns = kWarpRows * in_row / warp_;
  Type* const t = lanes == 1 ? element_ : llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes));
  struct Point {
    Value* sum = nullptr;
    Value* row = nullptr;  ///< counted from the warp's first one
    Value* column = nullptr;
    std::vector<Val> values;
    std::vector<Value*> loops;
  };
  const auto point_at = [&](Value* i) {
    Point p;
    p.row = b_.CreateUDiv(i, number(in_row));
    Value* const column = b_.CreateMul(b_.CreateURem(i, number(in_row)), number(lanes));
    p.column = b_.CreateAdd(first_column, column);
    p.sum = b_.CreateAlignedLoad(t, place_in_chunk(p.row, column), llvm::Align(static_cast<uint64_t>(4 * lanes)));
    return p;
  };
  const auto compute = [&](const Point& p) {
    set_loops(0, k_.outer, what.rows.loops, b_.CreateAdd(what.first_row, p.row));
    set_loops(0, k_.outer, what.columns.loops, lanes == 1 ? p.column : b_.CreateUDiv(p.column, number(lanes)));
    what.compute(p.sum, p.row);
  };
  const auto store_all = [&] {
    for (const Store& s : k_.stores) store(s);
  };
  if (!is_full || turns > kMostTurns || k_.exprs.size() > kMostExpressions) {
    return loop(lane_, number(kWarpRows * in_row), warp_, [&](Value* i) {
      const Point p = point_at(i);
      const auto body = [&] {
        lanes_ = static_cast<int>(lanes);
        compute(p);
        store_all();
        lanes_ = 1;
      };
      if (is_full) return body();
      Value* const row = b_.CreateAdd(what.first_row, p.row);
      branch(b_.CreateAnd(b_.CreateICmpULT(row, number(what.rows.count)),
                          b_.CreateICmpULT(p.column, number(what.columns.count))),
             body);
    });
  }
  // Loads of all turns come before their stores, so that they are in progress at the same time.
  std::vector<Point> all;
  for (int64_t i = 0; i < turns; ++i) all.push_back(point_at(b_.CreateAdd(lane_, number(i * warp_))));
  lanes_ = static_cast<int>(lanes);
  for (Point& p : all) {
    compute(p);
    p.values = vals_;
    p.loops = iv_;
  }
  for (const Point& p : all) {
    vals_ = p.values;
    iv_ = p.loops;
    store_all();
  }
  lanes_ = 1;
}

/// Returns the address of a sum. Each eight columns of a row are moved by the number of the row, so that the rows that a
/// warp writes at a time are in different memory banks.
llvm::Value* WarpgroupEmitter::place_in_chunk(Value* row, Value* column) {
  Value* const moved = b_.CreateXor(column, b_.CreateShl(b_.CreateAnd(row, number(3)), number(3)));
  return b_.CreateGEP(element_, chunk_, b_.CreateAdd(b_.CreateMul(row, number(kChunk)), moved));
}

/// Writes this thread's sums of columns [first, first + kChunk) to the chunk. A thread has two neighbours in row lane / 4
/// and two in the row eight below of each eight columns (PTX ISA, "Register Fragments for wgmma").
void WarpgroupEmitter::put(const std::vector<Value*>& sums, int64_t first) {
  Value* const row = b_.CreateUDiv(lane_, number(4));
  Value* const pair = b_.CreateMul(b_.CreateURem(lane_, number(4)), number(2));
  for (int64_t c = 0; c < kChunk; c += 8) {
    for (int64_t half = 0; half < 2; ++half) {
      const auto at = static_cast<size_t>((first + c) / 2 + 2 * half);
      Value* two = llvm::PoisonValue::get(llvm::FixedVectorType::get(element_, 2));
      two = b_.CreateInsertElement(two, sums[at], uint64_t{0});
      two = b_.CreateInsertElement(two, sums[at + 1], uint64_t{1});
      Value* const to = place_in_chunk(b_.CreateAdd(row, number(8 * half)), b_.CreateAdd(pair, number(c)));
      b_.CreateAlignedStore(two, to, llvm::Align(8));
    }
  }
}

}  // namespace collet::codegen
