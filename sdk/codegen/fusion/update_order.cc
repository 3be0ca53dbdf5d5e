// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/fusion/update_order.h"

#include <algorithm>
#include <set>

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {
namespace {

/// Returns the value whose memory `v` shares.
ValueId memory_of(const Graph& graph, const FusionPlan& plan, ValueId v) {
  while (plan.alias[v]) v = graph.def(v)->operands[0];
  return v;
}

class Sorter {
 public:
  Sorter(const Graph& graph, const Block& block, FusionPlan& plan)
      : graph_(graph), block_(block), plan_(plan), done_(graph.nodes.size(), true) {
    for (NodeId n : block.nodes) done_[n] = false;
  }
  void run() {
    plan_.order.clear();
    for (NodeId n : block_.nodes) visit(n);
  }

 private:
  void visit(NodeId n) {
    if (done_[n]) return;
    done_[n] = true;
    for (ValueId v : graph_.nodes[n].operands) {
      if (graph_.def(v)) visit(graph_.values[v].def);
    }
    if (auto it = plan_.after.find(n); it != plan_.after.end()) {
      for (NodeId m : it->second) visit(m);
    }
    plan_.order.push_back(n);
  }

  const Graph& graph_;
  const Block& block_;
  FusionPlan& plan_;
  std::vector<bool> done_;
};

}  // namespace

bool may_overwrite(const Graph& graph, const FusionPlan& plan, NodeId id, size_t i, const Tuning& tuning) {
  const Node& node = graph.nodes[id];
  const ValueId v = node.operands[i];
  if (graph.value(v).constant || graph.type(v).bytes() < tuning.overwritten_bytes) return false;
  switch (node.opcode) {
    case COLLET_OP_DYNAMIC_UPDATE_SLICE:
      return i == 0;
    case COLLET_OP_SCATTER:
      return i < node.results.size();
    case COLLET_OP_SELECT:
      return plan.guards[id] != kNone && v == graph.nodes[plan.guards[id]].operands[0];
    case COLLET_OP_CONDITIONAL:
      return i > 0;
    case COLLET_OP_WHILE: {
      const Block& body = graph.blocks[node.blocks[1]];
      return body.results[i] != body.arguments[i];
    }
    default:
      return false;
  }
}

void Dependence::add(NodeId node) {
  for (ValueId v : graph_.nodes[node].operands) {
    if (users_[v].empty() || users_[v].back() != node) users_[v].push_back(node);
  }
}

void Dependence::add_wait(NodeId first, NodeId second) {
  waits_[first].push_back(second);
  known_.clear();
}

bool Dependence::reaches(NodeId node, NodeId later) {
  auto [it, fresh] = known_.try_emplace(node);
  std::vector<bool>& found = it->second;
  if (fresh) {
    found.assign(graph_.nodes.size(), false);
    std::vector<NodeId> open{node};
    auto push = [&](NodeId n) {
      if (!found[n]) open.push_back(n);
      found[n] = true;
    };
    while (!open.empty()) {
      const NodeId n = open.back();
      open.pop_back();
      for (ValueId v : graph_.nodes[n].results) {
        for (NodeId u : users_[v]) push(u);
      }
      if (auto waits = waits_.find(n); waits != waits_.end()) {
        for (NodeId u : waits->second) push(u);
      }
    }
  }
  return found[later];
}

void order_updates(const Graph& graph, const Block& block, const Tuning& tuning, Dependence& dependence,
                   FusionPlan& plan) {
  plan.after.clear();
  plan.order = block.nodes;
  std::map<ValueId, std::vector<NodeId>> readers;  // readers of each value that owns memory
  std::vector<NodeId> writers;
  for (NodeId n : block.nodes) {
    if (!is_step(graph, plan, n)) continue;
    const Node& node = graph.nodes[n];
    if (plan.alias[node.results[0]]) continue;
    for (ValueId v : values_read(graph, plan, node)) readers[memory_of(graph, plan, v)].push_back(n);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (!may_overwrite(graph, plan, n, i, tuning)) continue;
      writers.push_back(n);
      break;
    }
  }
  std::set<ValueId> kept;
  for (ValueId v : block.results) kept.insert(memory_of(graph, plan, v));
  for (auto it = writers.rbegin(); it != writers.rend(); ++it) {
    const NodeId writer = *it;
    const Node& node = graph.nodes[writer];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (!may_overwrite(graph, plan, writer, i, tuning)) continue;
      const ValueId memory = memory_of(graph, plan, node.operands[i]);
      if (kept.count(memory)) continue;
      std::vector<NodeId> first;
      for (NodeId n : readers[memory]) {
        if (n != writer) first.push_back(n);
      }
      if (std::any_of(first.begin(), first.end(), [&](NodeId n) { return dependence.reaches(writer, n); })) continue;
      for (NodeId n : first) {
        if (dependence.reaches(n, writer)) continue;
        plan.after[writer].push_back(n);
        dependence.add_wait(n, writer);
      }
    }
  }
  if (!plan.after.empty()) Sorter(graph, block, plan).run();
}

}  // namespace collet::codegen
