// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

std::vector<int64_t> joined(const Dims& a, const Dims& b) {
  std::vector<int64_t> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// Labels of the constraints of gather and scatter, which have the same rules with different numbers.
struct IndexLabels {
  std::string_view vector_dim, map_size, map_range, map_unique, collapsed_sorted, collapsed_range, batching_sorted,
      batching_range, unique, indices_batching_unique, indices_batching_range, indices_batching_vector, batching_count,
      batching_size;
};
constexpr IndexLabels kGather{"C2",  "C3", "C19", "C18", "C7",  "C8",  "C10",
                              "C11", "C6", "C13", "C14", "C15", "C16", "C17"};
constexpr IndexLabels kScatter{"C22", "C19", "C21", "C20", "C10", "C11", "C12",
                               "C13", "C9",  "C14", "C15", "C16", "C17", "C18"};

struct IndexNumbers {
  const Dims& collapsed;  // for scatter: inserted dimensions
  std::string_view collapsed_name;
  const Dims& batching;
  std::string_view batching_name;
  const Dims& indices_batching;
  std::string_view indices_batching_name;
  const Dims& map;
  std::string_view map_name;
  int64_t vector_dim;
};

Status check_indices(Op op, const Shape& indices, const IndexNumbers& n, const IndexLabels& labels) {
  if (!indices.is_array() || !is_integer(indices.type()))
    return broken(op, "", "the indices must be an array of integers, but are ", indices);
  if (n.vector_dim < 0 || n.vector_dim > indices.rank())
    return broken(op, labels.vector_dim, "index_vector_dim ", n.vector_dim, " must lie in [0, ", indices.rank(), "]");
  return ok_status();
}

Status check_numbers(Op op, const Shape& operand, const Shape& indices, const IndexNumbers& n,
                     const IndexLabels& labels) {
  const int64_t rank = operand.rank();
  const int64_t vector = n.vector_dim < indices.rank() ? indices.dim(static_cast<int>(n.vector_dim)) : 1;
  if (!sizes_agree(vector, static_cast<int64_t>(n.map.size())))
    return broken(op, labels.map_size, n.map_name, " ", n.map, " must have ", Size{vector}, " entries");
  if (first_outside(n.map, rank) >= 0)
    return broken(op, labels.map_range, n.map_name, " ", n.map, " does not lie in ", operand);
  if (first_outside(n.collapsed, rank) >= 0)
    return broken(op, labels.collapsed_range, n.collapsed_name, " ", n.collapsed, " do not lie in ", operand);
  if (!std::is_sorted(n.collapsed.begin(), n.collapsed.end()))
    return broken(op, labels.collapsed_sorted, n.collapsed_name, " ", n.collapsed, " must ascend");
  if (first_outside(n.batching, rank) >= 0)
    return broken(op, labels.batching_range, n.batching_name, " ", n.batching, " do not lie in ", operand);
  if (!std::is_sorted(n.batching.begin(), n.batching.end()))
    return broken(op, labels.batching_sorted, n.batching_name, " ", n.batching, " must ascend");
  if (has_repeats(joined(n.collapsed, n.batching)))
    return broken(op, labels.unique, n.collapsed_name, " ", n.collapsed, " and ", n.batching_name, " ", n.batching,
                  " name one dimension twice");
  if (has_repeats(joined(n.map, n.batching)))
    return broken(op, labels.map_unique, n.map_name, " ", n.map, " and ", n.batching_name, " ", n.batching,
                  " name one dimension twice");
  if (n.batching.size() != n.indices_batching.size())
    return broken(op, labels.batching_count, n.batching_name, " ", n.batching, " and ", n.indices_batching_name, " ",
                  n.indices_batching, " differ in number");
  if (first_outside(n.indices_batching, indices.rank()) >= 0)
    return broken(op, labels.indices_batching_range, n.indices_batching_name, " ", n.indices_batching,
                  " do not lie in the indices ", indices);
  if (has_repeats(n.indices_batching))
    return broken(op, labels.indices_batching_unique, n.indices_batching_name, " ", n.indices_batching,
                  " name one twice");
  if (contains(n.indices_batching, n.vector_dim))
    return broken(op, labels.indices_batching_vector, n.indices_batching_name, " ", n.indices_batching,
                  " hold index_vector_dim ", n.vector_dim);
  for (size_t i = 0; i < n.batching.size(); ++i) {
    const int64_t a = operand.dim(static_cast<int>(n.batching[i]));
    const int64_t b = indices.dim(static_cast<int>(n.indices_batching[i]));
    if (!sizes_agree(a, b))
      return broken(op, labels.batching_size, "batching sizes differ: operand dim ", n.batching[i], " is ", Size{a},
                    ", indices dim ", n.indices_batching[i], " is ", Size{b});
  }
  return ok_status();
}

Status check_slice_sizes(const InferInput& in, const GatherAttrs& a) {
  const Shape& operand = in.operand(0);
  const auto rank = static_cast<size_t>(operand.rank());
  if (a.slice_sizes.size() != rank)
    return broken(in.op, "C20", "slice_sizes ", a.slice_sizes, " must have one entry for each dimension of ", operand);
  if (a.offset_dims.size() + a.collapsed_slice_dims.size() + a.operand_batching_dims.size() != rank)
    return broken(in.op, "C1", "offset_dims ", a.offset_dims, ", collapsed_slice_dims ", a.collapsed_slice_dims,
                  " and operand_batching_dims ", a.operand_batching_dims, " must be as many as dimensions of ",
                  operand);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = operand.dim(static_cast<int>(i));
    if (a.slice_sizes[i] < 0 || (size != kUnbounded && a.slice_sizes[i] > size))
      return broken(in.op, "C21", "slice size ", a.slice_sizes[i], " does not fit dimension ", i, " of ", operand);
  }
  for (int64_t d : a.collapsed_slice_dims)
    if (a.slice_sizes[static_cast<size_t>(d)] > 1)
      return broken(in.op, "C9", "collapsed dimension ", d, " has slice size ", a.slice_sizes[static_cast<size_t>(d)]);
  for (int64_t d : a.operand_batching_dims)
    if (a.slice_sizes[static_cast<size_t>(d)] > 1)
      return broken(in.op, "C12", "batching dimension ", d, " has slice size ", a.slice_sizes[static_cast<size_t>(d)]);
  return ok_status();
}

Expected<Shape> infer_gather(const InferInput& in) {
  const auto& a = in.as<GatherAttrs>();
  const Shape& operand = in.operand(0);
  const Shape& indices = in.operand(1);
  COLLET_TRY(expect_array(in, 0, "the operand"));
  const IndexNumbers numbers{a.collapsed_slice_dims,
                             "collapsed_slice_dims",
                             a.operand_batching_dims,
                             "operand_batching_dims",
                             a.start_indices_batching_dims,
                             "start_indices_batching_dims",
                             a.start_index_map,
                             "start_index_map",
                             a.index_vector_dim};
  COLLET_TRY(check_indices(in.op, indices, numbers, kGather));
  if (!ascending(a.offset_dims)) return broken(in.op, "C4", "offset_dims ", a.offset_dims, " must ascend");
  const int64_t batch_rank = indices.rank() - (a.index_vector_dim < indices.rank() ? 1 : 0);
  const int64_t result_rank = batch_rank + static_cast<int64_t>(a.offset_dims.size());
  if (first_outside(a.offset_dims, result_rank) >= 0)
    return broken(in.op, "C5", "offset_dims ", a.offset_dims, " do not lie in a result of rank ", result_rank);
  COLLET_TRY(check_numbers(in.op, operand, indices, numbers, kGather));
  COLLET_TRY(check_slice_sizes(in, a));
  DimList dims;
  int64_t window = 0, batch = 0;
  for (int64_t i = 0; i < result_rank; ++i) {
    if (!contains(a.offset_dims, i)) {
      if (batch == a.index_vector_dim) ++batch;
      dims.push(indices, batch++);
      continue;
    }
    while (contains(a.collapsed_slice_dims, window) || contains(a.operand_batching_dims, window)) ++window;
    const int64_t size = a.slice_sizes[static_cast<size_t>(window)];
    const auto d = static_cast<int>(window++);
    dims.push(size, size == operand.dim(d) && operand.is_dynamic(d));
  }
  return dims.shape(operand.type());
}

// Returns the sizes of the operand dimensions that a window of updates covers, in order.
std::vector<int64_t> window_bounds(const Shape& operand, const ScatterAttrs& a) {
  std::vector<int64_t> bounds;
  for (int64_t d = 0; d < operand.rank(); ++d)
    if (!contains(a.inserted_window_dims, d) && !contains(a.input_batching_dims, d))
      bounds.push_back(operand.dim(static_cast<int>(d)));
  return bounds;
}

Status check_updates(const InferInput& in, const ScatterAttrs& a, const Shape& operand, const Shape& indices,
                     const Shape& updates) {
  const int64_t batch_rank = indices.rank() - (a.index_vector_dim < indices.rank() ? 1 : 0);
  const int64_t rank = batch_rank + static_cast<int64_t>(a.update_window_dims.size());
  if (updates.rank() != rank) return broken(in.op, "C4", "updates must have rank ", rank, ", but are ", updates);
  if (!ascending(a.update_window_dims))
    return broken(in.op, "C7", "update_window_dims ", a.update_window_dims, " must ascend");
  if (first_outside(a.update_window_dims, updates.rank()) >= 0)
    return broken(in.op, "C8", "update_window_dims ", a.update_window_dims, " do not lie in the updates ", updates);
  const std::vector<int64_t> bounds = window_bounds(operand, a);
  if (bounds.size() != a.update_window_dims.size() ||
      a.update_window_dims.size() + a.inserted_window_dims.size() + a.input_batching_dims.size() !=
          static_cast<size_t>(operand.rank()))
    return broken(in.op, "C2", "update_window_dims ", a.update_window_dims, ", inserted_window_dims ",
                  a.inserted_window_dims, " and input_batching_dims ", a.input_batching_dims,
                  " must be as many as dimensions of ", operand);
  for (size_t i = 0; i < bounds.size(); ++i) {
    const int64_t size = updates.dim(static_cast<int>(a.update_window_dims[i]));
    if (size != kUnbounded && bounds[i] != kUnbounded && size > bounds[i])
      return broken(in.op, "C4", "window dimension ", a.update_window_dims[i], " of the updates is ", size,
                    ", which exceeds the ", bounds[i], " of the operand ", operand);
  }
  int64_t batch = 0;
  for (int64_t i = 0; i < updates.rank(); ++i) {
    if (contains(a.update_window_dims, i)) continue;
    if (batch == a.index_vector_dim) ++batch;
    const int64_t have = updates.dim(static_cast<int>(i)), want = indices.dim(static_cast<int>(batch++));
    if (!sizes_agree(have, want))
      return broken(in.op, "C4", "dimension ", i, " of the updates is ", Size{have}, ", but that of the indices is ",
                    Size{want});
  }
  return ok_status();
}

Expected<Shape> infer_scatter(const InferInput& in) {
  const auto& a = in.as<ScatterAttrs>();
  if (in.operands.size() % 2 == 0)
    return broken(in.op, "C5", "must have inputs, indices and as many updates, but has ", in.operands.size(),
                  " operands");
  const size_t n = in.operands.size() / 2;
  const Shape& indices = in.operand(n);
  const IndexNumbers numbers{
      a.inserted_window_dims,         "inserted_window_dims",          a.input_batching_dims,
      "input_batching_dims",          a.scatter_indices_batching_dims, "scatter_indices_batching_dims",
      a.scatter_dims_to_operand_dims, "scatter_dims_to_operand_dims",  a.index_vector_dim};
  COLLET_TRY(check_indices(in.op, indices, numbers, kScatter));
  std::vector<Type> update_types;
  std::vector<Shape> scalars;
  scalars.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    COLLET_TRY(expect_array(in, i));
    COLLET_TRY(expect_array(in, n + 1 + i));
    if (!dims_agree(in.operand(0), in.operand(i)))
      return broken(in.op, "C1", "input shapes differ: ", in.operand(0), " and ", in.operand(i));
    if (!dims_agree(in.operand(n + 1), in.operand(n + 1 + i)))
      return broken(in.op, "C3", "update shapes differ: ", in.operand(n + 1), " and ", in.operand(n + 1 + i));
    COLLET_TRY(check_numbers(in.op, in.operand(i), indices, numbers, kScatter));
    COLLET_TRY(check_updates(in, a, in.operand(i), indices, in.operand(n + 1 + i)));
    scalars.push_back(Shape::scalar(in.operand(i).type()));
    update_types.push_back(in.operand(n + 1 + i).type());
  }
  std::vector<const Shape*> initial;
  for (const Shape& scalar : scalars) initial.push_back(&scalar);
  COLLET_TRY(check_reducer(in.module, in.op, "C23", in.called[0], update_types, initial));
  if (n == 1) return in.operand(0).without_layout();
  std::vector<Shape> results;
  for (size_t i = 0; i < n; ++i) results.push_back(in.operand(i).without_layout());
  return Shape::tuple(std::move(results));
}

}  // namespace

Expected<Shape> infer_indexing(const InferInput& in) {
  return in.op == Op::GATHER ? infer_gather(in) : infer_scatter(in);
}

Status verify_indexing(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
