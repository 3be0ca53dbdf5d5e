// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

/// \file
/// Part of every test program. ctest sets a test's environment; if the program is started by hand, this file sets the
/// same environment variables, unless they are set, and changes to the source tree. Both are derived from the program's
/// path in the build folder.

namespace {

namespace fs = std::filesystem;

void give_up(const std::string& why) {
  std::fprintf(stderr, "%s; run it by ctest, or set COLLET_BUILD_DIR, COLLET_BACKEND_PATH and the working folder\n",
               why.c_str());
  std::exit(2);
}

// Returns the source tree of a build folder from CMake's cache; empty if there is no cache.
std::string source_of(const fs::path& build) {
  constexpr std::string_view kKey = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  std::ifstream cache(build / "CMakeCache.txt");
  for (std::string line; std::getline(cache, line);)
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  return {};
}

[[maybe_unused]] const bool is_set = [] {
  if (std::getenv("COLLET_BUILD_DIR") != nullptr) return true;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error), build = self.parent_path().parent_path();
  const std::string source = source_of(build);
  if (source.empty()) give_up(self.string() + " does not lie in the folder tests of a build folder");
  setenv("COLLET_BUILD_DIR", build.c_str(), 0);
  setenv("COLLET_BACKEND_PATH", (build / "lib/collet/backends").c_str(), 0);
  setenv("COLLET_CPU_VERIFY", "1", 0);
  if (fs::exists("sdk/include/collet", error)) return true;
  fs::current_path(source, error);
  if (error) give_up("the source tree " + source + " cannot be entered");
  return true;
}();

}  // namespace
