// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"

/// \file
/// Submissions: the results of a run with all that is needed to check them again. docs/conformance.md has the format.

namespace collet::conformance {

/// The contents of a bundle.
struct Bundle {
  ConformOptions options;  ///< which cases, by which seed, with which options of the backend
  /// Cases by name, outcome, ops and errors; op and type are not set. The path is the library's file name alone.
  ConformReport report;
  std::string collet;                     ///< version of the SDK
  std::string suite, library;             ///< SHA-256
  std::string machine;                    ///< SHA-256 of the report's description
  std::string verdict;                    ///< "conforms" or "does not conform"
  size_t cases = 0;                       ///< that there are, by the first line
  std::vector<std::string> altered = {};  ///< what was changed after writing: "line 17, add/f32/1/unit"
};

/// One line of JSON for the run, one for each case in the order of the suite, and one for the whole. The error: the backend's library
/// cannot be read.
Expected<std::string> bundle_text(const ConformReport& report, const ConformOptions& options);
/// The error: `name` is no bundle, or one of a newer format. What was altered is none: it stands in the bundle.
Expected<Bundle> read_bundle(std::string_view name, std::string_view text);

struct VerifyOptions {
  std::string name;  ///< of the file, for messages
  std::string text;
  std::optional<std::string> backend = {};  ///< name or path of the library; none: as the bundle calls it
  /// Options of the backend that may name paths: those of the bundle that do must be among them.
  std::vector<std::pair<std::string, std::string>> backend_options = {};
  double rerun = 0;                   ///< share of the cases that run again
  std::optional<uint64_t> seed = {};  ///< chooses these cases, and other inputs for them; none: drawn by the system
  unsigned jobs = 1;
  uint64_t memory_bytes = 0;  ///< of a worker; 0: as a run
  double timeout = 0;         ///< seconds a case; 0: as a run
  ProgressFunction progress = {};
};

/// A check and its result.
struct Check {
  enum class State : uint8_t { Holds, Differs, NotChecked };
  std::string what;
  State state = State::Holds;
  std::vector<std::string> details = {};  ///< what does not match, or why it was not looked at
};

struct Verification {
  std::string title;  ///< "acme 1.2, seed 0, 14000 cases"
  std::vector<Check> checks;
  std::optional<uint64_t> seed = {};  ///< that chose the cases which ran again
  std::vector<std::string> sayings =
      {};  ///< "conforms to Collet opset 1, profile core", where all that it takes stands in the bundle
  /// Whether the bundle agrees with everything that it was compared with.
  bool holds() const;
};

/// Checks hashes, the set of cases, and the verdict, and runs a sample again, with the bundle's inputs and with others. The error: no
/// bundle, or cases are to run and the backend cannot be opened.
Expected<Verification> verify_bundle(const VerifyOptions& options);
std::string verification_text(const Verification& verification, size_t most);
std::string verification_json(const Verification& verification);

}  // namespace collet::conformance
