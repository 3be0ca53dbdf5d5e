// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "hlo/base/status.h"

namespace collet::conformance {

/// A folder for temporary files, in TMPDIR or /tmp, that is removed with everything in it.
class TemporaryFolder {
 public:
  static Expected<TemporaryFolder> make() {
    const char* const set = std::getenv("TMPDIR");
    std::string path = std::string(set && *set ? set : "/tmp") + "/collet_XXXXXX";
    if (!::mkdtemp(path.data()))
      return Status(Code::Unavailable, "cannot make a folder for temporary files in " +
                                           std::filesystem::path(path).parent_path().string());
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace collet::conformance
