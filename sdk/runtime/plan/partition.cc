// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/partition.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "sdk/runtime/plan/overlap.h"
#include "sdk/runtime/run/collective.h"
#include "sdk/runtime/run/host_call.h"

namespace collet::runtime {
namespace {

using hlo::CompId;
using hlo::InstrId;
using hlo::Instruction;
using hlo::Leaf;
using hlo::Module;
using hlo::Op;

constexpr int kMostRounds = 8;
constexpr double kHostStepNs = 500;  // time that the runtime needs for a step of a loop on the host
// A device that states no speed is assumed to be this many times faster than the fallback, because its vendor wants it
// to be used.
constexpr double kHopedFor = 4;

// An instruction of the current computation during placement.
struct Node {
  InstrId id;
  Side side = Side::Device;
  uint32_t phase = 0;
  uint32_t cluster = 0;
  std::vector<uint32_t> before;  // nodes on which it depends, each once
  double device_ns = 0, fallback_ns = 0;
  std::string reason;
  bool may_fall_back = false;
};

// Formats nanoseconds for messages; costs that plugins state may exceed the range of integers.
std::string whole_ns(double ns) {
  return std::to_string(ns < 1e18 ? static_cast<int64_t>(ns) : int64_t{1000000000000000000});
}

class Partitioner {
 public:
  explicit Partitioner(const PartitionInput& input) : in_(input), m_(input.module) {
    Speed usual;
    fallback_speed_ = input.fallback_facts ? speed_of(*input.fallback_facts, usual) : usual;
    Speed hoped = fallback_speed_;
    hoped.bytes_per_ns *= kHopedFor;
    hoped.flops_per_ns *= kHopedFor;
    device_speed_ = speed_of(input.device_facts, hoped);
  }

  Expected<Partition> run() {
    COLLET_TRY(computation(m_.entry(), true).status());
    return std::move(out_);
  }

 private:
  Expected<const ComputationPlan*> computation(CompId c, bool entry) {
    const auto known = out_.computations.find(c);
    if (known != out_.computations.end()) return &known->second;
    COLLET_ASSIGN(std::vector<Node> nodes, make_nodes(c));
    std::vector<ClusterPlan> clusters;
    for (int round = 0;; ++round) {
      clusters = make_clusters(c, nodes);
      if (round == kMostRounds || !flip(c, entry, nodes, clusters)) break;
    }
    if (in_.across) hide_exchanges(c, nodes, clusters);
    COLLET_TRY(check_groups(nodes));
    ComputationPlan plan;
    for (const ClusterPlan& cluster : clusters) {
      plan.cost_ns += cluster.cost_ns + (cluster.side == Side::Host ? 0 : kHostStepNs);
      plan.uses_device |= cluster.side == Side::Device;
      if (cluster.side == Side::Host)
        for (CompId called : m_[cluster.members[0]].called) plan.uses_device |= out_.computations[called].uses_device;
    }
    plan.clusters = std::move(clusters);
    for (const Node& n : nodes)
      out_.placements[n.id] = {n.side, n.reason, n.side == Side::Fallback ? n.fallback_ns : n.device_ns};
    return &(out_.computations[c] = std::move(plan));
  }

  Expected<std::vector<Node>> make_nodes(CompId c) {
    std::vector<Node> nodes;
    std::unordered_map<uint32_t, uint32_t> number;
    int64_t last_effect = -1;
    for (InstrId id : m_[c].order) {
      const Instruction& instr = m_[id];
      if (hlo::is_transparent(instr) || instr.op == Op::PARAMETER || instr.op == Op::CONSTANT) continue;
      Node n;
      n.id = id;
      for (Leaf leaf : hlo::operand_leaves(m_, instr)) need(n, number, leaf.instr);
      if (instr.extras)
        for (InstrId p : instr.extras->control_predecessors) need(n, number, p);
      if (hlo::has_side_effect(instr.op)) {
        if (last_effect >= 0) n.before.push_back(static_cast<uint32_t>(last_effect));
        last_effect = static_cast<int64_t>(nodes.size());
      }
      COLLET_TRY(place(n, instr));
      number[hlo::index_of(id)] = static_cast<uint32_t>(nodes.size());
      nodes.push_back(std::move(n));
    }
    return nodes;
  }

  static void need(Node& n, const std::unordered_map<uint32_t, uint32_t>& number, InstrId id) {
    const auto it = number.find(hlo::index_of(id));
    if (it == number.end()) return;  // it is a parameter or constant
    if (std::find(n.before.begin(), n.before.end(), it->second) == n.before.end()) n.before.push_back(it->second);
  }

  // Determines the side of an instruction before costs are compared.
  Status place(Node& n, const Instruction& instr) {
    const Verdict& device = in_.device.of(n.id);
    const Verdict* fallback = in_.fallback ? &in_.fallback->of(n.id) : nullptr;
    const Work work = work_of(m_, instr);
    n.device_ns = device.cost_ns > 0 ? device.cost_ns : time_ns(work, device_speed_);
    n.fallback_ns = fallback && fallback->cost_ns > 0 ? fallback->cost_ns : time_ns(work, fallback_speed_);
    n.may_fall_back = fallback && fallback->answer == COLLET_ACCEPT;
    const bool id_op = instr.op == Op::REPLICA_ID || instr.op == Op::PARTITION_ID;
    if (id_op && (in_.host_gives_ids || device.answer != COLLET_ACCEPT)) {
      n.side = Side::Host;
      n.reason = "known to the runtime";
      return ok_status();
    }
    if (called_function(in_.host_functions, instr)) {
      n.side = Side::Host;
      n.reason = "the embedder's";
      return ok_status();
    }
    // The interface has no permute of slices, so whoever takes it has taken another op.
    if (is_permute_of_slices(instr)) {
      n.side = Side::Host;
      n.reason = "a permute of slices";
      return ok_status();
    }
    if (in_.several && is_collective(instr.op) && device.answer != COLLET_ACCEPT) {
      n.side = Side::Host;
      n.reason = device.reason.empty() ? "declined" : device.reason;
      return ok_status();
    }
    const auto banned = in_.constraints.fallback.find(n.id);
    if (device.answer == COLLET_ACCEPT && (banned == in_.constraints.fallback.end() || !n.may_fall_back)) {
      n.side = Side::Device;
      n.reason = device.reason;
      return ok_status();
    }
    n.reason = banned != in_.constraints.fallback.end() ? banned->second
               : device.reason.empty()                  ? "declined"
                                                        : device.reason;
    if (is_control_flow(instr.op)) return place_control_flow(n, instr);
    if (n.may_fall_back) {
      n.side = Side::Fallback;
      return ok_status();
    }
    return refused(n, instr, fallback);
  }

  static bool is_permute_of_slices(const Instruction& instr) {
    return (instr.op == Op::COLLECTIVE_PERMUTE || instr.op == Op::COLLECTIVE_PERMUTE_START) &&
           !instr.as<hlo::CollectivePermuteAttrs>().slice_sizes.empty();
  }

  Status refused(const Node& n, const Instruction& instr, const Verdict* fallback) const {
    std::string message = "instruction '" + std::string(instr.name) + "' (" + std::string(op_info(instr.op).text) +
                          ", " + instr.shape.to_string() + ") runs nowhere: " + in_.device_name + " says: " + n.reason;
    if (fallback)
      message += "; the fallback " + in_.fallback_name +
                 " says: " + (fallback->reason.empty() ? "declined" : fallback->reason);
    else
      message += "; there is no fallback";
    if (instr.op == Op::INFEED || instr.op == Op::OUTFEED)
      message += "; a function of the embedder's may do it (collet_host_function)";
    return unimplemented(std::move(message));
  }

  // Places control flow that the device does not take as a whole: on the fallback, or on the host with its computations
  // placed separately.
  Status place_control_flow(Node& n, const Instruction& instr) {
    double host_ns = kHostStepNs;
    bool uses_device = false;
    for (CompId c : instr.called) {
      auto body = computation(c, false);
      if (!body.ok()) {
        if (!n.may_fall_back) return body.status();
        n.side = Side::Fallback;
        return ok_status();
      }
      uses_device |= (*body)->uses_device;
      if (instr.op == Op::CONDITIONAL)
        host_ns = std::max(host_ns, (*body)->cost_ns);
      else
        host_ns += (*body)->cost_ns;
    }
    host_ns += 2 * in_.device_facts.link_latency_ns;
    if (instr.op == Op::WHILE) host_ns *= trips_of(instr);
    if (n.may_fall_back && (!uses_device || (host_ns > n.fallback_ns && !in_.ignore_costs))) {
      n.side = Side::Fallback;
      if (uses_device) n.reason += "; looping on the host would cost more";
      return ok_status();
    }
    n.side = Side::Host;
    n.device_ns = host_ns;
    return ok_status();
  }

  bool is_number(const Node& n) const { return m_[n.id].op == Op::REPLICA_ID || m_[n.id].op == Op::PARTITION_ID; }

  // Divides nodes into clusters. Phases do not decrease along any dependence, and increase where the side changes; so
  // instructions of one side and one phase form a convex cluster.
  std::vector<ClusterPlan> make_clusters(CompId c, std::vector<Node>& nodes) {
    for (Node& n : nodes) {
      // replica-id and partition-id are available from the start, so their users need not wait for a later phase.
      n.phase = n.side == Side::Host && n.before.empty() && is_number(n) ? 0 : 1;
      const bool cut = n.side == Side::Device && in_.constraints.cuts.contains(n.id);
      for (uint32_t b : n.before) {
        const bool together = nodes[b].side == n.side && n.side != Side::Host && !cut;
        n.phase = std::max(n.phase, nodes[b].phase + (together ? 0 : 1));
      }
    }
    std::vector<uint32_t> order(nodes.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      if (nodes[a].phase != nodes[b].phase) return nodes[a].phase < nodes[b].phase;
      return nodes[a].side < nodes[b].side;
    });
    std::vector<ClusterPlan> clusters;
    const Node* previous = nullptr;
    for (uint32_t i : order) {
      Node& n = nodes[i];
      const bool same = previous && previous->phase == n.phase && previous->side == n.side && n.side != Side::Host;
      if (!same) {
        clusters.emplace_back();
        clusters.back().side = n.side;
      }
      n.cluster = static_cast<uint32_t>(clusters.size() - 1);
      clusters.back().members.push_back(n.id);
      clusters.back().cost_ns += n.side == Side::Fallback ? n.fallback_ns : n.device_ns;
      previous = &n;
    }
    finish(c, nodes, clusters);
    return clusters;
  }

  void finish(CompId c, const std::vector<Node>& nodes, std::vector<ClusterPlan>& clusters) {
    for (ClusterPlan& cluster : clusters) {
      if (cluster.side == Side::Device) cluster.cost_ns += device_speed_.launch_ns;
      if (cluster.side == Side::Fallback) cluster.cost_ns += fallback_speed_.launch_ns;
    }
    connect(c, nodes, clusters);
  }

  // Moves what collectives do not need behind them, so that it runs while they wait for other processes.
  void hide_exchanges(CompId c, std::vector<Node>& nodes, std::vector<ClusterPlan>& clusters) {
    std::vector<OverlapCluster> order(clusters.size());
    for (size_t k = 0; k < clusters.size(); ++k) order[k].may_move = clusters[k].side == Side::Device;
    std::vector<OverlapNode> all;
    std::unordered_map<uint32_t, uint32_t> number;
    for (const Node& n : nodes) {
      number[hlo::index_of(n.id)] = static_cast<uint32_t>(all.size());
      const Instruction& instr = m_[n.id];
      double bytes = 0;
      for (uint32_t i = 0; i < static_cast<uint32_t>(instr.shape.leaf_count()); ++i)
        bytes += static_cast<double>(leaf_bytes(m_, {n.id, i}));
      all.push_back({n.before, in_.device.of(n.id).group, n.device_ns, bytes});
      if (n.side != Side::Host || !is_collective(instr.op)) continue;
      double sent = 0;
      for (const Leaf leaf : hlo::operand_leaves(m_, instr)) sent += static_cast<double>(leaf_bytes(m_, leaf));
      order[n.cluster].exchange_ns = exchange_ns(std::max(sent, bytes));
    }
    if (std::none_of(order.begin(), order.end(), [](const OverlapCluster& one) { return one.exchange_ns > 0; })) return;
    for (size_t k = 0; k < clusters.size(); ++k)
      for (const InstrId id : clusters[k].members)
        if (const auto it = number.find(hlo::index_of(id)); it != number.end()) order[k].members.push_back(it->second);
    const OverlapCosts costs{device_speed_.launch_ns + kHostStepNs, device_speed_.bytes_per_ns,
                             in_.device_facts.smallest_cluster};
    clusters.clear();
    for (const OverlapCluster& one : overlap(all, std::move(order), costs)) {
      ClusterPlan& cluster = clusters.emplace_back();
      for (const uint32_t k : one.members) {
        Node& n = nodes[k];
        n.cluster = static_cast<uint32_t>(clusters.size() - 1);
        cluster.side = n.side;
        cluster.members.push_back(n.id);
        cluster.cost_ns += n.side == Side::Fallback ? n.fallback_ns : n.device_ns;
      }
    }
    finish(c, nodes, clusters);
  }

  // Determines inputs and outputs of the clusters, and the constants in them.
  void connect(CompId c, const std::vector<Node>& nodes, std::vector<ClusterPlan>& clusters) {
    std::unordered_map<uint32_t, uint32_t> cluster_of;
    for (const Node& n : nodes) cluster_of[hlo::index_of(n.id)] = n.cluster;
    std::unordered_map<uint32_t, size_t> parameter_number;
    for (const InstrId parameter : m_[c].parameters)
      parameter_number.emplace(hlo::index_of(parameter), parameter_number.size());
    // Parameters come first, in their order, then other values by their first use.
    const auto rank = [&](Leaf leaf) {
      const auto it = parameter_number.find(hlo::index_of(leaf.instr));
      return it == parameter_number.end() ? std::pair(parameter_number.size(), uint32_t{0})
                                          : std::pair(it->second, leaf.index);
    };
    std::unordered_set<Leaf, hlo::LeafHash> is_output;
    const auto use = [&](Leaf leaf, uint32_t by) {
      const auto it = cluster_of.find(hlo::index_of(leaf.instr));
      if (it == cluster_of.end() || it->second == by || !is_output.insert(leaf).second) return;
      clusters[it->second].outputs.push_back(leaf);
    };
    for (uint32_t k = 0; k < clusters.size(); ++k) {
      ClusterPlan& cluster = clusters[k];
      std::unordered_set<Leaf, hlo::LeafHash> seen;
      std::vector<InstrId> constants;
      for (InstrId id : cluster.members) {
        for (Leaf leaf : hlo::operand_leaves(m_, m_[id])) {
          const auto it = cluster_of.find(hlo::index_of(leaf.instr));
          if (it != cluster_of.end() && it->second == k) continue;
          if (!seen.insert(leaf).second) continue;
          if (m_[leaf.instr].op == Op::CONSTANT && cluster.side != Side::Host) {
            constants.push_back(leaf.instr);
            continue;
          }
          cluster.inputs.push_back(leaf);
          use(leaf, k);
        }
      }
      cluster.members.insert(cluster.members.begin(), constants.begin(), constants.end());
      if (in_.keep_parameters && c == m_.entry() && clusters.size() == 1)
        for (const InstrId parameter : m_[c].parameters)
          for (uint32_t i = 0; i < m_[parameter].shape.leaf_count(); ++i)
            if (seen.insert({parameter, i}).second) cluster.inputs.push_back({parameter, i});
      // The inputs of a host instruction are its operands.
      if (cluster.side != Side::Host)
        std::stable_sort(cluster.inputs.begin(), cluster.inputs.end(),
                         [&](Leaf a, Leaf b) { return rank(a) < rank(b); });
    }
    for (Leaf leaf : hlo::leaves_of(m_, m_[c].root)) use(leaf, COLLET_NONE);
    // All results of a host instruction get a slot, used or not.
    for (ClusterPlan& cluster : clusters) {
      if (cluster.side != Side::Host) continue;
      cluster.outputs.clear();
      const auto n = static_cast<uint32_t>(m_[cluster.members[0]].shape.leaf_count());
      for (uint32_t i = 0; i < n; ++i) cluster.outputs.push_back({cluster.members[0], i});
    }
  }

  double crossing_ns(double bytes) const {
    const DeviceFacts& d = in_.device_facts;
    return d.link_latency_ns + (d.link_bytes_per_ns > 0 ? bytes / d.link_bytes_per_ns : 0);
  }

  // Moves clusters from the device to the fallback if they are too small, cost more than they gain, or split a group.
  // Returns true if any moved.
  bool flip(CompId c, bool entry, std::vector<Node>& nodes, const std::vector<ClusterPlan>& clusters) {
    if (!in_.fallback) return false;
    std::vector<std::string> why(clusters.size());
    if (!in_.ignore_costs) price(c, entry, nodes, clusters, why);
    std::unordered_set<uint32_t> torn;
    std::unordered_map<uint32_t, uint32_t> cluster_of_group;
    for (const Node& n : nodes) {
      const uint32_t group = in_.device.of(n.id).group;
      if (group == 0) continue;
      const uint32_t here = n.side == Side::Device && why[n.cluster].empty() ? n.cluster : COLLET_NONE;
      const auto [it, fresh] = cluster_of_group.try_emplace(group, here);
      if (!fresh && it->second != here) torn.insert(group);
    }
    bool any = false;
    for (Node& n : nodes) {
      if (n.side != Side::Device || !n.may_fall_back) continue;
      const bool alone = torn.contains(in_.device.of(n.id).group);
      if (!alone && why[n.cluster].empty()) continue;
      n.side = Side::Fallback;
      n.reason = alone ? "its group does not stay together" : why[n.cluster];
      any = true;
    }
    return any;
  }

  void price(CompId c, bool entry, const std::vector<Node>& nodes, const std::vector<ClusterPlan>& clusters,
             std::vector<std::string>& why) const {
    std::vector<double> device_ns(clusters.size()), fallback_ns(clusters.size()), now(clusters.size()),
        flipped(clusters.size());
    std::vector<uint32_t> ops(clusters.size());
    std::unordered_map<uint32_t, uint32_t> cluster_of;
    for (const Node& n : nodes) {
      cluster_of[hlo::index_of(n.id)] = n.cluster;
      device_ns[n.cluster] += n.device_ns;
      fallback_ns[n.cluster] += n.fallback_ns;
      ++ops[n.cluster];
    }
    for (uint32_t k = 0; k < clusters.size(); ++k)
      for (Leaf leaf : clusters[k].inputs) {
        const double ns = crossing_ns(static_cast<double>(leaf_bytes(m_, leaf)));
        const auto it = cluster_of.find(hlo::index_of(leaf.instr));
        if (it == cluster_of.end()) {
          if (entry && clusters[k].side == Side::Device) flipped[k] += ns;
          continue;
        }
        const Side from = clusters[it->second].side;
        (from == Side::Fallback ? now : flipped)[k] += ns;
        (clusters[k].side == Side::Fallback ? now : flipped)[it->second] += ns;
      }
    if (entry)
      for (Leaf leaf : hlo::leaves_of(m_, m_[c].root))
        if (const auto it = cluster_of.find(hlo::index_of(leaf.instr)); it != cluster_of.end())
          flipped[it->second] += crossing_ns(static_cast<double>(leaf_bytes(m_, leaf)));
    for (uint32_t k = 0; k < clusters.size(); ++k) {
      if (clusters[k].side != Side::Device) continue;
      const double stays = device_ns[k] + device_speed_.launch_ns + now[k];
      const double goes = fallback_ns[k] + fallback_speed_.launch_ns + flipped[k];
      if (ops[k] < in_.device_facts.smallest_cluster)
        why[k] = "a cluster of " + std::to_string(ops[k]) + " ops is too small for the device";
      else if (stays > goes && now[k] > 0)
        why[k] =
            "not worth the way: " + whole_ns(stays) + " ns there and back, " + whole_ns(goes) + " ns on the fallback";
      else if (stays > 2 * goes)
        why[k] = "slower than on the fallback";
    }
  }

  // Returns an error if a group is split, which cannot be avoided without a fallback.
  Status check_groups(const std::vector<Node>& nodes) const {
    std::unordered_map<uint32_t, uint32_t> cluster_of_group;
    for (const Node& n : nodes) {
      const uint32_t group = in_.device.of(n.id).group;
      if (group == 0 || n.side != Side::Device) continue;
      const auto [it, fresh] = cluster_of_group.try_emplace(group, n.cluster);
      if (!fresh && it->second != n.cluster)
        return unimplemented("instruction '" + std::string(m_[n.id].name) + "' belongs to a group that " +
                             in_.device_name + " takes whole or not at all, and that cannot stay together");
    }
    return ok_status();
  }

  const PartitionInput& in_;
  const Module& m_;
  Speed device_speed_, fallback_speed_;
  Partition out_;
};

}  // namespace

std::string_view side_name(Side side) {
  switch (side) {
    case Side::Device:
      return "device";
    case Side::Fallback:
      return "fallback";
    default:
      return "host";
  }
}

Expected<Partition> partition(const PartitionInput& input) {
  return Partitioner(input).run();
}

}  // namespace collet::runtime
