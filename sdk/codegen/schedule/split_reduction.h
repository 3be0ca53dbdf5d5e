// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Splits a long reduction to few elements into parts, which several threads compute, and a short reduction of the
/// parts' results.

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Limits that decide whether a reduction is split.
struct SplitLimits {
  int vector_bits = 0;  ///< bits of the vectors whose lanes may compute different rows; 0 if there are none
  /// Number of rows, or of vectors of rows, from which on all threads are busy without splitting.
  int64_t few_rows = 16;
  /// If not 0, the number of parts, which divides the size of an inner loop; few_rows does not matter then.
  int64_t parts = 0;
};

/// Splits `plan`, whose loops are collapsed, into `parts` and `rest`. Returns false if it should not be split. The
/// number of parts depends only on the loops, so that results are the same for any number of threads.
bool split_reduction(const KernelPlan& plan, const SplitLimits& limits, const MakeValue& make, KernelPlan& parts,
                     KernelPlan& rest);

}  // namespace collet::codegen
