// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "hlo/base/secret_key.h"
#include "hlo/program/block.h"

namespace collet::runtime {

/// Stores compiled programs as files in the folder that COLLET_CACHE_DIR names; without it the cache does nothing.
/// Entries are written atomically and checked when they are read, so several processes may share the folder. Entries
/// that cannot be read or written, or that another user may have written, are treated as missing: see CacheFolder. With a key
/// (SecretKey) entries are signed, and those that are not signed with it are treated as missing. A folder or a key that is not used
/// for its owner or mode is told to the log, once. The
/// least recently used entries are removed beyond the limit of COLLET_CACHE_MIB, and so is what killed processes left.
class DiskCache {
 public:
  /// Opens the cache that this process's environment names.
  DiskCache();
  /// False if there is no folder, or if the key or the limit cannot be used.
  bool on() const { return !folder_.empty(); }
  std::optional<std::string> find(const hlo::ContentId& key) const;
  void keep(const hlo::ContentId& key, const std::string& bytes) const;

 private:
  std::string folder_;
  SecretKey key_;
  uint64_t limit_ = 0;  ///< most bytes of all entries
};

}  // namespace collet::runtime
