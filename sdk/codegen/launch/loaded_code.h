// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen {

/// A compiled kernel: the addresses of its buffers, and the range of loop 0 that this call walks. A sequential kernel
/// must be given the whole range; one without loops ignores it.
using KernelFunction = void (*)(char* const* buffers, int64_t begin, int64_t end);

/// Compares elements i and j of the buffers: buffer 2k is argument 2k's and 2k + 1's, see ScalarBody.
using CompareFunction = uint8_t (*)(char* const* buffers, int64_t i, int64_t j);

/// Machine code of one program. Released with it.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// Address of a function; null when there is none.
  virtual void* find(const std::string& name) const = 0;
  uint64_t bytes() const { return bytes_; }
  /// What was generated, where it was asked for: file names and contents.
  const std::vector<std::pair<std::string, std::string>>& artifacts() const { return artifacts_; }
  /// The object code of its modules, to load it again without compiling.
  const std::vector<std::string>& objects() const { return objects_; }

 protected:
  std::vector<std::pair<std::string, std::string>> artifacts_;
  std::vector<std::string> objects_;
  uint64_t bytes_ = 0;
};

}  // namespace collet::codegen
