// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::tool {

/// Reads a program from a file, or from stdin for `-`; the error has each complaint with its place.
Expected<std::unique_ptr<hlo::Module>> read_module(const std::string& path);

}  // namespace collet::tool
