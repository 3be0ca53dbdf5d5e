// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Select and scatter: the gradient of pooling by a maximum.

#include <vector>

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Where few windows meet an element and sources are added: one kernel writes down which element each window selects, another
/// adds up for each element what the windows that selected it bring. Else the result is filled with the initial value, and the
/// sources are combined with it one after the other where their windows point.
void select_and_scatter_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                                std::vector<KernelPlan>& out);

}  // namespace collet::codegen
