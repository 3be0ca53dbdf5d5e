// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/transport.h"

#include <dlfcn.h>
#include <collet/dynamic_library.hpp>

#include <cstddef>
#include <cstdlib>
#include <filesystem>

namespace collet::runtime {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kUsualSeconds = 300;

// What makes that a transport of Collet's own is there.
std::string how_to_get(const std::string& name) {
  if (name == "gloo") return " (it is built if Gloo is installed; Debian: libgloo-dev)";
  return "";
}

}  // namespace

std::string chosen(const char* option, const char* variable, const std::string& usual) {
  if (option && *option) return option;
  const char* text = std::getenv(variable);
  return text && *text ? text : usual;
}

Expected<uint32_t> exchange_timeout_ms(uint32_t option) {
  if (option) return option;
  const char* text = std::getenv("COLLET_EXCHANGE_TIMEOUT");
  if (!text || !*text) return kUsualSeconds * 1000;
  char* end = nullptr;
  const unsigned long seconds = std::strtoul(text, &end, 10);
  if (*end || *text == '-' || seconds == 0 || seconds > 1'000'000)
    return invalid_argument(std::string("COLLET_EXCHANGE_TIMEOUT='") + text +
                            "': expected seconds, a number from 1 to 1000000");
  return static_cast<uint32_t>(seconds * 1000);
}

std::string transport_name(const char* option) {
  return chosen(option, "COLLET_TRANSPORT", "gloo");
}

Expected<Transport> load_transport(const std::string& name, const void* place) {
  std::string path = name;
  if (name.find('/') == std::string::npos) {
    Dl_info self;
    std::error_code ignored;
    if (!dladdr(place, &self) || !self.dli_fname) return internal_error("the library does not know where it is");
    const fs::path here = fs::weakly_canonical(self.dli_fname, ignored).parent_path();
    const std::string file = "libcollet_transport_" + name + ".so";
    path = (here / "collet" / "transports" / file).string();
    if (!fs::exists(path, ignored)) path = (here.parent_path() / "lib" / "collet" / "transports" / file).string();
    if (!fs::exists(path, ignored))
      return not_found("there is no transport '" + name + "' for several processes; looked for " + path +
                       how_to_get(name));
  }
  void* library = dlopen(path.c_str(), private_library());
  if (!library) return failed_precondition("the transport '" + name + "' cannot be loaded: " + dlerror());
  const auto entry = reinterpret_cast<collet_transport_entry_fn>(dlsym(library, COLLET_TRANSPORT_ENTRY));
  const collet_transport* table = entry ? entry() : nullptr;
  if (!table) return failed_precondition("'" + path + "' is no transport: it lacks " COLLET_TRANSPORT_ENTRY);
  constexpr size_t kFirst = offsetof(collet_transport, post) + sizeof table->post;  // it grows at its end
  if (table->version != 1 || table->struct_size < kFirst || !table->open || !table->close || !table->exchange ||
      !table->post)
    return failed_precondition("the transport '" + path + "' has version " + std::to_string(table->version) +
                               " or lacks functions; version 1 is needed");
  return Transport{path, table,
                   reinterpret_cast<collet_transport_collective_fn>(dlsym(library, COLLET_TRANSPORT_COLLECTIVE)),
                   reinterpret_cast<collet_transport_launched_fn>(dlsym(library, COLLET_TRANSPORT_LAUNCHED))};
}

}  // namespace collet::runtime
