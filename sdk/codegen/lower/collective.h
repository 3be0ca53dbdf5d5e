// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Collectives, and other values that depend on the participant, on targets with grids.

#include <collet/codegen/launch_plan.h>

#include <string>

#include "sdk/codegen/graph/graph.h"

namespace collet::codegen {

/// True for collectives of arrays: all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute and
/// collective-broadcast.
bool is_collective(uint32_t opcode);

/// True for values that the host writes: replica-id, partition-id, and the state of random numbers.
bool is_host_value(const Graph& graph, const Node& node);
/// Returns the value that a node for which is_host_value holds stands for.
HostValue host_value_of(const Graph& graph, const Node& node);

/// Returns the reason why a collective cannot be compiled; empty if it can.
std::string collective_refusal(const Graph& graph, const Node& node);

/// Returns the call of a collective without its parts and its kind.
CollectiveCall collective_call(const Graph& graph, const Node& node);

/// Returns the number of members of the groups of a collective; 0 if groups differ in it.
int64_t members_of(const CollectiveCall& call);

}  // namespace collet::codegen
