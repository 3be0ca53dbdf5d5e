// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A backend for a device whose machine code LLVM can generate. The vendor writes a Target and a CodeDevice: memory,
/// copies, and a way to start a function. This header and kernel_backend.hpp implement all of backend.h with them. Every op
/// that the code generator knows is compiled. A program becomes one function on the device.
///
///     collet::kernel::Backend describe() {
///       collet::kernel::Backend backend;
///       backend.name = "acme";
///       backend.queues = true;
///       backend.open_device = [](uint32_t) { return std::make_unique<AcmeDevice>(); };
///       collet::codegen::set_code(&backend, collet::codegen::cross("riscv64:sifive-x280"));
///       return backend;
///     }
///     COLLET_KERNEL_BACKEND(describe)
///
/// Link with Collet::codegen. C++17.

#include <collet/codegen/compile.h>
#include <collet/codegen/loaded_plan.hpp>
#include <collet/kernel_backend.hpp>

#include <collet/hash.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen {

/// A device that runs code. It implements the memory, the copies and the queues of kernel::Device. Each kernel::Memory that it
/// returns is the address at which its code finds that memory.
class CodeDevice : public kernel::Device {
 public:
  /// Starts the function at address `function`, after all work that was started before. Its type is
  /// void function(char* const* slots): the device copies `slots` to memory that it can read and passes the address. It gives
  /// the function at least 256 KiB of stack. Addresses have 64 bits. This call may return before the function has ended, see
  /// kernel::Device::mark. `name`, the name of the program, and `run_id` are for Device::record. Without records of the
  /// device's own, the profile has the time that this call took on the host, not the time of the function.
  virtual void launch(uint64_t function, const std::vector<uint64_t>& slots, const std::string& name,
                      uint64_t run_id) = 0;

  /// Allocates memory from which the device can run code, at a multiple of `alignment` (a power of two, usually 64).
  virtual kernel::Memory allocate_code(uint64_t bytes, uint64_t alignment) { return allocate(bytes, alignment); }
  /// Copies `image` to `code`, which allocate_code returned, and makes it ready to run.
  virtual void load_code(kernel::Memory code, const void* image, uint64_t bytes) {
    write(code, 0, image, bytes);
    finish();
  }
  /// Frees what allocate_code returned.
  virtual void free_code(kernel::Memory code) noexcept { free(code); }
  /// The address of a library function on the device, 0 if the device has no such function. Generated code calls at most memcpy,
  /// memset, memmove, and fma, fmod, floor, ceil, rint, round and trunc of C's <math.h> with their forms for float. It does not
  /// call those for which the target has an instruction.
  virtual uint64_t find_function(const std::string& name) const {
    static_cast<void>(name);
    return 0;
  }
};

namespace detail {

inline void throw_unless_ok(const Status& status) {
  if (!status.ok()) throw kernel::Error(status.code(), status.message());
}

/// A compiled program, loaded into the memory of a device.
class LoadedFunction final : public kernel::DeviceProgram {
 public:
  /// `symbol`: the function in the object code. `name` is for records.
  LoadedFunction(CodeDevice& device, const CompiledProgram& program, const std::string& symbol, std::string name)
      : device_(device), name_(std::move(name)) {
    try {
      CodeAllocation allocation(device);
      CodeImage image;
      const Status linked = link_image(program.object, allocation, image);
      memory_ = allocation.memory();
      allocation.rethrow();
      throw_unless_ok(linked);
      function_ = image.find(symbol);
      if (function_ == 0) throw kernel::Error(COLLET_INTERNAL, "generated code has no function " + symbol);
      device.load_code(memory_, image.bytes.data(), image.bytes.size());
    } catch (...) {
      give_back();
      throw;
    }
  }
  LoadedFunction(const LoadedFunction&) = delete;
  LoadedFunction& operator=(const LoadedFunction&) = delete;
  ~LoadedFunction() override { give_back(); }

  void launch(kernel::Device& device, const std::vector<kernel::Piece>& pieces, uint64_t run_id) override {
    std::vector<uint64_t> slots;
    slots.reserve(pieces.size());
    for (const kernel::Piece& piece : pieces) slots.push_back(piece.memory + piece.offset);
    static_cast<CodeDevice&>(device).launch(function_, slots, name_, run_id);
  }

 private:
  /// Allocates device memory for link_image. An exception of the device is stored and rethrown when link_image has
  /// returned.
  class CodeAllocation final : public CodeMemory {
   public:
    explicit CodeAllocation(CodeDevice& device) : device_(device) {}
    uint64_t allocate(uint64_t bytes, uint64_t alignment) override {
      try {
        memory_ = device_.allocate_code(bytes, alignment);
      } catch (...) {
        thrown_ = std::current_exception();
      }
      return memory_;
    }
    uint64_t find(const std::string& name) const override { return device_.find_function(name); }
    kernel::Memory memory() const { return memory_; }
    void rethrow() const {
      if (thrown_) std::rethrow_exception(thrown_);
    }

   private:
    CodeDevice& device_;
    std::exception_ptr thrown_;
    kernel::Memory memory_ = kernel::no_memory;
  };

  void give_back() noexcept {
    if (memory_ != kernel::no_memory) device_.free_code(memory_);
    memory_ = kernel::no_memory;
  }

  CodeDevice& device_;
  std::string name_;
  kernel::Memory memory_ = kernel::no_memory;
  uint64_t function_ = 0;
};

/// A program that has been compiled to machine code.
class CodeProgram final : public kernel::WholeProgram {
 public:
  CodeProgram(CompiledProgram program, std::string symbol, std::string name)
      : program_(std::move(program)), symbol_(std::move(symbol)), name_(std::move(name)) {
    workspace_bytes = program_.plan.workspace_bytes;
    code_bytes = resident_bytes = program_.object.size();
    traffic_bytes = program_.plan.traffic_bytes;
    kernels = program_.plan.kernels;
    artifacts = std::move(program_.artifacts);
  }
  std::unique_ptr<kernel::DeviceProgram> load(kernel::Device& device) override {
    return std::make_unique<LoadedFunction>(static_cast<CodeDevice&>(device), program_, symbol_, name_);
  }

 private:
  CompiledProgram program_;
  std::string symbol_, name_;
};

/// Returns true if all of a program can be compiled for a target, else false and the ids of the other ops in `rejected`.
inline bool takes_program(const collet_program* program, const Target& target, std::vector<uint32_t>* rejected) {
  rejected->resize(program->ops.count);
  collet_rejection rejection{};
  rejection.struct_size = sizeof rejection;
  rejection.count = program->ops.count;
  rejection.ops = rejected->data();
  const Status checked = check_program(program, target, &rejection);
  rejected->resize(checked.ok() ? 0 : rejection.count);
  if (!rejected->empty()) return false;
  throw_unless_ok(checked);
  return true;
}

/// Implements the compiler interface of kernel_backend.hpp with the code generator. `Program` is constructed from each
/// compiled program.
template <class Program, CodeForm form>
class CodeCompiler final : public kernel::ProgramCompiler {
 public:
  explicit CodeCompiler(Target target, CompileOptions options = {})
      : target_(std::move(target)), options_(std::move(options)) {
    if (form != CodeForm::kSource) target_.routines = false;
    if (form != CodeForm::kOpenCl) target_.threads = 1;
  }

  void answer(const collet_program* program, const uint32_t* ops, uint32_t count,
              collet_verdict* verdicts) const override {
    throw_unless_ok(answer_ops(program, target_, ops, count, verdicts));
  }

  std::unique_ptr<kernel::WholeProgram> compile(const collet_program* program, bool keep_artifacts,
                                                std::vector<uint32_t>* rejected) const override {
    if (!takes_program(program, target_, rejected)) return nullptr;
    CompileOptions options = options_;
    options.name = "collet_program";
    options.form = form;
    options.keep_artifacts = keep_artifacts;
    CompiledProgram made;
    if constexpr (form == CodeForm::kSource || form == CodeForm::kOpenCl || form == CodeForm::kLlvm)
      options.embed_constants = false;
    if constexpr (form == CodeForm::kSource || form == CodeForm::kOpenCl) {
      throw_unless_ok(compile_source(program, target_, options, made));
    } else {
      throw_unless_ok(codegen::compile(program, target_, options, made));
    }
    return std::make_unique<Program>(std::move(made), options.name,
                                     std::string(collet_string(program, program->name), program->name.count));
  }
  const char* pattern(uint32_t index) const override {
    if (form == CodeForm::kSource) return target_.routines ? routine_composite(index) : nullptr;
    return target_.has_grid() && target_.grid.libraries.factorizations ? library_composite(index) : nullptr;
  }

 private:
  Target target_;
  CompileOptions options_;
};

/// Makes a compiler with the given options.
using MakeCompiler = std::function<std::shared_ptr<const kernel::ProgramCompiler>(const CompileOptions& options)>;

/// Sets the compiler of `backend`, and lets open take the options by which schedules are tuned, see docs/tuning.md: "schedules" and
/// "list_schedules" are those of CompileOptions, "tuning" is the path of a file.
inline void set_tunable_compiler(kernel::Backend* backend, const CompileOptions& usual, const MakeCompiler& make) {
  backend->compiler = make(usual);
  for (const char* const key : {"schedules", "list_schedules", "tuning"}) backend->options.push_back(key);
  const auto earlier = backend->configure;
  backend->configure = [=](const kernel::Options& given, kernel::Backend* mine) {
    if (earlier) earlier(given, mine);
    CompileOptions options = usual;
    const auto value_of = [&](const char* key) {
      const auto found = given.values.find(key);
      return found == given.values.end() ? std::string() : found->second;
    };
    options.schedules += value_of("schedules");
    const std::string list = value_of("list_schedules");
    if (!list.empty() && list != "0" && list != "1")
      throw kernel::Error(COLLET_INVALID_ARGUMENT, "list_schedules: '" + list + "' is not 0 or 1");
    options.list_schedules = list == "1";
    if (const std::string file = value_of("tuning"); !file.empty())
      throw_unless_ok(read_tuning_file(file, options.tuning));
    const std::string all = options.schedules + "\n" + options.tuning;
    if (options.list_schedules || all != usual.schedules + "\n" + usual.tuning) {
      mine->compiler = make(options);
      mine->fingerprint += ";schedules " + std::to_string(collet_hash_bytes(0, all.data(), all.size()));
    }
  };
}

/// Fills in the types, traits, kind and fingerprint, which follow from the code generator and the target.
inline void describe_generator(kernel::Backend* backend, const Target& target) {
  if (backend->types.empty()) {
#define COLLET_TYPE(NAME, text, value, bits, kind, since)                                       \
  if (COLLET_KIND_##kind != COLLET_KIND_OPAQUE || value == COLLET_TYPE_TOKEN) {                 \
    backend->types.push_back({value, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE}); \
  }
#include <collet/types.def>
#undef COLLET_TYPE
  }
  backend->traits |= COLLET_TRAIT_CONTROL_FLOW | COLLET_TRAIT_SHARED_CODE;
  if (backend->device_kind.empty()) backend->device_kind = target.cpu;
  if (backend->fingerprint.rfind(target.fingerprint(), 0) != 0) {
    backend->fingerprint = target.fingerprint() + backend->fingerprint;
  }
}

}  // namespace detail

/// The target named `name`, such as "riscv64:sifive-x280", as cross_target finds it. Throws kernel::Error if there is none.
inline Target cross(const std::string& name) {
  Target out;
  detail::throw_unless_ok(cross_target(name, out));
  return out;
}

/// Lets the code generator compile for the devices of `backend`, all of which must be CodeDevices. Sets its compiler, its types
/// (all that the generator knows, unless some are listed already), its traits for control flow and shared code, and, where they are
/// empty, the kind and the fingerprint. `options` may have CompileOptions::tuning, schedules that were tuned for the device; set
/// Backend::configure before this call.
inline void set_code(kernel::Backend* backend, const Target& target, const CompileOptions& options = {}) {
  detail::describe_generator(backend, target);
  detail::set_tunable_compiler(backend, options, [target](const CompileOptions& chosen) {
    return std::make_shared<detail::CodeCompiler<detail::CodeProgram, CodeForm::kOneFunction>>(target, chosen);
  });
}

}  // namespace collet::codegen
