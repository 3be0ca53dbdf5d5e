// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "hlo/ir/literal.h"

namespace collet::conformance {

/// Returns what the operands of wrong elements have in common, and those of right ones seldom have: "p1 is NaN", "p0 is negative and p1 is zero".
/// `bad` holds the wrong elements. Empty where nothing tells them apart, where all are wrong, and where the operands have not one element for
/// each of the result.
std::string describe_operands(std::span<const hlo::Literal> operands, std::span<const int64_t> bad);

}  // namespace collet::conformance
