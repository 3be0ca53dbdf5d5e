// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/base.h"

/// \file
/// PJRT's extension for the memories of devices that are described and not opened, as in a topology: frontends read
/// there that a device has "pinned_host" memory.

namespace collet::pjrt {

/// Returns the extension, followed by `next`.
PJRT_Extension_Base* memory_descriptions_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
