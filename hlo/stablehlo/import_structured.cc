// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/dot_algorithms.h"

#include <algorithm>
#include "hlo/stablehlo/importer.h"

// Imports ops with attributes or regions of their own.

namespace collet::hlo {
namespace {

using mlir::Attr;

Status constant(Importer& m, ImportScope& scope, const mlir::Op& op) {
  const mlir::AttrRef value = op.attr("value");
  if (!value) return m.fail(op, "lacks its value");
  bool splat = false;
  auto literal = m.literal(value, &splat);
  if (!literal.ok()) return m.fail(op, literal.status().message());
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  if (!shape.is_array() || shape.type() != literal->type() || mlir::element_count(value->type) != shape.element_count())
    return m.fail(op, "has a result of type " + mlir::to_string(op.results.empty() ? nullptr : op.results[0]->type) +
                          ", but a value of type " + mlir::to_string(value->type));
  const InstrId id = m.emit_constant(scope, *literal);
  if (!splat || shape.rank() == 0) return m.define(scope, op, id);
  return m.define(scope, op, m.emit(scope, Op::BROADCAST, shape, {id}, m.module().make<BroadcastAttrs>()));
}

Status compare(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<CompareAttrs>();
  static constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  static constexpr std::string_view kTypes[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
  COLLET_ASSIGN(const size_t direction, m.word(op, "comparison_direction", kDirections));
  COLLET_ASSIGN(const size_t type, m.word(op, "compare_type", kTypes, 0));
  attrs->direction = static_cast<Direction>(direction);
  if (type == 2) attrs->type = CompareType::TOTALORDER;
  // HLO omits the comparison type if only one is possible for the element type.
  if (!operands.empty() && attrs->type != CompareType::TOTALORDER) {
    const Type t = m.shape_of(operands[0]).type();
    attrs->type = is_float(t) || is_complex(t) ? CompareType::FLOAT
                  : is_signed(t)               ? CompareType::SIGNED
                                               : CompareType::UNSIGNED;
  }
  return m.define(scope, op, m.emit(scope, Op::COMPARE, shape, operands, attrs));
}

/// broadcast_in_dim stretches dimensions of size 1, which HLO's broadcast does not: those are dropped first.
Status broadcast_in_dim(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(Dims dims, m.ints(op, "broadcast_dimensions"));
  const Shape from = m.shape_of(operand);
  if (static_cast<int>(dims.size()) != from.rank())
    return m.fail(op, "broadcast_in_dim C2: broadcast_dimensions has " + std::to_string(dims.size()) +
                          " entries for an operand of rank " + std::to_string(from.rank()));
  std::vector<int64_t> kept_sizes, kept_dims;
  std::vector<bool> named(static_cast<size_t>(std::max(shape.rank(), 0)));
  for (int i = 0; i < from.rank(); ++i) {
    const int64_t to = dims[static_cast<size_t>(i)];
    if (to < 0 || to >= shape.rank()) return m.fail(op, "broadcast_in_dim C3: a dimension lies outside of the result");
    if (named[static_cast<size_t>(to)])
      return m.fail(op, "broadcast_in_dim C4: broadcast_dimensions names " + std::to_string(to) + " twice");
    named[static_cast<size_t>(to)] = true;
    if (from.dim(i) == 1 && shape.dim(static_cast<int>(to)) != 1) continue;
    kept_sizes.push_back(from.dim(i));
    kept_dims.push_back(to);
  }
  if (static_cast<int>(kept_dims.size()) != from.rank())
    operand = m.emit(scope, Op::RESHAPE, Shape::array(from.type(), kept_sizes), {operand});
  auto* attrs = m.module().make<BroadcastAttrs>();
  attrs->dimensions = m.module().dims(kept_dims);
  return m.define(scope, op, m.emit(scope, Op::BROADCAST, shape, {operand}, attrs));
}

/// Imports `broadcast`, the older form, which adds new dimensions in front.
Status broadcast(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  const int rank = m.shape_of(operand).rank();
  COLLET_ASSIGN(const Dims sizes, m.ints(op, "broadcast_sizes"));
  bool fits = static_cast<int>(sizes.size()) == shape.rank() - rank;
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = shape.dim(static_cast<int>(i)) == sizes[i];
  if (!fits) return m.fail(op, "broadcast_sizes are not the result's first dimensions");
  std::vector<int64_t> dims;
  for (int i = shape.rank() - rank; i < shape.rank(); ++i) dims.push_back(i);
  auto* attrs = m.module().make<BroadcastAttrs>();
  attrs->dimensions = m.module().dims(dims);
  return m.define(scope, op, m.emit(scope, Op::BROADCAST, shape, {operand}, attrs));
}

template <Op kOp>
Status with_dimensions(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<DimensionsAttrs>();
  COLLET_ASSIGN(attrs->dimensions, m.ints(op, kOp == Op::TRANSPOSE ? "permutation" : "dimensions"));
  return m.define(scope, op, m.emit(scope, kOp, shape, operands, attrs));
}

template <Op kOp>
Status with_dimension(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<DimensionAttrs>();
  COLLET_ASSIGN(attrs->dimension, m.integer(op, "dimension"));
  return m.define(scope, op, m.emit(scope, kOp, shape, operands, attrs));
}

Status iota(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<IotaAttrs>();
  COLLET_ASSIGN(attrs->dimension, m.integer(op, "iota_dimension"));
  return m.define(scope, op, m.emit(scope, Op::IOTA, shape, std::span<const InstrId>(), attrs));
}

Status slice(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<SliceAttrs>();
  COLLET_ASSIGN(attrs->slice.start, m.ints(op, "start_indices"));
  COLLET_ASSIGN(attrs->slice.limit, m.ints(op, "limit_indices"));
  COLLET_ASSIGN(attrs->slice.stride, m.ints(op, "strides"));
  return m.define(scope, op, m.emit(scope, Op::SLICE, shape, {operand}, attrs));
}

Status dynamic_slice(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<DynamicSliceAttrs>();
  COLLET_ASSIGN(attrs->sizes, m.ints(op, "slice_sizes"));
  return m.define(scope, op, m.emit(scope, Op::DYNAMIC_SLICE, shape, operands, attrs));
}

Status dynamic_update_slice(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  return m.define(scope, op, m.emit(scope, Op::DYNAMIC_UPDATE_SLICE, shape, operands));
}

Status pad(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<PadAttrs>();
  COLLET_ASSIGN(attrs->padding.low, m.ints(op, "edge_padding_low"));
  COLLET_ASSIGN(attrs->padding.high, m.ints(op, "edge_padding_high"));
  COLLET_ASSIGN(attrs->padding.interior, m.ints(op, "interior_padding"));
  return m.define(scope, op, m.emit(scope, Op::PAD, shape, operands, attrs));
}

/// Reads the algorithm of a dot. VHLO has no attribute for the algorithm as a whole, only its components.
Expected<Algorithm> dot_algorithm(Importer& m, const mlir::Op& op) {
  const mlir::AttrRef lhs = op.attr("lhs_precision_type"), rhs = op.attr("rhs_precision_type");
  const mlir::AttrRef accumulation = op.attr("accumulation_type");
  const auto given = [](mlir::AttrRef a) { return a && a->type && a->type->kind != mlir::Type::Kind::None; };
  if (!given(lhs) && !given(rhs) && !given(accumulation)) return Algorithm::UNSET;
  if (!given(lhs) || !given(rhs) || !given(accumulation)) return m.fail(op, "has half of an algorithm");
  const bool tf32 = lhs->type->kind == mlir::Type::Kind::Unknown && lhs->type->text == "tf32";
  AlgorithmParts parts;
  parts.operand = tf32 ? Type::Invalid : mlir::element_type(lhs->type);
  parts.accumulation = mlir::element_type(accumulation->type);
  parts.operations = m.integer_or(op, "num_primitive_operations", 1);
  parts.imprecise = m.integer_or(op, "allow_imprecise_accumulation", 0) != 0;
  const Algorithm out = algorithm_of(parts);
  const Type other = mlir::element_type(rhs->type);
  const bool both_f8 =
      is_float(other) && type_info(other).bits == 8 && is_float(parts.operand) && type_info(parts.operand).bits == 8;
  const bool alike = mlir::same_type(lhs->type, rhs->type) || both_f8;
  const bool known_operand = tf32 || parts.operand != Type::Invalid;
  if (out == Algorithm::UNSET || !known_operand || !alike || m.integer_or(op, "lhs_component_count", 1) != 1 ||
      m.integer_or(op, "rhs_component_count", 1) != 1)
    return m.fail(op, "has an algorithm that is none of HLO's");
  return out;
}

Status dot_general(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<DotAttrs>();
  attrs->lhs_batch = m.ints_or_empty(op, "lhs_batching_dimensions");
  attrs->rhs_batch = m.ints_or_empty(op, "rhs_batching_dimensions");
  attrs->lhs_contracting = m.ints_or_empty(op, "lhs_contracting_dimensions");
  attrs->rhs_contracting = m.ints_or_empty(op, "rhs_contracting_dimensions");
  COLLET_ASSIGN(attrs->precision, m.precisions(op));
  COLLET_ASSIGN(attrs->algorithm, dot_algorithm(m, op));
  const auto is_default = [](int64_t p) { return p == static_cast<int64_t>(Precision::DEFAULT); };
  if (attrs->algorithm != Algorithm::UNSET &&
      !std::all_of(attrs->precision.begin(), attrs->precision.end(), is_default))
    return m.fail(op, "has an algorithm, so that its precision must be DEFAULT");
  return m.define(scope, op, m.emit(scope, Op::DOT, shape, operands, attrs));
}

Status ragged_dot(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<RaggedDotAttrs>();
  attrs->lhs_batch = m.ints_or_empty(op, "lhs_batching_dimensions");
  attrs->rhs_batch = m.ints_or_empty(op, "rhs_batching_dimensions");
  attrs->lhs_contracting = m.ints_or_empty(op, "lhs_contracting_dimensions");
  attrs->rhs_contracting = m.ints_or_empty(op, "rhs_contracting_dimensions");
  attrs->lhs_ragged = m.ints_or_empty(op, "lhs_ragged_dimensions");
  attrs->rhs_group = m.ints_or_empty(op, "rhs_group_dimensions");
  COLLET_ASSIGN(attrs->precision, m.precisions(op));
  return m.define(scope, op, m.emit(scope, Op::RAGGED_DOT, shape, operands, attrs));
}

Status dot(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  if (operands.size() != 2 || m.shape_of(operands[0]).rank() < 1) return m.fail(op, "needs two arrays");
  auto* attrs = m.module().make<DotAttrs>();
  attrs->lhs_contracting = m.module().dims({m.shape_of(operands[0]).rank() - 1});
  attrs->rhs_contracting = m.module().dims({0});
  COLLET_ASSIGN(attrs->precision, m.precisions(op));
  return m.define(scope, op, m.emit(scope, Op::DOT, shape, operands, attrs));
}

/// Reads the padding, a list of pairs.
Status split_padding(Importer& m, const mlir::Op& op, Dims padding, Window& window) {
  if (padding.empty()) return {};
  if (padding.size() != 2 * window.size.size()) return m.fail(op, "padding needs a pair for each window dimension");
  std::vector<int64_t> low, high;
  for (size_t i = 0; i < padding.size(); i += 2) {
    low.push_back(padding[i]);
    high.push_back(padding[i + 1]);
  }
  window.padding_low = m.module().dims(low);
  window.padding_high = m.module().dims(high);
  return {};
}

Status check_window(Importer& m, const mlir::Op& op, const Window& w) {
  for (const Dims& list : {w.stride, w.base_dilation, w.window_dilation, w.reversal})
    if (!list.empty() && list.size() != w.size.size()) return m.fail(op, "the window's lists differ in length");
  return {};
}

Status convolution(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<ConvolutionAttrs>();
  DimLabels& l = attrs->labels;
  COLLET_ASSIGN(l.input_batch, m.integer(op, "input_batch_dimension"));
  COLLET_ASSIGN(l.input_feature, m.integer(op, "input_feature_dimension"));
  COLLET_ASSIGN(l.kernel_input_feature, m.integer(op, "kernel_input_feature_dimension"));
  COLLET_ASSIGN(l.kernel_output_feature, m.integer(op, "kernel_output_feature_dimension"));
  COLLET_ASSIGN(l.output_batch, m.integer(op, "output_batch_dimension"));
  COLLET_ASSIGN(l.output_feature, m.integer(op, "output_feature_dimension"));
  l.input_spatial = m.ints_or_empty(op, "input_spatial_dimensions");
  l.kernel_spatial = m.ints_or_empty(op, "kernel_spatial_dimensions");
  l.output_spatial = m.ints_or_empty(op, "output_spatial_dimensions");
  attrs->feature_groups = m.integer_or(op, "feature_group_count", 1);
  attrs->batch_groups = m.integer_or(op, "batch_group_count", 1);
  COLLET_ASSIGN(attrs->precision, m.precisions(op));
  if (operands.size() < 2) return m.fail(op, "needs two operands");
  // HLO allows products of integers of two widths; StableHLO requires one type.
  if (m.shape_of(operands[0]).type() != m.shape_of(operands[1]).type())
    return m.fail(op, "its operands are " + m.shape_of(operands[0]).to_string() + " and " +
                          m.shape_of(operands[1]).to_string() + ": element types differ");
  std::vector<int64_t> sizes;
  const Shape kernel = m.shape_of(operands[1]);
  for (int64_t d : l.kernel_spatial) {
    if (d < 0 || d >= kernel.rank()) return m.fail(op, "a kernel dimension lies outside of the kernel");
    sizes.push_back(kernel.dim(static_cast<int>(d)));
  }
  Window& w = attrs->window;
  w.size = m.module().dims(sizes);
  w.stride = m.ints_or_empty(op, "window_strides");
  w.base_dilation = m.ints_or_empty(op, "lhs_dilation");
  w.window_dilation = m.ints_or_empty(op, "rhs_dilation");
  w.reversal = m.ints_or_empty(op, "window_reversal");
  COLLET_TRY(split_padding(m, op, m.ints_or_empty(op, "padding"), w));
  COLLET_TRY(check_window(m, op, w));
  return m.define(scope, op, m.emit(scope, Op::CONVOLUTION, shape, std::span(operands).first(2), attrs));
}

Status reduce(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId body, m.region(scope, op, 0));
  auto* attrs = m.module().make<DimensionsAttrs>();
  COLLET_ASSIGN(attrs->dimensions, m.ints(op, "dimensions"));
  return m.define(scope, op, m.emit(scope, Op::REDUCE, shape, operands, attrs, std::span(&body, 1)));
}

Status map(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId body, m.region(scope, op, 0));
  auto* attrs = m.module().make<MapAttrs>();
  attrs->dimensions = m.ints_or_empty(op, "dimensions");
  return m.define(scope, op, m.emit(scope, Op::MAP, shape, operands, attrs, std::span(&body, 1)));
}

Expected<WindowAttrs*> window_attrs(Importer& m, const mlir::Op& op) {
  auto* attrs = m.module().make<WindowAttrs>();
  COLLET_ASSIGN(attrs->window.size, m.ints(op, "window_dimensions"));
  attrs->window.stride = m.ints_or_empty(op, "window_strides");
  attrs->window.base_dilation = m.ints_or_empty(op, "base_dilations");
  attrs->window.window_dilation = m.ints_or_empty(op, "window_dilations");
  COLLET_TRY(split_padding(m, op, m.ints_or_empty(op, "padding"), attrs->window));
  COLLET_TRY(check_window(m, op, attrs->window));
  return attrs;
}

Status reduce_window(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId body, m.region(scope, op, 0));
  COLLET_ASSIGN(WindowAttrs * attrs, window_attrs(m, op));
  return m.define(scope, op, m.emit(scope, Op::REDUCE_WINDOW, shape, operands, attrs, std::span(&body, 1)));
}

Status select_and_scatter(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId select, m.region(scope, op, 0));
  COLLET_ASSIGN(CompId scatter, m.region(scope, op, 1));
  COLLET_ASSIGN(WindowAttrs * attrs, window_attrs(m, op));
  const CompId called[] = {select, scatter};
  return m.define(scope, op, m.emit(scope, Op::SELECT_AND_SCATTER, shape, operands, attrs, called));
}

Status sort(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId comparator, m.region(scope, op, 0));
  auto* attrs = m.module().make<SortAttrs>();
  attrs->dimension = m.integer_or(op, "dimension", -1);
  if (attrs->dimension < 0 && !operands.empty()) attrs->dimension += m.shape_of(operands[0]).rank();
  attrs->stable = m.flag(op, "is_stable");
  return m.define(scope, op, m.emit(scope, Op::SORT, shape, operands, attrs, std::span(&comparator, 1)));
}

Status gather(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<GatherAttrs>();
  attrs->offset_dims = m.ints_or_empty(op, "offset_dims");
  attrs->collapsed_slice_dims = m.ints_or_empty(op, "collapsed_slice_dims");
  attrs->start_index_map = m.ints_or_empty(op, "start_index_map");
  attrs->operand_batching_dims = m.ints_or_empty(op, "operand_batching_dims");
  attrs->start_indices_batching_dims = m.ints_or_empty(op, "start_indices_batching_dims");
  attrs->index_vector_dim = m.integer_or(op, "index_vector_dim", 0);
  COLLET_ASSIGN(attrs->slice_sizes, m.ints(op, "slice_sizes"));
  attrs->sorted = m.flag(op, "indices_are_sorted");
  return m.define(scope, op, m.emit(scope, Op::GATHER, shape, operands, attrs));
}

Status scatter(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId body, m.region(scope, op, 0));
  auto* attrs = m.module().make<ScatterAttrs>();
  attrs->update_window_dims = m.ints_or_empty(op, "update_window_dims");
  attrs->inserted_window_dims = m.ints_or_empty(op, "inserted_window_dims");
  attrs->scatter_dims_to_operand_dims = m.ints_or_empty(op, "scatter_dims_to_operand_dims");
  attrs->input_batching_dims = m.ints_or_empty(op, "input_batching_dims");
  attrs->scatter_indices_batching_dims = m.ints_or_empty(op, "scatter_indices_batching_dims");
  attrs->index_vector_dim = m.integer_or(op, "index_vector_dim", 0);
  attrs->sorted = m.flag(op, "indices_are_sorted");
  attrs->unique = m.flag(op, "unique_indices");
  return m.define(scope, op, m.emit(scope, Op::SCATTER, shape, operands, attrs, std::span(&body, 1)));
}

template <Op kOp>
Status batch_norm(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<BatchNormAttrs>();
  const mlir::AttrRef epsilon = op.attr("epsilon");
  if (!epsilon || epsilon->kind != Attr::Kind::Float) return m.fail(op, "lacks its epsilon");
  attrs->epsilon = static_cast<float>(epsilon->number);
  COLLET_ASSIGN(attrs->feature, m.integer(op, "feature_index"));
  return m.define(scope, op, m.emit(scope, kOp, shape, operands, attrs));
}

Status fft(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<FftAttrs>();
  static constexpr std::string_view kWords[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  static constexpr FftType kTypes[] = {FftType::FFT, FftType::IFFT, FftType::RFFT, FftType::IRFFT};
  COLLET_ASSIGN(const size_t type, m.word(op, "fft_type", kWords));
  attrs->type = kTypes[type];
  COLLET_ASSIGN(attrs->length, m.ints(op, "fft_length"));
  return m.define(scope, op, m.emit(scope, Op::FFT, shape, operands, attrs));
}

Status cholesky(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<CholeskyAttrs>();
  attrs->lower = m.flag(op, "lower");
  return m.define(scope, op, m.emit(scope, Op::CHOLESKY, shape, operands, attrs));
}

Status triangular_solve(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<TriangularSolveAttrs>();
  attrs->left_side = m.flag(op, "left_side");
  attrs->lower = m.flag(op, "lower");
  attrs->unit_diagonal = m.flag(op, "unit_diagonal");
  static constexpr std::string_view kWords[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  static constexpr Transpose kForms[] = {Transpose::NONE, Transpose::TRANSPOSE, Transpose::ADJOINT};
  COLLET_ASSIGN(const size_t form, m.word(op, "transpose_a", kWords));
  attrs->transpose_a = kForms[form];
  return m.define(scope, op, m.emit(scope, Op::TRIANGULAR_SOLVE, shape, operands, attrs));
}

Status reduce_precision(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<ReducePrecisionAttrs>();
  COLLET_ASSIGN(attrs->exponent_bits, m.integer(op, "exponent_bits"));
  COLLET_ASSIGN(attrs->mantissa_bits, m.integer(op, "mantissa_bits"));
  return m.define(scope, op, m.emit(scope, Op::REDUCE_PRECISION, shape, operands, attrs));
}

Status rng(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId a, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId b, m.value(scope, op, 1));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_TRY(check_shape_operand(m, op, 2, shape));
  auto* attrs = m.module().make<RngAttrs>();
  static constexpr std::string_view kWords[] = {"UNIFORM", "NORMAL"};
  COLLET_ASSIGN(const size_t distribution, m.word(op, "rng_distribution", kWords));
  attrs->distribution = distribution == 1 ? Distribution::NORMAL : Distribution::UNIFORM;
  return m.define(scope, op, m.emit(scope, Op::RNG, shape, {a, b}, attrs));
}

Status rng_bit_generator(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<RngBitGeneratorAttrs>();
  static constexpr std::string_view kWords[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
  static constexpr RngAlgorithm kAlgorithms[] = {RngAlgorithm::DEFAULT, RngAlgorithm::THREE_FRY, RngAlgorithm::PHILOX};
  COLLET_ASSIGN(const size_t algorithm, m.word(op, "rng_algorithm", kWords));
  attrs->algorithm = kAlgorithms[algorithm];
  return m.define(scope, op, m.emit(scope, Op::RNG_BIT_GENERATOR, shape, operands, attrs));
}

Status get_tuple_element(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<TupleIndexAttrs>();
  COLLET_ASSIGN(attrs->index, m.integer(op, "index"));
  return m.define(scope, op, m.emit(scope, Op::GET_TUPLE_ELEMENT, shape, {operand}, attrs));
}

/// Imports torch_index_select: selects slices of `operand` along `dim`, with leading batch dimensions in common.
Status torch_index_select(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId index, m.value(scope, op, 1));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(int64_t dim, m.integer(op, "dim"));
  const int64_t batch = m.integer_or(op, "batch_dims", 0);
  const Shape from = m.shape_of(operand), indices = m.shape_of(index);
  if (dim < 0 || dim >= from.rank() || batch < 0 || batch > dim || batch > indices.rank())
    return m.fail(op, "dim or batch_dims lies outside");
  auto* attrs = m.module().make<GatherAttrs>();
  std::vector<int64_t> sizes, offsets, batching;
  for (int64_t i = 0; i < from.rank(); ++i) {
    sizes.push_back(i < batch || i == dim ? 1 : from.dim(static_cast<int>(i)));
    if (i < batch)
      batching.push_back(i);
    else if (i < dim)
      offsets.push_back(i);
    else if (i > dim)
      offsets.push_back(i + indices.rank() - batch - 1);
  }
  attrs->offset_dims = m.module().dims(offsets);
  attrs->collapsed_slice_dims = m.module().dims({dim});
  attrs->start_index_map = m.module().dims({dim});
  attrs->operand_batching_dims = m.module().dims(batching);
  attrs->start_indices_batching_dims = m.module().dims(batching);
  attrs->index_vector_dim = indices.rank();
  attrs->slice_sizes = m.module().dims(sizes);
  return m.define(scope, op, m.emit(scope, Op::GATHER, shape, {operand, index}, attrs));
}

}  // namespace

std::span<const ImportRow> import_structured_rows() {
  static constexpr ImportRow kRows[] = {
      {"stablehlo.constant", constant},
      {"chlo.constant", constant},
      {"stablehlo.compare", compare},
      {"stablehlo.broadcast_in_dim", broadcast_in_dim},
      {"stablehlo.broadcast", broadcast},
      {"stablehlo.transpose", with_dimensions<Op::TRANSPOSE>},
      {"stablehlo.reverse", with_dimensions<Op::REVERSE>},
      {"stablehlo.concatenate", with_dimension<Op::CONCATENATE>},
      {"stablehlo.get_dimension_size", with_dimension<Op::GET_DIMENSION_SIZE>},
      {"stablehlo.set_dimension_size", with_dimension<Op::SET_DIMENSION_SIZE>},
      {"stablehlo.iota", iota},
      {"stablehlo.slice", slice},
      {"stablehlo.dynamic_slice", dynamic_slice},
      {"stablehlo.dynamic_update_slice", dynamic_update_slice},
      {"stablehlo.pad", pad},
      {"stablehlo.dot_general", dot_general},
      {"stablehlo.dot", dot},
      {"chlo.ragged_dot", ragged_dot},
      {"stablehlo.convolution", convolution},
      {"stablehlo.reduce", reduce},
      {"stablehlo.map", map},
      {"stablehlo.reduce_window", reduce_window},
      {"stablehlo.select_and_scatter", select_and_scatter},
      {"stablehlo.sort", sort},
      {"stablehlo.gather", gather},
      {"stablehlo.scatter", scatter},
      {"stablehlo.batch_norm_training", batch_norm<Op::BATCH_NORM_TRAINING>},
      {"stablehlo.batch_norm_inference", batch_norm<Op::BATCH_NORM_INFERENCE>},
      {"stablehlo.batch_norm_grad", batch_norm<Op::BATCH_NORM_GRAD>},
      {"stablehlo.fft", fft},
      {"stablehlo.cholesky", cholesky},
      {"stablehlo.triangular_solve", triangular_solve},
      {"stablehlo.reduce_precision", reduce_precision},
      {"stablehlo.rng", rng},
      {"stablehlo.rng_bit_generator", rng_bit_generator},
      {"stablehlo.get_tuple_element", get_tuple_element},
      {"stablehlo.torch_index_select", torch_index_select},
  };
  return kRows;
}

}  // namespace collet::hlo
