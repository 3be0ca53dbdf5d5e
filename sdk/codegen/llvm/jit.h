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

/// Compiles modules for the host. Any thread.
class Jit {
 public:
  static Status create(const Target& target, std::unique_ptr<Jit>& out);

  /// Compiles the functions of a program. Shared ones are compiled when a program first asks for them, and kept as long as
  /// this.
  Status compile(const std::vector<FunctionSource>& sources, bool keep_artifacts, std::unique_ptr<LoadedCode>& out);
  /// The same for modules that `fill` writes.
  Status compile(const std::vector<std::function<void(llvm::Module&)>>& fill, bool keep_artifacts,
                 std::unique_ptr<LoadedCode>& out);

  /// Code of the same functions as it was before: what LoadedCode::objects gave in a process with the same target. The bytes
  /// are trusted.
  Status load(const std::vector<FunctionSource>& sources, const std::vector<std::string>& objects,
              std::unique_ptr<LoadedCode>& out);

  const Target& target() const { return target_; }

 private:
  class Code;
  explicit Jit(Target target) : target_(std::move(target)) {}
  Status begin(std::unique_ptr<Code>& out);
  Status add(Code& code, std::string object);
  std::launch policy() const;
  /// Compiles the shared ones of the functions that were not compiled before.
  Status make_shared(const std::vector<FunctionSource>& sources);
  /// Finds the shared ones of the functions, or compiles them.
  Status add_shared(const std::vector<FunctionSource>& sources, Code& code);
  Target target_;
  std::shared_ptr<llvm::orc::LLJIT> jit_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::shared_ptr<LoadedCode>, void*>> shared_;
};

}  // namespace collet::codegen
