// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "sdk/tool/support/elided.h"

namespace collet::tool {

/// Reads and verifies a program of any form from a file, or from stdin for `-`. The error contains each message with
/// its location.
Expected<std::unique_ptr<hlo::Module>> read_module(const std::string& path,
                                                   const ElidedChoice& elided = {COLLET_ELIDED_COUNTER});

}  // namespace collet::tool
