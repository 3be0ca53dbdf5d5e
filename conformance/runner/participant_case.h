// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "conformance/cases/participants.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// Runs a case of several participants with those of this process, of which `first` is the first, and checks their results. The
/// other processes of the session's group run it at the same time. Fields of the reply: status (pass, fail, unsupported), detail,
/// evidence, device_ops, fallback_ops, compile_seconds, run_seconds.
Fields run_participant_case(const ParticipantCase& which, const Session& session, uint64_t seed, uint32_t first);

}  // namespace collet::conformance
