// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Emits the steps of a launch plan as code that does what LoadedProgram does by interpreting them.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <functional>

#include "sdk/codegen/compile/function_source.h"
#include "sdk/codegen/llvm/kernel/emit.h"

namespace collet::codegen {

/// Returns the type void(pointer).
llvm::FunctionType* pointer_function(llvm::LLVMContext& context);

/// A function under construction, with helpers for loops and branches.
class FunctionWriter {
 public:
  FunctionWriter(llvm::Function* function, const Target& target) : b(function->getContext()), function_(function) {
    set_function_attributes(function, target);
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function));
  }

  llvm::IRBuilder<> b;

  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function_); }
  llvm::Value* number(int64_t x) { return llvm::ConstantInt::getSigned(b.getInt64Ty(), x); }
  llvm::Value* at(llvm::Value* base, llvm::Value* bytes) { return b.CreateGEP(b.getInt8Ty(), base, bytes); }
  llvm::Value* at(llvm::Value* base, int64_t bytes) { return bytes == 0 ? base : at(base, number(bytes)); }
  llvm::Value* add(llvm::Value* x, llvm::Value* y) { return b.CreateAdd(x, y); }
  llvm::Value* times(llvm::Value* x, int64_t y) { return b.CreateMul(x, number(y)); }

  /// Emits a loop that runs body(i) for begin <= i < end.
  void loop(llvm::Value* begin, llvm::Value* end, const std::function<void(llvm::Value*)>& body) {
    llvm::BasicBlock *head = block("head"), *inside = block("body"), *after = block("after"),
                     *before = b.GetInsertBlock();
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    b.CreateCondBr(b.CreateICmpSLT(i, end), inside, after);
    b.SetInsertPoint(inside);
    body(i);
    i->addIncoming(b.CreateAdd(i, number(1)), b.GetInsertBlock());
    b.CreateBr(head);
    b.SetInsertPoint(after);
  }

  void branch(llvm::Value* condition, const std::function<void()>& body) {
    llvm::BasicBlock *inside = block("then"), *after = block("after");
    b.CreateCondBr(condition, inside, after);
    b.SetInsertPoint(inside);
    body();
    b.CreateBr(after);
    b.SetInsertPoint(after);
  }

  /// Allocates local memory of the function, which is aligned for numbers and addresses.
  llvm::AllocaInst* local(llvm::Type* type) {
    llvm::IRBuilder<> first(&function_->getEntryBlock(), function_->getEntryBlock().begin());
    llvm::AllocaInst* const made = first.CreateAlloca(type);
    made->setAlignment(std::max(made->getAlign(), llvm::Align(8)));
    return made;
  }

 private:
  llvm::Function* function_;
};

/// Emits steps, one after the other, with their loops and branches.
class StepsWriter {
 public:
  StepsWriter(llvm::Function* function, const Target& target) : function_(function), w_(function, target), b_(w_.b) {}
  virtual ~StepsWriter() = default;
  StepsWriter(const StepsWriter&) = delete;
  StepsWriter& operator=(const StepsWriter&) = delete;

 protected:
  using Value = llvm::Value;

  void steps(const StepList& list);
  void one(const Step& step);
  /// Returns the address of place `i` of a step.
  virtual Value* place(const Step& step, uint32_t i) = 0;
  virtual void kernel(const Step& step) = 0;
  virtual void blocks(const Step& step) = 0;

  llvm::Function* function_;
  FunctionWriter w_;
  llvm::IRBuilder<>& b_;

 private:
  void loop(const Step& step);
  void choose(const Step& step);
};

/// Adds the loop to the module as a LoopFunction. Small memory regions are kept in registers if there are enough of
/// them.
void emit_loop(const LoopSource& source, llvm::Module& module, const Target& target, const std::string& name);

}  // namespace collet::codegen
