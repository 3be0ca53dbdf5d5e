// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"

namespace collet::hlo::spmd {

/// A copy of `extras`, which may be null, that states these shardings in the place of others: one, or for a tuple a list
/// of those of its leaves.
const Extras* with_shardings(Module& module, const Extras* extras, std::span<const ArraySharding> leaves, bool tuple,
                             size_t partitions);

}  // namespace collet::hlo::spmd
