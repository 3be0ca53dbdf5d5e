// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Long rows that are folded with a few others each, as those of a matrix with a few vectors: each row is read once for them
/// all.

#include <vector>

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Whether a kernel with one inner loop is best folded together: its reduction is of products of rows, of which one is the
/// same for all turns of a short outer loop, and the other the same for all turns of the rest.
bool folds_together(const Kernel& kernel);

/// Makes the turns of that loop, and those of a few long rows, reductions of one kernel, the first of `out`; what rows are left are
/// the second. Where the few rows do not lie in memory one after the other, `pack` writes them so; it is left empty where they
/// do. `plan`'s loops are collapsed.
void fold_together(const KernelPlan& plan, int vector_bits, const MakeValue& make, KernelPlan& pack,
                   std::vector<KernelPlan>& out);

}  // namespace collet::codegen
