// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/codegen/target.h>

#include <string>
#include <vector>

/// \file
/// Schedules that differ little from the one that a kernel has: what a search measures next.

namespace collet::codegen {

/// Returns legal schedules for the kernel of a processor, as actions, without repetitions and without its own: each leaves out one rule, has
/// other lanes with what the rules make of them, or differs in one number. The order is always the same.
std::vector<std::string> neighbour_schedules(const Kernel& kernel, const Target& target);

}  // namespace collet::codegen
