// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "hlo/base/files.h"

namespace collet::tool {
namespace {

// A file that cannot be read is a wrong input, but one that cannot be written is a failure of the system.
Status unwritable(const std::string& path, int error) {
  return system_error(path + " cannot be written", error);
}

// True for a device, a pipe or a link, because replacing it by a new file would change what it is.
bool is_written_directly(const std::string& path) {
  std::error_code ignored;
  const auto kind = std::filesystem::symlink_status(path, ignored).type();
  return kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::regular;
}

}  // namespace

Expected<std::string> read_program(const std::string& path) {
  if (path == "-") return read_stream(STDIN_FILENO, "stdin", kMostProgramBytes);
  return read_file_or_pipe(path, kMostProgramBytes);
}

Status write_file(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    const bool good = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0;
    return good ? ok_status() : unwritable("stdout", errno);
  }
  if (is_written_directly(path)) return collet::write_file(path, bytes);
  const std::string part = path + ".part";
  Status status = collet::write_file(part, bytes, path);
  if (status.ok() && std::rename(part.c_str(), path.c_str()) != 0) status = unwritable(path, errno);
  if (!status.ok()) std::remove(part.c_str());
  return status;
}

Status check_writable(const std::string& path) {
  if (path.empty() || path == "-") return ok_status();
  std::error_code ignored;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (std::filesystem::is_directory(path, ignored)) return unwritable(path, EISDIR);
  // A link may lead to a file that is not there yet.
  if (is_written_directly(path))
    return access(path.c_str(), W_OK) == 0 || errno == ENOENT ? ok_status() : unwritable(path, errno);
  return access(parent.empty() ? "." : parent.c_str(), W_OK) == 0 ? ok_status() : unwritable(path, errno);
}

Status make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? system_error(path + " cannot be made", error.value()) : ok_status();
}

}  // namespace collet::tool
