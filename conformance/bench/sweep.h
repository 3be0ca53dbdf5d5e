// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/bench/bench_program.h"
#include "conformance/bench/sweep_families.h"
#include "hlo/base/status.h"

/// \file
/// Finds cliffs: sweeps each parameter of each family of programs while the others keep their values, and reports where the cost of a
/// useful operation, or the temporary memory, jumps.

namespace collet::bench {

struct SweepRequest {
  std::string backend = "cpu";
  BackendOptions options = {};
  bool no_fallback = false;
  std::vector<std::string> families = {};  ///< names; empty: all
  bool fixed = false;                      ///< only the parameters of the fixed part
  double limit_s = 20;                     ///< a program that takes longer, with its compilation, is stopped
  double seconds = 0.05;                   ///< measuring time of a program
  /// Called at intervals: how many programs are done, and what is running.
  std::function<void(size_t done, size_t total, const std::string& what)> progress = {};
};

/// The measurement of one program.
struct SweepPoint {
  std::string parameter, value;  ///< what was set; both empty for the usual values
  SweepProgram program;
  std::string error = {};  ///< if not empty, it did not run, and what follows is zero
  double ns = 0;           ///< shortest time of an execution
  double least_ns =
      0;  ///< the machine's time for the useful operations, or to move arguments and results, and for a call
  uint64_t bytes = 0;            ///< of arguments and results
  uint64_t temporary_bytes = 0;  ///< most memory beside them during the first execution
  bool ran() const { return error.empty(); }
  /// Cost of a useful operation, as a multiple of the machine's.
  double cost() const { return least_ns > 0 ? ns / least_ns : 0; }
  /// Temporary memory by byte of arguments and results, in which one MiB is free.
  double memory() const;
};

/// One family's points, and for each parameter their indices in the order of its values.
struct SweepSeries {
  std::string family;
  std::vector<SweepPoint> points;
  std::vector<std::pair<std::string, std::vector<size_t>>> parameters;
  double median_cost() const;
  double median_memory() const;
};

/// A jump, or a program that did not run.
struct SweepFinding {
  enum class Kind { Cost, Memory, Failure };
  Kind kind = Kind::Cost;
  std::string family, parameter, value;  ///< the program that costs more
  std::string than;                      ///< the neighbouring value; empty: the family's median
  double factor = 0;
  size_t point = 0;
};

constexpr double kNeighbourJump = 3, kMedianJump = 5;
/// The fixed part runs beside other tests, so its jumps are this many times larger.
constexpr double kFixedJump = 2;

/// Returns the jumps between neighbours and against the family's median, `larger` times the sizes above; of a program, the largest of each kind.
std::vector<SweepFinding> find_jumps(const SweepSeries& series, double larger = 1);

struct SweepReport {
  std::string backend;
  uint32_t threads = 0;
  double seconds = 0;
  std::vector<SweepSeries> families;
  std::vector<SweepFinding> findings;
};

/// Each program runs in a process of its own, which is made by fork: the caller must have no other threads. A program whose
/// measurement gives a finding is measured up to four times more, and its best time counts.
Expected<SweepReport> sweep(const SweepRequest& request);

std::string to_json(const SweepReport& report);
/// Returns "convolution window=15: 4.2 times the cost of window=11".
std::string to_string(const SweepFinding& finding);

}  // namespace collet::bench
