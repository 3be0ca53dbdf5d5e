// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen {

/// Machine code of one program. It is freed with this object.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// Returns the address of a function; null if there is none of that name.
  virtual void* find(const std::string& name) const = 0;
  uint64_t bytes() const { return bytes_; }
  /// Returns the names and contents of the intermediate files, if they were requested.
  const std::vector<std::pair<std::string, std::string>>& artifacts() const { return artifacts_; }
  /// Returns the object code of the program's modules, from which it can be loaded again without compiling.
  const std::vector<std::string>& objects() const { return objects_; }

 protected:
  std::vector<std::pair<std::string, std::string>> artifacts_;
  std::vector<std::string> objects_;
  uint64_t bytes_ = 0;
};

}  // namespace collet::codegen
