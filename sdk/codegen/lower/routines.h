// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ops that are not loop nests: library routines compute them. These are sort, top-k, fft, cholesky and other
/// factorizations.

#include <collet/codegen/kernel.h>
#include <collet/codegen/launch_plan.h>

#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/routines/key_rule.h"

namespace collet::codegen {

/// A comparator to be compiled. It returns whether its first arguments come before its second ones.
struct Comparator {
  ScalarBody body;
  std::vector<uint32_t> types;

  bool operator==(const Comparator&) const = default;
  auto operator<=>(const Comparator&) const = default;
};

/// True if rows that are sorted have more elements than the s32 indices of a routine can number.
bool has_long_rows(const Graph& graph, const Node& node);

/// Returns how many elements at the begin of each row of a sort are read. A top-k written as a sort and a slice reads
/// only a few.
int64_t needed_of_sort(const Graph& graph, const Node& node);

/// Returns the comparator of a sort.
Comparator comparator_of(const Graph& graph, const Node& node);

/// An operand of a sort whose elements the comparator compares, and their order.
struct SortKey {
  size_t operand = 0;
  KeyRule rule;
};

/// Returns the keys that a sort's comparator compares, the most significant one first; empty if it is not a lexicographic
/// comparison. Where the comparator leaves the places of NaN open, as an ordinary comparison of floats does, they are
/// those of the total order.
std::vector<SortKey> sort_keys_of(const Graph& graph, const Node& node);

/// True for a cholesky, a triangular-solve, and a factorization that is called by name, of types and shapes that LAPACK
/// has.
bool has_factorization(const Graph& graph, const Node& node);

/// True if there is a routine for the node.
bool has_routine(const Graph& graph, const Node& node);

/// Returns the call of a node that has a routine. The call's operands are the node's last operands. If it needs a
/// comparator, `comparator` receives it, with types that are not empty, and the caller names its function.
RoutineCall routine_call(const Graph& graph, const Node& node, Comparator& comparator);

}  // namespace collet::codegen
