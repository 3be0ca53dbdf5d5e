// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// Runs a case on the session's backend and checks the results. Fields of the reply: status (pass, fail, unsupported,
/// oracle), detail, ulp, share, errors (counts of ErrorCounts), evidence, device_ops, fallback_ops, uses, independent
/// (1 if the expected results do not come from the evaluator), run_seconds (of one execution). `independent_only`: any
/// other case is unsupported. `beside`: another backend, whose time becomes the field beside_seconds; null: none.
Fields run_case(const Case& one, const Session& session, uint64_t seed, bool independent_only = false,
                const Session* beside = nullptr);
/// Returns the HLO text of a smaller program that fails as well, with inputs of the same kinds: the best one found in
/// that many seconds. Empty if the case does not fail.
std::string reduce_case(const Case& one, const Session& session, uint64_t seed, double seconds);

}  // namespace collet::conformance
