// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sdk/codegen/llvm/grid_emitter.h"
#include "sdk/codegen/llvm/scalar_ops.h"

namespace collet::codegen {
namespace {

constexpr int64_t kTogether = 4;      ///< elements that a thread loads before it stores the first
constexpr int64_t kBlockDepth = 128;  ///< steps of the depth, a multiple of those of all kinds of rounds
constexpr int64_t kThreadRows = 4;    ///< of the result, of each thread, where there are no matrix instructions
constexpr int64_t kThreadColumns = 4;
constexpr int64_t kPadding = 16;  ///< bytes behind each line in shared memory, so that its columns are in other banks

/// A matrix product by blocks that compute a tile each. In every round the block evaluates both operands for some steps of the depth
/// into shared memory, and adds the products to what its threads hold. At the end the tile goes through shared memory once more, so that
/// neighbouring threads compute and store neighbouring results.
class TileEmitter final : public GridEmitter {
 public:
  TileEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : GridEmitter(kernel, module, target, function),
        tiles_(schedule_.tiles),
        type_(k_.reductions[0].types[0]),
        by_matrix_(tiles_.matrix_type != 0),
        round_(by_matrix_ ? kMatrixTileDepth : kTileDepth) {}

 private:
  /// An operand.
  struct Operand {
    ExprId value;
    uint64_t loops;            ///< those of its rows, or columns
    int64_t count;             ///< their points
    int64_t length;            ///< of a tile, in these
    bool by_depth;             ///< neighbouring threads load neighbours along the depth
    std::vector<bool> needed;  ///< expressions that its value follows from
    Value* shared = nullptr;
  };

  void thread() override {
    element_ = ir_.scalar(type_);
    const int64_t bytes = element_->getScalarSizeInBits() / 8;
    stored_ = by_matrix_ ? b_.getInt16Ty() : element_;
    const int64_t stored_bytes = stored_->getScalarSizeInBits() / 8;
    // With matrix instructions a line is a row or column with its depth, else a step of the depth.
    const int64_t lines = by_matrix_ ? kTileRows : round_;
    line_ = (by_matrix_ ? round_ : kTileRows) + kPadding / stored_bytes;
    const int64_t operand_bytes = lines * line_ * stored_bytes;
    const int64_t all = std::max(2 * operand_bytes, kTileRows * kTileColumns * bytes);
    Value* const memory = shared_array(b_.getInt8Ty(), all);
    result_ = memory;
    a_ = operand(tiles_.a, tiles_.rows, tiles_.row_count, kTileRows, tiles_.a_by_depth, memory);
    b_side_ = operand(tiles_.b, tiles_.columns, tiles_.column_count, kTileColumns, tiles_.b_by_depth,
                      b_.CreateConstGEP1_64(b_.getInt8Ty(), memory, static_cast<uint64_t>(operand_bytes)));
    const int64_t held = kTileRows * kTileColumns / schedule_.block_threads;
    for (int64_t i = 0; i < held; ++i) sums_.push_back(slot(element_));
    for (int64_t i = 0; i < held && is_long(); ++i) totals_.push_back(slot(element_));

    const int64_t row_tiles = (tiles_.row_count + kTileRows - 1) / kTileRows;
    const int64_t column_tiles = (tiles_.column_count + kTileColumns - 1) / kTileColumns;
    loop(block_, number(row_tiles * column_tiles * tiles_.batch_count), schedule_.blocks, [&](Value* tile) {
      Value* const column_tile = b_.CreateURem(tile, number(column_tiles));
      Value* const above = b_.CreateUDiv(tile, number(column_tiles));
      set_loops(0, k_.outer, tiles_.batch, b_.CreateUDiv(above, number(row_tiles)));
      first_row_ = b_.CreateMul(b_.CreateURem(above, number(row_tiles)), number(kTileRows));
      first_column_ = b_.CreateMul(column_tile, number(kTileColumns));
      if (!is_long()) {
        clear(sums_);
        rounds(number(0), number(tiles_.depth));
      } else {
        clear(totals_);
        loop(number(0), number(tiles_.depth), kBlockDepth, [&](Value* first) {
          clear(sums_);
          Value* const end = b_.CreateAdd(first, number(kBlockDepth));
          rounds(first, ir_.binary(llvm::Intrinsic::smin, end, number(tiles_.depth)));
          for (size_t i = 0; i < sums_.size(); ++i) {
            Value* const sum = b_.CreateLoad(element_, sums_[i]);
            b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(element_, totals_[i]), sum), totals_[i]);
          }
        });
        for (size_t i = 0; i < sums_.size(); ++i) b_.CreateStore(b_.CreateLoad(element_, totals_[i]), sums_[i]);
      }
      by_matrix_ ? put_matrices() : put();
      barrier();
      results();
      barrier();
    });
  }

  /// Whether floats are added in blocks of the depth: the error of a sum grows with the terms that one accumulator takes.
  bool is_long() const { return element_->isFloatingPointTy() && tiles_.depth >= 2 * kBlockDepth; }

  void clear(const std::vector<Value*>& sums) {
    for (Value* sum : sums) b_.CreateStore(llvm::Constant::getNullValue(element_), sum);
  }

  /// Adds the products of steps [first, last) of the depth to the sums.
  void rounds(Value* first, Value* last) {
    loop(first, last, round_, [&](Value* depth) {
      fill(a_, first_row_, depth);
      fill(b_side_, first_column_, depth);
      barrier();
      by_matrix_ ? multiply_matrices() : multiply();
      barrier();
    });
  }

  Operand operand(ExprId value, uint64_t loops, int64_t count, int64_t length, bool by_depth, Value* shared) {
    if (by_matrix_ && k_.exprs[static_cast<size_t>(value)].type != tiles_.matrix_type)
      value = k_.exprs[static_cast<size_t>(value)].args[0];  // before it was converted
    Operand out{value, loops, count, length, by_depth, std::vector<bool>(k_.exprs.size(), false), shared};
    out.needed[static_cast<size_t>(value)] = true;
    for (size_t k = static_cast<size_t>(value) + 1; k-- > 0;) {
      if (!out.needed[k]) continue;
      const Expr& e = k_.exprs[k];
      for (ExprId a : e.args) out.needed[static_cast<size_t>(a)] = true;
      for (const auto& [term, scale] : e.index.terms) out.needed[static_cast<size_t>(term)] = true;
      if (e.mask != kNoExpr) out.needed[static_cast<size_t>(e.mask)] = true;
    }
    return out;
  }

  /// Where element `x` of a line lies; `step` of the depth, `at` of the rows or columns.
  Value* place(const Operand& o, Value* at, Value* step) {
    Value* const line = by_matrix_ ? at : step;
    Value* const x = by_matrix_ ? step : at;
    return b_.CreateGEP(stored_, o.shared, b_.CreateAdd(b_.CreateMul(line, number(line_)), x));
  }

  /// Evaluates an operand for the tile's rows or columns from `first`, and for the depth from `depth`.
  void fill(const Operand& o, Value* first, Value* depth) {
    const int64_t all = o.length * round_;
    const int64_t threads = schedule_.block_threads;
    const int64_t each = all / threads;
    const int64_t together = std::min(each, kTogether);
    loop(number(0), number(each), together, [&](Value* turn) {
      std::vector<std::pair<Value*, Value*>> stores;
      for (int64_t i = 0; i < together; ++i) {
        Value* const index = b_.CreateAdd(b_.CreateMul(b_.CreateAdd(turn, number(i)), number(threads)), thread_);
        const int64_t fast = o.by_depth ? round_ : o.length;
        Value* const low = b_.CreateURem(index, number(fast));
        Value* const high = b_.CreateUDiv(index, number(fast));
        Value* const at = o.by_depth ? high : low;
        Value* const step = o.by_depth ? low : high;
        stores.emplace_back(element(o, b_.CreateAdd(first, at), b_.CreateAdd(depth, step)), place(o, at, step));
      }
      for (const auto& [value, to] : stores) b_.CreateStore(value, to);
    });
  }

  /// The operand at a point; 0 beyond its ends.
  Value* element(const Operand& o, Value* at, Value* step) {
    Value* inside = o.count % o.length == 0 ? nullptr : b_.CreateICmpULT(at, number(o.count));
    if (tiles_.depth % round_ != 0) {
      Value* const within = b_.CreateICmpULT(step, number(tiles_.depth));
      inside = inside ? b_.CreateAnd(inside, within) : within;
    }
    const auto value = [&] {
      set_loops(0, k_.outer, o.loops, at);
      set_loops(k_.outer, k_.loops.size(), ~uint64_t{0}, step);
      for (size_t k = 0; k < k_.exprs.size(); ++k) {
        if (o.needed[k]) vals_[k] = instruction(k_.exprs[k]);
      }
      const Val& v = val(o.value);
      return by_matrix_ ? ir_.to_storage(v, tiles_.matrix_type) : v.v;
    };
    if (!inside) return value();
    Value* const result = slot(stored_);
    b_.CreateStore(llvm::Constant::getNullValue(stored_), result);
    branch(inside, [&] { b_.CreateStore(value(), result); });
    return b_.CreateLoad(stored_, result);
  }

  // Without matrix instructions: a thread has kThreadRows x kThreadColumns of the tile.

  Value* thread_row() {
    return b_.CreateMul(b_.CreateUDiv(thread_, number(kTileColumns / kThreadColumns)), number(kThreadRows));
  }
  Value* thread_column() {
    return b_.CreateMul(b_.CreateURem(thread_, number(kTileColumns / kThreadColumns)), number(kThreadColumns));
  }

  void multiply() {
    Value* const row = thread_row();
    Value* const column = thread_column();
    const bool is_float = element_->isFloatingPointTy();
    const Contraction contraction(ir_, is_float && (k_.reductions[0].contract || type_ == COLLET_TYPE_F32));
    loop(number(0), number(round_), kTogether, [&](Value* base) {
      for (int64_t i = 0; i < kTogether; ++i) {
        Value* const step = b_.CreateAdd(base, number(i));
        Value* const x = line_of(a_, row, step, kThreadRows);
        Value* const y = line_of(b_side_, column, step, kThreadColumns);
        for (int64_t r = 0; r < kThreadRows; ++r) {
          for (int64_t c = 0; c < kThreadColumns; ++c) {
            Value* const p = b_.CreateExtractElement(x, static_cast<uint64_t>(r));
            Value* const q = b_.CreateExtractElement(y, static_cast<uint64_t>(c));
            Value* const sum = sums_[static_cast<size_t>(r * kThreadColumns + c)];
            Value* const old = b_.CreateLoad(element_, sum);
            b_.CreateStore(is_float ? b_.CreateFAdd(old, b_.CreateFMul(p, q)) : b_.CreateAdd(old, b_.CreateMul(p, q)),
                           sum);
          }
        }
      }
    });
  }

  /// Neighbouring elements of a step of the depth.
  Value* line_of(const Operand& o, Value* at, Value* step, int64_t count) {
    Type* const t = llvm::FixedVectorType::get(element_, static_cast<unsigned>(count));
    return b_.CreateAlignedLoad(t, place(o, at, step), llvm::Align(16));
  }

  void put() {
    Value* const row = thread_row();
    Value* const column = thread_column();
    for (int64_t r = 0; r < kThreadRows; ++r) {
      for (int64_t c = 0; c < kThreadColumns; ++c) {
        put_one(b_.CreateAdd(row, number(r)), b_.CreateAdd(column, number(c)),
                sums_[static_cast<size_t>(r * kThreadColumns + c)]);
      }
    }
  }

  void put_one(Value* row, Value* column, Value* sum) {
    Value* const at = b_.CreateAdd(b_.CreateMul(row, number(kTileColumns)), column);
    b_.CreateStore(b_.CreateLoad(element_, sum), b_.CreateGEP(element_, result_, at));
  }

  // With matrix instructions: four warps have a quarter of the tile each, in products of 16 x 8 x 16. Which thread has which element
  // is fixed by mma.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16").

  static constexpr int64_t kWarpRows = 32, kWarpColumns = 32;
  static constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16;
  static constexpr int64_t kRowBlocks = kWarpRows / kRows, kColumnBlocks = kWarpColumns / kColumns;

  Value* warp_row() {
    Value* const warp = b_.CreateUDiv(thread_, number(warp_));
    return b_.CreateMul(b_.CreateUDiv(warp, number(kTileColumns / kWarpColumns)), number(kWarpRows));
  }
  Value* warp_column() {
    Value* const warp = b_.CreateUDiv(thread_, number(warp_));
    return b_.CreateMul(b_.CreateURem(warp, number(kTileColumns / kWarpColumns)), number(kWarpColumns));
  }
  Value* group_of_four() { return b_.CreateUDiv(b_.CreateURem(thread_, number(warp_)), number(4)); }
  Value* within_four() { return b_.CreateMul(b_.CreateURem(thread_, number(4)), number(2)); }

  /// Two neighbours along the depth, as one word or as a vector of halves.
  Value* pair_of(const Operand& o, Value* at, Value* step) {
    const bool is_bf16 = tiles_.matrix_type == COLLET_TYPE_BF16;
    Type* const t = is_bf16 ? static_cast<Type*>(b_.getInt32Ty()) : llvm::FixedVectorType::get(b_.getHalfTy(), 2);
    return b_.CreateAlignedLoad(t, place(o, at, step), llvm::Align(4));
  }

  void multiply_matrices() {
    Value* const group = group_of_four();
    Value* const pair = within_four();
    Value* const row = b_.CreateAdd(warp_row(), group);
    Value* const column = b_.CreateAdd(warp_column(), group);
    loop(number(0), number(round_), kDepth, [&](Value* base) {
      Value* const step = b_.CreateAdd(base, pair);
      Value* const next = b_.CreateAdd(step, number(8));
      std::vector<std::array<Value*, 4>> x;
      for (int64_t r = 0; r < kRowBlocks; ++r) {
        Value* const upper = b_.CreateAdd(row, number(r * kRows));
        Value* const lower = b_.CreateAdd(upper, number(8));
        x.push_back(
            {pair_of(a_, upper, step), pair_of(a_, lower, step), pair_of(a_, upper, next), pair_of(a_, lower, next)});
      }
      for (int64_t c = 0; c < kColumnBlocks; ++c) {
        Value* const at = b_.CreateAdd(column, number(c * kColumns));
        Value* const y0 = pair_of(b_side_, at, step);
        Value* const y1 = pair_of(b_side_, at, next);
        for (int64_t r = 0; r < kRowBlocks; ++r) {
          const size_t first = static_cast<size_t>((r * kColumnBlocks + c) * 4);
          std::vector<Value*> args(x[static_cast<size_t>(r)].begin(), x[static_cast<size_t>(r)].end());
          args.push_back(y0);
          args.push_back(y1);
          for (size_t i = 0; i < 4; ++i) args.push_back(b_.CreateLoad(element_, sums_[first + i]));
          const auto id = tiles_.matrix_type == COLLET_TYPE_BF16 ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16
                                                                 : llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32;
          Value* const product = b_.CreateIntrinsic(id, {}, args);
          for (unsigned i = 0; i < 4; ++i) b_.CreateStore(b_.CreateExtractValue(product, {i}), sums_[first + i]);
        }
      }
    });
  }

  void put_matrices() {
    Value* const row = b_.CreateAdd(warp_row(), group_of_four());
    Value* const column = b_.CreateAdd(warp_column(), within_four());
    for (int64_t r = 0; r < kRowBlocks; ++r) {
      for (int64_t c = 0; c < kColumnBlocks; ++c) {
        for (int64_t i = 0; i < 4; ++i) {
          put_one(b_.CreateAdd(row, number(r * kRows + i / 2 * 8)), b_.CreateAdd(column, number(c * kColumns + i % 2)),
                  sums_[static_cast<size_t>((r * kColumnBlocks + c) * 4 + i)]);
        }
      }
    }
  }

  /// What is done with each element of the tile.
  void results() {
    loop(thread_, number(kTileRows * kTileColumns), schedule_.block_threads, [&](Value* i) {
      Value* const row = b_.CreateAdd(first_row_, b_.CreateUDiv(i, number(kTileColumns)));
      Value* const column = b_.CreateAdd(first_column_, b_.CreateURem(i, number(kTileColumns)));
      Value* inside = b_.CreateICmpULT(row, number(tiles_.row_count));
      inside = b_.CreateAnd(inside, b_.CreateICmpULT(column, number(tiles_.column_count)));
      branch(inside, [&] {
        set_loops(0, k_.outer, tiles_.rows, row);
        set_loops(0, k_.outer, tiles_.columns, column);
        values_of_stage(0);
        finish_fold(0, {{b_.CreateLoad(element_, b_.CreateGEP(element_, result_, i))}});
        values_of_stage(1);
        for (const Store& s : k_.stores) store(s);
      });
    });
  }

  void values_of_stage(int stage) {
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const auto id = static_cast<ExprId>(k);
      if (passes_.level_of(id) <= k_.outer && passes_.stage_of(id) == stage && k_.exprs[k].op != ExprOp::kReduced)
        vals_[k] = instruction(k_.exprs[k]);
    }
  }

  const TileSchedule& tiles_;
  const uint32_t type_;
  const bool by_matrix_;
  const int64_t round_;      ///< steps of the depth in shared memory
  Type* element_ = nullptr;  ///< in which products are added
  Type* stored_ = nullptr;   ///< of operands in shared memory
  int64_t line_ = 0;         ///< elements from one line in shared memory to the next
  Operand a_{}, b_side_{};
  Value* result_ = nullptr;  ///< the tile in shared memory, over the operands
  std::vector<Value*> sums_;
  std::vector<Value*> totals_;  ///< of the blocks of the depth before
  Value* first_row_ = nullptr;
  Value* first_column_ = nullptr;
};

}  // namespace

void emit_grid_tiles(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function) {
  TileEmitter(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
