// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// Runs a case on the session's backend and judges it. Fields: status (pass, fail, unsupported, oracle), detail, ulp,
/// share, device_ops, fallback_ops, uses.
Fields run_case(const Case& one, const Session& session, uint64_t seed);

}  // namespace collet::conformance
