// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/bench/limits.h"
#include "hlo/base/status.h"

namespace collet::bench {

/// A program to measure. `flops` counts what its definition asks for, a multiply-add as two.
struct Case {
  const char* name;
  const char* what;
  double flops;
  const char* program;
};

/// The cases that ship.
const std::vector<Case>& cases();

/// What is compared.
struct Request {
  std::string backend = "cpu";                                    ///< name or path
  std::string against;                                            ///< another backend; empty: none
  std::vector<std::pair<std::string, std::string>> options = {};  ///< of the backend's own; not for `against`
  std::string filter;                                             ///< part of a case's name; empty: all
  uint32_t repeat = 15;                                           ///< samples of each contestant; the median counts
  bool no_fallback = false;                                       ///< for both backends
  /// Called now and then: how much of how many is done, and with what.
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
};

/// How one contestant fared.
struct Timing {
  double median_ns = 0;            ///< of one execution
  double low_ns = 0, high_ns = 0;  ///< the quartiles
  uint32_t device_ops = 0, fallback_ops = 0, kernels = 0;
  uint64_t traffic_bytes = 0;  ///< as the backend counts it; 0: unknown
  std::string error;           ///< not empty: it did not run, and the rest is zero
  bool ran() const { return error.empty(); }
};

/// What was found for one case.
struct Result {
  const Case* which = nullptr;
  uint64_t read_bytes = 0, written_bytes = 0;  ///< arguments and results: what must move at least
  double limit_ns = 0;                         ///< the machine's own: the longer of moving that and computing `flops`
  bool compute_bound = false;                  ///< which of the two it is
  Timing fused, unfused, other;                ///< `other` only where there is one to compare with
  bool agrees = true;                          ///< the contestants' results, to 1e-3 of the largest
};

/// Everything, in one process: the contestants take turns.
struct Report {
  Request request;
  std::string backend, against;  ///< names
  /// The backend was told not to fuse, by its option "fuse"; without one it only got no fusions proposed.
  bool told_not_to_fuse = false;
  Peak peak;
  std::vector<Result> results;
};

/// Measures. An error where the backend cannot be opened or no case has such a name; a case that does not run is in the report.
Expected<Report> measure(const Request& request);

}  // namespace collet::bench
