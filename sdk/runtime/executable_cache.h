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

/// Executables by content, in case that they are compiled again: the most recently used ones, as many and with as many
/// bytes as the limits say. Not locked; what it drops it hands out, to be destroyed where no lock is held.
class ExecutableCache {
 public:
  using Core = std::shared_ptr<ExecutableCore>;

  static constexpr size_t kMostExecutables = 256;
  /// Limits the bytes of all executables that nobody but the cache holds.
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  /// Null where it is not there.
  Core find(const hlo::ContentId& key);
  /// Keeps `core`, which holds about `bytes` of memory. What falls out goes to `dropped`.
  void keep(const hlo::ContentId& key, Core core, uint64_t bytes, std::vector<Core>& dropped);
  /// Keeps to the limits, now that somebody has let go of an executable.
  void shrink(std::vector<Core>& dropped);
  /// Drops all that nobody else holds.
  void drop_unused(std::vector<Core>& dropped);
  /// Drops all.
  void clear(std::vector<Core>& dropped);

 private:
  struct Entry {
    hlo::ContentId key;
    Core core;
    uint64_t bytes;
  };
  using Entries = std::list<Entry>;
  void drop(Entries::iterator entry, std::vector<Core>& dropped);

  Entries entries_;  ///< the most recently used first
  std::unordered_map<hlo::ContentId, Entries::iterator, hlo::ContentIdHash> by_key_;
};

}  // namespace collet::runtime
