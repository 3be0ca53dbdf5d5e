// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// True if the rows of operand a can be read in lines of `line` rows directly from the input. With short lines, a large
/// matrix b would be read more often than with packed tiles of more rows.
constexpr bool lines_suit(const Tuning& tuning, int64_t line, int64_t b_elements) {
  return line >= tuning.short_line || b_elements <= tuning.short_line_elements;
}

/// Returns the type in which a product with results of type `result` is summed.
uint32_t sum_type(uint32_t result);
/// True if the attributes of a product, the precision of each operand and `algorithm` (0 if unset), allow rounding f32
/// factors to tf32.
bool allows_tf32(const Graph& graph, collet_range precision, uint32_t algorithm);
/// Returns the positions in the operands of a dot from which the element `at` of its result is computed. The loops from
/// `contracting` on run over the summed dimensions, in the order of the attributes.
std::pair<Position, Position> dot_positions(const Graph& graph, const Node& node, const Position& at,
                                            size_t contracting);

/// Returns the element at `at` of a dot for which is_outer_product is true. If `mask` is false, nothing is loaded.
ExprId outer_product(KernelBuilder& builder, const Graph& graph, const Node& node, const Position& at, ExprId mask);
/// Lowers any dot to a loop nest, for every type and every choice of dimensions.
KernelPlan dot_kernel(const Graph& graph, const Node& node, const InputTest& is_input, const Tuning& tuning);
/// Lowers any convolution to loop nests. If its window reaches beyond the input, the input may first be copied with its
/// padding, so that the rest is a matrix product, or at least has no conditions. Where `limits` allow it, the operands
/// and the result may also be transposed, if that takes less time and memory than the patches of another order.
void convolution_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                         const NodeLimits& limits, std::vector<KernelPlan>& out);
}  // namespace collet::codegen
