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

/// The sharding of a value while it is looked for. Leaves that tuples and control flow only pass on share a slot.
struct ShardingSlot {
  ArraySharding now;
  Shape shape;
  const DeviceGroups* groups = nullptr;
  std::vector<bool> closed;              ///< by dimension: stated, or not to be split
  std::vector<DimensionSharding> least;  ///< what dimensions are split by at least; empty: nothing
  DimensionSharding hint;                ///< what a constraint behind it wants it to be unreduced along
  bool unreduced_fixed = false;
  bool updates_parameter = false;           ///< a new version of one with a stated sharding, by elementwise ops
  std::optional<ArraySharding> propagated;  ///< of such a result: what propagation gave it
  std::vector<uint32_t> nodes;              ///< that read or give it

  bool all_closed() const {
    return std::all_of(closed.begin(), closed.end(), [](bool c) { return c; });
  }
};

/// A relation of slots.
struct ShardingNode {
  enum class Kind : uint8_t {
    Op,      ///< operands and results by a sharding rule
    Copy,    ///< from `from` to `to`: one value of two shardings
    Manual,  ///< the same across the border of a manual computation: `from` outside, `to` inside, or the other way
    Result   ///< `from` is a result of the program: its tiles must be of one size
  };
  Kind kind = Kind::Op;
  InstrId instr = InstrId::None;
  std::vector<uint32_t> from, to;  ///< slots
  double weight = 1;               ///< how often it runs
  ManualSplit split;
  bool enters = false;     ///< of a manual border
  bool may_split = false;  ///< of a result
  int level = 0;           ///< of propagation, from which on it takes part
};

/// The values of a module and the ops between them, as propagation sees them: stated shardings are in the slots.
class ShardingGraph {
 public:
  using Row = std::vector<uint32_t>;  ///< slots of an instruction's leaves

  /// An error where the program states what cannot be.
  static Expected<ShardingGraph> build(const Module& module, const ProgramRegions& regions);

  std::vector<ShardingSlot> slots;
  std::vector<ShardingNode> nodes;                   ///< in the order of the program
  std::vector<Row> rows;                             ///< by instruction
  std::unordered_map<uint32_t, ShardingRule> rules;  ///< by instruction
  bool has_uneven = false;                           ///< a dimension is stated that does not split evenly

  const Row& row(InstrId id) const { return rows[index_of(id)]; }

 private:
  friend class GraphBuilder;
  std::vector<std::shared_ptr<const DeviceGroups>> groups_;  // inside of manual computations
};

/// The sharding of a slot without the dimensions that do not split evenly.
ArraySharding even_sharding(const ShardingSlot& slot);

}  // namespace collet::hlo::spmd
