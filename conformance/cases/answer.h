// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/cases/case.h"
#include "hlo/base/status.h"

namespace collet::conformance {

/// The inputs of a case and its expected results.
struct Answer {
  std::vector<hlo::Literal> inputs;
  std::vector<Reference> outputs;
  /// True if all of `outputs` was computed from definitions and MPFR, without the evaluator.
  bool independent = false;
  bool several_ops = false;  ///< more than one op that a device is asked about, or ops in computations of control flow
};

/// Draws the inputs and computes the expected results. An error means that the case itself, or the evaluator, is wrong.
Expected<Answer> answer_case(const Case& one, uint64_t seed, bool flushes);

/// Computes the expected results of a case for given inputs, one for each parameter.
Expected<Answer> answer_for(const Case& one, std::vector<hlo::Literal> inputs, bool flushes);

/// Returns other inputs of the same kinds, for executions whose results are not checked. For loops they are the case's
/// own inputs, because inputs may determine the number of iterations.
std::vector<hlo::Literal> other_inputs(const Case& one, const Answer& answer, uint64_t seed, bool flushes);

}  // namespace collet::conformance
