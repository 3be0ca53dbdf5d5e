// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/fusion/groups.h"

#include <algorithm>
#include <map>
#include <set>

namespace collet::codegen {
namespace {

using GroupId = uint32_t;

class GroupBuilder {
 public:
  GroupBuilder(const Graph& graph, const Block& block, const FusionOptions& options, FusionPlan& plan)
      : graph_(graph),
        block_(block),
        fuse_(options.fuse),
        tuning_(options.tuning),
        plan_(plan),
        group_of_(graph.nodes.size(), kNone) {}

  void run() {
    for (NodeId n : plan_.order) {
      if (is_step(graph_, plan_, n)) order_.push_back(n);
    }
    for (size_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = i;
    for (NodeId n : order_) inputs_[n] = values_read(graph_, plan_, graph_.nodes[n]);
    for (NodeId n : order_) {
      for (ValueId v : inputs_[n]) readers_[v].push_back(n);
    }
    for (NodeId n : order_) place(n);
    sort();
  }

 private:
  NodeId node_id(const Node& node) const { return static_cast<NodeId>(&node - graph_.nodes.data()); }

  bool is_loop(const Node& node) const {
    const auto id = node_id(node);
    return can_inline(graph_, node) && plan_.guards[id] == kNone && !plan_.alias[node.results[0]] &&
           graph_.type(node.results[0]).elements > 0;
  }

  bool is_reduce(const Node& node) const {
    return node.opcode == COLLET_OP_REDUCE && has_node_kernel(graph_, node) &&
           graph_.type(node.operands[0]).elements > 0;
  }

  static int64_t product(const Dims& dims, const std::vector<bool>& inner, bool which) {
    int64_t n = 1;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (inner[d] == which) n *= dims[d];
    }
    return n;
  }

  static bool trailing(const std::vector<bool>& inner) { return std::is_sorted(inner.begin(), inner.end()); }
  static bool any(const std::vector<bool>& inner) { return std::find(inner.begin(), inner.end(), true) != inner.end(); }

  /// True if the rows that one thread reduces are many or short enough to be divided among threads.
  bool good_rows(const FusedValues& v) const {
    return trailing(v.inner) && (product(v.shape, v.inner, true) <= tuning_.long_row ||
                                 product(v.shape, v.inner, false) >= tuning_.many_rows);
  }

  FusedValues alone(const Node& node) const {
    FusedValues v;
    if (is_reduce(node)) {
      v.shape = graph_.type(node.operands[0]).dims;
      v.inner.assign(v.shape.size(), false);
      for (int64_t d : integers(graph_, attributes<collet_dimensions_attrs>(graph_, node).dimensions)) {
        v.inner[static_cast<size_t>(d)] = true;
      }
    } else {
      v.shape = graph_.type(node.results[0]).dims;
      v.inner.assign(v.shape.size(), false);
    }
    v.own = node.results;
    v.roots = stored(v.own, {node_id(node)});
    if (v.roots.empty()) v.roots = node.results;
    return v;
  }

  static Dims squeezed(const Dims& dims) {
    Dims r;
    for (int64_t d : dims) {
      if (d != 1) r.push_back(d);
    }
    return r;
  }

  static Dims kept(const FusedValues& v) {
    Dims r;
    for (size_t d = 0; d < v.shape.size(); ++d) {
      if (!v.inner[d]) r.push_back(v.shape[d]);
    }
    return r;
  }

  /// Computes the group's loops after `node` has joined it. Returns false if the shapes do not fit.
  bool joined(const FusionGroup& group, const Node& node, FusedValues& out) const {
    out = group.values;
    const auto has_edges = [this](NodeId n) { return plan_.has_edges[n]; };
    if (is_reduce(node)) {
      // A kernel with inner loops is not split at edges.
      if (std::any_of(group.nodes.begin(), group.nodes.end(), has_edges)) return false;
      FusedValues mine = alone(node);
      if (mine.shape != out.shape) return false;
      if (any(out.inner)) return mine.inner == out.inner;
      // The group stores values of the whole shape, which is possible only inside loops along the rows.
      out.inner = mine.inner;
      return good_rows(out);
    }
    if (any(out.inner) && has_edges(node_id(node))) return false;
    const Dims dims = squeezed(graph_.type(node.results[0]).dims);
    if (dims == squeezed(out.shape)) return !any(out.inner) || good_rows(out);
    return any(out.inner) && dims == squeezed(kept(out));
  }

  bool reads_from(const Node& node, const FusionGroup& group) const {
    const auto& in = inputs_.at(node_id(node));
    return std::any_of(in.begin(), in.end(), [&](ValueId v) {
      return std::find(group.values.own.begin(), group.values.own.end(), v) != group.values.own.end();
    });
  }

  /// Returns the nodes that must run before `n`: they write what `n` reads, or read what `n` overwrites.
  std::vector<NodeId> awaited(NodeId n) const {
    std::vector<NodeId> nodes;
    for (ValueId v : inputs_.at(n)) {
      if (graph_.def(v)) nodes.push_back(graph_.values[v].def);
    }
    if (auto it = plan_.after.find(n); it != plan_.after.end()) {
      nodes.insert(nodes.end(), it->second.begin(), it->second.end());
    }
    return nodes;
  }

  /// True if a path leads from the group to the node through other groups, so that fusing them would make a cycle. Only
  /// groups that wait for a node behind the group's first node are searched.
  bool detour(GroupId group, NodeId n) const {
    size_t first = SIZE_MAX;
    for (NodeId m : groups_[group].nodes) first = std::min(first, rank_.at(m));
    std::vector<NodeId> open;
    std::set<GroupId> seen;
    auto push_inputs = [&](NodeId m, bool direct) {
      for (NodeId id : awaited(m)) {
        const GroupId u = group_of_[id];
        if (u == kNone || (direct && u == group)) continue;
        if (u == group) return true;
        if (last_[u] < first || !seen.insert(u).second) continue;
        open.insert(open.end(), groups_[u].nodes.begin(), groups_[u].nodes.end());
      }
      return false;
    };
    if (push_inputs(n, true)) return true;
    while (!open.empty()) {
      const NodeId m = open.back();
      open.pop_back();
      if (push_inputs(m, false)) return true;
    }
    return false;
  }

  void place(NodeId n) {
    const Node& node = graph_.nodes[n];
    const bool fusible = fuse_ && (is_loop(node) || is_reduce(node));
    if (fusible) {
      std::vector<GroupId> list = candidates(n);
      std::stable_partition(list.begin(), list.end(), [&](GroupId u) { return sums_product_of(u, node); });
      for (GroupId u : list) {
        if (join(u, n)) return;
      }
    }
    FusionGroup group;
    group.nodes = {n};
    group.fused = is_loop(node) || is_reduce(node);
    if (group.fused) group.values = alone(node);
    groups_.push_back(std::move(group));
    last_.push_back(0);
    dependents_.emplace_back();
    settle(n, static_cast<GroupId>(groups_.size() - 1));
  }

  /// Assigns the node to group `u`, which thereby becomes a reader of the node's inputs.
  void settle(NodeId n, GroupId u) {
    group_of_[n] = u;
    wait_for(rank_.at(n), u);
    for (NodeId id : awaited(n)) {
      const GroupId from = group_of_[id];
      if (from != kNone && from != u) dependents_[from].insert(u);
    }
    for (ValueId v : inputs_.at(n)) {
      auto& latest = latest_[v];
      latest.insert(u);
      if (latest.size() > tuning_.group_candidates) latest.erase(std::prev(latest.end()));
    }
  }

  /// Records that a node of rank `rank`, the highest so far, has joined group `u`: all groups that depend on `u` now
  /// wait for that node.
  void wait_for(size_t rank, GroupId u) {
    std::vector<GroupId> open{u};
    last_[u] = rank;
    while (!open.empty()) {
      const GroupId x = open.back();
      open.pop_back();
      for (GroupId d : dependents_[x]) {
        if (last_[d] < rank) {
          last_[d] = rank;
          open.push_back(d);
        }
      }
    }
  }

  /// Returns the groups that the node could join: those that it reads from, latest first, then those that read the same
  /// values.
  std::vector<GroupId> candidates(NodeId n) const {
    std::set<GroupId, std::greater<>> feeding;
    std::set<GroupId, std::greater<>> siblings;
    int64_t most = 0;
    for (ValueId v : inputs_.at(n)) most = std::max(most, graph_.type(v).elements);
    for (ValueId v : inputs_.at(n)) {
      if (graph_.def(v) && group_of_[graph_.values[v].def] != kNone) feeding.insert(group_of_[graph_.values[v].def]);
      auto found = latest_.find(v);
      if (found == latest_.end() || graph_.type(v).elements < most || most < 1024) continue;
      siblings.insert(found->second.begin(), found->second.end());
    }
    std::vector<GroupId> list(feeding.begin(), feeding.end());
    for (GroupId u : siblings) {
      if (!feeding.count(u)) list.push_back(u);
    }
    list.resize(std::min(list.size(), tuning_.group_candidates));
    return list;
  }

  bool sums_product_of(GroupId u, const Node& node) const {
    if (node.opcode != COLLET_OP_ADD && node.opcode != COLLET_OP_SUBTRACT) return false;
    return std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId v) {
      const NodeId def = graph_.values[v].def;
      return def != kNone && group_of_[def] == u && graph_.nodes[def].opcode == COLLET_OP_MULTIPLY;
    });
  }

  bool join(GroupId u, NodeId n) {
    FusionGroup& group = groups_[u];
    const Node& node = graph_.nodes[n];
    const bool sum = sums_product_of(u, node);
    FusedValues values;
    if (!group.fused || group.nodes.size() >= tuning_.group_nodes + (sum ? tuning_.sum_nodes : 0) ||
        !joined(group, node, values))
      return false;
    if (detour(u, n)) return false;
    values.own.insert(values.own.end(), node.results.begin(), node.results.end());
    std::vector<NodeId> nodes = group.nodes;
    nodes.push_back(n);
    values.roots = stored(values.own, nodes);
    KernelPlan plan;
    auto is_input = [&](ValueId v) { return plan_.in_memory[v] || graph_.value(v).constant != nullptr; };
    if (!fused_kernel(graph_, values, is_input, plan)) return false;
    if (plan.buffers.size() > tuning_.group_buffers ||
        plan.kernel.exprs.size() > tuning_.group_exprs + (sum ? tuning_.sum_exprs : 0))
      return false;
    group.values = std::move(values);
    group.nodes = std::move(nodes);
    settle(n, u);
    return true;
  }

  /// Returns the values of `own` that nodes outside `nodes` read, or that are results of the block. The group must
  /// store them.
  std::vector<ValueId> stored(const std::vector<ValueId>& own, const std::vector<NodeId>& nodes) const {
    std::vector<ValueId> r;
    for (ValueId v : own) {
      bool wanted = std::find(block_.results.begin(), block_.results.end(), v) != block_.results.end();
      if (auto it = readers_.find(v); it != readers_.end()) {
        for (NodeId reader : it->second) {
          wanted = wanted || std::find(nodes.begin(), nodes.end(), reader) == nodes.end();
        }
      }
      if (wanted) r.push_back(v);
    }
    return r;
  }

  /// Puts the groups into an order in which they can run, close to the order of the nodes.
  void sort() {
    std::vector<bool> done(groups_.size(), false);
    for (NodeId n : order_) visit(group_of_[n], done);
  }

  void visit(GroupId u, std::vector<bool>& done) {
    if (done[u]) return;
    done[u] = true;
    for (NodeId n : groups_[u].nodes) {
      for (NodeId id : awaited(n)) {
        const GroupId from = group_of_[id];
        if (from != kNone && from != u) visit(from, done);
      }
    }
    plan_.groups.push_back(groups_[u]);
  }

  const Graph& graph_;
  const Block& block_;
  bool fuse_;
  const Tuning& tuning_;
  FusionPlan& plan_;
  std::vector<NodeId> order_;
  std::map<NodeId, size_t> rank_;
  std::map<NodeId, std::vector<ValueId>> inputs_;
  std::map<ValueId, std::vector<NodeId>> readers_;
  std::map<ValueId, std::set<GroupId, std::greater<>>>
      latest_;  ///< by value: the groups that read it, highest number first
  std::vector<GroupId> group_of_;
  std::vector<FusionGroup> groups_;
  /// By group: the highest rank of its nodes and of all nodes that it waits for.
  std::vector<size_t> last_;
  std::vector<std::set<GroupId>> dependents_;  ///< by group: the groups that read from it
};

}  // namespace

void form_groups(const Graph& graph, const Block& block, const FusionOptions& options, FusionPlan& plan) {
  plan.groups.clear();
  GroupBuilder(graph, block, options, plan).run();
}

}  // namespace collet::codegen
