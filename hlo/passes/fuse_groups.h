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
  bool reductions = true;  ///< also with reductions and what is row-wise around them
  bool products = true;    ///< also a product or convolution with what follows
  bool several_outputs = true;
  size_t most_members = 64;
};

/// Disjoint groups of a computation's instructions such that replacing each by one instruction leaves no cycle.
///
/// A producer joins the group of its users when they are all in one group, so that its value is never stored and nothing
/// is computed twice. What it may join:
/// - a loop: elementwise ops, and movement that reads each element at most once;
/// - a reduction: what leads to it elementwise, what follows it elementwise;
/// - rows: reductions over the last dimensions, broadcast back over the same rows, and all that is elementwise on rows or
///   on one value per row between and around them (softmax, layer norm);
/// - a product or convolution: what follows it elementwise (bias, activation, residual).
/// Then loops and reductions of one size that read the same array are joined, if neither waits for the other.
/// Neither for what has effects, which keeps its order: `effects` is of computations_with_effects.
std::vector<FusionGroup> find_fusions(const Module& module, CompId computation, const PassContext& context,
                                      const FusionLimits& limits, const std::vector<bool>& effects);

/// Cheap enough to be made again in each fusion that wants it: constants of one element, iota, and broadcasts to many
/// times the size.
bool is_repeatable(const Module& module, InstrId id);

}  // namespace collet::hlo
