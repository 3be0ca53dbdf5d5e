// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"

namespace collet::hlo::spmd {

/// Returns a copy of `extras`, which may be null, with these shardings instead of the previous ones: a single sharding,
/// or for a tuple the list of the shardings of its leaves.
const Extras* with_shardings(Module& module, const Extras* extras, std::span<const ArraySharding> leaves, bool tuple,
                             size_t partitions);

}  // namespace collet::hlo::spmd
