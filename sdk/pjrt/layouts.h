// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/extensions.h"

namespace collet::pjrt {

/// The only layout that arrays of a rank have: dense, row-major. Static; null past the highest rank.
PJRT_Layouts_MemoryLayout* row_major(size_t rank);
/// The layouts extension, followed by `next`.
PJRT_Extension_Base* layouts_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
