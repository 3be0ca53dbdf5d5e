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

/// Reduces large arguments by calling a function for each lane, in f64.
elementary::Quarter<F> reduce_large(F x) {
  Ir& ir = *x.ir;
  auto& b = ir.b;
  const F wide = x.wide() ? x : widen(x);
  llvm::Type* floats = wide.v->getType();
  llvm::Type* integers = ir.int_like(wide.v);
  llvm::Value* in = make_slot(ir, floats);
  llvm::Value* high = make_slot(ir, floats);
  llvm::Value* low = make_slot(ir, floats);
  llvm::Value* quarter = make_slot(ir, integers);
  b.CreateStore(wide.v, in);
  llvm::Type* ptr = b.getPtrTy();
  auto callee =
      ir.module.getOrInsertFunction("collet_reduce_quarter", b.getVoidTy(), ptr, b.getInt64Ty(), ptr, ptr, ptr);
  b.CreateCall(callee, {in, ir.count(ir.lanes_of(x.v)), high, low, quarter});
  const F r = {ir, b.CreateLoad(floats, high)}, rest = {ir, b.CreateLoad(floats, low)};
  llvm::Value* q = b.CreateLoad(integers, quarter);
  if (x.wide()) return {r, rest, {&ir, q}};
  const F head = narrow(r);
  return {head, narrow(r - widen(head)), {&ir, b.CreateTrunc(q, ir.int_like(x.v))}};
}

}  // namespace

elementary::Quarter<F> reduce_quarter(F x) {
  Ir& ir = *x.ir;
  auto& b = ir.b;
  const elementary::Quarter<F> near = elementary::reduce_small(x);
  // If any lane is large, all lanes are reduced by the function.
  llvm::Value* large = magnitude(x) > elementary::small_limit(x);
  llvm::Value* any = ir.lanes_of(x.v) == 1 ? large : b.CreateOrReduce(large);
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
  const elementary::Quarter<F> far = reduce_large(x);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  const auto join = [&](llvm::Value* fast, llvm::Value* other) {
    llvm::PHINode* phi = b.CreatePHI(fast->getType(), 2);
    phi->addIncoming(fast, before);
    phi->addIncoming(other, slow);
    return phi;
  };
  return {{ir, join(near.r.v, far.r.v)}, {ir, join(near.low.v, far.low.v)}, {&ir, join(near.quarter.v, far.quarter.v)}};
}

}  // namespace collet::codegen::math
