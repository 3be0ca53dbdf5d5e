// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collet::codegen {

/// Machine code of one program. Released with it.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// Address of a function; null when there is none.
  virtual void* find(const std::string& name) const = 0;
  uint64_t bytes() const { return bytes_; }
  /// The generated files, if they were requested: names and contents.
  const std::vector<std::pair<std::string, std::string>>& artifacts() const { return artifacts_; }
  /// The object code of its modules, to load it again without compiling.
  const std::vector<std::string>& objects() const { return objects_; }

 protected:
  std::vector<std::pair<std::string, std::string>> artifacts_;
  std::vector<std::string> objects_;
  uint64_t bytes_ = 0;
};

}  // namespace collet::codegen
