// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Fusion: decides which values of a block are materialised and which are computed inside the kernels that use them.

#include <collet/codegen/target.h>

#include <map>
#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// The nodes that become one kernel or one call of a routine.
struct FusionGroup {
  std::vector<NodeId> nodes;
  bool fused = false;  ///< whether the group is a kernel that computes `values`
  FusedValues values;
};

struct FusionPlan {
  std::vector<FusionGroup> groups;  ///< in an order in which they can run
  std::vector<bool> alive;          ///< by node of the graph: whether its results are used
  std::vector<bool> in_memory;      ///< by value: whether it is materialised
  /// By node: whether its kernel computes a concatenation and must be split by split_at_edges.
  std::vector<bool> has_edges;
  std::vector<bool> alias;  ///< by value: whether it is a reshape that shares its operand's memory
  /// By node: for a select between an update and the unchanged array, that update; else kNone.
  std::vector<NodeId> guards;
  std::vector<NodeId> order;  ///< the block's nodes in the order in which they run
  /// For each node that may overwrite an operand: the nodes that must read the operand before.
  std::map<NodeId, std::vector<NodeId>> after;
};

/// Whether the elements of a node's result can be computed one by one inside another kernel.
bool can_inline(const Graph& graph, const Node& node);

/// True if a node is a step of its own, because some of its results are materialised.
bool is_step(const Graph& graph, const FusionPlan& plan, NodeId node);

/// Returns the materialised values that a node reads, itself or through nodes that are inlined in it.
std::vector<ValueId> values_read(const Graph& graph, const FusionPlan& plan, const Node& node);

struct FusionOptions {
  bool fuse = true;          ///< if false, only ops without operands in memory are inlined
  bool split_edges = false;  ///< whether kernels are split by split_at_edges, so that concatenations may be inlined
  int64_t near_points = 0;   ///< as in edges_pay
  Tuning tuning = {};
};

void fuse_block(const Graph& graph, const Block& block, const FusionOptions& options, FusionPlan& plan);

}  // namespace collet::codegen
