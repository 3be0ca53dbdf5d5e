// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/extensions.h"

namespace collet::pjrt {

/// Returns the profiler extension, followed by `next`. It returns the records of collet_trace as an XSpace.
PJRT_Extension_Base* profiler_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
