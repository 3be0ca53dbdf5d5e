// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"

/// \file
/// Failures that depend on state: a case that fails after others ran in its process, and passes alone.

namespace collet::conformance {

/// Returns whether something fails in a new process after the runs with these numbers, in this order; nullopt if that cannot be told.
using FailsAfter = std::function<std::optional<bool>(const std::vector<size_t>& before)>;

/// What a failure depends on.
struct Dependence {
  bool fails_alone = true;
  /// If it does not: a smallest sequence of earlier runs after which it fails, as far as the time allows to shorten it; empty if it did
  /// not fail after all of them either.
  std::vector<size_t> before = {};
  bool searched = false;  ///< false if it was not looked for
};

/// Finds out whether a failure depends on the runs 0 ... count-1 before it. It is then looked for among fewer and fewer of them,
/// for about `seconds`. nullopt if that cannot be told.
std::optional<Dependence> find_dependence(size_t count, const FailsAfter& fails, double seconds);

/// Says so in words, as an addition to the failure's detail; empty if it fails alone. `name_of` returns what a run is called.
std::string dependence_text(const Dependence& found, const std::function<std::string(size_t)>& name_of);

/// Runs cases one after the other in a new worker process with these arguments (worker_arguments), and returns whether the last one
/// fails; nullopt if the process cannot be had, or ran out of `seconds` for a case.
std::optional<bool> last_fails(const std::vector<std::string>& arguments, std::vector<Case> cases, double seconds);

}  // namespace collet::conformance
