// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Unroll and jam, for products of a matrix with a few vectors: all dot products of a long row with the few vectors are computed
/// together, so that the row is read only once.

#include <collet/codegen/target.h>

#include <vector>

#include "sdk/codegen/kernel/kernel_plan.h"

namespace collet::codegen {

/// True if this schedule suits a kernel. It must reduce products of two factors along its inner loops, of which the last
/// one is that of contiguous elements: a row may have several parts, as in the window of a convolution. One factor (the
/// long rows) must not depend on a short outer loop; the other (the few rows) must not depend on the other outer loops.
bool can_unroll_and_jam(const Kernel& kernel, const Target& target);

/// Replaces the short outer loop, and the loop over a few long rows at a time, by several reductions of one kernel. The
/// first kernel of `out` computes most rows, the second one the remaining rows, if any. If the few rows are not
/// contiguous in memory, `pack` becomes a kernel that copies them; it stays empty otherwise. The loops of `plan` must
/// have been collapsed. Returns false and makes nothing if can_unroll_and_jam returns false.
bool unroll_and_jam(const KernelPlan& plan, const Target& target, const MakeValue& make, KernelPlan& pack,
                    std::vector<KernelPlan>& out);

}  // namespace collet::codegen
