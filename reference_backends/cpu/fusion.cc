// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/fusion.h"

#include <algorithm>

#include "reference_backends/cpu/units.h"
#include "sdk/codegen/kernels.h"
#include "sdk/codegen/scalar_block.h"
#include "sdk/codegen/scalar_ops.h"

namespace collet::cpu {
namespace {

using codegen::Block;
using codegen::Graph;
using codegen::kNone;
using codegen::Node;
using codegen::NodeId;
using codegen::ValueId;

bool is_reshape(const Node& node) {
  return node.opcode == COLLET_OP_RESHAPE || node.opcode == COLLET_OP_BITCAST;
}

bool elementwise(const Graph& graph, const Node& node) {
  if (node.operands.empty()) return false;
  if (node.opcode == COLLET_OP_SELECT || node.opcode == COLLET_OP_CLAMP) return true;
  if (node.opcode == COLLET_OP_BITCAST_CONVERT && collet_type_bytes(graph.type(node.operands[0]).element) !=
                                                      collet_type_bytes(graph.type(node.results[0]).element)) {
    return false;
  }
  return codegen::scalar_supported(node.opcode, graph.type(node.operands[0]).element);
}

/// Whether operand `i` of `user` may be computed inside the user's kernel.
bool takes_inlined(const Graph& graph, const Node& user, size_t i) {
  switch (user.opcode) {
    case COLLET_OP_REDUCE:
    case COLLET_OP_CONCATENATE:
      return true;
    case COLLET_OP_DYNAMIC_UPDATE_SLICE:
      return i >= 1;
    case COLLET_OP_SCATTER:
      return i >= user.results.size();
    case COLLET_OP_REDUCE_WINDOW:
    case COLLET_OP_SELECT_AND_SCATTER:
    case COLLET_OP_DOT:
    case COLLET_OP_CONVOLUTION:
      return false;
    default:
      return can_inline(graph, user);
  }
}

class Planner {
 public:
  Planner(const Graph& graph, const Block& block, bool fuse, BlockPlan& plan)
      : graph_(graph),
        block_(block),
        fuse_(fuse),
        plan_(plan),
        users_(graph.values.size()),
        weight_(graph.values.size(), 0),
        heavy_(graph.values.size(), false) {}

  void run() {
    plan_.alive.resize(graph_.nodes.size(), false);
    plan_.in_memory.resize(graph_.values.size(), false);
    plan_.alias.resize(graph_.values.size(), false);
    for (ValueId v : block_.arguments) plan_.in_memory[v] = true;
    find_users();
    for (NodeId n : block_.nodes) weigh(graph_.nodes[n]);
    for (auto it = block_.nodes.rbegin(); it != block_.nodes.rend(); ++it) {
      if (plan_.alive[*it]) decide(graph_.nodes[*it]);
    }
    for (NodeId n : block_.nodes) {
      const Node& node = graph_.nodes[n];
      if (!plan_.alive[n] || !is_reshape(node) || !plan_.in_memory[node.results[0]]) continue;
      if (plan_.in_memory[node.operands[0]] && !is_result(node.results[0])) plan_.alias[node.results[0]] = true;
    }
  }

 private:
  bool is_result(ValueId v) const {
    return std::find(block_.results.begin(), block_.results.end(), v) != block_.results.end();
  }

  void find_users() {
    std::vector<bool> wanted(graph_.values.size(), false);
    for (ValueId v : block_.results) wanted[v] = true;
    for (auto it = block_.nodes.rbegin(); it != block_.nodes.rend(); ++it) {
      const Node& node = graph_.nodes[*it];
      bool alive = std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) { return wanted[v]; });
      if (!alive) continue;
      plan_.alive[*it] = true;
      for (ValueId v : node.operands) {
        wanted[v] = true;
        if (users_[v].empty() || users_[v].back() != *it) users_[v].push_back(*it);
      }
    }
  }

  /// Ops that computing one element takes, were all of it inlined.
  void weigh(const Node& node) {
    if (!can_inline(graph_, node)) return;
    const ValueId v = node.results[0];
    int weight = 1;
    bool heavy = codegen::scalar_expensive(node.opcode) || node.opcode == COLLET_OP_DIVIDE;
    for (codegen::BlockId b : node.blocks) {
      heavy = heavy || codegen::is_expensive_block(graph_, graph_.blocks[b]);
      weight += static_cast<int>(std::min<size_t>(graph_.blocks[b].nodes.size(), 1000));
    }
    for (ValueId o : node.operands) {
      weight += users_[o].size() > 1 ? std::min(weight_[o], 4) : weight_[o];
      heavy = heavy || heavy_[o];
    }
    weight_[v] = std::min(weight, 1000);
    heavy_[v] = heavy;
  }

  bool grows(const Node& user, ValueId v) const {
    if (user.opcode == COLLET_OP_BROADCAST || user.opcode == COLLET_OP_GATHER) {
      return graph_.type(user.results[0]).elements > graph_.type(v).elements;
    }
    return false;
  }

  bool inlined(const Node& node) {
    const ValueId v = node.results[0];
    if (!can_inline(graph_, node) || is_result(v)) return false;
    const bool free = node.opcode == COLLET_OP_IOTA || node.opcode == COLLET_OP_BROADCAST;
    if (!fuse_ && !free) return false;
    if (weight_[v] > 100) return false;
    const auto& users = users_[v];
    for (NodeId u : users) {
      const Node& user = graph_.nodes[u];
      for (size_t i = 0; i < user.operands.size(); ++i) {
        if (user.operands[i] == v && !takes_inlined(graph_, user, i)) return false;
      }
      if (heavy_[v] && grows(user, v)) return false;
    }
    if (users.size() <= 1) return true;
    return !heavy_[v] && weight_[v] <= 4;
  }

  void decide(const Node& node) {
    if (inlined(node)) return;
    for (ValueId v : node.results) plan_.in_memory[v] = true;
    // A reshape of something computed: that is put into memory, and the reshape is another name for it.
    if (is_reshape(node) && !is_result(node.results[0])) plan_.in_memory[node.operands[0]] = true;
  }

  const Graph& graph_;
  const Block& block_;
  bool fuse_;
  BlockPlan& plan_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<int> weight_;
  std::vector<bool> heavy_;
};

}  // namespace

bool can_inline(const Graph& graph, const Node& node) {
  switch (node.opcode) {
    case COLLET_OP_BROADCAST:
    case COLLET_OP_RESHAPE:
    case COLLET_OP_BITCAST:
    case COLLET_OP_TRANSPOSE:
    case COLLET_OP_REVERSE:
    case COLLET_OP_SLICE:
    case COLLET_OP_IOTA:
    case COLLET_OP_PAD:
    case COLLET_OP_DYNAMIC_SLICE:
    case COLLET_OP_GATHER:
      return true;
    case COLLET_OP_MAP:
      return codegen::is_scalar_block(graph, graph.blocks[node.blocks[0]]) &&
             graph.blocks[node.blocks[0]].results.size() == 1;
    default:
      return elementwise(graph, node);
  }
}

void plan_block(const Graph& graph, const Block& block, bool fuse, BlockPlan& plan) {
  Planner(graph, block, fuse, plan).run();
  form_units(graph, block, fuse, plan);
}

}  // namespace collet::cpu
