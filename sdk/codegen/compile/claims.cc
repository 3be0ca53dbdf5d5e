// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/compile.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "sdk/codegen/base/factorization.h"
#include "sdk/codegen/fusion/fusion.h"
#include "sdk/codegen/lower/collective.h"
#include "sdk/codegen/lower/factorize.h"
#include "sdk/codegen/lower/lower.h"
#include "sdk/codegen/lower/routines.h"
#include "sdk/codegen/lower/scalar_block.h"
#include "sdk/codegen/routines/lapack.h"

namespace collet::codegen {
namespace {

/// Limit of the arrays of a kernel, which need 8 bytes of parameters each. All versions of CUDA allow 4,096 bytes of parameters,
/// and PTX as LLVM writes it 4,352.
constexpr size_t kMostGridArrays = 500;

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

/// True for ops that this backend does not compile, but that the SDK rewrites into ops that it does compile.
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

std::string refusal(const Graph& graph, const Node& node, const Target& target, bool& expand);

std::string check_blocks(const Graph& graph, const Node& node, const Target& target) {
  for (BlockId b : node.blocks) {
    for (NodeId n : graph.blocks[b].nodes) {
      bool expand = false;
      std::string why = refusal(graph, graph.nodes[n], target, expand);
      if (!why.empty()) return std::string(collet_op_name(node.opcode)) + ": its body has " + why;
    }
  }
  return {};
}

/// Returns the reason why a node cannot be compiled; empty if it can. Sets `expand` if the ops that the SDK rewrites
/// the node into can be compiled.
std::string refusal(const Graph& graph, const Node& node, const Target& target, bool& expand) {
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
  if (is_structural(node.opcode)) return check_blocks(graph, node, target);
  if (target.has_grid() && is_host_value(graph, node)) return {};
  if (target.grid.neutral && is_collective(node.opcode)) return name + ", for which there is no kernel";
  if (target.has_grid() && is_collective(node.opcode)) {
    const std::string why = collective_refusal(graph, node);
    return why.empty() ? why : name + why;
  }
  // An op with a body becomes one kernel that has all of the op's arrays as parameters.
  const size_t most_arrays = target.kernel_arrays != 0 ? static_cast<size_t>(target.kernel_arrays)
                             : target.has_grid()       ? kMostGridArrays
                                                       : SIZE_MAX;
  if (!node.blocks.empty() && 2 * node.operands.size() + node.results.size() > most_arrays)
    return name + " of more arrays than a kernel has parameters for";
  if (node.opcode == COLLET_OP_BITCAST_CONVERT) {
    // Elements narrower than a byte are stored one per byte, so a bitcast that changes their width must move bits
    // between bytes.
    const uint32_t from = bits_of(graph.type(node.operands[0]).element);
    const uint32_t to = bits_of(graph.type(node.results[0]).element);
    expand = from != to && (from < 8 || to < 8);
    return expand ? name + " of elements below a byte, which the SDK expands" : std::string();
  }
  if (can_inline(graph, node) || has_node_kernel(graph, node)) return {};
  if (target.has_grid() && target.grid.libraries.factorizations && library_factorization(graph, node)) return {};
  if (has_routine(graph, node)) {
    const bool sorts = target.sort_kernels || (target.has_grid() && !target.grid.neutral);
    if (target.routines || (sorts && node.opcode == COLLET_OP_SORT)) return {};
    if (target.grid.libraries.fft && node.opcode == COLLET_OP_FFT) return {};
    expand = true;
    return name + ", which is no loop nest";
  }
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

class Claims {
 public:
  /// `program` and `target` must outlive this object.
  Claims(const collet_program* program, const Target& target) : program_(program), target_(target) {}

  /// Builds the graph of the program. Returns an error if the program breaks a rule of program.h.
  Status prepare();
  /// Writes the answer for op number `op` of the program into `verdict`, with the reason of a refusal.
  void answer(uint32_t op, collet_verdict& verdict) const;
  /// Returns OK if all ops of the entry are accepted, else UNIMPLEMENTED with the first reason. Unless `rejection` is
  /// null, the numbers of the first `rejection->count` refused ops are stored in it, and `count` becomes the number of
  /// refused ops.
  Status check(collet_rejection* rejection) const;

 private:
  std::string refusal(const collet_op* op, bool& expand) const;

  const collet_program* program_;
  const Target& target_;
  Graph graph_;
  std::unordered_map<const collet_op*, NodeId> node_of_;
};

Status Claims::prepare() {
  COLLET_CODEGEN_TRY(build_graph(program_, graph_));
  for (NodeId n = 0; n < graph_.nodes.size(); ++n) node_of_[graph_.nodes[n].op] = n;
  return {};
}

void Claims::answer(uint32_t id, collet_verdict& verdict) const {
  bool expand = false;
  const collet_op* op = collet_op_at(program_, id);
  const std::string why = op->since > COLLET_OPSET ? "an op of a newer opset" : refusal(op, expand);
  verdict.answer = why.empty() ? COLLET_ACCEPT : expand ? COLLET_EXPAND : COLLET_DECLINE;
  const size_t n = std::min(why.size(), sizeof verdict.reason - 1);
  std::memcpy(verdict.reason, why.data(), n);
  verdict.reason[n] = 0;
}

std::string Claims::refusal(const collet_op* op, bool& expand) const {
  const bool named = op->opcode == COLLET_OP_CALL && node_of_.contains(op);
  if (!named && (op->opcode == COLLET_OP_CALL || op->opcode == COLLET_OP_FUSION)) {
    const collet_region* region = collet_region_at(program_, op->regions.first);
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      bool inner = false;
      const std::string why = refusal(collet_op_at(program_, region->ops.first + i), inner);
      if (!why.empty()) {
        expand = op->opcode == COLLET_OP_CALL;
        return std::string(collet_op_name(op->opcode)) + " of " + why;
      }
    }
    return {};
  }
  const auto found = node_of_.find(op);
  return found == node_of_.end() ? std::string()
                                 : codegen::refusal(graph_, graph_.nodes[found->second], target_, expand);
}

Status Claims::check(collet_rejection* rejection) const {
  const collet_region* entry = collet_region_at(program_, 0);
  const uint32_t most = rejection ? rejection->count : 0;
  uint32_t named = 0;
  std::string why;
  for (uint32_t i = 0; i < entry->ops.count; ++i) {
    collet_verdict v{};
    answer(entry->ops.first + i, v);
    if (v.answer == COLLET_ACCEPT) continue;
    if (named < most) rejection->ops[named++] = entry->ops.first + i;
    if (why.empty()) why = v.reason;
  }
  if (rejection) rejection->count = named;
  return why.empty() ? Status{} : Status{COLLET_UNIMPLEMENTED, why};
}

}  // namespace

Status answer_ops(const collet_program* program, const Target& target, const uint32_t* ops, uint32_t count,
                  collet_verdict* verdicts) {
  Claims claims(program, target);
  COLLET_CODEGEN_TRY(claims.prepare());
  for (uint32_t i = 0; i < count; ++i) {
    if (ops[i] >= program->ops.count) return {COLLET_OUT_OF_RANGE, "no such op"};
    claims.answer(ops[i], verdicts[i]);
  }
  return {};
}

const char* routine_composite(uint32_t index) {
  return has_lapack() ? factorization_name(index) : nullptr;
}

const char* library_composite(uint32_t index) {
  constexpr uint32_t kCount = 5;  // lu, geqrf, householder_product, eigh and svd are the first ones
  return index < kCount ? factorization_name(index) : nullptr;
}

Status check_program(const collet_program* program, const Target& target, collet_rejection* rejection) {
  Claims claims(program, target);
  COLLET_CODEGEN_TRY(claims.prepare());
  return claims.check(rejection);
}

}  // namespace collet::codegen
