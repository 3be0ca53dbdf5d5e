// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/codegen/target.h>

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// Schedules for processors: decides how the loops and passes of a kernel run whose lanes are chosen.

namespace collet::codegen {

/// What a rule of schedules did: nothing, for the reason `why_not`, or what the kernel now says, if that is null.
struct RuleOutcome {
  const char* rule = nullptr;
  const char* why_not = nullptr;
};
using ScheduleLog = std::vector<RuleOutcome>;

/// Sets the kinds of the loops, the passes, the values that are kept from one pass to the next, and the stores that go past
/// the caches. What the kernel said of these before is lost. Must come after choose_lanes; for a target with a grid, after
/// the grid's schedule.
/// Rules whose names are in `off` are not applied. `log`, unless it is null, gets an entry for each rule.
void schedule_for(Kernel& kernel, const Target& target, const std::vector<std::string>& off = {},
                  ScheduleLog* log = nullptr);

/// Returns the name of a rule; null past the last one.
const char* schedule_rule(size_t index);

/// Returns how many iterations of loop 0 are computed together: threads should be given multiples of them.
int64_t grain_of(const Kernel& kernel);

}  // namespace collet::codegen
