// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "hlo/stablehlo/importer.h"

// CHLO: the ops that HLO has too, and those that are a few plain ones.

namespace collet::hlo {
namespace {

template <Op kOp>
Status unary(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  return m.define(scope, op, m.emit(scope, kOp, shape, {x}));
}

Status atan(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  const Shape shape = m.shape_of(x);
  return m.define(scope, op, m.emit(scope, Op::ATAN2, shape, {x, m.emit_splat(scope, shape, shape.type(), 1)}));
}

Status square(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  return m.define(scope, op, m.emit(scope, Op::MULTIPLY, m.shape_of(x), {x, x}));
}

Status conj(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  const Shape shape = m.shape_of(x);
  if (!is_complex(shape.type())) return m.define(scope, op, x);
  const Shape real = shape.with_type(real_type(shape.type()));
  const InstrId re = m.emit(scope, Op::REAL, real, {x});
  const InstrId im = m.emit(scope, Op::NEGATE, real, {m.emit(scope, Op::IMAG, real, {x})});
  return m.define(scope, op, m.emit(scope, Op::COMPLEX, shape, {re, im}));
}

InstrId equals(Importer& m, ImportScope& scope, InstrId x, double value) {
  auto* attrs = m.module().make<CompareAttrs>();
  attrs->direction = Direction::EQ;
  attrs->type = CompareType::FLOAT;
  const Shape shape = m.shape_of(x);
  return m.emit(scope, Op::COMPARE, shape.with_type(Type::PRED), {x, m.emit_splat(scope, shape, shape.type(), value)},
                attrs);
}

Status is_inf(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  const InstrId magnitude = m.emit(scope, Op::ABS, m.shape_of(x), {x});
  return m.define(scope, op, equals(m, scope, magnitude, std::numeric_limits<double>::infinity()));
}

Status is_pos_inf(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  return m.define(scope, op, equals(m, scope, x, std::numeric_limits<double>::infinity()));
}

Status is_neg_inf(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  return m.define(scope, op, equals(m, scope, x, -std::numeric_limits<double>::infinity()));
}

Status constant_like(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  const mlir::AttrRef value = op.attr("value");
  if (!value || !shape.is_array() || shape.has_dynamic()) return m.fail(op, "needs a value and a static shape");
  const double number = value->kind == mlir::Attr::Kind::Float ? value->number : static_cast<double>(value->integer);
  return m.define(scope, op, m.emit_splat(scope, shape, shape.type(), number));
}

Status top_k(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<TopKAttrs>();
  COLLET_ASSIGN(attrs->k, m.integer(op, "k"));
  return m.define(scope, op, m.emit(scope, Op::TOPK, shape, {x}, attrs));
}

/// The high half of a product of integers, by way of the type of twice the width, or by halves for 64 bits.
Status mulhi(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId a, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId b, m.value(scope, op, 1));
  const Shape shape = m.shape_of(a);
  const int bits = type_info(shape.type()).bits;
  if (!is_integer(shape.type()) || bits > 32) {
    Status status = m.fail(op, "is known for integers of up to 32 bits");
    return unimplemented(status.message());
  }
  const Type wide_type = is_signed(shape.type()) ? Type::S64 : Type::U64;
  const Shape wide = shape.with_type(wide_type);
  const InstrId product =
      m.emit(scope, Op::MULTIPLY, wide, {m.emit(scope, Op::CONVERT, wide, {a}), m.emit(scope, Op::CONVERT, wide, {b})});
  const InstrId high = m.emit(scope, is_signed(shape.type()) ? Op::SHIFT_RIGHT_ARITHMETIC : Op::SHIFT_RIGHT_LOGICAL,
                              wide, {product, m.emit_splat(scope, wide, wide_type, bits)});
  return m.define(scope, op, m.emit(scope, Op::CONVERT, shape, {high}));
}

template <Op kOp>
Status broadcast_binary(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId a, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId b, m.value(scope, op, 1));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(a, broadcast_operand(m, scope, op, a, shape));
  COLLET_ASSIGN(b, broadcast_operand(m, scope, op, b, shape));
  return m.define(scope, op, m.emit(scope, kOp, shape, {a, b}));
}

}  // namespace

Expected<InstrId> broadcast_operand(Importer& m, ImportScope& scope, const mlir::Op& op, InstrId x, const Shape& to) {
  const Shape from = m.shape_of(x);
  if (from.same_dims(to)) return x;
  std::vector<int64_t> sizes, dims;
  const Dims given = m.ints_or_empty(op, "broadcast_dimensions");
  for (int i = 0; i < from.rank(); ++i) {
    const int64_t at =
        given.size() == static_cast<size_t>(from.rank()) ? given[static_cast<size_t>(i)] : to.rank() - from.rank() + i;
    if (at < 0 || at >= to.rank()) return m.fail(op, "operands do not broadcast");
    if (from.dim(i) == 1 && to.dim(static_cast<int>(at)) != 1) continue;
    sizes.push_back(from.dim(i));
    dims.push_back(at);
  }
  if (static_cast<int>(sizes.size()) != from.rank())
    x = m.emit(scope, Op::RESHAPE, Shape::array(from.type(), sizes), {x});
  auto* attrs = m.module().make<BroadcastAttrs>();
  attrs->dimensions = m.module().dims(dims);
  return m.emit(scope, Op::BROADCAST, to.with_type(from.type()), {x}, attrs);
}

std::span<const ImportRow> import_chlo_rows() {
  static constexpr ImportRow kRows[] = {
      {"chlo.acos", unary<Op::ACOS>},
      {"chlo.acosh", unary<Op::ACOSH>},
      {"chlo.asin", unary<Op::ASIN>},
      {"chlo.asinh", unary<Op::ASINH>},
      {"chlo.atan", atan},
      {"chlo.atanh", unary<Op::ATANH>},
      {"chlo.conj", conj},
      {"chlo.constant_like", constant_like},
      {"chlo.cosh", unary<Op::COSH>},
      {"chlo.erf", unary<Op::ERF>},
      {"chlo.is_inf", is_inf},
      {"chlo.is_neg_inf", is_neg_inf},
      {"chlo.is_pos_inf", is_pos_inf},
      {"chlo.mulhi", mulhi},
      {"chlo.sinh", unary<Op::SINH>},
      {"chlo.square", square},
      {"chlo.tan", unary<Op::TAN>},
      {"chlo.top_k", top_k},
      {"chlo.broadcast_add", broadcast_binary<Op::ADD>},
      {"chlo.broadcast_and", broadcast_binary<Op::AND>},
      {"chlo.broadcast_atan2", broadcast_binary<Op::ATAN2>},
      {"chlo.broadcast_complex", broadcast_binary<Op::COMPLEX>},
      {"chlo.broadcast_divide", broadcast_binary<Op::DIVIDE>},
      {"chlo.broadcast_maximum", broadcast_binary<Op::MAXIMUM>},
      {"chlo.broadcast_minimum", broadcast_binary<Op::MINIMUM>},
      {"chlo.broadcast_multiply", broadcast_binary<Op::MULTIPLY>},
      {"chlo.broadcast_or", broadcast_binary<Op::OR>},
      {"chlo.broadcast_power", broadcast_binary<Op::POWER>},
      {"chlo.broadcast_remainder", broadcast_binary<Op::REMAINDER>},
      {"chlo.broadcast_shift_left", broadcast_binary<Op::SHIFT_LEFT>},
      {"chlo.broadcast_shift_right_arithmetic", broadcast_binary<Op::SHIFT_RIGHT_ARITHMETIC>},
      {"chlo.broadcast_shift_right_logical", broadcast_binary<Op::SHIFT_RIGHT_LOGICAL>},
      {"chlo.broadcast_subtract", broadcast_binary<Op::SUBTRACT>},
      {"chlo.broadcast_xor", broadcast_binary<Op::XOR>},
  };
  return kRows;
}

}  // namespace collet::hlo
