// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/runner/conform.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// How the detail of a case begins after which the worker did not end well.
constexpr std::string_view kAfter = "after this case";

/// The names of the cases that the same process had run before a case, the latest first, by its name.
using RanBefore = std::unordered_map<std::string, std::vector<std::string>>;

/// Adds details to the failures of a report: programs, smaller programs that fail as well, and what of the earlier cases is to blame.
Status explain_failures(const ConformOptions& options, PoolOptions pool, const RanBefore& ran_before,
                        ConformReport& report);

}  // namespace collet::conformance
