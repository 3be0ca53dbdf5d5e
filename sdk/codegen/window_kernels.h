// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/kernels.h"

namespace collet::codegen {

/// Any dot as a loop nest: right for every type and every choice of dimensions.
KernelPlan dot_kernel(const Graph& graph, const Node& node, const LeafTest& leaf);
/// Any convolution as a loop nest. Where its window reaches beyond the input, the input is first copied with its edges,
/// so that what remains is a product of matrices, or at least free of conditions.
void convolution_kernels(const Graph& graph, const Node& node, const LeafTest& leaf, const MakeValue& make,
                         std::vector<KernelPlan>& out);
/// Fills the result with the initial value, then adds the sources where the selection points.
void select_and_scatter_kernels(const Graph& graph, const Node& node, const LeafTest& leaf,
                                std::vector<KernelPlan>& out);

}  // namespace collet::codegen
