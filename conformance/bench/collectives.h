// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/processes.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/session.h"
#include "hlo/base/status.h"

/// \file
/// Measures collectives of f32 arrays over several processes and devices, beside the transport's own collectives and the loopback.

namespace collet::bench {

enum class Collective : uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Permute, Broadcast };
inline constexpr std::array kCollectives{Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter,
                                         Collective::AllToAll,  Collective::Permute,   Collective::Broadcast};
/// Returns the name of its HLO op: "all-reduce".
std::string_view name_of(Collective what);
/// Returns by what nccl-tests multiply the algorithm bandwidth to get the bus bandwidth: the bytes that each of `participants`
/// sends, by the bytes of the larger array. All-reduce: 2 (n - 1) / n; permute and broadcast: 1; others: (n - 1) / n.
double bus_factor(Collective what, uint32_t participants);

/// The transport of a group: Collet's collectives are made of its messages.
struct MeasuredTransport {
  std::string name = {};
  const collet_transport* table = nullptr;
  collet_transport_collective_fn collective = nullptr;  ///< its own collectives; null: none
  std::string address = {};                             ///< at which this process is reached
  uint32_t timeout_ms = 0;                              ///< longest wait for another process
};

struct CollectiveRequest {
  conformance::BackendChoice backend;
  /// The group whose process this is; null: this process alone.
  const collet_processes* group = nullptr;
  MeasuredTransport transport = {};  ///< of the group
  uint64_t least_bytes = 4,
           most_bytes = uint64_t{64} << 20;  ///< of the larger array; four times as many from row to row
  std::string filter = {};                   ///< only collectives with this in their name
  unsigned repeat = 15;                      ///< samples; medians are reported
  std::function<void(size_t done, size_t total, std::string_view name)> progress = {};
};

/// Nanoseconds of a call: the median of the samples, each the longest of all processes, and the quartiles.
struct CollectiveTime {
  double median_ns = 0, low_ns = 0, high_ns = 0;
  bool ran() const { return median_ns > 0; }
};

struct CollectiveResult {
  Collective what = Collective::AllReduce;
  uint64_t bytes = 0;        ///< of the larger of argument and result of a participant
  CollectiveTime ours = {};  ///< a run of a program of this collective alone
  CollectiveTime own = {};   ///< the transport's own one, of one array a process
  double limit_ns = 0;       ///< what the limit takes for the bytes that a participant sends
  std::string differs = {};  ///< where the results are wrong
  double bytes_per_ns(const CollectiveTime& time) const;
};

struct CollectiveReport {
  std::string backend, transport;       ///< `transport`: empty in one process
  uint32_t processes = 1, devices = 1;  ///< `devices`: of each process
  unsigned repeat = 0;
  /// The limit: one way of 4 bytes, and the bandwidth of a stream. Several processes: a TCP connection over the loopback between
  /// processes 0 and 1. One process: copies of memory by one thread.
  double limit_latency_ns = 0, limit_bytes_per_ns = 0;
  std::vector<CollectiveResult> results;
  uint32_t participants() const { return processes * devices; }
};

/// Measures. All processes of the group call it; that of process 0 returns the report, the others an empty one. An error names the
/// collective and the bytes.
Expected<CollectiveReport> measure_collectives(const CollectiveRequest& request);
std::string to_json(const CollectiveReport& report);

}  // namespace collet::bench
