// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "hlo/ir/shape.h"

namespace collet::conformance {

/// Returns what wrong elements have in common: "all", "the last 3", "every 16th from 0", "only index 5 of dimension 1". `bad` is
/// ascending, row-major and not empty.
std::string describe_pattern(const hlo::Shape& shape, std::span<const int64_t> bad);

}  // namespace collet::conformance
