// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Collectives of participants whose devices do not know of each other: the runtime brings them together, on the host.

namespace collet::runtime {

/// An op that participants do together, or half of one, which the runtime can do for them.
bool is_collective(hlo::Op op);

/// Which participants there are, and which of them have come to a collective.
struct PresentParticipants {
  uint32_t replicas = 1, partitions = 1;
  std::span<const uint32_t> present;  ///< replica * partitions + partition, rising
};

/// Returns the results of `instr` for each participant that is present, tuples flattened. `operands` has theirs, one after another, tuples flattened
/// too. FAILED_PRECONDITION where one of them needs somebody who is absent.
Expected<std::vector<std::vector<hlo::Literal>>> run_collective(const hlo::Module& module,
                                                                const hlo::Instruction& instr,
                                                                const PresentParticipants& participants,
                                                                std::vector<std::vector<hlo::Literal>> operands);

}  // namespace collet::runtime
