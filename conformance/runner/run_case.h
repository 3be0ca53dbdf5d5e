// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// The program of the last case of a process. Cases that differ by their inputs only have one text, and compiling is most of what
/// a case costs. It is kept as long as the cases pass, and released before another one is compiled.
struct KeptProgram {
  std::optional<Program> program = {};
  std::string text = {};  ///< the HLO text of the program
  std::string name = {};  ///< the last case that ran it
};

/// Options of run_case.
struct RunCaseOptions {
  bool independent_only = false;    ///< a case whose expected results come from the evaluator is unsupported
  const Session* beside = nullptr;  ///< another backend, whose time becomes the field beside_seconds; null: none
  KeptProgram* kept = nullptr;      ///< the program of the last case of this session; null: each case compiles
};

/// Runs a case on the session's backend and checks the results. Fields of the reply: status (pass, fail, unsupported,
/// oracle), detail, ulp, share, errors (counts of ErrorCounts), evidence, device_ops, fallback_ops, uses, independent
/// (1 if the expected results do not come from the evaluator), answer_seconds (of computing the expected results),
/// compile_seconds (0 if the kept program was run), run_seconds (of one execution). A case that fails with a kept program runs
/// again with one that is compiled for it alone, which tells whether an earlier case is to blame.
Fields run_case(const Case& one, const Session& session, uint64_t seed, const RunCaseOptions& options = {});
/// Returns the HLO text of a smaller program that fails as well, with inputs of the same kinds: the best one found in
/// that many seconds. Empty if the case does not fail.
std::string reduce_case(const Case& one, const Session& session, uint64_t seed, double seconds);

}  // namespace collet::conformance
