// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/unsigned_type.h"
#include "hlo/stablehlo/importer.h"

// Ops on types for which HLO has no such op: they become what StableHLO says of them.

namespace collet::hlo {
namespace {

InstrId compare(Importer& m, ImportScope& scope, InstrId a, InstrId b, Direction direction) {
  auto* attrs = m.module().make<CompareAttrs>();
  attrs->direction = direction;
  const Shape shape = m.shape_of(a);
  const bool is_float_like = is_float(shape.type()) || is_complex(shape.type());
  attrs->type = is_float_like ? CompareType::FLOAT : CompareType::UNSIGNED;
  return m.emit(scope, Op::COMPARE, shape.with_type(Type::PRED), {a, b}, attrs);
}

/// The smaller or the larger of two complex numbers, in the order of their real, then of their imaginary parts.
InstrId complex_extremum(Importer& m, ImportScope& scope, InstrId a, InstrId b, Direction wins) {
  const Shape shape = m.shape_of(a);
  const Shape part = shape.with_type(real_type(shape.type())), truth = shape.with_type(Type::PRED);
  const InstrId ar = m.emit(scope, Op::REAL, part, {a}), br = m.emit(scope, Op::REAL, part, {b});
  const InstrId ai = m.emit(scope, Op::IMAG, part, {a}), bi = m.emit(scope, Op::IMAG, part, {b});
  const InstrId tie =
      m.emit(scope, Op::AND, truth, {compare(m, scope, ar, br, Direction::EQ), compare(m, scope, ai, bi, wins)});
  const InstrId first = m.emit(scope, Op::OR, truth, {compare(m, scope, ar, br, wins), tie});
  return m.emit(scope, Op::SELECT, shape, {first, a, b});
}

template <Op kOp>
Status extremum(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId a, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId b, m.value(scope, op, 1));
  if (!is_complex(m.shape_of(a).type())) return translate_regular(m, scope, op, kOp);
  return m.define(scope, op, complex_extremum(m, scope, a, b, kOp == Op::MAXIMUM ? Direction::GT : Direction::LT));
}

/// min(max(operand, least), most), whose bounds may be scalars.
Status clamp(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId least, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 1));
  COLLET_ASSIGN(InstrId most, m.value(scope, op, 2));
  const Shape shape = m.shape_of(x);
  if (!is_complex(shape.type())) return translate_regular(m, scope, op, Op::CLAMP);
  for (InstrId* bound : {&least, &most}) {
    if (m.shape_of(*bound).rank() == 0 && shape.rank() > 0 && !shape.has_dynamic())
      *bound = m.emit(scope, Op::BROADCAST, shape.with_type(m.shape_of(*bound).type()), {*bound},
                      m.module().make<BroadcastAttrs>());
    if (!m.shape_of(*bound).compatible(shape)) return m.fail(op, "its bounds are not of the operand's type");
  }
  const InstrId larger = complex_extremum(m, scope, x, least, Direction::GT);
  return m.define(scope, op, complex_extremum(m, scope, larger, most, Direction::LT));
}

/// Nobody has said what the remainder of complex numbers is; it may stand in a program all the same.
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

/// A complex number is true where it is not zero.
Status convert(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape to, m.result_shape(op));
  const Shape from = m.shape_of(x);
  if (!is_complex(from.type()) || to.type() != Type::PRED) return translate_regular(m, scope, op, Op::CONVERT);
  return m.define(scope, op, compare(m, scope, x, m.emit_splat(scope, from, from.type(), 0), Direction::NE));
}

/// 0, 1, 2, ... along the last dimension: the bits' numbers.
InstrId bit_numbers(Importer& m, ImportScope& scope, const Shape& bits, Type type) {
  auto* attrs = m.module().make<IotaAttrs>();
  attrs->dimension = bits.rank() - 1;
  return m.emit(scope, Op::IOTA, bits.with_type(type), std::span<const InstrId>(), attrs);
}

/// The lowest bit comes first.
Status number_to_bits(Importer& m, ImportScope& scope, const mlir::Op& op, InstrId x, const Shape& bits, Type word) {
  const Shape words = m.shape_of(x).with_type(word), spread = bits.with_type(word);
  if (m.shape_of(x).type() != word) x = m.emit(scope, Op::BITCAST_CONVERT, words, {x});
  std::vector<int64_t> dims;
  for (int i = 0; i + 1 < bits.rank(); ++i) dims.push_back(i);
  auto* attrs = m.module().make<BroadcastAttrs>();
  attrs->dimensions = m.module().dims(dims);
  x = m.emit(scope, Op::BROADCAST, spread, {x}, attrs);
  x = m.emit(scope, Op::SHIFT_RIGHT_LOGICAL, spread, {x, bit_numbers(m, scope, bits, word)});
  x = m.emit(scope, Op::AND, spread, {x, m.emit_splat(scope, spread, word, 1)});
  return m.define(scope, op, compare(m, scope, x, m.emit_splat(scope, spread, word, 0), Direction::NE));
}

Status bits_to_number(Importer& m, ImportScope& scope, const mlir::Op& op, InstrId x, const Shape& to, Type word) {
  const Shape bits = m.shape_of(x), spread = bits.with_type(word), scalar = Shape::scalar(word);
  x = m.emit(scope, Op::CONVERT, spread, {x});
  x = m.emit(scope, Op::SHIFT_LEFT, spread, {x, bit_numbers(m, scope, bits, word)});
  Module& module = m.module();
  const CompId any = module.add_computation(module.unique_name("or"));
  const InstrId both[] = {module.append_parameter(any, 0, scalar), module.append_parameter(any, 1, scalar)};
  module[any].root = module.append(any, Op::OR, scalar, both);
  auto* attrs = module.make<DimensionsAttrs>();
  attrs->dimensions = module.dims({bits.rank() - 1});
  const InstrId zero = m.emit_constant(scope, Literal::scalar(word, 0));
  x = m.emit(scope, Op::REDUCE, to.with_type(word), {x, zero}, attrs, std::span(&any, 1));
  if (to.type() != word) x = m.emit(scope, Op::BITCAST_CONVERT, to, {x});
  return m.define(scope, op, x);
}

/// StableHLO's booleans have one bit, HLO's a byte.
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
    return m.fail(op, "booleans have one bit each");
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
