// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Merges several rows that are shorter than a vector, or a little longer, if their results are adjacent: the last two
/// loops of a plain kernel become a loop over groups of rows and a loop over the points of a group, which are a whole
/// number of vectors. The positions of the lanes within their rows are then constants. Loads whose elements are near
/// each other are combined from whole vectors, and no lane is unused. `rest` becomes the kernel for the rows after the
/// last whole group; its list of loops stays empty if there are none. Returns false, and changes nothing, if merging
/// does not suit the kernel. The loops must have been collapsed.
bool merge_rows(const Graph& graph, KernelPlan& plan, const Target& target, KernelPlan& rest);

}  // namespace collet::codegen
