// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/fusion/fusion.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "sdk/codegen/fusion/groups.h"
#include "sdk/codegen/fusion/paged_array.h"
#include "sdk/codegen/fusion/update_order.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/lower/lower.h"
#include "sdk/codegen/lower/scalar_block.h"
#include "sdk/codegen/lower/split_edges.h"

namespace collet::codegen {
namespace {

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
  return has_elementwise(node.opcode, graph.type(node.operands[0]).element);
}

/// True if operand `i` of `user` may be computed inside the kernel of `user`.
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
    case COLLET_OP_CONVOLUTION:
      return false;
    case COLLET_OP_DOT:
      return true;
    default:
      return can_inline(graph, user);
  }
}

/// True if a product may read the node's operand instead of the node's result, because the node only reorders or widens
/// elements.
bool is_read_by_products(const Graph& graph, const Node& node) {
  if (node.opcode == COLLET_OP_TRANSPOSE) return true;
  if (node.opcode != COLLET_OP_CONVERT) return false;
  const uint32_t from = graph.type(node.operands[0]).element;
  const uint32_t to = graph.type(node.results[0]).element;
  return collet_type_bytes(from) < collet_type_bytes(to) && collet_type_kind(from) != COLLET_KIND_PRED;
}

class Planner {
 public:
  Planner(const Graph& graph, const Block& block, const FusionOptions& options, FusionPlan& plan)
      : graph_(graph),
        block_(block),
        fuse_(options.fuse),
        split_edges_(options.fuse && options.split_edges),
        near_points_(options.near_points),
        tuning_(options.tuning),
        plan_(plan),
        users_(graph.values.size()),
        dependence_(graph),
        weight_(graph.values.size(), 0),
        heavy_(graph.values.size(), false),
        in_product_(graph.values.size(), false),
        reader_(graph.values.size(), kNone) {}

  void run() {
    plan_.alive.resize(graph_.nodes.size(), false);
    plan_.in_memory.resize(graph_.values.size(), false);
    plan_.alias.resize(graph_.values.size(), false);
    plan_.has_edges.resize(graph_.nodes.size(), false);
    for (ValueId v : block_.arguments) plan_.in_memory[v] = true;
    plan_.guards.resize(graph_.nodes.size(), kNone);
    find_users();
    if (fuse_) find_guards();
    find_writers();
    for (NodeId n : block_.nodes) weigh(graph_.nodes[n]);
    for (auto it = block_.nodes.rbegin(); it != block_.nodes.rend(); ++it) {
      if (plan_.alive[*it]) decide(graph_.nodes[*it]);
    }
    for (NodeId n : block_.nodes) {
      const Node& node = graph_.nodes[n];
      if (!plan_.alive[n] || !is_reshape(node) || !plan_.in_memory[node.results[0]]) continue;
      if (plan_.in_memory[node.operands[0]] && !is_result(node.results[0])) plan_.alias[node.results[0]] = true;
    }
    order_updates(graph_, block_, tuning_, dependence_, plan_);
  }

 private:
  NodeId node_id(const Node& node) const { return static_cast<NodeId>(&node - graph_.nodes.data()); }

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
      dependence_.add(*it);
      for (ValueId v : node.operands) {
        wanted[v] = true;
        if (users_[v].empty() || users_[v].back() != *it) users_[v].push_back(*it);
      }
    }
  }

  /// Finds selects between an update and the unchanged array. The kernel of such a select performs the update in place,
  /// so nobody else may read the update's result.
  void find_guards() {
    for (NodeId n : block_.nodes) {
      if (!plan_.alive[n]) continue;
      const GuardedUpdate g = guarded_update(graph_, graph_.nodes[n]);
      if (g.update == kNone) continue;
      const ValueId v = graph_.nodes[g.update].results[0];
      if (users_[v].size() == 1 && !is_result(v)) plan_.guards[n] = g.update;
    }
  }

  void find_writers() {
    for (NodeId n : block_.nodes) {
      if (!plan_.alive[n]) continue;
      const Node& node = graph_.nodes[n];
      if (is_guarded(node)) continue;
      for (size_t i = 0; i < node.operands.size(); ++i) {
        if (may_overwrite(graph_, plan_, n, i, tuning_)) writers_[array_of(node.operands[i])].push_back(n);
      }
    }
  }

  /// Returns the array whose elements `v` has, before reshapes.
  ValueId array_of(ValueId v) const {
    while (graph_.def(v) && is_reshape(*graph_.def(v))) v = graph_.def(v)->operands[0];
    return v;
  }

  bool is_guarded(const Node& node) const {
    if (node.results.empty()) return false;
    const auto& users = users_[node.results[0]];
    return users.size() == 1 && plan_.guards[users[0]] == node_id(node);
  }

  /// Returns the materialised nodes that read `v`, directly or through nodes that are inlined in them.
  std::vector<NodeId> final_readers(ValueId v) const {
    std::vector<NodeId> found;
    std::set<ValueId> seen{v};
    std::vector<ValueId> open{v};
    while (!open.empty()) {
      const ValueId x = open.back();
      open.pop_back();
      for (NodeId u : users_[x]) {
        if (is_step(graph_, plan_, u)) {
          found.push_back(u);
          continue;
        }
        for (ValueId r : graph_.nodes[u].results) {
          if (seen.insert(r).second) open.push_back(r);
        }
      }
    }
    return found;
  }

  /// True if the kernel of `writer`, which overwrites `v` element by element, may compute `node` from `v` at the same
  /// time. That holds if it writes a single element, or reads each element only at the position that it writes.
  bool reads_in_step(NodeId writer, const Node& node, ValueId v) const {
    const NodeId guarded = plan_.guards[writer];
    const Node& update = graph_.nodes[guarded == kNone ? writer : guarded];
    const bool slice = update.opcode == COLLET_OP_DYNAMIC_UPDATE_SLICE;
    if (!slice && update.opcode != COLLET_OP_SCATTER) return true;
    const size_t first = slice ? 1 : update.results.size() + 1;
    if (graph_.type(update.operands[first]).elements == 1) return true;
    if (!slice) return false;
    if (elementwise(graph_, node)) return graph_.type(node.results[0]).dims == graph_.type(v).dims;
    return node.opcode == COLLET_OP_DYNAMIC_SLICE &&
           graph_.type(node.results[0]).dims == graph_.type(update.operands[1]).dims &&
           std::equal(node.operands.begin() + 1, node.operands.end(), update.operands.begin() + 2);
  }

  /// True if a node must be computed early because another node overwrites its operand: computed inside its reader, it
  /// might read the overwritten elements. If the overwriting node is not the reader itself, only small nodes are
  /// computed early; otherwise copying the operand is as good.
  bool is_read_first(const Node& node) {
    const ValueId result = node.results[0];
    if (is_reshape(node)) return false;
    for (ValueId v : node.operands) {
      const auto writers = writers_.find(array_of(v));
      if (writers == writers_.end()) continue;
      const bool small = graph_.type(result).elements * 8 <= graph_.type(v).elements;
      for (NodeId reader : final_readers(result)) {
        for (NodeId writer : writers->second) {
          if (reader == writer && !reads_in_step(writer, node, v)) return true;
          if (reader == writer || !small) continue;
          if (is_writer(reader) || dependence_.reaches(writer, reader)) return true;
        }
      }
    }
    return false;
  }

  /// True if `node` is the operand that an update writes, and is computed from reads of the overwritten array that the
  /// update's kernel must not do. Such a node is materialised before the update.
  bool is_made_first(const Node& node) const {
    for (NodeId user : users_[node.results[0]]) {
      const Node& update = graph_.nodes[user];
      const NodeId u = is_guarded(update) ? users_[update.results[0]][0] : user;
      if (!is_writer(u) || !is_step(graph_, plan_, u)) continue;
      std::vector<const Node*> open{&node};
      for (size_t at = 0; at < open.size() && open.size() <= tuning_.searched_nodes; ++at) {
        for (ValueId o : open[at]->operands) {
          const auto writers = writers_.find(array_of(o));
          const bool written = writers != writers_.end() &&
                               std::find(writers->second.begin(), writers->second.end(), u) != writers->second.end();
          if (written && !is_reshape(*open[at]) && !reads_in_step(u, *open[at], o)) return open[at] != &node;
          const Node* def = graph_.def(o);
          if (def && (can_inline(graph_, *def) || may_have_edges(*def))) open.push_back(def);
        }
      }
    }
    return false;
  }

  bool is_writer(NodeId n) const {
    const Node& node = graph_.nodes[n];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (may_overwrite(graph_, plan_, n, i, tuning_)) return true;
    }
    return false;
  }

  /// Counts the ops that are needed to compute one element of `node` if all its operands are inlined.
  void weigh(const Node& node) {
    if (may_have_edges(node) && !is_taken_apart(node)) return weigh_parts(node);
    if (!can_inline(graph_, node) && !is_taken_apart(node)) return;
    const ValueId v = node.results[0];
    int weight = 1;
    bool heavy = is_expensive(node.opcode) || node.opcode == COLLET_OP_DIVIDE;
    for (BlockId b : node.blocks) {
      heavy = heavy || is_expensive_block(graph_, graph_.blocks[b]);
      weight += static_cast<int>(std::min<size_t>(graph_.blocks[b].nodes.size(), 1000));
    }
    for (ValueId o : node.operands) {
      weight += users_[o].size() > 1 ? std::min(weight_[o], 4) : weight_[o];
      heavy = heavy || (heavy_[o] && !grows(node, o));  // an operand that the op repeats is not inlined
    }
    weight_[v] = std::min(weight, 1000);
    heavy_[v] = heavy;
  }

  /// True for a concatenation that only builds the index vectors of gathers or scatters, which read its operands
  /// directly.
  bool is_taken_apart(const Node& node) const {
    if (node.opcode != COLLET_OP_CONCATENATE) return false;
    const int64_t d = attributes<collet_dimension_attrs>(graph_, node).dimension;
    return std::all_of(users_[node.results[0]].begin(), users_[node.results[0]].end(), [&](NodeId u) {
      const Node& user = graph_.nodes[u];
      const ValueId v = node.results[0];
      if (user.opcode == COLLET_OP_GATHER) {
        return user.operands[0] != v && attributes<collet_gather_attrs>(graph_, user).index_vector_dim == d;
      }
      return user.opcode == COLLET_OP_SCATTER && user.operands[user.results.size()] == v &&
             std::count(user.operands.begin(), user.operands.end(), v) == 1 &&
             attributes<collet_scatter_attrs>(graph_, user).index_vector_dim == d;
    });
  }

  /// Weighs a concatenation. Each of its elements is an element of one operand.
  void weigh_parts(const Node& node) {
    const ValueId v = node.results[0];
    for (ValueId o : node.operands) {
      weight_[v] = std::max(weight_[v], std::min(weight_[o] + 1, 1000));
      heavy_[v] = heavy_[v] || heavy_[o];
    }
  }

  /// True for a concatenation that may be computed in the kernel of an elementwise op.
  bool may_have_edges(const Node& node) const { return split_edges_ && node.opcode == COLLET_OP_CONCATENATE; }

  /// True if `node`, or an op that would be inlined in it, is a product. A product takes the elementwise ops behind it
  /// into its own kernel.
  bool follows_product(const Node& node) const {
    std::vector<const Node*> open{&node};
    for (size_t at = 0; at < open.size(); ++at) {
      if (is_product(*open[at]) || at == tuning_.searched_nodes) return true;
      if (open[at] != &node && !can_inline(graph_, *open[at]) && !may_have_edges(*open[at])) continue;
      for (ValueId o : open[at]->operands) {
        if (graph_.def(o)) open.push_back(graph_.def(o));
      }
    }
    return false;
  }

  /// Returns the positions at which the parts of a concatenation meet, added to those of `edges`.
  Edges edges_with(const Node& node, Edges edges) const {
    const Dims& dims = graph_.type(node.results[0]).dims;
    edges.resize(dims.size());
    const auto d = static_cast<size_t>(attributes<collet_dimension_attrs>(graph_, node).dimension);
    int64_t end = 0;
    for (ValueId o : node.operands) {
      end += graph_.type(o).dims[d];
      if (end > 0 && end < dims[d]) edges[d].insert(end);
    }
    return edges;
  }

  /// Returns the elementwise node in whose kernel `node` would be computed at the position of the result, through
  /// elementwise ops with one user each; kNone if there is none.
  NodeId elementwise_reader(const Node& node) const {
    const ValueId v = node.results[0];
    if (users_[v].size() != 1) return kNone;
    const Node& user = graph_.nodes[users_[v][0]];
    if (user.results.size() != 1 || !elementwise(graph_, user) || plan_.guards[users_[v][0]] != kNone) return kNone;
    if (graph_.type(user.results[0]).dims != graph_.type(v).dims) return kNone;
    return plan_.in_memory[user.results[0]] ? users_[v][0] : reader_[user.results[0]];
  }

  /// True if the concatenation is inlined in an elementwise op whose kernel is split where the operands meet.
  bool is_split_by_reader(const Node& node) const {
    if (!may_have_edges(node)) return false;
    const NodeId reader = elementwise_reader(node);
    if (reader == kNone || follows_product(graph_.nodes[reader])) return false;
    const auto known = edges_.find(reader);
    return edges_pay(graph_.type(node.results[0]).dims,
                     edges_with(node, known == edges_.end() ? Edges{} : known->second), near_points_, tuning_);
  }

  bool is_product(const Node& node) const {
    return node.opcode == COLLET_OP_CONVOLUTION || (node.opcode == COLLET_OP_DOT && !is_outer_product(graph_, node));
  }

  bool grows(const Node& user, ValueId v) const {
    if (user.opcode == COLLET_OP_BROADCAST || user.opcode == COLLET_OP_GATHER || is_outer_product(graph_, user)) {
      return graph_.type(user.results[0]).elements > graph_.type(v).elements;
    }
    return false;
  }

  bool inlined(const Node& node) {
    const ValueId v = node.results[0];
    if (is_guarded(node)) return true;  // computed in the kernel of the select
    const bool possible = can_inline(graph_, node) || is_taken_apart(node) || is_split_by_reader(node);
    if (!possible || is_result(v) || plan_.guards[node_id(node)] != kNone) return false;
    const bool free = node.opcode == COLLET_OP_IOTA || node.opcode == COLLET_OP_BROADCAST;
    if (!fuse_ && !free) return false;
    if (weight_[v] > 100) return false;
    const auto& users = users_[v];
    for (NodeId u : users) {
      const Node& user = graph_.nodes[u];
      for (size_t i = 0; i < user.operands.size(); ++i) {
        if (user.operands[i] == v && !takes_inlined(graph_, user, i)) return false;
      }
      if (is_in_product(user) && !is_read_by_products(graph_, node)) return false;
      if (!heavy_[v] || !grows(user, v)) continue;
      if (!is_squeeze(node)) return false;
      computed_once_.insert(node.operands[0]);  // materialised, so that the reshape only renames it
    }
    if (!writers_.empty() && (is_read_first(node) || is_made_first(node))) return false;
    if (users.size() <= 1) return true;
    if (!heavy_[v] && weight_[v] <= 4) return true;
    if (!is_squeeze(node)) return false;
    computed_once_.insert(node.operands[0]);
    return true;
  }

  /// A reshape that only adds or drops dimensions of size 1.
  bool is_squeeze(const Node& node) const {
    if (!is_reshape(node)) return false;
    const auto squeezed = [this](ValueId v) {
      Dims dims = graph_.type(v).dims;
      dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
      return dims;
    };
    return squeezed(node.operands[0]) == squeezed(node.results[0]);
  }

  /// True for a product, which reads each element of its operands many times, and for a node that is inlined in a
  /// product.
  bool is_in_product(const Node& node) const {
    return (node.opcode == COLLET_OP_DOT && is_product(node)) ||
           (!node.results.empty() && in_product_[node.results[0]]);
  }

  void decide(const Node& node) {
    const bool once = !node.results.empty() && computed_once_.count(node.results[0]) > 0;
    if (!once && inlined(node)) {
      const auto& users = users_[node.results[0]];
      in_product_[node.results[0]] =
          std::any_of(users.begin(), users.end(), [this](NodeId u) { return is_in_product(graph_.nodes[u]); });
      note_reader(node);
      return;
    }
    for (ValueId v : node.results) plan_.in_memory[v] = true;
    // A reshape that is not inlined shares its operand's memory, so the operand must be materialised.
    if (is_reshape(node) && !is_result(node.results[0])) plan_.in_memory[node.operands[0]] = true;
  }

  /// Records in which kernel an inlined node is computed.
  void note_reader(const Node& node) {
    const NodeId reader = elementwise_reader(node);
    if (elementwise(graph_, node)) reader_[node.results[0]] = reader;
    if (!may_have_edges(node) || is_taken_apart(node)) return;
    edges_[reader] = edges_with(node, edges_[reader]);
    plan_.has_edges[reader] = true;
  }

  const Graph& graph_;
  const Block& block_;
  bool fuse_;
  bool split_edges_;
  int64_t near_points_;
  const Tuning& tuning_;
  FusionPlan& plan_;
  PagedArray<std::vector<NodeId>> users_;
  Dependence dependence_;
  std::map<ValueId, std::vector<NodeId>> writers_;  ///< nodes that may write over a value
  PagedArray<int> weight_;
  std::vector<bool> heavy_;
  std::vector<bool> in_product_;  ///< by value: whether it is computed where a product reads it
  /// By value: the node in whose kernel it is computed, if elementwise_reader has found one.
  PagedArray<NodeId> reader_;
  std::map<NodeId, Edges> edges_;  ///< by reader: the edges of the concatenations that are inlined in its kernel
  /// Values that must be materialised because the reshapes of them that are inlined are read many times.
  std::set<ValueId> computed_once_;
};

}  // namespace

bool can_inline(const Graph& graph, const Node& node) {
  switch (node.opcode) {
    case COLLET_OP_CONCATENATE:  // its operands are written to the result one after another
      return false;
    case COLLET_OP_DOT:
      return is_outer_product(graph, node);
    case COLLET_OP_MAP:
      return is_scalar_block(graph, graph.blocks[node.blocks[0]]) && graph.blocks[node.blocks[0]].results.size() == 1;
    case COLLET_OP_BITCAST_CONVERT:  // inlined only between elements of one size
      return elementwise(graph, node);
    default:
      return (collet_op_traits(node.opcode) & COLLET_OP_INDEXED) != 0 || elementwise(graph, node);
  }
}

bool is_step(const Graph& graph, const FusionPlan& plan, NodeId id) {
  const Node& node = graph.nodes[id];
  return plan.alive[id] &&
         std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) { return plan.in_memory[v]; });
}

std::vector<ValueId> values_read(const Graph& graph, const FusionPlan& plan, const Node& node) {
  std::set<ValueId> found;
  std::vector<ValueId> open(node.operands.begin(), node.operands.end());
  std::set<ValueId> seen;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (!seen.insert(v).second) continue;
    const Node* def = graph.def(v);
    if (plan.in_memory[v] || !def) {
      found.insert(v);
    } else {
      open.insert(open.end(), def->operands.begin(), def->operands.end());
    }
  }
  return {found.begin(), found.end()};
}

void fuse_block(const Graph& graph, const Block& block, const FusionOptions& options, FusionPlan& plan) {
  Planner(graph, block, options, plan).run();
  form_groups(graph, block, options, plan);
}

}  // namespace collet::codegen
