// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "sdk/codegen/base/floor_quotient.h"
#include "sdk/codegen/llvm/kernel/emit.h"
#include "sdk/codegen/llvm/scalar/scalar_ops.h"
#include "sdk/codegen/schedule/lanes.h"

namespace collet::codegen {
namespace {}  // namespace

using llvm::BasicBlock;

KernelEmitter::KernelEmitter(const Kernel& kernel, llvm::Module& module, const Target& target, const std::string& name)
    : k_(kernel), passes_(kernel), ir_(module, target), b_(ir_.b) {
  function_ = llvm::Function::Create(kernel_function(b_.getContext()), llvm::Function::ExternalLinkage, name, module);
  set_function_attributes(function_, target);
}

KernelEmitter::KernelEmitter(const Kernel& kernel, llvm::Module& module, const Target& target, llvm::Function* within)
    : k_(kernel), passes_(kernel), ir_(module, target), b_(ir_.b), function_(within) {}

void KernelEmitter::read_bases(Value* buffers) {
  for (uint32_t i = 0; i < k_.buffers; ++i) {
    Value* p = b_.CreateGEP(b_.getPtrTy(), buffers, b_.getInt64(i));
    bases_.push_back(b_.CreateLoad(b_.getPtrTy(), p));
  }
  vals_.resize(k_.exprs.size());
  iv_plus_.assign(k_.loops.size(), 0);
}

void KernelEmitter::open(llvm::IRBuilder<>& at, Value* buffers) {
  b_.SetInsertPoint(at.GetInsertBlock());
  read_bases(buffers);
}

llvm::Value* KernelEmitter::point(llvm::IRBuilder<>& at, const std::vector<Value*>& loops, int lanes, Value* mask,
                                  uint32_t known, Value* value, ExprId wanted) {
  b_.SetInsertPoint(at.GetInsertBlock());
  iv_ = loops;
  lanes_ = lanes;
  mask_ = mask;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& i = k_.exprs[k];
    vals_[k] = i.op == ExprOp::kLoad && i.buffer == known ? Val{value} : instruction(i);
  }
  at.SetInsertPoint(b_.GetInsertBlock());
  return ir_.splat(val(wanted), lanes).v;
}

std::vector<std::pair<llvm::Value*, llvm::Value*>> KernelEmitter::rows_of_loads(llvm::IRBuilder<>& at,
                                                                                const std::vector<Value*>& loops,
                                                                                Type* element, uint32_t known) {
  b_.SetInsertPoint(at.GetInsertBlock());
  iv_ = loops;
  lanes_ = 1;
  const size_t last = k_.loops.size() - 1;
  std::vector<std::pair<Value*, Value*>> rows;
  for (const Expr& e : k_.exprs) {
    const bool suits = e.op == ExprOp::kLoad && e.buffer != known && e.mask == kNoExpr && e.index.terms.empty() &&
                       e.index.coefficient(last) == 1 && e.index.coefficient(last - 1) != 0;
    if (!suits || ir_.storage(e.type) != element || rows.size() == ir_.target.tuning.epilogue_streams) continue;
    rows.emplace_back(b_.CreateGEP(element, bases_[e.buffer], index_value(e.index)),
                      b_.getInt64(static_cast<uint64_t>(e.index.coefficient(last - 1))));
  }
  at.SetInsertPoint(b_.GetInsertBlock());
  return rows;
}

void KernelEmitter::begin() {
  contracts_ = std::any_of(k_.reductions.begin(), k_.reductions.end(), [](const Reduction& r) { return r.contract; });
  b_.SetInsertPoint(BasicBlock::Create(ir_.context(), "entry", function_));
  if (k_.scalable) ir_.use_scalable_vectors();
  read_bases(function_->getArg(0));
  iv_.resize(k_.loops.size());
}

llvm::Function* KernelEmitter::run(bool whole) {
  whole_ = ir_.uses_short_vectors = whole;
  begin();
  outer(0);
  b_.CreateRetVoid();
  return function_;
}

llvm::Function* KernelEmitter::run_bypassing(llvm::Function* otherwise, int alignment) {
  bypasses_ = true;
  begin();
  Value* places = b_.getInt64(0);
  for (const Store& s : k_.stores) {
    if (s.bypasses_caches) places = b_.CreateOr(places, b_.CreatePtrToInt(bases_[s.buffer], b_.getInt64Ty()));
  }
  BasicBlock* const aligned = BasicBlock::Create(ir_.context(), "aligned", function_);
  BasicBlock* const other = BasicBlock::Create(ir_.context(), "other", function_);
  places = b_.CreateAnd(places, b_.getInt64(static_cast<uint64_t>(alignment) - 1));
  b_.CreateCondBr(b_.CreateIsNull(places), aligned, other);
  b_.SetInsertPoint(other);
  b_.CreateCall(otherwise, {function_->getArg(0), function_->getArg(1), function_->getArg(2), function_->getArg(3)});
  b_.CreateRetVoid();
  b_.SetInsertPoint(aligned);
  outer(0);
  b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});  // such stores are not ordered with later ones
  b_.CreateRetVoid();
  return function_;
}

void KernelEmitter::loop(Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body) {
  loop(begin, end, b_.getInt64(static_cast<uint64_t>(step)), body);
}

void KernelEmitter::loop(Value* begin, Value* end, Value* step, const std::function<void(Value*)>& body) {
  ir_.loop(begin, end, step, body);
}

void KernelEmitter::branch(Value* condition, const std::function<void()>& body) {
  ir_.branch(condition, body);
}

void KernelEmitter::emit_loop(size_t l, const std::function<void()>& body) {
  if (passes_.is_straight() && l >= k_.outer) {
    iv_[l] = b_.getInt64(0);
    for (int64_t i = 0; i < k_.loops[l].size; ++i) {
      iv_plus_[l] = i;
      body();
    }
    iv_plus_[l] = 0;
    return;
  }
  if (whole_ && is_tiny(k_)) {
    for (int64_t i = 0; i < k_.loops[l].size; ++i) {
      iv_[l] = b_.getInt64(static_cast<uint64_t>(i));
      body();
    }
    return;
  }
  const bool ranged = l == 0 && k_.outer > 0 && !whole_;
  Value* begin = ranged ? static_cast<Value*>(function_->getArg(1)) : b_.getInt64(0);
  Value* end =
      ranged ? static_cast<Value*>(function_->getArg(2)) : b_.getInt64(static_cast<uint64_t>(k_.loops[l].size));
  if (passes_.is_transposing() && l == passes_.side_loop() && lanes_ > 1) return emit_squares(l, body);
  if (passes_.side_unroll() > 1 && l == passes_.side_loop() && !passes_.is_transposing()) {
    return emit_unrolled(l, begin, end, passes_.side_unroll(), unroll_,
                         [&] { at_edge_ ? body() : iteration(l, unroll_, body); });
  }
  if (passes_.row_unroll() > 1 && l == passes_.row_loop()) {
    return emit_unrolled(l, begin, end, passes_.row_unroll(), row_unroll_, [&] { iteration(l, row_unroll_, body); });
  }
  if (l != k_.lane_loop || k_.lanes == 1) {
    blocks(l, begin, end, 1, [&](Value* i) {
      iv_[l] = i;
      iteration(l, 1, body);
    });
    return;
  }
  const int w = l < k_.outer ? k_.lanes : width_;
  const bool full = fills_vectors(l, w);
  if (passes_.is_straight() && passes_.side_unroll() == 1 && (ranged || !full) && has_masks()) {
    // The unrolled body is long, so it is emitted only once, with a mask that serves full vectors and the tail.
    loop(begin, end, ir_.count(w), [&](Value* i) { masked(l, i, end, w, body); });
    return;
  }
  Value* main_end = full ? end : b_.CreateAdd(begin, whole_vectors(b_.CreateSub(end, begin), w));
  const int64_t steps = k_.loops[l].size / w;
  if (emit_interior(l, begin, end, main_end, w, body)) return;
  const auto vectors = [&](Value* from, Value* to, int lanes) {
    blocks(l, from, to, lanes, [&](Value* i) {
      iv_[l] = i;
      lanes_ = lanes;
      body();
      lanes_ = 1;
    });
  };
  const int several = w * (l < k_.outer ? passes_.together(0) : together_);
  if (several > w) {
    const int64_t turns = k_.loops[l].size / several;
    Value* rest = b_.CreateAdd(begin, whole_vectors(b_.CreateSub(end, begin), several));
    if (ranged || !emit_straight(l, turns, several, body)) vectors(begin, rest, several);
    if (ranged || turns * several < steps * w) vectors(rest, main_end, w);
  } else if (!ranged && emit_straight(l, steps, w, body)) {
    main_end = b_.getInt64(static_cast<uint64_t>(steps * w));
  } else if (ranged || steps > 0) {
    vectors(begin, main_end, w);
  }
  if (full || (!ranged && emit_short_vectors(l, w, body))) return;
  if (!has_masks()) {
    loop(main_end, end, 1, [&](Value* i) {
      iv_[l] = i;
      body();
    });
    // Tails of many rows would make a long sum, and products would lose their order.
    if (l >= k_.outer && k_.loops.size() > k_.outer + 1) fold_tails();
    return;
  }
  emit_tail(l, main_end, end, w, body);
}

void KernelEmitter::emit_unrolled(size_t l, Value* begin, Value* end, int times, int& unroll,
                                  const std::function<void()>& body) {
  const bool is_whole = llvm::isa<llvm::Constant>(begin) && llvm::isa<llvm::Constant>(end);
  Value* whole = b_.CreateSub(end, begin);
  whole = b_.CreateSub(whole, b_.CreateURem(whole, b_.getInt64(static_cast<uint64_t>(times))));
  Value* const main_end = is_whole ? whole : b_.CreateAdd(begin, whole);
  const auto part = [&](int step, Value* from, Value* to) {
    unroll = step;
    loop(from, to, step, [&](Value* i) {
      iv_[l] = i;
      body();
    });
  };
  part(times, begin, main_end);
  if (!is_whole || k_.loops[l].size % times != 0) part(1, main_end, end);
  unroll = 1;
}

KernelEmitter::Interior KernelEmitter::interior(size_t l) const {
  Interior in{0, k_.loops[l].size, {}};
  for (const Expr& e : k_.exprs) {
    const int64_t step = e.index.coefficient(l);
    if (e.op != ExprOp::kInRange || !e.index.terms.empty() || step == 0) continue;
    int64_t least = e.index.constant;  // bounds of the part of the index that depends on the other loops
    int64_t most = e.index.constant;
    for (size_t other = 0; other < k_.loops.size(); ++other) {
      if (other == l) continue;
      const int64_t reach = e.index.coefficient(other) * (k_.loops[other].size - 1);
      (reach < 0 ? least : most) += reach;
    }
    const int64_t by = std::abs(step);
    const int64_t first = step > 0 ? -floor_quotient(least, by) : -floor_quotient(e.a - 1 - most, by);
    const int64_t last = step > 0 ? floor_quotient(e.a - 1 - most, by) : floor_quotient(least, by);
    in.first = std::max(in.first, first);
    in.last = std::min(in.last, last + 1);
    in.tests.push_back(&e);
  }
  if (in.last - in.first < k_.loops[l].size / 2) in.tests.clear();
  return in;
}

bool KernelEmitter::may_repeat_body() const {
  return k_.lanes > 1 && k_.lane_loop < k_.outer && has_masks() && !ir_.is_scalable() && !k_.scan &&
         k_.updates.empty() && !whole_ && k_.exprs.size() <= ir_.target.tuning.repeated_body;
}

void KernelEmitter::inside(const Interior& in, const std::function<void()>& body) {
  const std::set<const Expr*> before = inside_;
  inside_.insert(in.tests.begin(), in.tests.end());
  body();
  inside_ = before;
}

void KernelEmitter::iteration(size_t l, int count, const std::function<void()>& body) {
  const bool suits = l < k_.lane_loop && k_.loops[l].size >= ir_.target.tuning.interior_turns && may_repeat_body();
  const Interior in = suits ? interior(l) : Interior{0, 0, {}};
  if (in.tests.empty()) return body();
  Value* const begins = b_.CreateICmpSGE(iv_[l], b_.getInt64(static_cast<uint64_t>(in.first)));
  Value* const ends = b_.CreateICmpSLE(iv_[l], b_.getInt64(static_cast<uint64_t>(in.last - count)));
  Value* const is_inside = b_.CreateAnd(begins, ends);
  branch(is_inside, [&] { inside(in, body); });
  branch(b_.CreateNot(is_inside), [&] {
    const bool before = at_edge_;
    at_edge_ = true;
    body();
    at_edge_ = before;
  });
}

bool KernelEmitter::emit_interior(size_t l, Value* begin, Value* end, Value* main_end, int width,
                                  const std::function<void()>& body) {
  if (l >= k_.outer || !may_repeat_body()) return false;
  const Interior in = interior(l);
  if (in.tests.empty() || in.last - in.first < ir_.target.tuning.interior_vectors * width) return false;
  const auto vectors = [&](Value* from, Value* to) {
    loop(from, to, width, [&](Value* i) {
      iv_[l] = i;
      lanes_ = width;
      body();
      lanes_ = 1;
    });
  };
  const auto least = [&](Value* x, Value* y) { return ir_.binary(llvm::Intrinsic::smin, x, y); };
  const auto positive = [&](Value* x) { return ir_.binary(llvm::Intrinsic::smax, x, b_.getInt64(0)); };
  // The first vector of the middle loop is the first whose lanes are all in the interior.
  Value* const before = positive(b_.CreateSub(b_.getInt64(static_cast<uint64_t>(in.first)), begin));
  Value* const rounded = whole_vectors(b_.CreateAdd(before, b_.getInt64(static_cast<uint64_t>(width - 1))), width);
  Value* const from = least(b_.CreateAdd(begin, rounded), main_end);
  Value* const limit = least(b_.getInt64(static_cast<uint64_t>(in.last)), main_end);
  Value* const to = b_.CreateAdd(from, whole_vectors(positive(b_.CreateSub(limit, from)), width));
  vectors(begin, from);
  inside(in, [&] { vectors(from, to); });
  loop(to, end, ir_.count(width), [&](Value* i) { masked(l, i, end, width, body); });
  return true;
}

bool KernelEmitter::fills_vectors(size_t l, int width) const {
  return !ir_.is_scalable() && k_.loops[l].size % width == 0;
}

llvm::Value* KernelEmitter::whole_vectors(Value* n, int lanes) {
  if (ir_.is_scalable()) return b_.CreateSub(n, b_.CreateURem(n, ir_.count(lanes)));
  return b_.CreateAnd(n, b_.getInt64(~static_cast<uint64_t>(lanes - 1)));
}

bool KernelEmitter::emit_straight(size_t l, int64_t steps, int width, const std::function<void()>& body) {
  if (ir_.is_scalable() || l + 1 != k_.loops.size()) return false;
  // A loop of merged rows, see merge_rows, whose variable is divided, is always unrolled: the quotients become
  // constants.
  const bool divided = l + 1 == k_.outer && k_.loops[l].size % width == 0 && l > 0 &&
                       std::any_of(k_.exprs.begin(), k_.exprs.end(), [&](const Expr& e) {
                         return e.op == ExprOp::kDivide && loop_of(e.index) == l && e.a < 2 * width;
                       });
  if (divided && steps * static_cast<int64_t>(k_.exprs.size()) > ir_.target.tuning.straight_exprs) return false;
  const bool is_long = k_.exprs.size() > ir_.target.tuning.straight_body && !(whole_ && steps <= 1);
  if (!divided && (steps > ir_.target.tuning.straight_vectors || is_long)) return false;
  lanes_ = width;
  for (int64_t i = 0; i < steps; ++i) {
    iv_[l] = b_.getInt64(static_cast<uint64_t>(i * width));
    body();
  }
  lanes_ = 1;
  return true;
}

bool KernelEmitter::emit_short_vectors(size_t l, int width, const std::function<void()>& body) {
  const int64_t size = k_.loops[l].size;
  if (ir_.is_scalable() || l >= k_.outer || k_.updates.empty() || !k_.stores.empty()) return false;
  if (!updates_neighbours(k_.updates[0], l, loop_dependencies(k_))) return false;
  if (!k_.reductions.empty() || k_.exprs.size() > ir_.target.tuning.straight_body) return false;
  int64_t at = size - size % width;
  for (int lanes = width / 2; lanes > 0; lanes /= 2) {
    if (size - at < lanes) continue;
    iv_[l] = b_.getInt64(static_cast<uint64_t>(at));
    lanes_ = lanes;
    body();
    at += lanes;
  }
  lanes_ = 1;
  return true;
}

void KernelEmitter::emit_tail(size_t l, Value* begin, Value* end, int width, const std::function<void()>& body) {
  branch(b_.CreateICmpSLT(begin, end), [&] { masked(l, begin, end, width, body); });
}

void KernelEmitter::masked(size_t l, Value* begin, Value* end, int width, const std::function<void()>& body) {
  iv_[l] = begin;
  lanes_ = width;
  counted_ = b_.CreateSub(end, begin);
  if (!llvm::isa<llvm::Constant>(counted_))
    counted_ = ir_.binary(llvm::Intrinsic::smin, counted_, b_.getInt64(1 << 30));
  mask_ = ir_.first_lanes(b_.CreateTrunc(counted_, b_.getInt32Ty()), width);
  body();
  mask_ = nullptr;
  counted_ = nullptr;
  lanes_ = 1;
}

void KernelEmitter::blocks(size_t l, Value* begin, Value* end, int width, const std::function<void(Value*)>& body) {
  Value* const step = ir_.count(width);
  int64_t within = 1;  // iterations of the loops inside of loop l, per iteration of it
  for (size_t m = l + 1; m < k_.loops.size(); ++m) {
    const int64_t lanes = m == k_.lane_loop && k_.lanes > 1 ? width_ : 1;
    within *= (k_.loops[m].size + lanes - 1) / lanes;
  }
  // If the loops inside are long, they are cut into blocks themselves.
  const int64_t steps = ir_.target.tuning.sum_steps;
  const bool is_long = within <= 2 * steps && (k_.loops[l].size + width - 1) / width * within > 2 * steps;
  if (!open_ || l < k_.outer || !is_long) {
    loop(begin, end, step, body);
    return;
  }
  Value* const block = b_.CreateMul(step, b_.getInt64(static_cast<uint64_t>(std::max<int64_t>(steps / within, 1))));
  Value* const group = b_.CreateMul(block, b_.getInt64(static_cast<uint64_t>(ir_.target.tuning.sum_blocks)));
  const int lanes = passes_.lanes_inside() ? width_ : lanes_;
  const auto each_sum = [&](const auto& fold) {
    for (Accumulator& a : *open_) {
      if (!a.sums.empty()) fold(a, k_.reductions[a.reduction].types[0]);
    }
  };
  const auto clear = [&](const std::vector<Value*>& slots, uint32_t type) {
    put(slots, 0, ir_.splat(combine_identity(ir_, COLLET_COMBINE_ADD, type), lanes));
  };
  loop(begin, end, group, [&](Value* first) {
    Value* const limit = ir_.binary(llvm::Intrinsic::smin, b_.CreateAdd(first, group), end);
    loop(first, limit, block, [&](Value* from) {
      Value* const to = ir_.binary(llvm::Intrinsic::smin, b_.CreateAdd(from, block), limit);
      loop(from, to, step, body);
      fold_tails();
      each_sum([&](Accumulator& a, uint32_t type) {
        const Val sum = get(a.sums, 0, type, lanes), more = get(a.slots, 0, type, lanes);
        put(a.sums, 0, emit_combine(ir_, COLLET_COMBINE_ADD, type, sum, more));
        clear(a.slots, type);
      });
    });
    each_sum([&](Accumulator& a, uint32_t type) {
      a.has_groups = true;
      const auto [sum, lost] =
          add_block(get(a.totals, 0, type, lanes), get(a.lost, 0, type, lanes), get(a.sums, 0, type, lanes));
      put(a.totals, 0, sum);
      put(a.lost, 0, lost);
      clear(a.sums, type);
    });
  });
}

void KernelEmitter::fold_tails() {
  if (!open_) return;
  for (Accumulator& a : *open_) {
    const Reduction& r = k_.reductions[a.reduction];
    if (a.tail_slots.empty() || (a.sums.empty() && !is_ordered(r))) continue;
    const uint32_t type = r.types[0];
    const Val tail = get(a.tail_slots, 0, type, 1);
    if (is_ordered(r)) {
      put(a.slots, 0, emit_combine(ir_, r.combine, type, get(a.slots, 0, type, 1), tail));
    } else {
      Val all = get(a.slots, 0, type, width_);
      Value* const zero = b_.getInt64(0);
      Val first{b_.CreateExtractElement(all.v, zero), all.im ? b_.CreateExtractElement(all.im, zero) : nullptr};
      first = emit_combine(ir_, r.combine, type, first, tail);
      all.v = b_.CreateInsertElement(all.v, first.v, zero);
      if (all.im) all.im = b_.CreateInsertElement(all.im, first.im, zero);
      put(a.slots, 0, all);
    }
    put(a.tail_slots, 0, combine_identity(ir_, r.combine, type));
  }
}

void KernelEmitter::outer(size_t l) {
  if (l == k_.outer) {
    k_.scan ? scan() : side_iterations();
    return;
  }
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (passes_.level_of(static_cast<ExprId>(k)) == l && k_.exprs[k].op != ExprOp::kReduced)
      vals_[k] = instruction(k_.exprs[k]);
  }
  if (l == k_.lane_loop && passes_.is_row_by_row()) return reduce_rows();
  emit_loop(l, [&] { outer(l + 1); });
}

void KernelEmitter::side_iterations() {
  if (unroll_ == 1 && row_unroll_ == 1) {
    stages();
    for (const Store& s : k_.stores) {
      if (!passes_.is_inner(s)) store(s);
    }
    for (const Update& u : k_.updates) update(u);
    return;
  }
  if (passes_.lanes_inside()) return interleaved_rows();
  const size_t outermost = row_unroll_ > 1 ? passes_.row_loop() : passes_.side_loop();
  const auto each = [&](const auto& compute) {
    for (int iteration = 0; iteration < row_unroll_ * unroll_; ++iteration) {
      if (row_unroll_ > 1) iv_plus_[passes_.row_loop()] = iteration / unroll_;
      if (unroll_ > 1) iv_plus_[passes_.side_loop()] = iteration % unroll_;
      compute();
    }
    iv_plus_.assign(iv_plus_.size(), 0);
  };
  // All iterations are computed before any result is stored, so that LLVM can merge loads of the same address. Values of the
  // loops around are those of the first iteration again afterwards.
  const std::vector<Val> around = vals_;
  std::vector<std::vector<Val>> values;
  each([&] {
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const size_t level = passes_.level_of(static_cast<ExprId>(k));
      if (level > outermost && level < k_.outer && k_.exprs[k].op != ExprOp::kReduced)
        vals_[k] = instruction(k_.exprs[k]);
    }
    stages();
    values.push_back(vals_);
  });
  auto computed = values.begin();
  each([&] {
    vals_ = *computed++;
    for (const Store& s : k_.stores) store(s);
  });
  vals_ = around;
}

void KernelEmitter::interleaved_rows() {
  struct Row {
    std::vector<Val> vals;
    std::map<size_t, Value*> kept_slots;
  };
  const size_t l = passes_.side_loop();
  std::vector<Row> rows(static_cast<size_t>(unroll_), Row{vals_, {}});
  const auto each_row = [&](const auto& body) {
    for (size_t i = 0; i < rows.size(); ++i) {
      iv_plus_[l] = static_cast<int64_t>(i);
      std::swap(vals_, rows[i].vals);
      std::swap(kept_slots_, rows[i].kept_slots);
      body();
      std::swap(kept_slots_, rows[i].kept_slots);
      std::swap(vals_, rows[i].vals);
    }
    iv_plus_[l] = 0;
  };
  for (int pass = 0; pass <= passes_.last(); ++pass) each_row([&] { stage(pass); });
  each_row([&] {
    for (const Store& s : k_.stores) {
      if (!passes_.is_inner(s)) store(s);
    }
  });
}

void KernelEmitter::stages() {
  known_.clear();
  for (int pass = 0; pass <= passes_.last(); ++pass) stage(pass);
}

void KernelEmitter::stage(int pass) {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (passes_.level_of(static_cast<ExprId>(k)) == k_.outer && passes_.stage_of(static_cast<ExprId>(k)) == pass &&
        k_.exprs[k].op != ExprOp::kReduced) {
      vals_[k] = outer_value(k);
    }
  }
  inner_pass(pass);
}

void KernelEmitter::inner_pass(int pass) {
  std::vector<Accumulator> accumulators;
  const int outer_lanes = lanes_;
  width_ = passes_.width(pass);
  together_ = passes_.together(pass);
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (passes_.reduction_pass(r) == pass) accumulators.push_back(open_accumulator(r, outer_lanes));
  }
  bool stores = std::any_of(k_.stores.begin(), k_.stores.end(),
                            [&](const Store& s) { return passes_.is_inner(s) && passes_.pass_of(s) == pass; });
  if (accumulators.empty() && !stores) return;
  open_ = &accumulators;
  inner(k_.outer, pass, accumulators);
  open_ = nullptr;
  for (const Accumulator& a : accumulators) finish(a, outer_lanes);
}

Val KernelEmitter::known(size_t k) {
  std::vector<int64_t> point(iv_plus_.begin() + static_cast<int64_t>(k_.outer), iv_plus_.end());
  point.resize(passes_.level_of(static_cast<ExprId>(k)) - k_.outer);
  const auto [it, fresh] = known_.try_emplace({k, std::move(point)});
  if (fresh) it->second = instruction(k_.exprs[k]);
  return it->second;
}

void KernelEmitter::inner(size_t l, int pass, std::vector<Accumulator>& accumulators) {
  if (l > k_.outer || l == k_.loops.size()) {
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (passes_.level_of(static_cast<ExprId>(k)) == l && passes_.needs(pass, k))
        vals_[k] = passes_.is_straight() ? known(k) : inner_value(k, pass);
    }
  }
  if (l < k_.loops.size()) {
    emit_loop(l, [&] { inner(l + 1, pass, accumulators); });
    return;
  }
  for (Accumulator& a : accumulators) accumulate(a);
  for (const Store& s : k_.stores) {
    if (passes_.is_inner(s) && passes_.pass_of(s) == pass) store(s);
  }
}

}  // namespace collet::codegen
