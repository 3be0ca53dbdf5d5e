// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "hlo/stablehlo/importer.h"

// Quantized types become plain arithmetic: dequantize, compute on the expressed type, quantize (the specification's
// dequantize_op_quantize). Values are carried in their storage type.

namespace collet::hlo {
namespace {

using mlir::Quantization;
using mlir::TypeRef;

const Quantization* quantization(TypeRef type) {
  if (!type || type->kind != mlir::Type::Kind::Tensor || !type->element) return nullptr;
  return type->element->kind == mlir::Type::Kind::Quantized ? type->element->quantization : nullptr;
}

/// Returns the scales or zero points: a per-axis list broadcast along its axis of `shape`, or the single value
/// broadcast to `shape`.
InstrId parameter(Importer& m, ImportScope& scope, const Shape& shape, const Quantization& q, bool scales) {
  const auto at = [&](size_t i) { return scales ? q.scales[i] : static_cast<double>(q.zero_points[i]); };
  if (q.axis < 0 || q.scales.size() == 1) return m.emit_splat(scope, shape, q.expressed, at(0));
  Literal list = Literal::zeros(Shape::array(q.expressed, {static_cast<int64_t>(q.scales.size())}));
  for (size_t i = 0; i < q.scales.size(); ++i) list.set_double(static_cast<int64_t>(i), at(i));
  auto* attrs = m.module().make<BroadcastAttrs>();
  attrs->dimensions = m.module().dims({q.axis});
  return m.emit(scope, Op::BROADCAST, shape.with_type(q.expressed), {m.emit_constant(scope, std::move(list))}, attrs);
}

bool axis_fits(const Quantization& q, const Shape& shape) {
  if (q.scales.empty()) return false;
  if (q.axis < 0 || q.scales.size() == 1) return true;
  return q.axis < shape.rank() && shape.dim(static_cast<int>(q.axis)) == static_cast<int64_t>(q.scales.size());
}

/// True for ops that only move elements, or whose regions are quantized themselves.
bool keeps_storage(std::string_view name) {
  for (std::string_view n : {"stablehlo.constant",
                             "stablehlo.return",
                             "stablehlo.while",
                             "stablehlo.if",
                             "stablehlo.case",
                             "func.call",
                             "stablehlo.composite",
                             "stablehlo.reduce",
                             "stablehlo.reduce_window",
                             "stablehlo.select_and_scatter",
                             "stablehlo.sort",
                             "stablehlo.map",
                             "stablehlo.scatter",
                             "stablehlo.bitcast_convert",
                             "stablehlo.tuple",
                             "stablehlo.get_tuple_element",
                             "stablehlo.optimization_barrier",
                             "stablehlo.custom_call",
                             "stablehlo.infeed",
                             "stablehlo.outfeed",
                             "stablehlo.send",
                             "stablehlo.recv",
                             "stablehlo.all_reduce",
                             "stablehlo.reduce_scatter",
                             "stablehlo.get_dimension_size"})
    if (n == name) return true;
  return false;
}

}  // namespace

bool has_quantized(const mlir::Op& op) {
  for (const mlir::Value* v : op.operands)
    if (quantization(v->type)) return true;
  for (const mlir::Value* v : op.results)
    if (quantization(v->type)) return true;
  return false;
}

Expected<InstrId> dequantize(Importer& m, ImportScope& scope, InstrId stored, TypeRef type) {
  const Quantization& q = *quantization(type);
  const Shape shape = m.shape_of(stored);
  if (!axis_fits(q, shape))
    return invalid_argument("the quantization of " + mlir::to_string(type) + " does not fit it");
  const Shape wide = shape.with_type(q.expressed);
  const InstrId value = m.emit(scope, Op::CONVERT, wide, {stored});
  const InstrId zero = parameter(m, scope, shape, q, false);
  const InstrId scale = parameter(m, scope, shape, q, true);
  const InstrId shifted = m.emit(scope, Op::SUBTRACT, wide, {value, zero});
  return m.emit(scope, Op::MULTIPLY, wide, {shifted, scale});
}

Expected<InstrId> quantize(Importer& m, ImportScope& scope, InstrId expressed, TypeRef type) {
  const Quantization& q = *quantization(type);
  const Shape from = m.shape_of(expressed);
  if (!axis_fits(q, from)) return invalid_argument("the quantization of " + mlir::to_string(type) + " does not fit it");
  const Shape wide = from.with_type(q.expressed);
  const InstrId scaled = m.emit(scope, Op::DIVIDE, wide, {expressed, parameter(m, scope, from, q, true)});
  const InstrId shifted = m.emit(scope, Op::ADD, wide, {scaled, parameter(m, scope, from, q, false)});
  const InstrId low = m.emit_splat(scope, from, q.expressed, static_cast<double>(q.storage_min));
  const InstrId high = m.emit_splat(scope, from, q.expressed, static_cast<double>(q.storage_max));
  const InstrId clamped = m.emit(scope, Op::CLAMP, wide, {low, shifted, high});
  const InstrId rounded = m.emit(scope, Op::ROUND_NEAREST_EVEN, wide, {clamped});
  return m.emit(scope, Op::CONVERT, from.with_type(q.storage), {rounded});
}

Status translate_quantized(Importer& m, ImportScope& scope, const mlir::Op& op) {
  if (keeps_storage(op.name)) return not_found("");
  if (op.name == "stablehlo.uniform_dequantize" && op.operands.size() == 1 && op.results.size() == 1) {
    COLLET_ASSIGN(InstrId stored, m.value(scope, op, 0));
    if (!quantization(op.operands[0]->type)) return m.fail(op, "needs a quantized operand");
    auto out = dequantize(m, scope, stored, op.operands[0]->type);
    if (!out.ok()) return m.fail(op, out.status().message());
    return m.define(scope, op, *out);
  }
  // The same op over values of expressed type, in a scope of its own where operands are dequantized.
  ImportScope inner;
  inner.computation = scope.computation;
  mlir::Op plain = op;
  std::vector<mlir::Value> values(op.operands.size() + op.results.size());
  std::vector<mlir::Type> types(values.size());
  std::vector<mlir::Type> elements(values.size());
  const auto expressed_value = [&](const mlir::Value& from, size_t slot) {
    values[slot] = from;
    if (const Quantization* q = quantization(from.type)) {
      elements[slot].kind = mlir::Type::Kind::Scalar;
      elements[slot].scalar = q->expressed;
      types[slot] = *from.type;
      types[slot].element = &elements[slot];
      values[slot].type = &types[slot];
    }
    return &values[slot];
  };
  for (size_t i = 0; i < op.operands.size(); ++i) {
    COLLET_ASSIGN(InstrId id, m.value(scope, op, i));
    if (quantization(op.operands[i]->type)) {
      auto wide = dequantize(m, scope, id, op.operands[i]->type);
      if (!wide.ok()) return m.fail(op, wide.status().message());
      id = *wide;
    }
    plain.operands[i] = expressed_value(*op.operands[i], i);
    inner.values[plain.operands[i]] = id;
  }
  for (size_t i = 0; i < op.results.size(); ++i)
    plain.results[i] = expressed_value(*op.results[i], op.operands.size() + i);
  if (op.name == "stablehlo.uniform_quantize") {
    if (plain.operands.size() != 1 || plain.results.size() != 1) return m.fail(op, "needs one operand");
    inner.values[plain.results[0]] = inner.values[plain.operands[0]];
  } else {
    COLLET_TRY(m.translate(inner, plain));
  }
  for (size_t i = 0; i < op.results.size(); ++i) {
    InstrId id = inner.values.at(plain.results[i]);
    if (quantization(op.results[i]->type)) {
      auto narrow = quantize(m, scope, id, op.results[i]->type);
      if (!narrow.ok()) return m.fail(op, narrow.status().message());
      id = *narrow;
    }
    scope.values[op.results[i]] = id;
  }
  return {};
}

}  // namespace collet::hlo
