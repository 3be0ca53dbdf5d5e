// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/fusion/fusion.h"

namespace collet::codegen {

/// Groups the nodes of a block whose results lie in memory into groups: values of one shape that feed each other or read
/// the same arrays, and reductions along the rows of that shape, become one kernel. Values that only their own group
/// reads are not stored.
void form_groups(const Graph& graph, const Block& block, bool fuse, FusionPlan& plan);

}  // namespace collet::codegen
