// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "conformance/report/report.h"

/// \file
/// Parts of the page that report_html creates. Each is an empty text if there is nothing to show.

namespace collet::conformance {

/// Returns a complete page without external files; `title` and `body` are markup.
std::string page(std::string_view title, std::string_view verdict, bool good, std::string_view body);

/// Returns a table with a cell for each op and element type that shows the outcomes of its cases and links to them.
std::string heat_map(const ConformReport& report);
/// Returns the lists of cases to which the cells of heat_map link.
std::string case_lists(const ConformReport& report, const BackendChoice& backend);
/// Returns the failures by op: reason, program, inputs, expected and actual values, and the command line that runs each
/// again.
std::string failure_list(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras);
/// Returns a table with a row for each failed op, sorted by share of work: its types, what its wrong elements have in
/// common, and since when it fails.
std::string wrong_ops(const ConformReport& report, const PageExtras& extras);

}  // namespace collet::conformance
