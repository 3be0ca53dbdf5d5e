// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/base/status.h"

namespace collet::tool {

/// The bytes of a file; `-` is stdin.
Expected<std::string> read_file(const std::string& path);
/// Writes a file, or stdout for `-`, whole or not at all.
Status write_file(const std::string& path, std::string_view bytes);
/// Makes a folder and those above it.
Status make_folder(const std::string& path);

}  // namespace collet::tool
