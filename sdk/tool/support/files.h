// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/base/status.h"

namespace collet::tool {

/// Reads a file that contains a program; `-` is stdin. Pipes are accepted, but no other devices.
Expected<std::string> read_program(const std::string& path);
/// Writes a file completely or not at all. `-` is stdout.
Status write_file(const std::string& path, std::string_view bytes);
/// Returns an error if write_file would certainly fail. Called before long work whose result is written there. An empty
/// path and `-` are accepted.
Status check_writable(const std::string& path);
/// Creates a folder and its parents.
Status make_folder(const std::string& path);

}  // namespace collet::tool
