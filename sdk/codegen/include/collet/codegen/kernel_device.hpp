// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A backend for a device whose compiler takes kernel IR. The vendor writes a function that makes code of the kernels of a program, and a
/// KernelDevice: memory, copies, and what starts a kernel. This header fuses, lowers and plans each program, and runs its launch plan
/// on the host, which reads from the device only conditions of loops and indices of branches. For a target with grids, each kernel comes with
/// what its threads share, see KernelGrid.
///
///     collet::kernel::Backend describe() {
///       collet::kernel::Backend backend;
///       backend.name = "acme";
///       backend.open_device = [](uint32_t) { return std::make_unique<AcmeDevice>(); };
///       collet::codegen::set_kernels(&backend, collet::codegen::vector_machine(8), compile);
///       return backend;
///     }
///     COLLET_KERNEL_BACKEND(describe)
///
/// Link with Collet::codegen_core, which needs no LLVM. C++20.

#include <collet/codegen/kernel_program.h>
#include <collet/codegen/code_backend.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen {

/// A device that runs kernels of kernel IR. It implements the memory, the copies and the queues of kernel::Device.
class KernelDevice : public kernel::Device {
 public:
  /// Loads the code of a program, and returns a number by which it is known, which is not 0.
  virtual uint64_t load_code(const KernelProgram& program, const std::string& code) = 0;
  /// Frees what load_code returned. None of its kernels is running.
  virtual void free_code(uint64_t loaded) noexcept = 0;
  /// Starts kernel number `kernel` of a program, after all work that was started before. `buffers` has the memory of each of its
  /// buffers; those without bytes have no memory. This call may return before the kernel has ended, see kernel::Device::mark.
  virtual void launch(uint64_t loaded, uint32_t kernel, const std::vector<kernel::Piece>& buffers, uint64_t run_id) = 0;
};

/// Makes the code of the kernels of a program, as bytes, which are kept in caches. May be called from several threads at once. Throws
/// kernel::Error with COLLET_UNIMPLEMENTED if it cannot compile a kernel; the message names it.
using CompileKernels = std::function<std::string(const KernelProgram& program)>;

namespace detail {

/// The code of a program on a device; runs its launch plan.
class LoadedKernels final : public kernel::DeviceProgram {
 public:
  LoadedKernels(KernelDevice& device, std::shared_ptr<const KernelProgram> program, const std::string& code)
      : device_(device),
        program_(std::move(program)),
        constants_(device, program_->plan.constants),
        loaded_(device.load_code(*program_, code)) {}
  LoadedKernels(const LoadedKernels&) = delete;
  LoadedKernels& operator=(const LoadedKernels&) = delete;
  ~LoadedKernels() override {
    if (loaded_ != 0) device_.free_code(loaded_);
  }

  void launch(kernel::Device&, const std::vector<kernel::Piece>& pieces, uint64_t run_id) override {
    run(pieces, run_id, 0);
  }
  void launch_participant(kernel::Device&, const std::vector<kernel::Piece>& pieces, uint64_t run_id,
                          kernel::Participants& participants) override {
    run(pieces, run_id, participants.number());
  }

 private:
  void run(const std::vector<kernel::Piece>& pieces, uint64_t run_id, uint32_t participant) {
    std::vector<kernel::Piece> slots = pieces;
    slots.resize(constant_slot(program_->plan) + size_t{1});
    slots.back().memory = constants_.memory();
    run(program_->plan.steps, slots, run_id, participant);
  }

  kernel::Piece place(uint32_t number, const std::vector<kernel::Piece>& slots) const {
    const Place& place = program_->plan.places[number];
    kernel::Piece out = slots[place.slot];
    out.offset += place.offset;
    return out;
  }

  void start(FunctionId function, uint32_t first, const std::vector<kernel::Piece>& slots, uint64_t run_id) {
    std::vector<kernel::Piece> buffers;
    for (uint32_t i = 0; i < program_->kernels[function].kernel.buffers; ++i)
      buffers.push_back(place(first + i, slots));
    device_.launch(loaded_, function, buffers, run_id);
  }

  void run(const StepList& steps, const std::vector<kernel::Piece>& slots, uint64_t run_id, uint32_t participant) {
    for (const Step& step : steps) {
      switch (step.kind) {
        case StepKind::kKernel:
          start(step.kernel.function, step.first_place, slots, run_id);
          if (step.kernel.tail != kNoFunction)
            start(step.kernel.tail, step.first_place + step.kernel.tail_place, slots, run_id);
          break;
        case StepKind::kCopy:
          copy_piece(device_, place(step.first_place, slots), place(step.first_place + 1, slots), step.bytes);
          break;
        case StepKind::kWhile:
          for (int64_t i = 0; i < step.trips; ++i) run(step.children[1], slots, run_id, participant);
          while (step.trips < 0) {
            run(step.children[0], slots, run_id, participant);
            if (!read_condition(device_, place(step.first_place, slots))) break;
            run(step.children[1], slots, run_id, participant);
          }
          break;
        case StepKind::kConditional:
          run(step.children[read_branch(device_, step, place(step.first_place, slots))], slots, run_id, participant);
          break;
        case StepKind::kHostValue: {
          const std::array<uint64_t, 2> value = host_values_.next(program_->plan, step.call, participant);
          const kernel::Piece to = place(step.first_place, slots);
          device_.write(to.memory, to.offset, value.data(), step.bytes);
          break;
        }
        default:
          throw kernel::Error(COLLET_INTERNAL, "a launch plan with a step that kernels as data do not have");
      }
    }
  }

  KernelDevice& device_;
  std::shared_ptr<const KernelProgram> program_;
  DeviceConstants constants_;
  HostValues host_values_;
  uint64_t loaded_ = 0;
};

/// A program as kernels, and their code.
class PlannedKernels final : public kernel::WholeProgram {
 public:
  PlannedKernels(KernelProgram program, std::string code) : code_(std::move(code)) {
    workspace_bytes = program.plan.workspace_bytes;
    resident_bytes = code_.size() + program.plan.constants.size();
    code_bytes = code_.size();
    traffic_bytes = program.plan.traffic_bytes;
    kernels = program.plan.kernels;
    artifacts = std::move(program.artifacts);
    program_ = std::make_shared<const KernelProgram>(std::move(program));
  }
  std::unique_ptr<kernel::DeviceProgram> load(kernel::Device& device) override {
    return std::make_unique<LoadedKernels>(static_cast<KernelDevice&>(device), program_, code_);
  }
  std::string serialize() const override { return head_of(*program_) + code_; }
  /// What precedes the code in bytes of a program: the program to which it belongs.
  static std::string head_of(const KernelProgram& program) { return std::to_string(program.fingerprint) + "\n"; }

 private:
  std::shared_ptr<const KernelProgram> program_;
  std::string code_;
};

/// Plans programs, and has their kernels compiled.
class KernelsCompiler final : public kernel::ProgramCompiler {
 public:
  KernelsCompiler(const Target& target, CompileKernels compile, CompileOptions options)
      : target_(target), compile_(std::move(compile)), options_(std::move(options)) {}

  void answer(const collet_program* program, const uint32_t* ops, uint32_t count,
              collet_verdict* verdicts) const override {
    throw_unless_ok(answer_ops(program, target_, ops, count, verdicts));
  }
  std::unique_ptr<kernel::WholeProgram> compile(const collet_program* program, bool keep_artifacts,
                                                std::vector<uint32_t>* rejected) const override {
    if (!takes_program(program, target_, rejected)) return nullptr;
    KernelProgram made = plan(program, keep_artifacts);
    std::string code = compile_(made);
    return std::make_unique<PlannedKernels>(std::move(made), std::move(code));
  }
  std::unique_ptr<kernel::WholeProgram> restore(const collet_program* program,
                                                const std::string& bytes) const override {
    KernelProgram made = plan(program, false);
    const std::string head = PlannedKernels::head_of(made);
    if (bytes.compare(0, head.size(), head) != 0) return nullptr;
    return std::make_unique<PlannedKernels>(std::move(made), bytes.substr(head.size()));
  }

 private:
  KernelProgram plan(const collet_program* program, bool keep_artifacts) const {
    CompileOptions options = options_;
    options.keep_artifacts = keep_artifacts;
    KernelProgram out;
    throw_unless_ok(compile_kernels(program, target_, options, out));
    return out;
  }

  Target target_;
  CompileKernels compile_;
  CompileOptions options_;
};

}  // namespace detail

/// Lets the code generator plan the programs of `backend`, all of whose devices must be KernelDevices, and `compile` make the code of
/// their kernels. Sets its compiler, its types (all that the generator knows, unless some are listed already), its traits for control
/// flow and shared code, and, where they are empty, the kind and the fingerprint, to which the vendor adds the version of the compiler.
/// The SDK expands sorts, FFT, random bits and factorizations to ops that are kernels, or runs them on the fallback. `options`: see
/// set_code. A call from Backend::configure, as for a target that an option decides, replaces the compiler alone: the options by which
/// schedules are tuned are there if describe() has called this before.
inline void set_kernels(kernel::Backend* backend, Target target, const CompileKernels& compile,
                        const CompileOptions& options = {}) {
  target.routines = false;
  target.sort_kernels = false;
  target.threads = 1;
  backend->fingerprint += ";kernels";
  detail::describe_generator(backend, target);
  detail::set_tunable_compiler(backend, options, [target, compile](const CompileOptions& chosen) {
    return std::make_shared<detail::KernelsCompiler>(target, compile, chosen);
  });
}

}  // namespace collet::codegen
