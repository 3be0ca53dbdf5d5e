// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "hlo/base/descriptor.h"
#include "hlo/base/files.h"
#include "hlo/base/sha256.h"
#include "hlo/base/utf8.h"

namespace collet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFewestDigits = 32;  // of an entry's name
constexpr std::string_view kEntry = ".bin", kPart = ".part";
constexpr time_t kLongestWrite = 3600;  // seconds after which a partial file of another machine is stale

// Identifies the processes whose numbers mean something here: those of this boot of this machine, in this namespace of process
// numbers.
const std::string& process_space() {
  static const std::string space = [] {
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    std::error_code ignored;
    return sha256(boot + fs::read_symlink("/proc/self/ns/pid", ignored).string()).substr(0, 8);
  }();
  return space;
}

std::string random_digits() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<uint64_t>(time(nullptr));
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

// The parts of a name "DIGITS.bin" or "DIGITS.bin.SPACE.PROCESS.RANDOM.part". Files that end otherwise are of versions that wrote
// "DIGITS.bin.PROCESS.NUMBER".
struct Name {
  bool of_cache = false, partial = false;
  std::string_view space;
  pid_t process = 0;
};

Name parse(std::string_view text) {
  Name name;
  const size_t digits = std::min(text.find_first_not_of("0123456789abcdef"), text.size());
  if (digits < kFewestDigits || !text.substr(digits).starts_with(kEntry)) return name;
  text.remove_prefix(digits + kEntry.size());
  if (text.empty()) {
    name.of_cache = true;
    return name;
  }
  if (text[0] != '.') return name;
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    text.remove_prefix(1);
    const size_t end = std::min(text.find('.'), text.size());
    fields.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  const bool present = fields.size() == 4 && fields[3] == kPart.substr(1);
  if (!present && fields.size() != 2) return name;
  name.space = present ? fields[0] : std::string_view(process_space());
  const std::string_view number = fields[present ? 1 : 0];
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.process);
  name.of_cache = name.partial = error == std::errc() && end == number.data() + number.size() && name.process > 0;
  return name;
}

// True for a regular file of this user that nobody else may write.
bool is_own(const struct stat& facts) {
  return S_ISREG(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_stale(const Name& name, const struct stat& facts) {
  if (name.space == process_space()) return kill(name.process, 0) != 0 && errno == ESRCH;
  return time(nullptr) - facts.st_mtime > kLongestWrite;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::string CacheFolder::path_of_environment() {
  const char* path = secure_getenv("COLLET_CACHE_DIR");
  return path ? path : "";
}

Expected<uint64_t> CacheFolder::limit_of_environment() {
  const char* text = std::getenv("COLLET_CACHE_MIB");
  if (!text) return kDefaultLimit;
  uint64_t mib = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), mib);
  if (error != std::errc() || *end != '\0' || mib > UINT64_MAX >> 20)
    return invalid_argument("COLLET_CACHE_MIB is " + quoted(text) + ", but must be a number of MiB, such as 4096");
  return mib << 20;
}

Expected<CacheFolder> CacheFolder::open(const std::string& path, bool create) {
  if (create) {
    std::error_code ignored;
    if (const fs::path parent = fs::path(path).parent_path(); !parent.empty()) fs::create_directories(parent, ignored);
    mkdir(path.c_str(), 0700);
  }
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return not_found("there is no folder " + path);
  struct stat facts{};
  if (fd.get() < 0 || fstat(fd.get(), &facts) != 0) return system_error(path + " cannot be opened", errno);
  if (facts.st_uid != geteuid() && facts.st_uid != 0)
    return Status(Code::PermissionDenied, path + " belongs to another user, so it is not used as a cache");
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Status(Code::PermissionDenied,
                  path + " is writable for other users, so it is not used as a cache (chmod go-w makes it one)");
  return CacheFolder(fd.release());
}

CacheFolder::CacheFolder(CacheFolder&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

CacheFolder& CacheFolder::operator=(CacheFolder&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

CacheFolder::~CacheFolder() {
  if (fd_ >= 0) close(fd_);
}

std::optional<std::string> CacheFolder::read(const std::string& name) const {
  const Descriptor fd(openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  if (fd.get() < 0 || fstat(fd.get(), &facts) != 0 || !is_own(facts)) return std::nullopt;
  // A sparse file may state any size.
  if (facts.st_size < 0 || static_cast<uint64_t>(facts.st_size) > kMostProgramBytes) return std::nullopt;
  std::string out(static_cast<size_t>(facts.st_size), '\0');
  for (size_t done = 0; done < out.size();) {
    const ssize_t n = ::read(fd.get(), out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<size_t>(n);
  }
  futimens(fd.get(), nullptr);  // the time of the last use
  return out;
}

Status CacheFolder::write(const std::string& name, std::string_view bytes) const {
  const std::string part =
      name + "." + process_space() + "." + std::to_string(getpid()) + "." + random_digits() + std::string(kPart);
  Descriptor fd(openat(fd_, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return system_error("a cache entry cannot be written", errno);
  const bool written = write_all(fd.get(), bytes);
  const int error = errno;
  const bool closed = close(fd.release()) == 0;
  if (written && closed && renameat(fd_, part.c_str(), fd_, name.c_str()) == 0) return ok_status();
  const Status status = system_error("a cache entry cannot be written", written ? errno : error);
  unlinkat(fd_, part.c_str(), 0);
  return status;
}

Expected<std::vector<CacheFile>> CacheFolder::list() const {
  Descriptor copy(openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(copy.get() < 0 ? nullptr : fdopendir(copy.get()), closedir);
  if (!folder) return system_error("the cache folder cannot be listed", errno);
  copy.release();
  std::vector<CacheFile> files;
  while (const dirent* one = readdir(folder.get())) {
    const Name name = parse(one->d_name);
    struct stat facts{};
    if (!name.of_cache || fstatat(fd_, one->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
    CacheFile file{one->d_name, CacheFile::Kind::Entry, static_cast<uint64_t>(facts.st_size), facts.st_mtim};
    // Versions that left partial files behind wrote them with the mode of the process.
    const bool own_part = name.partial && S_ISREG(facts.st_mode) && facts.st_uid == geteuid();
    if (!is_own(facts) && !own_part)
      file.kind = CacheFile::Kind::Foreign;
    else if (name.partial)
      file.kind = is_stale(name, facts) ? CacheFile::Kind::Stale : CacheFile::Kind::Partial;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const CacheFile& a, const CacheFile& b) {
    if (a.used.tv_sec != b.used.tv_sec) return a.used.tv_sec > b.used.tv_sec;
    if (a.used.tv_nsec != b.used.tv_nsec) return a.used.tv_nsec > b.used.tv_nsec;
    return a.name < b.name;
  });
  return files;
}

Status CacheFolder::remove(const std::string& name) const {
  if (unlinkat(fd_, name.c_str(), 0) == 0 || errno == ENOENT) return ok_status();
  return system_error(name + " cannot be removed", errno);
}

Expected<std::vector<CacheFile>> CacheFolder::trim(uint64_t limit) const {
  COLLET_ASSIGN(std::vector<CacheFile> files, list());
  std::vector<CacheFile> removed;
  uint64_t bytes = 0;
  bool full = false;
  for (CacheFile& file : files) {
    if (file.kind == CacheFile::Kind::Entry && !full) {
      full = file.bytes > limit - bytes;
      if (!full) bytes += file.bytes;
    }
    if (file.kind != CacheFile::Kind::Stale && !(file.kind == CacheFile::Kind::Entry && full)) continue;
    COLLET_TRY(remove(file.name));
    removed.push_back(std::move(file));
  }
  return removed;
}

}  // namespace collet
