// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/host.h>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/launch/loaded_program.h"
#include "sdk/codegen/llvm/emit_entry.h"
#include "sdk/codegen/llvm/jit.h"

namespace collet::codegen {
namespace {

/// A program whose launch plan is interpreted and whose functions are called in this process.
class PlanProgram final : public HostProgram {
 public:
  PlanProgram(std::unique_ptr<LoadedCode> code, std::unique_ptr<LoadedProgram> loaded)
      : code_(std::move(code)), loaded_(std::move(loaded)) {}
  const LaunchPlan& plan() const override { return loaded_->plan(); }
  void run(char** slots, Threads& threads, const StepListener* listener) const override {
    loaded_->run(slots, threads, listener);
  }
  const std::vector<std::string>& objects() const override { return code_->objects(); }
  uint64_t code_bytes() const override { return code_->bytes(); }

 private:
  std::unique_ptr<LoadedCode> code_;
  std::unique_ptr<LoadedProgram> loaded_;
};

/// A program that has been compiled to one function.
class FunctionProgram final : public HostProgram {
 public:
  FunctionProgram(LaunchPlan plan, std::unique_ptr<LoadedCode> code, const std::string& name)
      : plan_(std::move(plan)), code_(std::move(code)), name_(name) {
    function_ = reinterpret_cast<void (*)(char* const*)>(code_->find(name));
  }
  bool is_there() const { return function_ != nullptr; }
  const LaunchPlan& plan() const override { return plan_; }
  void run(char** slots, Threads&, const StepListener* listener) const override {
    if (listener) {
      time_step(name_.c_str(), *listener, [&] { function_(slots); });
    } else {
      function_(slots);
    }
  }
  const std::vector<std::string>& objects() const override { return code_->objects(); }
  uint64_t code_bytes() const override { return code_->bytes(); }

 private:
  LaunchPlan plan_;
  std::unique_ptr<LoadedCode> code_;
  std::string name_;
  void (*function_)(char* const* slots) = nullptr;
};

Status no_function(const std::string& name) {
  return {COLLET_INTERNAL, "generated code has no function " + name};
}

}  // namespace

struct HostCompiler::State {
  std::unique_ptr<Jit> jit;
};

HostCompiler::HostCompiler(std::unique_ptr<State> state) : state_(std::move(state)) {}
HostCompiler::~HostCompiler() = default;

Status HostCompiler::create(const Target& target, std::unique_ptr<HostCompiler>& out) {
  auto state = std::make_unique<State>();
  COLLET_CODEGEN_TRY(Jit::create(target, state->jit));
  out.reset(new HostCompiler(std::move(state)));
  return {};
}

const Target& HostCompiler::target() const {
  return state_->jit->target();
}

Status HostCompiler::compile(const collet_program* program, const CompileOptions& options, Artifacts* artifacts,
                             std::unique_ptr<HostProgram>& out) {
  return make(program, options, nullptr, artifacts, out);
}

Status HostCompiler::load(const collet_program* program, const CompileOptions& options,
                          const std::vector<std::string>& objects, std::unique_ptr<HostProgram>& out) {
  return make(program, options, &objects, nullptr, out);
}

Status HostCompiler::make(const collet_program* program, const CompileOptions& options,
                          const std::vector<std::string>* objects, Artifacts* artifacts,
                          std::unique_ptr<HostProgram>& out) {
  PlannedProgram planned;
  CompileOptions how = options;
  how.keep_artifacts = artifacts != nullptr;
  const Status decided = plan_program(program, target(), how, planned);
  if (artifacts) *artifacts = std::move(planned.stages);
  COLLET_CODEGEN_TRY(decided);
  Jit& jit = *state_->jit;
  std::unique_ptr<LoadedCode> code;
  if (options.form == CodeForm::kOneFunction) {
    Status emitted;
    const auto fill = [&](llvm::Module& module) { emitted = emit_entry(planned, options, module, target()); };
    const Status made = objects ? jit.load({}, *objects, code) : jit.compile({fill}, artifacts != nullptr, code);
    COLLET_CODEGEN_TRY(emitted);
    COLLET_CODEGEN_TRY(made);
    if (artifacts) artifacts->insert(artifacts->end(), code->artifacts().begin(), code->artifacts().end());
    auto program_made = std::make_unique<FunctionProgram>(std::move(planned.plan), std::move(code), options.name);
    if (!program_made->is_there()) return no_function(options.name);
    out = std::move(program_made);
    return {};
  }
  join_loops(planned, target().tuning);
  COLLET_CODEGEN_TRY(objects ? jit.load(planned.sources, *objects, code)
                             : jit.compile(planned.sources, artifacts != nullptr, code));
  if (artifacts) artifacts->insert(artifacts->end(), code->artifacts().begin(), code->artifacts().end());
  std::string missing;
  auto loaded =
      LoadedProgram::load(std::move(planned.plan), [&](const std::string& name) { return code->find(name); }, missing);
  if (!loaded && missing.empty()) return {COLLET_RESOURCE_EXHAUSTED, "no memory for the constants of the program"};
  if (!loaded) return no_function(missing);
  out = std::make_unique<PlanProgram>(std::move(code), std::move(loaded));
  return {};
}

}  // namespace collet::codegen
