// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/bench/collectives.h"
#include "sdk/tool/support/processes.h"

namespace collet::tool {

/// Runs `collet bench --collectives` and returns the exit code; starts the other processes if there are several. `json`: a file
/// for the report; empty: none.
int run_collectives(bench::CollectiveRequest request, const ProcessChoice& processes, const std::string& json);

}  // namespace collet::tool
