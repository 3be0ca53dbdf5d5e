// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// The version of the suite, and waivers: its known defects, whose cases anyone may count as passed.
/// docs/conformance_process.md says how both come about.

namespace collet::conformance {

/// The version of the suite: the second number grows where cases are added or judged otherwise, the first where a claim for
/// an older version may no longer hold.
constexpr std::string_view kSuiteVersion = "1.2";
/// The version of the terms under which "conforms" may be said: that of docs/conformance_process.md.
constexpr std::string_view kTermsVersion = "1";

/// A defect of the suite: these cases of this version count as passed where they fail.
struct Waiver {
  std::string number;  ///< "W3"
  std::string date;    ///< "2026-11-28"
  std::string suite;   ///< the version of the suite that has the defect
  std::string cases;   ///< glob for names of cases
  std::string reason;
};

/// Reads waivers, a line each: `NUMBER DATE SUITE CASES REASON`; empty lines and lines that begin with # are skipped.
/// INVALID_ARGUMENT names the line that is wrong; `name` is for messages.
Expected<std::vector<Waiver>> read_waivers(std::string_view name, std::string_view text);
/// Returns the waivers that this library was shipped with.
const std::vector<Waiver>& shipped_waivers();
/// Returns the waiver of this version of the suite that a case has; null if it has none.
const Waiver* find_waiver(std::span<const Waiver> waivers, std::string_view name);

}  // namespace collet::conformance
