// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"

/// \file
/// For tests: runs a partitioned module on simulated devices and compares with the module that it was made of.

namespace collet::hlo::testing {

/// The tile of `value` that partition `p` has; padded with zeros where the dimension does not split evenly.
Literal tile_of(const Literal& value, const spmd::ArraySharding& sharding, size_t p);
/// Returns the term of partition `p` of a value that is unreduced: the terms add up to `value`.
Literal term_of(const Literal& value, const spmd::DimensionSharding& unreduced, size_t p);

/// Runs `partitioned` with the tiles of `inputs`, as the shardings of its parameters say, and compares what each
/// participant gets with its tile of `expected`. Empty where all agree.
std::string compare_partitions(const Module& partitioned, const std::vector<Literal>& inputs, const Literal& expected);

}  // namespace collet::hlo::testing
