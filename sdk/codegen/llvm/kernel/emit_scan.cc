// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"
#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {
namespace {

llvm::Value* shuffled(Ir& ir, llvm::Value* x, llvm::Value* y, const std::vector<int>& order) {
  return x ? ir.b.CreateShuffleVector(x, y, order) : nullptr;
}

}  // namespace

Val KernelEmitter::prefix_lanes(const Reduction& r, Val x, bool reverse) {
  const uint32_t type = r.types[0];
  const int n = ir_.lanes_of(x);
  const Val none = ir_.splat(combine_identity(ir_, r.combine, type), n);
  for (int step = 1; step < n; step *= 2) {
    // Combines each lane with the lane `step` before it, or with the identity if there is none.
    std::vector<int> order;
    for (int i = 0; i < n; ++i) {
      const int from = reverse ? i + step : i - step;
      order.push_back(from >= 0 && from < n ? from : n + i);
    }
    const Val before{shuffled(ir_, x.v, none.v, order), shuffled(ir_, x.im, none.im, order)};
    x = emit_combine(ir_, r.combine, type, before, x);
  }
  return x;
}

std::vector<Val> KernelEmitter::scan_known(const Reduction& r, const std::vector<Value*>& slots, bool reverse) {
  const uint32_t type = r.types[0];
  const bool inside = passes_.lanes_inside();
  const int width = lanes_;
  Val x = ir_.splat(val(r.inputs[0]), width);
  if (Value* on = condition_mask(r.condition)) {
    x = ir_.select(ir_.splat(on, width), x, ir_.splat(combine_identity(ir_, r.combine, type), width));
  }
  const Val so_far = get(slots, 0, type, inside ? 1 : width);
  const auto after_start = [&](const Val& y) {
    if (scan_start_.empty()) return y;
    return emit_combine(ir_, r.combine, type, ir_.splat(get(scan_start_, 0, type, inside ? 1 : width), width), y);
  };
  if (!inside || width == 1) {
    const Val y = emit_combine(ir_, r.combine, type, so_far, x);
    put(slots, 0, y);
    return {after_start(y)};
  }
  x = prefix_lanes(r, x, reverse);
  Value* last = b_.getInt64(reverse ? 0 : static_cast<uint64_t>(width - 1));
  const Val all{b_.CreateExtractElement(x.v, last), x.im ? b_.CreateExtractElement(x.im, last) : nullptr};
  put(slots, 0, emit_combine(ir_, r.combine, type, so_far, all));
  return {after_start(emit_combine(ir_, r.combine, type, ir_.splat(so_far, width), x))};
}

std::vector<Val> KernelEmitter::scan_body(const Scan& s, const std::vector<Value*>& slots, Value* begun) {
  const Reduction& r = s.reduction;
  const size_t n = r.types.size();
  std::vector<Val> held;
  std::vector<Val> fresh;
  for (size_t i = 0; i < n; ++i) {
    held.push_back(get(slots, i, r.types[i], lanes_));
    fresh.push_back(ir_.splat(val(r.inputs[i]), lanes_));
  }
  Value* on = condition_mask(r.condition);
  Value* some = s.fresh ? b_.CreateLoad(ir_.wide(b_.getInt1Ty(), lanes_), begun) : nullptr;
  auto combined = [&](const std::vector<Val>& x, const std::vector<Val>& y) {
    std::vector<Val> arguments = x;
    arguments.insert(arguments.end(), y.begin(), y.end());
    std::vector<Val> out = emit_body(ir_, r.body, arguments, emit_both(ir_, emit_both(ir_, on, some), mask_));
    for (Val& v : out) v = ir_.splat(v, lanes_);
    return out;
  };
  if (on) on = ir_.splat(on, lanes_);
  std::vector<Val> next = s.reverse ? combined(fresh, held) : combined(held, fresh);
  for (size_t i = 0; i < n; ++i) {
    if (s.fresh) next[i] = ir_.select(some, next[i], fresh[i]);
    if (on) next[i] = ir_.select(on, next[i], held[i]);
    put(slots, i, next[i]);
  }
  if (!s.fresh) return next;
  some = on ? b_.CreateOr(some, on) : llvm::Constant::getAllOnesValue(some->getType());
  on = nullptr;
  b_.CreateStore(some, begun);
  std::vector<Val> initial;
  for (ExprId t : r.inits) initial.push_back(ir_.splat(val(t), lanes_));
  std::vector<Val> results = combined(initial, next);
  for (size_t i = 0; i < n; ++i) results[i] = ir_.select(some, results[i], initial[i]);
  return results;
}

void KernelEmitter::scan_point(const Scan& s, const std::vector<Value*>& slots, Value* begun) {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (passes_.level_of(static_cast<ExprId>(k)) > k_.outer && k_.exprs[k].op != ExprOp::kScanned)
      vals_[k] = instruction(k_.exprs[k]);
  }
  const bool known = s.reduction.combine != COLLET_COMBINE_OTHER;
  std::vector<Val> results = known ? scan_known(s.reduction, slots, s.reverse) : scan_body(s, slots, begun);
  for (size_t i = 0; i < results.size(); ++i) {
    if (known && is_narrow_float(s.reduction.types[i]))
      results[i].v = ir_.round_narrow(results[i].v, s.reduction.types[i]);
  }
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (k_.exprs[k].op == ExprOp::kScanned) vals_[k] = results[static_cast<size_t>(k_.exprs[k].a)];
  }
  for (const Store& store_at : k_.stores) store(store_at);
}

void KernelEmitter::scan() {
  const Scan& s = *k_.scan;
  const size_t l = k_.outer;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (passes_.level_of(static_cast<ExprId>(k)) == l) vals_[k] = instruction(k_.exprs[k]);
  }
  const int outer_lanes = lanes_;
  const std::vector<Value*> slots = make_slots(s.reduction, passes_.lanes_inside() ? 1 : outer_lanes);
  for (size_t i = 0; i < s.reduction.types.size(); ++i) {
    const ExprId init = s.reduction.inits[i];
    const Val first = init == kNoExpr ? combine_identity(ir_, s.reduction.combine, s.reduction.types[i]) : val(init);
    put(slots, i, passes_.lanes_inside() ? first : ir_.splat(first, outer_lanes));
  }
  Value* begun = nullptr;
  if (s.fresh) {
    Type* flags = ir_.wide(b_.getInt1Ty(), outer_lanes);
    begun = slot(flags);
    b_.CreateStore(llvm::Constant::getNullValue(flags), begun);
  }
  const auto size = static_cast<uint64_t>(k_.loops[l].size);
  const auto width = static_cast<uint64_t>(passes_.lanes_inside() ? k_.lanes : 1);
  const auto sum_steps = static_cast<uint64_t>(ir_.target.tuning.sum_steps);
  const Reduction& r = s.reduction;
  const int lanes = passes_.lanes_inside() ? 1 : outer_lanes;
  const uint32_t kind = collet_type_kind(r.types[0]);
  std::vector<Value*> lost;
  if (r.combine == COLLET_COMBINE_ADD && (kind == COLLET_KIND_FLOAT || kind == COLLET_KIND_COMPLEX) &&
      size / width + size % width > 2 * sum_steps) {
    const Val identity = ir_.splat(combine_identity(ir_, r.combine, r.types[0]), lanes);
    for (auto* blocks : {&scan_start_, &lost}) *blocks = make_slots(r, lanes);
    const Val first = get(slots, 0, r.types[0], lanes);
    put(scan_start_, 0, first);
    put(lost, 0, identity);
    put(slots, 0, identity);
  }
  const auto end_block = [&] {
    const uint32_t type = r.types[0];
    const auto [sum, rest] =
        add_block(get(scan_start_, 0, type, lanes), get(lost, 0, type, lanes), get(slots, 0, type, lanes));
    put(scan_start_, 0, sum);
    put(lost, 0, rest);
    put(slots, 0, ir_.splat(combine_identity(ir_, r.combine, type), lanes));
  };
  auto emit_steps = [&](uint64_t from, uint64_t to, uint64_t step) {
    if (from == to) return;
    const auto steps = [&](Value* first, Value* last) {
      loop(first, last, static_cast<int64_t>(step), [&](Value* i) {
        iv_[l] = s.reverse ? b_.CreateSub(b_.getInt64(size - step), i) : i;
        if (passes_.lanes_inside()) lanes_ = static_cast<int>(step);
        scan_point(s, slots, begun);
        lanes_ = outer_lanes;
      });
    };
    if (scan_start_.empty()) return steps(b_.getInt64(from), b_.getInt64(to));
    const uint64_t block = step * sum_steps;
    loop(b_.getInt64(from), b_.getInt64(to), static_cast<int64_t>(block), [&](Value* first) {
      steps(first, ir_.binary(llvm::Intrinsic::smin, b_.CreateAdd(first, b_.getInt64(block)), b_.getInt64(to)));
      end_block();
    });
  };
  emit_steps(0, size / width * width, width);
  emit_steps(size / width * width, size, 1);
  scan_start_.clear();
}

}  // namespace collet::codegen
