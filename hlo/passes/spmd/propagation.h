// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"
#include "hlo/passes/spmd/regions.h"
#include "hlo/passes/spmd/sharding_rule.h"

/// \file
/// Sharding propagation: finds a sharding for every value from the shardings that a program states. The result is a
/// table; the module is not changed.

namespace collet::hlo::spmd {

/// The sharding of every leaf of every instruction of the regions.
class ShardingTable {
 public:
  /// Returns the shardings of an instruction's leaves; empty for an instruction outside of all regions.
  const std::vector<ArraySharding>& of(InstrId id) const {
    static const std::vector<ArraySharding> kNone;
    return index_of(id) < rows_.size() ? rows_[index_of(id)] : kNone;
  }
  /// Returns the sharding of an array.
  const ArraySharding& array(InstrId id) const { return of(id)[0]; }
  void set(InstrId id, std::vector<ArraySharding> leaves) {
    if (rows_.size() <= index_of(id)) rows_.resize(index_of(id) + 1);
    rows_[index_of(id)] = std::move(leaves);
  }

 private:
  std::vector<std::vector<ArraySharding>> rows_;
};

/// Finds a sharding for every value of the regions.
///
/// 1. Stated shardings are fixed: those of the entry's parameters, of instructions, of sharding constraints and of the
///    markers of manual computations; a dimension that is stated as open may be split further.
/// 2. They are propagated, forward and backward by the sharding rules of the ops, to a fixed point: first through ops
///    that only work element by element or move data, then through all parallel factors, then through windows. If two
///    arrays suggest different shardings of a factor, that of the larger array is used. Control flow passes shardings on
///    between arguments, parameters, roots and results.
/// 3. Shardings that are not fixed are then changed one by one, to that of a neighbour or to replicated, if fewer bytes
///    are then moved.
/// 4. If bytes must still be moved, the search starts again without propagation, and without the stated dimensions that
///    do not split evenly; the shardings that move the fewest bytes are used.
/// 5. A value that a constraint states as unreduced is unreduced from the op that computes it, if that op can leave it
///    so.
///
/// Returns an error if the stated shardings contradict each other.
Expected<ShardingTable> propagate_shardings(const Module& module, const ProgramRegions& regions);

}  // namespace collet::hlo::spmd
