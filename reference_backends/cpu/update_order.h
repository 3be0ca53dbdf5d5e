// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Nodes that write over an operand, if nobody needs it any more: for that, who else reads it must come first.

#include <map>
#include <vector>

#include "reference_backends/cpu/fusion.h"

namespace collet::cpu {

/// Whether `node` may leave its result in the memory of operand `i`, an array that is large enough for that to matter.
bool may_overwrite(const codegen::Graph& graph, const BlockPlan& plan, codegen::NodeId node, size_t i);

/// Which nodes of a block depend on which.
class Dependence {
 public:
  explicit Dependence(const codegen::Graph& graph) : graph_(graph), users_(graph.values.size()) {}
  void add(codegen::NodeId node);
  /// From now on `second` waits for `first`.
  void add_wait(codegen::NodeId first, codegen::NodeId second);
  /// Whether `later` depends on `node`, through others too.
  bool reaches(codegen::NodeId node, codegen::NodeId later);

 private:
  const codegen::Graph& graph_;
  std::vector<std::vector<codegen::NodeId>> users_;  ///< by value
  std::map<codegen::NodeId, std::vector<codegen::NodeId>> waits_;
  std::map<codegen::NodeId, std::vector<bool>> known_;  ///< all that depend on a node
};

/// Finds what nodes that overwrite must wait for, and puts the nodes in an order that allows it: `plan.order` and
/// `plan.after`.
void order_updates(const codegen::Graph& graph, const codegen::Block& block, Dependence& dependence, BlockPlan& plan);

}  // namespace collet::cpu
