// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/codegen/status.h"
#include "sdk/codegen/target.h"

namespace llvm {
class Module;
namespace orc {
class JITDylib;
class LLJIT;
}  // namespace orc
}  // namespace llvm

namespace collet::codegen {

/// Machine code of one program. Released with it.
class Code {
 public:
  ~Code();
  /// Address of a function; null when there is none.
  void* find(const std::string& name) const;
  uint64_t bytes() const { return bytes_; }
  /// What was generated, where it was asked for: file names and contents.
  const std::vector<std::pair<std::string, std::string>>& artifacts() const { return artifacts_; }
  /// The object code of its modules, for Jit::load.
  const std::vector<std::string>& objects() const { return objects_; }

 private:
  friend class Jit;
  std::shared_ptr<llvm::orc::LLJIT> jit_;
  llvm::orc::JITDylib* library_ = nullptr;
  std::vector<std::pair<std::string, std::string>> artifacts_;
  std::vector<std::string> objects_;
  uint64_t bytes_ = 0;
};

/// Compiles modules for the host. Any thread.
class Jit {
 public:
  static Status create(const Target& target, std::unique_ptr<Jit>& out);

  /// Fills a fresh module by each of `fill`, optimises and compiles it.
  Status compile(const std::vector<std::function<void(llvm::Module&)>>& fill, bool keep_artifacts,
                 std::unique_ptr<Code>& out);

  /// Code as it was before: what Code::objects gave in a process with the same target. The bytes are trusted.
  Status load(const std::vector<std::string>& objects, std::unique_ptr<Code>& out);

  /// A function that many programs use: compiled when first asked for, kept as long as this. `fill` defines `name`.
  Status shared(const std::string& name, const std::function<void(llvm::Module&)>& fill, void*& out);

  const Target& target() const { return target_; }

 private:
  explicit Jit(Target target) : target_(std::move(target)) {}
  Status begin(std::unique_ptr<Code>& out);
  Status add(Code& code, std::string object);
  Target target_;
  std::shared_ptr<llvm::orc::LLJIT> jit_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::unique_ptr<Code>, void*>> shared_;
};

}  // namespace collet::codegen
