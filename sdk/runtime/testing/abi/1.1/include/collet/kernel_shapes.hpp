/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_SHAPES_HPP
#define COLLET_KERNEL_SHAPES_HPP

/** \file
 * Describes ops as loops with strides, so that one kernel serves many ops: Move for ops that rearrange elements,
 * Reduction for reduce, MatrixProduct for dot. Strides and bases count elements.
 */

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernel_call.hpp"

namespace collet {
namespace kernel {

/** A loop of `extent` iterations; each advances the reader by `from` elements and the writer by `to`. */
struct Loop {
  int64_t extent;
  int64_t from;
  int64_t to;
};

/** For all indices i of the loops: to[to_base + sum(i * loop.to)] = from[from_base + sum(i * loop.from)]. */
struct Move {
  uint32_t operand = 0;       /**< number of the operand that is read; the result is written */
  uint32_t element_bytes = 0; /**< size of an element */
  int64_t from_base = 0;
  int64_t to_base = 0;
  std::vector<Loop> loops; /**< outermost first; adjacent loops that can be one are merged */
};

/** Returns the row-major strides of `array`, in elements. */
inline std::vector<int64_t> strides_of(const Array& array) {
  std::vector<int64_t> strides(array.rank);
  int64_t stride = 1;
  for (uint32_t i = array.rank; i-- > 0; stride *= array.dims[i]) strides[i] = stride;
  return strides;
}

/** Drops loops of one iteration, and merges an outer loop with the next inner one if both strides allow it. */
inline std::vector<Loop> merged(const std::vector<Loop>& loops) {
  std::vector<Loop> out;
  for (const Loop& loop : loops) {
    if (loop.extent == 1) continue;
    if (!out.empty() && out.back().from == loop.from * loop.extent && out.back().to == loop.to * loop.extent) {
      out.back() = {out.back().extent * loop.extent, loop.from, loop.to};
    } else {
      out.push_back(loop);
    }
  }
  return out;
}

/** Returns an index, saturated to 64-bit signed integers. If the host does not know it (Array::host), calls Device::read,
 * which waits for the device: a kernel that runs on the device's own thread must not do that. */
inline int64_t read_index(Device& device, const Array& scalar) {
  uint64_t bits = 0;
  if (scalar.host) {
    std::memcpy(&bits, scalar.host, std::min<size_t>(static_cast<size_t>(scalar.bytes), sizeof bits));
  } else {
    device.read(scalar.memory, scalar.offset, &bits, scalar.bytes);
  }
  if (scalar.type == COLLET_TYPE_U64 && bits > static_cast<uint64_t>(INT64_MAX)) return INT64_MAX;
  if (collet_type_kind(scalar.type) != COLLET_KIND_SIGNED || scalar.bytes == 8) return static_cast<int64_t>(bits);
  const uint64_t sign = UINT64_C(1) << (scalar.bytes * 8 - 1);
  return static_cast<int64_t>((bits ^ sign) - sign);
}

namespace detail {

/** Makes a move over all dimensions of `extents`. */
inline Move make_move(uint32_t operand, const Array& element, const int64_t* extents, const std::vector<int64_t>& from,
                      const std::vector<int64_t>& to) {
  Move move;
  move.operand = operand;
  move.element_bytes = collet_type_bytes(element.type);
  for (size_t i = 0; i < from.size(); ++i) move.loops.push_back({extents[i], from[i], to[i]});
  return move;
}

/** Makes a move that writes operand `operand`, a single element, to the whole result. */
inline Move fill_move(const Op& op, uint32_t operand) {
  const std::vector<int64_t> none(op.result().rank, 0);
  return make_move(operand, op.result(), op.result().dims, none, strides_of(op.result()));
}

/** Makes the move of pad: it copies the elements of the operand that are not cut off. */
inline Move pad_move(const Op& op) {
  const auto attributes = op.attributes<collet_pad_attrs>();
  const int64_t *low = op.list(attributes.low), *interior = op.list(attributes.interior);
  const Array &from = op.operand(0), &to = op.result();
  const std::vector<int64_t> from_strides = strides_of(from), to_strides = strides_of(to);
  Move move = make_move(0, to, from.dims, from_strides, to_strides);
  for (uint32_t d = 0; d < to.rank; ++d) {
    const int64_t step = interior[d] + 1;
    const int64_t first = low[d] >= 0 ? 0 : (-low[d] + step - 1) / step;
    const int64_t room = to.dims[d] - low[d];  // operand element i is inside the result if i * step < room
    const int64_t last = room <= 0 ? 0 : std::min(from.dims[d], (room + step - 1) / step);
    move.loops[d] = {std::max<int64_t>(last - first, 0), from_strides[d], to_strides[d] * step};
    move.from_base += first * from_strides[d];
    move.to_base += (low[d] + first * step) * to_strides[d];
  }
  return move;
}

/** Returns the start of a dynamic slice in a dimension, clamped so that the slice is inside the array. */
inline int64_t clamped_start(Device& device, const Array& index, int64_t whole, int64_t part) {
  return std::max<int64_t>(0, std::min(read_index(device, index), whole - part));
}

/** Returns the moves of concatenate: one for each operand. */
inline std::vector<Move> concatenate_moves(const Op& op) {
  const auto dimension = static_cast<size_t>(op.attributes<collet_dimension_attrs>().dimension);
  const std::vector<int64_t> to_strides = strides_of(op.result());
  std::vector<Move> moves;
  int64_t position = 0;
  for (uint32_t i = 0; i < op.operand_count(); ++i) {
    const Array& from = op.operand(i);
    moves.push_back(make_move(i, from, from.dims, strides_of(from), to_strides));
    moves.back().to_base = position * to_strides[dimension];
    position += from.dims[dimension];
  }
  return moves;
}

/** Returns the single move of broadcast, slice, transpose, reverse or reshape. */
inline Move static_move(const Op& op) {
  const Array &from = op.operand(0), &to = op.result();
  const std::vector<int64_t> from_strides = strides_of(from), to_strides = strides_of(to);
  std::vector<int64_t> step(to.rank, 0);
  int64_t base = 0;
  if (op.opcode() == COLLET_OP_BROADCAST) {
    const collet_range dims = op.attributes<collet_broadcast_attrs>().dimensions;
    for (uint32_t i = 0; i < dims.count; ++i) step[static_cast<size_t>(op.list(dims)[i])] = from_strides[i];
  } else if (op.opcode() == COLLET_OP_TRANSPOSE) {
    const collet_range dims = op.attributes<collet_dimensions_attrs>().dimensions;
    for (uint32_t i = 0; i < dims.count; ++i) step[i] = from_strides[static_cast<size_t>(op.list(dims)[i])];
  } else if (op.opcode() == COLLET_OP_SLICE) {
    const auto attributes = op.attributes<collet_slice_attrs>();
    for (uint32_t i = 0; i < to.rank; ++i) {
      step[i] = from_strides[i] * op.list(attributes.stride)[i];
      base += from_strides[i] * op.list(attributes.start)[i];
    }
  } else {
    step = from_strides;
    const collet_range dims = op.attributes<collet_dimensions_attrs>().dimensions;
    for (uint32_t i = 0; i < dims.count; ++i) {
      const auto d = static_cast<size_t>(op.list(dims)[i]);
      base += from_strides[d] * (to.dims[d] - 1);
      step[d] = -from_strides[d];
    }
  }
  Move move = make_move(0, to, to.dims, step, to_strides);
  move.from_base = base;
  return move;
}

/** Returns the moves of dynamic-slice and dynamic-update-slice, whose starts are read from the device. */
inline std::vector<Move> dynamic_moves(Device& device, const Op& op) {
  const bool update = op.opcode() == COLLET_OP_DYNAMIC_UPDATE_SLICE;
  const Array &whole = op.operand(0), &part = update ? op.operand(1) : op.result();
  const std::vector<int64_t> whole_strides = strides_of(whole), part_strides = strides_of(part);
  int64_t base = 0;
  if (part.elements != 0) {
    for (uint32_t d = 0; d < whole.rank; ++d) {
      const Array& start = op.operand((update ? 2 : 1) + d);
      base += whole_strides[d] * clamped_start(device, start, whole.dims[d], part.dims[d]);
    }
  }
  if (!update) {
    Move move = make_move(0, part, part.dims, whole_strides, part_strides);
    move.from_base = base;
    return {move};
  }
  std::vector<Move> moves;
  const bool in_place = whole.memory == op.result().memory && whole.offset == op.result().offset;
  if (!in_place) moves.push_back(make_move(0, whole, whole.dims, whole_strides, whole_strides));
  moves.push_back(make_move(1, part, part.dims, part_strides, whole_strides));
  moves.back().to_base = base;
  return moves;
}

}  // namespace detail

/** True for ops that only move elements. */
inline bool is_move(uint32_t opcode) {
  switch (opcode) {
    case COLLET_OP_BROADCAST:
    case COLLET_OP_CONCATENATE:
    case COLLET_OP_DYNAMIC_SLICE:
    case COLLET_OP_DYNAMIC_UPDATE_SLICE:
    case COLLET_OP_PAD:
    case COLLET_OP_RESHAPE:
    case COLLET_OP_REVERSE:
    case COLLET_OP_SLICE:
    case COLLET_OP_TRANSPOSE:
      return true;
    default:
      return false;
  }
}

/** Returns the moves of `op`, for which is_move holds, in the order in which they must be made. Start indices that the
 * host does not know are read from the device by read_index. */
inline std::vector<Move> moves_of(Device& device, const Op& op) {
  std::vector<Move> moves;
  switch (op.opcode()) {
    case COLLET_OP_CONCATENATE:
      moves = detail::concatenate_moves(op);
      break;
    case COLLET_OP_PAD:
      moves = {detail::fill_move(op, 1), detail::pad_move(op)};
      break;
    case COLLET_OP_DYNAMIC_SLICE:
    case COLLET_OP_DYNAMIC_UPDATE_SLICE:
      moves = detail::dynamic_moves(device, op);
      break;
    case COLLET_OP_RESHAPE: {
      const int64_t all = static_cast<int64_t>(op.result().elements);
      moves = {detail::make_move(0, op.result(), &all, {1}, {1})};
      break;
    }
    default:
      moves = {detail::static_move(op)};
  }
  const auto empty = [](const Move& move) {
    return std::any_of(move.loops.begin(), move.loops.end(), [](const Loop& loop) { return loop.extent == 0; });
  };
  moves.erase(std::remove_if(moves.begin(), moves.end(), empty), moves.end());
  for (Move& move : moves) move.loops = merged(move.loops);
  return moves;
}

/** A reduce of one operand by a simple combination. For each index of `kept`: start with the initial value (operand 1),
 * combine it with the elements over which `reduced` runs, and store it. */
struct Reduction {
  uint32_t combine;          /**< COLLET_COMBINE_* up to XOR */
  std::vector<Loop> kept;    /**< from: operand 0; to: the result */
  std::vector<Loop> reduced; /**< from: operand 0; to: 0 */
};

/** True if `op` is a reduce that Reduction can describe. For Kernel::takes. */
inline bool is_simple_reduction(const Op& op) {
  return op.opcode() == COLLET_OP_REDUCE && op.operand_count() == 2 && op.combine() >= COLLET_COMBINE_ADD &&
         op.combine() <= COLLET_COMBINE_XOR;
}

/** Returns the loops of a reduce for which is_simple_reduction holds. */
inline Reduction reduction_of(const Op& op) {
  const collet_range dims = op.attributes<collet_dimensions_attrs>().dimensions;
  const int64_t* list = op.list(dims);
  const std::vector<int64_t> from = strides_of(op.operand(0)), to = strides_of(op.result());
  Reduction out{op.combine(), {}, {}};
  size_t kept = 0;
  for (uint32_t d = 0; d < op.operand(0).rank; ++d) {
    const bool gone = std::find(list, list + dims.count, static_cast<int64_t>(d)) != list + dims.count;
    if (gone) {
      out.reduced.push_back({op.operand(0).dims[d], from[d], 0});
    } else {
      out.kept.push_back({op.operand(0).dims[d], from[d], to[kept++]});
    }
  }
  out.kept = merged(out.kept);
  out.reduced = merged(out.reduced);
  return out;
}

/** A dot as batched matrix product: out[b][m][n] = sum over k of lhs[b][m][k] * rhs[b][k][n], with a stride for each
 * index. */
struct MatrixProduct {
  int64_t batch, m, n, k;
  int64_t lhs_b, lhs_m, lhs_k;
  int64_t rhs_b, rhs_k, rhs_n;
  int64_t out_b, out_m, out_n;
};

namespace detail {

/** Merges loops; stores the result in `out` and returns true if at most one loop is left. */
inline bool one_loop(const std::vector<Loop>& loops, Loop* out) {
  const std::vector<Loop> one = merged(loops);
  *out = one.empty() ? Loop{1, 0, 0} : one[0];
  return one.size() <= 1;
}

}  // namespace detail

/** Fills `out` for a dot whose dimensions can be merged to at most one each of batch, m, n and k (nearly all can); else
 * returns false. The caller must check precision and algorithm. */
inline bool matrix_product_of(const Op& op, MatrixProduct* out) {
  const auto attributes = op.attributes<collet_dot_attrs>();
  const Array &lhs = op.operand(0), &rhs = op.operand(1);
  const std::vector<int64_t> ls = strides_of(lhs), rs = strides_of(rhs), os = strides_of(op.result());
  const int64_t *lhs_batch = op.list(attributes.lhs_batch), *rhs_batch = op.list(attributes.rhs_batch);
  const int64_t *lhs_sum = op.list(attributes.lhs_contracting), *rhs_sum = op.list(attributes.rhs_contracting);
  std::vector<char> lhs_bound(lhs.rank, 0), rhs_bound(rhs.rank, 0);
  std::vector<Loop> lhs_out, rhs_out, sums, ms, ns;  // batch loops of either side share the result's stride
  size_t position = 0;
  for (uint32_t i = 0; i < attributes.lhs_batch.count; ++i, ++position) {
    const auto l = static_cast<size_t>(lhs_batch[i]), r = static_cast<size_t>(rhs_batch[i]);
    lhs_bound[l] = rhs_bound[r] = 1;
    lhs_out.push_back({lhs.dims[l], ls[l], os[position]});
    rhs_out.push_back({lhs.dims[l], rs[r], os[position]});
  }
  for (uint32_t i = 0; i < attributes.lhs_contracting.count; ++i) {
    const auto l = static_cast<size_t>(lhs_sum[i]), r = static_cast<size_t>(rhs_sum[i]);
    lhs_bound[l] = rhs_bound[r] = 1;
    sums.push_back({lhs.dims[l], ls[l], rs[r]});
  }
  for (size_t d = 0; d < lhs.rank; ++d) {
    if (!lhs_bound[d]) ms.push_back({lhs.dims[d], ls[d], os[position++]});
  }
  for (size_t d = 0; d < rhs.rank; ++d) {
    if (!rhs_bound[d]) ns.push_back({rhs.dims[d], rs[d], os[position++]});
  }
  Loop b1, b2, k, m, n;
  if (!detail::one_loop(lhs_out, &b1) || !detail::one_loop(rhs_out, &b2) || !detail::one_loop(sums, &k) ||
      !detail::one_loop(ms, &m) || !detail::one_loop(ns, &n)) {
    return false;
  }
  *out = {b1.extent, m.extent, n.extent, k.extent, b1.from, m.from, k.from, b2.from, k.to, n.from, b1.to, m.to, n.to};
  return true;
}

/** True if `op` is a dot that MatrixProduct can describe, in the plain arithmetic of its types. For Kernel::takes. */
inline bool is_plain_product(const Op& op) {
  MatrixProduct product;
  return op.opcode() == COLLET_OP_DOT && op.attributes<collet_dot_attrs>().algorithm == COLLET_ALGORITHM_UNSET &&
         op.operand(0).type == op.operand(1).type && op.operand(0).type == op.result().type &&
         matrix_product_of(op, &product);
}

}  // namespace kernel
}  // namespace collet

#endif
