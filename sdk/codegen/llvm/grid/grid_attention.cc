// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "sdk/codegen/llvm/product/product_emitter.h"
#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {
namespace {

constexpr uint32_t kF32 = COLLET_TYPE_F32;

/// Emits attention: each block computes the results of some queries, see AttentionSchedule. The sums of the results
/// stay in registers during the loop over tiles of keys. Logits and weights of a tile are stored in shared memory,
/// where a few threads share each row.
class AttentionEmitter final : public ProductEmitter {
 public:
  AttentionEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : ProductEmitter(kernel, module, target, function), a_(schedule_.attention) {}

 private:
  void thread() override {
    const int64_t rows = a_.scores.rows;
    query_ = operand(a_.query, a_.score_type, kF32, rows, a_.score_steps);
    key_ = operand(a_.key, a_.score_type, kF32, a_.scores.columns, a_.score_steps);
    value_ = operand(a_.value, a_.result_type, kF32, a_.results.columns, a_.scores.columns);
    weights_ = a_.weight_storage();
    weight_type_ = a_.result_type != 0 ? ir_.storage(a_.result_type) : b_.getFloatTy();
    logit_needs_ = needed_for({a_.logit});
    divide_memory();
    const auto make_slot = [this](Type* t) { return slot(t); };
    scores_.emplace(ir_, a_.scores, a_.score_type, kF32, true, thread_, make_slot);
    results_.emplace(ir_, a_.results, a_.result_type, kF32, true, thread_, make_slot);
    maximum_ = slot(b_.getFloatTy());
    sum_ = slot(b_.getFloatTy());
    row_threads_ = a_.block_threads() / rows;
    own_row_ = b_.CreateUDiv(thread_, number(row_threads_));
    own_lane_ = b_.CreateURem(thread_, number(row_threads_));

    set_loops(0, k_.outer, a_.batch, b_.CreateUDiv(block_, number(a_.row_tiles())));
    first_row_ = b_.CreateMul(b_.CreateURem(block_, number(a_.row_tiles())), number(rows));
    bring_tile(query_, query_at_, first_row_, number(0));
    results_->clear();
    b_.CreateStore(minus_infinity(), maximum_);
    b_.CreateStore(ir_.constant(b_.getFloatTy(), 0), sum_);
    if (a_.copies_ahead) start_copies(key_, key_at_, number(0), number(0));
    loop(number(0), number(a_.key_tiles()), 1, [&](Value* key_tile) {
      first_key_ = b_.CreateMul(key_tile, number(a_.scores.columns));
      a_.copies_ahead ? take_copied_keys(key_tile) : take_keys();
    });
    barrier();
    branch(b_.CreateICmpEQ(own_lane_, number(0)),
           [&] { b_.CreateStore(b_.CreateLoad(b_.getFloatTy(), sum_), factor_of(own_row_)); });
    store_results();
  }

  void divide_memory() {
    memory_ = block_memory(a_.shared_bytes());
    int64_t offset = 0;
    const auto take = [&](int64_t bytes) {
      Value* const at = behind(memory_, number(offset));
      offset += bytes;
      return at;
    };
    query_at_ = take(query_.storage.bytes());
    key_at_ = take(a_.copies_ahead ? key_.storage.bytes() : std::max(key_.storage.bytes(), value_.storage.bytes()));
    value_at_ = a_.copies_ahead ? take(value_.storage.bytes()) : key_at_;
    weight_at_ = take(weights_.bytes());
    logit_at_ = a_.has_own_logits() ? take(a_.scores.rows * a_.logit_pitch() * 4) : weight_at_;
    const int64_t factors = int64_t{a_.scores.rows} * 4;
    factor_at_ = behind(memory_, number(a_.shared_bytes() - factors));
  }

  Value* minus_infinity() { return ir_.constant(b_.getFloatTy(), -std::numeric_limits<double>::infinity()); }

  /// Processes a tile of keys and their values, which are loaded one after the other into the same memory.
  void take_keys() {
    barrier();  // after all threads have read the previous values
    bring_tile(key_, key_at_, first_key_, number(0));
    barrier();
    put_logits();
    barrier();
    bring_tile(value_, value_at_, number(0), first_key_);
    weigh_row();
    barrier();
    add_results();
  }

  /// Processes a tile of keys whose asynchronous copies have been started, and their values. Starts the copies of the
  /// next tile of keys.
  void take_copied_keys(Value* key_tile) {
    wait_for_copies(0);
    barrier();  // after all threads have read the previous values, too
    start_copies(value_, value_at_, number(0), first_key_);
    put_logits();
    barrier();
    Value* const exists = b_.CreateICmpSLT(key_tile, number(a_.key_tiles() - 1));
    Value* const next_key = b_.CreateAdd(first_key_, number(a_.scores.columns));
    branch(exists, [&] { begin_copies(key_, key_at_, next_key, number(0)); });
    commit_copies();
    weigh_row();
    wait_for_copies(1);
    barrier();
    add_results();
  }

  void start_copies(const Operand& o, Value* base, Value* first, Value* depth) {
    begin_copies(o, base, first, depth);
    commit_copies();
  }

  /// Computes the logits of a tile from the keys in shared memory, and stores them there.
  void put_logits() {
    scores_->clear();
    scores_->multiply({query_at_, query_.storage}, {key_at_, key_.storage}, a_.score_steps);
    for (const BlockProduct::Held& h : scores_->held()) put_logit(h);
  }

  /// Scales the sums of the results so far, and adds the values of the tile, multiplied by their weights.
  void add_results() {
    for (const BlockProduct::Held& h : results_->held()) {
      Value* const factor = b_.CreateLoad(b_.getFloatTy(), factor_of(h.row));
      b_.CreateStore(b_.CreateFMul(b_.CreateLoad(b_.getFloatTy(), h.sum), factor), h.sum);
    }
    results_->multiply({weight_at_, weights_}, {value_at_, value_.storage}, a_.scores.columns);
  }

  /// Computes the logit of a score, and stores it. Behind the last key it is minus infinity, so that the weight is 0.
  void put_logit(const BlockProduct::Held& h) {
    Value* const key = b_.CreateAdd(first_key_, h.column);
    set_loops(0, k_.loops.size(), a_.query.loops, at_most(b_.CreateAdd(first_row_, h.row), a_.query.count - 1));
    set_loops(0, k_.loops.size(), a_.key.loops, at_most(key, a_.key.count - 1));
    set_reduced(0, b_.CreateLoad(b_.getFloatTy(), h.sum));
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (logit_needs_[k] && k_.exprs[k].op != ExprOp::kReduced) vals_[k] = instruction(k_.exprs[k]);
    }
    Value* const inside = b_.CreateICmpULT(key, number(a_.key.count));
    b_.CreateStore(b_.CreateSelect(inside, val(a_.logit).v, minus_infinity()), logit_of(h.row, h.column));
  }

  /// Converts the logits of a row to weights; the threads of the row share the work. Sets the factor by which the row's
  /// sums so far must be scaled.
  void weigh_row() {
    const int64_t each = a_.scores.columns / row_threads_;
    const auto column = [&](int64_t i) { return b_.CreateAdd(number(i * row_threads_), own_lane_); };
    const auto over_row = [&](Val x, uint32_t combine) {
      for (int64_t distance = row_threads_ / 2; distance > 0; distance /= 2)
        x = emit_combine(ir_, combine, kF32, x, of_thread(x, Exchange::kFlipped, number(distance)));
      return x;
    };
    std::vector<Value*> logits;
    Val largest{minus_infinity()};
    for (int64_t i = 0; i < each; ++i) {
      logits.push_back(b_.CreateLoad(b_.getFloatTy(), logit_of(own_row_, column(i))));
      largest = emit_combine(ir_, COLLET_COMBINE_MAXIMUM, kF32, largest, {logits.back()});
    }
    Value* const before = b_.CreateLoad(b_.getFloatTy(), maximum_);
    Value* const now =
        emit_combine(ir_, COLLET_COMBINE_MAXIMUM, kF32, {before}, over_row(largest, COLLET_COMBINE_MAXIMUM)).v;
    b_.CreateStore(now, maximum_);
    // If all logits so far are minus infinity, the weights must be 0; the difference of two infinities would give NaN.
    Value* const none = b_.CreateFCmpOEQ(now, minus_infinity());
    Value* const shift = b_.CreateSelect(none, ir_.constant(b_.getFloatTy(), 0), now);
    Val sum{ir_.constant(b_.getFloatTy(), 0)};
    for (int64_t i = 0; i < each; ++i) {
      Value* const x = exponential(b_.CreateFSub(logits[static_cast<size_t>(i)], shift));
      sum = emit_combine(ir_, COLLET_COMBINE_ADD, kF32, sum, {x});
      b_.CreateStore(weight(), weight_of(own_row_, column(i)));
    }
    Value* const factor = exponential(b_.CreateFSub(before, shift));
    Value* const all = over_row(sum, COLLET_COMBINE_ADD).v;
    b_.CreateStore(b_.CreateFAdd(b_.CreateFMul(b_.CreateLoad(b_.getFloatTy(), sum_), factor), all), sum_);
    branch(b_.CreateICmpEQ(own_lane_, number(0)), [&] { b_.CreateStore(factor, factor_of(own_row_)); });
  }

  Value* exponential(Value* exponent) {
    const Expr& e = k_.exprs[static_cast<size_t>(a_.exponential)];
    vals_[static_cast<size_t>(e.args[0])] = {exponent};
    vals_[static_cast<size_t>(a_.exponential)] = instruction(e);
    return val(a_.exponential).v;
  }

  /// Returns the weight, computed last by the exponential, in the type in which it is multiplied.
  Value* weight() {
    std::vector<ExprId> conversions;
    for (ExprId e = a_.weight.value; e != a_.exponential; e = k_.exprs[static_cast<size_t>(e)].args[0])
      conversions.push_back(e);
    for (size_t i = conversions.size(); i-- > 0;) {
      const auto e = static_cast<size_t>(conversions[i]);
      vals_[e] = instruction(k_.exprs[e]);
    }
    const Val& v = val(a_.weight.value);
    return a_.result_type != 0 ? ir_.to_storage(v, a_.result_type) : v.v;
  }

  /// Divides the sums of the results by those of the weights, applies the epilogue, and stores the results. The sums go
  /// through shared memory, so that neighbouring threads store neighbouring results.
  void store_results() {
    std::vector<ExprId> stored;
    for (const Store& s : k_.stores) {
      stored.push_back(s.value);
      if (s.mask != kNoExpr) stored.push_back(s.mask);
      for (const auto& [term, scale] : s.index.terms) stored.push_back(term);
    }
    const std::vector<bool> needed = needed_for(stored);
    const int64_t columns = a_.results.columns;
    const auto place = [&](Value* row, Value* column) {
      return b_.CreateGEP(b_.getFloatTy(), memory_, b_.CreateAdd(b_.CreateMul(row, number(columns)), column));
    };
    for (const BlockProduct::Held& h : results_->held())
      b_.CreateStore(b_.CreateLoad(b_.getFloatTy(), h.sum), place(h.row, h.column));
    barrier();
    loop(thread_, number(a_.results.rows * columns), schedule_.block_threads, [&](Value* i) {
      Value* const row_of_tile = b_.CreateUDiv(i, number(columns));
      Value* const column = b_.CreateURem(i, number(columns));
      Value* const row = b_.CreateAdd(first_row_, row_of_tile);
      Value* const has_row = b_.CreateICmpULT(row, number(a_.query.count));
      branch(b_.CreateAnd(has_row, b_.CreateICmpULT(column, number(a_.value.count))), [&] {
        set_loops(0, k_.outer, a_.query.loops, row);
        set_loops(0, k_.outer, a_.value.loops, column);
        set_reduced(2, b_.CreateLoad(b_.getFloatTy(), factor_of(row_of_tile)));
        set_reduced(3, b_.CreateLoad(b_.getFloatTy(), place(row_of_tile, column)));
        for (size_t k = 0; k < k_.exprs.size(); ++k) {
          if (needed[k] && k_.exprs[k].op != ExprOp::kReduced) vals_[k] = instruction(k_.exprs[k]);
        }
        for (const Store& s : k_.stores) store(s);
      });
    });
  }

  Value* factor_of(Value* row) { return b_.CreateGEP(b_.getFloatTy(), factor_at_, row); }

  Value* weight_of(Value* row, Value* column) {
    Value* const line = weights_.lines_of_depth ? column : row;
    Value* const x = weights_.lines_of_depth ? row : column;
    return b_.CreateGEP(weight_type_, weight_at_, b_.CreateAdd(b_.CreateMul(line, number(weights_.pitch)), x));
  }

  Value* logit_of(Value* row, Value* column) {
    if (!a_.has_own_logits()) return weight_of(row, column);
    return b_.CreateGEP(b_.getFloatTy(), logit_at_, b_.CreateAdd(b_.CreateMul(row, number(a_.logit_pitch())), column));
  }

  const AttentionSchedule& a_;
  Operand query_, key_, value_;
  TileStorage weights_;
  Type* weight_type_ = nullptr;
  std::vector<bool> logit_needs_;
  std::optional<BlockProduct> scores_;
  std::optional<BlockProduct> results_;
  Value* memory_ = nullptr;  ///< shared memory of the block
  // Addresses in the shared memory.
  Value* query_at_ = nullptr;
  Value* key_at_ = nullptr;
  Value* value_at_ = nullptr;  ///< equals key_at_ unless copies run ahead
  Value* weight_at_ = nullptr;
  Value* logit_at_ = nullptr;
  Value* factor_at_ = nullptr;  ///< for each row, the factor by which its sums of results must be scaled
  // The maximum of the logits and the sum of the weights of the row that this thread shares with its neighbours.
  Value* maximum_ = nullptr;
  Value* sum_ = nullptr;
  Value* own_row_ = nullptr;
  Value* own_lane_ = nullptr;
  int64_t row_threads_ = 1;
  Value* first_row_ = nullptr;
  Value* first_key_ = nullptr;
};

}  // namespace

void emit_grid_attention(const GridKernel& kernel, llvm::Module& module, const Target& target,
                         llvm::Function* function) {
  AttentionEmitter(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
