// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "hlo/base/status.h"

/// \file
/// Reads and writes files. Reading is limited to files whose contents end: a folder has no contents, and a device or a
/// pipe may never end, or may have no writer.

namespace collet {

/// Programs that are longer than this are refused: two gibibytes, as much as a message of protobuf may have.
constexpr uint64_t kMostProgramBytes = uint64_t{1} << 31;

/// A regular file, opened for reading.
class InputFile {
 public:
  /// Opens a file. Returns INVALID_ARGUMENT if it does not exist, cannot be opened, or is not a regular file. Symbolic
  /// links are followed. Never waits for a writer.
  static Expected<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  /// Returns the size in bytes when the file was opened.
  uint64_t size() const { return size_; }
  /// Reads `bytes` bytes from `offset` on; INVALID_ARGUMENT if the file has fewer.
  Expected<std::string> read(uint64_t offset, uint64_t bytes) const;

 private:
  InputFile(int fd, std::string path, uint64_t size) : fd_(fd), path_(std::move(path)), size_(size) {}

  int fd_ = -1;
  std::string path_;
  uint64_t size_ = 0;
};

/// Reads a regular file of at most `most` bytes. A larger file is INVALID_ARGUMENT, before anything is read.
Expected<std::string> read_file(const std::string& path, uint64_t most);

/// Reads a descriptor up to its end; INVALID_ARGUMENT once that is more than `most` bytes. `name` is for messages.
/// The descriptor stays open.
Expected<std::string> read_stream(int fd, const std::string& name, uint64_t most);

/// Like read_file, but a path that leads to a pipe is read to its end, waiting for the writer. This allows a shell's
/// `<(command)`.
Expected<std::string> read_file_or_pipe(const std::string& path, uint64_t most);

/// Returns a status with a message such as "what: No space left on device" and a suitable code: RESOURCE_EXHAUSTED if
/// space or a quota ran out, PERMISSION_DENIED if a permission is missing, else FAILED_PRECONDITION. `error` is a value
/// of errno.
Status system_error(const std::string& what, int error);

/// Writes a file with these bytes; a previous file is replaced, but a device or a pipe is written directly. Messages
/// call it `name`, or by its path if `name` is empty.
Status write_file(const std::string& path, std::string_view bytes, const std::string& name = {});

/// Writes a file of a folder of results. What is there under its name, a link for instance, is removed, and never written through.
Status write_new_file(const std::string& path, std::string_view bytes);

}  // namespace collet
