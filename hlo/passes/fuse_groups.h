// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "hlo/passes/passes.h"

namespace collet::hlo {

/// The instructions that become one fusion.
struct FusionGroup {
  std::vector<InstrId> members;  ///< in order; the last is an output
  FusionKind kind = FusionKind::LOOP;
};

/// Limits for the size of fusions.
struct FusionLimits {
  bool reductions = true;  ///< also fuses reductions and row-wise ops around them
  bool products = true;    ///< also fuses a product or convolution with ops after it
  bool several_outputs = true;
  size_t most_members = 64;
};

/// Returns disjoint groups of a computation's instructions such that replacing each group by one instruction creates no
/// cycle.
///
/// A producer joins the group of its users if they are all in one group, so that its value is never materialised and
/// nothing is computed twice. A group is one of:
/// - a loop: elementwise ops, and data movement that reads each element at most once;
/// - a reduction: the elementwise ops before it and after it;
/// - rows: reductions over the last dimensions, whose results are broadcast over the same rows again, and all
///   elementwise ops on rows or on one value per row between and around them (softmax, layer norm);
/// - a product or convolution: the elementwise ops after it (bias, activation, residual).
/// Then loops and rows are joined with those that read their values, so that values that others read, too, are stored; and
/// loops and reductions of one size that read the same array are joined, if neither depends on the other.
/// Instructions with effects join no group, and keep their order; `effects` is the result of computations_with_effects.
std::vector<FusionGroup> find_fusions(const Module& module, CompId computation, const PassContext& context,
                                      const FusionLimits& limits, const std::vector<bool>& effects);

/// True if `id` is cheap enough to be recomputed in each fusion that uses it: constants of one element, iota, and
/// broadcasts that are many times larger than their operand.
bool is_repeatable(const Module& module, InstrId id);

}  // namespace collet::hlo
