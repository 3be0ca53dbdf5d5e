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

/// File names and contents of the stages of a compilation: LLVM IR as emitted and as optimised, and assembly.
using Artifacts = std::vector<std::pair<std::string, std::string>>;

/// Makes object code for one target, which may be another machine than this one. One thread may use it at a time.
class ObjectCompiler {
 public:
  /// Returns UNIMPLEMENTED if LLVM has no code generator for the target.
  static Status create(const Target& target, std::unique_ptr<ObjectCompiler>& out);
  ~ObjectCompiler();

  /// Compiles a module that `fill` writes to position-independent object code. Unless `artifacts` is null, the stages
  /// of compilation are added to it.
  Status compile(const std::string& name, const std::function<void(llvm::Module&)>& fill, Artifacts* artifacts,
                 std::string& object);

  /// Prints a module that `fill` writes as text for a version of LLVM, see print_for_version. Nothing is optimised.
  Status print(const std::string& name, const std::function<void(llvm::Module&)>& fill, int version, std::string& text);

  const Target& target() const { return target_; }

 private:
  class Passes;
  Status write(llvm::Module& module, const std::function<void(llvm::Module&)>& fill) const;
  ObjectCompiler(const Target& target, std::unique_ptr<llvm::TargetMachine> machine);

  Target target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<Passes> passes_;
};

/// Emits the function that `source` describes.
void emit_function(const FunctionSource& source, llvm::Module& module, const Target& target);

}  // namespace collet::codegen
