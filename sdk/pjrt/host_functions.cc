// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/host_functions.h"

#include <map>
#include <mutex>

namespace collet::pjrt {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, collet_host_function> functions;  // targets are filled in when they are listed
};

Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

int add(const char* target, void* user, decltype(collet_host_function::call) call) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.functions.emplace(target, collet_host_function{nullptr, user, call}).second ? 0 : 1;
}

void remove(const char* target) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.functions.erase(target);
}

}  // namespace

HostFunctions host_functions() {
  HostFunctions out;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [target, function] : all.functions) {
    out.targets.push_back(target);
    out.list.push_back({out.targets.back().c_str(), function.user, function.call});
  }
  return out;
}

PJRT_Extension_Base* host_functions_extension(PJRT_Extension_Base* next) {
  static HostFunctionsExtension extension = {
      {sizeof(HostFunctionsExtension), static_cast<PJRT_Extension_Type>(kHostFunctionsExtension), nullptr},
      add,
      remove};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace collet::pjrt
