// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/base/status.h"

namespace collet::tool {

/// The bytes of a file that holds a program; `-` is stdin. Of files, pipes are taken too, other devices are not.
Expected<std::string> read_program(const std::string& path);
/// Writes a file, or stdout for `-`, whole or not at all.
Status write_file(const std::string& path, std::string_view bytes);
/// An error where write_file would surely fail: asked before long work whose result goes there. Empty and `-` are fine.
Status check_writable(const std::string& path);
/// Makes a folder and those above it.
Status make_folder(const std::string& path);

/// A folder that goes away with it. Its path is empty where none can be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace collet::tool
