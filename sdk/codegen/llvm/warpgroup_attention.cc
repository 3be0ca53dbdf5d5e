// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "sdk/codegen/llvm/grid_function.h"
#include "sdk/codegen/llvm/scalar_ops.h"
#include "sdk/codegen/llvm/warpgroup_emitter.h"

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
    logit_needs_ = needed_for({a_.logit});
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const ExprOp op = k_.exprs[k].op;
      if (logit_needs_[k] && op != ExprOp::kConstant && op != ExprOp::kOp && op != ExprOp::kReduced) is_plain_ = false;
    }
    branch(b_.CreateICmpEQ(thread_, number(0)), [&] {
      code_.init_barrier(queries_full_, 1);
      code_.init_barrier(queries_empty_, static_cast<uint32_t>(kWarps * w_.consumers));
    });
    run([&] { produce(); }, [&] { consume(); });
  }

  int64_t row_tiles() const { return w_.tiles(a_) / a_.batch_count; }
  int64_t key_tiles() const { return (a_.key.count + w_.keys - 1) / w_.keys; }

  /// Emits a loop over the tiles of queries of this block. `parity` is that of the phases of the queries' barriers.
  void each_tile(const std::function<void(Value* first_row, Value* parity)>& body) {
    Value* const count = slot(b_.getInt32Ty());
    b_.CreateStore(word(0), count);
    loop(block_, number(w_.tiles(a_)), schedule_.blocks, [&](Value* tile) {
      set_loops(0, k_.outer, a_.batch, b_.CreateUDiv(tile, number(row_tiles())));
      Value* const n = b_.CreateLoad(b_.getInt32Ty(), count);
      body(b_.CreateMul(b_.CreateURem(tile, number(row_tiles())), number(w_.rows())), b_.CreateAnd(n, word(1)));
      b_.CreateStore(b_.CreateAdd(n, word(1)), count);
    });
  }

  void produce() {
    for (unsigned i = 0; i < 3; ++i) code_.prefetch_map(map(i));
    Value* const count = count_places();
    each_tile([&](Value* first_row, Value* parity) {
      wait(queries_empty_, b_.CreateXor(parity, word(1)));
      code_.arrive_with_bytes(queries_full_, w_.query_bytes());
      copy(w_.query, map(0), query_at_, w_.rows(), w_.depth, first_row, number(0), queries_full_);
      loop(number(0), number(key_tiles()), 1, [&](Value* key_tile) {
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
    each_tile([&](Value* first_row, Value* parity) {
      own_row_ = b_.CreateAdd(first_row, b_.CreateMul(warp_number_, number(kWarpRows)));
      set_rows();
      store_sums(results, std::vector<Value*>(results.size(), llvm::Constant::getNullValue(element_)));
      for (int r = 0; r < kThreadRows; ++r) {
        b_.CreateStore(minus_infinity(), maximum_[r]);
        b_.CreateStore(zero(), sum_[r]);
      }
      wait(queries_full_, parity);
      loop(number(0), number(key_tiles()), 1, [&](Value* key_tile) {
        const Turn keys = next_place(count);
        wait_until_full(keys);
        multiply_keys(own_query, address_of(keys.place), scores, results);
        release(keys.place);
        branch(b_.CreateICmpNE(key_tile, number(0)), [&] { release(b_.CreateLoad(b_.getInt32Ty(), before)); });
        const std::vector<Value*> weights = weigh(load_sums(scores), b_.CreateMul(key_tile, number(w_.keys)), results);
        const Turn values = next_place(count);
        wait_until_full(values);
        multiply_values(weights, address_of(values.place), results);
        b_.CreateStore(values.place, before);
      });
      store_sums(results, code_.finish_products(load_sums(results)));
      release(b_.CreateLoad(b_.getInt32Ty(), before));
      branch(b_.CreateICmpEQ(lane_, number(0)), [&] { code_.arrive(queries_empty_); });
      store_tile(load_sums(results), first_row);
    });
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
    // its error cancels in the quotient.
    Value* const log2e = ir_.constant(element_, 1.4426950408889634);
    std::array<Value*, kThreadRows> shift{}, scale{};
    for (size_t r = 0; r < kThreadRows; ++r) {
      Val most = largest[r];
      for (const int64_t distance : {1, 2})
        most = emit_combine(ir_, COLLET_COMBINE_MAXIMUM, kF32, most,
                            of_thread(most, Exchange::kFlipped, number(distance)));
      Value* const old = b_.CreateLoad(element_, maximum_[r]);
      Value* const now = emit_combine(ir_, COLLET_COMBINE_MAXIMUM, kF32, {old}, {b_.CreateFMul(most.v, log2e)}).v;
      b_.CreateStore(now, maximum_[r]);
      // If all logits so far are minus infinity, the weights must be 0; the difference of two infinities would give NaN.
      shift[r] = b_.CreateFNeg(b_.CreateSelect(b_.CreateFCmpOEQ(now, minus_infinity()), zero(), now));
      scale[r] = power_of_two(b_.CreateFAdd(old, shift[r]));
    }
    std::array<Value*, kThreadRows> sums{};
    for (size_t r = 0; r < kThreadRows; ++r) sums[r] = b_.CreateFMul(b_.CreateLoad(element_, sum_[r]), scale[r]);
    std::vector<Value*> weights;
    for (size_t i = 0; i < logits.size(); ++i) {
      const auto r = static_cast<size_t>(row_of(i));
      weights.push_back(
          power_of_two(b_.CreateIntrinsic(llvm::Intrinsic::fma, {element_}, {logits[i], log2e, shift[r]})));
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
