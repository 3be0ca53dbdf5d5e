// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"

/// \file
/// Profiles: what a backend may claim, as a list of cases that it then must pass on the device. Their versions are those of the
/// opset: a newer one adds the cases of its ops, and takes none away.

namespace collet::conformance {

struct Profile {
  std::string_view name, text;
  bool (*holds)(std::string_view name, Op op, Type type);
  bool may_be_claimed = true;  ///< else it only selects cases
};

/// All of them, in the order of reports.
const std::vector<Profile>& profiles();
/// Null where there is none.
const Profile* find_profile(std::string_view name);
/// "core, extended, ...".
std::string profile_names();
/// The profiles that the lines of a text name; what follows a # is a remark. The error names a line that is none.
Expected<std::vector<std::string>> read_claims(std::string_view text);
/// The profile by which `one` has to run on the device, of those claimed; null where no claim says so.
const Profile* claimed_profile(const std::vector<std::string>& claims, const CaseResult& one);

}  // namespace collet::conformance
