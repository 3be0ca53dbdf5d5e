// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A backend for a device whose compiler takes text: C99, OpenCL C, or LLVM IR.
///
/// For C99 the vendor writes a SourceDevice: memory, copies, and a way to load and to start what
/// the compiler makes; and says how the compiler is called. This header and kernel_backend.hpp implement all of backend.h with them.
/// A program becomes one translation unit with one function, see CodeForm::kSource.
///
///     collet::kernel::Backend describe() {
///       collet::kernel::Backend backend;
///       backend.name = "acme";
///       backend.open_device = [](uint32_t) { return std::make_unique<AcmeDevice>(); };
///       collet::codegen::SourceCompiler compiler;
///       compiler.command = "mycc -O3 -std=c99 -ffp-contract=off -shared -o {out} {in}";
///       collet::codegen::set_source(&backend, collet::codegen::vector_machine(8), compiler);
///       return backend;
///     }
///     COLLET_KERNEL_BACKEND(describe)
///
/// For OpenCL C the vendor writes a GridDevice, whose kernels start one by one, and whose memory may be opaque to the host:
///
///     compiler.compile = [](const std::string& text) { return binary_that_the_driver_makes_of(text); };
///     collet::codegen::set_grid_source(&backend, collet::codegen::grid_machine(processors, local_bytes), compiler);
///
/// LLVM IR is for a compiler that is made of LLVM, of another version than the SDK's, and needs Collet::codegen: see set_llvm_source.
///
/// Link with Collet::codegen_core, which needs no LLVM, or with Collet::codegen. C++17.

#include <collet/codegen/host_routines.h>
#include <collet/codegen/source_compiler.h>
#include <collet/codegen/code_backend.hpp>
#include <collet/codegen/grid_backend.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen {

/// A device that runs what a compiler makes of C. It implements the memory, the copies and the queues of kernel::Device. Each
/// kernel::Memory that it returns is the address at which its code finds that memory.
class SourceDevice : public kernel::Device {
 public:
  /// Loads code that the compiler made, and returns a handle of its function `function`, which is not 0. Throws kernel::Error.
  virtual uint64_t load_code(const std::string& code, const std::string& function) = 0;
  /// Frees what load_code returned.
  virtual void free_code(uint64_t handle) noexcept = 0;
  /// Starts a function. Its type is void function(char* const* slots): the device copies `slots` to memory that it can read and
  /// passes the address. It gives the function at least 256 KiB of stack. This call may return before the function has ended, see
  /// kernel::Device::mark. `name`, the name of the program, and `run_id` are for Device::record.
  virtual void launch(uint64_t handle, const std::vector<uint64_t>& slots, const std::string& name,
                      uint64_t run_id) = 0;
};

namespace detail {

/// Code of a program that is loaded on a device, with its constants and its routines.
class LoadedSource final : public kernel::DeviceProgram {
 public:
  LoadedSource(SourceDevice& device, const std::string& code, const std::string& symbol,
               std::shared_ptr<const LaunchPlan> plan, std::string name)
      : device_(device), plan_(std::move(plan)), name_(std::move(name)), constants_(device, plan_->constants) {
    if (!plan_->routines.empty()) throw_unless_ok(HostRoutines::create(*plan_, routines_));
    handle_ = device.load_code(code, symbol);
  }
  LoadedSource(const LoadedSource&) = delete;
  LoadedSource& operator=(const LoadedSource&) = delete;
  ~LoadedSource() override {
    if (handle_ != 0) device_.free_code(handle_);
  }

  void launch(kernel::Device& device, const std::vector<kernel::Piece>& pieces, uint64_t run_id) override {
    std::vector<uint64_t> slots;
    slots.reserve(pieces.size() + 1);
    for (const kernel::Piece& piece : pieces) slots.push_back(piece.memory + piece.offset);
    slots.push_back(constants_.memory());
    slots.push_back(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(routines_ ? routines_->table() : nullptr)));
    static_cast<SourceDevice&>(device).launch(handle_, slots, name_, run_id);
  }

 private:
  SourceDevice& device_;
  std::shared_ptr<const LaunchPlan> plan_;
  std::unique_ptr<HostRoutines> routines_;
  std::string name_;
  DeviceConstants constants_;
  uint64_t handle_ = 0;
};

/// What precedes the code in bytes of a program: the hash of its text.
inline std::string key_of(const std::string& text) {
  return std::to_string(collet_hash_bytes(0, text.data(), text.size())) + "\n";
}

/// A program as text, then as code.
class SourceProgram final : public kernel::WholeProgram {
 public:
  SourceProgram(CompiledProgram program, std::string symbol, std::string name)
      : text_(std::move(program.object)), key_(key_of(text_)), symbol_(std::move(symbol)), name_(std::move(name)) {
    workspace_bytes = program.plan.workspace_bytes;
    traffic_bytes = program.plan.traffic_bytes;
    kernels = program.plan.kernels;
    artifacts = std::move(program.artifacts);
    plan_ = std::make_shared<const LaunchPlan>(std::move(program.plan));
  }
  /// Compiles the text.
  void compile(const CompilerCache& compiler, bool keep_artifacts) {
    if (code_) return;
    std::string messages;
    std::shared_ptr<const std::string> code;
    throw_unless_ok(compiler.compile(text_, code, messages));
    if (keep_artifacts && !messages.empty()) artifacts.emplace_back("compiler.txt", messages);
    set_code(std::move(code));
  }
  std::string serialize() const override { return key_ + *code_; }
  /// Takes the code of bytes that `serialize` returned, if they are of the same text.
  void take_code(const std::string& bytes) {
    if (bytes.compare(0, key_.size(), key_) == 0)
      set_code(std::make_shared<const std::string>(bytes.substr(key_.size())));
  }
  std::unique_ptr<kernel::DeviceProgram> load(kernel::Device& device) override {
    return std::make_unique<LoadedSource>(static_cast<SourceDevice&>(device), *code_, symbol_, plan_, name_);
  }

 private:
  void set_code(std::shared_ptr<const std::string> code) {
    code_ = std::move(code);
    code_bytes = code_->size();
    resident_bytes = code_bytes + plan_->constants.size();
    text_ = {};
  }

  std::string text_, key_, symbol_, name_;
  std::shared_ptr<const LaunchPlan> plan_;
  std::shared_ptr<const std::string> code_;
};

/// A program of OpenCL C as text, then as code. The code is kept with the executable in caches and in files.
class GridSourceProgram final : public GridProgram {
 public:
  GridSourceProgram(CompiledProgram program, const std::string& symbol, const std::string& name)
      : GridProgram(std::move(program), symbol, name),
        has_code_(program_.plan.functions.empty()),
        key_(key_of(program_.object)) {}
  /// Compiles the text, unless there is code already.
  void compile(const CompilerCache& compiler, bool keep_artifacts) {
    if (has_code_) return;
    std::string messages;
    std::shared_ptr<const std::string> code;
    throw_unless_ok(compiler.compile(program_.object, code, messages));
    if (keep_artifacts && !messages.empty()) artifacts.emplace_back("compiler.txt", messages);
    set_code(*code);
  }
  /// The text has one way to compute each op.
  std::string tune(kernel::Device&, const std::string&) override { return {}; }
  std::string serialize() const override { return key_ + program_.object; }
  /// Takes the code of bytes that `serialize` returned, if they are of the same text.
  void take_code(const std::string& bytes) {
    if (!has_code_ && bytes.compare(0, key_.size(), key_) == 0) set_code(bytes.substr(key_.size()));
  }

 private:
  void set_code(std::string code) {
    program_.object = std::move(code);
    code_bytes = program_.object.size();
    has_code_ = true;
  }

  bool has_code_;
  std::string key_;  ///< of the text
};

/// Generates text, and compiles it.
template <class Program, CodeForm form>
class SourceProgramCompiler final : public kernel::ProgramCompiler {
 public:
  SourceProgramCompiler(const Target& target, SourceCompiler compiler, const CompileOptions& options)
      : generator_(target, options), compiler_(std::move(compiler)) {}

  void answer(const collet_program* program, const uint32_t* ops, uint32_t count,
              collet_verdict* verdicts) const override {
    generator_.answer(program, ops, count, verdicts);
  }
  std::unique_ptr<kernel::WholeProgram> compile(const collet_program* program, bool keep_artifacts,
                                                std::vector<uint32_t>* rejected) const override {
    std::unique_ptr<kernel::WholeProgram> made = generator_.compile(program, keep_artifacts, rejected);
    if (made) static_cast<Program&>(*made).compile(compiler_, keep_artifacts);
    return made;
  }
  std::unique_ptr<kernel::WholeProgram> restore(const collet_program* program,
                                                const std::string& bytes) const override {
    std::vector<uint32_t> rejected;
    std::unique_ptr<kernel::WholeProgram> made = generator_.compile(program, false, &rejected);
    if (!made) return nullptr;
    static_cast<Program&>(*made).take_code(bytes);
    static_cast<Program&>(*made).compile(compiler_, false);
    return made;
  }
  const char* pattern(uint32_t index) const override { return generator_.pattern(index); }

 private:
  CodeCompiler<Program, form> generator_;
  CompilerCache compiler_;
};

}  // namespace detail

/// Lets the code generator and `compiler` compile for the devices of `backend`, all of which must be SourceDevices. Sets its compiler,
/// its types (all that the generator knows, unless some are listed already), its traits for control flow and shared code, and, where
/// they are empty, the kind and the fingerprint. `options`: see set_code.
/// With `target.routines`, sorts, FFT, random bits and factorizations are routines of this library: the code must run in this
/// process, on its memory.
inline void set_source(kernel::Backend* backend, const Target& target, const SourceCompiler& compiler,
                       const CompileOptions& options = {}) {
  backend->fingerprint += ";" + compiler.command + ";" + compiler.version;
  detail::describe_generator(backend, target);
  detail::set_tunable_compiler(backend, options, [target, compiler](const CompileOptions& chosen) {
    return std::make_shared<detail::SourceProgramCompiler<detail::SourceProgram, CodeForm::kSource>>(target, compiler,
                                                                                                     chosen);
  });
}

/// The same for LLVM IR of an older version, see CodeForm::kLlvm: `compiler` is made of LLVM `version`, 15 or newer, such as
/// "mycc-16 -O2 -x ir -shared -o {out} {in}". `target` is a processor, from cross_target, whose fields say what the compiler's
/// instructions are. Sorts, FFT, random bits and factorizations are expanded. Link with Collet::codegen.
inline void set_llvm_source(kernel::Backend* backend, Target target, int version, SourceCompiler compiler,
                            CompileOptions options = {}) {
  constexpr int kBfloatProducts = 17;  // the version in which these instructions got the type of their operands
  if (version < kBfloatProducts) target.bf16_dot = false;
  compiler.suffix = ".ll";
  options.llvm_version = version;
  backend->fingerprint += ";" + compiler.command + ";" + compiler.version + ";llvm " + std::to_string(version);
  detail::describe_generator(backend, target);
  detail::set_tunable_compiler(backend, options, [target, compiler](const CompileOptions& chosen) {
    return std::make_shared<detail::SourceProgramCompiler<detail::SourceProgram, CodeForm::kLlvm>>(target, compiler,
                                                                                                   chosen);
  });
}

/// The same for programs of OpenCL C and devices that are all GridDevices: see CodeForm::kOpenCl, which says what targets there are.
/// GridDevice::load_module gets the bytes that `compiler` made of the text. Sorts are kernels; the SDK expands FFT, random
/// bits and factorizations to ops that are.
inline void set_grid_source(kernel::Backend* backend, Target target, const SourceCompiler& compiler,
                            const CompileOptions& options = {}) {
  target.routines = false;
  target.kernel_arrays = kMostOpenClArrays;
  target.sort_kernels = true;
  backend->fingerprint += ";" + compiler.command + ";" + compiler.version;
  detail::describe_generator(backend, target);
  detail::set_tunable_compiler(backend, options, [target, compiler](const CompileOptions& chosen) {
    using Compiler = detail::SourceProgramCompiler<detail::GridSourceProgram, CodeForm::kOpenCl>;
    return std::make_shared<Compiler>(target, compiler, chosen);
  });
}

}  // namespace collet::codegen
