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

#include <collet/codegen/kernel.h>
#include <collet/codegen/status.h>
#include <collet/codegen/target.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace collet::codegen {

/// Returns the schedule of a kernel as actions, separated by "; ". It is empty if all loops are serial and none is in lanes.
std::string print_actions(const Kernel& kernel);

/// Replaces the schedule of a kernel by these actions. Returns INVALID_ARGUMENT, and leaves the kernel as it is, with the
/// action that cannot be read, or the condition of verify_kernel that the schedule breaks.
Status apply_actions(std::string_view actions, Kernel& kernel);

/// Calls `apply` with the words of each action of a text. It returns null, or what is wrong: then returns INVALID_ARGUMENT with the
/// action and that.
Status for_each_action(std::string_view actions,
                       const std::function<const char*(const std::vector<std::string>& words)>& apply);

/// Reads a number that follows `prefix`, in [least, most]. Returns false if the word is none.
bool read_number(const std::string& word, std::string_view prefix, int64_t least, int64_t most, int64_t& out);

/// Returns "@" and 16 hexadecimal digits that stand for what a kernel computes and the order of its loops, not for its schedule: the name by
/// which schedules apply to the same kernel of any program. Different kernels may have the same key, so apply_actions verifies.
std::string schedule_key(const Kernel& kernel);

/// True for what schedule_key returns.
bool is_schedule_key(std::string_view name);

/// Returns a name, without spaces, of the machine for which schedules are tuned: processor, width and number of its vector registers.
std::string schedule_target(const Target& target);

/// Schedules of kernels, by the name of a kernel in a program ("kernel3") or by its schedule_key.
using Schedules = std::map<std::string, std::string>;

/// Reads schedules of several kernels. A line "NAME: actions" begins a kernel, and lines that begin with a space go on with it; '#'
/// begins a comment. What follows a line "target NAME" holds for the machine with that schedule_target alone; it is skipped if `target`
/// is another. `out` gets the actions by name. Returns INVALID_ARGUMENT with the number of a line that is none of these.
Status read_schedules(std::string_view text, const std::string& target, Schedules& out);

/// Reads the same of a file of tuned schedules, whose names are keys. The message begins with "tuning: ".
Status read_tuning(std::string_view text, const std::string& target, Schedules& out);

}  // namespace collet::codegen
