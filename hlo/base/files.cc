// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hlo/base/descriptor.h"

namespace collet {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

Status unreadable(const std::string& path) {
  return invalid_argument(path + " cannot be read: " + std::strerror(errno));
}

Status too_large(const std::string& path, uint64_t most) {
  return invalid_argument(path + " has more than the " + std::to_string(most) + " bytes that are read of it");
}

Status wrong_kind(const std::string& path, mode_t mode) {
  const char* kind = S_ISDIR(mode)    ? "a folder"
                     : S_ISCHR(mode)  ? "a device"
                     : S_ISBLK(mode)  ? "a device"
                     : S_ISFIFO(mode) ? "a pipe"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "no regular file";
  return invalid_argument(path + " is " + kind);
}

// Reads up to `bytes` bytes; fewer at the end. -1 for an error.
ssize_t read_some(int fd, char* out, size_t bytes) {
  for (;;) {
    const ssize_t n = ::read(fd, out, bytes);
    if (n >= 0 || errno != EINTR) return n;
  }
}

}  // namespace

Expected<InputFile> InputFile::open(const std::string& path) {
  // Checks the kind of file before opening, since opening a device may have effects, and again after it, since the path may change.
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) return unreadable(path);
  if (!S_ISREG(facts.st_mode)) return wrong_kind(path, facts.st_mode);
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0 || fstat(fd.get(), &facts) != 0) return unreadable(path);
  if (!S_ISREG(facts.st_mode)) return wrong_kind(path, facts.st_mode);
  return InputFile(fd.release(), path, static_cast<uint64_t>(facts.st_size));
}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), size_(other.size_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

Expected<std::string> InputFile::read(uint64_t offset, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) {
    return invalid_argument(path_ + " is too short: it has " + std::to_string(size_) + " bytes");
  }
  std::string out(bytes, '\0');
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t n = pread(fd_, out.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unreadable(path_);
    if (n == 0) return invalid_argument(path_ + " became shorter while it was read");
    done += static_cast<uint64_t>(n);
  }
  return out;
}

Expected<std::string> read_file(const std::string& path, uint64_t most) {
  COLLET_ASSIGN(const InputFile file, InputFile::open(path));
  if (file.size() > most) return too_large(path, most);
  return file.read(0, file.size());
}

Expected<std::string> read_stream(int fd, const std::string& name, uint64_t most) {
  std::string out;
  for (;;) {
    const size_t before = out.size();
    const auto room = static_cast<size_t>(std::min<uint64_t>(kBlock, most - before));
    char beyond;  // reading one byte more shows that the file is too large
    out.resize(before + room);
    const ssize_t n = room ? read_some(fd, out.data() + before, room) : read_some(fd, &beyond, 1);
    if (n < 0) return unreadable(name);
    if (n > 0 && room == 0) return too_large(name, most);
    out.resize(before + static_cast<size_t>(n));
    if (n == 0) return out;
  }
}

Expected<std::string> read_file_or_pipe(const std::string& path, uint64_t most) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0 || !S_ISFIFO(facts.st_mode)) return read_file(path, most);
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 || fstat(fd.get(), &facts) != 0) return unreadable(path);
  if (!S_ISFIFO(facts.st_mode)) return wrong_kind(path, facts.st_mode);
  return read_stream(fd.get(), path, most);
}

Status system_error(const std::string& what, int error) {
  const bool room =
      error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM || error == EMFILE || error == ENFILE;
  const bool right = error == EACCES || error == EPERM || error == EROFS;
  const Code code = room ? Code::ResourceExhausted : right ? Code::PermissionDenied : Code::FailedPrecondition;
  return Status(code, what + ": " + std::strerror(error));
}

namespace {

// Writes and closes `opened`; negative: what open returned.
Status write_opened(int opened, std::string_view bytes, const std::string& what) {
  Descriptor fd(opened);
  if (fd.get() < 0) return system_error(what, errno);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(what, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return close(fd.release()) == 0 ? ok_status() : system_error(what, errno);
}

}  // namespace

Status write_file(const std::string& path, std::string_view bytes, const std::string& name) {
  return write_opened(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666), bytes,
                      (name.empty() ? path : name) + " cannot be written");
}

Status write_new_file(const std::string& path, std::string_view bytes) {
  const std::string what = path + " cannot be written";
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return system_error(what, errno);
  return write_opened(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666), bytes, what);
}

}  // namespace collet
