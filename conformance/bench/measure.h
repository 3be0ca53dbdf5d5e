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
  std::string family;  ///< cases of one family are summarised together
  std::string what;    ///< description for readers
  /// Number of operations of its definition, a multiply-add counts as two; negative: the runtime's estimate is used.
  double flops = -1;
  Entry entry;
};

/// Returns the predefined cases.
const std::vector<Case>& cases();

/// The comparison to make.
struct Request {
  std::string backend = "cpu";  ///< name or path of the backend
  std::string against;          ///< another backend to compare with; empty: none
  /// Options specific to the backend; not passed to `against`.
  std::vector<std::pair<std::string, std::string>> options = {};
  std::vector<Case> cases = {};  ///< empty: the predefined cases
  std::string filter;            ///< part of a case's name; empty: all
  /// Number of samples of each program; the median is reported.
  uint32_t repeat = 15;
  bool no_fallback = false;  ///< for both backends
  bool unfused = true;       ///< measure unfused execution too
  /// Known limits of a device that is not the host; 0 means that they are measured on the host.
  double peak_flops_per_ns = 0, peak_bytes_per_ns = 0;
  /// Called at intervals: how much of the total is done, and what is running.
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
};

/// The times of one program.
struct Timing {
  double median_ns = 0;            ///< time of one execution
  double low_ns = 0, high_ns = 0;  ///< the quartiles
  uint32_t device_ops = 0, fallback_ops = 0, kernels = 0;
  uint64_t traffic_bytes = 0;  ///< bytes of memory traffic, as the backend counts them; 0: unknown
  double estimated_ns = 0;     ///< of one execution, as the backend's compiler estimates it; 0: unknown
  double energy_nj = 0;        ///< likewise
  uint64_t cycles = 0;         ///< likewise
  uint64_t compile_ns = 0;
  std::string error;  ///< if not empty, the program did not run, and the other fields are zero
  bool ran() const { return error.empty(); }
};

/// The measurements of one case.
struct Result {
  std::string name, family;
  double flops = 0;
  uint64_t read_bytes = 0, written_bytes = 0;  ///< bytes of arguments and results, which must at least be moved
  /// The machine's lower limit: the longer of the time to move these bytes and the time to compute `flops`.
  double limit_ns = 0;
  bool compute_bound = false;    ///< true if computing takes longer than moving
  Timing fused, unfused, other;  ///< `other` is set only if there is another backend to compare with
  /// How the programs' results differ; empty if they agree within a tolerance relative to the largest value.
  std::string differs;
  double of_limit() const { return fused.median_ns > 0 ? limit_ns / fused.median_ns : 0; }
};

/// The cases of one family that ran.
struct FamilySummary {
  std::string family;
  size_t cases = 0, ran = 0;
  double of_limit = 0;  ///< geometric mean over the cases
  /// Geometric mean of the other backend's time divided by this one's; 0: nothing to compare with.
  double against = 0;
};

/// One case of an earlier run.
struct BaselineCase {
  std::string name;
  double median_ns = 0, of_limit = 0;
};
/// An earlier run, read from the output of to_json.
struct BaselineRun {
  std::string backend, vectors;
  uint32_t threads = 0;
  std::vector<BaselineCase> cases;
  /// Returns the case of this name; null if there is none, or it did not run.
  const BaselineCase* find(const std::string& name) const;
};

/// The results of all cases. All programs run in one process, and their samples alternate.
struct Report {
  Request request;
  std::string backend, against;  ///< names of the backends
  /// True if unfused execution used the backend's option "fuse" to turn fusion off; a backend without this option was
  /// only given no fusion groups.
  bool told_not_to_fuse = false;
  Peak peak;
  std::vector<Result> results;
  /// Returns summaries of the families, in the order in which they first appear.
  std::vector<FamilySummary> families() const;
};

/// Runs the measurements. Returns an error if the backend cannot be opened or no case has such a name; a case that does
/// not run is listed in the report.
Expected<Report> measure(const Request& request);

/// Returns the number of threads that a run with these options uses: the backend's option "threads" if it is given,
/// else all threads.
uint32_t thread_count(const BackendOptions& options);

/// The bandwidth for data of this size, half of which is read and half written.
struct Bandwidth {
  uint64_t bytes = 0;
  double bytes_per_ns = 0;
};
/// The machine's limits for a number of threads: the peak speed, and the bandwidth for growing sizes of data, from the
/// nearest cache to memory.
struct Limits {
  Peak peak;
  std::vector<Bandwidth> bandwidth;
};
Limits measure_limits(uint32_t threads);

std::string to_json(const Report& report);
std::string to_json(const Limits& limits);
/// Reads the output of to_json; `name` is for messages.
Expected<BaselineRun> read_baseline(const std::string& name, const std::string& text);

}  // namespace collet::bench
