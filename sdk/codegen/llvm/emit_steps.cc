// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/emit_steps.h"

#include <map>
#include <string>
#include <vector>

#include "sdk/codegen/llvm/kernel/emit.h"

namespace collet::codegen {

llvm::FunctionType* pointer_function(llvm::LLVMContext& context) {
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context), {llvm::PointerType::get(context, 0)}, false);
}

void StepsWriter::steps(const StepList& list) {
  for (const Step& step : list) one(step);
}

void StepsWriter::one(const Step& step) {
  switch (step.kind) {
    case StepKind::kKernel:
      return kernel(step);
    case StepKind::kBlocks:
      return blocks(step);
    case StepKind::kRoutine:
    case StepKind::kLibrary:
    case StepKind::kChoice:
    case StepKind::kHostValue:
    case StepKind::kCollective:
      return;  // emits nothing: the caller has checked that such steps do not occur
    case StepKind::kCopy:
      // memmove, because both places may be the same memory.
      b_.CreateMemMove(place(step, 1), llvm::Align(1), place(step, 0), llvm::Align(1), step.bytes);
      return;
    case StepKind::kWhile:
      return loop(step);
    case StepKind::kConditional:
      return choose(step);
  }
}

void StepsWriter::loop(const Step& step) {
  llvm::BasicBlock *head = w_.block("condition"), *body = w_.block("body"), *after = w_.block("after");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  steps(step.children[0]);
  Value* const again = b_.CreateLoad(b_.getInt8Ty(), place(step, 0));
  b_.CreateCondBr(b_.CreateICmpNE(again, b_.getInt8(0)), body, after);
  b_.SetInsertPoint(body);
  steps(step.children[1]);
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

void StepsWriter::choose(const Step& step) {
  llvm::BasicBlock* const after = w_.block("after");
  std::vector<llvm::BasicBlock*> branches;
  for (size_t i = 0; i < step.children.size(); ++i) branches.push_back(w_.block("branch"));
  if (step.index_bytes == 0) {
    Value* const choice = b_.CreateLoad(b_.getInt8Ty(), place(step, 0));
    b_.CreateCondBr(b_.CreateICmpNE(choice, b_.getInt8(0)), branches.front(), branches.back());
  } else {
    Value* const choice = b_.CreateLoad(b_.getInt32Ty(), place(step, 0));
    auto* const cases = b_.CreateSwitch(choice, branches.back(), static_cast<unsigned>(branches.size()));
    for (uint32_t i = 0; i + 1 < branches.size(); ++i) cases->addCase(b_.getInt32(i), branches[i]);
  }
  for (size_t i = 0; i < branches.size(); ++i) {
    b_.SetInsertPoint(branches[i]);
    steps(step.children[i]);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

namespace {

/// Emits a loop of the launch plan as a function whose parameters are the addresses of its memory regions.
class LoopWriter final : public StepsWriter {
 public:
  LoopWriter(const LoopSource& source, llvm::Module& module, const Target& target, const std::string& name)
      : StepsWriter(make(source, module, name), target), source_(source) {
    for (const auto& [id, kernel] : source.functions) {
      llvm::Function* const f = emit_kernel(kernel, module, target, name + ".kernel" + std::to_string(id), true);
      f->setLinkage(llvm::Function::InternalLinkage);
      f->addFnAttr(llvm::Attribute::AlwaysInline);
      functions_[id] = f;
    }
  }

  llvm::Function* run() {
    for (size_t i = 0; i < source_.regions.size(); ++i) open(i);
    one(source_.loop);
    for (size_t i = 0; i < source_.regions.size(); ++i) {
      const LoopSource::Region& r = source_.regions[i];
      if (r.written && is_small(r)) copy(function_->getArg(static_cast<unsigned>(i)), addresses_[i], r);
    }
    b_.CreateRetVoid();
    return function_;
  }

 private:
  static constexpr uint64_t kSmall = 256;  ///< most bytes of a region that is copied to local memory

  static llvm::Function* make(const LoopSource& source, llvm::Module& module, const std::string& name) {
    llvm::LLVMContext& context = module.getContext();
    const std::vector<llvm::Type*> pointers(source.regions.size(), llvm::PointerType::get(context, 0));
    auto* const f = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), pointers, false),
                                           llvm::Function::InternalLinkage, name + ".loop", module);
    for (unsigned i = 0; i < source.regions.size(); ++i) {
      if (source.regions[i].written) f->addParamAttr(i, llvm::Attribute::NoAlias);
    }
    return f;
  }

  static bool is_small(const LoopSource::Region& r) { return r.end - r.begin <= kSmall; }

  void copy(Value* to, Value* from, const LoopSource::Region& r) {
    b_.CreateMemCpy(to, llvm::Align(1), from, llvm::Align(1), r.end - r.begin);
  }

  /// Small regions are copied to local memory, which LLVM promotes to registers.
  void open(size_t i) {
    const LoopSource::Region& r = source_.regions[i];
    Value* address = function_->getArg(static_cast<unsigned>(i));
    if (is_small(r)) {
      llvm::AllocaInst* const own = w_.local(llvm::ArrayType::get(b_.getInt8Ty(), r.end - r.begin));
      own->setAlignment(llvm::Align(64));
      copy(own, address, r);
      address = own;
    }
    addresses_.push_back(address);
  }

  Value* place(const Step& step, uint32_t i) override {
    const LoopSource::RegionOffset& to = source_.region_offsets.at(step.first_place + i);
    return w_.at(addresses_[to.region], static_cast<int64_t>(to.offset));
  }

  void kernel(const Step& step) override {
    const KernelCall& call = step.kernel;
    Value* const table = w_.local(llvm::ArrayType::get(b_.getPtrTy(), std::max(step.places, 1U)));
    for (uint32_t i = 0; i < step.places; ++i) b_.CreateStore(place(step, i), w_.at(table, int64_t{8} * i));
    b_.CreateCall(functions_.at(call.function), {table, w_.number(0), w_.number(call.range), b_.getInt32(0)});
    if (call.tail == kNoFunction) return;
    Value* const rest = w_.at(table, int64_t{8} * call.tail_place);
    b_.CreateCall(functions_.at(call.tail), {rest, w_.number(0), w_.number(call.tail_range), b_.getInt32(0)});
  }

  // Unreachable: a joined loop has no blocks of rows.
  void blocks(const Step&) override {}

  const LoopSource& source_;
  std::map<FunctionId, llvm::Function*> functions_;
  std::vector<Value*> addresses_;  ///< addresses of the regions
};

}  // namespace

void emit_loop(const LoopSource& source, llvm::Module& module, const Target& target, const std::string& name) {
  llvm::Function* const loop = LoopWriter(source, module, target, name).run();
  auto* const function =
      llvm::Function::Create(pointer_function(module.getContext()), llvm::Function::ExternalLinkage, name, module);
  FunctionWriter w(function, target);
  std::vector<llvm::Value*> addresses;
  for (const LoopSource::Region& r : source.regions) {
    llvm::Value* const slot = w.b.CreateLoad(w.b.getPtrTy(), w.at(function->getArg(0), int64_t{8} * r.slot));
    addresses.push_back(w.at(slot, static_cast<int64_t>(r.begin)));
  }
  w.b.CreateCall(loop, addresses);
  w.b.CreateRetVoid();
}

}  // namespace collet::codegen
