// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"

/// \file
/// Bundles for submission: the results of a run with all data that is needed to check them again. docs/conformance.md
/// describes the format.

namespace collet::conformance {

/// The contents of a bundle.
struct Bundle {
  ConformOptions options;  ///< the selected cases, the seed, and the options of the backend
  /// Has name, outcome, ops and errors of cases; op and type are not set. The path is only the file name of the
  /// library.
  ConformReport report;
  std::string collet;                     ///< version of the SDK
  std::string suite, library;             ///< SHA-256 of the suite and of the library
  std::string suite_version = {};         ///< version of the suite; empty for suites before 1.1
  std::string terms = {};                 ///< version of the terms; likewise
  std::string machine;                    ///< SHA-256 of the description of the machine in the report
  std::string verdict;                    ///< "conforms" or "does not conform"
  size_t cases = 0;                       ///< number of cases according to the first line
  std::vector<std::string> altered = {};  ///< lines whose checksum is wrong: "line 17, add/f32/1/unit"
};

/// Returns one line of JSON for the run, one for each case in the order of the suite, and one for the summary. Returns
/// an error if the backend's library cannot be read.
Expected<std::string> bundle_text(const ConformReport& report, const ConformOptions& options);
/// Reads a bundle. Returns an error if `name` is not a bundle, or has a newer format. Wrong checksums are not an error:
/// Bundle::altered lists them.
Expected<Bundle> read_bundle(std::string_view name, std::string_view text);

struct VerifyOptions {
  std::string name;  ///< name of the file, for messages
  std::string text;
  std::optional<std::string> backend = {};  ///< name or path of the library; if absent, the name in the bundle is used
  /// Options of the backend that the caller permits, because options may contain paths: options in the bundle with
  /// paths are only used if they are listed here.
  std::vector<std::pair<std::string, std::string>> backend_options = {};
  double rerun = 0;  ///< share of the cases to run again
  /// Seed that selects these cases, and other inputs for them; if absent, the system provides a random one.
  std::optional<uint64_t> seed = {};
  std::vector<Waiver> waivers = shipped_waivers();
  unsigned jobs = 1;
  uint64_t memory_bytes = 0;  ///< memory limit of a worker; 0: as in the run
  double timeout = 0;         ///< seconds per case; 0: as in the run
  ProgressFunction progress = {};
};

/// A check and its result.
struct Check {
  enum class State : uint8_t { Holds, Differs, NotChecked };
  std::string what;
  State state = State::Holds;
  std::vector<std::string> details = {};  ///< the differences, or why the check was not made
};

struct Verification {
  std::string title;  ///< "acme 1.2, seed 0, 14000 cases"
  std::vector<Check> checks;
  std::optional<uint64_t> seed = {};  ///< seed that selected the cases which ran again
  /// Statements such as "conforms to Collet opset 1, profile core", if the bundle has all cases that they require.
  std::vector<std::string> sayings = {};
  /// True if the bundle agrees with everything that it was compared with.
  bool holds() const;
};

/// Checks what a bundle says by itself, against this program's suite: the file, the suite, the cases, the verdict, the waivers,
/// and the hash of the machine. Fills in ops and types of the cases.
std::vector<Check> check_bundle(Bundle& bundle, std::span<const Waiver> waivers);
/// Returns the statements that a bundle proves if all checks of it hold: Verification::sayings.
std::vector<std::string> good_for(const Bundle& bundle);

/// Checks hashes, the set of cases, and the verdict, and runs a sample again, with the bundle's inputs and with others.
/// Returns an error if the file is not a bundle, or if cases are to be run and the backend cannot be opened.
Expected<Verification> verify_bundle(const VerifyOptions& options);
std::string verification_text(const Verification& verification, size_t most);
std::string verification_json(const Verification& verification);

}  // namespace collet::conformance
