// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/scalar_block.h"

#include <algorithm>

#include "sdk/codegen/kernel/elementwise.h"

namespace collet::codegen {
namespace {

bool all_scalars(const Graph& graph, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [&](ValueId v) { return graph.type(v).elements == 1; });
}

/// Returns the reason why the ops of a block cannot be computed inside a kernel; empty if they can.
std::string refusal_of(const Graph& graph, const Block& block);

std::string refusal_of(const Graph& graph, const Node& node) {
  const std::string name = collet_op_name(node.opcode);
  for (BlockId b : node.blocks) {
    if (std::string why = refusal_of(graph, graph.blocks[b]); !why.empty()) return why;
  }
  switch (node.opcode) {
    case COLLET_OP_BROADCAST:
    case COLLET_OP_RESHAPE:
    case COLLET_OP_BITCAST:
    case COLLET_OP_TRANSPOSE:
    case COLLET_OP_REVERSE:
    case COLLET_OP_SLICE:
    case COLLET_OP_IOTA:
    case COLLET_OP_PAD:
    case COLLET_OP_CONCATENATE:
    case COLLET_OP_GATHER:
    case COLLET_OP_DYNAMIC_SLICE:
    case COLLET_OP_DYNAMIC_UPDATE_SLICE:
    case COLLET_OP_DOT:
    case COLLET_OP_CONVOLUTION:
    case COLLET_OP_REDUCE:
    case COLLET_OP_REDUCE_WINDOW:
    case COLLET_OP_MAP:
    case COLLET_OP_CONDITIONAL:
    case COLLET_OP_SELECT:
    case COLLET_OP_CLAMP:
      return {};
    case COLLET_OP_WHILE:
      if (all_scalars(graph, node.operands)) return {};
      return "a while over arrays";
    default:
      break;
  }
  if (node.operands.empty()) return name;
  const uint32_t from = graph.type(node.operands[0]).element;
  if (!has_elementwise(node.opcode, from)) return name;
  if (node.opcode == COLLET_OP_BITCAST_CONVERT &&
      collet_type_bytes(from) != collet_type_bytes(graph.type(node.results[0]).element)) {
    return name + " between elements of different sizes";
  }
  return {};
}

std::string refusal_of(const Graph& graph, const Block& block) {
  for (NodeId n : block.nodes) {
    if (std::string why = refusal_of(graph, graph.nodes[n]); !why.empty()) return why;
  }
  return {};
}

}  // namespace

std::string scalar_block_refusal(const Graph& graph, const Block& block) {
  if (!all_scalars(graph, block.arguments) || !all_scalars(graph, block.results))
    return "arguments that are no scalars";
  return refusal_of(graph, block);
}

bool is_scalar_block(const Graph& graph, const Block& block) {
  return scalar_block_refusal(graph, block).empty();
}

bool is_expensive_block(const Graph& graph, const Block& block) {
  return std::any_of(block.nodes.begin(), block.nodes.end(), [&](NodeId n) {
    const Node& node = graph.nodes[n];
    switch (node.opcode) {
      case COLLET_OP_WHILE:
      case COLLET_OP_REDUCE:
      case COLLET_OP_REDUCE_WINDOW:
      case COLLET_OP_DOT:
      case COLLET_OP_CONVOLUTION:
      case COLLET_OP_DIVIDE:
        return true;
      default:
        break;
    }
    return is_expensive(node.opcode) || std::any_of(node.blocks.begin(), node.blocks.end(), [&](BlockId b) {
             return is_expensive_block(graph, graph.blocks[b]);
           });
  });
}

}  // namespace collet::codegen
