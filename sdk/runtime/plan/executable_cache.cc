// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/executable_cache.h"

#include <iterator>
#include <utility>

#include "sdk/runtime/run/executable.h"

namespace collet::runtime {
namespace {

bool is_unused(const ExecutableCache::Core& core) {
  return core.use_count() == 1;
}

}  // namespace

uint64_t ExecutableCore::held_bytes() const {
  uint64_t bytes = facts.code_bytes + facts.resident_bytes + explanation.size() + explanation_json.size();
  for (const CompiledCluster& unit : plan.units)
    for (const CompiledCluster::Local& local : unit.locals)
      for (const std::vector<MemoryRef>& placed : local.constants)
        for (const MemoryRef& memory : placed)
          if (memory) bytes += memory->capacity;
  for (const PlanConstant& constant : plan.constants)
    bytes += static_cast<uint64_t>(constant.value.byte_size()) * (1 + constant.memory.size());
  return bytes;
}

ExecutableCache::Core ExecutableCache::find(const hlo::ContentId& key) {
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->core;
}

void ExecutableCache::keep(const hlo::ContentId& key, Core core, uint64_t bytes, std::vector<Core>& dropped) {
  if (const auto it = by_key_.find(key); it != by_key_.end()) drop(it->second, dropped);
  entries_.push_front({key, std::move(core), bytes});
  by_key_[key] = entries_.begin();
  shrink(dropped);
}

void ExecutableCache::shrink(std::vector<Core>& dropped) {
  while (entries_.size() > kMostExecutables) drop(std::prev(entries_.end()), dropped);
  uint64_t bytes = 0;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto entry = it++;
    if (!is_unused(entry->core)) continue;
    if (entry->bytes > kMostBytes - bytes)
      drop(entry, dropped);
    else
      bytes += entry->bytes;
  }
}

void ExecutableCache::drop_unused(std::vector<Core>& dropped) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto entry = it++;
    if (is_unused(entry->core)) drop(entry, dropped);
  }
}

void ExecutableCache::clear(std::vector<Core>& dropped) {
  while (!entries_.empty()) drop(entries_.begin(), dropped);
}

void ExecutableCache::drop(Entries::iterator entry, std::vector<Core>& dropped) {
  dropped.push_back(std::move(entry->core));
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace collet::runtime
