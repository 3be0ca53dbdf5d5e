// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/extensions.h"

namespace collet::pjrt {

/// The profiler extension, followed by `next`: what collet_trace tells, as an XSpace.
PJRT_Extension_Base* profiler_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
