// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// A folder of files that several processes share as a cache, on disk. What is read from it is run as code, so files of other users
/// are not read, and links are not followed.

namespace collet {

/// A file of a cache folder.
struct CacheFile {
  enum class Kind : uint8_t {
    Entry,    ///< a complete entry
    Partial,  ///< being written by a process that runs
    Stale,    ///< left by a process that has ended while it wrote
    Foreign  ///< named like an entry, but of another user, writable for others, or no regular file; never read or removed
  };
  std::string name;
  Kind kind = Kind::Entry;
  uint64_t bytes = 0;
  timespec used{};  ///< the time of the last use
};

/// An opened cache folder. Entries are regular files that this user owns and nobody else may write. Their names end with `.bin`
/// after at least 32 hexadecimal digits; all other files of the folder are left alone.
class CacheFolder {
 public:
  /// The most bytes of entries that are kept if the user says nothing else.
  static constexpr uint64_t kDefaultLimit = uint64_t{4} << 30;

  /// Returns the folder that COLLET_CACHE_DIR names; empty if there is none.
  static std::string path_of_environment();
  /// Returns the limit in bytes that COLLET_CACHE_MIB states in MiB; kDefaultLimit if it is not set, INVALID_ARGUMENT if it is no number.
  static Expected<uint64_t> limit_of_environment();

  /// Opens a folder; `create`: makes it first, with mode 0700, if it does not exist. Returns PERMISSION_DENIED for a folder of
  /// another user than this one and root, or that other users may write (mode g+w or o+w), and
  /// NOT_FOUND or FAILED_PRECONDITION if it cannot be opened.
  static Expected<CacheFolder> open(const std::string& path, bool create);
  CacheFolder(CacheFolder&& other) noexcept;
  CacheFolder& operator=(CacheFolder&& other) noexcept;
  ~CacheFolder();

  /// Returns the contents of an entry, and notes its use; nullopt if there is none that may be read.
  std::optional<std::string> read(const std::string& name) const;
  /// Writes an entry as a whole: other processes see the old file or the new one.
  Status write(const std::string& name, std::string_view bytes) const;
  /// Returns the files of the cache, ordered by last use, the latest first.
  Expected<std::vector<CacheFile>> list() const;
  /// Removes a file.
  Status remove(const std::string& name) const;
  /// Removes stale files, and the least recently used entries until the rest has at most `limit` bytes. Returns what was removed.
  Expected<std::vector<CacheFile>> trim(uint64_t limit) const;

 private:
  explicit CacheFolder(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace collet
