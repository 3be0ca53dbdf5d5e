// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/bench/sweep.h"

namespace collet::tool {

/// Runs `collet bench --sweep`, or lists its families; returns the exit code. `json`: a file for the report; empty: none.
int run_sweep(bench::SweepRequest request, bool list, const std::string& json);

}  // namespace collet::tool
