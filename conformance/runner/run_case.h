// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// Runs a case on the session's backend and judges it. Fields: status (pass, fail, unsupported, oracle), detail, ulp,
/// share, errors (counts of ErrorCounts), evidence, device_ops, fallback_ops, uses, independent (1 where the evaluator has no part in the
/// answer). `independent_only`: any other case is unsupported.
Fields run_case(const Case& one, const Session& session, uint64_t seed, bool independent_only = false);
/// A smaller program that fails as well, with inputs of the same kinds, as HLO text; what was found after so many seconds. Empty where
/// the case does not fail.
std::string reduce_case(const Case& one, const Session& session, uint64_t seed, double seconds);

}  // namespace collet::conformance
