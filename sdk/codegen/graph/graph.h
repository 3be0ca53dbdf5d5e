// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The graph of a program, in a form that is easy to rewrite: calls and fusions are inlined, ops that only rename a
/// value (such as copy and opt-barrier) are removed, and the users of each value are known.

#include <collet/codegen/array_type.h>
#include <collet/codegen/status.h>
#include <collet/program.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace collet::codegen {

using ValueId = uint32_t;
using NodeId = uint32_t;
using BlockId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

struct Value {
  ArrayType type;
  NodeId def = kNone;              ///< defining node; kNone for arguments of blocks
  uint32_t index = 0;              ///< number of the result or argument
  const void* constant = nullptr;  ///< data of an inline constant; null for other values
  bool splat = false;              ///< true for a constant whose elements are all equal
};

struct Node {
  uint32_t opcode = 0;
  const collet_op* op = nullptr;  ///< the op with the attributes; lives as long as the program
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::vector<BlockId> blocks;
};

/// A computation: the entry, a body of control flow, or a scalar computation.
struct Block {
  std::vector<NodeId> nodes;  ///< in an order in which they can run
  std::vector<ValueId> arguments;
  std::vector<ValueId> results;
  uint32_t combine = COLLET_COMBINE_OTHER;
  uint32_t region = 0;
};

struct Graph {
  const collet_program* program = nullptr;
  /// Whether a product whose precision attributes are all default may round f32 factors to tf32.
  bool tf32_by_default = false;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Block> blocks;  ///< number 0 is the entry

  const Value& value(ValueId id) const { return values[id]; }
  const ArrayType& type(ValueId id) const { return values[id].type; }
  const Node* def(ValueId id) const { return values[id].def == kNone ? nullptr : &nodes[values[id].def]; }
  ValueId add_value(ArrayType type);
};

/// Returns the attributes of a node; fields that the program's older version lacks are zero.
template <typename Attributes>
Attributes attributes(const Graph& graph, const Node& node) {
  Attributes a;
  collet_read_attributes(graph.program, node.op, &a, sizeof a);
  return a;
}

/// Returns the integers of a list in an attribute record.
Dims integers(const Graph& graph, collet_range range);

/// Reads a program into a graph. Returns an error if the program breaks a rule of program.h.
Status build_graph(const collet_program* program, Graph& graph);

/// Checks head, reserved fields, opset, opcodes, types and layouts of a program.
Status check_program(const collet_program* program);

}  // namespace collet::codegen
