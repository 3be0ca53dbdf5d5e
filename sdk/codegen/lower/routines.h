// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ops that are no loop nests, which the launcher has routines for: sort, top-k, fft, cholesky and their kind.

#include <collet/codegen/launch_plan.h>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// A comparator to be compiled: whether its first arguments come before its second ones.
struct Comparator {
  ScalarBody body;
  std::vector<uint32_t> types;

  bool operator==(const Comparator&) const = default;
  auto operator<=>(const Comparator&) const = default;
};

/// Whether rows that would be sorted have more elements than a routine's s32 indices can name.
bool has_long_rows(const Graph& graph, const Node& node);

/// How many elements at the beginning of each row of a sort are read: few where a top-k is written as a sort and slices.
int64_t needed_of_sort(const Graph& graph, const Node& node);

/// The comparator of a sort.
Comparator comparator_of(const Graph& graph, const Node& node);

/// Whether there is a routine for the node.
bool has_routine(const Graph& graph, const Node& node);

/// The call of a node that has a routine; its operands are the last of the node's. Where it needs a comparator, that is in `comparator` and its types are not empty;
/// the caller names its function.
RoutineCall routine_call(const Graph& graph, const Node& node, Comparator& comparator);

}  // namespace collet::codegen
