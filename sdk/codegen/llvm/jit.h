// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>
#include <collet/codegen/target.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/codegen/compile/function_source.h"
#include "sdk/codegen/launch/loaded_code.h"

namespace llvm {
class Module;
namespace orc {
class LLJIT;
}  // namespace orc
}  // namespace llvm

namespace collet::codegen {

class ObjectCompiler;

/// Compiles modules for the host. May be used from any thread.
class Jit {
 public:
  static Status create(const Target& target, std::unique_ptr<Jit>& out);
  ~Jit();

  /// Compiles the functions of a program. Functions that programs share are compiled when a program first needs them,
  /// and kept as long as this object.
  Status compile(const std::vector<FunctionSource>& sources, bool keep_artifacts, std::unique_ptr<LoadedCode>& out);
  /// Compiles modules, each of which a function of `fill` writes.
  Status compile(const std::vector<std::function<void(llvm::Module&)>>& fill, bool keep_artifacts,
                 std::unique_ptr<LoadedCode>& out);

  /// Loads functions from object code that LoadedCode::objects returned in a process with the same target. The bytes
  /// are not validated, so they must come from a trusted source.
  Status load(const std::vector<FunctionSource>& sources, const std::vector<std::string>& objects,
              std::unique_ptr<LoadedCode>& out);

  const Target& target() const { return target_; }

 private:
  class Code;
  explicit Jit(Target target);
  Status begin(std::unique_ptr<Code>& out);
  Status add(Code& code, std::string object);
  std::launch policy() const;
  /// Takes a compiler that no other thread uses, or makes one.
  Status take_compiler(std::unique_ptr<ObjectCompiler>& out);
  /// Compiles those shared functions among `sources` that have not been compiled yet.
  Status make_shared(const std::vector<FunctionSource>& sources);
  /// Adds the addresses of the shared functions among `sources` to `code`, and compiles those that are missing.
  Status add_shared(const std::vector<FunctionSource>& sources, Code& code);
  Target target_;
  std::shared_ptr<llvm::orc::LLJIT> jit_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::shared_ptr<LoadedCode>, void*>> shared_;
  std::mutex compilers_mutex_;
  /// Compilers that no thread uses. They are kept because LLVM takes as long to describe a processor as to compile a small function.
  std::vector<std::unique_ptr<ObjectCompiler>> compilers_;
};

}  // namespace collet::codegen
