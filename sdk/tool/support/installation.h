// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace collet::tool {

/// Returns the folder in which this tool is installed (PREFIX of PREFIX/bin/collet), or the build folder that contains it. Empty
/// if the system does not say where the program is.
std::filesystem::path prefix();

/// Returns the folder of ColletConfig.cmake that belongs to this tool. Empty if there is none.
std::filesystem::path config_folder();

}  // namespace collet::tool
