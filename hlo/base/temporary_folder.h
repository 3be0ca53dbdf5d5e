// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace collet {

/// A folder for temporary files, in TMPDIR or /tmp, that is removed with everything in it. Its path is empty if it cannot be made.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code ignored;
    std::string name = (std::filesystem::temp_directory_path(ignored) / "collet_XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = std::move(name);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace collet
