// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// The kernels of a reduce-window. Windows of few positions are folded one by one. Those that all begin, or all end, at
/// the operand's edge are one scan; other long ones are put together from scans of stretches as long as the window. Both
/// take time in the number of elements, whatever the window's size.
void reduce_window_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                           std::vector<KernelPlan>& out);

}  // namespace collet::codegen
