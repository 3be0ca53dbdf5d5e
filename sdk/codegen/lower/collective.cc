// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/collective.h"

#include <collet/kernel_collective.hpp>

#include <algorithm>
#include <utility>

#include "sdk/codegen/lower/scalar_block.h"

namespace collet::codegen {
namespace {

/// Most members of a group whose arrays are combined: the kernel that combines them has a load for each.
constexpr int64_t kMostMembers = 32;

bool combines(uint32_t opcode) {
  return opcode == COLLET_OP_ALL_REDUCE || opcode == COLLET_OP_REDUCE_SCATTER;
}

/// True if the groups must have the same number of members, on which shapes depend.
bool needs_equal_groups(uint32_t opcode) {
  return opcode != COLLET_OP_COLLECTIVE_PERMUTE && opcode != COLLET_OP_COLLECTIVE_BROADCAST;
}

}  // namespace

bool is_collective(uint32_t opcode) {
  return kernel::detail::is_collective(opcode);
}

bool is_host_value(const Graph& graph, const Node& node) {
  if (node.opcode == COLLET_OP_REPLICA_ID || node.opcode == COLLET_OP_PARTITION_ID) return true;
  if (node.opcode != COLLET_OP_RNG_GET_AND_UPDATE_STATE) return false;
  const ArrayType& type = graph.type(node.results[0]);
  return type.element == COLLET_TYPE_U64 && type.elements == 2;
}

HostValue host_value_of(const Graph& graph, const Node& node) {
  HostValue out;
  out.partitions = std::max<uint32_t>(graph.program->partition_count, 1);
  if (node.opcode == COLLET_OP_REPLICA_ID) {
    out.kind = HostValue::Kind::kReplica;
  } else if (node.opcode == COLLET_OP_PARTITION_ID) {
    out.kind = HostValue::Kind::kPartition;
  } else {
    out.kind = HostValue::Kind::kRandomState;
    out.delta = static_cast<uint64_t>(attributes<collet_rng_state_attrs>(graph, node).delta);
    out.source = static_cast<uint64_t>(std::count_if(
        graph.nodes.data(), &node, [](const Node& n) { return n.opcode == COLLET_OP_RNG_GET_AND_UPDATE_STATE; }));
  }
  return out;
}

CollectiveCall collective_call(const Graph& graph, const Node& node) {
  kernel::detail::CollectiveSpec spec = kernel::detail::collective_of(graph.program, node.op);
  CollectiveCall call;
  call.groups = std::move(spec.groups);
  call.group_of = std::move(spec.group_of);
  call.listed = std::move(spec.listed);
  call.pairs = std::move(spec.pairs);
  return call;
}

int64_t members_of(const CollectiveCall& call) {
  const size_t first = call.groups.empty() ? 0 : call.groups[0].size();
  const bool equal =
      std::all_of(call.groups.begin(), call.groups.end(), [&](const auto& group) { return group.size() == first; });
  return equal ? static_cast<int64_t>(first) : 0;
}

std::string collective_refusal(const Graph& graph, const Node& node) {
  const CollectiveCall call = collective_call(graph, node);
  const int64_t members = members_of(call);
  if (needs_equal_groups(node.opcode) && members == 0) return " of groups with different numbers of members";
  // A permute of slices has an operand that it writes into, and operands with the places of the slices.
  if (node.operands.size() != node.results.size()) return " of slices";
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const uint32_t type = graph.type(node.operands[i]).element;
    if (type == COLLET_TYPE_TOKEN) return " of tokens";
    if (!combines(node.opcode) && type != graph.type(node.results[i]).element) return " that changes the type";
  }
  if (!combines(node.opcode)) return {};
  if (members > kMostMembers) return " of more than " + std::to_string(kMostMembers) + " members";
  const Block& block = graph.blocks[node.blocks[0]];
  if (block.arguments.size() != 2 || block.results.size() != 1) return " whose body does not combine two values";
  const std::string why = scalar_block_refusal(graph, block);
  return why.empty() ? why : " whose body has " + why;
}

}  // namespace collet::codegen
