// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lowers select-and-scatter, the gradient of max pooling.

#include <vector>

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Adds the kernels of a select-and-scatter. If few windows cover an element and the sources are added, one kernel
/// writes the index of the element that each window selects, and another sums for each element the sources of the
/// windows that selected it. Otherwise the result is filled with the initial value, and the sources are combined with
/// the selected elements one after the other.
void select_and_scatter_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                                std::vector<KernelPlan>& out);

}  // namespace collet::codegen
