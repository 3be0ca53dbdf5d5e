// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "hlo/base/files.h"

namespace collet::tool {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

// What cannot be read is an input refused; what cannot be written is a failure of the system.
Status unwritable(const std::string& path) {
  return failed_precondition(path + " cannot be written: " + std::strerror(errno));
}

}  // namespace

Expected<std::string> read_program(const std::string& path) {
  if (path == "-") return read_stream(STDIN_FILENO, "stdin", kMostProgramBytes);
  return read_file_or_pipe(path, kMostProgramBytes);
}

Status write_file(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    const bool good = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0;
    return good ? ok_status() : unwritable("stdout");
  }
  // A device, a pipe or a link is written as it is: a new file in its place would be another thing.
  std::error_code ignored;
  const auto kind = std::filesystem::symlink_status(path, ignored).type();
  const bool special = kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::regular;
  const std::string part = special ? path : path + ".part";
  File file(std::fopen(part.c_str(), "wb"));
  if (!file) return unwritable(path);
  bool good = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  good &= std::fclose(file.release()) == 0;
  if (good && (special || std::rename(part.c_str(), path.c_str()) == 0)) return ok_status();
  const Status status = unwritable(path);
  if (!special) std::remove(part.c_str());
  return status;
}

Status check_writable(const std::string& path) {
  if (path.empty() || path == "-") return ok_status();
  std::error_code ignored;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  errno = EISDIR;
  if (std::filesystem::is_directory(path, ignored)) return unwritable(path);
  return access(parent.empty() ? "." : parent.c_str(), W_OK) == 0 ? ok_status() : unwritable(path);
}

Status make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? failed_precondition(path + " cannot be made: " + error.message()) : ok_status();
}

}  // namespace collet::tool
