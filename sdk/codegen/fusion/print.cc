// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/fusion/print.h"

#include "sdk/codegen/graph/print.h"

namespace collet::codegen {
namespace {

std::string nodes_text(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::string text;
  for (NodeId n : nodes) {
    const Node& node = graph.nodes[n];
    text += text.empty() ? "" : ", ";
    text += collet_op_name(node.opcode);
    for (ValueId v : node.results) text += " %" + std::to_string(v);
  }
  return text;
}

}  // namespace

std::string print_groups(const Graph& graph, const std::vector<FusionGroup>& groups) {
  std::string out;
  for (size_t g = 0; g < groups.size(); ++g) {
    const FusionGroup& group = groups[g];
    out += "  group " + std::to_string(g) + ": " + nodes_text(graph, group.nodes);
    if (group.fused) {
      std::string loops;
      for (size_t d = 0; d < group.values.shape.size(); ++d) {
        loops += (d ? " x " : "") + std::to_string(group.values.shape[d]);
        if (group.values.inner[d]) loops += " inner";
      }
      out += "; loops " + (loops.empty() ? std::string("none") : loops) + "; stores";
      for (ValueId v : group.values.roots) out += " %" + std::to_string(v);
    }
    out += "\n";
  }
  return out;
}

}  // namespace collet::codegen
