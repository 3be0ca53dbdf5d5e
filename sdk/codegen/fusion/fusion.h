// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Decides which values of a block lie in memory and which are computed where they are needed.

#include <map>
#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// What becomes one kernel, or one call.
struct FusionGroup {
  std::vector<NodeId> nodes;
  bool fused = false;  ///< `values` says what is computed
  FusedValues values;
};

struct FusionPlan {
  std::vector<FusionGroup> groups;  ///< in an order in which they can run
  std::vector<bool> alive;          ///< by node of the graph: something needs it
  std::vector<bool> in_memory;      ///< by value
  std::vector<bool> alias;          ///< by value: a reshape whose memory is its operand's
  std::vector<NodeId> guards;       ///< by node: the update that a select is the guard of, kNone elsewhere
  std::vector<NodeId> order;        ///< the block's nodes as they shall run
  /// By node that may write over an operand: nodes that read the operand before.
  std::map<NodeId, std::vector<NodeId>> after;
};

/// Whether the elements of a node's result can be computed one by one inside another kernel.
bool can_inline(const Graph& graph, const Node& node);

/// Whether a node is more than a part of others: some of its results lie in memory.
bool is_step(const Graph& graph, const FusionPlan& plan, NodeId node);

/// Values in memory that a node reads, itself or through what is inlined in it.
std::vector<ValueId> values_read(const Graph& graph, const FusionPlan& plan, const Node& node);

void fuse_block(const Graph& graph, const Block& block, bool fuse, FusionPlan& plan);

}  // namespace collet::codegen
