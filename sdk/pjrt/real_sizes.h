// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include "sdk/pjrt/error.h"
#include "sdk/pjrt/executable.h"

namespace collet::pjrt {

/// Waits for the sizes that a run returns after its `count` results on the participant `device` of this process, and replaces each
/// result whose size the data decide by an array of that size. Results come from the run with the sizes of their bounds; an
/// error of the run is returned. The caller owns the references in `results` before and after, also on an error.
PJRT_Error* cut_to_sizes(const Compiled& program, size_t device, collet_buffer** results, size_t count);

}  // namespace collet::pjrt
