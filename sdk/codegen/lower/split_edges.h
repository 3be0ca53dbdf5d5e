// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "sdk/codegen/lower/lower.h"

/// \file
/// Splits the loops of kernels where tests or quotients in them change. A concatenation that is computed inside a kernel
/// tests at each point which operand has the element. Kernels for the parts of the points between the edges of the
/// operands need no tests.

namespace collet::codegen {

/// The positions at which loops are split: for each loop those strictly between 0 and its size.
using Edges = std::vector<std::set<int64_t>>;

/// True if kernels for the parts of `loops` between `edges` take less time than one kernel that tests each point. The
/// innermost loop is assumed to be vectorised. Arrays of at most `near_points` elements stay in a cache of one core.
bool edges_pay(const Dims& loops, const Edges& edges, int64_t near_points, const Tuning& tuning);

/// Splits a kernel that has no inner loops into one kernel for each part of its points, in `parts`. Returns false if it
/// has no edges, or if edges_pay is false for them.
bool split_at_edges(const Graph& graph, const KernelPlan& plan, int64_t near_points, const Tuning& tuning,
                    std::vector<KernelPlan>& parts);

/// Splits a loop i of a kernel without inner loops, if some index has the quotient floor(i / a) / b or its remainder and
/// a * b divides the size of the loop: into a loop over the periods of a * b iterations, and one within a period, which
/// has at least `least` iterations. Reshapes around transposes leave such indices. Returns false if there is no such loop.
bool split_at_periods(const Graph& graph, KernelPlan& plan, const Tuning& tuning);

}  // namespace collet::codegen
