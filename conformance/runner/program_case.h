// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

/// \file
/// Whole programs. The results are compared with the evaluator's, in the program's own types and with floats as f64. Then
/// each op runs alone on the device, with the operands that it has in the evaluator's run, and is judged like a case:
/// that names the first wrong op of a program, and finds ops that are wrong for the program's values only.

namespace collet::conformance {

/// Runs the program of a case (Case::program) on the session's backend, with the inputs of hlo::testing::inputs_of_program.
/// Fields of the reply: those of run_case; `evidence` has a line for each wrong op, in the order of the program. Single
/// ops run until about `seconds` have passed; the detail of the reply says how many did. An op that is wrong runs alone in another
/// worker, which has these arguments: what depends on ops before it is told apart.
Fields run_program_case(const Case& one, const Session& session, uint64_t seed, double seconds,
                        const std::vector<std::string>& worker);

}  // namespace collet::conformance
