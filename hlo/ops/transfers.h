// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// What send and recv say about who communicates.

namespace collet::hlo {

/// Returns the pairs of source and target between which a send or recv communicates, from its attribute
/// {{source,target},...}. Without pairs every participant sends to itself.
std::vector<std::pair<int64_t, int64_t>> transfer_pairs(const Instruction& instr);

}  // namespace collet::hlo
