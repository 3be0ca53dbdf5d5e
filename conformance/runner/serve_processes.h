// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/runner/conform.h"

/// \file
/// The workers of `collet conform --processes`.

namespace collet::conformance {

/// The cases of such a run: programs of as many participants as the processes have devices, and faults of a process.
std::vector<Case> cases_of_processes(const ConformOptions& options);

/// Runs the worker, which is a group of processes, or one of these processes if options.process says so. `arguments`: its command
/// line. Returns the exit code.
int serve_processes(const ConformOptions& options, const std::vector<std::string>& arguments);

}  // namespace collet::conformance
