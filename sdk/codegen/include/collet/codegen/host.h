// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/compile.h>
#include <collet/codegen/step_times.h>
#include <collet/codegen/threads.h>

#include <memory>
#include <string>
#include <vector>

/// \file
/// Compiles programs for the processor of this process and runs them in it.

namespace collet::codegen {

/// A compiled program, ready to run.
class HostProgram {
 public:
  virtual ~HostProgram() = default;
  HostProgram(const HostProgram&) = delete;
  HostProgram& operator=(const HostProgram&) = delete;

  /// Runs the program. `slots` holds the address of each argument, of each result and of the workspace; its last
  /// element, for the constants, is ignored. The workspace is overwritten. May be called from any thread, and from
  /// several at once if they share neither results nor workspace.
  /// Unless `listener` is null, it hears of each step; of a program that is one function, of the function.
  virtual void run(char** slots, Threads& threads, const StepListener* listener = nullptr) const = 0;

  virtual const LaunchPlan& plan() const = 0;
  /// Returns the object code of the program's modules, from which HostCompiler::load makes the same program without
  /// compiling.
  virtual const std::vector<std::string>& objects() const = 0;
  /// Returns the size of the machine code in bytes.
  virtual uint64_t code_bytes() const = 0;

 protected:
  HostProgram() = default;
};

/// Compiles for the processor of this process. May be used from any thread. Must outlive its programs.
class HostCompiler {
 public:
  /// Returns INTERNAL if LLVM cannot generate code for the target in this process.
  static Status create(const Target& target, std::unique_ptr<HostCompiler>& out);
  ~HostCompiler();
  HostCompiler(const HostCompiler&) = delete;
  HostCompiler& operator=(const HostCompiler&) = delete;

  const Target& target() const;

  /// Compiles a program that check_program accepts. Unless `artifacts` is null, it receives the intermediate forms,
  /// even after an error; options.keep_artifacts is ignored.
  Status compile(const collet_program* program, const CompileOptions& options, Artifacts* artifacts,
                 std::unique_ptr<HostProgram>& out);
  /// Loads a program from its object code: HostProgram::objects of a process with the same target and options. The
  /// bytes are not validated, so they must come from a trusted source.
  Status load(const collet_program* program, const CompileOptions& options, const std::vector<std::string>& objects,
              std::unique_ptr<HostProgram>& out);

 private:
  struct State;
  explicit HostCompiler(std::unique_ptr<State> state);
  Status make(const collet_program* program, const CompileOptions& options, const std::vector<std::string>* objects,
              Artifacts* artifacts, std::unique_ptr<HostProgram>& out);
  std::unique_ptr<State> state_;
};

}  // namespace collet::codegen
