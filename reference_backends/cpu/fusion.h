// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Decides which values of a block lie in memory and which are computed where they are needed.

#include <vector>

#include "sdk/codegen/graph.h"
#include "sdk/codegen/kernels.h"

namespace collet::cpu {

/// What becomes one kernel, or one call.
struct Unit {
  std::vector<codegen::NodeId> nodes;
  bool fused = false;  ///< `values` says what is computed
  codegen::FusedValues values;
};

struct BlockPlan {
  std::vector<Unit> units;      ///< in an order in which they can run
  std::vector<bool> alive;      ///< by node of the graph: something needs it
  std::vector<bool> in_memory;  ///< by value
  std::vector<bool> alias;      ///< by value: a reshape whose memory is its operand's
};

/// Whether the elements of a node's result can be computed one by one inside another kernel.
bool can_inline(const codegen::Graph& graph, const codegen::Node& node);

void plan_block(const codegen::Graph& graph, const codegen::Block& block, bool fuse, BlockPlan& plan);

}  // namespace collet::cpu
