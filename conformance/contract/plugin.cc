// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace collet::conformance {
namespace {

void write_log(void*, int32_t severity, const char* message) {
  if (severity >= COLLET_LOG_WARNING) std::fprintf(stderr, "%s\n", message ? message : "");
}

const collet_host kHost = {sizeof(collet_host), COLLET_ABI_MAJOR, COLLET_ABI_MINOR, COLLET_OPSET, nullptr, write_log};

}  // namespace

Expected<std::unique_ptr<Plugin>> Plugin::load(const std::string& path, Options options) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return failed_precondition(dlerror());
  void* symbol = dlsym(library, "collet_backend_entry");
  if (symbol == nullptr) return failed_precondition(path + " exports no collet_backend_entry");
  collet_backend_entry_fn entry = nullptr;
  std::memcpy(&entry, &symbol, sizeof entry);
  std::unique_ptr<Plugin> plugin(new Plugin);
  plugin->options_ = std::move(options);
  collet_error error{};
  const collet_status code = entry(&kHost, &plugin->original_, &error);
  if (code != COLLET_OK) return from_c(code, error, path);
  if (plugin->original_ == nullptr) return failed_precondition(path + " hands out no table");
  std::memcpy(&plugin->table_, plugin->original_,
              std::min<size_t>(plugin->original_->struct_size, sizeof(collet_backend)));
  return plugin;
}

}  // namespace collet::conformance
