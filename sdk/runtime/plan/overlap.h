// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

/// \file
/// Orders the clusters of a computation so that collectives over several processes run beside work that does not depend on them.

namespace collet::runtime {

/// The least estimated time of work that is done beside a collective. To give a collective to another thread and to wait for it
/// there costs about 6 us, in the fastest of many runs; estimates of work are often too high.
constexpr double kLeastBesideNs = 20'000;

/// An instruction, as far as its place among the clusters depends on it.
struct OverlapNode {
  std::vector<uint32_t> before;  ///< numbers of the nodes on which it depends; they stand before it
  uint32_t group = 0;            ///< nodes of one group, other than 0, stay in one cluster
  double cost_ns = 0;
  double bytes = 0;  ///< of its results
};

/// Nodes that run together.
struct OverlapCluster {
  std::vector<uint32_t> members;  ///< numbers of nodes, those on which others depend first
  bool may_move = false;          ///< it may run later, and may be split
  double exchange_ns = 0;         ///< of a collective over several processes: its estimated time; else 0
};

/// The costs of a device.
struct OverlapCosts {
  double launch_ns = 0;           ///< of one more cluster
  double bytes_per_ns = 1;        ///< with which the values that leave a cluster are written and read
  uint32_t smallest_cluster = 0;  ///< least number of nodes of a cluster
};

/// Returns the time of a collective of so many bytes over several processes, as far as it can be known without the network.
double exchange_ns(double bytes);

/// Returns the clusters in an order in which no work is done before a collective that the collective does not need. A cluster of
/// which a collective needs a part is split, if the time that this hides is worth the cost. The order of all clusters that may not
/// move remains.
std::vector<OverlapCluster> overlap(const std::vector<OverlapNode>& nodes, std::vector<OverlapCluster> clusters,
                                    const OverlapCosts& costs);

}  // namespace collet::runtime
