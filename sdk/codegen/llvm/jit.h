// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/codegen/graph/status.h"
#include "sdk/codegen/kernel/kernel.h"
#include "sdk/codegen/launch/loaded_code.h"
#include "sdk/codegen/matmul/matmul.h"
#include "sdk/codegen/schedule/target.h"

namespace llvm {
class Module;
namespace orc {
class LLJIT;
}  // namespace orc
}  // namespace llvm

namespace collet::codegen {

/// Source of one function. Exactly one of `kernel`, `micro` and `comparator` is set; what they point to must outlive the
/// call that compiles it.
struct FunctionSource {
  std::string name;
  const Kernel* kernel = nullptr;          ///< a KernelFunction
  const MicroKernel* micro = nullptr;      ///< a MicroFunction; without rows, the epilogue alone
  const Epilogue* epilogue = nullptr;      ///< of `micro`; may be null
  const ScalarBody* comparator = nullptr;  ///< a CompareFunction over arguments of `types`
  std::vector<uint32_t> types;
};

/// Compiles modules for the host. Any thread.
class Jit {
 public:
  static Status create(const Target& target, std::unique_ptr<Jit>& out);

  /// Emits each of `modules` as a module of its own, optimises and compiles it.
  Status compile(const std::vector<std::vector<FunctionSource>>& modules, bool keep_artifacts,
                 std::unique_ptr<LoadedCode>& out);
  /// The same for modules that `fill` writes.
  Status compile(const std::vector<std::function<void(llvm::Module&)>>& fill, bool keep_artifacts,
                 std::unique_ptr<LoadedCode>& out);

  /// Code as it was before: what LoadedCode::objects gave in a process with the same target. The bytes are trusted.
  Status load(const std::vector<std::string>& objects, std::unique_ptr<LoadedCode>& out);

  /// A function that many programs use: compiled when first asked for, kept as long as this.
  Status shared(const FunctionSource& source, void*& out);

  const Target& target() const { return target_; }

 private:
  class Code;
  explicit Jit(Target target) : target_(std::move(target)) {}
  Status begin(std::unique_ptr<Code>& out);
  Status add(Code& code, std::string object);
  Target target_;
  std::shared_ptr<llvm::orc::LLJIT> jit_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::unique_ptr<LoadedCode>, void*>> shared_;
};

}  // namespace collet::codegen
