// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/graphviz.h"

#include <algorithm>
#include <unordered_map>

#include "hlo/base/files.h"
#include "hlo/base/json.h"
#include "hlo/base/temporary_folder.h"
#include "hlo/base/utf8.h"
#include "hlo/text/printer.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/try_command.h"

namespace collet::tool {
namespace {

using hlo::CompId;
using hlo::Computation;
using hlo::Family;
using hlo::InstrId;
using hlo::Instruction;
using hlo::Module;
using hlo::Op;

constexpr size_t kLongestLine = 44;
constexpr size_t kMostLines = 6;

std::string_view colour_of(Op op) {
  if (op == Op::PARAMETER) return "#ffd8a8";
  if (op == Op::FUSION) return "#ffc9c9";
  switch (hlo::op_info(op).family) {
    case Family::elementwise:
    case Family::convert:
      return "#fff3bf";
    case Family::dot:
    case Family::convolution:
    case Family::linalg:
    case Family::fft:
      return "#a5d8ff";
    case Family::reduce:
    case Family::window:
    case Family::sort:
    case Family::batch_norm:
      return "#d0bfff";
    case Family::movement:
    case Family::indexing:
    case Family::dynamic_shape:
      return "#b2f2bb";
    case Family::control_flow:
    case Family::asynchronous:
    case Family::custom_call:
      return "#ffc9c9";
    case Family::collective:
    case Family::host_io:
      return "#eebefa";
    default:
      return "#e9ecef";
  }
}

std::string cut(std::string_view text, size_t most = kLongestLine) {
  if (text.size() <= most) return std::string(text);
  return std::string(utf8_prefix(text, most - 3)) + "...";
}

bool is_small_constant(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  return instr.op == Op::CONSTANT && instr.shape.is_array() && instr.shape.element_count() == 1;
}

// Returns the op of a computation that consists of parameters and one op on them, which is drawn without a cluster;
// INVALID for other computations.
Op only_op(const Module& module, CompId c) {
  const Computation& body = module[c];
  Op op = Op::INVALID;
  for (InstrId id : body.order) {
    if (module[id].op == Op::PARAMETER) continue;
    if (op != Op::INVALID || !module[id].called.empty()) return Op::INVALID;
    op = module[id].op;
  }
  return op;
}

// Splits ", name=value" parts at commas outside of brackets and quotes.
std::vector<std::string_view> pieces(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      i += c == '\\';
      continue;
    }
    depth += (c == '{' || c == '(' || c == '[') - (c == '}' || c == ')' || c == ']');
    if (c != ',' || depth != 0) continue;
    out.push_back(text.substr(begin, i - begin));
    begin = i + 2;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

// Returns the text after the operands' closing bracket in "name = shape op(operands), attributes".
std::string_view behind_operands(std::string_view text, std::string_view op) {
  const size_t at = text.find(std::string(" ") + std::string(op) + "(");
  if (at == std::string_view::npos) return {};
  int depth = 0;
  for (size_t i = at + op.size() + 1; i < text.size(); ++i) {
    depth += (text[i] == '(' || text[i] == '{') - (text[i] == ')' || text[i] == '}');
    if (depth == 0) return text.substr(std::min(i + 3, text.size()));
  }
  return {};
}

/// An instruction as it is drawn.
struct Node {
  std::string op;                  ///< the opcode
  std::string name;                ///< name of the instruction
  std::vector<std::string> lines;  ///< lines of text: type, attributes, and constant operands
  std::string tip;                 ///< tool tip: the whole instruction
  std::string_view colour;         ///< colour of the op's family, "#rrggbb"
  bool is_root = false;
  std::vector<size_t> inputs;  ///< nodes of the same cluster, in the order of the operands
  std::vector<size_t> called;  ///< clusters of called computations
};

/// A computation as it is drawn.
struct Cluster {
  std::string title;
  std::vector<Node> nodes;  ///< operands before users
};

class GraphBuilder {
 public:
  explicit GraphBuilder(const Module& module) : module_(module) {
    print_.style = hlo::PrintStyle::Short;
    print_.large_constants = false;
  }

  /// Returns all clusters, the entry first.
  std::vector<Cluster> run() {
    number_of(module_.entry());
    for (size_t i = 0; i < waiting_.size(); ++i) computation(waiting_[i]);
    return std::move(clusters_);
  }

 private:
  size_t number_of(CompId c) {
    const auto [it, fresh] = number_.emplace(hlo::index_of(c), waiting_.size());
    if (fresh) waiting_.push_back(c);
    return it->second;
  }

  void computation(CompId c) {
    const Computation& in = module_[c];
    Cluster out;
    out.title = std::string(in.name) + (c == module_.entry() ? " (entry)" : "");
    std::unordered_map<uint32_t, size_t> node;
    for (InstrId id : in.order) {
      if (is_small_constant(module_, id) && id != in.root) continue;
      node.emplace(hlo::index_of(id), out.nodes.size());
      out.nodes.push_back(instruction(id, node));
      out.nodes.back().is_root = id == in.root;
    }
    clusters_.push_back(std::move(out));
  }

  Node instruction(InstrId id, const std::unordered_map<uint32_t, size_t>& node) {
    const Instruction& in = module_[id];
    Node out;
    out.op = hlo::op_info(in.op).text;
    out.name = in.name;
    out.colour = colour_of(in.op);
    out.tip = print_instruction(module_, id, print_);
    out.lines.push_back(cut(in.shape.to_string(true)));
    if (in.op == Op::PARAMETER) out.op += " " + std::to_string(in.as<hlo::ParameterAttrs>().number);
    if (in.op == Op::CONSTANT) out.lines.push_back(cut(print_literal(module_.literal(in), false)));
    for (size_t i = 0; i < in.operands.size(); ++i) {
      const InstrId operand = in.operands[i];
      if (const auto it = node.find(hlo::index_of(operand)); it != node.end()) {
        out.inputs.push_back(it->second);
      } else if (is_small_constant(module_, operand)) {
        out.lines.push_back(
            cut("operand " + std::to_string(i) + " = " + print_literal(module_.literal(module_[operand]), false)));
      }
    }
    attributes(in, out);
    if (out.lines.size() > kMostLines) {
      out.lines.resize(kMostLines);
      out.lines.back() = "...";
    }
    return out;
  }

  void attributes(const Instruction& in, Node& out) {
    for (std::string_view piece : pieces(behind_operands(out.tip, hlo::op_info(in.op).text))) {
      const std::string_view name = piece.substr(0, piece.find('='));
      const bool calls = name == "to_apply" || name == "calls" || name == "condition" || name == "body" ||
                         name == "select" || name == "scatter" || name.ends_with("computation") ||
                         name.ends_with("computations");
      if (!calls && name != "sharding" && name != "frontend_attributes") out.lines.push_back(cut(piece));
    }
    for (CompId c : in.called) {
      const Op op = only_op(module_, c);
      if (op != Op::INVALID && in.op != Op::FUSION) {
        out.lines.push_back("by " + std::string(hlo::op_info(op).text));
      } else {
        out.called.push_back(number_of(c));
        out.lines.push_back("calls " + cut(module_[c].name, kLongestLine - 6));
      }
    }
  }

  const Module& module_;
  hlo::PrintOptions print_;
  std::unordered_map<uint32_t, size_t> number_;
  std::vector<CompId> waiting_;
  std::vector<Cluster> clusters_;
};

}  // namespace

std::string to_dot(const Module& module) {
  std::vector<Cluster> clusters;
  if (module.entry() != CompId::None) clusters = GraphBuilder(module).run();
  std::string out = "digraph " + json_quote(module.name()) + " {\n  compound=true;\n  fontname=\"monospace\";\n" +
                    "  node [shape=box style=\"rounded,filled\" fontname=\"monospace\" fontsize=10];\n";
  const auto id = [](size_t cluster, size_t node) {
    return "n" + std::to_string(cluster) + "_" + std::to_string(node);
  };
  for (size_t c = 0; c < clusters.size(); ++c) {
    out += "  subgraph cluster_" + std::to_string(c) + " {\n    label=" + json_quote(clusters[c].title) +
           ";\n    style=\"rounded\";\n";
    for (size_t n = 0; n < clusters[c].nodes.size(); ++n) {
      const Node& node = clusters[c].nodes[n];
      std::string label = node.op + "  " + node.name;
      for (const std::string& line : node.lines) label += "\n" + line;
      out += "    " + id(c, n) + " [label=" + json_quote(label) + " tooltip=" + json_quote(node.tip) + " fillcolor=\"" +
             std::string(node.colour) + "\"" + (node.is_root ? " penwidth=3" : "") + "];\n";
      for (size_t input : node.inputs) out += "    " + id(c, input) + " -> " + id(c, n) + ";\n";
    }
    out += "  }\n";
  }
  for (size_t c = 0; c < clusters.size(); ++c)
    for (size_t n = 0; n < clusters[c].nodes.size(); ++n)
      for (size_t called : clusters[c].nodes[n].called)
        if (!clusters[called].nodes.empty())
          out += "  " + id(called, clusters[called].nodes.size() - 1) + " -> " + id(c, n) +
                 " [style=dashed ltail=cluster_" + std::to_string(called) + "];\n";
  return out + "}\n";
}

Expected<std::string> to_svg(const Module& module) {
  constexpr double kMostSeconds = 600;
  const TemporaryFolder folder;
  if (folder.path().empty()) return resource_exhausted("no folder for the graph can be made");
  const std::string graph = folder.path() + "/graph.dot", picture = folder.path() + "/picture.svg";
  COLLET_TRY(write_file(graph, to_dot(module)));
  COLLET_ASSIGN(const CommandOutcome outcome,
                try_command({"dot", "-Tsvg", "-o", picture, graph}, kMostSeconds, [] { return false; }));
  if (outcome.timed_out)
    return Status(Code::Unavailable, "Graphviz' dot did not end in ten minutes; --emit dot writes the graph alone");
  if (outcome.code != 0) return Status(Code::Unavailable, "Graphviz' dot failed: " + outcome.output);
  constexpr uint64_t kMostBytes = uint64_t{1} << 32;
  return read_file(picture, kMostBytes);
}

}  // namespace collet::tool
