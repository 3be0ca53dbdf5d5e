// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
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
  std::span<const uint32_t> wanted;   ///< those that get results, ascending; empty: all present ones
  /// Null, or the dependencies of the collective: then a participant on which no result depends may be absent.
  const std::vector<std::vector<uint32_t>>* needs = nullptr;
};

/// Returns the group of each of all participants, in the order of its attributes; a participant alone where it has none.
/// `operands` holds the operands of one participant, with tuples flattened; only their shapes matter.
Expected<std::vector<std::vector<uint32_t>>> ordered_groups(const hlo::Module& module, const hlo::Instruction& instr,
                                                            uint32_t replicas, uint32_t partitions,
                                                            const std::vector<hlo::Literal>& operands);

/// Returns the sources and targets of a collective-permute that are in a group, as numbers of participants.
std::vector<std::pair<uint32_t, uint32_t>> permute_pairs(const hlo::Instruction& instr,
                                                         const std::vector<uint32_t>& group);

/// Returns, for each of all participants, the numbers of the others whose operands its results depend on, ascending.
std::vector<std::vector<uint32_t>> dependencies(const hlo::Instruction& instr,
                                                const std::vector<std::vector<uint32_t>>& groups);

/// Returns the results of `instr` for each wanted participant, with tuples flattened. `operands` holds the operands of
/// each present one, one participant after another, with tuples flattened. FAILED_PRECONDITION if a participant needs data
/// of one that is absent.
Expected<std::vector<std::vector<hlo::Literal>>> run_collective(const hlo::Module& module,
                                                                const hlo::Instruction& instr,
                                                                const PresentParticipants& participants,
                                                                std::vector<std::vector<hlo::Literal>> operands);

}  // namespace collet::runtime
