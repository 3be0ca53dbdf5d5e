// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// For test backends that pass calls on to another backend of the build.

#include <collet/backend.h>
#include <collet/error.h>
#include <dlfcn.h>

#include <cstring>
#include <string>

namespace collet::testing {

/// Returns the path of the backend `name` of the build that the library with the address `here` belongs to.
inline std::string beside(const void* here, const std::string& name) {
  Dl_info self;
  if (!dladdr(here, &self)) return {};
  const std::string path = self.dli_fname;
  return path.substr(0, path.rfind('/')) + "/../backends/libcollet_backend_" + name + ".so";
}

/// Loads the backend at `path` for good, and stores its table.
inline collet_status load_inner(const std::string& path, const collet_host* host, const collet_backend** out,
                                collet_error* error) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle ? dlsym(handle, "collet_backend_entry") : nullptr;
  if (!symbol) return collet_set_error(error, COLLET_INVALID_ARGUMENT, ("there is no backend at " + path).c_str());
  collet_backend_entry_fn entry;
  std::memcpy(&entry, &symbol, sizeof entry);
  return entry(host, out, error);
}

}  // namespace collet::testing
