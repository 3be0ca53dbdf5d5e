// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules as text: lists of actions that can be printed, changed by hand, and applied again.
///
///   lanes i1 16        loop i1 is vectorised; `no lanes`: none is
///   unroll             all inner loops
///   interleave i0 4
///   transpose i1       the number of iterations is that of the lanes
///   strip i1 2048
///   pass 0 lanes 32 together 1
///   keep %3 %5
///   past_caches b1     stores to the buffer
///   scalable, unordered
///
/// What they mean is said in docs/code_generation.md. Actions are separated by ';' or by ends of lines.

#include <collet/codegen/status.h>

#include <map>
#include <string>
#include <string_view>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// Returns the schedule of a kernel as actions, separated by "; ". It is empty if all loops are serial and none is in lanes.
std::string print_actions(const Kernel& kernel);

/// Replaces the schedule of a kernel by these actions. Returns INVALID_ARGUMENT, and leaves the kernel as it is, with the
/// action that cannot be read, or the condition of verify_kernel that the schedule breaks.
Status apply_actions(std::string_view actions, Kernel& kernel);

/// Reads schedules of several kernels. A line "NAME: actions" begins a kernel, and lines that begin with a space go on with it; '#'
/// begins a comment. `out` gets the actions by name. Returns INVALID_ARGUMENT with the number of a line that is none of these.
Status read_schedules(std::string_view text, std::map<std::string, std::string>& out);

}  // namespace collet::codegen
