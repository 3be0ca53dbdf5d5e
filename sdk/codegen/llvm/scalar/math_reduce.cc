// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "sdk/codegen/llvm/kernel/emit.h"
#include "sdk/codegen/llvm/scalar/math_notation.h"

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

/// Calls `function` with pointers to x, to the remainder, to its low part and to the quarters. With `counts`, the number of lanes follows the
/// first pointer.
elementary::Quarter<F> call_reduction(F x, const std::string& function, bool counts) {
  Ir& ir = *x.ir;
  auto& b = ir.b;
  llvm::Type* floats = x.v->getType();
  llvm::Type* integers = ir.int_like(x.v);
  llvm::Value* in = make_slot(ir, floats);
  llvm::Value* high = make_slot(ir, floats);
  llvm::Value* low = make_slot(ir, floats);
  llvm::Value* quarter = make_slot(ir, integers);
  b.CreateStore(x.v, in);
  std::vector<llvm::Value*> arguments{in, high, low, quarter};
  if (counts) arguments.insert(arguments.begin() + 1, ir.count(ir.lanes_of(x.v)));
  std::vector<llvm::Type*> types;
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  auto callee = ir.module.getOrInsertFunction(function, llvm::FunctionType::get(b.getVoidTy(), types, false));
  b.CreateCall(callee, arguments);
  return {{ir, b.CreateLoad(floats, high)}, {ir, b.CreateLoad(floats, low)}, {&ir, b.CreateLoad(integers, quarter)}};
}

/// Defines, if the module does not have it, the function that reduces f32 like `x` as f64, and returns its name. It is a
/// function because a kernel may have many sines: LLVM's time grows faster than the code between them.
std::string define_reduction(F x) {
  Ir ir(x.ir->module, x.ir->target);
  if (x.ir->is_scalable()) ir.use_scalable_vectors();
  const std::string name = "collet_reduce_f32x" + std::to_string(ir.lanes_of(x.v));
  if (ir.module.getFunction(name)) return name;
  auto& b = ir.b;
  llvm::Type* ptr = b.getPtrTy();
  llvm::Function* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, ptr}, false),
                                             llvm::Function::InternalLinkage, name, ir.module);
  set_function_attributes(f, ir.target);
  f->addFnAttr(llvm::Attribute::NoInline);
  b.SetInsertPoint(llvm::BasicBlock::Create(ir.context(), "entry", f));
  const elementary::Quarter<F> wide = reduce_quarter(widen({ir, b.CreateLoad(x.v->getType(), f->getArg(0))}));
  const F head = narrow(wide.r);
  b.CreateStore(head.v, f->getArg(1));
  b.CreateStore(narrow(wide.r - widen(head) + wide.low).v, f->getArg(2));
  b.CreateStore(b.CreateTrunc(wide.quarter.v, ir.int_like(x.v)), f->getArg(3));
  b.CreateRetVoid();
  return name;
}

/// Reduces x, of which some lane is large. An f32 is reduced as an f64, for which few of them are large.
elementary::Quarter<F> reduce_large(F x) {
  return x.wide() ? call_reduction(x, "collet_reduce_quarter", true) : call_reduction(x, define_reduction(x), false);
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
