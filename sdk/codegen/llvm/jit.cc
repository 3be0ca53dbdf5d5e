// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/jit.h"

#include <collet/codegen/target.h>

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <future>
#include <iterator>
#include <mutex>

#include "sdk/codegen/llvm/object_compiler.h"
#include "sdk/codegen/llvm/targets.h"

namespace collet::codegen {
namespace {

namespace orc = llvm::orc;

/// A function that generated code may call.
struct Support {
  const char* name;
  void* address;
};
const Support kSupport[] = {
    {"fmod", reinterpret_cast<void*>(static_cast<double (*)(double, double)>(&std::fmod))},
    {"fmodf", reinterpret_cast<void*>(static_cast<float (*)(float, float)>(&std::fmod))},
    {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(&std::fma))},
    {"fmaf", reinterpret_cast<void*>(static_cast<float (*)(float, float, float)>(&std::fma))},
    {"floor", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::floor))},
    {"floorf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::floor))},
    {"ceil", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::ceil))},
    {"ceilf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::ceil))},
    {"rint", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::rint))},
    {"rintf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::rint))},
    {"round", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::round))},
    {"roundf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::round))},
    {"trunc", reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::trunc))},
    {"truncf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&std::trunc))},
    {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
    {"memset", reinterpret_cast<void*>(&std::memset)},
    {"memmove", reinterpret_cast<void*>(&std::memmove)},
};

std::string text_of(llvm::Error error) {
  return llvm::toString(std::move(error));
}

// Divides the functions among modules, a few for each, because modules are compiled in parallel. Micro-kernels are
// large, so their modules have fewer. Functions that other programs share get modules of their own.
std::vector<std::vector<const FunctionSource*>> modules_of(const std::vector<FunctionSource>& sources, size_t threads) {
  constexpr size_t kMost[] = {12, 4, SIZE_MAX, 1};  // most functions of a module, by kind of source
  // Least functions of a module: a module costs as much as compiling a small function.
  constexpr size_t kLeast = 3;
  std::vector<std::vector<const FunctionSource*>> modules;
  for (size_t kind = 0; kind < std::size(kMost); ++kind) {
    const auto is_mine = [&](const FunctionSource& f) {
      // Products are short, like kernels.
      const size_t own = std::holds_alternative<BlockedProduct>(f.body) ? 0 : f.body.index();
      return !f.shared && own == kind;
    };
    const auto all = static_cast<size_t>(std::count_if(sources.begin(), sources.end(), is_mine));
    const size_t each = std::min(kMost[kind], std::max(kLeast, (all + threads - 1) / threads));
    size_t count = 0;
    for (const FunctionSource& f : sources) {
      if (!is_mine(f)) continue;
      if (count++ % each == 0) modules.emplace_back();
      modules.back().push_back(&f);
    }
  }
  return modules;
}

}  // namespace

/// Code in a library of the JIT.
class Jit::Code : public LoadedCode {
 public:
  explicit Code(std::shared_ptr<orc::LLJIT> jit) : jit_(std::move(jit)) {}
  ~Code() override {
    if (library_) llvm::consumeError(jit_->getExecutionSession().removeJITDylib(*library_));
  }

  void* find(const std::string& name) const override {
    if (const auto known = shared_.find(name); known != shared_.end()) return known->second;
    auto symbol = jit_->lookup(*library_, name);
    if (!symbol) {
      llvm::consumeError(symbol.takeError());
      return nullptr;
    }
    return symbol->toPtr<void*>();
  }

 private:
  friend class Jit;
  std::shared_ptr<orc::LLJIT> jit_;
  orc::JITDylib* library_ = nullptr;
  std::map<std::string, void*> shared_;  ///< functions that the JIT keeps for all programs
};

Jit::Jit(Target target) : target_(std::move(target)) {}

Jit::~Jit() = default;

Status Jit::create(const Target& target, std::unique_ptr<Jit>& out) {
  initialize_targets();
  std::unique_ptr<Jit> jit(new Jit(target));
  orc::JITTargetMachineBuilder machine{llvm::Triple(target.triple)};
  machine.setCPU(target.cpu);
  machine.getFeatures() = llvm::SubtargetFeatures(target.features);
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  machine.setCodeModel(llvm::CodeModel::Small);
  machine.setRelocationModel(llvm::Reloc::PIC_);
  auto made = orc::LLJITBuilder().setJITTargetMachineBuilder(machine).create();
  if (!made) return {COLLET_INTERNAL, "LLVM: " + text_of(made.takeError())};
  jit->jit_ = std::move(*made);
  out = std::move(jit);
  return {};
}

// Creates a library without code.
Status Jit::begin(std::unique_ptr<Code>& out) {
  static std::atomic<uint64_t> next{0};
  auto code = std::make_unique<Code>(jit_);
  auto library = jit_->createJITDylib("program" + std::to_string(next++));
  if (!library) return {COLLET_INTERNAL, "LLVM: " + text_of(library.takeError())};
  code->library_ = &*library;
  orc::SymbolMap symbols;
  for (const Support& s : kSupport) {
    symbols[jit_->mangleAndIntern(s.name)] = {orc::ExecutorAddr::fromPtr(s.address), llvm::JITSymbolFlags::Exported};
  }
  if (auto error = library->define(orc::absoluteSymbols(symbols))) {
    return {COLLET_INTERNAL, "LLVM: " + text_of(std::move(error))};
  }
  out = std::move(code);
  return {};
}

Status Jit::add(Code& code, std::string object) {
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "kernels" + std::to_string(code.objects_.size()));
  if (auto error = jit_->addObjectFile(*code.library_, std::move(buffer))) {
    return {COLLET_INTERNAL, "LLVM: " + text_of(std::move(error))};
  }
  code.bytes_ += object.size();
  code.objects_.push_back(std::move(object));
  return {};
}

Status Jit::load(const std::vector<FunctionSource>& sources, const std::vector<std::string>& objects,
                 std::unique_ptr<LoadedCode>& out) {
  std::unique_ptr<Code> code;
  COLLET_CODEGEN_TRY(begin(code));
  for (const std::string& object : objects) COLLET_CODEGEN_TRY(add(*code, object));
  COLLET_CODEGEN_TRY(add_shared(sources, *code));
  out = std::move(code);
  return {};
}

Status Jit::compile(const std::vector<FunctionSource>& sources, bool keep_artifacts, std::unique_ptr<LoadedCode>& out) {
  const auto modules = modules_of(sources, static_cast<size_t>(std::max(target_.threads, 1)));
  std::vector<std::function<void(llvm::Module&)>> fill;
  for (const auto& functions : modules) {
    fill.push_back([this, &functions](llvm::Module& m) {
      for (const FunctionSource* f : functions) emit_function(*f, m, target_);
    });
  }
  auto shared = std::async(policy(), [&] { return make_shared(sources); });
  const Status compiled = compile(fill, keep_artifacts, out);
  COLLET_CODEGEN_TRY(shared.get());
  COLLET_CODEGEN_TRY(compiled);
  return add_shared(sources, static_cast<Code&>(*out));
}

/// Returns the launch policy for work that may run beside the caller. If the system has no thread for it, the caller
/// runs it.
std::launch Jit::policy() const {
  return target_.threads > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred;
}

Status Jit::take_compiler(std::unique_ptr<ObjectCompiler>& out) {
  {
    std::lock_guard lock(compilers_mutex_);
    if (!compilers_.empty()) {
      out = std::move(compilers_.back());
      compilers_.pop_back();
      return {};
    }
  }
  return ObjectCompiler::create(target_, out);
}

Status Jit::make_shared(const std::vector<FunctionSource>& sources) {
  std::lock_guard lock(mutex_);
  // Compiled in one module, since a module costs as much as a small function.
  std::vector<const FunctionSource*> missing;
  for (const FunctionSource& f : sources) {
    if (f.shared && !shared_.contains(f.name)) missing.push_back(&f);
  }
  if (missing.empty()) return {};
  std::unique_ptr<LoadedCode> made;
  const auto fill = [&](llvm::Module& m) {
    for (const FunctionSource* f : missing) emit_function(*f, m, target_);
  };
  COLLET_CODEGEN_TRY(compile({fill}, false, made));
  const std::shared_ptr<LoadedCode> owner = std::move(made);
  for (const FunctionSource* f : missing) {
    void* const address = owner->find(f->name);
    if (!address) return {COLLET_INTERNAL, "generated code has no function " + f->name};
    shared_[f->name] = {owner, address};
  }
  return {};
}

Status Jit::add_shared(const std::vector<FunctionSource>& sources, Code& code) {
  COLLET_CODEGEN_TRY(make_shared(sources));
  std::lock_guard lock(mutex_);
  orc::SymbolMap symbols;  // products call them by name
  for (const FunctionSource& f : sources) {
    if (!f.shared) continue;
    void* const address = code.shared_[f.name] = shared_[f.name].second;
    symbols[jit_->mangleAndIntern(f.name)] = {orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
  }
  if (auto error = code.library_->define(orc::absoluteSymbols(std::move(symbols))))
    return {COLLET_INTERNAL, "LLVM: " + text_of(std::move(error))};
  return {};
}

Status Jit::compile(const std::vector<std::function<void(llvm::Module&)>>& fill, bool keep_artifacts,
                    std::unique_ptr<LoadedCode>& out) {
  struct Made {
    std::string object;
    Artifacts artifacts;
  };
  std::vector<Made> made(fill.size());
  std::atomic<size_t> next{0};
  const auto work = [&]() -> Status {
    std::unique_ptr<ObjectCompiler> compiler;
    COLLET_CODEGEN_TRY(take_compiler(compiler));
    for (size_t i = next++; i < fill.size(); i = next++) {
      Artifacts* const artifacts = keep_artifacts ? &made[i].artifacts : nullptr;
      COLLET_CODEGEN_TRY(compiler->compile("kernels" + std::to_string(i), fill[i], artifacts, made[i].object));
    }
    std::lock_guard lock(compilers_mutex_);
    compilers_.push_back(std::move(compiler));
    return {};
  };
  std::vector<std::future<Status>> others;
  const size_t threads = std::min(fill.size(), static_cast<size_t>(std::max(target_.threads, 1)));
  while (others.size() + 1 < threads) others.push_back(std::async(policy(), work));
  Status status = work();
  for (auto& other : others) {
    if (const Status s = other.get(); status.ok()) status = s;
  }
  COLLET_CODEGEN_TRY(status);
  std::unique_ptr<Code> code;
  COLLET_CODEGEN_TRY(begin(code));
  for (Made& m : made) {
    COLLET_CODEGEN_TRY(add(*code, std::move(m.object)));
    std::move(m.artifacts.begin(), m.artifacts.end(), std::back_inserter(code->artifacts_));
  }
  out = std::move(code);
  return {};
}

}  // namespace collet::codegen
