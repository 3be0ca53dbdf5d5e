// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include "sdk/codegen/kernel/kernel_plan.h"

namespace collet::codegen {

/// Makes a kernel of its own of a factor of a matrix product, if warpgroups could multiply it were it an array that the
/// device can copy in boxes: a factor of 8 or 32 bits whose neighbours along the depth are apart, or one that is computed
/// from arrays. `pack` writes it row by row (column by column), the depth last; `plan` reads that array. Returns false and
/// changes nothing if there is no such factor, or if it is multiplied too few times for that to pay.
bool pack_factor(KernelPlan& plan, const GridLimits& limits, const MakeValue& make, KernelPlan& pack);

}  // namespace collet::codegen
