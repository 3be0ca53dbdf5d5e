// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

/// \file
/// What a worker does for `collet conform --from`, besides running cases.

namespace collet::conformance {

/// How the names of the cases of whole programs begin.
constexpr std::string_view kWholeProgram = "program/";

/// Answers a task that asks for the cases of a program. `task`: the fields `path` and `name` (encode_fields). Fields of the
/// reply: `cases`, a file of them (case_file.h), and `note`, a line about the program. A program that cannot be offered has
/// the case of the whole alone, and the note says why. A file that is no program has the field `unread`, the reason.
Fields offer_cases(std::string_view task, const Session& session);
/// Returns which ops of a group that failed are wrong alone, with inputs of their own, as an addition to the failure's detail. Each of
/// them also runs in another worker, which has the arguments `worker`: one that is right there is wrong only after others.
std::string blame_in_group(const Case& one, const Session& session, uint64_t seed,
                           const std::vector<std::string>& worker);

}  // namespace collet::conformance
