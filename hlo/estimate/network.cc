// SPDX-License-Identifier: Apache-2.0
#include "hlo/estimate/network.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace collet::hlo::estimate {
namespace {

/// How `n` devices of a level exchange data.
struct Lanes {
  double bytes_per_ns = 0;  ///< of one device
  double messages = 0;      ///< one after another, of an algorithm that moves (n - 1) / n
};

Lanes lanes_of(const Machine& machine, const NetworkLevel& level, int64_t n) {
  const double link = level.bytes_per_ns * machine.network_efficiency / level.oversubscription;
  const auto count = static_cast<double>(n);
  if (level.topology == Topology::Ring) return {2 * link, count - 1};
  if (level.topology == Topology::Switch) return {link, std::ceil(std::log2(count))};
  // The dimensions that so many devices fill, from the innermost on.
  double links = 0, messages = 0;
  int64_t left = n;
  for (size_t d = level.torus.size(); d-- > 0 && left > 1;) {
    const int64_t size = std::min(level.torus[d], left);
    if (size > 1) links += 2;
    messages += static_cast<double>(size - 1);
    left = (left + size - 1) / size;
  }
  return {link * std::max(links, 2.0), messages};
}

// The part of the data that a link carries in an all-to-all among n devices of a level.
double all_to_all_share(const NetworkLevel& level, int64_t n) {
  const auto count = static_cast<double>(n);
  if (level.topology == Topology::Switch) return (count - 1) / count;
  // Half of the data cross the middle of a ring, over two links in each direction; a torus divides them among its longest
  // dimension's rings.
  const double longest = level.topology == Topology::Ring
                             ? count
                             : static_cast<double>(*std::max_element(level.torus.begin(), level.torus.end()));
  return std::max((count - 1) / count, std::min(count, longest) / 4);
}

}  // namespace

Span span_of(const Machine& machine, std::span<const int64_t> group) {
  Span out;
  int64_t product = 1, below = 1;
  for (size_t l = 0; l < machine.network.size(); ++l) {
    const int64_t size = machine.network[l].devices;
    std::set<int64_t> seen;
    for (const int64_t device : group) seen.insert(size > 0 ? device / below % size : device / below);
    out.push_back(std::max<int64_t>(static_cast<int64_t>(seen.size()), 1));
    product *= out.back();
    if (size > 0) below = device_product(below, size);
  }
  const auto members = static_cast<int64_t>(group.size());
  // What is no product has its remainder in the outermost level where the members differ.
  for (size_t l = out.size(); l-- > 0 && product > members && members > 0;) {
    if (out[l] == 1) continue;
    product /= out[l];
    out[l] = std::max<int64_t>(2, (members + product - 1) / product);
    product *= out[l];
    break;
  }
  return out;
}

CollectiveTime collective_time(const Machine& machine, const Span& span, const Transfer& transfer) {
  CollectiveTime out;
  double most = 0, members = 1;
  for (const int64_t n : span) members *= static_cast<double>(n);
  const auto add = [&](size_t l, double bytes, double messages, double bytes_per_ns) {
    const double latency = messages * machine.network[l].latency_ns, ns = latency + bytes / bytes_per_ns;
    out.ns += ns;
    out.latency_ns += latency;
    if (ns > most) {
      most = ns;
      out.level = l;
    }
  };
  // The bytes that each device has before the innermost level of an all-gather is done, and after it.
  const auto gather = [&](double result) {
    double have = result / members;
    for (size_t l = span.size(); l-- > 0;) {
      if (span[l] < 2) continue;
      const auto n = static_cast<double>(span[l]);
      const Lanes lanes = lanes_of(machine, machine.network[l], span[l]);
      add(l, (n - 1) * have, lanes.messages, lanes.bytes_per_ns);
      have *= n;
    }
  };
  double rest = transfer.bytes;
  switch (transfer.op) {
    case Op::ALL_GATHER:
      gather(transfer.bytes);
      break;
    case Op::REDUCE_SCATTER:
      gather(transfer.bytes);
      break;
    case Op::ALL_REDUCE:
      gather(transfer.bytes);
      gather(transfer.bytes);
      break;
    case Op::ALL_TO_ALL:
    case Op::RAGGED_ALL_TO_ALL:
      for (size_t l = span.size(); l-- > 0;) {
        if (span[l] < 2) continue;
        const NetworkLevel& level = machine.network[l];
        const double link = level.bytes_per_ns * machine.network_efficiency / level.oversubscription;
        add(l, rest * all_to_all_share(level, span[l]), 1, link);
        rest /= static_cast<double>(span[l]);
      }
      break;
    default:  // a permutation or broadcast, in the outermost level that the members differ in
      for (size_t l = span.size(); l-- > 0;) {
        if (span[l] < 2) continue;
        const Lanes lanes = lanes_of(machine, machine.network[l], span[l]);
        const NetworkLevel& level = machine.network[l];
        const bool is_broadcast = transfer.op == Op::COLLECTIVE_BROADCAST;
        add(l, transfer.bytes, is_broadcast ? lanes.messages : 1,
            level.bytes_per_ns * machine.network_efficiency / level.oversubscription);
        if (!is_broadcast) break;
      }
  }
  return out;
}

}  // namespace collet::hlo::estimate
