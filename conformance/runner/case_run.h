// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "conformance/runner/conform.h"
#include "conformance/runner/explain_failures.h"
#include "conformance/runner/journal.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// Counts consecutive failures with equal messages.
class RepeatedFailures {
 public:
  explicit RepeatedFailures(size_t most) : most_(most) {}
  void note(const CaseResult& one);
  bool enough() const { return most_ > 0 && count_ >= most_; }
  std::string text() const;

 private:
  size_t most_, count_ = 0;
  std::string detail_;
  Outcome outcome_ = Outcome::Pass;
};

/// Runs cases in workers and records their results, in a journal and in a report, until all have run or the run is to end.
class CaseRun {
 public:
  /// What the arguments refer to must outlive the run. `report` has what is said of the backend, and gets a result for each case.
  CaseRun(const ConformOptions& options, const std::vector<Case>& cases, PoolOptions& pool, Journal& journal,
          ConformReport& report);

  /// The cases that the journal does not have, by number: those of the contract, which use the plugin's table, and the others.
  const std::vector<size_t>& contracts() const { return contracts_; }
  const std::vector<size_t>& programs() const { return programs_; }

  /// Runs contracts() by workers with these arguments.
  Status run_contracts(const std::vector<std::string>& arguments);
  /// Runs programs(), in batches first if the options ask for them.
  Status run_programs();
  /// Returns why the run is to end before all cases have run; empty if it is not.
  std::string ended() const;

  bool has_run(size_t i) const { return ran_[i]; }
  const RanBefore& ran_before() const { return ran_before_; }

 private:
  struct Batch {
    std::vector<size_t> cases;  ///< numbers of its cases
  };

  double seconds_for(const Case& one) const;
  void set(size_t i, Fields fields);
  /// Returns what the case is made of, as a hash: a line of a journal belongs to a case of the same one.
  std::string digest_of(size_t i) const;
  /// Takes the outcome of a case. `before`: cases that the same process had run, the latest first.
  void record(size_t i, const Fields& fields, const std::vector<std::string>& before);
  void show_progress(const std::string& name);
  /// Takes how a worker ended that was closed after its cases, of which `i` was the last.
  void take_end(size_t i, const TaskResult& end);
  Status run_alone(const std::vector<size_t>& chosen);
  Status run_batches(std::vector<size_t>& chosen);
  void take_batch(const Batch& batch, const TaskResult& task);
  /// Where no case of a batch fails alone, those that failed in it are the only sign of what is wrong.
  void judge_batches();

  using Clock = std::chrono::steady_clock;

  const ConformOptions& options_;
  const std::vector<Case>& cases_;
  PoolOptions& pool_;
  Journal& journal_;
  ConformReport& report_;
  std::vector<size_t> contracts_, programs_;
  std::vector<bool> ran_;
  std::vector<Batch> batches_;
  std::map<size_t, std::string>
      wrong_in_batch_;  ///< case that failed in a batch -> names of the cases of that, one in a line
  RepeatedFailures alike_;
  RanBefore ran_before_;
  Clock::time_point fuzz_start_ = Clock::now();
  size_t done_ = 0, failures_ = 0, hangs_ = 0, crashes_ = 0, ended_cases_ = 0;
};

}  // namespace collet::conformance
