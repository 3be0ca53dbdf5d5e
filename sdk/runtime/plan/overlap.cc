// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/overlap.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace collet::runtime {
namespace {

// Measured with Gloo over the loopback: 4 KiB take 0.14 ms, 64 MiB take 50 ms. Most networks are slower, so that what is hidden is
// estimated as too little rather than too much.
constexpr double kExchangeNs = 130'000;
constexpr double kExchangeBytesPerNs = 1.3;
// A cluster is split if that hides this many times what it costs, because both are estimates.
constexpr double kWorth = 2;

class Mover {
 public:
  Mover(const std::vector<OverlapNode>& nodes, const OverlapCosts& costs)
      : nodes_(nodes), costs_(costs), stays_(nodes.size()) {}

  // Moves what the collective at place `at` does not need behind it. Returns the place of the collective.
  size_t move_behind(std::vector<OverlapCluster>& clusters, size_t at) {
    std::fill(stays_.begin(), stays_.end(), false);
    double left_ns = clusters[at].exchange_ns;
    std::vector<OverlapCluster> before, moved;  // both from last to first
    for (size_t i = at + 1; i-- > 0;) {
      OverlapCluster& cluster = clusters[i];
      if (!cluster.may_move) {
        keep(cluster.members);
        before.push_back(std::move(cluster));
        continue;
      }
      keep_needed(cluster.members);
      auto [needed, others] = divide(cluster);
      const double hidden_ns = std::min(left_ns, cost(others.members));
      if (!needed.members.empty() && !is_worth(needed.members, others.members, hidden_ns)) {
        keep(cluster.members);
        before.push_back(std::move(cluster));
        continue;
      }
      left_ns -= hidden_ns;
      if (!needed.members.empty()) before.push_back(std::move(needed));
      if (!others.members.empty()) moved.push_back(std::move(others));
    }
    std::vector<OverlapCluster> out(std::make_move_iterator(before.rbegin()), std::make_move_iterator(before.rend()));
    out.insert(out.end(), std::make_move_iterator(moved.rbegin()), std::make_move_iterator(moved.rend()));
    out.insert(out.end(), std::make_move_iterator(clusters.begin() + static_cast<std::ptrdiff_t>(at) + 1),
               std::make_move_iterator(clusters.end()));
    clusters = std::move(out);
    return before.size() - 1;
  }

 private:
  // Notes that these nodes stay before the collective, and so does what they depend on.
  void keep(const std::vector<uint32_t>& members) {
    for (const uint32_t node : members) {
      stays_[node] = true;
      for (const uint32_t b : nodes_[node].before) stays_[b] = true;
    }
  }

  // Notes which members stay: all those on which one that stays depends, or which are in one group with it.
  void keep_needed(const std::vector<uint32_t>& members) {
    std::unordered_set<uint32_t> groups;
    for (bool again = true; std::exchange(again, false);)
      for (size_t i = members.size(); i-- > 0;) {
        const OverlapNode& node = nodes_[members[i]];
        if (!stays_[members[i]] && !groups.contains(node.group)) continue;
        stays_[members[i]] = true;
        again |= node.group != 0 && groups.insert(node.group).second;  // members that were passed may be in it
        for (const uint32_t b : node.before) stays_[b] = true;
      }
  }

  std::pair<OverlapCluster, OverlapCluster> divide(const OverlapCluster& cluster) const {
    OverlapCluster needed{{}, true, 0}, others{{}, true, 0};
    for (const uint32_t node : cluster.members) (stays_[node] ? needed : others).members.push_back(node);
    return {std::move(needed), std::move(others)};
  }

  double cost(const std::vector<uint32_t>& members) const {
    double out = 0;
    for (const uint32_t node : members) out += nodes_[node].cost_ns;
    return out;
  }

  bool is_worth(const std::vector<uint32_t>& needed, const std::vector<uint32_t>& others, double hidden_ns) const {
    if (std::min(needed.size(), others.size()) < std::max<size_t>(costs_.smallest_cluster, 1)) return false;
    const std::unordered_set<uint32_t> first(needed.begin(), needed.end());
    std::unordered_set<uint32_t> crossing;
    for (const uint32_t node : others)
      for (const uint32_t b : nodes_[node].before)
        if (first.contains(b)) crossing.insert(b);
    double bytes = 0;
    for (const uint32_t node : crossing) bytes += nodes_[node].bytes;
    const double split_ns = costs_.launch_ns + 2 * bytes / costs_.bytes_per_ns;  // written, and read
    return hidden_ns > std::max(kWorth * split_ns, kLeastBesideNs);
  }

  const std::vector<OverlapNode>& nodes_;
  const OverlapCosts& costs_;
  std::vector<bool> stays_;
};

}  // namespace

double exchange_ns(double bytes) {
  return kExchangeNs + bytes / kExchangeBytesPerNs;
}

std::vector<OverlapCluster> overlap(const std::vector<OverlapNode>& nodes, std::vector<OverlapCluster> clusters,
                                    const OverlapCosts& costs) {
  Mover mover(nodes, costs);
  // What is moved behind one collective may be moved behind the next one as well.
  for (size_t at = 0; at < clusters.size(); ++at)
    if (clusters[at].exchange_ns > 0) at = mover.move_behind(clusters, at);
  return clusters;
}

}  // namespace collet::runtime
