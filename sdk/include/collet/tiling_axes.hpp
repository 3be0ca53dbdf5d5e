/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_TILING_AXES_HPP
#define COLLET_TILING_AXES_HPP

/** \file
 * Which dimensions of the arrays of a group of ops may be cut, and how a cut of one dimension cuts the others. A part of
 * tiling.hpp.
 */

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "program.h"

namespace collet {
/** Cuts ops and groups of ops into pieces that fit into a scratchpad. */
namespace tiling {

/** Some ops of one region that are computed together. Values are numbers in the program. */
struct Group {
  const collet_program* program = nullptr;
  uint32_t op = COLLET_NONE;     /**< the op that stands for the group; COLLET_NONE: the caller chose the ops */
  std::vector<uint32_t> ops;     /**< in the order of the schedule */
  std::vector<uint32_t> inputs;  /**< values that the ops read; of a fusion or call, the arguments of its region */
  std::vector<uint32_t> outputs; /**< values that are the results */
  /** For each input, the value outside of the region; differs from `inputs` for a fusion or call only. */
  std::vector<uint32_t> sources;
};

/** Returns the group of one op. That of a fusion, and of a call of a pattern, is the ops of its region. Inputs and outputs are
 * the op's operands and results, in their order. The program must outlive the group. */
inline Group group_of_op(const collet_program* program, uint32_t id) {
  Group out;
  const collet_op* op = collet_op_at(program, id);
  out.program = program;
  out.op = id;
  for (uint32_t i = 0; i < op->operands.count; ++i) out.sources.push_back(collet_operand(program, op, i));
  if (op->opcode == COLLET_OP_FUSION || op->opcode == COLLET_OP_CALL) {
    const collet_region* region = collet_region_at(program, op->regions.first);
    for (uint32_t i = 0; i < region->ops.count; ++i) out.ops.push_back(region->ops.first + i);
    for (uint32_t i = 0; i < region->arguments.count; ++i) out.inputs.push_back(region->arguments.first + i);
    for (uint32_t i = 0; i < region->results.count; ++i) {
      out.outputs.push_back(collet_ref_at(program, region->results.first + i));
    }
    return out;
  }
  out.ops = {id};
  out.inputs = out.sources;
  for (uint32_t i = 0; i < op->results.count; ++i) out.outputs.push_back(op->results.first + i);
  return out;
}

/** Returns the group of `ops`, which stand in one region and are in the order of its schedule. Inputs are what they read of
 * others, in the order of their first use; outputs are the results that others read, or that the region returns. */
inline Group group_of_ops(const collet_program* program, std::vector<uint32_t> ops) {
  Group out;
  out.program = program;
  out.ops = std::move(ops);
  std::set<uint32_t> made, seen, read;
  for (const uint32_t id : out.ops) {
    const collet_op* op = collet_op_at(program, id);
    for (uint32_t i = 0; i < op->operands.count; ++i) {
      const uint32_t value = collet_operand(program, op, i);
      if (made.count(value) == 0 && seen.insert(value).second) out.inputs.push_back(value);
    }
    for (uint32_t i = 0; i < op->results.count; ++i) made.insert(op->results.first + i);
  }
  const std::set<uint32_t> members(out.ops.begin(), out.ops.end());
  for (uint32_t id = 0; id < program->ops.count; ++id) {
    if (members.count(id) != 0) continue;
    const collet_op* op = collet_op_at(program, id);
    for (uint32_t i = 0; i < op->operands.count; ++i) read.insert(collet_operand(program, op, i));
  }
  for (uint32_t r = 0; r < program->regions.count; ++r) {
    const collet_region* region = collet_region_at(program, r);
    for (uint32_t i = 0; i < region->results.count; ++i) read.insert(collet_ref_at(program, region->results.first + i));
  }
  for (const uint32_t value : made) {
    if (read.count(value) != 0) out.outputs.push_back(value);
  }
  out.sources = out.inputs;
  return out;
}

/** The elements [begin, begin + size) of a dimension. */
struct Range {
  int64_t begin = 0;
  int64_t size = 0;
};

namespace detail {

constexpr uint32_t no_axis = UINT32_MAX;

/** Reads the attribute record of `op`. */
template <class Attributes>
Attributes attributes_of(const collet_program* program, const collet_op* op) {
  Attributes out;
  collet_read_attributes(program, op, &out, sizeof out);
  return out;
}

/** How a dimension that a window slides over follows from a dimension of the result: element `o` reads the elements
 * o * stride - low + k * dilation, for k from 0 to size - 1, as far as they exist. Pad and slice are windows of size 1. */
struct Window {
  int64_t size = 1, stride = 1, low = 0, dilation = 1;
  /** Returns what a range of the result reads, with the padding. */
  Range read(Range result) const {
    return {result.begin * stride - low, (result.size - 1) * stride + (size - 1) * dilation + 1};
  }
  bool operator==(const Window& other) const {
    return size == other.size && stride == other.stride && low == other.low && dilation == other.dilation;
  }
};

/** Dimensions of all arrays of a group that are cut together. */
struct Axis {
  int64_t extent = 1;
  bool whole = false; /**< it cannot be cut */
  bool depth = false; /**< the main op sums over it; else it is a dimension of every output, or follows from one */
  uint32_t parent = no_axis; /**< the axis that it follows from through `window` */
  Window window;
  int64_t multiple = 1; /**< sizes of pieces are multiples of it, but for the last one */
  bool is_loop() const { return !whole && parent == no_axis && extent > 1; }
};

/** The axes of a group. */
class Axes {
 public:
  /** `depth_allowed` is false if no sum may be cut. */
  Axes(const Group& group, bool depth_allowed) : group_(group), p_(group.program) {
    for (const uint32_t value : group.inputs) add_value(value);
    for (const uint32_t id : group.ops) {
      const collet_op* op = collet_op_at(p_, id);
      for (uint32_t i = 0; i < op->results.count; ++i) add_value(op->results.first + i);
    }
    for (const uint32_t id : group.ops) relate(id);
    number_axes();
    if (depth_allowed) choose_main();
    settle();
  }

  /** Returns the axes. */
  const std::vector<Axis>& all() const { return axes_; }
  std::vector<Axis>& all() { return axes_; }
  /** Returns the axis of dimension `d` of a value. */
  uint32_t at(uint32_t value, size_t d) const { return axis_of_[slots_.at(value) + d]; }
  uint32_t rank(uint32_t value) const { return collet_value_type(p_, value)->dims.count; }
  /** The op whose sum may be cut: COLLET_NONE if there is none. */
  uint32_t main() const { return main_; }
  /** True if a sum is cut somewhere. */
  bool has_depth() const {
    return std::any_of(axes_.begin(), axes_.end(), [](const Axis& axis) { return axis.depth && axis.is_loop(); });
  }
  /** Returns the range of each axis, if each loop has the range that `loops` has for it. */
  std::vector<Range> ranges(const std::vector<Range>& loops) const {
    std::vector<Range> out(axes_.size());
    for (size_t a = 0; a < axes_.size(); ++a) out[a] = range(static_cast<uint32_t>(a), loops);
    return out;
  }
  /** Returns the axis of loops that axis `a` depends on; itself if it is one, no_axis if it is never cut. */
  uint32_t root(uint32_t a) const {
    while (axes_[a].parent != no_axis && !axes_[a].whole) a = axes_[a].parent;
    return axes_[a].is_loop() ? a : no_axis;
  }
  /** Returns the size of axis `a` in a piece, if loops have these sizes. */
  int64_t size(uint32_t a, const std::vector<int64_t>& sizes) const {
    const Axis& axis = axes_[a];
    if (axis.whole || (axis.parent == no_axis && !axis.is_loop())) return axis.extent;
    if (axis.parent == no_axis) return std::min(axis.extent, sizes[a]);
    return std::min(axis.extent, axis.window.read({0, size(axis.parent, sizes)}).size);
  }
  /** Returns the op that defines a value of the group; COLLET_NONE for an input. */
  uint32_t maker(uint32_t value) const {
    const collet_value* what = collet_value_at(p_, value);
    if ((what->flags & COLLET_VALUE_ARGUMENT) != 0) return COLLET_NONE;
    return std::binary_search(group_.ops.begin(), group_.ops.end(), what->definition) ? what->definition : COLLET_NONE;
  }
  /** Returns the ops that `values` need, in their order, without going beyond `stop`. */
  std::vector<uint32_t> needed(std::vector<uint32_t> values, uint32_t stop = COLLET_NONE) const {
    std::set<uint32_t> out;
    while (!values.empty()) {
      const uint32_t id = values.back() == stop ? COLLET_NONE : maker(values.back());
      values.pop_back();
      if (id == COLLET_NONE || !out.insert(id).second) continue;
      const collet_op* op = collet_op_at(p_, id);
      for (uint32_t i = 0; i < op->operands.count; ++i) values.push_back(collet_operand(p_, op, i));
    }
    return {out.begin(), out.end()};
  }
  /** Returns the bytes of a scalar constant that `value` is, also outside of the group's region; null if it is none. */
  const void* scalar(uint32_t value) const {
    for (size_t i = 0; i < group_.inputs.size() && i < group_.sources.size(); ++i) {
      if (group_.inputs[i] == value) value = group_.sources[i];
    }
    const collet_value* what = collet_value_at(p_, value);
    if ((what->flags & COLLET_VALUE_ARGUMENT) != 0 || collet_value_type(p_, value)->elements != 1) return nullptr;
    const collet_op* op = collet_op_at(p_, what->definition);
    if (op->opcode != COLLET_OP_CONSTANT) return nullptr;
    return collet_constant_data(p_, collet_constant_at(p_, attributes_of<collet_constant_attrs>(p_, op).constant));
  }

 private:
  struct Link {
    uint32_t child, parent;  // dimensions, then axes
    Window window;
  };

  void add_value(uint32_t value) {
    if (!slots_.emplace(value, static_cast<uint32_t>(same_.size())).second) return;
    const collet_type* type = collet_value_type(p_, value);
    for (uint32_t d = 0; d < type->dims.count; ++d) {
      same_.push_back(static_cast<uint32_t>(same_.size()));
      extents_.push_back(collet_integers(p_, type->dims)[d]);
      whole_.push_back(0);
    }
  }

  uint32_t slot(uint32_t value, int64_t d) const { return slots_.at(value) + static_cast<uint32_t>(d); }
  uint32_t find(uint32_t s) {
    while (same_[s] != s) s = same_[s] = same_[same_[s]];
    return s;
  }
  void unite(uint32_t a, uint32_t b) {
    if (extents_[a] != extents_[b]) {
      whole_[a] = whole_[b] = 1;
      return;
    }
    a = find(a), b = find(b);
    same_[b] = a;
  }
  void keep(uint32_t value, int64_t d) { whole_[slot(value, d)] = 1; }
  void keep_all(const collet_op* op) {
    const auto all = [&](uint32_t value) {
      for (uint32_t d = 0; d < rank(value); ++d) keep(value, d);
    };
    for (uint32_t i = 0; i < op->operands.count; ++i) all(collet_operand(p_, op, i));
    for (uint32_t i = 0; i < op->results.count; ++i) all(op->results.first + i);
  }
  bool is_in(collet_range list, int64_t what) const {
    const int64_t* first = collet_integers(p_, list);
    return std::find(first, first + list.count, what) != first + list.count;
  }
  void link(uint32_t child, uint32_t parent, const Window& window, bool plain) {
    if (!plain) {
      whole_[child] = whole_[parent] = 1;
    } else if (window == Window{} && extents_[child] == extents_[parent]) {
      unite(child, parent);
    } else {
      links_.push_back({child, parent, window});
    }
  }

  /** Relates the dimensions of the operands and results of an op. What is not known here is never cut. */
  void relate(uint32_t id) {
    const collet_op* op = collet_op_at(p_, id);
    const uint32_t to = op->results.first;
    const uint32_t from = op->operands.count == 0 ? COLLET_NONE : collet_operand(p_, op, 0);
    if ((collet_op_traits(op->opcode) & COLLET_OP_ELEMENTWISE) != 0 || op->opcode == COLLET_OP_COPY) {
      for (uint32_t i = 0; i < op->operands.count; ++i) {
        const uint32_t value = collet_operand(p_, op, i);
        if (rank(value) != rank(to)) continue;  // a scalar
        for (uint32_t d = 0; d < rank(to); ++d) unite(slot(value, d), slot(to, d));
      }
      return;
    }
    switch (op->opcode) {
      case COLLET_OP_BROADCAST: {
        const collet_range dims = attributes_of<collet_broadcast_attrs>(p_, op).dimensions;
        for (uint32_t i = 0; i < dims.count; ++i) unite(slot(from, i), slot(to, collet_integers(p_, dims)[i]));
        return;
      }
      case COLLET_OP_TRANSPOSE: {
        const collet_range dims = attributes_of<collet_dimensions_attrs>(p_, op).dimensions;
        for (uint32_t i = 0; i < dims.count; ++i) unite(slot(from, collet_integers(p_, dims)[i]), slot(to, i));
        return;
      }
      case COLLET_OP_REVERSE: {
        const collet_range dims = attributes_of<collet_dimensions_attrs>(p_, op).dimensions;
        for (uint32_t d = 0; d < rank(to); ++d) {
          unite(slot(from, d), slot(to, d));
          if (is_in(dims, d)) keep(to, d);
        }
        return;
      }
      case COLLET_OP_CONSTANT:
        return;
      case COLLET_OP_IOTA:
        keep(to, attributes_of<collet_iota_attrs>(p_, op).dimension);
        return;
      case COLLET_OP_RESHAPE:
        return relate_reshape(from, to);
      case COLLET_OP_GATHER:
        return relate_gather(op);
      case COLLET_OP_DYNAMIC_SLICE:
        // Where the slice has all of a dimension, it begins at 0.
        for (uint32_t d = 0; d < rank(to); ++d) unite(slot(from, d), slot(to, d));
        return;
      case COLLET_OP_DYNAMIC_UPDATE_SLICE: {
        const uint32_t update = collet_operand(p_, op, 1);
        for (uint32_t d = 0; d < rank(to); ++d) {
          unite(slot(from, d), slot(to, d));
          unite(slot(from, d), slot(update, d));
        }
        return;
      }
      case COLLET_OP_CONCATENATE: {
        const int64_t along = attributes_of<collet_dimension_attrs>(p_, op).dimension;
        for (uint32_t i = 0; i < op->operands.count; ++i) {
          const uint32_t value = collet_operand(p_, op, i);
          for (uint32_t d = 0; d < rank(to); ++d) {
            if (d == along) {
              keep(value, d), keep(to, d);
            } else {
              unite(slot(value, d), slot(to, d));
            }
          }
        }
        return;
      }
      case COLLET_OP_SORT: {
        const int64_t along = attributes_of<collet_sort_attrs>(p_, op).dimension;
        for (uint32_t i = 0; i < op->operands.count; ++i) {
          const uint32_t value = collet_operand(p_, op, i), result = op->results.first + i;
          for (uint32_t d = 0; d < rank(to); ++d) {
            unite(slot(value, d), slot(to, d)), unite(slot(result, d), slot(to, d));
            if (d == along) keep(to, d);
          }
        }
        return;
      }
      case COLLET_OP_SLICE: {
        const auto a = attributes_of<collet_slice_attrs>(p_, op);
        for (uint32_t d = 0; d < rank(to); ++d) {
          const Window window{1, collet_integers(p_, a.stride)[d], -collet_integers(p_, a.start)[d], 1};
          link(slot(from, d), slot(to, d), window, true);
        }
        return;
      }
      case COLLET_OP_PAD: {
        const auto a = attributes_of<collet_pad_attrs>(p_, op);
        for (uint32_t d = 0; d < rank(to); ++d) {
          const Window window{1, 1, collet_integers(p_, a.low)[d], 1};
          link(slot(from, d), slot(to, d), window, collet_integers(p_, a.interior)[d] == 0);
        }
        return;
      }
      case COLLET_OP_REDUCE: {
        const collet_range dims = attributes_of<collet_dimensions_attrs>(p_, op).dimensions;
        for (uint32_t i = 0; i < op->operands.count / 2; ++i) {
          const uint32_t value = collet_operand(p_, op, i);
          uint32_t kept = 0;
          for (uint32_t d = 0; d < rank(value); ++d) {
            unite(slot(value, d), slot(from, d));
            if (is_in(dims, d)) {
              sums_.push_back({slot(value, d), id});
            } else {
              for (uint32_t r = 0; r < op->results.count; ++r) unite(slot(value, d), slot(op->results.first + r, kept));
              ++kept;
            }
          }
        }
        return;
      }
      case COLLET_OP_REDUCE_WINDOW:
        return relate_windows(op);
      case COLLET_OP_DOT:
        return relate_dot(id);
      case COLLET_OP_CONVOLUTION:
        return relate_convolution(id);
      default:
        keep_all(op);
    }
  }

  void relate_reshape(uint32_t from, uint32_t to) {
    uint32_t i = 0, j = 0;
    while (i < rank(from) || j < rank(to)) {
      // The shortest runs of dimensions on both sides that have the same number of elements.
      const uint32_t first_i = i, first_j = j;
      int64_t a = i < rank(from) ? extents_[slot(from, i++)] : 1, b = j < rank(to) ? extents_[slot(to, j++)] : 1;
      while (a != b) {
        if (a < b && i < rank(from)) {
          a *= extents_[slot(from, i++)];
        } else if (a > b && j < rank(to)) {
          b *= extents_[slot(to, j++)];
        } else if (i < rank(from)) {
          a *= extents_[slot(from, i++)];
        } else if (j < rank(to)) {
          b *= extents_[slot(to, j++)];
        } else {
          break;
        }
      }
      if (i == first_i + 1 && j == first_j + 1 && a == b) {
        unite(slot(from, first_i), slot(to, first_j));
        continue;
      }
      // Of a run, one dimension on each side may stand for it, if all others have one element.
      const auto only = [&](uint32_t value, uint32_t first, uint32_t last, int64_t elements) {
        for (uint32_t d = first; d < last; ++d) {
          if (extents_[slot(value, d)] == elements) return static_cast<int64_t>(d);
        }
        return int64_t{-1};
      };
      const int64_t x = only(from, first_i, i, a), y = only(to, first_j, j, b);
      if (a == b && x >= 0 && y >= 0) {
        unite(slot(from, x), slot(to, y));
        continue;
      }
      for (uint32_t d = first_i; d < i; ++d) keep(from, d);
      for (uint32_t d = first_j; d < j; ++d) keep(to, d);
    }
  }

  /** A gather is cut along its indices, and along dimensions of which each window has all elements. */
  void relate_gather(const collet_op* op) {
    const auto a = attributes_of<collet_gather_attrs>(p_, op);
    const uint32_t from = collet_operand(p_, op, 0), indices = collet_operand(p_, op, 1), to = op->results.first;
    const auto at = [&](collet_range list, uint32_t i) { return collet_integers(p_, list)[i]; };
    std::vector<int64_t> batch;  // dimensions of the result that are those of the indices
    for (uint32_t d = 0; d < rank(to); ++d) {
      if (!is_in(a.offset_dims, d)) batch.push_back(d);
    }
    size_t next = 0;
    for (uint32_t d = 0; d < rank(indices); ++d) {
      if (d == a.index_vector_dim) {
        keep(indices, d);
      } else {
        unite(slot(indices, d), slot(to, batch[next++]));
      }
    }
    uint32_t offset = 0;
    for (uint32_t d = 0; d < rank(from); ++d) {
      if (is_in(a.operand_batching_dims, d)) continue;
      if (is_in(a.collapsed_slice_dims, d)) {
        keep(from, d);
      } else {
        unite(slot(from, d), slot(to, at(a.offset_dims, offset++)));  // those that differ in size are not cut
      }
    }
    for (uint32_t i = 0; i < a.operand_batching_dims.count; ++i) {
      unite(slot(from, at(a.operand_batching_dims, i)), slot(indices, at(a.start_indices_batching_dims, i)));
    }
  }

  void relate_windows(const collet_op* op) {
    const collet_window w = attributes_of<collet_window_attrs>(p_, op).window;
    const uint32_t from = collet_operand(p_, op, 0), to = op->results.first;
    const auto at = [&](collet_range list, uint32_t d) { return collet_integers(p_, list)[d]; };
    for (uint32_t d = 0; d < rank(to); ++d) {
      for (uint32_t i = 1; i < op->operands.count / 2; ++i) unite(slot(from, d), slot(collet_operand(p_, op, i), d));
      for (uint32_t i = 1; i < op->results.count; ++i) unite(slot(to, d), slot(to + i, d));
      const Window window{at(w.size, d), at(w.stride, d), at(w.padding_low, d), at(w.window_dilation, d)};
      link(slot(from, d), slot(to, d), window, at(w.base_dilation, d) == 1);
    }
  }

  void relate_dot(uint32_t id) {
    const collet_op* op = collet_op_at(p_, id);
    const auto a = attributes_of<collet_dot_attrs>(p_, op);
    const uint32_t lhs = collet_operand(p_, op, 0), rhs = collet_operand(p_, op, 1), to = op->results.first;
    uint32_t position = 0;
    for (uint32_t i = 0; i < a.lhs_batch.count; ++i, ++position) {
      unite(slot(lhs, collet_integers(p_, a.lhs_batch)[i]), slot(to, position));
      unite(slot(rhs, collet_integers(p_, a.rhs_batch)[i]), slot(to, position));
    }
    for (uint32_t i = 0; i < a.lhs_contracting.count; ++i) {
      const uint32_t s = slot(lhs, collet_integers(p_, a.lhs_contracting)[i]);
      unite(s, slot(rhs, collet_integers(p_, a.rhs_contracting)[i]));
      sums_.push_back({s, id});
    }
    for (uint32_t d = 0; d < rank(lhs); ++d) {
      if (!is_in(a.lhs_batch, d) && !is_in(a.lhs_contracting, d)) unite(slot(lhs, d), slot(to, position++));
    }
    for (uint32_t d = 0; d < rank(rhs); ++d) {
      if (!is_in(a.rhs_batch, d) && !is_in(a.rhs_contracting, d)) unite(slot(rhs, d), slot(to, position++));
    }
  }

  void relate_convolution(uint32_t id) {
    const collet_op* op = collet_op_at(p_, id);
    const auto a = attributes_of<collet_convolution_attrs>(p_, op);
    const uint32_t in = collet_operand(p_, op, 0), kernel = collet_operand(p_, op, 1), to = op->results.first;
    const collet_dim_labels& l = a.labels;
    const auto at = [&](collet_range list, uint32_t i) { return collet_integers(p_, list)[i]; };
    const int64_t groups = std::max<int64_t>(a.feature_groups, 1);
    if (a.batch_groups > 1) {
      keep(in, l.input_batch), keep(to, l.output_batch), keep(to, l.output_feature), keep(in, l.input_feature);
      keep(kernel, l.kernel_input_feature), keep(kernel, l.kernel_output_feature);
    } else {
      unite(slot(in, l.input_batch), slot(to, l.output_batch));
      unite(slot(kernel, l.kernel_output_feature), slot(to, l.output_feature));
      if (groups == 1) {
        unite(slot(in, l.input_feature), slot(kernel, l.kernel_input_feature));
        sums_.push_back({slot(in, l.input_feature), id});
      } else if (groups == extents_[slot(in, l.input_feature)] && groups == extents_[slot(to, l.output_feature)]) {
        unite(slot(in, l.input_feature), slot(to, l.output_feature));
      } else {
        keep(in, l.input_feature), keep(to, l.output_feature), keep(kernel, l.kernel_input_feature);
      }
    }
    for (uint32_t i = 0; i < l.input_spatial.count; ++i) {
      const int64_t k = at(l.kernel_spatial, i);
      keep(kernel, k);
      const Window window{extents_[slot(kernel, k)], at(a.window.stride, i), at(a.window.padding_low, i),
                          at(a.window.window_dilation, i)};
      link(slot(in, at(l.input_spatial, i)), slot(to, at(l.output_spatial, i)), window,
           at(a.window.base_dilation, i) == 1);
    }
  }

  void number_axes() {
    std::map<uint32_t, uint32_t> numbers;
    axis_of_.resize(same_.size());
    for (uint32_t s = 0; s < same_.size(); ++s) {
      const auto found = numbers.emplace(find(s), static_cast<uint32_t>(axes_.size()));
      if (found.second) {
        axes_.emplace_back();
        axes_.back().extent = extents_[s];
      }
      axis_of_[s] = found.first->second;
      if (whole_[s] != 0 || extents_[s] == 0) axes_[axis_of_[s]].whole = true;
    }
    for (Link& one : links_) one.child = axis_of_[one.child], one.parent = axis_of_[one.parent];
    for (auto& sum : sums_) sum.first = axis_of_[sum.first];
  }

  /** Chooses the op whose sum may be cut: the largest product, or else the largest reduce. */
  void choose_main() {
    double most = 0;
    for (const uint32_t id : group_.ops) {
      const collet_op* op = collet_op_at(p_, id);
      const bool product = op->opcode == COLLET_OP_DOT || op->opcode == COLLET_OP_CONVOLUTION;
      if (!product && !(op->opcode == COLLET_OP_REDUCE && may_cut_reduce(op))) continue;
      double size = product ? 1e30 : 1;
      for (uint32_t i = 0; i < op->operands.count; ++i) {
        size *= static_cast<double>(collet_value_type(p_, collet_operand(p_, op, i))->elements);
      }
      if (size > most) most = size, main_ = id;
    }
  }

  /** True if the initial value may be combined with the result once for each piece. */
  bool may_cut_reduce(const collet_op* op) const {
    if (op->operands.count != 2) return false;
    const uint32_t type = collet_value_type(p_, op->results.first)->element;
    const bool exact = collet_type_kind(type) == COLLET_KIND_SIGNED || collet_type_kind(type) == COLLET_KIND_UNSIGNED;
    if (!exact && type != COLLET_TYPE_F32 && type != COLLET_TYPE_F64 && type != COLLET_TYPE_PRED) return false;
    const uint32_t combine = collet_region_at(p_, op->regions.first)->combine;
    switch (combine) {
      case COLLET_COMBINE_MINIMUM:
      case COLLET_COMBINE_MAXIMUM:
      case COLLET_COMBINE_AND:
      case COLLET_COMBINE_OR:
        return true;
      case COLLET_COMBINE_ADD:
      case COLLET_COMBINE_XOR: {
        const void* init = scalar(collet_operand(p_, op, 1));
        const char zeros[16] = {};
        return init && std::memcmp(init, zeros, collet_type_bytes(type)) == 0;
      }
      default:
        return false;
    }
  }

  /** Decides which axes are cut. */
  void settle() {
    std::vector<uint32_t> results(axes_.size(), 0);
    std::vector<std::set<uint32_t>> sums(axes_.size());
    for (const auto& sum : sums_) sums[sum.first].insert(sum.second);
    const std::set<uint32_t> outputs(group_.outputs.begin(), group_.outputs.end());
    for (const auto& value : slots_) {
      std::set<uint32_t> seen;
      for (uint32_t d = 0; d < rank(value.first); ++d) {
        const uint32_t a = at(value.first, d);
        if (!seen.insert(a).second) axes_[a].whole = true;
      }
    }
    for (const uint32_t value : outputs) {
      for (uint32_t d = 0; d < rank(value); ++d) ++results[at(value, d)];
    }
    for (const Link& one : links_) {
      Axis& child = axes_[one.child];
      const bool second = child.parent != no_axis && !(child.parent == one.parent && child.window == one.window);
      if (second) child.whole = true, axes_[child.parent].whole = true;
      if (second || results[one.child] != 0 || !sums[one.child].empty() || one.child == one.parent) {
        child.whole = axes_[one.parent].whole = true;
      }
      child.parent = one.parent;
      child.window = one.window;
    }
    for (size_t a = 0; a < axes_.size(); ++a) {
      uint32_t up = static_cast<uint32_t>(a);
      for (size_t steps = 0; axes_[up].parent != no_axis && steps <= axes_.size(); ++steps) {
        up = axes_[up].parent;
        if (up == a) axes_[a].whole = true;  // it follows from itself
      }
      if (axes_[a].parent != no_axis) continue;
      if (!sums[a].empty()) {
        axes_[a].depth = results[a] == 0 && sums[a].size() == 1 && *sums[a].begin() == main_;
        if (!axes_[a].depth) axes_[a].whole = true;
      } else if (results[a] != outputs.size()) {
        axes_[a].whole = true;
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const Link& one : links_) {
        if (axes_[one.child].whole == axes_[one.parent].whole) continue;
        axes_[one.child].whole = axes_[one.parent].whole = changed = true;
      }
    }
    if (!has_depth()) {
      for (Axis& axis : axes_) axis.depth = false;
    }
  }

  Range range(uint32_t a, const std::vector<Range>& loops) const {
    const Axis& axis = axes_[a];
    if (axis.is_loop()) return loops[a];
    if (axis.whole || axis.parent == no_axis) return {0, axis.extent};
    const Range read = axis.window.read(range(axis.parent, loops));
    const int64_t begin = std::min(std::max<int64_t>(read.begin, 0), axis.extent - 1);
    const int64_t end = std::min(std::max<int64_t>(read.begin + read.size, 1), axis.extent);
    return {begin, std::max<int64_t>(end - begin, 1)};
  }

  const Group& group_;
  const collet_program* p_;
  std::map<uint32_t, uint32_t> slots_;    // first dimension of each value
  std::vector<uint32_t> same_, axis_of_;  // for each dimension of a value
  std::vector<int64_t> extents_;
  std::vector<char> whole_;
  std::vector<Link> links_;
  std::vector<std::pair<uint32_t, uint32_t>> sums_;  // axis, op
  std::vector<Axis> axes_;
  uint32_t main_ = COLLET_NONE;
};

}  // namespace detail
}  // namespace tiling
}  // namespace collet

#endif
