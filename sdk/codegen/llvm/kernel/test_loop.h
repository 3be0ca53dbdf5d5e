// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// For tests of what computes vectors: a function that applies it to whole arrays.

#include <functional>

#include "sdk/codegen/llvm/ir.h"

namespace collet::codegen {

/// Adds the function void loop(ptr, ..., i64 count) with so many pointers. It runs `body` for i = 0, lanes, 2 lanes, ...
/// below count, at least once.
inline void emit_test_loop(llvm::Module& module, const Target& target, unsigned pointers, int lanes,
                           const std::function<void(Ir& ir, llvm::Function& f, llvm::Value* i)>& body) {
  Ir ir(module, target);
  auto& b = ir.b;
  std::vector<llvm::Type*> parameters(pointers, b.getPtrTy());
  parameters.push_back(b.getInt64Ty());
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), parameters, false),
                                   llvm::Function::ExternalLinkage, "loop", module);
  f->addFnAttr("target-cpu", target.cpu);
  f->addFnAttr("target-features", target.features);
  auto* entry = llvm::BasicBlock::Create(module.getContext(), "entry", f);
  auto* head = llvm::BasicBlock::Create(module.getContext(), "head", f);
  auto* done = llvm::BasicBlock::Create(module.getContext(), "done", f);
  b.SetInsertPoint(entry);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), entry);
  body(ir, *f, i);
  auto* next = b.CreateAdd(i, b.getInt64(static_cast<uint64_t>(lanes)));
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, f->getArg(pointers)), head, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

}  // namespace collet::codegen
