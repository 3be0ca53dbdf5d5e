// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

/// \file
/// Runs the built command in a shell, as a user does.

namespace collet::tool::testing {

inline std::string build_dir() {
  const char* dir = std::getenv("COLLET_BUILD_DIR");
  return dir == nullptr ? "" : dir;
}

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A temporary folder, which the destructor removes.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/collet_tool_XXXXXX";
    if (const char* made = mkdtemp(name)) path_ = made;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Ran {
  int code = -1;
  std::string out, err;
};

/// Runs `collet ARGUMENTS` in a shell.
inline Ran collet(const std::string& arguments, const std::string& before = "") {
  const Folder folder;
  const std::string out = folder / "out", err = folder / "err";
  const std::string line = before + " '" + build_dir() + "/bin/collet' " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(out), contents(err)};
}

/// True if the build has a plugin of this name.
inline bool has_backend(const std::string& name) {
  return std::filesystem::exists(build_dir() + "/lib/collet/backends/libcollet_backend_" + name + ".so");
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace collet::tool::testing
