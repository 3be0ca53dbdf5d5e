/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_INDEX_HPP
#define COLLET_KERNEL_INDEX_HPP

/** \file
 * Translates gather, scatter and convolution into strides and loops that a kernel can execute. Like kernel_shapes.hpp,
 * it uses only shapes and attributes. Strides and offsets count elements.
 */

#include "kernel_shapes.hpp"

namespace collet {
namespace kernel {

/** A gather or scatter as loops over windows of an array. One iteration of the loops `batch` is one window. Its start k is the
 * index at offset (sum of Batch::indices) + k * vector_stride of the indices. One iteration of the loops `window` is one element:
 * in the array at (sum of start k * Start::stride) + (sum of Batch::array) + (sum of Loop::from), in the slices (the result of
 * gather, the updates of scatter) at (sum of Batch::slices) + (sum of Loop::to). Sums are over the loops, times their counters. */
struct IndexedWindows {
  /** A dimension of the array in which the window's start is read from the indices. */
  struct Start {
    int64_t stride; /**< stride of the array */
    int64_t extent; /**< size of the array in this dimension */
    int64_t window; /**< size of the window in this dimension */
  };
  /** A loop over a dimension of the slices that is not a dimension of the window. */
  struct Batch {
    int64_t extent;
    int64_t indices; /**< step in the indices */
    int64_t slices;  /**< step in the slices */
    int64_t array;   /**< step in the array for a batching dimension; else 0 */
  };
  std::vector<Start> starts;
  int64_t vector_stride = 0; /**< distance from one index of an index vector to the next */
  std::vector<Batch> batch;
  std::vector<Loop> window; /**< from: the array; to: the slices */
};

namespace detail {

inline bool is_among(const Op& op, collet_range list, int64_t what) {
  const int64_t* begin = op.list(list);
  return std::find(begin, begin + list.count, what) != begin + list.count;
}

struct IndexedDims {
  collet_range window_dims, dropped_dims, map, array_batching, indices_batching;
  int64_t vector_dim;
};

inline IndexedWindows indexed_windows(const Op& op, const Array& array, const Array& indices, const Array& slices,
                                      const IndexedDims& dims) {
  IndexedWindows out;
  const std::vector<int64_t> as = strides_of(array), is = strides_of(indices), ss = strides_of(slices);
  std::vector<int64_t> extents(array.rank, 1);
  uint32_t next = 0;
  for (uint32_t d = 0; d < array.rank; ++d) {
    if (is_among(op, dims.dropped_dims, d) || is_among(op, dims.array_batching, d)) continue;
    const auto slice_dim = static_cast<size_t>(op.list(dims.window_dims)[next++]);
    extents[d] = slices.dims[slice_dim];
    out.window.push_back({extents[d], as[d], ss[slice_dim]});
  }
  const bool has_vector = dims.vector_dim < indices.rank;
  if (has_vector) out.vector_stride = is[static_cast<size_t>(dims.vector_dim)];
  for (uint32_t k = 0; k < dims.map.count; ++k) {
    const auto d = static_cast<size_t>(op.list(dims.map)[k]);
    out.starts.push_back({as[d], array.dims[d], extents[d]});
  }
  uint32_t index_dim = 0;
  for (uint32_t d = 0; d < slices.rank; ++d) {
    if (is_among(op, dims.window_dims, d)) continue;
    if (has_vector && index_dim == dims.vector_dim) ++index_dim;
    IndexedWindows::Batch one{slices.dims[d], is[index_dim], ss[d], 0};
    for (uint32_t i = 0; i < dims.indices_batching.count; ++i) {
      if (op.list(dims.indices_batching)[i] != index_dim) continue;
      one.array = as[static_cast<size_t>(op.list(dims.array_batching)[i])];
    }
    out.batch.push_back(one);
    ++index_dim;
  }
  return out;
}

}  // namespace detail

/** The windows of gather: operand 0 is the array, operand 1 the indices, the result the slices. Starts are clamped so that
 * windows lie inside. */
inline IndexedWindows gather_of(const Op& op) {
  const auto a = op.attributes<collet_gather_attrs>();
  return detail::indexed_windows(op, op.operand(0), op.operand(1), op.result(),
                                 {a.offset_dims, a.collapsed_slice_dims, a.start_index_map, a.operand_batching_dims,
                                  a.start_indices_batching_dims, a.index_vector_dim});
}

/** The windows of scatter with one array: the result is the array, which begins as operand 0; operand 1 the indices,
 * operand 2 the slices, which are combined with what is there. A window that is not inside the array is dropped. */
inline IndexedWindows scatter_of(const Op& op) {
  const auto a = op.attributes<collet_scatter_attrs>();
  return detail::indexed_windows(op, op.result(), op.operand(1), op.operand(2),
                                 {a.update_window_dims, a.inserted_window_dims, a.scatter_dims_to_operand_dims,
                                  a.input_batching_dims, a.scatter_indices_batching_dims, a.index_vector_dim});
}

/** True if `op` is a scatter into one array by a simple combination. For Kernel::takes. */
inline bool is_simple_scatter(const Op& op) {
  return op.opcode() == COLLET_OP_SCATTER && op.operand_count() == 3 && op.combine() >= COLLET_COMBINE_ADD &&
         op.combine() <= COLLET_COMBINE_SECOND;
}

/** convolution by strides: out[n][o][p] = sum over i and k of in[n][i][p * stride + k * dilation - padding] * kernel[o][i][k].
 * Groups are cut out of features, or of the batch. */
struct Convolution {
  /** A spatial dimension. */
  struct Dimension {
    int64_t input, kernel, output; /**< extents */
    int64_t stride, padding, input_dilation, kernel_dilation;
    bool reversed; /**< if true, element k of the window is `kernel - 1 - k` of the kernel */
    int64_t input_step, kernel_step, output_step; /**< strides of the arrays */
    /** Returns the input index that kernel element `k` is multiplied with for output element `p`; -1 if it is padding. */
    int64_t meets(int64_t p, int64_t k) const {
      const int64_t at = p * stride + k * kernel_dilation - padding;
      return at < 0 || at % input_dilation != 0 || at / input_dilation >= input ? -1 : at / input_dilation;
    }
    /** Returns the kernel's index for position `k` of the window. */
    int64_t kernel_index(int64_t k) const { return reversed ? kernel - 1 - k : k; }
  };
  /** Batch of the result, features of the result, and input features that each of those reads. */
  int64_t batch, outputs, inputs;
  int64_t feature_groups, batch_groups;
  int64_t input_batch_step, input_feature_step, kernel_input_step, kernel_output_step;
  int64_t output_batch_step, output_feature_step;
  std::vector<Dimension> dimensions;
  /** Returns the first input feature that output feature `o` reads. */
  int64_t first_input(int64_t o) const { return o / (outputs / feature_groups) * inputs; }
  /** Returns the batch element of the input for batch element `n` and feature `o` of the output. */
  int64_t input_batch(int64_t n, int64_t o) const { return o / (outputs / batch_groups) * batch + n; }
};

/** Returns the strides of a convolution. */
inline Convolution convolution_of(const Op& op) {
  const auto a = op.attributes<collet_convolution_attrs>();
  const Array &in = op.operand(0), &kernel = op.operand(1), &out = op.result();
  const std::vector<int64_t> is = strides_of(in), ks = strides_of(kernel), os = strides_of(out);
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  Convolution c{};
  c.batch = out.dims[at(a.labels.output_batch)];
  c.outputs = out.dims[at(a.labels.output_feature)];
  c.inputs = kernel.dims[at(a.labels.kernel_input_feature)];
  c.feature_groups = std::max<int64_t>(a.feature_groups, 1);
  c.batch_groups = std::max<int64_t>(a.batch_groups, 1);
  c.input_batch_step = is[at(a.labels.input_batch)];
  c.input_feature_step = is[at(a.labels.input_feature)];
  c.kernel_input_step = ks[at(a.labels.kernel_input_feature)];
  c.kernel_output_step = ks[at(a.labels.kernel_output_feature)];
  c.output_batch_step = os[at(a.labels.output_batch)];
  c.output_feature_step = os[at(a.labels.output_feature)];
  for (uint32_t i = 0; i < a.labels.input_spatial.count; ++i) {
    const size_t id = at(op.list(a.labels.input_spatial)[i]), kd = at(op.list(a.labels.kernel_spatial)[i]),
                 od = at(op.list(a.labels.output_spatial)[i]);
    c.dimensions.push_back({in.dims[id], kernel.dims[kd], out.dims[od], op.list(a.window.stride)[i],
                            op.list(a.window.padding_low)[i], op.list(a.window.base_dilation)[i],
                            op.list(a.window.window_dilation)[i], op.list(a.window.reversal)[i] != 0, is[id], ks[kd],
                            os[od]});
  }
  return c;
}

}  // namespace kernel
}  // namespace collet

#endif
