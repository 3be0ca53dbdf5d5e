// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/run/residency.h"

#include <utility>

namespace collet::runtime {

std::shared_ptr<PreparedArgument> Residency::find(uint32_t participant, uint32_t argument, uint64_t contents,
                                                  bool& now) {
  now = false;
  std::shared_ptr<PreparedArgument> dropped;  // freed after the lock is released
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[participant * arguments_ + argument];
  if (entry.contents != contents) {
    dropped = std::move(entry.prepared);
    entry = {contents, false, nullptr};
    return nullptr;
  }
  if (!entry.asked) now = entry.asked = true;
  return entry.prepared;
}

void Residency::keep(uint32_t participant, uint32_t argument, uint64_t contents,
                     std::shared_ptr<PreparedArgument> prepared) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[participant * arguments_ + argument];
  if (entry.contents == contents) entry.prepared = std::move(prepared);
}

}  // namespace collet::runtime
