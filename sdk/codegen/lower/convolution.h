// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Lines of few rows are not read where they lie if b is large: they would read all of it more often than rows in tiles
/// of their own.
constexpr bool lines_suit(int64_t line, int64_t b_elements) {
  constexpr int64_t kFewRows = 8;
  constexpr int64_t kManyElements = 1 << 18;  // more than the second cache likes
  return line >= kFewRows || b_elements <= kManyElements;
}

/// Any dot as a loop nest: right for every type and every choice of dimensions.
KernelPlan dot_kernel(const Graph& graph, const Node& node, const InputTest& is_input);
/// Any convolution as a loop nest. Where its window reaches beyond the input, the input is first copied with its edges,
/// so that what remains is a product of matrices, or at least free of conditions.
void convolution_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                         std::vector<KernelPlan>& out);
}  // namespace collet::codegen
