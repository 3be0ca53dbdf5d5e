// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

/// \file
/// Well-typed programs by chance, with loops, branches, calls and fusions: cases `random/program/seed_N`. They are no part of the set of
/// cases; --fuzz runs them one after another, and a filter that names one runs that.

namespace collet::conformance {

std::string random_case_name(uint64_t seed);
/// The seed that a name tells; nullopt for any other name.
std::optional<uint64_t> random_case_seed(std::string_view name);
/// Its HLO text.
std::string random_case_text(uint64_t seed);
/// As run_case: what the evaluator gives is expected, within a share of each result's largest magnitude.
Fields run_random_case(uint64_t seed, const Session& session);

}  // namespace collet::conformance
