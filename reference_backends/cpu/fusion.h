// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Decides which values of a block lie in memory and which are computed where they are needed.

#include <map>
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
  std::vector<Unit> units;              ///< in an order in which they can run
  std::vector<bool> alive;              ///< by node of the graph: something needs it
  std::vector<bool> in_memory;          ///< by value
  std::vector<bool> alias;              ///< by value: a reshape whose memory is its operand's
  std::vector<codegen::NodeId> guards;  ///< by node: the update that a select is the guard of, kNone elsewhere
  std::vector<codegen::NodeId> order;   ///< the block's nodes as they shall run
  /// By node that may write over an operand: nodes that read the operand before.
  std::map<codegen::NodeId, std::vector<codegen::NodeId>> after;
};

/// Whether the elements of a node's result can be computed one by one inside another kernel.
bool can_inline(const codegen::Graph& graph, const codegen::Node& node);

/// Whether a node is more than a part of others: some of its results lie in memory.
bool is_step(const codegen::Graph& graph, const BlockPlan& plan, codegen::NodeId node);

/// Values in memory that a node reads, itself or through what is inlined in it.
std::vector<codegen::ValueId> values_read(const codegen::Graph& graph, const BlockPlan& plan,
                                          const codegen::Node& node);

void plan_block(const codegen::Graph& graph, const codegen::Block& block, bool fuse, BlockPlan& plan);

}  // namespace collet::cpu
