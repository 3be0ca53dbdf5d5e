// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "conformance/report/report.h"

/// \file
/// Parts of the page that report_html makes. Each is empty where there is nothing to show.

namespace collet::conformance {

/// A whole page that stands alone; `title` and `body` are markup.
std::string page(std::string_view title, std::string_view verdict, bool good, std::string_view body);

/// A cell for each op and element type: what became of its cases. It leads to them.
std::string heat_map(const ConformReport& report);
/// The cases that the cells lead to.
std::string case_lists(const ConformReport& report, const BackendChoice& backend);
/// Failures by op: why, the program, inputs, expected and got, and the line that runs each again.
std::string failure_list(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras);
/// A row for each op that failed, of the largest share of work first: types, what its wrong elements have in common, since when.
std::string wrong_ops(const ConformReport& report, const PageExtras& extras);

}  // namespace collet::conformance
