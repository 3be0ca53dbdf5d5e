// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/dump.h"

#include <collet/collet.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "hlo/base/files.h"
#include "sdk/runtime/module.h"

namespace collet::runtime {

Expected<Dump> Dump::open(const char* folder) {
  Dump dump;
  if (!folder || !*folder) return dump;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return system_error("cannot make the folder '" + std::string(folder) + "'", error.value());
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
  Status written = write_file(path.string(), contents);
  if (status_.ok()) status_ = std::move(written);
}

void Dump::module(std::string_view name, const hlo::Module& module) {
  if (!on()) return;
  auto written = write_module(module, COLLET_FORMAT_HLO_TEXT);
  text(std::string(name) + ".hlo", written.ok() ? *written : written.status().to_string());
}

}  // namespace collet::runtime
