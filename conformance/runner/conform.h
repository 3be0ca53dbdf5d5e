// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/contract/uses.h"
#include "conformance/runner/session.h"
#include "conformance/runner/waivers.h"

/// \file
/// A conformance run: the selection of cases, the backend, the number of processes, and the results.

namespace collet::conformance {

enum class Outcome : uint8_t {
  Pass,
  Fail,
  Crash,
  Timeout,
  Unsupported,  ///< neither the backend nor a fallback supports the op
  Oracle        ///< the expected results could not be computed: a defect of the suite
};
std::string_view outcome_name(Outcome outcome);

/// Called when a case ends.
using ProgressFunction = std::function<void(size_t done, size_t total, std::string_view name)>;

struct CaseResult;
struct ConformOptions {
  BackendChoice backend;
  std::vector<std::string> filters;            ///< glob patterns for names; empty: all cases
  std::unordered_set<std::string> names = {};  ///< only cases with these names; empty: all cases
  uint32_t shard = 0, shards = 1;
  uint64_t seed = 0;
  bool full = false;                       ///< uses every shape for every type, and the generated grid of cases
  std::vector<std::string> profiles = {};  ///< only cases of one of these profiles; empty: all cases
  std::vector<std::string> claims = {};    ///< claimed profiles, in addition to those in its claims file
  /// Cases to run instead of the suite's: those of programs (cases_of_programs).
  std::vector<Case> cases = {};
  /// Cases in addition to the suite's: those of the patterns that the backend declares (cases_of_backend).
  std::vector<Case> declared = {};
  std::vector<Waiver> waivers = shipped_waivers();
  std::string case_file = {};    ///< for a worker: a file of `cases` (case_file.h)
  std::string beside = {};       ///< another backend, whose times of `cases` are measured too; empty: none
  double program_timeout = 120;  ///< seconds per case of a whole program
  std::string resume = {};       ///< a journal of results: a run continues from it and adds to it
  unsigned jobs = 1;
  double timeout = 20;  ///< seconds per case
  uint64_t memory_bytes = uint64_t{4} << 30;
  ProgressFunction progress;
  std::function<void(const CaseResult&)> failed;  ///< called for each failure when it happens
  /// The run ends after this number of consecutive failures with equal messages, because their cause is then not in the
  /// cases. 0: never.
  size_t most_alike = 50;
  /// If greater than 0: runs random programs for this time, from `seed` on, and no other cases.
  double fuzz_seconds = 0;
  /// If greater than 0: a soak test (soak.h) for this time in each worker, from `seed` on, and no other cases.
  double soak_seconds = 0;
  /// If greater than 0: runs the cases of programs whose participants are in so many processes, and no others. Each worker is a
  /// group of so many processes with backend.devices devices each.
  uint32_t processes = 0;
  int process = -1;        ///< for a process of such a group: its number
  std::string store = {};  ///< for a process of such a group: the folder through which they find each other
  /// If greater than 1: compiles so many cases as one program, and runs those alone that did not pass there. For backends whose compiler
  /// takes long for each program.
  unsigned batch = 1;
  bool stop_at_first = false;     ///< ends the run after the first failure
  bool independent_only = false;  ///< cases whose expected results come from the evaluator count as unsupported
  /// After the run, adds the programs of failures, a reduced program for the first failure of each op, and runs
  /// crashes again.
  bool explain = false;
};

struct CaseResult {
  std::string name;
  Op op = Op::INVALID;
  Type type = Type::Invalid;
  std::string pattern = {};  ///< pattern that the SDK finds in the program
  Outcome outcome = Outcome::Pass;
  std::string detail = {};
  std::string waiver = {};  ///< for a case that failed and counts as passed: the number of its waiver
  double ulp = 0;           ///< largest error in ULP
  double share = 0;         ///< largest error divided by the allowed error
  ErrorCounts errors = {};
  std::string evidence = {};  ///< for a wrong result: one line for each of a few elements, then the inputs
  std::string program = {};   ///< for a failure: its HLO text; for a contract case: its description
  std::string reduced = {};   ///< for the first failure of each op: a smaller program that fails too
  int64_t device_ops = 0, fallback_ops = 0;
  double seconds = 0;
  /// Parts of `seconds`: computing the expected results, and compiling, which is 0 if the case ran the program that another one with
  /// the same text had compiled.
  double answer_seconds = 0, compile_seconds = 0;
  /// For a case of a program that passed: seconds of one execution on the device, and on the backend `beside`; 0: not measured.
  double run_seconds = 0, beside_seconds = 0;
  bool is_independent = false;  ///< the expected results come from definitions and MPFR, not from the evaluator
};

/// Seconds of all worker processes together.
struct WorkerTimes {
  double contract = 0;  ///< in contract cases, compiling included
  double compile = 0;   ///< compiling the programs of the other cases
  double answer = 0;    ///< computing their expected results
  double run = 0;       ///< the rest: executions, copies, and judging
};

struct ConformReport {
  std::string backend, version, path, fallback;
  std::string revision = {};   ///< revision of the backend's sources, as the caller states it
  std::string declared;        ///< by number of the element type: '1' if the device declares it
  std::string machine;         ///< description of device 0, one line per property
  std::string interface = {};  ///< version of the interface that the backend was built with, such as 1.1
  uint32_t opset = 0;          ///< opset of the backend
  uint64_t seed = 0;
  bool full = false;
  std::vector<std::string> programs = {};  ///< the notes of cases_of_programs; empty for a run of the suite
  std::vector<std::string> unread = {};    ///< why other files of `from` could not be read
  std::vector<std::string> from = {};      ///< the paths of these programs, as the user names them
  /// By the name of a case: the one of `from` whose programs have it. A case that needs others of them as well has none.
  std::unordered_map<std::string, std::string> origins = {};
  /// What the user has stated besides, for the command that runs a case again: claims, the file of waivers, and the limits of a
  /// case's seconds and of a worker's MiB; 0: none.
  std::vector<std::string> told_claims = {};
  std::string told_waivers = {};
  double told_timeout = 0;
  uint64_t told_memory_mib = 0;
  Status not_kept = {};     ///< why results could not be kept in the file of ConformOptions::resume; OK if they were
  std::string beside = {};  ///< the backend of CaseResult::beside_seconds
  uint32_t processes = 0, devices = 0;  ///< of ConformOptions; 0: not a run over several processes
  bool whole = true;                    ///< true if all cases ran, without filter or shard
  bool of_all_names = true;             ///< true if there was no filter; there may be a shard
  double seconds = 0;
  std::vector<CaseResult> cases;
  size_t not_run = 0;                    ///< number of cases that did not run because the run was ended
  std::string ended = {};                ///< the reason
  std::vector<std::string> claims = {};  ///< profiles that the backend claims
  /// What the backend's library exports besides its entry: no failure, but a danger in a process with other libraries.
  std::vector<std::string> exports = {};
  Uses uses = {};  ///< questions to the device in all cases, and what ran there

  size_t count(Outcome outcome) const;
  /// Returns what the time of the worker processes was spent on.
  WorkerTimes worker_times() const;
  /// True if the device declares the element type.
  bool declares(Type type) const {
    const auto number = static_cast<size_t>(type);
    return number < declared.size() && declared[number] == '1';
  }
  /// True if a run without filters ran no op of any case on the device, because all were declined.
  bool nothing_on_device() const;
  /// True if all cases ran, none failed, crashed or hung, at least one passed, and the device has run something, also of each profile
  /// that is claimed.
  bool conforms() const;
};

/// Returns the cases that the options select. `with_programs`: also the many cases of the grid have their programs and
/// inputs.
std::vector<Case> chosen_cases(const ConformOptions& options, bool with_programs);
/// Returns the cases of the patterns that the backend declares. It is opened in a worker; a backend that cannot be opened has
/// none. An error names the pattern.
Expected<std::vector<Case>> cases_of_backend(const ConformOptions& options);
/// The cases of programs, made as the backend is offered these.
struct ProgramCases {
  std::vector<Case> cases;
  /// A line for each program: what it consists of, and ops without a case.
  std::vector<std::string> notes;
  std::vector<std::string> unread;                       ///< why files could not be read, one line or more for each
  std::unordered_map<std::string, std::string> origins;  ///< see ConformReport
};
/// Makes the cases of programs (find_programs) in a worker: each distinct op, fused group and pattern with the suite's
/// inputs and bounds, and each program as a whole. A file of cases (case_file.h) stands for the cases in it. A file that cannot
/// be read has no cases. An error means that a path is wrong or no worker started.
Expected<ProgramCases> cases_of_programs(const ConformOptions& options, const std::vector<std::string>& paths);
/// Returns the filters that no case matches.
std::vector<std::string> idle_filters(const ConformOptions& options);
/// Returns the SHA-256 of the selected cases: names, programs, kinds of inputs and bounds. It is equal in every build
/// of the same suite.
std::string suite_digest(const ConformOptions& options);
/// Returns the SHA-256 of a file; empty if it cannot be read.
std::string library_digest(const std::string& path);
/// Opens and describes the backend in a worker; returns a report without cases.
Expected<ConformReport> probe_backend(const ConformOptions& options);
/// Runs the selected cases. An error means that the backend could not be opened or that no worker started.
Expected<ConformReport> run_conformance(const ConformOptions& options);
/// Runs the worker process of run_conformance; returns its exit code.
int serve_conformance(const ConformOptions& options);
/// Returns the command line of a worker for the same backend and options.
std::vector<std::string> worker_arguments(const BackendChoice& backend);

}  // namespace collet::conformance
