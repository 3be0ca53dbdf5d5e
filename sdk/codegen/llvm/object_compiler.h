// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>
#include <collet/codegen/target.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/compile/function_source.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace collet::codegen {

/// File names and contents of what a compilation went through: LLVM IR as emitted and as optimised, assembly.
using Artifacts = std::vector<std::pair<std::string, std::string>>;

/// Makes object code for one target, which need not be this machine's. One thread at a time.
class ObjectCompiler {
 public:
  /// UNIMPLEMENTED where LLVM has no code generator for the target.
  static Status create(const Target& target, std::unique_ptr<ObjectCompiler>& out);
  ~ObjectCompiler();

  /// Lets `fill` write a module of this name, and compiles it to position-independent object code. What it went through is
  /// added to `artifacts` unless that is null.
  Status compile(const std::string& name, const std::function<void(llvm::Module&)>& fill, Artifacts* artifacts,
                 std::string& object);

  const Target& target() const { return target_; }

 private:
  ObjectCompiler(const Target& target, std::unique_ptr<llvm::TargetMachine> machine);

  Target target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

/// Emits a function of the name and kind that `source` says.
void emit_function(const FunctionSource& source, llvm::Module& module, const Target& target);

}  // namespace collet::codegen
