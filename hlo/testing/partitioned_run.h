// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"

/// \file
/// For tests: runs a partitioned module on simulated devices and compares the result with that of the module before
/// partitioning.

namespace collet::hlo::testing {

/// Returns the tile of `value` that partition `p` has; padded with zeros if the dimension does not split evenly.
Literal tile_of(const Literal& value, const spmd::ArraySharding& sharding, size_t p);
/// Returns the term of partition `p` of a value that is unreduced: the terms add up to `value`.
Literal term_of(const Literal& value, const spmd::DimensionSharding& unreduced, size_t p);

/// Runs `partitioned` with the tiles of `inputs` according to the shardings of its parameters, and compares the result
/// of each participant with its tile of `expected`. Returns an empty text if all agree.
std::string compare_partitions(const Module& partitioned, const std::vector<Literal>& inputs, const Literal& expected);

}  // namespace collet::hlo::testing
