// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "hlo/passes/spmd/reshard.h"
#include "hlo/passes/spmd/sharding_rule.h"

/// \file
/// How one op is computed on tiles: which of its factors are split. Chosen by the bytes that this moves and by what is left
/// for one partition to compute.

namespace collet::hlo::spmd {

/// An op on tiles.
struct OpStrategy {
  std::vector<DimensionSharding> factors;  ///< of the op's sharding rule
  std::vector<ArraySharding> operands;     ///< what the op takes
  std::vector<ArraySharding> results;      ///< what it gives; unreduced where it is partial
  DimensionSharding partial;               ///< the split factors along which the result is partial
  double bytes = 0;                        ///< of the operands' reshards, halos, and the results' reshards
  double work = 0;                         ///< what one partition computes, as the bytes that it could send meanwhile
  double cost() const { return bytes + work; }
};

/// Operations that take about as long as sending one byte. Computation is counted in bytes by this factor.
constexpr double kOperationsPerByte = 64;

/// The strategy of the least cost for operands and results of these shardings; of equal ones the one that splits the work
/// most. `results`: the leaves of the result; none: any sharding of the result will do.
OpStrategy choose_strategy(const Module& module, const Instruction& instr, const ShardingRule& rule,
                           std::span<const ArraySharding> operands, std::span<const ArraySharding> results,
                           const DeviceGroups& groups);

/// The sharding of a dimension as shardings of its factors, major first. Empty where it does not divide that way.
std::vector<DimensionSharding> shardings_of_factors(const ShardingRule& rule, const ShardingRule::Dimension& factors,
                                                    const DimensionSharding& sharding);
/// The sharding of an array whose dimensions have these factors.
std::vector<DimensionSharding> sharding_by_factors(const ShardingRule::Array& array,
                                                   std::span<const DimensionSharding> factors);
/// A factor may only be split where those before it in a dimension are split to the end: drops the splits of others.
void drop_inner_factors(const ShardingRule& rule, std::vector<DimensionSharding>& factors);
/// Whether factor `f` can be split that way: its size, and the halo of a windowed one.
bool can_split_factor(const Module& module, const Instruction& instr, const ShardingRule& rule, size_t f,
                      const DimensionSharding& sharding);

}  // namespace collet::hlo::spmd
