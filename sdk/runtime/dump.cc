// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/dump.h"

#include <collet/collet.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sdk/runtime/module.h"

namespace collet::runtime {

Expected<Dump> Dump::open(const char* folder) {
  Dump dump;
  if (!folder || !*folder) return dump;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status(Code::PermissionDenied, "cannot make the folder '" + std::string(folder) + "': " + error.message());
  dump.folder_ = folder;
  return dump;
}

void Dump::text(std::string_view name, std::string_view contents) {
  if (!on()) return;
  char number[16];
  std::snprintf(number, sizeof number, "%03d.", number_++);
  std::string file(name);
  for (char& c : file)
    if (c == '/' || c == '\0') c = '_';
  const std::filesystem::path path = std::filesystem::path(folder_) / (number + file);
  std::ofstream out(path, std::ios::binary);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  if (!out && status_.ok()) status_ = Status(Code::PermissionDenied, "cannot write '" + path.string() + "'");
}

void Dump::module(std::string_view name, const hlo::Module& module) {
  if (!on()) return;
  auto written = write_module(module, COLLET_FORMAT_HLO_TEXT);
  text(std::string(name) + ".hlo", written.ok() ? *written : written.status().to_string());
}

}  // namespace collet::runtime
