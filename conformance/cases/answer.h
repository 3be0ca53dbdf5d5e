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

/// Draws other inputs of the same kinds, and computes what an execution with them must give. Values that a case states stay as they are,
/// because they may determine the number of iterations of a loop.
Expected<Answer> other_answer(const Case& one, const Answer& answer, uint64_t seed, bool flushes);

}  // namespace collet::conformance
