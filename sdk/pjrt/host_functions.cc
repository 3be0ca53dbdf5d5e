// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/host_functions.h"

#include <map>
#include <mutex>
#include <utility>

namespace collet::pjrt {
namespace {

struct Entry {
  collet_host_function function;  // the target is set when the function is listed
  HostFunctionUse use;            // the list's own reference; programs and runs hold the others
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, Entry> functions;
  std::vector<Entry> removed;
};

Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

int add(const char* target, void* user, decltype(collet_host_function::call) call) {
  return add_host_function(target, user, call) ? 0 : 1;
}

void remove(const char* target) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(target);
  if (found == all.functions.end()) return;
  all.removed.push_back(std::move(found->second));
  all.functions.erase(found);
}

int take_unused(void** user) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (Entry& entry : all.removed) {
    if (entry.use.use_count() != 1) continue;  // no program can use it any more, because programs find it in the list
    *user = entry.function.user;
    std::swap(entry, all.removed.back());
    all.removed.pop_back();
    return 1;
  }
  return 0;
}

}  // namespace

bool add_host_function(const char* target, void* user, decltype(collet_host_function::call) call) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.functions.emplace(target, Entry{{nullptr, user, call}, std::make_shared<char>()}).second;
}

bool has_host_function(const char* target, void* user, decltype(collet_host_function::call) call) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(target);
  return found != all.functions.end() && found->second.function.user == user && found->second.function.call == call;
}

HostFunctions host_functions() {
  HostFunctions out;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [target, entry] : all.functions) {
    out.targets.push_back(target);
    out.list.push_back({out.targets.back().c_str(), entry.function.user, entry.function.call});
    out.uses.push_back(entry.use);
  }
  return out;
}

PJRT_Extension_Base* host_functions_extension(PJRT_Extension_Base* next) {
  static HostFunctionsExtension extension = {
      {sizeof(HostFunctionsExtension), static_cast<PJRT_Extension_Type>(kHostFunctionsExtension), nullptr},
      add,
      remove,
      take_unused};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace collet::pjrt
