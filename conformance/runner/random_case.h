// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"
#include "hlo/testing/equivalence.h"

/// \file
/// Random well-typed programs with loops, branches, calls and fusions: the cases `random/program/seed_N`. They do not
/// belong to the regular cases; --fuzz runs them one after another, and a filter that names one runs it.

namespace collet::conformance {

/// The random programs are well conditioned, so other implementations of functions and sums do not differ by more than
/// this.
inline constexpr hlo::testing::Tolerance kRandomTolerance = {1e-9, 1e-4};

/// Returns the number that follows `start` in a name; nullopt if the name does not consist of these.
std::optional<uint64_t> seed_after(std::string_view start, std::string_view name);

std::string random_case_name(uint64_t seed);
/// Returns the seed in a name; nullopt for any other name.
std::optional<uint64_t> random_case_seed(std::string_view name);
/// Returns the HLO text of the program with that seed.
std::string random_case_text(uint64_t seed);
/// Like run_case: the evaluator's results are expected, within a tolerance relative to each result's largest magnitude.
Fields run_random_case(uint64_t seed, const Session& session);

}  // namespace collet::conformance
