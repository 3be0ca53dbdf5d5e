// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Orders the nodes of a block so that as many updates as possible can overwrite their operand: all other readers of
/// the operand must run before the node that overwrites it.

#include <map>
#include <vector>

#include "sdk/codegen/fusion/fusion.h"
#include "sdk/codegen/fusion/paged_array.h"

namespace collet::codegen {

/// True if `node` may store its result in the memory of operand `i`. Only arrays that are large enough for the saved
/// copy to matter are considered.
bool may_overwrite(const Graph& graph, const FusionPlan& plan, NodeId node, size_t i, const Tuning& tuning);

/// The dependences between the nodes of a block.
class Dependence {
 public:
  explicit Dependence(const Graph& graph) : graph_(graph), users_(graph.values.size()) {}
  void add(NodeId node);
  /// Adds the dependence of `second` on `first`.
  void add_wait(NodeId first, NodeId second);
  /// True if `later` depends on `node`, directly or through other nodes.
  bool reaches(NodeId node, NodeId later);

 private:
  const Graph& graph_;
  PagedArray<std::vector<NodeId>> users_;  ///< by value: the nodes that read it
  std::map<NodeId, std::vector<NodeId>> waits_;
  std::map<NodeId, std::vector<bool>> known_;  ///< by node: all nodes that depend on it
};

/// Finds the nodes that must run before a node that overwrites an operand, and orders the block's nodes accordingly.
/// Fills `plan.order` and `plan.after`.
void order_updates(const Graph& graph, const Block& block, const Tuning& tuning, Dependence& dependence,
                   FusionPlan& plan);

}  // namespace collet::codegen
