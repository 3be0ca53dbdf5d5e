// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/exporter.h"

// Exports ops that have attributes of their own, except for those with windows, regions or participants.

namespace collet::hlo {
namespace {

using mlir::Attr;
using mlir::TypeRef;
using mlir::Value;

Expected<ExportNode> constant_value(Exporter& e, ExportScope& scope, const Instruction& instr, const Literal& literal) {
  ExportNode out;
  if (literal.shape().is_tuple()) {
    for (const Literal& element : literal.elements()) {
      COLLET_ASSIGN(ExportNode one, constant_value(e, scope, instr, element));
      out.parts.push_back(std::move(one));
    }
    return out;
  }
  auto type = e.type(literal.shape());
  if (!type.ok()) return e.fail(instr, type.status().message());
  out.value = literal.shape().is_token() ? e.emit(scope, "stablehlo.create_token", {}, {*type})->results[0]
                                         : e.emit_constant(scope, literal, *type);
  return out;
}

Expected<ExportNode> constant(Exporter& e, ExportScope& scope, const Instruction& instr) {
  return constant_value(e, scope, instr, e.module().literal(instr));
}

Expected<ExportNode> tuple(Exporter& e, ExportScope& scope, const Instruction& instr) {
  ExportNode out;
  for (size_t i = 0; i < instr.operands.size(); ++i) out.parts.push_back(e.node(scope, instr, i));
  return out;
}

Expected<ExportNode> get_tuple_element(Exporter& e, ExportScope& scope, const Instruction& instr) {
  auto out = e.part(scope, e.node(scope, instr, 0), static_cast<size_t>(instr.as<TupleIndexAttrs>().index));
  if (!out.ok()) return e.fail(instr, out.status().message());
  return out;
}

/// Exports an op whose result equals its operand, such as a copy to another memory space or layout, as that operand.
Expected<ExportNode> same_value(Exporter& e, ExportScope& scope, const Instruction& instr) {
  return e.node(scope, instr, 0);
}

/// Exports add-dependency: an optimization_barrier makes the first operand depend on the second.
Expected<ExportNode> add_dependency(Exporter& e, ExportScope& scope, const Instruction& instr) {
  std::vector<Value*> values;
  COLLET_TRY(e.leaves(scope, e.node(scope, instr, 0), values));
  const size_t count = values.size();
  COLLET_TRY(e.leaves(scope, e.node(scope, instr, 1), values));
  std::vector<TypeRef> types;
  for (const Value* v : values) types.push_back(v->type);
  mlir::Op* op = e.emit(scope, "stablehlo.optimization_barrier", values, types);
  return Exporter::from_leaves(instr.shape, std::span(op->results).first(count));
}

Expected<ExportNode> optimization_barrier(Exporter& e, ExportScope& scope, const Instruction& instr) {
  std::vector<Value*> values;
  COLLET_TRY(e.leaves(scope, e.node(scope, instr, 0), values));
  if (values.empty()) return e.node(scope, instr, 0);
  std::vector<TypeRef> types;
  for (const Value* v : values) types.push_back(v->type);
  return Exporter::from_leaves(instr.shape, e.emit(scope, "stablehlo.optimization_barrier", values, types)->results);
}

Expected<ExportNode> compare(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.compare", instr));
  const auto& attrs = instr.as<CompareAttrs>();
  static constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  e.set_enum(op, "comparison_direction", kDirections[static_cast<size_t>(attrs.direction) % 6]);
  const Type type = e.module()[instr.operand(0)].shape.type();
  e.set_enum(op, "compare_type",
             attrs.type == CompareType::TOTALORDER ? "TOTALORDER"
             : is_float(type) || is_complex(type)  ? "FLOAT"
             : is_signed(type)                     ? "SIGNED"
                                                   : "UNSIGNED");
  return Exporter::from_results(*op);
}

Expected<ExportNode> broadcast(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.broadcast_in_dim", instr));
  e.set_ints(op, "broadcast_dimensions", instr.as<BroadcastAttrs>().dimensions);
  return Exporter::from_results(*op);
}

/// Exports a bitcast between row-major layouts of one element type, which is a reshape.
Expected<ExportNode> bitcast(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const Shape& from = e.module()[instr.operand(0)].shape;
  const auto plain = [](const Shape& shape) {
    return shape.is_array() && (!shape.layout() || shape.layout()->is_default());
  };
  if (!plain(from) || !plain(instr.shape) || from.type() != instr.shape.type())
    return e.fail(instr, "it depends on layouts; normalize_layouts takes them out");
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.reshape", instr));
  return Exporter::from_results(*op);
}

/// Exports bitcast-convert. A boolean has one bit in StableHLO and a byte in HLO, so a bitcast between booleans and
/// another type is exported as a conversion between booleans and u8, and a bitcast of u8.
Expected<ExportNode> bitcast_convert(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const Type from = e.module()[instr.operand(0)].shape.type(), to = instr.shape.type();
  if ((from == Type::PRED) == (to == Type::PRED)) {
    COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.bitcast_convert", instr));
    return Exporter::from_results(*op);
  }
  COLLET_ASSIGN(std::vector<Value*> inputs, e.operands(scope, instr));
  Value* value = inputs[0];
  if (from == Type::PRED) value = e.emit_convert(scope, value, Type::U8);
  if ((from == Type::PRED ? to : from) != Type::U8) {
    COLLET_ASSIGN(TypeRef type, e.type(to == Type::PRED ? instr.shape.with_type(Type::U8) : instr.shape));
    value = e.emit(scope, "stablehlo.bitcast_convert", {&value, 1}, {type})->results[0];
  }
  if (to == Type::PRED) value = e.emit_convert(scope, value, Type::PRED);
  return Exporter::from_leaves(instr.shape, {&value, 1});
}

Expected<ExportNode> with_dimensions(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const bool transpose = instr.op == Op::TRANSPOSE;
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, transpose ? "stablehlo.transpose" : "stablehlo.reverse", instr));
  e.set_ints(op, transpose ? "permutation" : "dimensions", instr.as<DimensionsAttrs>().dimensions);
  return Exporter::from_results(*op);
}

Expected<ExportNode> with_dimension(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const std::string_view name = instr.op == Op::CONCATENATE          ? "stablehlo.concatenate"
                                : instr.op == Op::GET_DIMENSION_SIZE ? "stablehlo.get_dimension_size"
                                                                     : "stablehlo.set_dimension_size";
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, name, instr));
  e.set_int(op, "dimension", instr.as<DimensionAttrs>().dimension);
  return Exporter::from_results(*op);
}

Expected<ExportNode> iota(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.iota", instr));
  e.set_int(op, "iota_dimension", instr.as<IotaAttrs>().dimension);
  return Exporter::from_results(*op);
}

Expected<ExportNode> slice(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.slice", instr));
  const SliceRanges& ranges = instr.as<SliceAttrs>().slice;
  std::vector<int64_t> strides(ranges.stride.begin(), ranges.stride.end());
  strides.resize(ranges.start.size(), 1);
  e.set_ints(op, "start_indices", ranges.start);
  e.set_ints(op, "limit_indices", ranges.limit);
  e.set_ints(op, "strides", strides);
  return Exporter::from_results(*op);
}

/// Exports dynamic-slice; start indices in one vector are split into scalars.
Expected<ExportNode> dynamic_slice(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const bool update = instr.op == Op::DYNAMIC_UPDATE_SLICE;
  const size_t first = update ? 2 : 1;
  COLLET_ASSIGN(std::vector<Value*> inputs, e.operands(scope, instr));
  const int rank = instr.shape.rank();
  if (inputs.size() == first + 1 && inputs[first]->type->dims.size() == 1) {
    Value* const vector = inputs[first];
    inputs.pop_back();
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t one = 1, start = i, limit = i + 1;
      mlir::Op* piece =
          e.emit(scope, "stablehlo.slice", {&vector, 1}, {e.program().tensor(vector->type->element, {&one, 1})});
      e.set_ints(piece, "start_indices", {&start, 1});
      e.set_ints(piece, "limit_indices", {&limit, 1});
      e.set_ints(piece, "strides", {&one, 1});
      COLLET_ASSIGN(Value * scalar, e.emit_reshape(scope, piece->results[0], {}));
      inputs.push_back(scalar);
    }
  }
  auto type = e.type(instr.shape);
  if (!type.ok()) return e.fail(instr, type.status().message());
  mlir::Op* op = e.emit(scope, update ? "stablehlo.dynamic_update_slice" : "stablehlo.dynamic_slice", inputs, {*type});
  if (!update) e.set_ints(op, "slice_sizes", instr.as<DynamicSliceAttrs>().sizes);
  return Exporter::from_results(*op);
}

Expected<ExportNode> pad(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.pad", instr));
  const Padding& padding = instr.as<PadAttrs>().padding;
  std::vector<int64_t> interior(padding.interior.begin(), padding.interior.end());
  interior.resize(padding.low.size(), 0);
  e.set_ints(op, "edge_padding_low", padding.low);
  e.set_ints(op, "edge_padding_high", padding.high);
  e.set_ints(op, "interior_padding", interior);
  return Exporter::from_results(*op);
}

Expected<ExportNode> gather(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.gather", instr));
  const auto& attrs = instr.as<GatherAttrs>();
  e.set_ints(op, "offset_dims", attrs.offset_dims);
  e.set_ints(op, "collapsed_slice_dims", attrs.collapsed_slice_dims);
  e.set_list(op, "operand_batching_dims", attrs.operand_batching_dims);
  e.set_list(op, "start_indices_batching_dims", attrs.start_indices_batching_dims);
  e.set_ints(op, "start_index_map", attrs.start_index_map);
  e.set_int(op, "index_vector_dim", attrs.index_vector_dim);
  e.set_ints(op, "slice_sizes", attrs.slice_sizes);
  e.set_flag(op, "indices_are_sorted", attrs.sorted);
  return Exporter::from_results(*op);
}

Expected<ExportNode> batch_norm(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const std::string_view name = instr.op == Op::BATCH_NORM_TRAINING    ? "stablehlo.batch_norm_training"
                                : instr.op == Op::BATCH_NORM_INFERENCE ? "stablehlo.batch_norm_inference"
                                                                       : "stablehlo.batch_norm_grad";
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, name, instr));
  const auto& attrs = instr.as<BatchNormAttrs>();
  Attr* epsilon = e.program().make_attr(Attr::Kind::Float);
  epsilon->number = attrs.epsilon;
  epsilon->type = e.program().scalar(Type::F32);
  e.set(op, "epsilon", epsilon);
  e.set_int(op, "feature_index", attrs.feature);
  return Exporter::from_results(*op);
}

Expected<ExportNode> fft(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.fft", instr));
  static constexpr std::string_view kTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  e.set_enum(op, "fft_type", kTypes[static_cast<size_t>(instr.as<FftAttrs>().type) % 4]);
  e.set_ints(op, "fft_length", instr.as<FftAttrs>().length);
  return Exporter::from_results(*op);
}

Expected<ExportNode> cholesky(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.cholesky", instr));
  e.set_flag(op, "lower", instr.as<CholeskyAttrs>().lower);
  return Exporter::from_results(*op);
}

Expected<ExportNode> triangular_solve(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.triangular_solve", instr));
  const auto& attrs = instr.as<TriangularSolveAttrs>();
  static constexpr std::string_view kForms[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  e.set_bool(op, "left_side", attrs.left_side);
  e.set_bool(op, "lower", attrs.lower);
  e.set_bool(op, "unit_diagonal", attrs.unit_diagonal);
  e.set_enum(op, "transpose_a", kForms[static_cast<size_t>(attrs.transpose_a) % 3]);
  return Exporter::from_results(*op);
}

Expected<ExportNode> reduce_precision(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.reduce_precision", instr));
  const auto& attrs = instr.as<ReducePrecisionAttrs>();
  e.set_int(op, "exponent_bits", attrs.exponent_bits, Type::S32);
  e.set_int(op, "mantissa_bits", attrs.mantissa_bits, Type::S32);
  return Exporter::from_results(*op);
}

Expected<ExportNode> rng(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<Value*> inputs, e.operands(scope, instr));
  if (instr.shape.has_dynamic()) return e.fail(instr, "its size would have to be static");
  inputs.push_back(e.emit_ints(scope, Type::S64, instr.shape.dims()));
  auto type = e.type(instr.shape);
  if (!type.ok()) return e.fail(instr, type.status().message());
  mlir::Op* op = e.emit(scope, "stablehlo.rng", inputs, {*type});
  e.set_enum(op, "rng_distribution", instr.as<RngAttrs>().distribution == Distribution::NORMAL ? "NORMAL" : "UNIFORM");
  return Exporter::from_results(*op);
}

Expected<ExportNode> rng_bit_generator(Exporter& e, ExportScope& scope, const Instruction& instr) {
  if (!instr.shape.is_tuple()) return e.fail(instr, "it would return its state too");
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.rng_bit_generator", instr));
  static constexpr std::string_view kNames[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
  e.set_enum(op, "rng_algorithm", kNames[static_cast<size_t>(instr.as<RngBitGeneratorAttrs>().algorithm) % 3]);
  return Exporter::from_results(*op);
}

/// Exports dynamic-reshape: HLO has the new sizes as scalars, StableHLO as one vector.
Expected<ExportNode> dynamic_reshape(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<Value*> inputs, e.operands(scope, instr));
  std::vector<Value*> sizes;
  const int64_t one = 1;
  for (size_t i = 1; i < inputs.size(); ++i) {
    COLLET_ASSIGN(Value * size, e.emit_reshape(scope, inputs[i], {&one, 1}));
    sizes.push_back(size);
  }
  if (sizes.empty()) return e.fail(instr, "it has no sizes");
  const auto count = static_cast<int64_t>(sizes.size());
  mlir::Op* all =
      e.emit(scope, "stablehlo.concatenate", sizes, {e.program().tensor(sizes[0]->type->element, {&count, 1})});
  e.set_int(all, "dimension", 0);
  auto type = e.type(instr.shape);
  if (!type.ok()) return e.fail(instr, type.status().message());
  Value* const both[] = {inputs[0], all->results[0]};
  return Exporter::from_results(*e.emit(scope, "stablehlo.dynamic_reshape", both, {*type}));
}

/// Exports elementwise functions that exist in the CHLO dialect.
Expected<ExportNode> chlo_unary(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const std::string name = "chlo." + std::string(op_info(instr.op).text);
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, e.program().arena().string(name), instr));
  return Exporter::from_results(*op);
}

Expected<ExportNode> top_k(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<TopKAttrs>();
  if (!attrs.smallest) {
    COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "chlo.top_k", instr));
    e.set_int(op, "k", attrs.k);
    return Exporter::from_results(*op);
  }
  // chlo.top_k returns the largest elements only, so a top-k of the smallest becomes a custom call.
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.custom_call", instr));
  e.set_text(op, "call_target_name", "mhlo.topk");
  Attr* fields = e.program().make_attr(Attr::Kind::Dict);
  fields->fields = e.program().arena().list(
      std::vector<mlir::NamedAttr>{{"k", e.int_attr(attrs.k, Type::S64)}, {"largest", e.bool_attr(false)}});
  e.set(op, "mhlo.attributes", fields);
  e.set_int(op, "mhlo.version", 1);
  return Exporter::from_results(*op);
}

Expected<ExportNode> scaled_dot(Exporter& e, ExportScope&, const Instruction& instr) {
  return e.fail(instr, "there is no such op; its expansion into plain ones can be written");
}

}  // namespace

std::span<const ExportRow> export_structured_rows() {
  static constexpr ExportRow kRows[] = {
      {Op::CONSTANT, constant},
      {Op::TUPLE, tuple},
      {Op::GET_TUPLE_ELEMENT, get_tuple_element},
      {Op::COPY, same_value},
      {Op::DOMAIN, same_value},
      {Op::COPY_START, same_value},
      {Op::COPY_DONE, same_value},
      {Op::ADD_DEPENDENCY, add_dependency},
      {Op::OPT_BARRIER, optimization_barrier},
      {Op::COMPARE, compare},
      {Op::BROADCAST, broadcast},
      {Op::BITCAST, bitcast},
      {Op::BITCAST_CONVERT, bitcast_convert},
      {Op::TRANSPOSE, with_dimensions},
      {Op::REVERSE, with_dimensions},
      {Op::CONCATENATE, with_dimension},
      {Op::GET_DIMENSION_SIZE, with_dimension},
      {Op::SET_DIMENSION_SIZE, with_dimension},
      {Op::IOTA, iota},
      {Op::SLICE, slice},
      {Op::DYNAMIC_SLICE, dynamic_slice},
      {Op::DYNAMIC_UPDATE_SLICE, dynamic_slice},
      {Op::PAD, pad},
      {Op::GATHER, gather},
      {Op::BATCH_NORM_TRAINING, batch_norm},
      {Op::BATCH_NORM_INFERENCE, batch_norm},
      {Op::BATCH_NORM_GRAD, batch_norm},
      {Op::FFT, fft},
      {Op::CHOLESKY, cholesky},
      {Op::TRIANGULAR_SOLVE, triangular_solve},
      {Op::REDUCE_PRECISION, reduce_precision},
      {Op::RNG, rng},
      {Op::RNG_BIT_GENERATOR, rng_bit_generator},
      {Op::DYNAMIC_RESHAPE, dynamic_reshape},
      {Op::ACOS, chlo_unary},
      {Op::ACOSH, chlo_unary},
      {Op::ASIN, chlo_unary},
      {Op::ASINH, chlo_unary},
      {Op::ATANH, chlo_unary},
      {Op::COSH, chlo_unary},
      {Op::ERF, chlo_unary},
      {Op::SINH, chlo_unary},
      {Op::TOPK, top_k},
      {Op::SCALED_DOT, scaled_dot},
  };
  return kRows;
}

}  // namespace collet::hlo
