// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// Tests that are text files: directives in comments, an input text, a line `// ----`, and the expected output.
///
///     // pass: simplify
///     HloModule m
///     ...
///     // ----
///     HloModule m
///     ...
///
/// With COLLET_UPDATE_GOLDENS=1 the files are rewritten instead of compared.

namespace collet::hlo::testing {

struct GoldenCase {
  std::string path;
  /// `// key: value` lines before the text; of several with one key, the last.
  std::map<std::string, std::string> directives;
  std::string input;
  std::string expected;
};

Expected<GoldenCase> read_golden(const std::string& path);
/// Returns the .hlo files of a folder, sorted.
std::vector<std::string> golden_files(const std::string& folder);

/// Runs `apply` on the file's text and compares the result with the expected text. Returns an empty text if they agree,
/// or if the file was rewritten; otherwise a line-by-line difference.
std::string check_golden(const std::string& path, const std::function<Expected<std::string>(const GoldenCase&)>& apply);

/// Returns a line-by-line difference: lines only in `before` are marked with -, those only in `after` with +, and
/// common lines are between them.
std::string line_difference(const std::string& before, const std::string& after);

}  // namespace collet::hlo::testing
