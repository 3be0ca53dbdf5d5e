// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/graph/print.h"

#include <set>

namespace collet::codegen {
namespace {

std::string name_of(ValueId v) {
  return "%" + std::to_string(v);
}

std::string names(const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId v : values) text += (text.empty() ? "" : ", ") + name_of(v);
  return text;
}

std::string typed(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId v : values) text += (text.empty() ? "" : ", ") + name_of(v) + ": " + type_text(graph.type(v));
  return text;
}

/// Prints the constants among `values` that have not been shown, so that they precede their first use.
void print_constants(const Graph& graph, const std::vector<ValueId>& values, std::set<ValueId>& shown,
                     std::string& out) {
  for (ValueId v : values) {
    const Value& value = graph.value(v);
    if (!value.constant || !shown.insert(v).second) continue;
    out += "  " + typed(graph, {v}) + (value.splat ? " = constant of one value\n" : " = constant\n");
  }
}

void print_node(const Graph& graph, const Node& node, std::string& out) {
  out += "  " + typed(graph, node.results) + " = " + collet_op_name(node.opcode) + "(" + names(node.operands) + ")";
  for (BlockId b : node.blocks) out += ", block " + std::to_string(b);
  out += "\n";
}

}  // namespace

std::string type_text(const ArrayType& type) {
  std::string text = std::string(collet_type_name(type.element)) + "[";
  for (size_t d = 0; d < type.dims.size(); ++d) text += (d ? "," : "") + std::to_string(type.dims[d]);
  return text + "]";
}

std::string print_graph(const Graph& graph) {
  std::string out;
  for (BlockId b = 0; b < graph.blocks.size(); ++b) {
    const Block& block = graph.blocks[b];
    out += "block " + std::to_string(b) + "(" + typed(graph, block.arguments) + ") {\n";
    std::set<ValueId> shown;
    for (NodeId n : block.nodes) {
      print_constants(graph, graph.nodes[n].operands, shown, out);
      print_node(graph, graph.nodes[n], out);
    }
    print_constants(graph, block.results, shown, out);
    out += "  return " + names(block.results) + "\n}\n";
  }
  return out;
}

}  // namespace collet::codegen
