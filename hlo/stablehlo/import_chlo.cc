// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "hlo/base/decimal.h"
#include "hlo/stablehlo/importer.h"

// Imports CHLO ops: those that HLO has too, and those that a few plain ops express.

namespace collet::hlo {
namespace {

template <Op kOp>
Status unary(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  return m.define(scope, op, m.emit(scope, kOp, shape, {x}));
}

/// Returns the op's operand if it has floats, or complex numbers if `complex_too`; else an error.
Expected<InstrId> number(Importer& m, ImportScope& scope, const mlir::Op& op, bool complex_too) {
  COLLET_ASSIGN(const InstrId x, m.value(scope, op, 0));
  const Type type = m.shape_of(x).type();
  if (is_float(type) || (complex_too && is_complex(type))) return x;
  return m.fail(op, "is not known for " + m.shape_of(x).to_string());
}

struct Parts {
  InstrId real, imaginary;
};

Parts parts_of(Importer& m, ImportScope& scope, InstrId x) {
  const Shape part = m.shape_of(x).with_type(real_type(m.shape_of(x).type()));
  return {m.emit(scope, Op::REAL, part, {x}), m.emit(scope, Op::IMAG, part, {x})};
}

/// atan(z) = -i atanh(i z), so its poles are those of atanh, rotated by a quarter turn.
InstrId complex_atan(Importer& m, ImportScope& scope, InstrId x) {
  const Shape shape = m.shape_of(x), part = shape.with_type(real_type(shape.type()));
  const auto [re, im] = parts_of(m, scope, x);
  const InstrId turned = m.emit(scope, Op::COMPLEX, shape, {m.emit(scope, Op::NEGATE, part, {im}), re});
  const auto [a, b] = parts_of(m, scope, m.emit(scope, Op::ATANH, shape, {turned}));
  return m.emit(scope, Op::COMPLEX, shape, {b, m.emit(scope, Op::NEGATE, part, {a})});
}

Status atan(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, number(m, scope, op, true));
  const Shape shape = m.shape_of(x);
  if (is_complex(shape.type())) return m.define(scope, op, complex_atan(m, scope, x));
  return m.define(scope, op, m.emit(scope, Op::ATAN2, shape, {x, m.emit_splat(scope, shape, shape.type(), 1)}));
}

InstrId equal(Importer& m, ImportScope& scope, InstrId x, InstrId y) {
  auto* attrs = m.module().make<CompareAttrs>();
  attrs->direction = Direction::EQ;
  attrs->type = CompareType::FLOAT;
  return m.emit(scope, Op::COMPARE, m.shape_of(x).with_type(Type::PRED), {x, y}, attrs);
}

/// (x + iy)^2 with the real part as (x - y)(x + y), which cancels less.
InstrId complex_square(Importer& m, ImportScope& scope, InstrId z) {
  const Shape shape = m.shape_of(z), part = shape.with_type(real_type(shape.type()));
  const auto [x, y] = parts_of(m, scope, z);
  const InstrId real = m.emit(scope, Op::MULTIPLY, part,
                              {m.emit(scope, Op::SUBTRACT, part, {x, y}), m.emit(scope, Op::ADD, part, {x, y})});
  const InstrId half = m.emit(scope, Op::MULTIPLY, part, {x, y});
  return m.emit(scope, Op::COMPLEX, shape, {real, m.emit(scope, Op::ADD, part, {half, half})});
}

Status square(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, number(m, scope, op, true));
  if (is_complex(m.shape_of(x).type())) return m.define(scope, op, complex_square(m, scope, x));
  return m.define(scope, op, m.emit(scope, Op::MULTIPLY, m.shape_of(x), {x, x}));
}

Status conj(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, number(m, scope, op, true));
  const Shape shape = m.shape_of(x);
  if (!is_complex(shape.type())) return m.define(scope, op, x);
  const auto [re, im] = parts_of(m, scope, x);
  const InstrId negative = m.emit(scope, Op::NEGATE, m.shape_of(im), {im});
  return m.define(scope, op, m.emit(scope, Op::COMPLEX, shape, {re, negative}));
}

InstrId equals(Importer& m, ImportScope& scope, InstrId x, double value) {
  return equal(m, scope, x, m.emit_splat(scope, m.shape_of(x), m.shape_of(x).type(), value));
}

Status is_inf(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, number(m, scope, op, false));
  const InstrId magnitude = m.emit(scope, Op::ABS, m.shape_of(x), {x});
  return m.define(scope, op, equals(m, scope, magnitude, std::numeric_limits<double>::infinity()));
}

Status is_pos_inf(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, number(m, scope, op, false));
  return m.define(scope, op, equals(m, scope, x, std::numeric_limits<double>::infinity()));
}

Status is_neg_inf(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, number(m, scope, op, false));
  return m.define(scope, op, equals(m, scope, x, -std::numeric_limits<double>::infinity()));
}

/// Parses "#complex.number<:f32 1.0, 2.0>"; false for any other text.
bool complex_number(std::string_view text, Type type, double& real, double& imaginary) {
  const std::string begin = type == Type::C64 ? "#complex.number<:f32 " : "#complex.number<:f64 ";
  if (!is_complex(type) || !text.starts_with(begin) || !text.ends_with('>')) return false;
  const std::string_view parts = text.substr(begin.size(), text.size() - begin.size() - 1);
  const auto number = [](std::string_view part) {
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    return decimal_value(part.substr(0, part.find_last_not_of(' ') + 1));
  };
  const size_t comma = parts.find(',');
  if (comma == std::string_view::npos) return false;
  const auto first = number(parts.substr(0, comma)), second = number(parts.substr(comma + 1));
  real = first.value_or(0);
  imaginary = second.value_or(0);
  return first && second;
}

Status constant_like(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(const InstrId like, m.value(scope, op, 0));
  const mlir::AttrRef value = op.attr("value");
  if (!value || !shape.is_array() || shape.has_dynamic()) return m.fail(op, "needs a value and a static shape");
  if (!m.shape_of(like).same_dims(shape)) return m.fail(op, "has a result of another shape than its operand");
  using Kind = mlir::Attr::Kind;
  Literal literal = Literal::zeros(Shape::scalar(shape.type()));
  double real = 0, imaginary = 0;
  if (value->kind == Kind::Raw && complex_number(value->text, shape.type(), real, imaginary)) {
    literal.set_double(0, real, imaginary);
  } else {
    const Type type = value->kind == Kind::Bool ? Type::PRED : mlir::element_type(value->type);
    const bool is_number = value->kind == Kind::Bool || value->kind == Kind::Int || value->kind == Kind::Float;
    if (!is_number || type != shape.type()) return m.fail(op, "its value is not of the result's element type");
    if (value->kind == Kind::Float)
      literal.set_double(0, value->number);
    else
      literal.set_int(0, value->integer);
  }
  const InstrId scalar = m.emit_constant(scope, std::move(literal));
  if (shape.rank() == 0) return m.define(scope, op, scalar);
  return m.define(scope, op, m.emit(scope, Op::BROADCAST, shape, {scalar}, m.module().make<BroadcastAttrs>()));
}

Status top_k(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId x, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<TopKAttrs>();
  COLLET_ASSIGN(attrs->k, m.integer(op, "k"));
  return m.define(scope, op, m.emit(scope, Op::TOPK, shape, {x}, attrs));
}

/// The upper half of a 64-bit product, computed from four products of 32-bit halves.
InstrId wide_mulhi(Importer& m, ImportScope& scope, InstrId a, InstrId b) {
  const Shape given = m.shape_of(a), shape = given.with_type(Type::U64);
  const auto two = [&](Op code, InstrId x, InstrId y) { return m.emit(scope, code, shape, {x, y}); };
  const auto splat = [&](double value) { return m.emit_splat(scope, shape, Type::U64, value); };
  const bool with_sign = is_signed(given.type());
  const auto bits = [&](InstrId x) { return with_sign ? m.emit(scope, Op::BITCAST_CONVERT, shape, {x}) : x; };
  const InstrId x = bits(a), y = bits(b), half = splat(32), mask = splat(4294967295.0);
  const auto low = [&](InstrId v) { return two(Op::AND, v, mask); };
  const auto high = [&](InstrId v) { return two(Op::SHIFT_RIGHT_LOGICAL, v, half); };
  const InstrId across = two(Op::MULTIPLY, low(x), high(y)), back = two(Op::MULTIPLY, high(x), low(y));
  const InstrId carry =
      high(two(Op::ADD, two(Op::ADD, high(two(Op::MULTIPLY, low(x), low(y))), low(across)), low(back)));
  InstrId out =
      two(Op::ADD, two(Op::ADD, two(Op::MULTIPLY, high(x), high(y)), high(across)), two(Op::ADD, high(back), carry));
  if (!with_sign) return out;
  // The product above is unsigned. Interpreted as signed, each negative factor has added 2^64 times the other factor,
  // which is subtracted here.
  const InstrId last = splat(63);
  const auto where_negative = [&](InstrId sign, InstrId v) {
    return two(Op::AND, two(Op::SHIFT_RIGHT_ARITHMETIC, sign, last), v);
  };
  out = two(Op::SUBTRACT, two(Op::SUBTRACT, out, where_negative(x, y)), where_negative(y, x));
  return m.emit(scope, Op::BITCAST_CONVERT, given, {out});
}

/// Computes the high half of an integer product by a product of 64 bits.
Status mulhi(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId a, m.value(scope, op, 0));
  COLLET_ASSIGN(InstrId b, m.value(scope, op, 1));
  const Shape shape = m.shape_of(a);
  const int bits = type_info(shape.type()).bits;
  if (!is_integer(shape.type()) || !m.shape_of(b).compatible(shape)) return m.fail(op, "needs two arrays of integers");
  if (bits == 64) return m.define(scope, op, wide_mulhi(m, scope, a, b));
  const Type wide_type = is_signed(shape.type()) ? Type::S64 : Type::U64;
  const Shape wide = shape.with_type(wide_type);
  const InstrId product =
      m.emit(scope, Op::MULTIPLY, wide, {m.emit(scope, Op::CONVERT, wide, {a}), m.emit(scope, Op::CONVERT, wide, {b})});
  const InstrId high = m.emit(scope, is_signed(shape.type()) ? Op::SHIFT_RIGHT_ARITHMETIC : Op::SHIFT_RIGHT_LOGICAL,
                              wide, {product, m.emit_splat(scope, wide, wide_type, bits)});
  return m.define(scope, op, m.emit(scope, Op::CONVERT, shape, {high}));
}

// The first operands, each with the shape of the result.
Status broadcast_values(Importer& m, ImportScope& scope, const mlir::Op& op, const Shape& shape,
                        std::span<InstrId> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    COLLET_ASSIGN(out[i], m.value(scope, op, i));
    COLLET_ASSIGN(out[i], broadcast_operand(m, scope, op, out[i], shape));
  }
  return {};
}

template <Op kOp>
Status broadcast_binary(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(const Shape shape, m.result_shape(op));
  InstrId x[2];
  COLLET_TRY(broadcast_values(m, scope, op, shape, x));
  return m.define(scope, op, m.emit(scope, kOp, shape, x));
}

Status broadcast_compare(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(const Shape shape, m.result_shape(op));
  InstrId x[2];
  COLLET_TRY(broadcast_values(m, scope, op, shape, x));
  // The same op without its broadcast.
  ImportScope inner;
  inner.computation = scope.computation;
  mlir::Value values[] = {*op.operands[0], *op.operands[1]};
  inner.values = {{&values[0], x[0]}, {&values[1], x[1]}};
  mlir::Op plain = op;
  plain.name = "stablehlo.compare";
  plain.operands = {&values[0], &values[1]};
  COLLET_TRY(find_import(plain.name)(m, inner, plain));
  for (const mlir::Value* result : op.results) scope.values[result] = inner.values.at(result);
  return {};
}

Status broadcast_select(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(const Shape shape, m.result_shape(op));
  InstrId x[3];
  COLLET_TRY(broadcast_values(m, scope, op, shape, x));
  return m.define(scope, op, m.emit(scope, Op::SELECT, shape, x));
}

}  // namespace

Expected<InstrId> broadcast_operand(Importer& m, ImportScope& scope, const mlir::Op& op, InstrId x, const Shape& to) {
  const Shape from = m.shape_of(x);
  if (from.same_dims(to)) return x;
  std::vector<int64_t> sizes, dims;
  const Dims given = m.ints_or_empty(op, "broadcast_dimensions");
  if (op.attr("broadcast_dimensions") && from.rank() < to.rank() && given.size() != static_cast<size_t>(from.rank()))
    return m.fail(op, "broadcast_dimensions are not those of the operand of lower rank");
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
      {"chlo.broadcast_compare", broadcast_compare},
      {"chlo.broadcast_complex", broadcast_binary<Op::COMPLEX>},
      {"chlo.broadcast_divide", broadcast_binary<Op::DIVIDE>},
      {"chlo.broadcast_maximum", broadcast_binary<Op::MAXIMUM>},
      {"chlo.broadcast_minimum", broadcast_binary<Op::MINIMUM>},
      {"chlo.broadcast_multiply", broadcast_binary<Op::MULTIPLY>},
      {"chlo.broadcast_or", broadcast_binary<Op::OR>},
      {"chlo.broadcast_power", broadcast_binary<Op::POWER>},
      {"chlo.broadcast_remainder", broadcast_binary<Op::REMAINDER>},
      {"chlo.broadcast_select", broadcast_select},
      {"chlo.broadcast_shift_left", broadcast_binary<Op::SHIFT_LEFT>},
      {"chlo.broadcast_shift_right_arithmetic", broadcast_binary<Op::SHIFT_RIGHT_ARITHMETIC>},
      {"chlo.broadcast_shift_right_logical", broadcast_binary<Op::SHIFT_RIGHT_LOGICAL>},
      {"chlo.broadcast_subtract", broadcast_binary<Op::SUBTRACT>},
      {"chlo.broadcast_xor", broadcast_binary<Op::XOR>},
  };
  return kRows;
}

}  // namespace collet::hlo
