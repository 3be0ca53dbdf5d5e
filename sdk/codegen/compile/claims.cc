// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/fusion/fusion.h"
#include "sdk/codegen/lower/lower.h"
#include "sdk/codegen/lower/routines.h"
#include "sdk/codegen/lower/scalar_block.h"

namespace collet::codegen {
namespace {

uint32_t bits_of(uint32_t type) {
  switch (type) {
#define COLLET_TYPE(NAME, text, value, bits, kind, since) \
  case value:                                             \
    return bits;
#include <collet/types.def>
#undef COLLET_TYPE
    default:
      return 0;
  }
}

/// Ops that the SDK rewrites into ops that this backend has.
bool expands(uint32_t opcode) {
  switch (opcode) {
    case COLLET_OP_BATCH_NORM_GRAD:
    case COLLET_OP_BATCH_NORM_INFERENCE:
    case COLLET_OP_BATCH_NORM_TRAINING:
    case COLLET_OP_RNG:
    case COLLET_OP_RAGGED_DOT:
    case COLLET_OP_SCALED_DOT:
    case COLLET_OP_DYNAMIC_RESHAPE:
    case COLLET_OP_GET_DIMENSION_SIZE:
    case COLLET_OP_SET_DIMENSION_SIZE:
      return true;
    default:
      return false;
  }
}

bool is_structural(uint32_t opcode) {
  switch (opcode) {
    case COLLET_OP_AFTER_ALL:
    case COLLET_OP_WHILE:
    case COLLET_OP_CONDITIONAL:
      return true;
    default:
      return false;
  }
}

std::string check_blocks(const Graph& graph, const Node& node) {
  for (BlockId b : node.blocks) {
    for (NodeId n : graph.blocks[b].nodes) {
      bool expand = false;
      std::string why = refusal(graph, graph.nodes[n], expand);
      if (!why.empty()) return std::string(collet_op_name(node.opcode)) + ": its body has " + why;
    }
  }
  return {};
}

}  // namespace

std::string refusal(const Graph& graph, const Node& node, bool& expand) {
  const std::string name = collet_op_name(node.opcode);
  for (const auto* list : {&node.operands, &node.results}) {
    for (ValueId v : *list) {
      const uint32_t type = graph.type(v).element;
      if (type == COLLET_TYPE_TOKEN) continue;
      if (collet_type_kind(type) == COLLET_KIND_OPAQUE) return name + " of type " + collet_type_name(type);
    }
  }
  if (expands(node.opcode)) {
    expand = true;
    return name + ", which the SDK expands";
  }
  if (is_structural(node.opcode)) return check_blocks(graph, node);
  if (node.opcode == COLLET_OP_BITCAST_CONVERT) {
    // Elements below a byte have one each: between widths their bits must be moved.
    const uint32_t from = bits_of(graph.type(node.operands[0]).element);
    const uint32_t to = bits_of(graph.type(node.results[0]).element);
    expand = from != to && (from < 8 || to < 8);
    return expand ? name + " of elements below a byte, which the SDK expands" : std::string();
  }
  if (can_inline(graph, node) || has_node_kernel(graph, node) || has_routine(graph, node)) return {};
  if (has_long_rows(graph, node)) return name + " of rows with more than " + std::to_string(INT32_MAX) + " elements";
  if (node.opcode == COLLET_OP_CUSTOM_CALL) {
    const auto a = attributes<collet_custom_call_attrs>(graph, node);
    return name + " '" + std::string(collet_string(graph.program, a.target), a.target.count) + "', which is not known";
  }
  for (BlockId b : node.blocks) {
    if (std::string why = scalar_block_refusal(graph, graph.blocks[b]); !why.empty()) {
      return name + " whose body has " + why;
    }
  }
  return name + ", which this backend does not have for these types and attributes";
}

}  // namespace collet::codegen
