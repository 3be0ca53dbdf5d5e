// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Values of a kernel that are computed once and written to memory in the order in which the kernel reads them.

#include <vector>

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Makes `pack` a kernel that writes `value` of `plan` to memory, and reads it from there in `plan`. `loops` are those of the plan's
/// kernel that it depends on, and perhaps others, the outermost first: the last one has unit stride in memory. `padding`: elements
/// between two of its runs.
void pack_value(KernelPlan& plan, ExprId value, const std::vector<size_t>& loops, int64_t padding,
                const MakeValue& make, KernelPlan& pack);

/// Packs a load of a reduction that would be a gather along the lanes, of few elements that are read many times, such as a filter whose
/// channels come first. False, and nothing is changed, where there is none. `vector_bits`: see choose_lanes.
bool pack_strided(KernelPlan& plan, int vector_bits, const MakeValue& make, KernelPlan& pack);

}  // namespace collet::codegen
