// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/math_notation.h"

namespace collet::codegen::math {
namespace {

llvm::AllocaInst* make_slot(Ir& ir, llvm::Type* type) {
  llvm::Function* f = ir.b.GetInsertBlock()->getParent();
  llvm::IRBuilder<> entry(&f->getEntryBlock(), f->getEntryBlock().begin());
  llvm::AllocaInst* slot = entry.CreateAlloca(type);
  // LLVM does not accept a larger alignment for scalable types
  if (!type->isScalableTy()) slot->setAlignment(llvm::Align(64));
  return slot;
}

/// Reduces doubles of any size by calling a function for each lane.
elementary::Quarter<F> reduce_any(F x) {
  Ir& ir = *x.ir;
  auto& b = ir.b;
  llvm::Type* floats = x.v->getType();
  llvm::Type* integers = ir.int_like(x.v);
  llvm::Value* in = make_slot(ir, floats);
  llvm::Value* high = make_slot(ir, floats);
  llvm::Value* low = make_slot(ir, floats);
  llvm::Value* quarter = make_slot(ir, integers);
  b.CreateStore(x.v, in);
  llvm::Type* ptr = b.getPtrTy();
  auto callee =
      ir.module.getOrInsertFunction("collet_reduce_quarter", b.getVoidTy(), ptr, b.getInt64Ty(), ptr, ptr, ptr);
  b.CreateCall(callee, {in, ir.count(ir.lanes_of(x.v)), high, low, quarter});
  return {{ir, b.CreateLoad(floats, high)}, {ir, b.CreateLoad(floats, low)}, {&ir, b.CreateLoad(integers, quarter)}};
}

/// Reduces x, of which some lane is large. An f32 is reduced as an f64, since few of them are large for that.
elementary::Quarter<F> reduce_large(F x) {
  if (x.wide()) return reduce_any(x);
  const elementary::Quarter<F> wide = reduce_quarter(widen(x));
  const F head = narrow(wide.r);
  Ir& ir = *x.ir;
  return {head, narrow(wide.r - widen(head) + wide.low), {&ir, ir.b.CreateTrunc(wide.quarter.v, ir.int_like(x.v))}};
}

}  // namespace

elementary::Quarter<F> reduce_quarter(F x) {
  Ir& ir = *x.ir;
  auto& b = ir.b;
  const elementary::Quarter<F> near = elementary::reduce_small(x);
  const Mask large = magnitude(x) > elementary::small_limit(x);
  llvm::Value* any = ir.lanes_of(x.v) == 1 ? large.v : b.CreateOrReduce(large);
  auto& context = ir.context();
  llvm::Function* f = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* slow = llvm::BasicBlock::Create(context, "reduce.slow", f);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "reduce.done", f);
  llvm::MDNode* weights = llvm::MDNode::get(
      context, {llvm::MDString::get(context, "branch_weights"), llvm::ConstantAsMetadata::get(b.getInt32(1)),
                llvm::ConstantAsMetadata::get(b.getInt32(2000))});
  b.CreateCondBr(any, slow, after, weights);
  b.SetInsertPoint(slow);
  elementary::Quarter<F> far = reduce_large(x);
  // The result of a lane does not depend on the other lanes.
  far = {select(large, far.r, near.r), select(large, far.low, near.low), select(large, far.quarter, near.quarter)};
  llvm::BasicBlock* end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  const auto join = [&](llvm::Value* fast, llvm::Value* other) {
    llvm::PHINode* phi = b.CreatePHI(fast->getType(), 2);
    phi->addIncoming(fast, before);
    phi->addIncoming(other, end);
    return phi;
  };
  return {{ir, join(near.r.v, far.r.v)}, {ir, join(near.low.v, far.low.v)}, {&ir, join(near.quarter.v, far.quarter.v)}};
}

}  // namespace collet::codegen::math
