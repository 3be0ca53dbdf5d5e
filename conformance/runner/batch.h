// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

/// \file
/// Several cases as one program, for backends whose compiler takes long for each program.

namespace collet::conformance {

/// True if a case is a program of its own text, which may be part of another program.
bool may_be_in_batch(const Case& one);

/// Makes one program of several: its parameters and results are theirs, one program after the other. INVALID_ARGUMENT for a text that
/// is wrong, or has more in its header than a name.
Expected<std::string> join_programs(std::span<const std::string> texts);

/// Runs cases of may_be_in_batch as one program, and checks their results. The reply has a field "case<i>" with the fields of run_case,
/// encoded, for each case that has been judged; where the program as a whole did not compile, run, or run on the device alone, it has none, and
/// the field "note" says why.
Fields run_batch(std::span<const Case* const> cases, const Session& session, uint64_t seed, bool independent_only);

}  // namespace collet::conformance
