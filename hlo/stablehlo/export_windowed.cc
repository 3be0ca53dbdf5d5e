// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/stablehlo/dot_algorithms.h"
#include "hlo/stablehlo/exporter.h"

// Exports products, convolutions, and the ops that apply a computation to scalars.

namespace collet::hlo {
namespace {

using mlir::Attr;
using mlir::TypeRef;

void set_algorithm(Exporter& e, mlir::Op* op, Algorithm algorithm) {
  const AlgorithmParts* parts = parts_of(algorithm);
  if (!parts) return;
  mlir::Type* tf32 = e.program().make_type(mlir::Type::Kind::Unknown);
  tf32->text = "tf32";
  TypeRef operand = parts->operand == Type::Invalid ? tf32 : e.program().scalar(parts->operand);
  e.set(op, "lhs_precision_type", e.type_attr(operand));
  e.set(op, "rhs_precision_type", e.type_attr(operand));
  e.set(op, "accumulation_type", e.type_attr(e.program().scalar(parts->accumulation)));
  e.set_int(op, "lhs_component_count", 1);
  e.set_int(op, "rhs_component_count", 1);
  e.set_int(op, "num_primitive_operations", parts->operations);
  e.set_bool(op, "allow_imprecise_accumulation", parts->imprecise);
}

/// Emits a product. If the operands have different types, both are converted to the type of the result first.
Expected<mlir::Op*> emit_product(Exporter& e, ExportScope& scope, std::string_view name, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<mlir::Value*> inputs, e.operands(scope, instr));
  auto type = e.type(instr.shape);
  if (!type.ok()) return e.fail(instr, type.status().message());
  const auto& module = e.module();
  if (module[instr.operand(0)].shape.type() != module[instr.operand(1)].shape.type())
    for (size_t i = 0; i < 2; ++i) inputs[i] = e.emit_convert(scope, inputs[i], instr.shape.type());
  return e.emit(scope, name, inputs, {*type});
}

template <typename Attrs>
void set_contraction(Exporter& e, mlir::Op* op, const Attrs& attrs) {
  e.set_ints(op, "lhs_batching_dimensions", attrs.lhs_batch);
  e.set_ints(op, "rhs_batching_dimensions", attrs.rhs_batch);
  e.set_ints(op, "lhs_contracting_dimensions", attrs.lhs_contracting);
  e.set_ints(op, "rhs_contracting_dimensions", attrs.rhs_contracting);
}

Expected<ExportNode> dot(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, emit_product(e, scope, "stablehlo.dot_general", instr));
  const auto& attrs = instr.as<DotAttrs>();
  set_contraction(e, op, attrs);
  // An algorithm determines the precision; StableHLO allows no other precision_config with it.
  if (attrs.algorithm != Algorithm::UNSET)
    set_algorithm(e, op, attrs.algorithm);
  else
    e.set_precisions(op, attrs.precision);
  return Exporter::from_results(*op);
}

Expected<ExportNode> ragged_dot(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<RaggedDotAttrs>();
  if (attrs.algorithm != Algorithm::UNSET) return e.fail(instr, "its op has no algorithm");
  COLLET_ASSIGN(mlir::Op * op, emit_product(e, scope, "chlo.ragged_dot", instr));
  set_contraction(e, op, attrs);
  e.set_precisions(op, attrs.precision);
  e.set_ints(op, "lhs_ragged_dimensions", attrs.lhs_ragged);
  e.set_ints(op, "rhs_group_dimensions", attrs.rhs_group);
  return Exporter::from_results(*op);
}

/// Sets the padding as pairs of low and high; no attribute if there is no padding.
void set_padding(Exporter& e, mlir::Op* op, const Window& window) {
  if (window.padding_low.empty() && window.padding_high.empty()) return;
  std::vector<int64_t> pairs;
  for (size_t i = 0; i < window.rank(); ++i) {
    pairs.push_back(window.low_at(i));
    pairs.push_back(window.high_at(i));
  }
  e.set_table(op, "padding", pairs, 2);
}

bool any_true(Dims flags) {
  return std::any_of(flags.begin(), flags.end(), [](int64_t f) { return f != 0; });
}

bool all_ones(Dims values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 1; });
}

Expected<ExportNode> convolution(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<ConvolutionAttrs>();
  const DimLabels& l = attrs.labels;
  for (int64_t d : {l.input_batch, l.input_feature, l.kernel_input_feature, l.kernel_output_feature, l.output_batch,
                    l.output_feature})
    if (d < 0) return e.fail(instr, "its dim_labels leave dimensions unnamed");
  COLLET_ASSIGN(mlir::Op * op, emit_product(e, scope, "stablehlo.convolution", instr));
  e.set_list(op, "window_strides", attrs.window.stride);
  set_padding(e, op, attrs.window);
  e.set_list(op, "lhs_dilation", attrs.window.base_dilation);
  e.set_list(op, "rhs_dilation", attrs.window.window_dilation);
  if (!attrs.window.reversal.empty()) {
    Attr* reversal = e.program().make_attr(Attr::Kind::Bools);
    reversal->ints = e.program().arena().list<const int64_t>(std::span<const int64_t>(attrs.window.reversal));
    e.set(op, "window_reversal", reversal);
  }
  e.set_int(op, "input_batch_dimension", l.input_batch);
  e.set_int(op, "input_feature_dimension", l.input_feature);
  e.set_ints(op, "input_spatial_dimensions", l.input_spatial);
  e.set_int(op, "kernel_input_feature_dimension", l.kernel_input_feature);
  e.set_int(op, "kernel_output_feature_dimension", l.kernel_output_feature);
  e.set_ints(op, "kernel_spatial_dimensions", l.kernel_spatial);
  e.set_int(op, "output_batch_dimension", l.output_batch);
  e.set_int(op, "output_feature_dimension", l.output_feature);
  e.set_ints(op, "output_spatial_dimensions", l.output_spatial);
  e.set_int(op, "feature_group_count", attrs.feature_groups);
  e.set_int(op, "batch_group_count", attrs.batch_groups);
  e.set_precisions(op, attrs.precision);
  return Exporter::from_results(*op);
}

/// Sets the region that combines scalars of the result's type.
Status set_body(Exporter& e, mlir::Op* op, const Instruction& instr, CompId computation) {
  const Shape& result = e.module()[e.module()[computation].root].shape;
  bool scalars = result.is_tuple() || result.is_scalar();
  for (InstrId id : e.module()[computation].parameters) scalars &= e.module()[id].shape.is_scalar();
  if (!scalars) return e.fail(instr, "its computation combines more than scalars");
  if (instr.shape.is_tuple()) return e.region(op, computation);
  return e.combiner(op, computation, instr.shape.type());
}

Expected<ExportNode> reduce(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.reduce", instr));
  e.set_ints(op, "dimensions", instr.as<DimensionsAttrs>().dimensions);
  COLLET_TRY(set_body(e, op, instr, instr.called[0]));
  return Exporter::from_results(*op);
}

Expected<ExportNode> map(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.map", instr));
  std::vector<int64_t> dimensions;
  for (int i = 0; i < instr.shape.rank(); ++i) dimensions.push_back(i);
  e.set_ints(op, "dimensions", dimensions);
  COLLET_TRY(e.region(op, instr.called[0]));
  return Exporter::from_results(*op);
}

Expected<ExportNode> reduce_window(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const Window& window = instr.as<WindowAttrs>().window;
  if (any_true(window.reversal)) return e.fail(instr, "its window is reversed");
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.reduce_window", instr));
  e.set_ints(op, "window_dimensions", window.size);
  e.set_list(op, "window_strides", window.stride);
  e.set_list(op, "base_dilations", window.base_dilation);
  e.set_list(op, "window_dilations", window.window_dilation);
  set_padding(e, op, window);
  COLLET_TRY(set_body(e, op, instr, instr.called[0]));
  return Exporter::from_results(*op);
}

Expected<ExportNode> select_and_scatter(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const Window& window = instr.as<WindowAttrs>().window;
  if (any_true(window.reversal) || !all_ones(window.base_dilation) || !all_ones(window.window_dilation))
    return e.fail(instr, "its window is reversed or dilated");
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.select_and_scatter", instr));
  e.set_ints(op, "window_dimensions", window.size);
  e.set_list(op, "window_strides", window.stride);
  set_padding(e, op, window);
  COLLET_TRY(e.region(op, instr.called[0]));
  COLLET_TRY(set_body(e, op, instr, instr.called[1]));
  return Exporter::from_results(*op);
}

Expected<ExportNode> sort(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.sort", instr));
  e.set_int(op, "dimension", instr.as<SortAttrs>().dimension);
  e.set_bool(op, "is_stable", instr.as<SortAttrs>().stable);
  COLLET_TRY(e.region(op, instr.called[0]));
  return Exporter::from_results(*op);
}

Expected<ExportNode> scatter(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.scatter", instr));
  const auto& attrs = instr.as<ScatterAttrs>();
  e.set_ints(op, "update_window_dims", attrs.update_window_dims);
  e.set_ints(op, "inserted_window_dims", attrs.inserted_window_dims);
  e.set_list(op, "input_batching_dims", attrs.input_batching_dims);
  e.set_list(op, "scatter_indices_batching_dims", attrs.scatter_indices_batching_dims);
  e.set_ints(op, "scatter_dims_to_operand_dims", attrs.scatter_dims_to_operand_dims);
  e.set_int(op, "index_vector_dim", attrs.index_vector_dim);
  e.set_flag(op, "indices_are_sorted", attrs.sorted);
  e.set_flag(op, "unique_indices", attrs.unique);
  COLLET_TRY(set_body(e, op, instr, instr.called[0]));
  return Exporter::from_results(*op);
}

}  // namespace

std::span<const ExportRow> export_windowed_rows() {
  static constexpr ExportRow kRows[] = {
      {Op::DOT, dot},
      {Op::RAGGED_DOT, ragged_dot},
      {Op::CONVOLUTION, convolution},
      {Op::REDUCE, reduce},
      {Op::MAP, map},
      {Op::REDUCE_WINDOW, reduce_window},
      {Op::SELECT_AND_SCATTER, select_and_scatter},
      {Op::SORT, sort},
      {Op::SCATTER, scatter},
  };
  return kRows;
}

}  // namespace collet::hlo
