// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sdk/codegen/lower/convolution.h"
#include "sdk/codegen/lower/kernel_builder.h"

namespace collet::codegen {
namespace {

/// True for ops whose elements are computed from the operands' elements at the same position.
bool is_pointwise(uint32_t opcode) {
  return (collet_op_traits(opcode) & COLLET_OP_ELEMENTWISE) != 0 || opcode == COLLET_OP_BITCAST_CONVERT;
}

}  // namespace

ExprId KernelBuilder::compute(const Node& node, ValueId v, const Position& where, ExprId mask) {
  const ArrayType& type = graph_.type(v);
  if (node.opcode == COLLET_OP_RESHAPE || node.opcode == COLLET_OP_BITCAST) {
    return value(node.operands[0], Position{true, {linear(where, type.dims)}}, mask);
  }
  if (is_pointwise(node.opcode)) return elementwise(node, v, where, mask);
  const Position at = spread(where, type.dims);
  switch (node.opcode) {
    case COLLET_OP_BROADCAST: {
      Dims dims = integers(graph_, attributes<collet_broadcast_attrs>(graph_, node).dimensions);
      Position from;
      for (int64_t d : dims) from.at.push_back(at[static_cast<size_t>(d)]);
      return value(node.operands[0], from, mask);
    }
    case COLLET_OP_TRANSPOSE: {
      Dims dims = integers(graph_, attributes<collet_dimensions_attrs>(graph_, node).dimensions);
      Position from;
      from.at.resize(dims.size());
      for (size_t i = 0; i < dims.size(); ++i) from[static_cast<size_t>(dims[i])] = at[i];
      return value(node.operands[0], from, mask);
    }
    case COLLET_OP_REVERSE: {
      Dims dims = integers(graph_, attributes<collet_dimensions_attrs>(graph_, node).dimensions);
      Position from = at;
      for (size_t d = 0; d < at.size(); ++d) {
        if (!contains(dims, static_cast<int64_t>(d))) continue;
        Index last;
        last.constant = type.dims[d] - 1;
        from[d] = add_scaled(last, at[d], -1);
      }
      return value(node.operands[0], from, mask);
    }
    case COLLET_OP_SLICE: {
      auto a = attributes<collet_slice_attrs>(graph_, node);
      Dims begin = integers(graph_, a.start);
      Dims stride = integers(graph_, a.stride);
      Position from;
      from.at.resize(at.size());
      for (size_t d = 0; d < at.size(); ++d) {
        from[d].constant = begin[d];
        from[d] = add_scaled(from[d], at[d], stride[d]);
      }
      return value(node.operands[0], from, mask);
    }
    case COLLET_OP_IOTA: {
      auto a = attributes<collet_iota_attrs>(graph_, node);
      return convert(index_value(at[static_cast<size_t>(a.dimension)]), type.element);
    }
    case COLLET_OP_DYNAMIC_SLICE: {
      Position from = at;
      const Dims& dims = graph_.type(node.operands[0]).dims;
      for (size_t d = 0; d < at.size(); ++d) {
        ExprId x = value(node.operands[d + 1], {}, kNoExpr);
        from[d] = add_scaled(from[d], start(x, dims[d] - type.dims[d]), 1);
      }
      return value(node.operands[0], from, mask);
    }
    case COLLET_OP_PAD:
      return pad(node, at, mask);
    case COLLET_OP_CONCATENATE:
      return concatenate(node, at, mask);
    case COLLET_OP_GATHER:
      return gather(node, at, mask);
    case COLLET_OP_DOT:
      if (!frame_ && is_outer_product(graph_, node)) return outer_product(*this, graph_, node, at, mask);
      break;
    default:
      break;
  }
  if (frame_) return structured(node, v, at, mask);
  if (node.opcode == COLLET_OP_REDUCE) return reduce(node, graph_.value(v).index, at);
  return integer(type.element, 0);  // unreachable: `supports` accepts only the cases above
}

ExprId KernelBuilder::elementwise(const Node& node, ValueId v, const Position& at, ExprId mask) {
  const ArrayType& type = graph_.type(v);
  std::vector<ExprId> args;
  for (ValueId o : node.operands) args.push_back(value(o, graph_.type(o).rank() == 0 ? Position{} : at, mask));
  int64_t a = 0;
  int64_t b = 0;
  switch (node.opcode) {
    case COLLET_OP_MAP:
      return inlined(graph_.blocks[node.blocks[0]], args, mask)[0];
    case COLLET_OP_CONVERT:
      return convert(args[0], type.element);
    case COLLET_OP_COMPARE: {
      auto c = attributes<collet_compare_attrs>(graph_, node);
      a = c.direction;
      b = c.type;
      break;
    }
    case COLLET_OP_REDUCE_PRECISION: {
      auto r = attributes<collet_reduce_precision_attrs>(graph_, node);
      a = r.exponent_bits;
      b = r.mantissa_bits;
      break;
    }
    default:
      break;
  }
  return op(node.opcode, type.element, std::move(args), a, b);
}

ExprId KernelBuilder::pad(const Node& node, const Position& at, ExprId mask) {
  auto a = attributes<collet_pad_attrs>(graph_, node);
  Dims low = integers(graph_, a.low);
  Dims interior = integers(graph_, a.interior);
  const ArrayType& from_type = graph_.type(node.operands[0]);
  Position from;
  from.at.resize(at.size());
  ExprId inside = kNoExpr;
  for (size_t d = 0; d < at.size(); ++d) {
    Index shifted = at[d];
    shifted.constant -= low[d];
    if (interior[d] != 0) {
      Index rest;
      divide(shifted, interior[d] + 1, from[d], rest);
      inside = both(inside, in_range(rest, 1));
    } else {
      from[d] = shifted;
    }
    inside = both(inside, in_range(from[d], from_type.dims[d]));
  }
  if (from_type.elements == 0) return value(node.operands[1], {}, mask);
  ExprId x = value(node.operands[0], from, both(mask, inside));
  if (inside == kNoExpr) return x;
  ExprId padding = value(node.operands[1], {}, kNoExpr);
  return op(COLLET_OP_SELECT, from_type.element, {inside, x, padding});
}

ExprId KernelBuilder::concatenate(const Node& node, const Position& at, ExprId mask) {
  size_t d = static_cast<size_t>(attributes<collet_dimension_attrs>(graph_, node).dimension);
  ExprId result = kNoExpr;
  int64_t offset = 0;
  for (ValueId o : node.operands) {
    const ArrayType& t = graph_.type(o);
    if (t.elements == 0) continue;
    Position from = at;
    from[d].constant -= offset;
    offset += t.dims[d];
    ExprId inside = in_range(from[d], t.dims[d]);
    auto [lo, hi] = range(from[d]);
    if (inside != kNoExpr && (hi < 0 || lo >= t.dims[d])) continue;
    ExprId x = value(o, from, both(mask, inside));
    result = result == kNoExpr ? x : inside == kNoExpr ? x : op(COLLET_OP_SELECT, t.element, {inside, x, result});
  }
  return result == kNoExpr ? integer(graph_.type(node.results[0]).element, 0) : result;
}

ExprId KernelBuilder::gather(const Node& node, const Position& at, ExprId mask) {
  auto a = attributes<collet_gather_attrs>(graph_, node);
  Dims offset_dims = integers(graph_, a.offset_dims);
  Dims collapsed = integers(graph_, a.collapsed_slice_dims);
  Dims index_map = integers(graph_, a.start_index_map);
  Dims operand_batch = integers(graph_, a.operand_batching_dims);
  Dims indices_batch = integers(graph_, a.start_indices_batching_dims);
  Dims sizes = integers(graph_, a.slice_sizes);
  const ArrayType& operand = graph_.type(node.operands[0]);
  const ArrayType& indices = graph_.type(node.operands[1]);
  Position batch;
  for (size_t d = 0; d < at.size(); ++d) {
    if (!contains(offset_dims, static_cast<int64_t>(d))) batch.at.push_back(at[d]);
  }
  const auto indices_at = [&](int64_t k) { return index_position(batch, indices.dims, a.index_vector_dim, k); };
  Position from;
  from.at.resize(operand.dims.size());
  size_t next_offset = 0;
  for (size_t d = 0; d < operand.dims.size(); ++d) {
    int64_t dim = static_cast<int64_t>(d);
    if (contains(collapsed, dim) || contains(operand_batch, dim)) continue;
    from[d] = at[static_cast<size_t>(offset_dims[next_offset++])];
  }
  for (size_t k = 0; k < index_map.size(); ++k) {
    size_t d = static_cast<size_t>(index_map[k]);
    ExprId x = value(node.operands[1], indices_at(static_cast<int64_t>(k)), mask);
    from[d] = add_scaled(from[d], start(x, operand.dims[d] - sizes[d]), 1);
  }
  for (size_t k = 0; k < operand_batch.size(); ++k) {
    Position p = indices_at(0);
    from[static_cast<size_t>(operand_batch[k])] = p[static_cast<size_t>(indices_batch[k])];
  }
  return value(node.operands[0], from, mask);
}

ExprId KernelBuilder::reduce(const Node& node, uint32_t result, const Position& at) {
  NodeId id = static_cast<NodeId>(&node - graph_.nodes.data());
  Dims dims = integers(graph_, attributes<collet_dimensions_attrs>(graph_, node).dimensions);
  Position from;
  // Checked for each read, because a reduction may be read at the position of its loops and also at another one.
  if (!match_loops(node, dims, at, from)) failed_ = true;
  auto it = reductions_.find(id);
  if (it == reductions_.end()) {
    size_t n = node.operands.size() / 2;
    Reduction r;
    const Block& block = graph_.blocks[node.blocks[0]];
    r.combine = n == 1 ? block.combine : static_cast<uint32_t>(COLLET_COMBINE_OTHER);
    if (r.combine > COLLET_COMBINE_XOR) r.combine = COLLET_COMBINE_OTHER;
    for (size_t k = 0; k < n; ++k) {
      const uint32_t type = graph_.type(node.results[k]).element;
      r.inputs.push_back(convert(value(node.operands[k], from, kNoExpr), type));
      r.inits.push_back(convert(value(node.operands[n + k], {}, kNoExpr), type));
      r.types.push_back(type);
    }
    if (r.combine == COLLET_COMBINE_OTHER) r.body = body(block);
    it = reductions_.emplace(id, static_cast<int64_t>(kernel_.reductions.size())).first;
    kernel_.reductions.push_back(std::move(r));
  }
  Expr i;
  i.op = ExprOp::kReduced;
  i.type = graph_.type(node.results[result]).element;
  i.a = result;
  i.b = it->second;
  return emit(std::move(i));
}

/// The kept dimensions must be the outer loops and the reduced ones the inner loops, both in order. Dimensions of size
/// 1 need no loop.
bool KernelBuilder::match_loops(const Node& node, const Dims& reduced, const Position& at, Position& from) const {
  const Dims& dims = graph_.type(node.operands[0]).dims;
  auto next_loop = [&](size_t& l, size_t end) {
    while (l < end && kernel_.loops[l].size == 1) ++l;
    return l < end ? l++ : end;
  };
  from.at.resize(dims.size());
  bool ok = true;
  size_t outer = 0;
  size_t inner = kernel_.outer;
  size_t kept = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool is_reduced = contains(reduced, static_cast<int64_t>(d));
    if (!is_reduced) from[d] = at[kept++];
    if (dims[d] == 1) continue;
    const size_t end = is_reduced ? kernel_.loops.size() : kernel_.outer;
    const size_t l = next_loop(is_reduced ? inner : outer, end);
    if (l == end || kernel_.loops[l].size != dims[d]) return false;
    if (is_reduced) {
      from[d] = loop_index(l);
    } else {
      ok = ok && from[d] == loop_index(l);
    }
  }
  return ok && next_loop(inner, kernel_.loops.size()) == kernel_.loops.size();
}

bool KernelBuilder::scattered(ValueId v) const {
  int places = 0;
  for (auto it = memo_.lower_bound({v, Position{}, INT32_MIN}); it != memo_.end() && std::get<0>(it->first) == v;
       ++it) {
    ++places;
  }
  return places > 1;
}

}  // namespace collet::codegen
