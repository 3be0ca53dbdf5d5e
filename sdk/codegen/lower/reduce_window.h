// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Makes the kernels of a reduce-window. Small windows are reduced one by one. If all windows begin, or all end, at the operand's
/// edge (a cumulative sum), the results are one scan. Other long windows use the algorithm of van Herk and Gil-Werman: the operand is
/// cut into blocks as long as the window, and each result combines the end of one block with the begin of the next, which forward
/// and backward scans of the blocks provide. The time of both is proportional to the number of elements, whatever the window's size.
void reduce_window_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                           const NodeLimits& limits, std::vector<KernelPlan>& out);

}  // namespace collet::codegen
