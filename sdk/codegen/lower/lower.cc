// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/lower.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/lower/convolution.h"
#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/reduce_window.h"
#include "sdk/codegen/lower/scalar_block.h"
#include "sdk/codegen/lower/select_and_scatter.h"

namespace collet::codegen {
namespace {

Kernel nest(const Dims& outer, const Dims& inner = {}) {
  Kernel k;
  for (int64_t d : outer) k.loops.push_back({d});
  k.outer = k.loops.size();
  for (int64_t d : inner) k.loops.push_back({d});
  return k;
}

KernelPlan reduce_kernel(const Graph& graph, const Node& node, const InputTest& is_input) {
  const ArrayType& operand = graph.type(node.operands[0]);
  FusedValues values{operand.dims, std::vector<bool>(operand.dims.size(), false), node.results, node.results};
  for (int64_t d : integers(graph, attributes<collet_dimensions_attrs>(graph, node).dimensions)) {
    values.inner[static_cast<size_t>(d)] = true;
  }
  KernelPlan plan;
  fused_kernel(graph, values, is_input, plan);
  return plan;
}

/// Returns the condition under which an update is made at one of its positions; kNoExpr if it is unconditional.
ExprId guard_of(const Graph& graph, KernelBuilder& builder, const GuardedUpdate& guard, const Position& at,
                ExprId mask) {
  if (guard.update == kNone) return kNoExpr;
  const bool scalar = graph.type(guard.predicate).rank() == 0;
  const ExprId p = builder.value(guard.predicate, scalar ? Position{} : at, scalar ? kNoExpr : mask);
  return guard.inverted ? builder.op(COLLET_OP_NOT, COLLET_TYPE_PRED, {p}) : p;
}

/// True if a kernel may write over `v` while it reads it: everything is read before anything is written, or each
/// element is read only where it is written.
bool reads_in_step(const KernelPlan& plan, ValueId v) {
  const Kernel& k = plan.kernel;
  const auto found = std::find(plan.buffers.begin(), plan.buffers.end(), v);
  if (found == plan.buffers.end()) return true;
  if (std::all_of(k.loops.begin(), k.loops.end(), [](const Loop& l) { return l.size == 1; })) return true;
  if (!k.updates.empty()) return false;  // a scatter may write an element twice
  const auto buffer = static_cast<uint32_t>(found - plan.buffers.begin());
  return std::all_of(k.exprs.begin(), k.exprs.end(), [&](const Expr& i) {
    return i.op != ExprOp::kLoad || i.buffer != buffer ||
           std::all_of(k.stores.begin(), k.stores.end(), [&](const Store& s) { return s.index == i.index; });
  });
}

/// Records that `results` share the memory of the array that `update` updates, or that the array is copied there first.
void update_in_place(KernelPlan& plan, const Node& update, const std::vector<ValueId>& results) {
  for (size_t k = 0; k < results.size(); ++k) {
    plan.copies.emplace_back(update.operands[k], results[k]);
    if (reads_in_step(plan, update.operands[k])) plan.in_place.emplace_back(update.operands[k], results[k]);
  }
}

KernelPlan dynamic_update_kernel(const Graph& graph, const Node& node, const InputTest& is_input, ValueId result,
                                 const GuardedUpdate& guard) {
  const ArrayType& type = graph.type(result);
  const ArrayType& update = graph.type(node.operands[1]);
  KernelPlan plan;
  plan.kernel = nest(update.dims);
  KernelBuilder builder(graph, plan.kernel, is_input);
  Position at = loop_position(0, update.dims.size());
  Store s;
  s.value = builder.value(node.operands[1], at);
  Position target = at;
  for (size_t d = 0; d < at.size(); ++d) {
    ExprId x = builder.value(node.operands[d + 2], {});
    target[d] = add_scaled(at[d], builder.start(x, type.dims[d] - update.dims[d]), 1);
  }
  s.index = builder.linear(target, type.dims);
  s.mask = guard_of(graph, builder, guard, target, kNoExpr);
  s.buffer = builder.output(result);
  plan.kernel.stores.push_back(s);
  plan.writes.push_back(result);
  plan.buffers = builder.buffers();
  update_in_place(plan, node, {result});
  return plan;
}

/// True if one kernel for the whole concatenation, which selects an operand at each point, makes fewer vector accesses
/// than one kernel per operand, whose vectors would be partly empty.
bool is_narrow(const Graph& graph, const Node& node, size_t dim, const InputTest& is_input) {
  const ArrayType& type = graph.type(node.results[0]);
  if (dim + 1 != type.dims.size() || collet_type_kind(type.element) == COLLET_KIND_PRED) return false;
  int64_t apart = 0;
  int64_t operands = 0;
  for (ValueId o : node.operands) {
    const ArrayType& t = graph.type(o);
    if (t.elements == 0) continue;
    if (!is_input(o)) return false;  // a computed operand would also be computed at points of the other operands
    apart += 2 * assumed_vectors(t.dims[dim]);
    ++operands;
  }
  return operands > 1 && assumed_vectors(type.dims[dim]) * (operands + 1) < apart;
}

/// Lowers a concatenation to one kernel per operand, each of which writes its part of the result, or to one kernel for
/// all.
void concatenate_kernels(const Graph& graph, const Node& node, const InputTest& is_input, bool masks,
                         std::vector<KernelPlan>& out) {
  const ValueId result = node.results[0];
  const ArrayType& type = graph.type(result);
  const auto dim = static_cast<size_t>(attributes<collet_dimension_attrs>(graph, node).dimension);
  if (masks && is_narrow(graph, node, dim, is_input)) {
    out.push_back(loop_kernel(graph, {result}, [&](ValueId v) { return v != result && is_input(v); }));
    return;
  }
  int64_t offset = 0;
  for (ValueId o : node.operands) {
    const ArrayType& t = graph.type(o);
    if (t.elements == 0) continue;
    KernelPlan plan;
    plan.kernel = nest(t.dims);
    KernelBuilder builder(graph, plan.kernel, is_input);
    Position at = loop_position(0, t.dims.size());
    Store s;
    s.value = builder.value(o, at);
    at[dim].constant += offset;
    offset += t.dims[dim];
    s.index = builder.linear(at, type.dims);
    s.buffer = builder.output(result);
    plan.kernel.stores.push_back(s);
    plan.writes.push_back(result);
    plan.buffers = builder.buffers();
    out.push_back(std::move(plan));
  }
}

/// Returns the dimensions of the updates in the order of the loops over them, outermost first. Windows may overlap if
/// the indices move them along a dimension in which they have several elements. Then one window is written after the
/// other, as the interpreter does: the dimensions that number the windows precede those within a window. Otherwise the
/// order of the updates in memory is faster.
std::vector<size_t> update_order(const collet_scatter_attrs& a, const Dims& updates, const Dims& window_dims,
                                 const Dims& window_targets, const Dims& to_operand) {
  std::vector<size_t> order(updates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  bool overlap = false;
  for (size_t w = 0; w < window_dims.size(); ++w)
    overlap = overlap || (updates[static_cast<size_t>(window_dims[w])] > 1 && contains(to_operand, window_targets[w]));
  if (overlap && a.unique == 0)
    std::stable_partition(order.begin(), order.end(),
                          [&](size_t d) { return !contains(window_dims, static_cast<int64_t>(d)); });
  return order;
}

KernelPlan scatter_kernel(const Graph& graph, const Node& node, const InputTest& is_input,
                          const std::vector<ValueId>& results, const GuardedUpdate& guard) {
  auto a = attributes<collet_scatter_attrs>(graph, node);
  const size_t n = node.results.size();
  const ValueId indices_value = node.operands[n];
  const ArrayType& operand = graph.type(node.operands[0]);
  const ArrayType& indices = graph.type(indices_value);
  const ArrayType& update = graph.type(node.operands[n + 1]);
  Dims window_dims = integers(graph, a.update_window_dims);
  Dims inserted = integers(graph, a.inserted_window_dims);
  Dims to_operand = integers(graph, a.scatter_dims_to_operand_dims);
  Dims operand_batch = integers(graph, a.input_batching_dims);
  Dims indices_batch = integers(graph, a.scatter_indices_batching_dims);
  Dims window_targets;  // dimensions of the operand along which a window extends
  for (int64_t d = 0; d < static_cast<int64_t>(operand.dims.size()); ++d) {
    if (!contains(inserted, d) && !contains(operand_batch, d)) window_targets.push_back(d);
  }
  KernelPlan plan;
  Position at;
  at.at.resize(update.dims.size());
  Dims loops;
  for (size_t d : update_order(a, update.dims, window_dims, window_targets, to_operand)) {
    at[d] = loop_index(loops.size());
    loops.push_back(update.dims[d]);
  }
  plan.kernel = nest(loops);
  plan.kernel.sequential = a.unique == 0;
  KernelBuilder builder(graph, plan.kernel, is_input);
  Position batch;
  for (size_t d = 0; d < at.size(); ++d) {
    if (!contains(window_dims, static_cast<int64_t>(d))) batch.at.push_back(at[d]);
  }
  const auto indices_at = [&](int64_t k) { return index_position(batch, indices.dims, a.index_vector_dim, k); };
  // Computes the element of the operand to which the window's element is written.
  Position target;
  target.at.resize(operand.dims.size());
  Dims extent(operand.dims.size(), 1);
  for (size_t w = 0; w < window_dims.size(); ++w) {
    const auto from = static_cast<size_t>(window_dims[w]);
    const auto d = static_cast<size_t>(window_targets[w]);
    target[d] = at[from];
    extent[d] = update.dims[from];
  }
  for (size_t k = 0; k < operand_batch.size(); ++k) {
    target[static_cast<size_t>(operand_batch[k])] = indices_at(0)[static_cast<size_t>(indices_batch[k])];
  }
  // The whole window is skipped unless all of it is inside the operand.
  ExprId mask = kNoExpr;
  for (size_t k = 0; k < to_operand.size(); ++k) {
    const auto d = static_cast<size_t>(to_operand[k]);
    ExprId x = builder.value(indices_value, indices_at(static_cast<int64_t>(k)));
    if (plan.kernel.exprs[static_cast<size_t>(x)].type == COLLET_TYPE_U64) {
      // An unsigned index above the largest s64 is out of range, and so is the largest s64, to which it is clamped.
      x = builder.op(COLLET_OP_MINIMUM, COLLET_TYPE_U64, {x, builder.integer(COLLET_TYPE_U64, INT64_MAX)});
    }
    Index start = builder.term(builder.convert(x, COLLET_TYPE_S64));
    mask = builder.both(mask, builder.in_range(start, operand.dims[d] - extent[d] + 1));
    target[d] = add_scaled(target[d], start, 1);
  }
  Update u;
  u.index = builder.linear(target, operand.dims);
  u.mask = builder.both(mask, guard_of(graph, builder, guard, target, mask));
  const Block& block = graph.blocks[node.blocks[0]];
  u.combine = n == 1 ? block.combine : static_cast<uint32_t>(COLLET_COMBINE_OTHER);
  if (u.combine > COLLET_COMBINE_SECOND) u.combine = COLLET_COMBINE_OTHER;
  if (u.combine == COLLET_COMBINE_OTHER) u.body = builder.body(block);
  for (size_t k = 0; k < n; ++k) {
    ExprId x = builder.value(node.operands[n + 1 + k], at);
    u.values.push_back(builder.convert(x, graph.type(results[k]).element));
    u.types.push_back(graph.type(results[k]).element);
    u.buffers.push_back(builder.output(results[k]));
    plan.writes.push_back(results[k]);
  }
  plan.kernel.updates.push_back(std::move(u));
  plan.buffers = builder.buffers();
  update_in_place(plan, node, results);
  return plan;
}

/// Returns the position in an array of `dims` for point `at` of loops over `shape`: the same position, except that
/// dimensions of size 1 have index 0. Returns false if the shapes differ otherwise.
bool place_in(const Dims& dims, const Dims& shape, const Position& at, Position& out) {
  out = {};
  size_t s = 0;
  for (int64_t d : dims) {
    if (d == 1) {
      out.at.emplace_back();
      continue;
    }
    while (s < shape.size() && shape[s] == 1) ++s;
    if (s == shape.size() || shape[s] != d) return false;
    out.at.push_back(at[s++]);
  }
  while (s < shape.size() && shape[s] == 1) ++s;
  return s == shape.size();
}

/// Finds the operands that are read only at the position at which the result is written.
void find_in_place(KernelPlan& plan, const Graph& graph) {
  for (const Store& s : plan.kernel.stores) {
    const ValueId result = plan.buffers[s.buffer];
    for (uint32_t b = 0; b < plan.buffers.size(); ++b) {
      const ValueId v = plan.buffers[b];
      if (std::find(plan.writes.begin(), plan.writes.end(), v) != plan.writes.end()) continue;
      if (collet_type_bytes(graph.type(v).element) != collet_type_bytes(graph.type(result).element)) continue;
      if (graph.type(v).elements != graph.type(result).elements) continue;
      bool same = true;
      bool read = false;
      for (const Expr& i : plan.kernel.exprs) {
        if (i.op != ExprOp::kLoad || i.buffer != b) continue;
        read = true;
        same = same && i.index == s.index;
      }
      if (same && read) plan.in_place.emplace_back(v, result);
    }
  }
}

}  // namespace

KernelPlan loop_kernel(const Graph& graph, const std::vector<ValueId>& roots, const InputTest& is_input) {
  const Dims& dims = graph.type(roots[0]).dims;
  KernelPlan plan;
  fused_kernel(graph, {dims, std::vector<bool>(dims.size(), false), roots, roots}, is_input, plan);
  return plan;
}

bool fused_kernel(const Graph& graph, const FusedValues& values, const InputTest& is_input, KernelPlan& plan) {
  Dims kept;
  Dims reduced;
  Position whole;  // the position given by one loop per dimension of the shape
  whole.at.resize(values.shape.size());
  size_t inner = static_cast<size_t>(std::count(values.inner.begin(), values.inner.end(), false));
  for (size_t d = 0; d < values.shape.size(); ++d) {
    whole[d] = loop_index(values.inner[d] ? inner++ : kept.size());
    (values.inner[d] ? reduced : kept).push_back(values.shape[d]);
  }
  plan.kernel = nest(kept, reduced);
  const std::set<ValueId> own(values.own.begin(), values.own.end());
  KernelBuilder builder(graph, plan.kernel, [&](ValueId v) { return own.count(v) == 0 && is_input(v); });
  for (ValueId r : values.roots) {
    const ArrayType& type = graph.type(r);
    Position at;
    if (!place_in(type.dims, values.shape, whole, at) &&
        !place_in(type.dims, kept, loop_position(0, kept.size()), at)) {
      return false;
    }
    Store s;
    s.value = builder.value(r, at);
    s.index = builder.linear(at, type.dims);
    s.buffer = builder.output(r);
    plan.kernel.stores.push_back(s);
    plan.writes.push_back(r);
  }
  plan.buffers = builder.buffers();
  if (builder.failed()) return false;
  if (values.own.size() > 1) {
    for (ValueId v : values.own) {
      if (builder.scattered(v)) return false;
    }
  }
  if (reduced.empty()) find_in_place(plan, graph);
  return true;
}

namespace {

/// Returns the kernel that writes to each element of `to` the expression that `compute` returns for its position.
template <class Compute>
KernelPlan kernel_of_elements(const Graph& graph, ValueId to, const Compute& compute) {
  const Dims& dims = graph.type(to).dims;
  KernelPlan plan;
  plan.kernel = nest(dims);
  KernelBuilder builder(graph, plan.kernel, [](ValueId) { return true; });
  const Position at = loop_position(0, dims.size());
  const ExprId x = compute(builder, at);
  plan.kernel.stores.push_back({builder.output(to), x, builder.linear(at, dims), kNoExpr});
  plan.writes = {to};
  plan.buffers = builder.buffers();
  return plan;
}

}  // namespace

KernelPlan convert_kernel(const Graph& graph, ValueId from, ValueId to) {
  return kernel_of_elements(graph, to, [&](KernelBuilder& builder, const Position& at) {
    return builder.convert(builder.load(from, at, kNoExpr), graph.type(to).element);
  });
}

KernelPlan permute_kernel(const Graph& graph, ValueId from, const std::vector<size_t>& order, ValueId to) {
  return kernel_of_elements(graph, to, [&](KernelBuilder& builder, const Position& at) {
    Position source = at;
    for (size_t d = 0; d < order.size(); ++d) source[order[d]] = at[d];
    return builder.convert(builder.load(from, source, kNoExpr), graph.type(to).element);
  });
}

namespace {

/// Returns `x`, an element of a real type, where the mask is true, and else zero.
ExprId or_zero(KernelBuilder& builder, ExprId mask, ExprId x, uint32_t type) {
  if (mask == kNoExpr) return x;
  const double zero = 0;
  const ExprId otherwise = builder.convert(builder.constant(COLLET_TYPE_F64, &zero), type);
  return builder.op(COLLET_OP_SELECT, type, {mask, x, otherwise});
}

}  // namespace

bool operand_kernel(const Graph& graph, const InputTest& is_input, ValueId operand, const LibraryOrder& how,
                    const MakeValue& make, KernelPlan& out) {
  const ArrayType type = graph.type(operand);
  std::vector<size_t> order = how.order;
  for (size_t d = order.size(); d < type.dims.size(); ++d) order.push_back(d);
  Dims dims;
  if (how.groups > 1) dims.push_back(how.groups);
  for (const size_t d : order) {
    const int64_t size = how.low.empty() ? type.dims[d] : how.low[d] + type.dims[d] + how.high[d];
    dims.push_back(how.groups > 1 && d == how.grouped ? size / how.groups : size);
  }
  const ValueId to = make(type.element, dims);
  out = {};
  out.kernel = nest(dims);
  KernelBuilder builder(graph, out.kernel, is_input);
  const Position at = loop_position(0, dims.size());
  Position source;
  source.at.resize(type.dims.size());
  const size_t first = how.groups > 1 ? 1 : 0;
  ExprId mask = kNoExpr;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t d = order[i];
    Index& index = source[d];
    index = at[first + i];
    if (how.groups > 1 && d == how.grouped) index = add_scaled(index, at[0], type.dims[d] / how.groups);
    if (!how.low.empty()) {
      index.constant -= how.low[d];
      mask = builder.both(mask, builder.in_range(index, type.dims[d]));
    }
    if (std::find(how.reversed.begin(), how.reversed.end(), d) == how.reversed.end()) continue;
    index = add_scaled({}, index, -1);
    index.constant += type.dims[d] - 1;
  }
  const ExprId x = or_zero(builder, mask, builder.value(operand, source, mask), type.element);
  out.kernel.stores.push_back({builder.output(to), x, builder.linear(at, dims), kNoExpr});
  out.writes = {to};
  out.buffers = builder.buffers();
  return !builder.failed();
}

KernelPlan result_kernel(const Graph& graph, ValueId from, const std::vector<size_t>& order, ValueId to) {
  return kernel_of_elements(graph, to, [&](KernelBuilder& builder, const Position& at) {
    Position source;
    for (const size_t d : order) source.at.push_back(at[d]);
    return builder.load(from, source, kNoExpr);
  });
}

KernelPlan hermitian_kernel(const Graph& graph, ValueId from, size_t transformed, int64_t length, ValueId to) {
  const ArrayType& type = graph.type(to);
  const size_t rank = type.dims.size();
  const uint32_t part = half_type(type.element);
  return kernel_of_elements(graph, to, [&](KernelBuilder& builder, const Position& at) {
    const auto number = [&](double x) { return builder.convert(builder.constant(COLLET_TYPE_F64, &x), part); };
    const auto real = [&](ExprId e) { return builder.op(COLLET_OP_REAL, part, {e}); };
    const auto imaginary = [&](ExprId e) { return builder.op(COLLET_OP_IMAG, part, {e}); };
    const auto halved = [&](ExprId e) { return builder.op(COLLET_OP_MULTIPLY, part, {number(0.5), e}); };
    const ExprId x = builder.load(from, at, kNoExpr);
    ExprId edge_real = real(x), edge_imaginary = number(0);
    if (transformed > 1) {
      Position mirrored = at;
      for (size_t d = rank - transformed; d + 1 < rank; ++d) {
        Index quotient;
        builder.divide(add_scaled({}, at[d], -1), type.dims[d], quotient, mirrored[d]);
      }
      const ExprId other = builder.load(from, mirrored, kNoExpr);
      edge_real = builder.op(COLLET_OP_ADD, part, {halved(real(x)), halved(real(other))});
      edge_imaginary = builder.op(COLLET_OP_SUBTRACT, part, {halved(imaginary(x)), halved(imaginary(other))});
    }
    // The columns that are their own mirror images: the first one, and column length / 2.
    const ExprId column = builder.index_value(at[rank - 1]);
    const auto is_column = [&](int64_t n) {
      return builder.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {column, builder.integer(COLLET_TYPE_S64, n)},
                        COLLET_DIRECTION_EQ, COLLET_COMPARE_SIGNED);
    };
    ExprId is_edge = is_column(0);
    if (length % 2 == 0) is_edge = builder.op(COLLET_OP_OR, COLLET_TYPE_PRED, {is_edge, is_column(length / 2)});
    const auto chosen = [&](ExprId edge, ExprId otherwise) {
      return builder.op(COLLET_OP_SELECT, part, {is_edge, edge, otherwise});
    };
    return builder.op(COLLET_OP_COMPLEX, type.element,
                      {chosen(edge_real, real(x)), chosen(edge_imaginary, imaginary(x))});
  });
}

KernelPlan scale_kernel(const Graph& graph, ValueId from, double factor, ValueId to) {
  const uint32_t type = graph.type(to).element;
  const uint32_t part = half_type(type);
  KernelPlan plan = kernel_of_elements(graph, to, [&](KernelBuilder& builder, const Position& at) {
    const ExprId x = builder.load(from, at, kNoExpr);
    const ExprId by = builder.convert(builder.constant(COLLET_TYPE_F64, &factor), part);
    const auto scaled = [&](ExprId e) { return builder.op(COLLET_OP_MULTIPLY, part, {e, by}); };
    if (part == type) return scaled(x);
    // Real and imaginary part are scaled separately: a complex product would make NaN of an infinite part times zero.
    return builder.op(COLLET_OP_COMPLEX, type,
                      {scaled(builder.op(COLLET_OP_REAL, part, {x})), scaled(builder.op(COLLET_OP_IMAG, part, {x}))});
  });
  plan.in_place = {{from, to}};
  return plan;
}

KernelPlan combine_rows_kernel(const Graph& graph, const Block& block, ValueId from, ValueId to) {
  return kernel_of_elements(graph, to, [&](KernelBuilder& builder, const Position& at) {
    const int64_t rows = graph.type(from).dims[0];
    ExprId sum = kNoExpr;
    for (int64_t row = 0; row < rows; ++row) {
      Index first;
      first.constant = row;
      Position source = at;
      source.at.insert(source.at.begin(), first);
      const ExprId x = builder.load(from, source, kNoExpr);
      sum = row == 0 ? x : builder.inlined(block, {sum, x})[0];
    }
    return sum;
  });
}

bool is_scalar_loop(const Graph& graph, const Node& node) {
  return node.opcode == COLLET_OP_WHILE && is_scalar_block(graph, graph.blocks[node.blocks[0]]) &&
         is_scalar_block(graph, graph.blocks[node.blocks[1]]);
}

KernelPlan scalar_loop_kernel(const Graph& graph, const Node& node, const InputTest& is_input) {
  KernelPlan plan;
  KernelBuilder builder(graph, plan.kernel, is_input);
  for (uint32_t i = 0; i < node.results.size(); ++i) {
    const ExprId x = builder.loop_result(node, i);
    plan.kernel.stores.push_back({builder.output(node.results[i]), x, {}, kNoExpr});
    plan.writes.push_back(node.results[i]);
  }
  plan.buffers = builder.buffers();
  return plan;
}

bool has_node_kernel(const Graph& graph, const Node& node) {
  switch (node.opcode) {
    case COLLET_OP_REDUCE:
    case COLLET_OP_SCATTER:
    case COLLET_OP_REDUCE_WINDOW:
      return is_scalar_block(graph, graph.blocks[node.blocks[0]]);
    case COLLET_OP_SELECT_AND_SCATTER:
      return is_scalar_block(graph, graph.blocks[node.blocks[0]]) &&
             is_scalar_block(graph, graph.blocks[node.blocks[1]]);
    case COLLET_OP_DYNAMIC_UPDATE_SLICE:
    case COLLET_OP_CONCATENATE:
    case COLLET_OP_DOT:
    case COLLET_OP_CONVOLUTION:
      return true;
    default:
      return false;
  }
}

bool is_outer_product(const Graph& graph, const Node& node) {
  if (node.opcode != COLLET_OP_DOT) return false;
  const Dims& dims = graph.type(node.operands[0]).dims;
  const Dims summed = integers(graph, attributes<collet_dot_attrs>(graph, node).lhs_contracting);
  return std::all_of(summed.begin(), summed.end(), [&](int64_t d) { return dims[static_cast<size_t>(d)] == 1; });
}

GuardedUpdate guarded_update(const Graph& graph, const Node& node) {
  if (node.opcode != COLLET_OP_SELECT) return {};
  for (const size_t taken : {1, 2}) {
    const Node* update = graph.def(node.operands[taken]);
    if (!update || update->results.size() != 1) continue;
    if (update->opcode != COLLET_OP_DYNAMIC_UPDATE_SLICE && update->opcode != COLLET_OP_SCATTER) continue;
    if (update->operands[0] != node.operands[3 - taken] || !has_node_kernel(graph, *update)) continue;
    return {graph.value(node.operands[taken]).def, node.operands[0], taken == 2};
  }
  return {};
}

bool node_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                  const NodeLimits& limits, std::vector<KernelPlan>& out) {
  if (const GuardedUpdate guard = guarded_update(graph, node); guard.update != kNone) {
    const Node& update = graph.nodes[guard.update];
    out.push_back(update.opcode == COLLET_OP_SCATTER
                      ? scatter_kernel(graph, update, is_input, node.results, guard)
                      : dynamic_update_kernel(graph, update, is_input, node.results[0], guard));
    return true;
  }
  switch (node.opcode) {
    case COLLET_OP_REDUCE:
      out.push_back(reduce_kernel(graph, node, is_input));
      return true;
    case COLLET_OP_DYNAMIC_UPDATE_SLICE:
      out.push_back(dynamic_update_kernel(graph, node, is_input, node.results[0], {}));
      return true;
    case COLLET_OP_CONCATENATE:
      concatenate_kernels(graph, node, is_input, limits.masks, out);
      return true;
    case COLLET_OP_SCATTER:
      out.push_back(scatter_kernel(graph, node, is_input, node.results, {}));
      return true;
    case COLLET_OP_DOT:
      out.push_back(dot_kernel(graph, node, is_input, limits.tuning));
      return true;
    case COLLET_OP_CONVOLUTION:
      convolution_kernels(graph, node, is_input, make, limits, out);
      return true;
    case COLLET_OP_REDUCE_WINDOW:
      reduce_window_kernels(graph, node, is_input, make, limits, out);
      return true;
    case COLLET_OP_SELECT_AND_SCATTER:
      select_and_scatter_kernels(graph, node, is_input, make, out);
      return true;
    default:
      return false;
  }
}

}  // namespace collet::codegen
