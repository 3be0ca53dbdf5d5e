// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "sdk/codegen/llvm/grid/grid_function.h"
#include "sdk/codegen/llvm/grid/warpgroup_emitter.h"
#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {
namespace {

constexpr uint32_t kF32 = COLLET_TYPE_F32;

/// Emits attention by warpgroups, see WarpgroupAttention. The scores of a tile stay in the registers in which matrix
/// instructions leave them: a thread has two neighbours in row lane / 4 and two in the row eight below of each eight
/// keys. As pairs of 16-bit numbers, weights have the order in which the second product takes them. While one warpgroup
/// computes weights, the others multiply (J. Shah et al., "FlashAttention-3", 2024).
class AttentionByWarpgroups final : public WarpgroupEmitter {
 public:
  AttentionByWarpgroups(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : WarpgroupEmitter(kernel, module, target, function), a_(schedule_.attention), w_(*a_.warpgroups) {}

 private:
  static constexpr int kThreadRows = 2;  ///< rows of which a thread has scores
  /// Instructions for 16-bit factors multiply so many keys at a time.
  static constexpr int kStepKeys = 16;

  void thread() override {
    element_ = b_.getFloatTy();
    divide(w_.places, w_.place_bytes(), w_.query_bytes() + w_.row_bytes(), w_.consumers);
    query_at_ = code_.address(more_);
    row_sums_ = b_.CreateGEP(b_.getInt8Ty(), more_, number(w_.query_bytes()));
    queries_full_ = b_.CreateAdd(query_at_, word(w_.query_bytes() + int64_t{w_.rows()} * 4));
    queries_empty_ = b_.CreateAdd(queries_full_, word(8));
    decided_ = b_.CreateAdd(queries_full_, word(16));
    flags_ = b_.CreateGEP(b_.getInt8Ty(), row_sums_, number(int64_t{w_.rows()} * 4 + 32));
    logit_needs_ = needed_for({a_.logit});
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const ExprOp op = k_.exprs[k].op;
      if (logit_needs_[k] && op != ExprOp::kConstant && op != ExprOp::kOp && op != ExprOp::kReduced) is_plain_ = false;
    }
    branch(b_.CreateICmpEQ(thread_, number(0)), [&] {
      code_.init_barrier(queries_full_, 1);
      code_.init_barrier(queries_empty_, static_cast<uint32_t>(kWarps * w_.consumers));
      code_.init_barrier(decided_, static_cast<uint32_t>(kWarps * w_.consumers));
    });
    loop(thread_, number(w_.flag_bytes()), w_.block_threads(),
         [&](Value* i) { b_.CreateStore(b_.getInt8(0), b_.CreateGEP(b_.getInt8Ty(), flags_, i)); });
    run([&] { produce(); }, [&] { consume(); });
  }

  int64_t row_tiles() const { return w_.tiles(a_) / a_.batch_count; }
  int64_t key_tiles() const { return (a_.key.count + w_.keys - 1) / w_.keys; }

  /// A tile of queries, and which tiles of keys are computed for it.
  struct Tile {
    Value* first_row = nullptr;
    Value* parity = nullptr;  ///< of the phases of the queries' barriers
    Value* first_keys = nullptr;
    Value* end_keys = nullptr;
    // For hidden keys that may have a weight:
    Value* is_again = nullptr;  ///< an i1: whether the tile is computed with all keys, because it was flagged
    Value* flags = nullptr;     ///< of the consumers' warps for this tile
    Value* is_part = nullptr;   ///< an i1: whether keys are left out
  };

  /// Emits a loop over the tiles of queries of this block.
  void each_tile(bool consumes, const std::function<void(const Tile&)>& body) {
    Value* const count = slot(b_.getInt32Ty());
    b_.CreateStore(word(0), count);
    const auto counted = [&](Tile t, Value* row_tile) {
      Value* const n = b_.CreateLoad(b_.getInt32Ty(), count);
      t.first_row = b_.CreateMul(row_tile, number(w_.rows()));
      t.parity = b_.CreateAnd(n, word(1));
      body(t);
      b_.CreateStore(b_.CreateAdd(n, word(1)), count);
    };
    if (!w_.hidden) {
      loop(block_, number(w_.tiles(a_)), schedule_.blocks, [&](Value* tile) {
        set_loops(0, k_.outer, a_.batch, b_.CreateUDiv(tile, number(row_tiles())));
        counted({nullptr, nullptr, number(0), number(key_tiles())}, b_.CreateURem(tile, number(row_tiles())));
      });
      return;
    }
    const HiddenKeys& hidden = *w_.hidden;
    std::vector<uint32_t> words_of_starts{0}, words_of_tiles, words_of_keys;
    for (const std::vector<int64_t>& list : hidden.tiles) {
      for (const int64_t tile : list) words_of_tiles.push_back(static_cast<uint32_t>(tile));
      words_of_starts.push_back(static_cast<uint32_t>(words_of_tiles.size()));
    }
    for (const HiddenKeys::Range& r : hidden.keys) {
      for (const int64_t x : {r.first, r.end}) words_of_keys.push_back(static_cast<uint32_t>(x));
    }
    llvm::GlobalVariable* const starts = add_table(words_of_starts, "starts");
    llvm::GlobalVariable* const tiles = add_table(words_of_tiles, "tiles");
    llvm::GlobalVariable* const keys = add_table(words_of_keys, "keys");
    loop(number(0), number(hidden.is_exact() ? 1 : 2), 1, [&](Value* pass) {
      Value* const is_again = b_.CreateICmpNE(pass, number(0));
      branch(is_again, [&] {
        if (consumes) branch(b_.CreateICmpEQ(lane_, number(0)), [&] { code_.arrive(decided_); });
        wait(decided_, word(0));
      });
      loop(number(0), number((a_.batch_count + hidden.period - 1) / hidden.period), 1, [&](Value* period) {
        Value* const begin = word_at(starts, block_);
        loop(begin, word_at(starts, b_.CreateAdd(block_, number(1))), 1, [&](Value* i) {
          Value* const tile = word_at(tiles, i);
          Value* const row_tile = b_.CreateURem(tile, number(row_tiles()));
          Value* const product =
              b_.CreateAdd(b_.CreateMul(period, number(hidden.period)), b_.CreateUDiv(tile, number(row_tiles())));
          branch(b_.CreateICmpULT(product, number(a_.batch_count)), [&] {
            set_loops(0, k_.outer, a_.batch, product);
            Value* const range = b_.CreateMul(row_tile, number(2));
            Tile t{nullptr, nullptr, word_at(keys, range), word_at(keys, b_.CreateAdd(range, number(1)))};
            if (hidden.is_exact()) return counted(t, row_tile);
            Value* const turn = b_.CreateAdd(b_.CreateMul(period, number(hidden.most_tiles())), b_.CreateSub(i, begin));
            t.flags = b_.CreateGEP(b_.getInt8Ty(), flags_, b_.CreateMul(turn, number(int64_t{kWarps} * w_.consumers)));
            t.is_again = is_again;
            t.is_part = b_.CreateICmpNE(b_.CreateSub(t.end_keys, t.first_keys), number(key_tiles()));
            t.first_keys = b_.CreateSelect(is_again, number(0), t.first_keys);
            t.end_keys = b_.CreateSelect(is_again, number(key_tiles()), t.end_keys);
            Value* const due = slot(b_.getInt32Ty());  // not 0 if the tile is computed in this pass
            b_.CreateStore(word(1), due);
            branch(is_again, [&] {
              Value* any = word(0);
              for (int k = 0; k < w_.consumers; ++k)
                any =
                    b_.CreateOr(any, b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), t.flags, number(k))));
              b_.CreateStore(any, due);
            });
            branch(b_.CreateICmpNE(b_.CreateLoad(b_.getInt32Ty(), due), word(0)), [&] { counted(t, row_tile); });
          });
        });
      });
    });
  }

  /// Adds an array of constants to the module.
  llvm::GlobalVariable* add_table(const std::vector<uint32_t>& words, const char* name) {
    constexpr unsigned kGlobalMemory = 1;
    llvm::Constant* const data = llvm::ConstantDataArray::get(ir_.context(), words);
    return new llvm::GlobalVariable(ir_.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, name,
                                    nullptr, llvm::GlobalValue::NotThreadLocal, kGlobalMemory);
  }

  /// Returns an element of a table as an i64.
  Value* word_at(llvm::GlobalVariable* table, Value* i) {
    return b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), table, i)), b_.getInt64Ty());
  }

  void produce() {
    for (unsigned i = 0; i < 3; ++i) code_.prefetch_map(map(i));
    Value* const count = count_places();
    each_tile(false, [&](const Tile& tile) {
      wait(queries_empty_, b_.CreateXor(tile.parity, word(1)));
      code_.arrive_with_bytes(queries_full_, w_.query_bytes());
      copy(w_.query, map(0), query_at_, w_.rows(), w_.depth, tile.first_row, number(0), queries_full_);
      loop(tile.first_keys, tile.end_keys, 1, [&](Value* key_tile) {
        Value* const first_key = b_.CreateMul(key_tile, number(w_.keys));
        const auto bring = [&](const BoxOperand& o, unsigned which, int64_t length, int64_t steps, Value* first,
                               Value* depth) {
          const Turn turn = next_place(count);
          wait_until_empty(turn);
          code_.arrive_with_bytes(full(turn.place), length * steps * 2);
          copy(o, map(which), address_of(turn.place), length, steps, first, depth, full(turn.place));
        };
        bring(w_.key, 1, w_.keys, w_.depth, first_key, number(0));
        bring(w_.value, 2, w_.columns, w_.keys, number(0), first_key);
      });
    });
  }

  void consume() {
    const std::vector<Value*> scores = make_sums(w_.keys / 2);
    const std::vector<Value*> results = make_sums(w_.columns / 2);
    for (int r = 0; r < kThreadRows; ++r) {
      maximum_[r] = slot(element_);
      sum_[r] = slot(element_);
    }
    Value* const own_query = b_.CreateAdd(
        query_at_,
        b_.CreateMul(warpgroup(), word(WarpgroupSchedule::kLineBytes * (w_.query.by_depth ? 64 : w_.depth))));
    Value* const count = count_places();
    Value* const before = slot(b_.getInt32Ty());  // the place of the values before
    each_tile(true, [&](const Tile& tile) {
      own_row_ = b_.CreateAdd(tile.first_row, b_.CreateMul(warp_number_, number(kWarpRows)));
      set_rows();
      store_sums(results, std::vector<Value*>(results.size(), llvm::Constant::getNullValue(element_)));
      for (int r = 0; r < kThreadRows; ++r) {
        b_.CreateStore(minus_infinity(), maximum_[r]);
        b_.CreateStore(zero(), sum_[r]);
      }
      wait(queries_full_, tile.parity);
      loop(tile.first_keys, tile.end_keys, 1, [&](Value* key_tile) {
        const Turn keys = next_place(count);
        wait_until_full(keys);
        multiply_keys(own_query, address_of(keys.place), scores, results);
        release(keys.place);
        branch(b_.CreateICmpNE(key_tile, tile.first_keys), [&] { release(b_.CreateLoad(b_.getInt32Ty(), before)); });
        const std::vector<Value*> weights = weigh(load_sums(scores), b_.CreateMul(key_tile, number(w_.keys)), results);
        const Turn values = next_place(count);
        wait_until_full(values);
        multiply_values(weights, address_of(values.place), results);
        b_.CreateStore(values.place, before);
      });
      store_sums(results, code_.finish_products(load_sums(results)));
      release(b_.CreateLoad(b_.getInt32Ty(), before));
      branch(b_.CreateICmpEQ(lane_, number(0)), [&] { code_.arrive(queries_empty_); });
      const auto store = [&] { store_tile(load_sums(results), tile.first_row); };
      if (!w_.hidden || w_.hidden->is_exact()) return store();
      Value* const flag = b_.CreateGEP(b_.getInt8Ty(), tile.flags, warp_number_);
      Value* const was_flagged = b_.CreateICmpNE(b_.CreateLoad(b_.getInt8Ty(), flag), b_.getInt8(0));
      Value* const may_weigh = b_.CreateAnd(may_weigh_hidden(), tile.is_part);
      emit_warp_barrier(b_);  // lane 0 writes what all have read
      branch(b_.CreateAnd(b_.CreateAnd(may_weigh, b_.CreateNot(tile.is_again)), b_.CreateICmpEQ(lane_, number(0))),
             [&] { b_.CreateStore(b_.getInt8(1), flag); });
      branch(b_.CreateSelect(tile.is_again, was_flagged, b_.CreateNot(may_weigh)), store);
    });
  }

  /// Returns an i1: whether a row of this warp has no logit that is so much larger than that of hidden keys that their
  /// weights are 0.
  Value* may_weigh_hidden() {
    constexpr float kRange = 89;  // exp(-89) is 0 as computed here, without subnormal numbers
    Value* any = b_.getFalse();
    for (int r = 0; r < kThreadRows; ++r)
      any = b_.CreateOr(any, b_.CreateFCmpULE(b_.CreateLoad(element_, maximum_[r]),
                                              ir_.constant(element_, w_.hidden->logit + kRange)));
    return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_any_sync, {}, {word(-1), any});
  }

  Value* minus_infinity() { return ir_.constant(element_, -std::numeric_limits<double>::infinity()); }
  Value* zero() { return ir_.constant(element_, 0); }

  /// Computes the scores of a tile of keys. Products with the values before end, too.
  void multiply_keys(Value* queries, Value* keys, const std::vector<Value*>& scores,
                     const std::vector<Value*>& results) {
    std::vector<Value*> a, b;
    for (int64_t step = 0; step < (a_.query.depth + kStepKeys - 1) / kStepKeys; ++step) {
      a.push_back(factor(w_.query, queries, w_.rows(), w_.depth, step));
      b.push_back(factor(w_.key, keys, w_.keys, w_.depth, step));
    }
    WarpgroupCode::Product product = WarpgroupCode::product_of(w_.type, w_.keys, w_.query.by_depth, w_.key.by_depth);
    product.begins = true;
    std::vector<Value*> all =
        code_.start_products(product, a, b, std::vector<Value*>(scores.size(), llvm::PoisonValue::get(element_)), -1);
    const std::vector<Value*> sums = load_sums(results);
    all.insert(all.end(), sums.begin(), sums.end());
    all = code_.finish_products(all);
    store_sums(scores, all);
    store_sums(results, {all.begin() + static_cast<ptrdiff_t>(scores.size()), all.end()});
  }

  /// Starts the products of weights and values, which add to the results.
  void multiply_values(const std::vector<Value*>& weights, Value* values, const std::vector<Value*>& results) {
    std::vector<Value*> b;
    for (int64_t step = 0; step < w_.keys / kStepKeys; ++step)
      b.push_back(factor(w_.value, values, w_.columns, w_.keys, step));
    const WarpgroupCode::Product product = WarpgroupCode::product_of(w_.type, w_.columns, true, w_.value.by_depth);
    store_sums(results, code_.start_products(product, weights, b, load_sums(results), -1));
  }

  /// Sets the loop variables of the rows of which this thread has scores.
  void set_rows() {
    for (int r = 0; r < kThreadRows; ++r) {
      Value* const row = b_.CreateAdd(b_.CreateAdd(own_row_, b_.CreateUDiv(lane_, number(4))), number(8 * r));
      set_loops(0, k_.loops.size(), a_.query.loops, ir_.binary(llvm::Intrinsic::smin, row, number(a_.query.count - 1)));
      row_loops_[r] = iv_;
    }
  }

  /// Computes the logit of the score of a key. Behind the last key it is minus infinity, so that the weight is 0.
  Value* logit(Value* score, int row, Value* key) {
    iv_ = row_loops_[row];
    const bool is_partial = a_.key.count % w_.keys != 0;
    set_loops(0, k_.loops.size(), a_.key.loops,
              is_partial ? ir_.binary(llvm::Intrinsic::smin, key, number(a_.key.count - 1)) : key);
    return inside(logit_at(score), key);
  }

  /// Computes the logit at the point of the current loop variables, or those of two scores that do not depend on it.
  Value* logit_at(Value* score) {
    set_reduced(0, score);
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (logit_needs_[k] && k_.exprs[k].op != ExprOp::kReduced) vals_[k] = instruction(k_.exprs[k]);
    }
    return val(a_.logit).v;
  }

  /// Returns a logit, or minus infinity if there is no such key.
  Value* inside(Value* logit, Value* key) {
    if (a_.key.count % w_.keys == 0) return logit;
    return b_.CreateSelect(b_.CreateICmpULT(key, number(a_.key.count)), logit, minus_infinity());
  }

  /// Returns the weights of a tile as the first factor of the second product, four registers for each of its steps. Scales
  /// the sums of the results so far to the new maximum of each row.
  std::vector<Value*> weigh(const std::vector<Value*>& scores, Value* first_key, const std::vector<Value*>& results) {
    const auto row_of = [](size_t i) { return static_cast<int>(i / 2 % 2); };
    Value* const pair = b_.CreateAdd(first_key, b_.CreateMul(b_.CreateURem(lane_, number(4)), number(2)));
    std::vector<Value*> logits;
    std::array<Val, kThreadRows> largest{Val{minus_infinity()}, Val{minus_infinity()}};
    for (size_t i = 0; i < scores.size(); ++i) {
      Value* const key = b_.CreateAdd(pair, number(static_cast<int64_t>(i / 4 * 8 + i % 2)));
      if (!is_plain_) logits.push_back(logit(scores[i], row_of(i), key));
      if (is_plain_ && i % 2 == 0) {
        // Two neighbours at a time, because 16-bit numbers are rounded in pairs.
        Value* two = llvm::PoisonValue::get(llvm::FixedVectorType::get(element_, 2));
        two = b_.CreateInsertElement(b_.CreateInsertElement(two, scores[i], uint64_t{0}), scores[i + 1], uint64_t{1});
        two = logit_at(two);
        for (uint64_t n = 0; n < 2; ++n)
          logits.push_back(inside(b_.CreateExtractElement(two, n), b_.CreateAdd(key, number(static_cast<int64_t>(n)))));
      }
      Val& most = largest[static_cast<size_t>(row_of(i))];
      most = emit_combine(ir_, COLLET_COMBINE_MAXIMUM, kF32, most, {logits.back()});
    }
    // Weights are powers of 2: exp(x - m) = 2^(x log2(e) - m log2(e)). The product with m is rounded once for a row, so that
    // its error cancels in the quotient. From 2^30 on this error would be too large, but there other logits than m differ
    // from it by at least 128, so that their weights are 0 with a factor of 1, too, for which the product is exact.
    constexpr double kLarge = 0x1p30;
    std::array<Value*, kThreadRows> factor{}, shift{}, scale{};
    for (size_t r = 0; r < kThreadRows; ++r) {
      Val most = largest[r];
      for (const int64_t distance : {1, 2})
        most = emit_combine(ir_, COLLET_COMBINE_MAXIMUM, kF32, most,
                            of_thread(most, Exchange::kFlipped, number(distance)));
      Value* const old = b_.CreateLoad(element_, maximum_[r]);
      Value* const now = emit_combine(ir_, COLLET_COMBINE_MAXIMUM, kF32, {old}, most).v;
      b_.CreateStore(now, maximum_[r]);
      Value* const is_large =
          b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, now), ir_.constant(element_, kLarge));
      factor[r] =
          b_.CreateSelect(is_large, ir_.constant(element_, 1), ir_.constant(element_, 1.4426950408889634));  // log2(e)
      // If all logits so far are minus infinity, the weights must be 0; the difference of two infinities would give NaN.
      Value* const product = b_.CreateFMul(now, factor[r]);
      shift[r] = b_.CreateFNeg(b_.CreateSelect(b_.CreateFCmpOEQ(now, minus_infinity()), zero(), product));
      scale[r] = power_of_two(b_.CreateFAdd(b_.CreateFMul(old, factor[r]), shift[r]));
    }
    std::array<Value*, kThreadRows> sums{};
    for (size_t r = 0; r < kThreadRows; ++r) sums[r] = b_.CreateFMul(b_.CreateLoad(element_, sum_[r]), scale[r]);
    std::vector<Value*> weights;
    for (size_t i = 0; i < logits.size(); ++i) {
      const auto r = static_cast<size_t>(row_of(i));
      weights.push_back(
          power_of_two(b_.CreateIntrinsic(llvm::Intrinsic::fma, {element_}, {logits[i], factor[r], shift[r]})));
      sums[r] = b_.CreateFAdd(sums[r], weights[i]);
    }
    for (size_t r = 0; r < kThreadRows; ++r) b_.CreateStore(sums[r], sum_[r]);
    for (size_t i = 0; i < results.size(); ++i) {
      Value* const scaled = b_.CreateFMul(b_.CreateLoad(element_, results[i]), scale[static_cast<size_t>(row_of(i))]);
      b_.CreateStore(scaled, results[i]);
    }
    std::vector<Value*> out;
    for (size_t i = 0; i < weights.size(); i += 2) out.push_back(packed(weights[i], weights[i + 1]));
    return out;
  }

  Value* power_of_two(Value* x) { return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {x}); }

  /// Returns two weights, rounded to 16 bits, as one register.
  Value* packed(Value* low, Value* high) {
    const auto id =
        w_.type == COLLET_TYPE_BF16 ? llvm::Intrinsic::nvvm_ff2bf16x2_rn : llvm::Intrinsic::nvvm_ff2f16x2_rn;
    return b_.CreateBitCast(b_.CreateIntrinsic(id, {}, {high, low}), b_.getInt32Ty());
  }

  /// Divides the sums of the results by those of the weights, applies the epilogue, and stores the results.
  void store_tile(const std::vector<Value*>& results, Value* first_row) {
    std::vector<ExprId> stored;
    for (const Store& s : k_.stores) {
      stored.push_back(s.value);
      if (s.mask != kNoExpr) stored.push_back(s.mask);
      for (const auto& [term, scale] : s.index.terms) stored.push_back(term);
    }
    const std::vector<bool> needed = needed_for(stored);
    Value* const warp_row = b_.CreateMul(warp_number_, number(kWarpRows));
    Value* const own_sums = b_.CreateGEP(element_, row_sums_, warp_row);
    emit_warp_barrier(b_);
    for (size_t r = 0; r < kThreadRows; ++r) {
      Val sum{b_.CreateLoad(element_, sum_[r])};
      for (const int64_t distance : {1, 2})
        sum.v = b_.CreateFAdd(sum.v, of_thread(sum.v, Exchange::kFlipped, number(distance)));
      Value* const row = b_.CreateAdd(b_.CreateUDiv(lane_, number(4)), number(static_cast<int64_t>(8 * r)));
      branch(b_.CreateICmpEQ(b_.CreateURem(lane_, number(4)), number(0)),
             [&] { b_.CreateStore(sum.v, b_.CreateGEP(element_, own_sums, row)); });
    }
    Results what{a_.query, a_.value, w_.rows(), w_.columns, w_.lanes, first_row, own_row_, number(0), {}};
    what.compute = [&](Value* sum, Value* row) {
      set_reduced(2, b_.CreateLoad(element_, b_.CreateGEP(element_, own_sums, row)));
      set_reduced(3, sum);
      for (size_t k = 0; k < k_.exprs.size(); ++k) {
        if (needed[k] && k_.exprs[k].op != ExprOp::kReduced) vals_[k] = instruction(k_.exprs[k]);
      }
    };
    store_results(results, what);
  }

  const AttentionSchedule& a_;
  const WarpgroupAttention& w_;
  std::vector<bool> logit_needs_;
  bool is_plain_ = true;       ///< whether logits depend on nothing but their scores
  Value* query_at_ = nullptr;  ///< address of the queries in shared memory, i32
  Value* row_sums_ = nullptr;  ///< shared memory for the sums of the weights of each row
  Value* queries_full_ = nullptr;
  Value* queries_empty_ = nullptr;
  Value* decided_ = nullptr;  ///< barrier: all warps have decided which tiles are computed again
  Value* flags_ = nullptr;    ///< shared memory, see WarpgroupAttention::flag_bytes
  Value* own_row_ = nullptr;  ///< first row of this warp
  std::array<std::vector<Value*>, kThreadRows> row_loops_;
  // Variables of each row: the maximum of the logits, times log2(e), and the sum of this thread's weights.
  std::array<Value*, kThreadRows> maximum_{};
  std::array<Value*, kThreadRows> sum_{};
};

}  // namespace

void emit_warpgroup_attention(const GridKernel& kernel, llvm::Module& module, const Target& target,
                              llvm::Function* function) {
  AttentionByWarpgroups(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
