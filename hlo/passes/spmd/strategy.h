// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "hlo/passes/spmd/reshard.h"
#include "hlo/passes/spmd/sharding_rule.h"

/// \file
/// Chooses how one op is computed on tiles, which means which of its factors are split. The choice minimises the bytes
/// to move plus the work of one partition.

namespace collet::hlo::spmd {

/// How an op is computed on tiles.
struct OpStrategy {
  std::vector<DimensionSharding> factors;  ///< shardings of the factors of the op's sharding rule
  std::vector<ArraySharding> operands;     ///< shardings that the operands must have
  std::vector<ArraySharding> results;      ///< shardings of the results; unreduced if partial
  DimensionSharding partial;               ///< the split factors along which the result is partial
  double bytes = 0;                        ///< bytes of the operands' reshards, of halos, and of the results' reshards
  double work = 0;                         ///< work of one partition, in bytes that it could send in the same time
  double cost() const { return bytes + work; }
};

/// Number of operations that take about as long as sending one byte. Work is converted to bytes by this factor.
constexpr double kOperationsPerByte = 64;

/// Returns the strategy with the least cost for operands and results with these shardings; among equal ones the one
/// that splits the work most. `results` are the shardings of the leaves of the result; empty: any sharding is accepted.
OpStrategy choose_strategy(const Module& module, const Instruction& instr, const ShardingRule& rule,
                           std::span<const ArraySharding> operands, std::span<const ArraySharding> results,
                           const DeviceGroups& groups);

/// Divides the sharding of a dimension into shardings of its factors, major first. Empty if it cannot be divided so.
std::vector<DimensionSharding> shardings_of_factors(const ShardingRule& rule, const ShardingRule::Dimension& factors,
                                                    const DimensionSharding& sharding);
/// Returns the sharding of an array whose dimensions have these factors.
std::vector<DimensionSharding> sharding_by_factors(const ShardingRule::Array& array,
                                                   std::span<const DimensionSharding> factors);
/// Drops the splits of factors that are not allowed: a factor may only be split if all factors before it in its
/// dimension are split completely.
void drop_inner_factors(const ShardingRule& rule, std::vector<DimensionSharding>& factors);
/// True if factor `f` can be split in that way: checks its size, and the halo if it is windowed.
bool can_split_factor(const Module& module, const Instruction& instr, const ShardingRule& rule, size_t f,
                      const DimensionSharding& sharding);

}  // namespace collet::hlo::spmd
