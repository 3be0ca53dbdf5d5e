// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/emit_entry.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <functional>

#include "sdk/codegen/base/functions.h"
#include "sdk/codegen/llvm/emit_steps.h"
#include "sdk/codegen/llvm/kernel/emit.h"
#include "sdk/codegen/llvm/object_compiler.h"

namespace collet::codegen {
namespace {

using llvm::Value;

/// Emits the function that runs a launch plan.
class EntryWriter final : public StepsWriter {
 public:
  EntryWriter(const PlannedProgram& program, const CompileOptions& options, llvm::Module& module, const Target& target)
      : StepsWriter(
            llvm::Function::Create(pointer_function(module.getContext()), llvm::Function::ExternalLinkage, "", module),
            target),
        plan_(program.plan),
        target_(target),
        module_(module) {
    for (const FunctionSource& source : program.sources) emit_function(source, module, target);
    for (const FunctionSource& source : program.sources) {
      functions_.push_back(module.getFunction(source.name));
      functions_.back()->setLinkage(llvm::Function::InternalLinkage);
    }
    // A name with a dot cannot clash with the C name that the caller chooses.
    for (llvm::Function* const function : functions_) function->setName("own." + function->getName());
    const uint32_t own = workspace_slot(plan_) + 1;
    for (uint32_t i = 0; i < own; ++i) slots_.push_back(slot(i));
    slots_.push_back(options.embed_constants ? constants() : slot(own));
    if (target.threads > 1) threads_ = slot(own + 1);
  }

  void run() {
    steps(plan_.steps);
    b_.CreateRetVoid();
  }

  /// Sets the name of the function. Returns INVALID_ARGUMENT if the code calls a function of that name.
  Status give_name(const std::string& name) {
    if (module_.getNamedValue(name)) return {COLLET_INVALID_ARGUMENT, "'" + name + "' is a function of the C library"};
    function_->setName(name);
    return {};
  }

 private:
  Value* slot(uint32_t i) { return b_.CreateLoad(b_.getPtrTy(), w_.at(function_->getArg(0), int64_t{8} * i)); }

  Value* constants() {
    const llvm::StringRef bytes(plan_.constants.data(), plan_.constants.size());
    llvm::Constant* const data = llvm::ConstantDataArray::getString(module_.getContext(), bytes, false);
    auto* const global =
        new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
    global->setAlignment(llvm::Align(64));
    return global;
  }

  Value* place(const Step& step, uint32_t i) override {
    const Place& p = plan_.places[step.first_place + i];
    return w_.at(slots_[p.slot], static_cast<int64_t>(p.offset));
  }

  static uint32_t most_places(const StepList& list) {
    uint32_t most = 1;
    for (const Step& step : list) {
      most = std::max(most, step.places);
      for (const StepList& children : step.children) most = std::max(most, most_places(children));
    }
    return most;
  }

  /// Stores the addresses of a step's places in a table, which all steps share, and returns it.
  Value* places(const Step& step) {
    if (!table_) table_ = w_.local(llvm::ArrayType::get(b_.getPtrTy(), most_places(plan_.steps)));
    for (uint32_t i = 0; i < step.places; ++i) b_.CreateStore(place(step, i), w_.at(table_, int64_t{8} * i));
    return table_;
  }

  void kernel(const Step& step) override {
    const KernelCall& call = step.kernel;
    Value* const table = places(step);
    const auto whole = [&] {
      b_.CreateCall(functions_[call.function], {table, w_.number(0), w_.number(call.range), b_.getInt32(0)});
    };
    if (call.parallel && call.range > 1) {
      share(call.cost_ns, functions_[call.function], table, call.range, call.grain, whole);
    } else {
      whole();
    }
    if (call.tail == kNoFunction) return;
    Value* const rest = w_.at(table, int64_t{8} * call.tail_place);
    b_.CreateCall(functions_[call.tail], {rest, w_.number(0), w_.number(call.tail_range), b_.getInt32(0)});
  }

  void blocks(const Step& step) override {
    const KernelCall& call = step.kernel;
    uint32_t count = 0;
    for (const Step& one : step.children[0]) count += one.places;
    Value* const table = w_.local(llvm::ArrayType::get(b_.getPtrTy(), count));
    uint32_t next = 0;
    for (const Step& one : step.children[0]) {
      for (uint32_t i = 0; i < one.places; ++i) b_.CreateStore(place(one, i), w_.at(table, int64_t{8} * next++));
    }
    llvm::Function* const part = block_function(step.children[0]);
    const auto whole = [&] { b_.CreateCall(part, {table, w_.number(0), w_.number(call.range), b_.getInt32(0)}); };
    if (!call.parallel) return whole();
    share(call.cost_ns, part, table, call.range, 1, whole);
  }

  /// Returns the function that runs steps for blocks of rows. Its table has the places of all steps, in order.
  llvm::Function* block_function(const StepList& list) {
    auto* const function = llvm::Function::Create(kernel_function(module_.getContext()),
                                                  llvm::Function::InternalLinkage, "blocks", module_);
    FunctionWriter w(function, target_);
    Value* const worker = w.b.CreateSExt(function->getArg(3), w.b.getInt64Ty());
    Value* const own = w.local(llvm::ArrayType::get(w.b.getPtrTy(), kMostBlockPlaces));
    w.loop(function->getArg(1), function->getArg(2), [&](Value* block) {
      Value* const ahead = w.b.CreateSub(worker, block);
      Value* const end = w.add(block, w.number(1));
      uint32_t next = 0;
      for (const Step& step : list) {
        for (uint32_t i = 0; i < step.places; ++i) {
          Value* const address = w.b.CreateLoad(w.b.getPtrTy(), w.at(function->getArg(0), int64_t{8} * next++));
          const auto bytes = static_cast<int64_t>(step.block_bytes[i]);
          w.b.CreateStore(bytes == 0 ? address : w.at(address, w.times(ahead, bytes)), w.at(own, int64_t{8} * i));
        }
        w.b.CreateCall(functions_[step.kernel.function], {own, block, end, function->getArg(3)});
      }
    });
    w.b.CreateRetVoid();
    return function;
  }

  /// Emits a parallel loop over [0, range) that the caller's threads share, if the work is large enough and the caller
  /// has threads. Otherwise the code of `whole` runs.
  void share(double cost_ns, llvm::Function* part, Value* table, int64_t range, int64_t grain,
             const std::function<void()>& whole) {
    if (!threads_ || range < 2 || cost_ns < target_.wake_ns) return whole();
    llvm::BasicBlock *many = w_.block("shared"), *one = w_.block("alone"), *after = w_.block("after");
    b_.CreateCondBr(b_.CreateIsNull(threads_), one, many);
    b_.SetInsertPoint(many);
    llvm::Type *const pointer = b_.getPtrTy(), *const number = b_.getInt64Ty();
    auto* const type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, number, number, pointer, pointer}, false);
    Value* const loop = b_.CreateLoad(pointer, threads_);
    Value* const user = b_.CreateLoad(pointer, w_.at(threads_, int64_t{8}));
    b_.CreateCall(type, loop, {user, w_.number(range), w_.number(grain), part, table});
    b_.CreateBr(after);
    b_.SetInsertPoint(one);
    whole();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  const LaunchPlan& plan_;
  const Target& target_;
  llvm::Module& module_;
  std::vector<llvm::Function*> functions_;
  std::vector<Value*> slots_;
  Value* table_ = nullptr;    ///< table with the addresses of the current step's places
  Value* threads_ = nullptr;  ///< address of the caller's SharedLoops; may be null when the program runs
};

}  // namespace

Status emit_entry(const PlannedProgram& program, const CompileOptions& options, llvm::Module& module,
                  const Target& target) {
  if (!program.plan.routines.empty()) {
    return {COLLET_UNIMPLEMENTED,
            std::string("no code is made ahead of time for ") + collet_op_name(program.plan.routines[0].opcode)};
  }
  EntryWriter writer(program, options, module, target);
  writer.run();
  return writer.give_name(options.name);
}

}  // namespace collet::codegen
