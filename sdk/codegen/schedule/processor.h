// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <cstdint>

#include "sdk/codegen/kernel/kernel.h"

/// \file
/// Schedules for processors: decides how the loops and passes of a kernel run whose lanes are chosen.

namespace collet::codegen {

/// Sets the kinds of the loops, the passes, the values that are kept from one pass to the next, and the stores that go past
/// the caches. What the kernel said of these before is lost. Must come after choose_lanes; for a target with a grid, after
/// the grid's schedule.
void schedule_for(Kernel& kernel, const Target& target);

/// Returns how many iterations of loop 0 are computed together: threads should be given multiples of them.
int64_t grain_of(const Kernel& kernel);

}  // namespace collet::codegen
