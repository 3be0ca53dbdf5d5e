// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "hlo/program/block.h"

namespace collet::runtime {

/// Compiled programs as files, in the folder that COLLET_CACHE_DIR names; nothing happens without it. Entries are written
/// whole or not at all and checked when read, so that any number of processes may share the folder. What cannot be read or
/// written is as if it were not there.
class DiskCache {
 public:
  /// Opens the cache that this process's environment names.
  DiskCache();
  bool on() const { return !folder_.empty(); }
  std::optional<std::string> find(const hlo::ContentId& key) const;
  void keep(const hlo::ContentId& key, const std::string& bytes) const;

 private:
  std::string path(const hlo::ContentId& key) const;
  std::string folder_;
};

}  // namespace collet::runtime
