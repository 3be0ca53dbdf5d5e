// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/routines.h"

#include <cstdint>
#include <string_view>

#include "sdk/codegen/lower/scalar_block.h"

namespace collet::codegen {
namespace {

bool real_or_complex(uint32_t type) {
  return type == COLLET_TYPE_F32 || type == COLLET_TYPE_F64 || type == COLLET_TYPE_C64 || type == COLLET_TYPE_C128;
}

/// Values and places of the largest, as a custom call that frontends know.
bool is_topk_call(const Graph& graph, const Node& node) {
  const auto a = attributes<collet_custom_call_attrs>(graph, node);
  if (std::string_view(collet_string(graph.program, a.target), a.target.count) != "TopK") return false;
  if (node.operands.size() != 1 || node.results.size() != 2) return false;
  const auto& from = graph.type(node.operands[0]);
  const auto& values = graph.type(node.results[0]);
  const auto& places = graph.type(node.results[1]);
  if (from.rank() == 0 || values.element != from.element || places.element != COLLET_TYPE_S32) return false;
  Dims rows = from.dims;
  rows.back() = values.rank() == from.rank() ? values.dims.back() : -1;
  const bool fits = values.dims == rows && places.dims == rows && rows.back() <= from.dims.back();
  return fits && (from.element == COLLET_TYPE_F32 || from.element == COLLET_TYPE_BF16);
}

}  // namespace

bool has_long_rows(const Graph& graph, const Node& node) {
  const bool topk = node.opcode == COLLET_OP_TOPK || node.opcode == COLLET_OP_CUSTOM_CALL;
  if (node.opcode != COLLET_OP_SORT && !topk) return false;
  if (node.opcode == COLLET_OP_CUSTOM_CALL && !is_topk_call(graph, node)) return false;
  const Dims& dims = graph.type(node.operands[0]).dims;
  if (dims.empty()) return false;
  const auto last = static_cast<int64_t>(dims.size()) - 1;
  const int64_t dim = topk ? last : attributes<collet_sort_attrs>(graph, node).dimension;
  return dims[static_cast<size_t>(dim)] > INT32_MAX;
}

bool has_library_call(const Graph& graph, const Node& node) {
  switch (node.opcode) {
    case COLLET_OP_SORT:
      return is_scalar_block(graph, graph.blocks[node.blocks[0]]) && !has_long_rows(graph, node);
    case COLLET_OP_TOPK: {
      const uint32_t type = graph.type(node.operands[0]).element;
      const uint32_t kind = collet_type_kind(type);
      return kind != COLLET_KIND_COMPLEX && (kind != COLLET_KIND_FLOAT || collet_type_bytes(type) > 1) &&
             !has_long_rows(graph, node);
    }
    case COLLET_OP_RNG_BIT_GENERATOR:
      return true;
    case COLLET_OP_RNG_GET_AND_UPDATE_STATE: {
      const auto& type = graph.type(node.results[0]);
      return type.element == COLLET_TYPE_U64 && type.elements == 2;
    }
    case COLLET_OP_CUSTOM_CALL:
      return is_topk_call(graph, node) && !has_long_rows(graph, node);
    case COLLET_OP_FFT:
    case COLLET_OP_CHOLESKY:
    case COLLET_OP_TRIANGULAR_SOLVE:
      return real_or_complex(graph.type(node.operands[0]).element);
    default:
      return false;
  }
}

Status make_library_call(const Graph& graph, const Node& node, std::vector<Comparator>& comparators,
                         std::unique_ptr<LibraryCall>& out) {
  switch (node.opcode) {
    case COLLET_OP_SORT:
      out = make_sort(graph, node, comparators);
      return {};
    case COLLET_OP_TOPK:
      out = make_topk(graph, node);
      return {};
    case COLLET_OP_RNG_BIT_GENERATOR:
      out = make_random_bits(graph, node);
      return {};
    case COLLET_OP_RNG_GET_AND_UPDATE_STATE:
      out = make_random_state(graph, node);
      return {};
    case COLLET_OP_CUSTOM_CALL:
      out = make_topk(graph, node);
      return {};
    case COLLET_OP_FFT:
      out = make_fft(graph, node);
      return {};
    case COLLET_OP_CHOLESKY:
      out = make_cholesky(graph, node);
      return {};
    case COLLET_OP_TRIANGULAR_SOLVE:
      out = make_triangular_solve(graph, node);
      return {};
    default:
      return {COLLET_UNIMPLEMENTED, std::string("cpu: no routine for ") + collet_op_name(node.opcode)};
  }
}

}  // namespace collet::codegen
