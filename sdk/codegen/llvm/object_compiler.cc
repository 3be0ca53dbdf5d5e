// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/object_compiler.h"

#include <collet/codegen/target.h>

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <mutex>

#include "sdk/codegen/llvm/emit_steps.h"
#include "sdk/codegen/llvm/grid/grid_emitter.h"
#include "sdk/codegen/llvm/grid/grid_function.h"
#include "sdk/codegen/llvm/kernel/emit.h"
#include "sdk/codegen/llvm/kernel/emit_support.h"
#include "sdk/codegen/llvm/product/emit_matmul.h"
#include "sdk/codegen/llvm/product/emit_product.h"
#include "sdk/codegen/llvm/targets.h"
#include "sdk/codegen/llvm/versioned_text.h"

namespace collet::codegen {

/// A short list of LLVM passes, and their analyses: the code is vectorised and its loops are in order already. It is kept from
/// module to module, because LLVM takes as long to register the analyses as to run the passes on a small function.
class ObjectCompiler::Passes {
 public:
  explicit Passes(llvm::TargetMachine* machine) {
    llvm::PassBuilder builder(machine);
    builder.registerModuleAnalyses(modules_);
    builder.registerCGSCCAnalyses(graphs_);
    builder.registerFunctionAnalyses(functions_);
    builder.registerLoopAnalyses(loops_);
    builder.crossRegisterProxies(loops_, functions_, graphs_, modules_);
    inliner_.addPass(llvm::AlwaysInlinerPass());
    passes_.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes_.addPass(llvm::EarlyCSEPass());
    passes_.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setMaxIterations(1)));
    passes_.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true, false));
    passes_.addPass(llvm::EarlyCSEPass());
    passes_.addPass(llvm::SimplifyCFGPass());
    passes_.addPass(llvm::DCEPass());
  }

  void run(llvm::Module& module) {
    if (std::any_of(module.begin(), module.end(),
                    [](const llvm::Function& f) { return f.hasFnAttribute(llvm::Attribute::AlwaysInline); })) {
      inliner_.run(module, modules_);
    }
    for (llvm::Function& f : module) {
      if (!f.isDeclaration() && !f.hasOptNone()) passes_.run(f, functions_);
    }
    // The results refer to the module.
    loops_.clear();
    functions_.clear();
    graphs_.clear();
    modules_.clear();
  }

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager graphs_;
  llvm::ModuleAnalysisManager modules_;
  llvm::ModulePassManager inliner_;
  llvm::FunctionPassManager passes_;
};

namespace {

/// Gives the undefined operands of phis a value. ptxas of CUDA 13.0 takes a variable of a loop that is undefined before the
/// first iteration for the same variable of the next iteration.
void define_phis(llvm::Module& module) {
  for (llvm::Function& f : module) {
    for (llvm::BasicBlock& block : f) {
      for (llvm::PHINode& phi : block.phis()) {
        for (llvm::Use& x : phi.incoming_values()) {
          if (llvm::isa<llvm::UndefValue>(x)) x.set(llvm::Constant::getNullValue(phi.getType()));
        }
      }
    }
  }
}

std::string text_of(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

/// Returns a module as assembly text; empty if the target has none.
std::string assembly_of(const llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  const auto copy = llvm::CloneModule(module);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) return {};
  passes.run(*copy);
  return std::string(text.begin(), text.end());
}

}  // namespace

void emit_function(const FunctionSource& f, llvm::Module& module, const Target& target) {
  if (const auto* kernel = std::get_if<Kernel>(&f.body)) {
    emit_kernel(*kernel, module, target, f.name);
  } else if (const auto* grid = std::get_if<GridKernel>(&f.body)) {
    emit_grid_kernel(*grid, module, target, f.name);
  } else if (const auto* sort = std::get_if<GridSort>(&f.body)) {
    emit_grid_sort(*sort, module, target, f.name);
  } else if (const auto* radix = std::get_if<GridRadix>(&f.body)) {
    emit_grid_radix(*radix, module, target, f.name);
  } else if (const auto* comparator = std::get_if<Comparator>(&f.body)) {
    emit_comparator(comparator->body, comparator->types, module, target, f.name);
  } else if (const auto* loop = std::get_if<LoopSource>(&f.body)) {
    emit_loop(*loop, module, target, f.name);
  } else if (const auto* product = std::get_if<BlockedProduct>(&f.body)) {
    emit_product(*product, module, target, f.name);
  } else {
    const auto& micro = std::get<MicroSource>(f.body);
    const Epilogue* const epilogue = micro.epilogue ? &*micro.epilogue : nullptr;
    if (micro.kernel.rows == 0 && epilogue) {
      emit_epilogue(micro.kernel, *epilogue, module, target, f.name);
    } else if (micro.kernel.rows == 0) {
      emit_fold(micro.kernel, module, target, f.name);
    } else {
      emit_micro_kernel(micro.kernel, epilogue, module, target, f.name);
    }
  }
}

ObjectCompiler::ObjectCompiler(const Target& target, std::unique_ptr<llvm::TargetMachine> machine)
    : target_(target), machine_(std::move(machine)), passes_(std::make_unique<Passes>(machine_.get())) {}

ObjectCompiler::~ObjectCompiler() = default;

Status ObjectCompiler::create(const Target& target, std::unique_ptr<ObjectCompiler>& out) {
  initialize_targets();
  if (target.has_grid() && (target.grid.warp != 32 || target.grid.block_threads < 512 || target.grid.processors < 1))
    return {COLLET_INVALID_ARGUMENT,
            "grids have warps of 32 threads, blocks of at least 512, and at least one processor"};
  std::string problem;
  const llvm::Target* const found = llvm::TargetRegistry::lookupTarget(target.triple, problem);
  if (!found) return {COLLET_UNIMPLEMENTED, "LLVM: " + problem};
  llvm::TargetOptions options;
  options.MCOptions.ABIName = target.abi;
  // Decoded instructions are kept by blocks of 32 or 64 bytes. A short loop that straddles two may take twice the time.
  if (target.triple.starts_with("x86_64")) options.LoopAlignment = 32;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_));
  if (!machine) return {COLLET_UNIMPLEMENTED, "LLVM makes no code for " + target.triple};
  out.reset(new ObjectCompiler(target, std::move(machine)));
  return {};
}

Status ObjectCompiler::write(llvm::Module& module, const std::function<void(llvm::Module&)>& fill) const {
  module.setDataLayout(machine_->createDataLayout());
  module.setTargetTriple(target_.triple);
  fill(module);
  define_support(module, target_);
  std::string problem;
  llvm::raw_string_ostream report(problem);
  if (llvm::verifyModule(module, &report)) return {COLLET_INTERNAL, "generated code is wrong: " + problem};
  return {};
}

Status ObjectCompiler::print(const std::string& name, const std::function<void(llvm::Module&)>& fill, int version,
                             std::string& text) {
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  COLLET_CODEGEN_TRY(write(module, fill));
  return print_for_version(module, version, text);
}

Status ObjectCompiler::compile(const std::string& name, const std::function<void(llvm::Module&)>& fill,
                               Artifacts* artifacts, std::string& object) {
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  COLLET_CODEGEN_TRY(write(module, fill));
  if (artifacts) artifacts->emplace_back(name + ".ll", text_of(module));
  passes_->run(module);
  if (target_.has_grid()) define_phis(module);
  if (artifacts) {
    artifacts->emplace_back(name + ".opt.ll", text_of(module));
    artifacts->emplace_back(name + (target_.has_grid() ? ".ptx" : ".s"), assembly_of(module, *machine_));
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  llvm::MCContext* mc = nullptr;
  if (target_.has_grid()) {  // the driver of such a device reads assembly text
    if (machine_->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
      return {COLLET_INTERNAL, "LLVM: no assembly for this target"};
  } else if (machine_->addPassesToEmitMC(passes, mc, stream))
    return {COLLET_INTERNAL, "LLVM: no object code for this target"};
  passes.run(module);
  object.assign(bytes.begin(), bytes.end());
  return {};
}

}  // namespace collet::codegen
