// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/dump.h"

#include <collet/collet.h>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "hlo/base/files.h"
#include "sdk/runtime/module.h"

namespace collet::runtime {

constexpr size_t kLongestName = 100;

namespace {

std::string as_file_name(std::string_view name) {
  std::string file(name.substr(0, kLongestName));
  for (char& c : file)
    if (c < ' ' || c == '/' || c == 0x7F) c = '_';  // only printable ASCII, since a shell lists the names
  return file;
}

// Returns a folder such as "DIR/0007.jit_step.1234" for the seventh program of process 1234.
std::string folder_from_environment(std::string_view program) {
  static std::atomic<uint32_t> count{0};
  const char* folder = std::getenv("COLLET_DUMP");
  if (!folder || !*folder) return {};
  char number[32], process[32];
  std::snprintf(number, sizeof number, "/%04u.", count.fetch_add(1));
  std::snprintf(process, sizeof process, ".%d", static_cast<int>(getpid()));
  return folder + (number + as_file_name(program)) + process;
}

}  // namespace

Expected<Dump> Dump::open(const char* given, const char* only, std::string_view program) {
  Dump dump;
  const std::string folder = given && *given ? given : folder_from_environment(program);
  if (folder.empty()) return dump;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return system_error("cannot make the folder '" + folder + "'", error.value());
  dump.folder_ = folder;
  if (only) dump.only_ = only;
  return dump;
}

void Dump::text(std::string_view name, std::string_view contents) {
  if (!wants(name)) return;
  char number[16];
  std::snprintf(number, sizeof number, "%03d.", number_++);
  const std::filesystem::path path = std::filesystem::path(folder_) / (number + as_file_name(name));
  Status written = write_new_file(path.string(), contents);
  if (status_.ok()) status_ = std::move(written);
}

void Dump::module(std::string_view name, const hlo::Module& module) {
  const std::string file = std::string(name) + ".hlo";
  if (!wants(file)) return;
  auto written = write_module(module, COLLET_FORMAT_HLO_TEXT);
  text(file, written.ok() ? *written : written.status().to_string());
}

Status append_explanation(const std::string& text, const std::string& json) {
  const char* file = std::getenv("COLLET_EXPLAIN");
  if (!file || !*file) return ok_status();
  const std::string& what = std::string_view(file).ends_with(".json") ? json : text;
  const int descriptor = ::open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return system_error("cannot open COLLET_EXPLAIN's file '" + std::string(file) + "'", errno);
  const ssize_t written = ::write(descriptor, what.data(), what.size());
  const int error = written < 0 ? errno : ENOSPC;
  ::close(descriptor);
  if (written == static_cast<ssize_t>(what.size())) return ok_status();
  return system_error("cannot write COLLET_EXPLAIN's file '" + std::string(file) + "'", error);
}

}  // namespace collet::runtime
