// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/compile.h"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCContext.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "reference_backends/gpu/emulator/translate.h"

namespace collet::gpu::emulator {
namespace {

namespace orc = llvm::orc;

/// The JIT, of which the process has one.
struct Jit {
  std::unique_ptr<orc::LLJIT> jit;
  std::optional<orc::JITTargetMachineBuilder> machine;
  std::string problem;
};

/// Functions that LLVM may call when it lowers its intrinsics.
const std::pair<const char*, void*> kSupport[] = {
    {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(&std::fma))},
    {"fmaf", reinterpret_cast<void*>(static_cast<float (*)(float, float, float)>(&std::fma))},
    {"floor", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::floor))},
    {"floorf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::floor))},
    {"ceil", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::ceil))},
    {"ceilf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::ceil))},
    {"trunc", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::trunc))},
    {"truncf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::trunc))},
    {"roundeven", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::nearbyint))},
    {"roundevenf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::nearbyint))},
    {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
    {"memset", reinterpret_cast<void*>(&std::memset)},
    {"memmove", reinterpret_cast<void*>(&std::memmove)},
};

Jit make_jit() {
  Jit j;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto machine = orc::JITTargetMachineBuilder::detectHost();
  if (!machine) {
    j.problem = llvm::toString(machine.takeError());
    return j;
  }
  machine->setCodeGenOptLevel(llvm::CodeGenOptLevel::Less);
  machine->setRelocationModel(llvm::Reloc::PIC_);
  machine->setCodeModel(llvm::CodeModel::Small);
  j.machine = *machine;
  auto made = orc::LLJITBuilder().setJITTargetMachineBuilder(*machine).create();
  if (!made) {
    j.problem = llvm::toString(made.takeError());
    return j;
  }
  j.jit = std::move(*made);
  return j;
}

Jit& the_jit() {
  // Never destroyed, because generated code may run until the process ends.
  static Jit& jit = *new Jit(make_jit());
  return jit;
}

class JitModule : public CompiledModule {
 public:
  ~JitModule() override {
    if (library) llvm::consumeError(the_jit().jit->getExecutionSession().removeJITDylib(*library));
  }
  orc::JITDylib* library = nullptr;
};

/// Runs a short list of passes, because the compiler that wrote the PTX text has optimised it already.
void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setMaxIterations(1)));
  for (llvm::Function& f : module) {
    if (!f.isDeclaration()) passes.run(f, functions);
  }
}

void place_variables(const Module& ptx, const ModuleLayout& layout, const DeviceVariables& variables,
                     CompiledModule& out) {
  std::map<std::string, uint64_t> addresses;
  for (const auto& [v, address] : layout.global) addresses[v->name] = address;
  for (const auto& [v, address] : layout.global) {
    std::vector<uint8_t> bytes(v->bytes, 0);
    std::copy(v->initial.begin(), v->initial.end(), bytes.begin());
    for (const Relocation& r : v->relocations) {
      const auto found = addresses.find(r.symbol);
      if (found == addresses.end()) throw PtxError(v->line, "no variable in device memory: " + r.symbol);
      const uint64_t value = found->second + static_cast<uint64_t>(r.addend);
      std::memcpy(bytes.data() + r.offset, &value, 8);
    }
    if (!bytes.empty()) variables.write(address, bytes.data(), bytes.size());
  }
  for (const auto& v : ptx.variables) {
    const auto found = layout.global.find(v.get());
    if (found != layout.global.end()) out.globals[v->name] = {found->second, v->bytes};
  }
}

std::unique_ptr<Kernel> describe(const Function& f, const ModuleLayout& layout, const FunctionFacts& facts) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = f.name;
  kernel->meets = facts.meets;
  kernel->uses_shared = facts.uses_shared || layout.static_shared.at(&f) > 0;
  kernel->static_shared = layout.static_shared.at(&f);
  kernel->local_bytes = layout.local_bytes;
  if (f.max_threads) kernel->max_threads = f.max_threads;
  std::copy_n(f.required_threads, 3, kernel->required_threads);
  kernel->parameters = parameters_of(f, kernel->parameter_bytes);
  return kernel;
}

std::unique_ptr<CompiledModule> compile(std::string_view text, const DeviceVariables& variables,
                                        std::vector<uint64_t>& allocations, std::string& problem) {
  Jit& jit = the_jit();
  if (!jit.jit) {
    problem = "LLVM: " + jit.problem;
    return nullptr;
  }
  const Module ptx = parse_ptx(text);
  const ModuleLayout layout = lay_out(ptx, [&](const Variable& v) {
    const uint64_t address = variables.allocate(std::max<uint64_t>(v.bytes, 1));
    if (!address) throw PtxError(v.line, "no device memory for " + v.name);
    allocations.push_back(address);
    return address;
  });
  auto machine = jit.machine->createTargetMachine();
  if (!machine) {
    problem = "LLVM: " + llvm::toString(machine.takeError());
    return nullptr;
  }
  llvm::LLVMContext context;
  llvm::Module module("ptx", context);
  module.setDataLayout((*machine)->createDataLayout());
  module.setTargetTriple((*machine)->getTargetTriple().str());
  const auto facts = translate(ptx, layout, module);
  std::string report;
  llvm::raw_string_ostream stream(report);
  if (llvm::verifyModule(module, &stream)) {
    problem = "the emulator made wrong code: " + stream.str();
    return nullptr;
  }
  optimise(module, **machine);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream object_stream(object);
  llvm::legacy::PassManager passes;
  llvm::MCContext* mc = nullptr;
  if ((*machine)->addPassesToEmitMC(passes, mc, object_stream)) {
    problem = "LLVM makes no code for this machine";
    return nullptr;
  }
  passes.run(module);

  auto out = std::make_unique<JitModule>();
  static std::atomic<uint64_t> next{0};
  auto library = jit.jit->createJITDylib("ptx" + std::to_string(next++));
  const auto failed = [&](llvm::Error error) {
    problem = "LLVM: " + llvm::toString(std::move(error));
    return nullptr;
  };
  if (!library) return failed(library.takeError());
  out->library = &*library;
  orc::SymbolMap symbols;
  for (const auto& [name, address] : kSupport) {
    symbols[jit.jit->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
  }
  if (auto error = library->define(orc::absoluteSymbols(symbols))) return failed(std::move(error));
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()}, "ptx");
  if (auto error = jit.jit->addObjectFile(*library, std::move(buffer))) return failed(std::move(error));

  for (const auto& f : ptx.functions) {
    if (!f->is_entry || !f->has_body) continue;
    auto kernel = describe(*f, layout, facts.at(f->name));
    auto address = jit.jit->lookup(*library, facts.at(f->name).symbol);
    if (!address) return failed(address.takeError());
    kernel->code = address->toPtr<void (*)(Thread*)>();
    out->kernels[f->name] = std::move(kernel);
  }
  place_variables(ptx, layout, variables, *out);
  out->ptx_version = ptx.version;
  if (ptx.target.starts_with("sm_")) out->target = static_cast<unsigned>(std::atoi(ptx.target.c_str() + 3));
  return out;
}

}  // namespace

std::unique_ptr<CompiledModule> compile_module(std::string_view text, const DeviceVariables& variables,
                                               std::vector<uint64_t>& allocations, std::string& problem) {
  try {
    return compile(text, variables, allocations, problem);
  } catch (const std::exception& e) {
    problem = e.what();
    return nullptr;
  }
}

}  // namespace collet::gpu::emulator
