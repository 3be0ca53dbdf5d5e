// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "conformance/cases/case.h"
#include "hlo/ir/literal.h"

/// \file
/// Cases of programs with several participants. The expected results follow from the definitions of the collectives; the evaluator has no
/// part in them.

namespace collet::conformance {

/// By participant, one value for each parameter or result.
using ByParticipant = std::vector<std::vector<hlo::Literal>>;

struct ParticipantCase {
  Case one;  ///< its inputs are empty: they are drawn by draw_inputs()
  uint32_t participants = 1;
  std::vector<Shape> parameters = {};
  /// Returns the results of a participant. Sums of the inputs of draw_inputs() are exact in every order.
  std::function<std::vector<hlo::Literal>(const ByParticipant& inputs, uint32_t participant)> answer = {};
};

/// Returns the cases for so many processes with so many devices each. Participant p runs in process p / devices.
std::vector<ParticipantCase> participant_cases(uint32_t processes, uint32_t devices, bool full);
/// Returns the inputs of all participants: small whole numbers, different in each participant.
ByParticipant draw_inputs(const ParticipantCase& which, uint64_t seed);

}  // namespace collet::conformance
