// SPDX-License-Identifier: Apache-2.0
#include <collet/dynamic_library.hpp>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "sdk/pjrt/api/table.h"

/// \file
/// The library that frontends open. It needs nothing but the C and C++ libraries, and opens the plugin, which lies beside it, so that
/// the plugin's libraries and those of the process do not see each other, however the frontend opens this one and whatever is
/// loaded later. Protobuf and LLVM are in many processes more than once, in several versions.

namespace collet::pjrt {
namespace {

constexpr const char* kPlugin = "libcollet_pjrt_private.so";

const PJRT_Api* complain(const std::string& message) {
  std::fprintf(stderr, "collet: the PJRT plugin cannot be used: %s\n", message.c_str());
  return nullptr;
}

const PJRT_Api* open_plugin() {
  Dl_info self{};
  if (!dladdr(reinterpret_cast<const void*>(&open_plugin), &self) || !self.dli_fname)
    return complain("the path of its library is not known");
  std::error_code ignored;
  const std::string path = (std::filesystem::absolute(self.dli_fname, ignored).parent_path() / kPlugin).string();
  void* const handle = dlopen(path.c_str(), private_library());
  if (!handle) return complain(dlerror());
  void* const symbol = dlsym(handle, "GetPjrtApi");
  if (!symbol) return complain(path + " does not export GetPjrtApi");
  const PJRT_Api* (*get)() = nullptr;
  std::memcpy(&get, &symbol, sizeof get);
  return get();
}

}  // namespace
}  // namespace collet::pjrt

/// Returns the plugin's table; null, after a message on stderr, if the plugin cannot be opened.
extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api* const api = collet::pjrt::open_plugin();
  return api;
}
