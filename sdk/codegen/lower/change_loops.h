// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/lower.h"

/// \file
/// Makes kernels for the same points, or for some of them, with other loops. The kernels must be plain, see is_plain.

namespace collet::codegen {

/// Returns the kernel with loops of `sizes`. `variables` returns the variable of each old loop as an index of the new
/// loops; it may add expressions to the new kernel. Tests that are constant in the new loops are resolved.
KernelPlan with_loops(const Graph& graph, const KernelPlan& plan, const Dims& sizes,
                      const std::function<std::vector<Index>(KernelBuilder&)>& variables);

/// Returns the kernel for the points whose loop variables are in [begin, begin + size).
KernelPlan part_of(const Graph& graph, const KernelPlan& plan, const Dims& begin, const Dims& size);

}  // namespace collet::codegen
