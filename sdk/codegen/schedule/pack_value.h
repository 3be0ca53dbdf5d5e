// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Computes a value of a kernel once, by a kernel of its own, and stores it in the order in which the kernel reads it.

#include <collet/codegen/target.h>

#include <vector>

#include "sdk/codegen/kernel/kernel_plan.h"

namespace collet::codegen {

/// Makes `pack` a kernel that writes `value` of `plan` to memory, and replaces `value` in `plan` by a load from there.
/// `loops` contains all loops of the plan's kernel that the value depends on, the outermost first; the last one has
/// unit stride in memory. `padding` is the number of unused elements after each run of the last loop.
void pack_value(KernelPlan& plan, ExprId value, const std::vector<size_t>& loops, int64_t padding,
                const MakeValue& make, KernelPlan& pack);

/// Packs a load in a reduction that would be a gather along the lanes, if it reads few elements many times; an example
/// is a filter whose channels come first. Likewise packs a factor of a sum of complex products whose two factors are
/// both read in order, so that the lanes hold results. Returns false and changes nothing if there is no such load.
bool pack_strided(KernelPlan& plan, const Target& target, const MakeValue& make, KernelPlan& pack);

}  // namespace collet::codegen
