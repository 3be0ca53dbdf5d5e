// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "conformance/cases/answer.h"
#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

/// \file
/// The executions of a compiled program by which cases are judged.

namespace collet::conformance {

/// Returns the seconds that have passed since `start`.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The results of three executions: the first and the third have the same inputs, the second has others.
struct Runs {
  std::vector<hlo::Literal> first, other, again;
  double seconds = 0;          ///< of the third execution
  std::string complaint = {};  ///< error message about arguments that changed unexpectedly
};

/// Runs a program, then with other inputs, then with the first inputs again. The results of the first run are read after the
/// second run, so errors are found if a run depends on earlier ones, or overwrites their results. The arguments must be unchanged.
Expected<Runs> run_thrice(const Program& program, std::span<const hlo::Literal> inputs,
                          std::span<const hlo::Literal> others);

/// Judges the results of a case. The reply begins with the fields status (pass or fail) and detail, and has ulp, share, errors,
/// evidence and independent. `other` belongs to the second execution, whose results are not judged if it is null.
Fields judged(const Case& one, const Answer& answer, const Answer* other, const Runs& runs, bool flushes);

}  // namespace collet::conformance
