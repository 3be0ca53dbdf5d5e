// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// Lines of few rows are not read where they lie if b is large: they would read all of it more often than rows in tiles
/// of their own.
constexpr bool lines_suit(int64_t line, int64_t b_elements) {
  constexpr int64_t kFewRows = 8;
  constexpr int64_t kManyElements = 1 << 18;  // more than the second cache likes
  return line >= kFewRows || b_elements <= kManyElements;
}

/// The type in which products are summed whose result has element type `result`.
uint32_t sum_type(uint32_t result);
/// Returns whether the attributes of a product, the precision of each operand and `algorithm` (0: unset), allow f32 factors to be
/// rounded to tf32.
bool allows_tf32(const Graph& graph, collet_range precision, uint32_t algorithm);
/// The positions of the operands of a dot for the element of its result at `at`. Loops from `contracting` on walk the dimensions that
/// are summed, in the order of the attributes.
std::pair<Position, Position> dot_positions(const Graph& graph, const Node& node, const Position& at,
                                            size_t contracting);

/// Any dot as a loop nest: right for every type and every choice of dimensions.
KernelPlan dot_kernel(const Graph& graph, const Node& node, const InputTest& is_input);
/// Any convolution as a loop nest. Where its window reaches beyond the input, the input is first copied with its edges,
/// so that what remains is a product of matrices, or at least free of conditions.
void convolution_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                         std::vector<KernelPlan>& out);
}  // namespace collet::codegen
