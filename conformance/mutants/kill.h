// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"

/// \file
/// The suite's test of itself: mutants are backends that are wrong on purpose; each must fail some case of its op.

namespace collet::conformance {

struct KillOptions {
  std::vector<std::string> filters;  ///< globs over names of mutants; none: all
  unsigned jobs = 1;                 ///< worker processes for each
  std::string corpus = {};           ///< a folder of StableHLO's self-checking modules; empty: none
  ProgressFunction progress;
};

struct Kill {
  std::string mutant;
  std::string_view group;
  std::string by = {};           ///< the case that failed; empty for a survivor
  bool by_quick = false;         ///< a case of the profile quick
  bool legal = false;            ///< a right backend of another kind, that must survive
  std::string_view reason = {};  ///< why a survivor is no other backend than a right one; empty where none is known
  /// The mutation is one of kernels, so that it stands for a mutant of the evaluator as well: the case in whose answer the evaluator has no
  /// part, or the entry of the corpus, that fails then.
  bool of_evaluator = false;
  std::string by_oracle = {}, by_corpus = {};
  /// Whether it is a mutant of the evaluator that is not seen and not equivalent.
  bool evaluator_survives() const { return of_evaluator && by_oracle.empty() && by_corpus.empty() && reason.empty(); }
};

struct KillReport {
  std::vector<Kill> mutants;
  double seconds = 0;
  /// Whether each survivor has a reason in the list of equivalent mutants, and no mutant of that list was killed.
  bool good() const;
};

std::vector<std::string> chosen_mutants(const KillOptions& options);
/// Runs each mutant in front of the interpreter. The error: this build has no mutants, or no name matches.
Expected<KillReport> run_mutants(const KillOptions& options);
/// A row for each group, the survivors, and a last line with the verdict.
std::string kill_text(const KillReport& report);

}  // namespace collet::conformance
