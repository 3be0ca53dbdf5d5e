// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Nodes that write over an operand, if nobody needs it any more: for that, who else reads it must come first.

#include <map>
#include <vector>

#include "sdk/codegen/fusion/fusion.h"

namespace collet::codegen {

/// Whether `node` may leave its result in the memory of operand `i`, an array that is large enough for that to matter.
bool may_overwrite(const Graph& graph, const FusionPlan& plan, NodeId node, size_t i);

/// Which nodes of a block depend on which.
class Dependence {
 public:
  explicit Dependence(const Graph& graph) : graph_(graph), users_(graph.values.size()) {}
  void add(NodeId node);
  /// From now on `second` waits for `first`.
  void add_wait(NodeId first, NodeId second);
  /// Whether `later` depends on `node`, through others too.
  bool reaches(NodeId node, NodeId later);

 private:
  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;  ///< by value
  std::map<NodeId, std::vector<NodeId>> waits_;
  std::map<NodeId, std::vector<bool>> known_;  ///< all that depend on a node
};

/// Finds what nodes that overwrite must wait for, and puts the nodes in an order that allows it: `plan.order` and
/// `plan.after`.
void order_updates(const Graph& graph, const Block& block, Dependence& dependence, FusionPlan& plan);

}  // namespace collet::codegen
