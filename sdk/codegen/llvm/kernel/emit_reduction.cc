// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

#include <algorithm>

#include "sdk/codegen/llvm/scalar/scalar_ops.h"

namespace collet::codegen {

llvm::Value* KernelEmitter::slot(Type* t) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  llvm::AllocaInst* memory = at.CreateAlloca(t);
  if (t->isArrayTy()) memory->setAlignment(llvm::Align(64));
  return memory;
}

void KernelEmitter::put(const std::vector<Value*>& slots, size_t r, const Val& x) {
  b_.CreateStore(x.v, slots[2 * r]);
  if (x.im) b_.CreateStore(x.im, slots[2 * r + 1]);
}

Val KernelEmitter::get(const std::vector<Value*>& slots, size_t r, uint32_t type, int lanes) {
  Type* t = ir_.wide(ir_.scalar(type), lanes);
  Val x{b_.CreateLoad(t, slots[2 * r])};
  if (slots[2 * r + 1]) x.im = b_.CreateLoad(t, slots[2 * r + 1]);
  return x;
}

std::vector<llvm::Value*> KernelEmitter::make_slots(const Reduction& r, int lanes) {
  std::vector<Value*> slots;
  for (uint32_t type : r.types) {
    Type* t = ir_.wide(ir_.scalar(type), lanes);
    slots.push_back(slot(t));
    slots.push_back(collet_type_kind(type) == COLLET_KIND_COMPLEX ? slot(t) : nullptr);
  }
  return slots;
}

KernelEmitter::Accumulator KernelEmitter::open_accumulator(size_t reduction, int outer_lanes) {
  const Reduction& r = k_.reductions[reduction];
  const uint32_t type = r.types[0];
  const int lanes = lanes_of_accumulator(r, outer_lanes);
  // On a grid, vectors divide the loop's size.
  const bool tail = passes_.lanes_inside() && !has_masks() && !ir_.target.has_grid();
  Accumulator a;
  a.reduction = reduction;
  if (is_extremum(r)) {
    a.slots = extremum_slots(type, lanes);
    start_extremum(a.slots, r, lanes);
    if (tail) {
      a.tail_slots = extremum_slots(type, 1);
      start_extremum(a.tail_slots, r, 1);
    }
    return a;
  }
  a.slots = make_slots(r, lanes);
  for (size_t i = 0; i < r.types.size(); ++i) {
    const bool known = r.combine != COLLET_COMBINE_OTHER;
    Val start = known ? combine_identity(ir_, r.combine, r.types[i]) : val(r.inits[i]);
    put(a.slots, i, ir_.splat(start, lanes));
  }
  const uint32_t kind = collet_type_kind(type);
  if (r.combine == COLLET_COMBINE_ADD && (kind == COLLET_KIND_FLOAT || kind == COLLET_KIND_COMPLEX)) {
    for (auto* slots : {&a.sums, &a.totals, &a.lost}) {
      *slots = make_slots(r, lanes);
      put(*slots, 0, ir_.splat(combine_identity(ir_, r.combine, type), lanes));
    }
  }
  if (tail) {
    a.tail_slots = make_slots(r, 1);
    put(a.tail_slots, 0, combine_identity(ir_, r.combine, type));
  }
  return a;
}

bool KernelEmitter::is_ordered(const Reduction& r) const {
  return is_float_product(r) && passes_.lanes_inside() && !ir_.target.has_grid();
}

int KernelEmitter::lanes_of_accumulator(const Reduction& r, int outer_lanes) const {
  if (is_ordered(r)) return 1;
  return passes_.lanes_inside() ? width_ : outer_lanes;
}

llvm::Value* KernelEmitter::product_of_neighbours(Value* x) {
  for (int n = ir_.lanes_of(x) / 2; n >= 1; n /= 2) {
    std::vector<int> even(static_cast<size_t>(n));
    std::vector<int> odd(static_cast<size_t>(n));
    for (int j = 0; j < n; ++j) {
      even[static_cast<size_t>(j)] = 2 * j;
      odd[static_cast<size_t>(j)] = 2 * j + 1;
    }
    x = b_.CreateFMul(b_.CreateShuffleVector(x, even), b_.CreateShuffleVector(x, odd));
  }
  return b_.CreateExtractElement(x, b_.getInt64(0));
}

bool KernelEmitter::is_extremum(uint32_t combine, uint32_t type) {
  return (combine == COLLET_COMBINE_MAXIMUM || combine == COLLET_COMBINE_MINIMUM) &&
         collet_type_kind(type) == COLLET_KIND_FLOAT && !ir_.has_extreme(ir_.scalar(type));
}

std::vector<llvm::Value*> KernelEmitter::extremum_slots(uint32_t type, int lanes) {
  Type* t = ir_.wide(ir_.scalar(type), lanes);
  Type* bits = ir_.wide(b_.getIntNTy(t->getScalarSizeInBits()), lanes);
  return {slot(t), nullptr, slot(ir_.wide(b_.getInt1Ty(), lanes)), slot(bits)};
}

void KernelEmitter::start_extremum(const std::vector<Value*>& slots, const Reduction& r, int lanes) {
  Val first = ir_.splat(combine_identity(ir_, r.combine, r.types[0]), lanes);
  b_.CreateStore(first.v, slots[0]);
  b_.CreateStore(llvm::Constant::getNullValue(ir_.wide(b_.getInt1Ty(), lanes)), slots[2]);
  b_.CreateStore(ir_.bits_of(first.v), slots[3]);
}

void KernelEmitter::accumulate_extremum(const std::vector<Value*>& slots, const Reduction& r, Value* x) {
  const bool largest = r.combine == COLLET_COMBINE_MAXIMUM;
  Value* best = b_.CreateLoad(x->getType(), slots[0]);
  Value* better = largest ? b_.CreateFCmpOGT(x, best) : b_.CreateFCmpOLT(x, best);
  b_.CreateStore(b_.CreateSelect(better, x, best), slots[0]);
  Value* nan = b_.CreateFCmpUNO(x, x);
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(nan->getType(), slots[2]), nan), slots[2]);
  Value* bits = ir_.bits_of(x);
  Value* signs = b_.CreateLoad(bits->getType(), slots[3]);
  b_.CreateStore(largest ? b_.CreateAnd(signs, bits) : b_.CreateOr(signs, bits), slots[3]);
}

Val KernelEmitter::extremum(const std::vector<Value*>& slots, const Reduction& r, int lanes, bool across) {
  const bool largest = r.combine == COLLET_COMBINE_MAXIMUM;
  Type* t = ir_.wide(ir_.scalar(r.types[0]), lanes);
  Value* best = b_.CreateLoad(t, slots[0]);
  Value* nan = b_.CreateLoad(ir_.wide(b_.getInt1Ty(), lanes), slots[2]);
  Value* bits = b_.CreateLoad(ir_.int_like(best), slots[3]);
  Value* signed_zero = b_.CreateICmpSLT(bits, llvm::Constant::getNullValue(bits->getType()));
  if (across && lanes > 1) {
    best = ir_.is_scalable() ? reduce_scalable(r.combine, r.types[0], best)
                             : reduce_lanes({best}, lanes, [&](const Val& x, const Val& y) {
                                 Value* better = largest ? b_.CreateFCmpOGT(x.v, y.v) : b_.CreateFCmpOLT(x.v, y.v);
                                 return Val{b_.CreateSelect(better, x.v, y.v)};
                               }).v;
    nan = b_.CreateOrReduce(nan);
    signed_zero = largest ? b_.CreateAndReduce(signed_zero) : b_.CreateOrReduce(signed_zero);
  }
  // If zeros of both signs occur, the maximum is +0, so the result has a clear sign if any sign was clear. The minimum is -0,
  // likewise with a set sign.
  Type* const type = best->getType();
  Value* zero =
      b_.CreateSelect(signed_zero, llvm::ConstantFP::getNegativeZero(type), llvm::Constant::getNullValue(type));
  best = b_.CreateSelect(b_.CreateFCmpOEQ(best, llvm::Constant::getNullValue(best->getType())), zero, best);
  return {b_.CreateSelect(nan, llvm::ConstantFP::getNaN(best->getType()), best)};
}

void KernelEmitter::accumulate(Accumulator& a) {
  const Reduction& r = k_.reductions[a.reduction];
  const bool tail = passes_.lanes_inside() && lanes_ == 1;
  auto& slots = tail ? a.tail_slots : a.slots;
  const int lanes = lanes_;
  if (r.combine != COLLET_COMBINE_OTHER) {
    Val x = ir_.splat(val(r.inputs[0]), lanes);
    Value* on = condition_mask(r.condition);
    if (passes_.lanes_inside() && mask_) on = on ? b_.CreateAnd(ir_.splat(on, lanes), mask_) : mask_;
    if (on) x = ir_.select(ir_.splat(on, lanes), x, ir_.splat(combine_identity(ir_, r.combine, r.types[0]), lanes));
    if (is_extremum(r)) return accumulate_extremum(slots, r, x.v);
    const Contraction contraction(ir_, r.contract || !is_wide(r.types[0]));
    const bool ordered = is_ordered(r) && lanes > 1;
    if (ordered) x.v = product_of_neighbours(x.v);
    put(slots, 0, emit_combine(ir_, r.combine, r.types[0], get(slots, 0, r.types[0], ordered ? 1 : lanes), x));
    return;
  }
  std::vector<Val> args;
  for (size_t i = 0; i < r.types.size(); ++i) args.push_back(get(slots, i, r.types[i], lanes));
  for (ExprId x : r.inputs) args.push_back(ir_.splat(val(x), lanes));
  Value* on = condition_mask(r.condition);
  std::vector<Val> results = emit_body(ir_, r.body, args, emit_both(ir_, on, mask_));
  for (size_t i = 0; i < results.size(); ++i) {
    Val x = ir_.splat(results[i], lanes);
    put(slots, i, on ? ir_.select(ir_.splat(on, lanes), x, args[i]) : x);
  }
}

Val KernelEmitter::reduce_lanes(Val x, int lanes, const std::function<Val(const Val&, const Val&)>& combine) {
  for (int n = lanes / 2; n >= 1; n /= 2) {
    std::vector<int> low(static_cast<size_t>(n));
    std::vector<int> high(static_cast<size_t>(n));
    for (int j = 0; j < n; ++j) {
      low[static_cast<size_t>(j)] = j;
      high[static_cast<size_t>(j)] = n + j;
    }
    auto half = [&](const std::vector<int>& order) {
      return Val{b_.CreateShuffleVector(x.v, order), x.im ? b_.CreateShuffleVector(x.im, order) : nullptr};
    };
    x = combine(half(low), half(high));
  }
  Value* zero = b_.getInt64(0);
  return {b_.CreateExtractElement(x.v, zero), x.im ? b_.CreateExtractElement(x.im, zero) : nullptr};
}

llvm::Value* KernelEmitter::reduce_scalable(uint32_t combine, uint32_t type, Value* x) {
  const bool is_signed = collet_type_kind(type) == COLLET_KIND_SIGNED;
  const bool is_float = x->getType()->isFPOrFPVectorTy();
  switch (combine) {
    case COLLET_COMBINE_ADD: {
      if (collet_type_kind(type) == COLLET_KIND_PRED) return b_.CreateOrReduce(x);
      if (!is_float) return ir_.wrap_small(b_.CreateAddReduce(x), type);
      const llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
      llvm::FastMathFlags any_order;
      any_order.setAllowReassoc();
      b_.setFastMathFlags(any_order);
      return b_.CreateFAddReduce(llvm::ConstantFP::getNegativeZero(x->getType()->getScalarType()), x);
    }
    case COLLET_COMBINE_MAXIMUM:
      return is_float ? b_.CreateFPMaxReduce(x) : b_.CreateIntMaxReduce(x, is_signed);
    case COLLET_COMBINE_MINIMUM:
      return is_float ? b_.CreateFPMinReduce(x) : b_.CreateIntMinReduce(x, is_signed);
    case COLLET_COMBINE_AND:
      return b_.CreateAndReduce(x);
    case COLLET_COMBINE_OR:
      return b_.CreateOrReduce(x);
    case COLLET_COMBINE_XOR:
      return b_.CreateXorReduce(x);
    default:
      return nullptr;  // unreachable: KernelPasses uses vectors of fixed length for these
  }
}

std::pair<Val, Val> KernelEmitter::add_exactly(const Val& x, const Val& y) {
  const auto [re, lost] = ir_.add_exactly(x.v, y.v);
  if (!x.im) return {Val{re}, Val{lost}};
  const auto [im, lost_im] = ir_.add_exactly(x.im, y.im);
  return {Val{re, im}, Val{lost, lost_im}};
}

Val KernelEmitter::corrected(const Val& sum, const Val& lost) {
  // An infinite sum has a NaN for an error, and adding 0 would change the sign of -0.
  const auto correct = [&](Value* s, Value* e) {
    Value* const some = b_.CreateFCmpONE(e, llvm::Constant::getNullValue(e->getType()));
    return b_.CreateSelect(some, b_.CreateFAdd(s, e), s);
  };
  return {correct(sum.v, lost.v), sum.im ? correct(sum.im, lost.im) : nullptr};
}

std::pair<Val, Val> KernelEmitter::add_block(const Val& total, const Val& lost, const Val& block) {
  const auto [sum, rest] = add_exactly(total, block);
  const Val error{b_.CreateFAdd(lost.v, rest.v), lost.im ? b_.CreateFAdd(lost.im, rest.im) : nullptr};
  return {corrected(sum, error), add_exactly(sum, error).second};
}

Val KernelEmitter::total(const Accumulator& a, size_t result, int outer_lanes) {
  const Reduction& r = k_.reductions[a.reduction];
  const uint32_t type = r.types[result];
  const int lanes = lanes_of_accumulator(r, outer_lanes);
  auto combine = [&](const Val& x, const Val& y) { return emit_combine(ir_, r.combine, type, x, y); };
  Val x;
  if (is_extremum(r)) {
    x = extremum(a.slots, r, lanes, passes_.lanes_inside());
    return a.tail_slots.empty() ? x : combine(x, extremum(a.tail_slots, r, 1, true));
  }
  x = get(a.slots, result, type, lanes);
  if (!a.sums.empty()) x = combine(get(a.sums, result, type, lanes), x);
  if (a.has_groups) {
    x = add_block(get(a.totals, result, type, lanes), get(a.lost, result, type, lanes), x).first;
  }
  if (!passes_.lanes_inside()) return x;
  if (!is_ordered(r))
    x = ir_.is_scalable() ? Val{reduce_scalable(r.combine, type, x.v)} : reduce_lanes(x, lanes, combine);
  return a.tail_slots.empty() ? x : combine(x, get(a.tail_slots, result, type, 1));
}

void KernelEmitter::finish(const Accumulator& a, int outer_lanes) {
  std::vector<Val> results;
  for (size_t i = 0; i < k_.reductions[a.reduction].types.size(); ++i) results.push_back(total(a, i, outer_lanes));
  finish_reduction(a.reduction, std::move(results));
}

void KernelEmitter::finish_reduction(size_t reduction, std::vector<Val> results, bool begins_with_zero) {
  const Reduction& r = k_.reductions[reduction];
  for (size_t i = 0; i < r.types.size(); ++i) {
    const uint32_t type = r.types[i];
    if (r.combine == COLLET_COMBINE_OTHER) continue;
    // LLVM does not know that the identity of a maximum or minimum of floats leaves the other operand as it is.
    const auto is_identity = [&](const Val& x) {
      const Val identity = combine_identity(ir_, r.combine, type);
      const auto* const constant = llvm::dyn_cast<llvm::Constant>(x.v);
      if (begins_with_zero && constant && constant->isZeroValue()) return true;
      return x.v == identity.v && x.im == identity.im;
    };
    if (r.inits[i] != kNoExpr && !is_identity(val(r.inits[i]))) {
      Val init = ir_.splat(val(r.inits[i]), ir_.lanes_of(results[i]));
      results[i] = emit_combine(ir_, r.combine, type, init, results[i]);
    }
    if (is_narrow_float(type)) results[i].v = ir_.round_narrow(results[i].v, type);
  }
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& i = k_.exprs[k];
    if (i.op == ExprOp::kReduced && static_cast<size_t>(i.b) == reduction) {
      vals_[k] = results[static_cast<size_t>(i.a)];
    }
  }
}

}  // namespace collet::codegen
