// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/process_group.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

/// \file
/// Contract cases of `collet conform --processes` in which one process is killed, stopped or late in a collective, or runs another
/// program than the others.

namespace collet::conformance {

/// How the names of these cases begin.
constexpr std::string_view kProcessFault = "contract/processes/";

/// A case by its name: what happens and what is promised then.
struct ProcessFault {
  std::string name;
  std::string text;
};
/// Returns the cases; none for one process.
std::vector<ProcessFault> process_faults(uint32_t processes);

/// Runs a case in a new group. `seconds`: its time.
Fields run_process_fault(std::string_view name, const GroupOptions& options, uint64_t seed, double seconds);

/// True for the task that run_process_fault gives a process.
bool is_fault_task(std::string_view task);
/// Runs the task in one of the processes: opens clients, runs programs and, afterwards, forms a new group. Fields: those that
/// run_process_fault judges.
Fields serve_fault_task(std::string_view task, const BackendChoice& backend, uint32_t process, uint32_t processes,
                        const std::string& store);

}  // namespace collet::conformance
