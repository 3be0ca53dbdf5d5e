// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/cases/case.h"
#include "hlo/base/status.h"

namespace collet::conformance {

/// What the oracle says to a case: inputs, and what must come out.
struct Answer {
  std::vector<hlo::Literal> inputs;
  std::vector<Reference> outputs;
  /// All of `outputs` is known from definitions and MPFR, with no part of the evaluator in it.
  bool independent = false;
  bool several_ops = false;  ///< more than one op that a device is asked about, or ops in regions of control flow
};

/// Draws the inputs and evaluates; the error means that the case itself, or the evaluator, is at fault.
Expected<Answer> answer_case(const Case& one, uint64_t seed, bool flushes);

/// Inputs of the same kinds for another execution, of which the results do not matter. A loop's are the case's own: their trips are.
std::vector<hlo::Literal> other_inputs(const Case& one, const Answer& answer, uint64_t seed, bool flushes);

}  // namespace collet::conformance
