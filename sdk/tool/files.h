// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/base/status.h"

namespace collet::tool {

/// The bytes of a file that holds a program; `-` is stdin. Of files, pipes are taken too, other devices are not.
Expected<std::string> read_program(const std::string& path);
/// Writes a file, or stdout for `-`, whole or not at all.
Status write_file(const std::string& path, std::string_view bytes);
/// An error where write_file would surely fail: asked before long work whose result goes there. Empty and `-` are fine.
Status check_writable(const std::string& path);
/// Makes a folder and those above it.
Status make_folder(const std::string& path);

}  // namespace collet::tool
