// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"
#include "conformance/runner/workers.h"

/// \file
/// From the end of a task to the result of a case.

namespace collet::conformance {

/// Returns a field as a number; 0 if there is none.
double number(const Fields& fields, std::string_view key);
/// Returns the outcome of a task as fields, which a journal stores.
Fields fields_of(const TaskResult& task);
/// Returns the result of a case by such fields. What a profile of `claims` has and the device did not take, fails; a failure with a
/// waiver counts as passed.
CaseResult result_of(const Case& one, const Fields& fields, const std::vector<std::string>& claims,
                     std::span<const Waiver> waivers);
/// True for every outcome but pass and unsupported.
bool is_failure(Outcome outcome);

}  // namespace collet::conformance
