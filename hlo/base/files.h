// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "hlo/base/status.h"

/// \file
/// Reading files whose contents end, and writing. A folder has no contents, and a device or a pipe may have no end, or
/// nobody who writes to it.

namespace collet {

/// Programs that are longer than this are refused: two gibibytes, as much as a message of protobuf may have.
constexpr uint64_t kMostProgramBytes = uint64_t{1} << 31;

/// A regular file, opened for reading.
class InputFile {
 public:
  /// INVALID_ARGUMENT where there is none, where it cannot be opened, and where it is no regular file. A link counts as
  /// what it leads to. Never waits for a writer.
  static Expected<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  /// Bytes that it had when it was opened.
  uint64_t size() const { return size_; }
  /// `bytes` bytes from `offset` on; INVALID_ARGUMENT where the file has not so many.
  Expected<std::string> read(uint64_t offset, uint64_t bytes) const;

 private:
  InputFile(int fd, std::string path, uint64_t size) : fd_(fd), path_(std::move(path)), size_(size) {}

  int fd_ = -1;
  std::string path_;
  uint64_t size_ = 0;
};

/// The bytes of a regular file, which are at most `most`; else INVALID_ARGUMENT, before anything is read.
Expected<std::string> read_file(const std::string& path, uint64_t most);

/// Reads a descriptor up to its end; INVALID_ARGUMENT once that is more than `most` bytes. `name` is for messages.
/// The descriptor stays open.
Expected<std::string> read_stream(int fd, const std::string& name, uint64_t most);

/// As read_file, but a path that leads to a pipe is read to its end, and waited for: a shell's `<(command)`.
Expected<std::string> read_file_or_pipe(const std::string& path, uint64_t most);

/// "what: No space left on device", with the code that fits: RESOURCE_EXHAUSTED where room or a quota ran out,
/// PERMISSION_DENIED where a right is missing, else FAILED_PRECONDITION. `error` is a value of errno.
Status system_error(const std::string& what, int error);

/// Makes a file of these bytes in the place of what was there; a device or a pipe is written as it is. Messages call it
/// `name`, or by its path where that is empty.
Status write_file(const std::string& path, std::string_view bytes, const std::string& name = {});

}  // namespace collet
