// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// Tests that are text files: directives in comments, a text, a line `// ----`, and the text that is to become of it.
///
///     // pass: simplify
///     HloModule m
///     ...
///     // ----
///     HloModule m
///     ...
///
/// With COLLET_UPDATE_GOLDENS=1 files are rewritten instead of compared.

namespace collet::hlo::testing {

struct GoldenCase {
  std::string path;
  /// `// key: value` lines before the text; of several with one key, the last.
  std::map<std::string, std::string> directives;
  std::string input;
  std::string expected;
};

Expected<GoldenCase> read_golden(const std::string& path);
/// The .hlo files of a folder, sorted.
std::vector<std::string> golden_files(const std::string& folder);

/// Runs `apply` on the file's text and compares; empty when they agree, or when the file was rewritten; else what
/// differs, line by line.
std::string check_golden(const std::string& path, const std::function<Expected<std::string>(const GoldenCase&)>& apply);

/// The lines of `before` that are gone marked with -, those new in `after` with +, between lines that stay.
std::string line_difference(const std::string& before, const std::string& after);

}  // namespace collet::hlo::testing
