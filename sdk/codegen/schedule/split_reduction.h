// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A long reduction to few elements, as parts that several threads can take and a short reduction of what they leave.

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// When a reduction is split.
struct SplitLimits {
  int vector_bits = 0;    ///< of the vectors in which rows may be computed; 0: there are none
  int64_t few_rows = 16;  ///< rows, or vectors of them, that are enough for all threads
};

/// Splits `plan`, whose loops are collapsed, into `parts` and `rest`; false where it is best left whole. The number of
/// parts depends on the loops alone, so that results are the same for any number of threads.
bool split_reduction(const KernelPlan& plan, const SplitLimits& limits, const MakeValue& make, KernelPlan& parts,
                     KernelPlan& rest);

}  // namespace collet::codegen
