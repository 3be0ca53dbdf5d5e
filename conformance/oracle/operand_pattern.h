// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "hlo/ir/literal.h"

namespace collet::conformance {

/// Returns what the operands of wrong elements have in common and those of correct elements rarely have: "p1 is NaN",
/// "p0 is negative and p1 is zero". `bad` holds the indices of the wrong elements. Returns an empty text if no property
/// distinguishes them, if all elements are wrong, and if the operands do not have one element for each of the result.
std::string describe_operands(std::span<const hlo::Literal> operands, std::span<const int64_t> bad);

}  // namespace collet::conformance
