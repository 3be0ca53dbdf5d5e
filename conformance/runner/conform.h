// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/contract/uses.h"
#include "conformance/runner/session.h"

/// \file
/// A conformance run: which cases, on which backend, in how many processes; and what came of it.

namespace collet::conformance {

enum class Outcome : uint8_t {
  Pass,
  Fail,
  Crash,
  Timeout,
  Unsupported,  ///< neither the backend nor a fallback takes the op
  Oracle        ///< the case could not be evaluated: a defect of the suite
};
std::string_view outcome_name(Outcome outcome);

/// Told as cases end.
using ProgressFunction = std::function<void(size_t done, size_t total, std::string_view name)>;

struct CaseResult;
struct ConformOptions {
  BackendChoice backend;
  std::vector<std::string> filters;            ///< globs over names; none: everything
  std::unordered_set<std::string> names = {};  ///< only cases of these names; none: everything
  uint32_t shard = 0, shards = 1;
  uint64_t seed = 0;
  bool full = false;                       ///< every shape for every type, and the grid
  std::vector<std::string> profiles = {};  ///< only cases of one of these; none: everything
  std::vector<std::string> claims = {};    ///< profiles that the backend claims, beside those of its own file
  std::string resume = {};                 ///< a file of results, to go on from and to add to
  unsigned jobs = 1;
  double timeout = 20;  ///< seconds a case
  uint64_t memory_bytes = uint64_t{4} << 30;
  ProgressFunction progress;
  std::function<void(const CaseResult&)> failed;  ///< told of each failure as it happens
  /// So many cases in a row that fail with the same words end the run: what fails is not the cases. 0: never.
  size_t most_alike = 50;
  double fuzz_seconds = 0;        ///< beyond 0: random programs for so long, from `seed` on, and no other cases
  bool stop_at_first = false;     ///< the first failure ends the run
  bool independent_only = false;  ///< cases in whose answers the evaluator has a part are unsupported
  bool explain =
      false;  ///< afterwards failures get their programs, the first of each op a smaller one, and crashes are run again
};

struct CaseResult {
  std::string name;
  Op op = Op::INVALID;
  Type type = Type::Invalid;
  std::string pattern = {};  ///< that the SDK finds in it
  Outcome outcome = Outcome::Pass;
  std::string detail = {};
  double ulp = 0;    ///< worst error
  double share = 0;  ///< of what is allowed
  ErrorCounts errors = {};
  std::string evidence = {};  ///< of a wrong result: a line for each of a few elements, then the inputs
  std::string program = {};   ///< of a failure, HLO text; of a contract case what it does
  std::string reduced = {};   ///< a smaller program that fails too, of the first failure of each op
  int64_t device_ops = 0, fallback_ops = 0;
  double seconds = 0;
  bool is_independent = false;  ///< judged by definitions and MPFR; the evaluator has no part in the answer
};

struct ConformReport {
  std::string backend, version, path, fallback;
  std::string revision = {};  ///< of the backend's sources, as the caller names it
  std::string declared;       ///< per element type, by its number: '1' where the device declares it
  std::string machine;        ///< what the backend says of device 0, a line each
  uint32_t opset = 0;         ///< of the backend
  uint64_t seed = 0;
  bool full = false;
  bool whole = true;         ///< of all cases, no filter or shard of them
  bool of_all_names = true;  ///< no filter; it may be a shard
  double seconds = 0;
  std::vector<CaseResult> cases;
  size_t not_run = 0;                    ///< cases that were left out when the run was ended
  std::string ended = {};                ///< why it was
  std::vector<std::string> claims = {};  ///< profiles that the backend claims
  Uses uses = {};                        ///< what the device was asked in all of them, and what ran there

  size_t count(Outcome outcome) const;
  /// Whether the device declares the element type.
  bool declares(Type type) const {
    const auto number = static_cast<size_t>(type);
    return number < declared.size() && declared[number] == '1';
  }
  /// Whether a run without filters ran no op of any case on the device: all were declined.
  bool nothing_on_device() const;
  /// All cases ran, none failed, crashed or hung, at least one passed, and the device has run something.
  bool conforms() const;
};

/// The cases that the options choose. `with_programs`: also those of the grid, which are many, have their programs and inputs.
std::vector<Case> chosen_cases(const ConformOptions& options, bool with_programs);
/// Those of the options' filters that no case matches.
std::vector<std::string> idle_filters(const ConformOptions& options);
/// SHA-256 of those cases: names, programs, kinds of inputs and bounds. It is the same in every build of the same suite.
std::string suite_digest(const ConformOptions& options);
/// SHA-256 of a file; empty where it cannot be read.
std::string library_digest(const std::string& path);
/// Asks a worker to open the backend and describe it: a report without cases.
Expected<ConformReport> probe_backend(const ConformOptions& options);
/// Runs them. The error means that the backend could not be opened or no worker started.
Expected<ConformReport> run_conformance(const ConformOptions& options);
/// The worker's side of run_conformance; an exit code.
int serve_conformance(const ConformOptions& options);
/// The command line that makes a worker of the same choice.
std::vector<std::string> worker_arguments(const BackendChoice& backend);

}  // namespace collet::conformance
