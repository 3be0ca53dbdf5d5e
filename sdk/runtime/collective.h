// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Runs collectives on the host for participants whose devices cannot communicate with each other.

namespace collet::runtime {

/// True for a collective op, or the start or done of one, that the runtime can run for the participants.
bool is_collective(hlo::Op op);

/// The total numbers of participants, and those that take part in this run of a collective.
struct PresentParticipants {
  uint32_t replicas = 1, partitions = 1;
  std::span<const uint32_t> present;  ///< numbers replica * partitions + partition, ascending
};

/// Returns the results of `instr` for each present participant, with tuples flattened. `operands` holds the operands of
/// each of them, one participant after another, with tuples flattened. FAILED_PRECONDITION if a participant needs data
/// of one that is absent.
Expected<std::vector<std::vector<hlo::Literal>>> run_collective(const hlo::Module& module,
                                                                const hlo::Instruction& instr,
                                                                const PresentParticipants& participants,
                                                                std::vector<std::vector<hlo::Literal>> operands);

}  // namespace collet::runtime
