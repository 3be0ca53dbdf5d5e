// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/fusion/fusion.h"

namespace collet::codegen {

/// Forms groups of the materialised nodes of a block. Values of one shape that feed each other or read the same arrays,
/// and reductions along the rows of that shape, become one kernel. A value that only its own group reads is not stored.
void form_groups(const Graph& graph, const Block& block, const FusionOptions& options, FusionPlan& plan);

}  // namespace collet::codegen
