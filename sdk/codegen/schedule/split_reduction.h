// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Splits a long reduction to few elements into parts, which several threads compute, and a short reduction of the
/// parts' results.

#include <collet/codegen/target.h>

#include "sdk/codegen/kernel/kernel_plan.h"

namespace collet::codegen {

/// Limits that decide whether a reduction is split.
struct SplitLimits {
  bool has_lanes = false;  ///< whether lanes of vectors may compute different rows
  /// Number of rows, or of vectors of rows, from which on all threads are busy without splitting.
  int64_t few_rows = 16;
  /// If not 0, the number of parts, which divides the size of an inner loop; few_rows does not matter then.
  int64_t parts = 0;
};

/// Splits `plan`, whose loops are collapsed, into `parts` and `rest`. Returns false if it should not be split. The
/// number of parts depends only on the loops, so that results are the same for any number of threads.
bool split_reduction(const KernelPlan& plan, const Target& target, const SplitLimits& limits, const MakeValue& make,
                     KernelPlan& parts, KernelPlan& rest);

}  // namespace collet::codegen
