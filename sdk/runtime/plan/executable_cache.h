// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "hlo/program/block.h"

namespace collet::runtime {

struct ExecutableCore;

/// Keeps recently used executables by content, in case they are compiled again, up to limits of number and bytes. It
/// has no lock; dropped executables are returned to the caller, to be destroyed when no lock is held.
class ExecutableCache {
 public:
  using Core = std::shared_ptr<ExecutableCore>;

  static constexpr size_t kMostExecutables = 256;
  /// Largest total size of executables that only the cache holds.
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  /// Returns the executable; null if it is not in the cache.
  Core find(const hlo::ContentId& key);
  /// Adds `core`, which holds about `bytes` of memory. Evicted executables are added to `dropped`.
  void keep(const hlo::ContentId& key, Core core, uint64_t bytes, std::vector<Core>& dropped);
  /// Enforces the limits, after an executable has been released.
  void shrink(std::vector<Core>& dropped);
  /// Drops all executables that only the cache holds.
  void drop_unused(std::vector<Core>& dropped);
  /// Drops all executables.
  void clear(std::vector<Core>& dropped);

 private:
  struct Entry {
    hlo::ContentId key;
    Core core;
    uint64_t bytes;
  };
  using Entries = std::list<Entry>;
  void drop(Entries::iterator entry, std::vector<Core>& dropped);

  Entries entries_;  ///< ordered, the most recently used first
  std::unordered_map<hlo::ContentId, Entries::iterator, hlo::ContentIdHash> by_key_;
};

}  // namespace collet::runtime
