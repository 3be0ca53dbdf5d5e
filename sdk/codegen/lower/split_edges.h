// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "sdk/codegen/lower/lower.h"

/// \file
/// Splits the loops of kernels, so that tests and quotients become constant in each part. Splits kernels at the edges of the arrays that they read. A pad or a concatenation that is computed inside a kernel
/// tests at each point which operand has the element. For a part of the points that lies on one side of all edges, the
/// tests are constant.

namespace collet::codegen {

/// The positions at which loops are split: for each loop those strictly between 0 and its size.
using Edges = std::vector<std::set<int64_t>>;

/// True if kernels for the parts of `loops` between `edges` take less time than one kernel that tests each point. The
/// innermost loop is assumed to be vectorised.
bool edges_pay(const Dims& loops, const Edges& edges);

/// Splits a kernel that has no inner loops into one kernel for each part of its points, in `parts`. Returns false if it
/// has no edges, or if edges_pay is false for them.
bool split_at_edges(const Graph& graph, const KernelPlan& plan, std::vector<KernelPlan>& parts);

/// Splits a loop of a kernel without inner loops into periods of at least `least` iterations, if an index divides the
/// quotient of its variable again, as the indices of reshapes between transposes do. The quotient of the quotient is the
/// number of the period. Returns false if there is no such loop.
bool split_at_periods(const Graph& graph, KernelPlan& plan, int64_t least);

}  // namespace collet::codegen
