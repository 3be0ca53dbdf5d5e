// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/grid/grid_emitter.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/llvm/grid/grid_function.h"
#include "sdk/codegen/llvm/kernel/emit.h"
#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {
void GridEmitter::emit() {
  contracts_ = std::any_of(k_.reductions.begin(), k_.reductions.end(), [](const Reduction& r) { return r.contract; });
  b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.context(), "entry", function_));
  for (uint32_t i = 0; i < k_.buffers; ++i) bases_.push_back(function_->getArg(i));
  vals_.resize(k_.exprs.size());
  iv_plus_.assign(k_.loops.size(), 0);
  iv_.assign(k_.loops.size(), number(0));
  thread_ = emit_thread_number(b_);
  block_ = emit_block_number(b_);
  thread();
  b_.CreateRetVoid();
}

int64_t GridEmitter::turns_of(size_t l) const {
  return l == k_.lane_loop && k_.lanes > 1 ? k_.loops[l].size / k_.lanes : k_.loops[l].size;
}

int64_t GridEmitter::size_of(size_t first, size_t last, uint64_t chosen) const {
  int64_t n = 1;
  for (size_t l = first; l < last; ++l) {
    if ((chosen >> l & 1) != 0) n *= turns_of(l);
  }
  return n;
}

void GridEmitter::set_loops(size_t first, size_t last, uint64_t chosen, Value* point) {
  // Divisions of 32 bits are far faster than those of 64.
  const bool narrow = size_of(first, last, chosen) <= std::numeric_limits<int32_t>::max();
  Type* const t = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* left = narrow ? b_.CreateTrunc(point, t) : point;
  for (size_t l = last; l-- > first;) {
    if ((chosen >> l & 1) == 0) continue;
    Value* const size = llvm::ConstantInt::get(t, static_cast<uint64_t>(turns_of(l)));
    const bool is_first = size_of(first, l, chosen) == 1;
    Value* const own = is_first ? left : b_.CreateURem(left, size);
    iv_[l] = turns_of(l) == 1 ? number(0) : b_.CreateZExt(own, b_.getInt64Ty());
    if (turns_of(l) != k_.loops[l].size) iv_[l] = b_.CreateMul(iv_[l], number(k_.lanes));
    if (!is_first) left = b_.CreateUDiv(left, size);
  }
}

void GridEmitter::outer_values() {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (passes_.level_of(static_cast<ExprId>(k)) < k_.outer && k_.exprs[k].op != ExprOp::kReduced)
      vals_[k] = instruction(k_.exprs[k]);
  }
}

void GridEmitter::values_of_stage(int stage) {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const auto id = static_cast<ExprId>(k);
    if (passes_.level_of(id) <= k_.outer && passes_.stage_of(id) == stage && k_.exprs[k].op != ExprOp::kReduced)
      vals_[k] = instruction(k_.exprs[k]);
  }
}

void GridEmitter::set_reduced(int64_t reduction, Value* x) {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& e = k_.exprs[k];
    if (e.op == ExprOp::kReduced && e.b == reduction)
      vals_[k] = {is_narrow_float(e.type) ? ir_.round_narrow(x, e.type) : x};
  }
}

std::vector<bool> GridEmitter::needed_for(const std::vector<ExprId>& values) const {
  std::vector<bool> needed(k_.exprs.size(), false);
  for (ExprId v : values) needed[static_cast<size_t>(v)] = true;
  for (size_t k = needed.size(); k-- > 0;) {
    if (!needed[k]) continue;
    const Expr& e = k_.exprs[k];
    for (ExprId a : e.args) needed[static_cast<size_t>(a)] = true;
    for (const auto& [term, scale] : e.index.terms) needed[static_cast<size_t>(term)] = true;
    if (e.mask != kNoExpr) needed[static_cast<size_t>(e.mask)] = true;
  }
  return needed;
}

void GridEmitter::barrier() {
  emit_barrier(b_);
}

Val GridEmitter::of_thread(const Val& x, Exchange which, Value* distance) {
  return {of_thread(x.v, which, distance), x.im ? of_thread(x.im, which, distance) : nullptr};
}

llvm::Value* GridEmitter::of_thread(Value* x, Exchange which, Value* distance) {
  Type* const t = x->getType();
  if (t->getScalarSizeInBits() == 64) {
    Value* const whole = t->isDoubleTy() ? b_.CreateBitCast(x, b_.getInt64Ty()) : x;
    Value* const low = of_thread(b_.CreateTrunc(whole, b_.getInt32Ty()), which, distance);
    Value* const high = of_thread(b_.CreateTrunc(b_.CreateLShr(whole, number(32)), b_.getInt32Ty()), which, distance);
    Value* const both = b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()),
                                    b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), number(32)));
    return t->isDoubleTy() ? b_.CreateBitCast(both, t) : both;
  }
  const auto id = which == Exchange::kFlipped  ? llvm::Intrinsic::nvvm_shfl_sync_bfly_i32
                  : which == Exchange::kBefore ? llvm::Intrinsic::nvvm_shfl_sync_up_i32
                                               : llvm::Intrinsic::nvvm_shfl_sync_idx_i32;
  const uint32_t limit = which == Exchange::kBefore ? 0 : 0x1f;
  Value* const word = t->isFloatTy() ? b_.CreateBitCast(x, b_.getInt32Ty()) : b_.CreateZExt(x, b_.getInt32Ty());
  Value* const other = b_.CreateIntrinsic(
      id, {}, {b_.getInt32(~0U), word, b_.CreateTrunc(distance, b_.getInt32Ty()), b_.getInt32(limit)});
  return t->isFloatTy() ? b_.CreateBitCast(other, t) : b_.CreateTrunc(other, t);
}

llvm::GlobalVariable* GridEmitter::shared_array(Type* t, int64_t elements) {
  return make_shared_array(function_, t, elements);
}

namespace {

/// Computes each point of the outer loops by one thread or by a group of threads.
class PointEmitter final : public GridEmitter {
 public:
  PointEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : GridEmitter(kernel, module, target, function), rows_(schedule_.form == GridSchedule::Form::kRows) {}

 private:
  void thread() override { rows_ ? all_rows() : all_points(); }

  /// Emits one thread for each point of the parallel loops.
  void all_points() {
    const int64_t points = size_of(0, k_.outer, schedule_.parallel);
    Value* const first = b_.CreateAdd(b_.CreateMul(block_, number(schedule_.block_threads)), thread_);
    const int64_t all = int64_t{schedule_.blocks} * schedule_.block_threads;
    const auto body = [&](Value* point) {
      set_loops(0, k_.outer, schedule_.parallel, point);
      in_order(0);
    };
    if (points <= all) {
      branch(b_.CreateICmpSLT(first, number(points)), [&] { body(first); });
      return;
    }
    const int64_t several = all * schedule_.together;
    const int64_t turns = schedule_.together == 1 ? 0 : points / several;
    loop(number(0), number(turns), 1,
         [&](Value* turn) { together(b_.CreateAdd(first, b_.CreateMul(turn, number(several))), all); });
    loop(b_.CreateAdd(first, number(turns * several)), number(points), all, body);
  }

  /// Computes points that are `distance` apart. All loads come before the stores, so that they are in progress at the same
  /// time.
  void together(Value* first, int64_t distance) {
    struct Point {
      std::vector<Val> values;
      std::vector<Value*> loops;
    };
    std::vector<Point> points;
    lanes_ = k_.lanes;
    for (int i = 0; i < schedule_.together; ++i) {
      set_loops(0, k_.outer, schedule_.parallel, b_.CreateAdd(first, number(i * distance)));
      outer_values();
      stages();
      points.push_back({vals_, iv_});
    }
    for (const Point& p : points) {
      vals_ = p.values;
      iv_ = p.loops;
      for (const Store& s : k_.stores) {
        if (!passes_.is_inner(s)) store(s);  // the others were stored in their loops
      }
    }
  }

  /// Emits the outer loops that are not parallel, from loop `l` on. A thread runs them in order.
  void in_order(size_t l) {
    while (l < k_.outer && (schedule_.parallel >> l & 1) != 0) ++l;
    if (l == k_.outer) return at_point();
    loop(number(0), number(k_.loops[l].size), 1, [&](Value* i) {
      iv_[l] = i;
      in_order(l + 1);
    });
  }

  void at_point() {
    lanes_ = k_.lanes;
    outer_values();
    k_.scan ? scan() : side_iterations();
  }

  /// Emits a group of threads for each point of the outer loops.
  void all_rows() {
    const int64_t rows = size_of(0, k_.outer, schedule_.parallel);
    const int64_t groups = schedule_.block_threads / schedule_.group;
    Value* first = block_;
    lane_ = thread_;
    if (groups > 1) {
      first = b_.CreateAdd(b_.CreateMul(block_, number(groups)), b_.CreateUDiv(thread_, number(schedule_.group)));
      lane_ = b_.CreateURem(thread_, number(schedule_.group));
    }
    loop(first, number(rows), groups * schedule_.blocks, [&](Value* row) {
      set_loops(0, k_.outer, schedule_.parallel, row);
      outer_values();
      if (k_.scan) return scan_row();
      stages();
      branch(b_.CreateICmpEQ(lane_, number(0)), [&] {
        for (const Store& s : k_.stores) {
          if (!passes_.is_inner(s)) store(s);
        }
      });
    });
  }

  /// Scans a row: in each step the group's threads scan as many adjacent elements.
  void scan_row() {
    const Scan& s = *k_.scan;
    const Reduction& r = s.reduction;
    const uint32_t type = r.types[0];
    const size_t l = k_.outer;
    const int64_t size = k_.loops[l].size;
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (passes_.level_of(static_cast<ExprId>(k)) == l) vals_[k] = instruction(k_.exprs[k]);
    }
    const Val identity = combine_identity(ir_, r.combine, type);
    const std::vector<Value*> so_far = make_slots(r, 1);
    const std::vector<Value*> own = make_slots(r, 1);
    put(so_far, 0, r.inits[0] == kNoExpr ? identity : val(r.inits[0]));
    const auto combine = [&](const Val& p, const Val& q) { return emit_combine(ir_, r.combine, type, p, q); };
    loop(number(0), number(size), schedule_.group, [&](Value* first) {
      Value* const at = b_.CreateAdd(first, lane_);
      iv_[l] = s.reverse ? b_.CreateSub(number(size - 1), at) : at;
      Value* const inside = b_.CreateICmpSLT(at, number(size));
      put(own, 0, identity);
      branch(inside, [&] {
        scan_values();
        Val x = val(r.inputs[0]);
        if (Value* on = condition_mask(r.condition)) x = ir_.select(on, x, identity);
        put(own, 0, x);
      });
      Val x = scan_warp(get(own, 0, type, 1), combine);
      Val all = of_thread(x, Exchange::kNumber, number(warp_ - 1));
      if (schedule_.group > warp_) {
        Value* const warp = b_.CreateUDiv(thread_, number(warp_));
        const Val sums = scan_warp(share_totals(all, identity), combine);
        const Val before = of_thread(sums, Exchange::kNumber, b_.CreateSub(warp, number(1)));
        x = combine(ir_.select(b_.CreateICmpEQ(warp, number(0)), identity, before), x);
        all = of_thread(sums, Exchange::kNumber, number(schedule_.group / warp_ - 1));
      }
      const Val old = get(so_far, 0, type, 1);
      Val result = combine(old, x);
      put(so_far, 0, combine(old, all));
      if (is_narrow_float(type)) result.v = ir_.round_narrow(result.v, type);
      branch(inside, [&] {
        scan_values();
        for (size_t k = 0; k < k_.exprs.size(); ++k) {
          if (k_.exprs[k].op == ExprOp::kScanned) vals_[k] = result;
        }
        for (const Store& store_at : k_.stores) store(store_at);
      });
    });
  }

  void scan_values() {
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (passes_.level_of(static_cast<ExprId>(k)) > k_.outer && k_.exprs[k].op != ExprOp::kScanned)
        vals_[k] = instruction(k_.exprs[k]);
    }
  }

  /// Computes the inclusive scan over the threads of a warp.
  Val scan_warp(Val x, const std::function<Val(const Val&, const Val&)>& combine) {
    Value* const lane = b_.CreateURem(thread_, number(warp_));
    for (int distance = 1; distance < warp_; distance *= 2) {
      const Val before = of_thread(x, Exchange::kBefore, number(distance));
      x = ir_.select(b_.CreateICmpUGE(lane, number(distance)), combine(before, x), x);
    }
    return x;
  }

  /// Emits the points of the inner loops that this thread computes.
  void inner(size_t l, int pass, std::vector<Accumulator>& accumulators) override {
    if (!rows_ || l != k_.outer) return KernelEmitter::inner(l, pass, accumulators);
    const int64_t points = size_of(k_.outer, k_.loops.size(), ~uint64_t{0});
    lanes_ = k_.lanes;
    const auto body = [&](Value* point) {
      set_loops(k_.outer, k_.loops.size(), ~uint64_t{0}, point);
      for (size_t k = 0; k < k_.exprs.size(); ++k) {
        if (passes_.level_of(static_cast<ExprId>(k)) > k_.outer && passes_.needs(pass, k))
          vals_[k] = instruction(k_.exprs[k]);
      }
      for (Accumulator& a : accumulators) accumulate(a);
      for (const Store& s : k_.stores) {
        if (passes_.is_inner(s) && passes_.pass_of(s) == pass) store(s);
      }
    };
    begun_.clear();
    for (const Accumulator& a : accumulators) {
      if (k_.reductions[a.reduction].combine != COLLET_COMBINE_OTHER) continue;
      begun_[a.reduction] = slot(b_.getInt1Ty());
      b_.CreateStore(b_.getFalse(), begun_[a.reduction]);
    }
    if (schedule_.kept > 0) {
      inner_in_registers(pass, points, accumulators);
    } else if (!schedule_.in_order) {
      loop(lane_, number(points), schedule_.group, body);
    } else {
      const int64_t each = (points + schedule_.group - 1) / schedule_.group;
      Value* const first = b_.CreateMul(lane_, number(each));
      Value* const last = ir_.binary(llvm::Intrinsic::smin, b_.CreateAdd(first, number(each)), number(points));
      loop(first, last, 1, body);
    }
    lanes_ = 1;
  }

  /// The same as `inner`, unrolled: values that an earlier pass computed at this thread's points are still in
  /// registers.
  void inner_in_registers(int pass, int64_t points, std::vector<Accumulator>& accumulators) {
    const bool partial = points % schedule_.group != 0;
    std::vector<std::vector<Val>> values;
    std::vector<std::vector<Value*>> loops;
    std::vector<Value*> inside;
    for (int64_t i = 0; i < schedule_.kept; ++i) {
      Value* point = b_.CreateAdd(lane_, number(i * schedule_.group));
      const bool is_last = partial && i + 1 == schedule_.kept;
      inside.push_back(is_last ? b_.CreateICmpSLT(point, number(points)) : nullptr);
      if (is_last) point = b_.CreateSelect(inside.back(), point, number(points - 1));
      set_loops(k_.outer, k_.loops.size(), ~uint64_t{0}, point);
      for (size_t k = 0; k < k_.exprs.size(); ++k) {
        if (passes_.level_of(static_cast<ExprId>(k)) <= k_.outer || !passes_.needs(pass, k)) continue;
        const auto [it, fresh] = known_.try_emplace({k, {i}});
        if (fresh) it->second = instruction(k_.exprs[k]);
        vals_[k] = it->second;
      }
      values.push_back(vals_);
      loops.push_back(iv_);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      vals_ = values[i];
      iv_ = loops[i];
      const auto use = [&] {
        for (Accumulator& a : accumulators) accumulate(a);
        for (const Store& s : k_.stores) {
          if (passes_.is_inner(s) && passes_.pass_of(s) == pass) store(s);
        }
      };
      inside[i] ? branch(inside[i], use) : use();
    }
  }

  /// For a reduction with a body, the accumulator of a thread starts with its first element, because a thread begins in
  /// the middle of the row. Later elements are combined with it.
  void accumulate(Accumulator& a) override {
    const Reduction& r = k_.reductions[a.reduction];
    if (!rows_ || r.combine != COLLET_COMBINE_OTHER) return KernelEmitter::accumulate(a);
    std::vector<Val> held;
    std::vector<Val> fresh;
    for (size_t i = 0; i < r.types.size(); ++i) {
      held.push_back(get(a.slots, i, r.types[i], 1));
      fresh.push_back(val(r.inputs[i]));
    }
    Value* const on = condition_mask(r.condition);
    Value* const begun = b_.CreateLoad(b_.getInt1Ty(), begun_[a.reduction]);
    const std::vector<Val> both = combined(r, held, fresh, emit_both(ir_, begun, on));
    for (size_t i = 0; i < held.size(); ++i) {
      const Val next = ir_.select(begun, both[i], fresh[i]);
      put(a.slots, i, on ? ir_.select(on, next, held[i]) : next);
    }
    b_.CreateStore(on ? b_.CreateOr(begun, on) : b_.getTrue(), begun_[a.reduction]);
  }

  std::vector<Val> combined(const Reduction& r, std::vector<Val> x, const std::vector<Val>& y, Value* active) {
    x.insert(x.end(), y.begin(), y.end());
    return emit_body(ir_, r.body, x, active);
  }

  void finish(const Accumulator& a, int outer_lanes) override {
    const Reduction& r = k_.reductions[a.reduction];
    if (!rows_ || r.combine != COLLET_COMBINE_OTHER) return KernelEmitter::finish(a, outer_lanes);
    std::vector<Val> x;
    for (size_t i = 0; i < r.types.size(); ++i) x.push_back(get(a.slots, i, r.types[i], 1));
    Value* begun = b_.CreateLoad(b_.getInt1Ty(), begun_[a.reduction]);
    combine_in_order(r, x, begun);
    if (schedule_.group > warp_) {
      for (Val& v : x) v = share_totals(v, v);
      begun = share_totals({begun}, {b_.getFalse()}).v;
      combine_in_order(r, x, begun);
    }
    std::vector<Val> initial;
    for (ExprId init : r.inits) initial.push_back(val(init));
    const std::vector<Val> all = combined(r, initial, x, begun);
    for (size_t i = 0; i < x.size(); ++i) x[i] = ir_.select(begun, all[i], initial[i]);
    finish_reduction(a.reduction, std::move(x));
  }

  /// Combines the accumulators of the threads of a warp by a body, in the order of the threads. `begun` is true for a
  /// thread that has an accumulator. All threads get the result.
  void combine_in_order(const Reduction& r, std::vector<Val>& x, Value*& begun) {
    Value* const lane = b_.CreateURem(thread_, number(warp_));
    for (int distance = 1; distance < warp_; distance *= 2) {
      // A thread whose number is a multiple of 2 * distance combines its value with that of the second half.
      Value* const from = b_.CreateAnd(b_.CreateAdd(lane, number(distance)), number(warp_ - 1));
      std::vector<Val> other;
      for (const Val& v : x) other.push_back(of_thread(v, Exchange::kNumber, from));
      Value* const theirs = of_thread(begun, Exchange::kNumber, from);
      const std::vector<Val> both = combined(r, x, other, b_.CreateAnd(begun, theirs));
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = ir_.select(b_.CreateAnd(begun, theirs), both[i], ir_.select(begun, x[i], other[i]));
      begun = b_.CreateOr(begun, theirs);
    }
    for (Val& v : x) v = of_thread(v, Exchange::kNumber, number(0));
    begun = of_thread(begun, Exchange::kNumber, number(0));
  }

  Val total(const Accumulator& a, size_t result, int outer_lanes) override {
    const Val own = KernelEmitter::total(a, result, outer_lanes);
    return rows_ ? combine_threads(k_.reductions[a.reduction], result, own) : own;
  }

  /// Combines the values of all threads of a group, and gives all of them the result. The order of combination is
  /// always the same.
  Val combine_threads(const Reduction& r, size_t result, Val x) {
    const uint32_t type = r.types[result];
    const auto combine = [&](const Val& p, const Val& q) { return emit_combine(ir_, r.combine, type, p, q); };
    // The other known combinations are commutative.
    const bool is_commutative = r.combine != COLLET_COMBINE_FIRST && r.combine != COLLET_COMBINE_SECOND;
    x = combine_warp(x, combine, is_commutative);
    const int warps = schedule_.group / warp_;
    if (warps == 1) return x;
    // Each warp combines the results of all warps.
    return combine_warp(share_totals(x, combine_identity(ir_, r.combine, type)), combine, is_commutative);
  }

  /// Shares one value of each warp of the block with all warps: thread `i` of each warp gets the value of warp `i`, or
  /// `otherwise` if there is no such warp.
  Val share_totals(const Val& x, const Val& otherwise) {
    const int warps = schedule_.group / warp_;
    Value* const lane = b_.CreateURem(thread_, number(warp_));
    Value* const warp = b_.CreateUDiv(thread_, number(warp_));
    std::vector<Value*> parts{x.v};
    if (x.im) parts.push_back(x.im);
    std::vector<llvm::GlobalVariable*> shared;
    for (size_t i = 0; i < parts.size(); ++i) {
      llvm::GlobalVariable*& array = totals_[{stored_type(parts[i]), i}];
      if (!array) array = shared_array(stored_type(parts[i]), warps);
      shared.push_back(array);
    }
    branch(b_.CreateICmpEQ(lane, number(0)), [&] {
      for (size_t i = 0; i < parts.size(); ++i) {
        Value* const to = b_.CreateGEP(stored_type(parts[i]), shared[i], warp);
        const bool is_pred = parts[i]->getType()->isIntegerTy(1);
        b_.CreateStore(is_pred ? b_.CreateZExt(parts[i], b_.getInt8Ty()) : parts[i], to);
      }
    });
    barrier();
    Value* const inside = b_.CreateICmpULT(lane, number(warps));
    Value* const from = b_.CreateSelect(inside, lane, number(0));
    Val read;
    for (size_t i = 0; i < parts.size(); ++i) {
      Type* const t = stored_type(parts[i]);
      Value* v = b_.CreateLoad(t, b_.CreateGEP(t, shared[i], from));
      if (parts[i]->getType()->isIntegerTy(1)) v = b_.CreateTrunc(v, b_.getInt1Ty());
      (i == 0 ? read.v : read.im) = b_.CreateSelect(inside, v, i == 0 ? otherwise.v : otherwise.im);
    }
    barrier();  // before the memory is used again
    return read;
  }

  Val combine_warp(Val x, const std::function<Val(const Val&, const Val&)>& combine, bool is_commutative) {
    for (int distance = warp_ / 2; distance > 0; distance /= 2) {
      const Val other = of_thread(x, Exchange::kFlipped, number(distance));
      // Both threads of a pair must compute the same value. If the order of the operands matters, the operand of the
      // thread with the lower number is the left one.
      if (is_commutative) {
        x = combine(x, other);
        continue;
      }
      Value* const is_low = b_.CreateICmpEQ(b_.CreateAnd(thread_, number(distance)), number(0));
      x = combine(ir_.select(is_low, x, other), ir_.select(is_low, other, x));
    }
    return x;
  }

  Type* stored_type(Value* x) { return x->getType()->isIntegerTy(1) ? b_.getInt8Ty() : x->getType(); }

  const bool rows_;
  Value* lane_ = nullptr;  ///< number of the thread in its group
  /// Shared memory of share_totals, by type and index; reused by later calls.
  std::map<std::pair<Type*, size_t>, llvm::GlobalVariable*> totals_;
  /// By number of a reduction with a body: whether this thread has an element of the row.
  std::map<size_t, Value*> begun_;
};

constexpr unsigned kSharedSpace = 3;  ///< NVPTX's number of the address space of shared memory

/// Marks `function` as a kernel that the host starts: see make_grid_function.
void mark_as_kernel(llvm::Function* function, uint32_t block_threads, uint32_t resident_blocks) {
  llvm::Module& module = *function->getParent();
  llvm::LLVMContext& context = module.getContext();
  llvm::NamedMDNode* const all = module.getOrInsertNamedMetadata("nvvm.annotations");
  const auto add = [&](const char* key, uint32_t value) {
    auto* const number = llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value);
    all->addOperand(llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, key),
                                                llvm::ConstantAsMetadata::get(number)}));
  };
  add("kernel", 1);
  add("maxntidx", block_threads);
  if (resident_blocks > 0) add("minctasm", resident_blocks);
}

/// Makes the parameters from number `first` on descriptors of arrays: 128 bytes that are passed by value, and that the
/// kernel does not copy.
void mark_as_maps(llvm::Function* function, unsigned first) {
  constexpr uint64_t kMapBytes = 128;
  llvm::LLVMContext& context = function->getContext();
  llvm::Type* const bytes = llvm::ArrayType::get(llvm::Type::getInt8Ty(context), kMapBytes);
  std::vector<llvm::Metadata*> numbers;
  for (unsigned i = first; i < function->arg_size(); ++i) {
    function->addParamAttr(i, llvm::Attribute::getWithByValType(context, bytes));
    function->addParamAttr(i, llvm::Attribute::getWithAlignment(context, llvm::Align(kMapBytes)));
    // LLVM counts from 1 here.
    numbers.push_back(llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), i + 1)));
  }
  llvm::NamedMDNode* const all = function->getParent()->getOrInsertNamedMetadata("nvvm.annotations");
  // A block has a processor for itself, so that its threads can share the registers in their own way.
  llvm::Type* const i32 = llvm::Type::getInt32Ty(context);
  all->addOperand(
      llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, "minctasm"),
                                  llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i32, 1))}));
  all->addOperand(
      llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, "grid_constant"),
                                  llvm::MDNode::get(context, numbers)}));
}

}  // namespace

llvm::Function* make_grid_function(llvm::Module& module, const Target& target, const std::string& name,
                                   const std::vector<llvm::Type*>& parameters, uint32_t block_threads,
                                   uint32_t resident_blocks) {
  llvm::Function* const function =
      llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), parameters, false),
                             llvm::Function::ExternalLinkage, name, module);
  set_function_attributes(function, target);
  mark_as_kernel(function, block_threads, resident_blocks);
  return function;
}

llvm::GlobalVariable* make_given_array(llvm::Function* function) {
  llvm::Type* const array = llvm::ArrayType::get(llvm::Type::getInt8Ty(function->getContext()), 0);
  auto* const made = new llvm::GlobalVariable(*function->getParent(), array, false, llvm::GlobalValue::ExternalLinkage,
                                              nullptr, function->getName() + "_given", nullptr,
                                              llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  made->setAlignment(llvm::Align(16));
  return made;
}

llvm::GlobalVariable* make_shared_array(llvm::Function* function, llvm::Type* element, int64_t elements) {
  llvm::Type* const array = llvm::ArrayType::get(element, static_cast<uint64_t>(elements));
  auto* const made = new llvm::GlobalVariable(*function->getParent(), array, false, llvm::GlobalValue::InternalLinkage,
                                              llvm::UndefValue::get(array), function->getName() + "_shared", nullptr,
                                              llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  made->setAlignment(llvm::Align(16));
  return made;
}

void emit_warp_barrier(llvm::IRBuilder<>& at) {
  at.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {}, {at.getInt32(~0U)});
}

void emit_barrier(llvm::IRBuilder<>& at) {
  at.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

llvm::Value* emit_thread_number(llvm::IRBuilder<>& at) {
  return at.CreateZExt(at.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {}), at.getInt64Ty());
}

llvm::Value* emit_block_number(llvm::IRBuilder<>& at) {
  return at.CreateZExt(at.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {}), at.getInt64Ty());
}

llvm::Function* emit_grid_kernel(const GridKernel& kernel, llvm::Module& module, const Target& target,
                                 const std::string& name) {
  const bool has_groups = kernel.schedule.form == GridSchedule::Form::kUpdates;
  const size_t maps = kernel.schedule.maps.size();
  const std::vector<llvm::Type*> parameters(kernel.kernel.buffers + maps + (has_groups ? 2 : 0),
                                            llvm::PointerType::get(module.getContext(), 0));
  llvm::Function* const function = make_grid_function(module, target, name, parameters, kernel.schedule.block_threads,
                                                      kernel.schedule.resident_blocks);
  if (maps != 0) mark_as_maps(function, kernel.kernel.buffers);
  switch (kernel.schedule.form) {
    case GridSchedule::Form::kTiles:
      emit_grid_tiles(kernel, module, target, function);
      break;
    case GridSchedule::Form::kWarpgroups:
      emit_grid_warpgroups(kernel, module, target, function);
      break;
    case GridSchedule::Form::kAttention:
      kernel.schedule.attention.warpgroups ? emit_warpgroup_attention(kernel, module, target, function)
                                           : emit_grid_attention(kernel, module, target, function);
      break;
    case GridSchedule::Form::kTransposedTiles:
      emit_grid_transpose(kernel, module, target, function);
      break;
    case GridSchedule::Form::kUpdates:
      emit_grid_updates(kernel, module, target, function);
      break;
    case GridSchedule::Form::kThreadPerPoint:
    case GridSchedule::Form::kRows:
      PointEmitter(kernel, module, target, function).emit();
      break;
  }
  return function;
}

}  // namespace collet::codegen
