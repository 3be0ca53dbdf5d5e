// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "conformance/cases/case.h"
#include "hlo/base/status.h"

/// \file
/// Cases of the patterns that a backend declares itself (hlo/patterns).

namespace collet::conformance {

/// Returns cases of a pattern, of at most `instances` different sizes, types and forms. A backend gets each as one call, if
/// it takes it. Always the same for a text. An error if the text cannot be read, or if the SDK does not find the pattern in a
/// program that is nothing else.
Expected<std::vector<Case>> cases_of_pattern(std::string_view text, size_t instances);

}  // namespace collet::conformance
