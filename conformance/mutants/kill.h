// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"

/// \file
/// Tests the conformance suite itself by mutants, which are backends with a known defect: each mutant must fail some
/// case of its op.

namespace collet::conformance {

struct KillOptions {
  std::vector<std::string> filters;  ///< glob patterns for names of mutants; none: all
  unsigned jobs = 1;                 ///< number of worker processes per mutant
  std::string corpus = {};           ///< folder of StableHLO's self-checking modules; empty: none
  ProgressFunction progress;
};

struct Kill {
  std::string mutant;
  std::string_view group;
  std::string by = {};           ///< the case that failed; empty for a survivor
  bool by_quick = false;         ///< it is a case of the profile quick
  bool legal = false;            ///< the mutant is a correct backend with other permitted results, and must survive
  std::string_view reason = {};  ///< why a survivor is equivalent to a correct backend; empty if not known
  /// True if the mutation is one of kernels, so that it also simulates a fault of the evaluator. Then by_oracle is a
  /// failing case whose expected results do not come from the evaluator, or by_corpus a failing entry of the corpus.
  bool of_evaluator = false;
  std::string by_oracle = {}, by_corpus = {};
  /// True if it simulates a fault of the evaluator that is not detected and is not equivalent.
  bool evaluator_survives() const { return of_evaluator && by_oracle.empty() && by_corpus.empty() && reason.empty(); }
};

struct KillReport {
  std::vector<Kill> mutants;
  double seconds = 0;
  /// True if each survivor has a reason in the list of equivalent mutants, and no mutant of that list was detected.
  bool good() const;
};

std::vector<std::string> chosen_mutants(const KillOptions& options);
/// Runs the suite against each mutant of the interpreter. Returns an error if this build has no mutants, or no name
/// matches.
Expected<KillReport> run_mutants(const KillOptions& options);
/// Returns a table with a row for each group, the survivors, and a last line with the verdict.
std::string kill_text(const KillReport& report);
/// Returns the same as JSON: whether all is as it should be, and of each mutant what has killed it.
std::string kill_json(const KillReport& report);

}  // namespace collet::conformance
