// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/unsigned_type.h"
#include "hlo/stablehlo/importer.h"

// StableHLO ops that HLO does not have for some element types: minimum, maximum, clamp, cbrt and convert of complex numbers, and bitcasts
// between booleans and integers. They become several HLO instructions.

namespace collet::hlo {
namespace {

/// Compares floats, complex numbers or unsigned integers.
InstrId compare(Importer& m, ImportScope& scope, InstrId a, InstrId b, Direction direction) {
  auto* attrs = m.module().make<CompareAttrs>();
  attrs->direction = direction;
  const Shape shape = m.shape_of(a);
  const bool is_float_like = is_float(shape.type()) || is_complex(shape.type());
  attrs->type = is_float_like ? CompareType::FLOAT : CompareType::UNSIGNED;
  return m.emit(scope, Op::COMPARE, shape.with_type(Type::PRED), {a, b}, attrs);
}

/// Returns the smaller of two complex numbers if `direction` is LT, the larger if it is GT. Numbers are ordered by their real parts, then by
/// their imaginary parts. Returns `b` if a part that decides is NaN.
InstrId complex_extremum(Importer& m, ImportScope& scope, InstrId a, InstrId b, Direction direction) {
  const Shape shape = m.shape_of(a);
  const Shape part = shape.with_type(real_type(shape.type())), pred = shape.with_type(Type::PRED);
  const InstrId ar = m.emit(scope, Op::REAL, part, {a}), br = m.emit(scope, Op::REAL, part, {b});
  const InstrId ai = m.emit(scope, Op::IMAG, part, {a}), bi = m.emit(scope, Op::IMAG, part, {b});
  const InstrId tie =
      m.emit(scope, Op::AND, pred, {compare(m, scope, ar, br, Direction::EQ), compare(m, scope, ai, bi, direction)});
  const InstrId takes_a = m.emit(scope, Op::OR, pred, {compare(m, scope, ar, br, direction), tie});
  return m.emit(scope, Op::SELECT, shape, {takes_a, a, b});
}

template <Op kOp>
Status extremum(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId a, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId b, m.value(scope, op, 1));
  if (!is_complex(m.shape_of(a).type())) return translate_regular(m, scope, op, kOp);
  return m.define(scope, op, complex_extremum(m, scope, a, b, kOp == Op::MAXIMUM ? Direction::GT : Direction::LT));
}

/// Clamp of complex numbers: min(max(operand, low), high). The bounds may be scalars.
Status clamp(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId low, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 1));
  COLLET_ASSIGN(InstrId high, m.value(scope, op, 2));
  const Shape shape = m.shape_of(x);
  if (!is_complex(shape.type())) return translate_regular(m, scope, op, Op::CLAMP);
  for (InstrId* bound : {&low, &high}) {
    if (m.shape_of(*bound).rank() == 0 && shape.rank() > 0 && !shape.has_dynamic())
      *bound = m.emit(scope, Op::BROADCAST, shape.with_type(m.shape_of(*bound).type()), {*bound},
                      m.module().make<BroadcastAttrs>());
    if (!m.shape_of(*bound).compatible(shape)) return m.fail(op, "its bounds are not of the operand's type");
  }
  const InstrId larger = complex_extremum(m, scope, x, low, Direction::GT);
  return m.define(scope, op, complex_extremum(m, scope, larger, high, Direction::LT));
}

/// StableHLO allows complex operands of remainder, but does not define the result. Such an op is kept as it is, so that the program can be
/// imported; no backend computes it.
Status remainder(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(const InstrId a, m.value(scope, op, 0));
  COLLET_ASSIGN(const InstrId b, m.value(scope, op, 1));
  COLLET_ASSIGN(const Shape shape, m.result_shape(op));
  if (!is_complex(m.shape_of(a).type())) return translate_regular(m, scope, op, Op::REMAINDER);
  for (InstrId operand : {a, b})
    if (!m.shape_of(operand).compatible(shape)) return m.fail(op, "its operands are not of the result's type");
  return keep_op(m, scope, op);
}

Status cube_root(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  const Shape shape = m.shape_of(x);
  if (!is_complex(shape.type())) return translate_regular(m, scope, op, Op::CBRT);
  return m.define(scope, op, m.emit(scope, Op::POWER, shape, {x, m.emit_splat(scope, shape, shape.type(), 1.0 / 3.0)}));
}

/// Converts complex numbers to booleans: true unless the number is zero.
Status convert(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape to, m.result_shape(op));
  const Shape from = m.shape_of(x);
  if (!is_complex(from.type()) || to.type() != Type::PRED) return translate_regular(m, scope, op, Op::CONVERT);
  return m.define(scope, op, compare(m, scope, x, m.emit_splat(scope, from, from.type(), 0), Direction::NE));
}

/// Returns the number of each bit in its word: 0, 1, 2, ... along the last dimension.
InstrId bit_numbers(Importer& m, ImportScope& scope, const Shape& bits, Type type) {
  auto* attrs = m.module().make<IotaAttrs>();
  attrs->dimension = bits.rank() - 1;
  return m.emit(scope, Op::IOTA, bits.with_type(type), std::span<const InstrId>(), attrs);
}

/// Converts integers to their bits, which become the last dimension, the lowest bit first.
Status number_to_bits(Importer& m, ImportScope& scope, const mlir::Op& op, InstrId x, const Shape& bits, Type word) {
  const Shape words = m.shape_of(x).with_type(word), wide = bits.with_type(word);
  if (m.shape_of(x).type() != word) x = m.emit(scope, Op::BITCAST_CONVERT, words, {x});
  std::vector<int64_t> dims;
  for (int i = 0; i + 1 < bits.rank(); ++i) dims.push_back(i);
  auto* attrs = m.module().make<BroadcastAttrs>();
  attrs->dimensions = m.module().dims(dims);
  x = m.emit(scope, Op::BROADCAST, wide, {x}, attrs);
  x = m.emit(scope, Op::SHIFT_RIGHT_LOGICAL, wide, {x, bit_numbers(m, scope, bits, word)});
  x = m.emit(scope, Op::AND, wide, {x, m.emit_splat(scope, wide, word, 1)});
  return m.define(scope, op, compare(m, scope, x, m.emit_splat(scope, wide, word, 0), Direction::NE));
}

/// The inverse of number_to_bits.
Status bits_to_number(Importer& m, ImportScope& scope, const mlir::Op& op, InstrId x, const Shape& to, Type word) {
  const Shape bits = m.shape_of(x), wide = bits.with_type(word), scalar = Shape::scalar(word);
  x = m.emit(scope, Op::CONVERT, wide, {x});
  x = m.emit(scope, Op::SHIFT_LEFT, wide, {x, bit_numbers(m, scope, bits, word)});
  Module& module = m.module();
  const CompId bitwise_or = module.add_computation(module.unique_name("or"));
  const InstrId parameters[] = {module.append_parameter(bitwise_or, 0, scalar),
                                module.append_parameter(bitwise_or, 1, scalar)};
  module[bitwise_or].root = module.append(bitwise_or, Op::OR, scalar, parameters);
  auto* attrs = module.make<DimensionsAttrs>();
  attrs->dimensions = module.dims({bits.rank() - 1});
  const InstrId zero = m.emit_constant(scope, Literal::scalar(word, 0));
  x = m.emit(scope, Op::REDUCE, to.with_type(word), {x, zero}, attrs, std::span(&bitwise_or, 1));
  if (to.type() != word) x = m.emit(scope, Op::BITCAST_CONVERT, to, {x});
  return m.define(scope, op, x);
}

/// A boolean is one bit for StableHLO's bitcast, and a byte for HLO's. So a bitcast between booleans and integers moves bits.
Status bitcast_convert(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape to, m.result_shape(op));
  const Shape from = m.shape_of(x);
  const auto fits = [](const Shape& bits, const Shape& number) {
    return bits.is_array() && number.is_array() && !bits.has_dynamic() && bits.rank() == number.rank() + 1 &&
           bits.dim(bits.rank() - 1) == type_info(number.type()).bits && type_info(number.type()).bits >= 8 &&
           unsigned_type(type_info(number.type()).bits) != Type::Invalid && !is_complex(number.type());
  };
  if (to.type() == Type::PRED && from.type() != Type::PRED && fits(to, from))
    return number_to_bits(m, scope, op, x, to, unsigned_type(type_info(from.type()).bits));
  if (from.type() == Type::PRED && to.type() != Type::PRED && fits(from, to))
    return bits_to_number(m, scope, op, x, to, unsigned_type(type_info(to.type()).bits));
  if (from.type() != to.type() && (from.type() == Type::PRED || to.type() == Type::PRED))
    return m.fail(
        op, "a bitcast between booleans and numbers needs a last dimension of as many booleans as a number has bits");
  return translate_regular(m, scope, op, Op::BITCAST_CONVERT);
}

}  // namespace

std::span<const ImportRow> import_special_rows() {
  static constexpr ImportRow kRows[] = {
      {"stablehlo.bitcast_convert", bitcast_convert},
      {"stablehlo.cbrt", cube_root},
      {"stablehlo.clamp", clamp},
      {"stablehlo.convert", convert},
      {"stablehlo.maximum", extremum<Op::MAXIMUM>},
      {"stablehlo.minimum", extremum<Op::MINIMUM>},
      {"stablehlo.remainder", remainder},
  };
  return kRows;
}

}  // namespace collet::hlo
