// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"
#include "hlo/passes/spmd/regions.h"
#include "hlo/passes/spmd/sharding_rule.h"

namespace collet::hlo::spmd {

/// The sharding of a value during the search. Leaves that tuples and control flow only pass on share one slot.
struct ShardingSlot {
  ArraySharding now;
  Shape shape;
  const DeviceGroups* groups = nullptr;
  std::vector<bool> closed;              ///< by dimension: its sharding is stated, or it must not be split
  std::vector<DimensionSharding> least;  ///< the sharding that each dimension must have at least; empty: none
  DimensionSharding hint;                ///< axes along which a constraint after it states it as unreduced
  bool unreduced_fixed = false;
  /// It is computed by elementwise ops from a parameter with a stated sharding, as its updated version.
  bool updates_parameter = false;
  std::optional<ArraySharding> propagated;  ///< for such a result: the sharding that propagation found
  std::vector<uint32_t> nodes;              ///< nodes that read or define the value

  bool all_closed() const {
    return std::all_of(closed.begin(), closed.end(), [](bool c) { return c; });
  }
};

/// A node of the graph: an op or a copy between slots.
struct ShardingNode {
  enum class Kind : uint8_t {
    Op,      ///< an op whose operands and results are related by a sharding rule
    Copy,    ///< `from` and `to` hold one value, with different shardings
    Manual,  ///< the same at the marker of a manual computation: `from` outside, `to` inside, or the reverse
    Result   ///< `from` is a result of the program: its tiles must be of one size
  };
  Kind kind = Kind::Op;
  InstrId instr = InstrId::None;
  std::vector<uint32_t> from, to;  ///< slots
  double weight = 1;               ///< estimate of how often it runs
  ManualSplit split;
  bool enters = false;     ///< Manual: the value enters the manual computation
  bool may_split = false;  ///< Result: the program allows it to be split
  int level = 0;           ///< the first level of propagation that uses the node
};

/// The values of a module and the ops between them, for propagation; the slots hold the stated shardings.
class ShardingGraph {
 public:
  using Row = std::vector<uint32_t>;  ///< slots of the leaves of an instruction

  /// Builds the graph; returns an error if the stated shardings contradict each other.
  static Expected<ShardingGraph> build(const Module& module, const ProgramRegions& regions);

  std::vector<ShardingSlot> slots;
  std::vector<ShardingNode> nodes;                   ///< in the order of the program
  std::vector<Row> rows;                             ///< by instruction
  std::unordered_map<uint32_t, ShardingRule> rules;  ///< by instruction
  bool has_uneven = false;                           ///< a stated dimension does not split evenly

  const Row& row(InstrId id) const { return rows[index_of(id)]; }

 private:
  friend class GraphBuilder;
  std::vector<std::shared_ptr<const DeviceGroups>> groups_;  // inside of manual computations
};

/// Returns the sharding of a slot without the dimensions that do not split evenly.
ArraySharding even_sharding(const ShardingSlot& slot);

}  // namespace collet::hlo::spmd
