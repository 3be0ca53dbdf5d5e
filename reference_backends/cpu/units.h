// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference_backends/cpu/fusion.h"

namespace collet::cpu {

/// Groups the nodes of a block whose results lie in memory into units: values of one shape that feed each other or read
/// the same arrays, and reductions along the rows of that shape, become one kernel. Values that only their own unit
/// reads are not stored.
void form_units(const codegen::Graph& graph, const codegen::Block& block, bool fuse, BlockPlan& plan);

}  // namespace collet::cpu
