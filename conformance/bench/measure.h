// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/bench/bench_program.h"
#include "conformance/bench/limits.h"
#include "hlo/base/status.h"

namespace collet::bench {

/// A program to measure.
struct Case {
  std::string name;
  std::string family;  ///< those of one family are summarised together
  std::string what;    ///< for people
  /// The operations of its definition, a multiply-add as two; below 0: the runtime's estimate.
  double flops = -1;
  Entry entry;
};

/// The cases that ship.
const std::vector<Case>& cases();

/// The comparison to make.
struct Request {
  std::string backend = "cpu";                                    ///< name or path
  std::string against;                                            ///< another backend; empty: none
  std::vector<std::pair<std::string, std::string>> options = {};  ///< of the backend's own; not for `against`
  std::vector<Case> cases = {};                                   ///< empty: those that ship
  std::string filter;                                             ///< part of a case's name; empty: all
  uint32_t repeat = 15;                                           ///< samples of each program; the median counts
  bool no_fallback = false;                                       ///< for both backends
  bool unfused = true;                                            ///< measure unfused execution too
  /// Limits that are known, of a device that is not the host: 0 means measured on the host.
  double peak_flops_per_ns = 0, peak_bytes_per_ns = 0;
  /// Called now and then: how much of how many is done, and with what.
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
};

/// The times of one program.
struct Timing {
  double median_ns = 0;            ///< of one execution
  double low_ns = 0, high_ns = 0;  ///< the quartiles
  uint32_t device_ops = 0, fallback_ops = 0, kernels = 0;
  uint64_t traffic_bytes = 0;  ///< as the backend counts it; 0: unknown
  uint64_t compile_ns = 0;
  std::string error;  ///< not empty: it did not run, and the rest is zero
  bool ran() const { return error.empty(); }
};

/// The measurements of one case.
struct Result {
  std::string name, family;
  double flops = 0;
  uint64_t read_bytes = 0, written_bytes = 0;  ///< arguments and results: what must move at least
  double limit_ns = 0;                         ///< the machine's own: the longer of moving that and computing `flops`
  bool compute_bound = false;                  ///< which of the two it is
  Timing fused, unfused, other;                ///< `other` only where there is one to compare with
  std::string differs;  ///< how the programs' results differ; empty: they agree, to a share of the largest
  double of_limit() const { return fused.median_ns > 0 ? limit_ns / fused.median_ns : 0; }
};

/// The cases of one family that ran.
struct FamilySummary {
  std::string family;
  size_t cases = 0, ran = 0;
  double of_limit = 0;  ///< geometric mean
  double against = 0;   ///< geometric mean of the other's time divided by ours; 0: nothing to compare with
};

/// One case of an earlier run.
struct BaselineCase {
  std::string name;
  double median_ns = 0, of_limit = 0;
};
/// An earlier run, as to_json wrote it.
struct BaselineRun {
  std::string backend, vectors;
  uint32_t threads = 0;
  std::vector<BaselineCase> cases;
  /// Null where there is none of this name that ran.
  const BaselineCase* find(const std::string& name) const;
};

/// Everything, in one process: the programs take turns.
struct Report {
  Request request;
  std::string backend, against;  ///< names
  /// The backend was told not to fuse, by its option "fuse"; without one it only got no fusions proposed.
  bool told_not_to_fuse = false;
  Peak peak;
  std::vector<Result> results;
  /// In the order in which the families first appear.
  std::vector<FamilySummary> families() const;
};

/// Measures. An error where the backend cannot be opened or no case has such a name; a case that does not run is in the report.
Expected<Report> measure(const Request& request);

/// The threads that a run with these options uses: those of the backend's option "threads", where there is one, else all.
uint32_t thread_count(const BackendOptions& options);

/// The bandwidth of what lies in so many bytes, half of it read and half written.
struct Bandwidth {
  uint64_t bytes = 0;
  double bytes_per_ns = 0;
};
/// The machine's limits for so many threads: the peak, and the bandwidth of growing sizes, from the nearest cache to memory.
struct Limits {
  Peak peak;
  std::vector<Bandwidth> bandwidth;
};
Limits measure_limits(uint32_t threads);

std::string to_json(const Report& report);
std::string to_json(const Limits& limits);
/// Reads what to_json wrote; `name` is for messages.
Expected<BaselineRun> read_baseline(const std::string& name, const std::string& text);

}  // namespace collet::bench
