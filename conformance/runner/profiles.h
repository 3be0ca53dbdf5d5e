// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"

/// \file
/// Profiles: sets of cases that a backend may claim to pass on the device. Their versions are those of the opset: a
/// newer version adds the cases of its ops, and removes none.

namespace collet::conformance {

struct Profile {
  std::string_view name, text;
  bool (*holds)(std::string_view name, Op op, Type type);
  bool may_be_claimed = true;  ///< if false, the profile is only used to select cases
};

/// Returns all profiles, in the order of reports.
const std::vector<Profile>& profiles();
/// Returns the profile of that name; null if there is none.
const Profile* find_profile(std::string_view name);
/// Returns a list such as "core, extended, ...".
std::string profile_names();
/// Reads the names of profiles from the lines of a text; the rest of a line after # is a comment. An error names a line
/// that is not a profile.
Expected<std::vector<std::string>> read_claims(std::string_view text);
/// Returns the claimed profile that requires `one` to run on the device; null if there is none.
const Profile* claimed_profile(const std::vector<std::string>& claims, const CaseResult& one);
/// True if the device passed some case of a profile.
bool ran_some(const ConformReport& report, std::string_view claim);
/// Returns the claims of a run that say nothing: the device passed no case of the profile. A choice of cases need not have any.
std::vector<std::string> idle_claims(const ConformReport& report);

}  // namespace collet::conformance
