// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/installation.h"

#include <system_error>

namespace collet::tool {

namespace fs = std::filesystem;

fs::path prefix() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : self.parent_path().parent_path();
}

fs::path config_folder() {
  const fs::path root = prefix();
  std::error_code error;
  if (fs::exists(root / "ColletConfig.cmake", error)) return root;
  for (const char* lib : {"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}) {
    const fs::path folder = root / lib / "cmake" / "Collet";
    if (fs::exists(folder / "ColletConfig.cmake", error)) return folder;
  }
  return {};
}

}  // namespace collet::tool
