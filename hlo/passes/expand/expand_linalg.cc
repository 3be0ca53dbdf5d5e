// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "hlo/passes/expand/matrices.h"

namespace collet::hlo {
namespace {

InstrId spread_to(Builder& b, InstrId one, const Ints& dims) {
  return b.broadcast(b.reshape(one, {dims[0]}), dims, Ints{0});
}

// Computes L column by column: column j is (A[:, j] - L conj(L[j, :])), divided by the square root of its diagonal
// element.
InstrId cholesky(const ExpandInput& in) {
  Builder& b = in.b;
  const Shape& shape = in.operand_shape(0);
  if (shape.rank() < 2 || shape.has_dynamic() || shape.element_count() == 0) return InstrId::None;
  const Type type = wide_float(shape.type());
  const Batch batch(shape);
  const int64_t n = batch.rows;
  const bool lower = in.as<CholeskyAttrs>().lower;
  InstrId a = b.reshape(b.convert(in.operand(0), type), batch.dims());
  if (!lower) a = conjugated(b, transposed(b, a));
  const InstrId state[] = {a, b.fill(b.shape(a), 0)};
  const auto loop = b.counted_loop(n, state, [&](Builder& c, InstrId j, std::span<const InstrId> s) {
    const InstrId row = conjugated(c, cut(c, s[1], j, 1));
    const InstrId column = c.sub(cut(c, s[0], j, 2), product(c, s[1], row, 2));
    InstrId diagonal = cut(c, column, j, 1);
    if (is_complex(type)) diagonal = c.convert(c.unary(Op::REAL, diagonal), real_type(type));
    const InstrId root = c.convert(c.unary(Op::SQRT, diagonal), type);
    const Ints dims = to_ints(c.dims(column));
    const InstrId scaled = c.div(column, spread_to(c, root, dims));
    const InstrId number = c.iota(Shape::array(Type::S32, dims), 1);
    const InstrId below = c.compare(number, Direction::GE, c.broadcast(j, dims, {}));
    return std::vector<InstrId>{s[0], put(c, s[1], c.select(below, scaled, c.like(scaled, 0)), j, 2)};
  });
  InstrId l = loop[1];
  // If a diagonal element was not positive, the whole triangle becomes NaN.
  const InstrId bad = b.reduce(b.compare(l, Direction::NE, l), Ints{1, 2}, Op::OR);
  const Shape places = Shape::array(Type::S32, batch.dims());
  const InstrId triangle = b.compare(b.iota(places, 1), Direction::GE, b.iota(places, 2));
  const InstrId lost = b.and_(b.broadcast(bad, batch.dims(), Ints{0}), triangle);
  l = b.select(lost, b.like(l, NAN), l);
  if (!lower) l = conjugated(b, transposed(b, l));
  return b.convert(b.reshape(l, shape.dims()), shape.type());
}

// Solves op(A) X = B by substitution, row by row. X op(A) = B is transposed first, which makes A the left factor.
InstrId triangular_solve(const ExpandInput& in) {
  Builder& b = in.b;
  const auto& attrs = in.as<TriangularSolveAttrs>();
  const Shape& a_shape = in.operand_shape(0);
  const Shape& b_shape = in.operand_shape(1);
  if (a_shape.rank() < 2 || a_shape.has_dynamic() || b_shape.element_count() == 0) return InstrId::None;
  const Type type = wide_float(a_shape.type());
  InstrId m = b.reshape(b.convert(in.operand(0), type), Batch(a_shape).dims());
  InstrId right = b.reshape(b.convert(in.operand(1), type), Batch(b_shape).dims());
  bool lower = attrs.lower;
  if (attrs.transpose_a != Transpose::NONE) {
    m = transposed(b, m);
    if (attrs.transpose_a == Transpose::ADJOINT) m = conjugated(b, m);
    lower = !lower;
  }
  if (!attrs.left_side) {
    m = transposed(b, m);
    right = transposed(b, right);
    lower = !lower;
  }
  const Ints square = to_ints(b.dims(m));
  const int64_t n = square[1];
  const Shape places = Shape::array(Type::S32, square);
  const InstrId row_number = b.iota(places, 1), column_number = b.iota(places, 2);
  const auto where = [&](Direction d) { return b.compare(row_number, d, column_number); };
  const InstrId inside = where(lower ? Direction::GT : Direction::LT);
  const InstrId strict = b.select(inside, m, b.like(m, 0));
  const InstrId on_diagonal = b.select(where(Direction::EQ), m, b.like(m, 0));
  InstrId diagonal = b.reshape(b.reduce(on_diagonal, Ints{2}, Op::ADD), {square[0], n, 1});
  if (attrs.unit_diagonal) diagonal = b.like(diagonal, 1);
  const InstrId state[] = {strict, diagonal, right, b.like(right, 0)};
  const auto loop = b.counted_loop(n, state, [&](Builder& c, InstrId step, std::span<const InstrId> s) {
    const InstrId i = lower ? step : c.sub(c.scalar_int(Type::S32, n - 1), step);
    const InstrId known = product(c, cut(c, s[0], i, 1), s[3], 1);
    const InstrId rest = c.sub(cut(c, s[2], i, 1), known);
    const InstrId solved =
        attrs.unit_diagonal ? rest : c.div(rest, spread_to(c, cut(c, s[1], i, 1), to_ints(c.dims(rest))));
    return std::vector<InstrId>{s[0], s[1], s[2], put(c, s[3], solved, i, 1)};
  });
  InstrId x = loop[3];
  if (!attrs.left_side) x = transposed(b, x);
  return b.convert(b.reshape(x, b_shape.dims()), in.type());
}

constexpr Expansion kTable[] = {{Op::CHOLESKY, &cholesky}, {Op::TRIANGULAR_SOLVE, &triangular_solve}};

}  // namespace

Expected<bool> expand_linalg(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
