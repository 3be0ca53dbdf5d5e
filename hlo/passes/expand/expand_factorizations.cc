// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string_view>

#include "hlo/ops/library_calls.h"
#include "hlo/passes/expand/matrices.h"

/// \file
/// Expands custom calls that stand for matrix factorizations: those that XLA's own expander passes know. The
/// conventions are LAPACK's.

namespace collet::hlo {
namespace {

using Values = std::vector<InstrId>;

/// Elementwise formulas over arrays [count, rows, columns]; a dimension of size 1 is broadcast to the size of the other
/// operand's dimension.
class Formula {
 public:
  explicit Formula(Builder& b) : b_(b) {}

  InstrId add(InstrId x, InstrId y) { return both(Op::ADD, x, y); }
  InstrId sub(InstrId x, InstrId y) { return both(Op::SUBTRACT, x, y); }
  InstrId mul(InstrId x, InstrId y) { return both(Op::MULTIPLY, x, y); }
  InstrId div(InstrId x, InstrId y) { return both(Op::DIVIDE, x, y); }
  InstrId max(InstrId x, InstrId y) { return both(Op::MAXIMUM, x, y); }
  InstrId compare(InstrId x, Direction d, InstrId y) {
    const Ints dims = joined(x, y);
    return dims.empty() ? InstrId::None : b_.compare(spread(x, dims), d, spread(y, dims));
  }
  InstrId compare(InstrId x, Direction d, double y) { return b_.compare(x, d, b_.like(x, y)); }
  InstrId select(InstrId p, InstrId x, InstrId y) {
    Ints dims = joined(x, y);
    if (b_.rank(p) != 3) return InstrId::None;
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = std::max(dims[i], b_.dims(p)[i]);
    return b_.select(spread(p, dims), spread(x, dims), spread(y, dims));
  }
  InstrId select(InstrId p, InstrId x, double y) { return select(p, x, b_.like(x, y)); }
  InstrId select(InstrId p, double x, InstrId y) { return select(p, b_.like(y, x), y); }
  InstrId real(InstrId x) { return is_complex(b_.type(x)) ? b_.unary(Op::REAL, x) : x; }
  InstrId root(InstrId x) { return b_.unary(Op::SQRT, x); }
  /// Returns |x|^2 as a real array.
  InstrId square(InstrId x) {
    if (!is_complex(b_.type(x))) return b_.mul(x, x);
    const InstrId re = b_.unary(Op::REAL, x), im = b_.unary(Op::IMAG, x);
    return b_.add(b_.mul(re, re), b_.mul(im, im));
  }
  InstrId sum(InstrId x, int64_t dim) { return reduce(x, dim, Op::ADD); }
  InstrId largest(InstrId x, int64_t dim) { return reduce(x, dim, Op::MAXIMUM); }
  /// Returns the sum over both dimensions of each matrix.
  InstrId total(InstrId x) { return sum(sum(x, 1), 2); }
  /// Returns for each element of an array like `x` the number of its row (dim 1) or column (dim 2).
  InstrId number(InstrId x, int64_t dim) { return b_.iota(Shape::array(Type::S32, b_.dims(x)), dim); }
  /// Returns which elements of `x` are in rows (dim 1) or columns (dim 2) before, at or after `i`, a scalar.
  InstrId where(InstrId x, int64_t dim, Direction d, InstrId i) {
    return b_.compare(number(x, dim), d, b_.broadcast(i, to_ints(b_.dims(x)), {}));
  }
  InstrId on_diagonal(InstrId x) { return b_.compare(number(x, 1), Direction::EQ, number(x, 2)); }
  /// Returns the diagonals of square matrices as rows.
  InstrId diagonal(InstrId x) { return sum(select(on_diagonal(x), x, 0), 1); }

  InstrId spread(InstrId x, const Ints& dims) {
    if (b_.rank(x) != 3 || dims.empty()) return InstrId::None;
    if (std::equal(dims.begin(), dims.end(), b_.dims(x).begin(), b_.dims(x).end())) return x;
    Ints kept, mapping;
    for (size_t i = 0; i < dims.size(); ++i)
      if (b_.dims(x)[i] == dims[i]) {
        kept.push_back(dims[i]);
        mapping.push_back(static_cast<int64_t>(i));
      }
    return b_.broadcast(b_.reshape(x, kept), dims, mapping);
  }

 private:
  // Returns the common dimensions of two operands; empty if one of the operands could not be built.
  Ints joined(InstrId x, InstrId y) {
    if (b_.rank(x) != 3 || b_.rank(y) != 3) return {};
    Ints dims = to_ints(b_.dims(x));
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = std::max(dims[i], b_.dims(y)[i]);
    return dims;
  }
  InstrId both(Op op, InstrId x, InstrId y) {
    const Ints dims = joined(x, y);
    return dims.empty() ? InstrId::None : b_.binary(op, spread(x, dims), spread(y, dims));
  }
  InstrId reduce(InstrId x, int64_t dim, Op op) {
    if (b_.rank(x) != 3) return InstrId::None;
    Ints dims = to_ints(b_.dims(x));
    dims[static_cast<size_t>(dim)] = 1;
    return b_.reshape(b_.reduce(x, Ints{dim}, op), dims);
  }

  Builder& b_;
};

InstrId adjoint(Builder& b, InstrId x) {
  return conjugated(b, transposed(b, x));
}

/// Returns the Householder reflection a - factor v (v^H a).
InstrId reflected(Builder& b, InstrId a, InstrId v, InstrId factor) {
  Formula f(b);
  return f.sub(a, f.mul(f.mul(factor, v), product(b, adjoint(b, v), a, 1)));
}

/// The result of eliminating column i below the diagonal by a Householder reflection; the vector of the reflection is
/// stored in place of the zeros.
struct Eliminated {
  InstrId a, tau;
};
Eliminated eliminate_column(Builder& b, InstrId a, InstrId i) {
  Formula f(b);
  const Type type = b.type(a);
  const InstrId column = cut(b, a, i, 2);
  const auto rows = [&](Direction d) { return f.where(column, 1, d, i); };
  const InstrId size = b.abs(column);
  InstrId scale = f.largest(f.select(rows(Direction::GE), size, 0), 1);
  scale = f.select(f.compare(scale, Direction::GT, 0), scale, 1);
  const InstrId x = f.div(column, b.convert(scale, type));
  const InstrId alpha = f.sum(f.select(rows(Direction::EQ), x, 0), 1);
  const InstrId tail = f.select(rows(Direction::GT), x, 0);
  const InstrId below = f.sum(f.square(tail), 1);
  InstrId nothing = f.compare(below, Direction::EQ, 0);
  if (is_complex(type)) nothing = b.and_(nothing, f.compare(b.unary(Op::IMAG, alpha), Direction::EQ, 0));
  const InstrId length = f.root(f.add(below, f.square(alpha)));
  const InstrId leading = f.real(alpha);
  const InstrId beta =
      f.select(nothing, leading, f.select(f.compare(leading, Direction::GE, 0), b.neg(length), length));
  const InstrId wide_beta = b.convert(beta, type);
  const InstrId divisor = f.select(nothing, 1, wide_beta);
  const InstrId tau = f.select(nothing, 0, f.div(f.sub(divisor, alpha), divisor));
  const InstrId below_one = f.div(tail, f.select(nothing, 1, f.sub(alpha, wide_beta)));
  const InstrId v = f.select(rows(Direction::EQ), 1, below_one);
  const InstrId corner = b.convert(f.mul(beta, scale), type);
  const InstrId packed = f.select(rows(Direction::GT), v, f.select(rows(Direction::EQ), corner, column));
  const InstrId rest = reflected(b, a, v, conjugated(b, tau));
  const InstrId behind = f.where(a, 2, Direction::GT, i), here = f.where(a, 2, Direction::EQ, i);
  return {f.select(behind, rest, f.select(here, packed, a)), tau};
}

bool are_matrices(const Shape& shape) {
  return !shape.is_tuple() && shape.rank() >= 2 && !shape.has_dynamic() && shape.element_count() > 0 &&
         (is_float(shape.type()) || is_complex(shape.type()));
}

InstrId as_batch(const ExpandInput& in, size_t operand) {
  const Shape& shape = in.operand_shape(operand);
  return in.b.reshape(in.b.convert(in.operand(operand), wide_float(shape.type())), Batch(shape).dims());
}
InstrId as_declared(const ExpandInput& in, InstrId x, const Shape& shape) {
  return in.b.convert(in.b.reshape(x, shape.dims()), shape.type());
}

/// Returns R on and above the diagonal with the vectors of the reflections below it, and the factors of the
/// reflections.
InstrId qr(const ExpandInput& in) {
  Builder& b = in.b;
  if (in.instr.operands.size() != 1 || !in.shape().is_tuple() || in.shape().elements().size() != 2)
    return InstrId::None;
  if (!are_matrices(in.operand_shape(0))) return InstrId::None;
  const Batch batch(in.operand_shape(0));
  const int64_t steps = std::min(batch.rows, batch.columns);
  const InstrId a = as_batch(in, 0);
  const InstrId taus = b.fill(Shape::array(b.type(a), {batch.count, steps, 1}), 0);
  const InstrId state[] = {a, taus};
  const auto loop = b.counted_loop(steps, state, [](Builder& c, InstrId i, std::span<const InstrId> s) {
    const Eliminated done = eliminate_column(c, s[0], i);
    return Values{done.a, put(c, s[1], done.tau, i, 1)};
  });
  const InstrId results[] = {as_declared(in, loop[0], in.shape().element(0)),
                             as_declared(in, loop[1], in.shape().element(1))};
  return b.tuple(results);
}

/// Returns the first columns of the product of the reflections that `qr` returns.
InstrId reflectors(const ExpandInput& in) {
  Builder& b = in.b;
  if (in.instr.operands.size() != 2 || !are_matrices(in.operand_shape(0)) || in.operand_shape(1).rank() < 1 ||
      in.shape().is_tuple() || !in.shape().same_dims(in.operand_shape(0)))
    return InstrId::None;
  const Shape& tau_shape = in.operand_shape(1);
  const Batch batch(in.operand_shape(0));
  const int64_t factors = tau_shape.dim(tau_shape.rank() - 1), count = std::min(factors, batch.columns);
  if (tau_shape.element_count() != batch.count * factors) return InstrId::None;
  const InstrId a = as_batch(in, 0);
  const InstrId q = b.convert(Formula(b).on_diagonal(a), b.type(a));
  if (count == 0) return as_declared(in, q, in.shape());
  const InstrId taus = b.reshape(b.convert(in.operand(1), b.type(a)), {batch.count, factors, 1});
  const InstrId state[] = {a, taus, q};
  const auto loop = b.counted_loop(count, state, [&](Builder& c, InstrId step, std::span<const InstrId> s) {
    Formula f(c);
    const InstrId i = c.sub(c.scalar_int(Type::S32, count - 1), step);
    const InstrId column = cut(c, s[0], i, 2);
    const InstrId v =
        f.select(f.where(column, 1, Direction::EQ, i), 1, f.select(f.where(column, 1, Direction::GT, i), column, 0));
    return Values{s[0], s[1], reflected(c, s[2], v, cut(c, s[1], i, 1))};
  });
  return as_declared(in, loop[2], in.shape());
}

// Jacobi's method. The columns are kept in two halves, and column i of the first half is rotated with column i of the
// second half, all pairs at once. A round-robin schedule then moves the columns: after n - 1 rounds each pair has been
// rotated, and each column is at its first position again.

constexpr int64_t kMostSweeps = 30, kSweepsAtLeast = 6;

InstrId part(Builder& b, InstrId x, int64_t dim, int64_t start, int64_t limit) {
  return b.slice_dim(x, dim, start, limit);
}

InstrId moved_on(Builder& b, InstrId x, int64_t dim) {
  const int64_t n = b.dims(x)[static_cast<size_t>(dim)], half = n / 2;
  if (half < 2) return x;
  const std::pair<int64_t, int64_t> ranges[] = {
      {0, 1}, {half, half + 1}, {1, half - 1}, {half + 1, n}, {half - 1, half}};
  Values parts;
  for (const auto& [start, limit] : ranges)
    if (start < limit) parts.push_back(part(b, x, dim, start, limit));
  return b.concatenate(parts, dim);
}

/// The rotation that makes the entry between the diagonal entries p and q zero. `phase` has the matrices' element type,
/// as have the sine and the tangent of half the angle.
struct Rotation {
  InstrId s, half, phase;
};
Rotation rotation_of(Builder& b, InstrId a) {
  Formula f(b);
  const Type type = b.type(a), real = is_complex(type) ? real_type(type) : type;
  const int64_t n = b.dims(a)[1], half = n / 2;
  const InstrId diagonal = f.real(f.diagonal(a));
  const InstrId p = part(b, diagonal, 2, 0, half), q = part(b, diagonal, 2, half, n);
  const InstrId mixed = f.diagonal(part(b, part(b, a, 1, 0, half), 2, half, n));
  const InstrId size = b.abs(mixed);
  const double eps = real == Type::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const InstrId nothing = b.not_(f.compare(size, Direction::GT, eps * eps));
  const InstrId r = f.select(nothing, 1, size);
  const InstrId phase = f.select(nothing, 1, f.div(mixed, b.convert(r, type)));
  const InstrId theta = f.div(f.sub(q, p), f.add(r, r));
  const InstrId one = b.like(theta, 1);
  const InstrId signed_one = f.select(f.compare(theta, Direction::GE, 0), one, b.neg(one));
  const InstrId steep = f.div(signed_one, f.add(b.abs(theta), f.root(f.add(f.mul(theta, theta), one))));
  const InstrId t = f.select(nothing, 0, steep);
  const InstrId length = f.root(f.add(one, f.mul(t, t)));
  return {b.convert(f.div(t, length), type), b.convert(f.div(t, f.add(one, length)), type), phase};
}

/// Rotates the columns. The cosine is written as 1 - s * half: a cosine that is rounded to 1 or its neighbour would
/// change the lengths of the columns slightly in each round, always in the same direction.
InstrId rotated(Builder& b, InstrId a, const Rotation& r) {
  Formula f(b);
  const int64_t n = b.dims(a)[2];
  const InstrId left = part(b, a, 2, 0, n / 2), right = part(b, a, 2, n / 2, n);
  const InstrId halves[] = {f.sub(left, f.mul(r.s, f.add(f.mul(conjugated(b, r.phase), right), f.mul(r.half, left)))),
                            f.add(right, f.mul(r.s, f.sub(f.mul(r.phase, left), f.mul(r.half, right))))};
  return b.concatenate(halves, 2);
}

Values sweep(Builder& b, InstrId a, InstrId v) {
  const InstrId state[] = {a, v};
  return b.counted_loop(b.dims(a)[1] - 1, state, [](Builder& c, InstrId, std::span<const InstrId> s) {
    const Rotation r = rotation_of(c, s[0]);
    const InstrId columns = rotated(c, s[0], r);
    const InstrId both = adjoint(c, rotated(c, adjoint(c, columns), r));
    return Values{moved_on(c, moved_on(c, both, 1), 2), moved_on(c, rotated(c, s[1], r), 2)};
  });
}

InstrId off_diagonal(Builder& b, InstrId a) {
  Formula f(b);
  return f.total(f.square(f.select(f.on_diagonal(a), 0, a)));
}

/// Repeats sweeps until the sum of squares off the diagonal is negligible beside `all`, the sum of all squares, or no
/// longer decreases. Returns (a, v).
Values diagonalized(Builder& b, InstrId a, InstrId v) {
  Module& m = b.module();
  const InstrId all = Formula(b).total(Formula(b).square(a)), off = off_diagonal(b, a);
  const InstrId state[] = {b.scalar_int(Type::S32, 0), off, off, all, a, v};
  std::vector<Shape> shapes;
  for (InstrId x : state) shapes.push_back(b.shape(x));
  const Shape tuple = Shape::tuple(shapes);
  const bool wide = b.type(all) == Type::F64;
  const double eps = wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();

  const CompId condition = m.add_computation(m.unique_computation_name("unfinished"));
  Builder test(m, condition);
  const InstrId seen = m.append_parameter(condition, 0, tuple);
  Formula f(test);
  const InstrId trip = test.get(seen, 0), before = test.get(seen, 1), now = test.get(seen, 2);
  const InstrId much = f.compare(now, Direction::GT, f.mul(test.get(seen, 3), test.like(now, eps * eps * 1e-4)));
  const InstrId early = test.compare(trip, Direction::LT, test.scalar_int(Type::S32, kSweepsAtLeast));
  const InstrId better = f.compare(now, Direction::LT, f.mul(before, test.like(before, 0.25)));
  const InstrId worthwhile = test.or_(test.broadcast(early, to_ints(test.dims(now)), {}), better);
  const InstrId any = test.reduce(test.and_(much, worthwhile), Ints{0, 1, 2}, Op::OR);
  m[condition].root = test.and_(any, test.compare(trip, Direction::LT, test.scalar_int(Type::S32, kMostSweeps)));

  const CompId body = m.add_computation(m.unique_computation_name("sweep"));
  Builder inner(m, body);
  const InstrId given = m.append_parameter(body, 0, tuple);
  const Values turned = sweep(inner, inner.get(given, 4), inner.get(given, 5));
  const InstrId next[] = {inner.add(inner.get(given, 0), inner.scalar_int(Type::S32, 1)),
                          inner.get(given, 2),
                          off_diagonal(inner, turned[0]),
                          inner.get(given, 3),
                          turned[0],
                          turned[1]};
  m[body].root = inner.tuple(next);
  for (const Builder* used : {&test, &inner})
    if (!used->status().ok()) b.fail(used->status());
  const InstrId result = b.loop(condition, body, state);
  return {b.get(result, 4), b.get(result, 5)};
}

/// Returns the unitary matrix that is closest to `v`, whose columns are orthogonal except for rounding errors.
InstrId orthogonalized(Builder& b, InstrId v, InstrId eye) {
  Formula f(b);
  const InstrId defect = f.sub(eye, product(b, adjoint(b, v), v, 1));
  return f.add(v, product(b, v, f.mul(defect, b.like(defect, 0.5)), 1));
}

/// Refines the eigenvectors. The rounding errors of many rotations accumulate in `vectors` and in the diagonalized
/// matrix. So the matrix is formed again from `a` and the orthogonalized vectors, and one more sweep, whose rotations
/// are small, diagonalizes it.
InstrId refined(Builder& b, InstrId a, InstrId vectors, InstrId eye) {
  const InstrId v = orthogonalized(b, vectors, eye);
  return orthogonalized(b, sweep(b, product(b, adjoint(b, v), product(b, a, v, 1), 1), v)[1], eye);
}

/// Returns the vectors scaled to length 1, and v^H a v for each vector v as its eigenvalue. Many rotations leave small
/// errors in the lengths of the vectors and on the diagonal; the error of the quotient is of the order of the squared
/// error of the vector.
Values rayleigh_quotients(Builder& b, InstrId a, InstrId vectors) {
  Formula f(b);
  const InstrId v = f.div(vectors, b.convert(f.root(f.sum(f.square(vectors), 1)), b.type(vectors)));
  return {v, f.real(f.sum(f.mul(conjugated(b, v), product(b, a, v, 1)), 1))};
}

/// Sorts the columns of `vectors` by ascending `values`. Returns (vectors, values).
Values sorted_columns(Builder& b, InstrId vectors, InstrId values) {
  Module& m = b.module();
  const bool complex = is_complex(b.type(vectors));
  Values operands{Formula(b).spread(values, to_ints(b.dims(vectors)))};
  if (complex) {
    operands.push_back(b.unary(Op::REAL, vectors));
    operands.push_back(b.unary(Op::IMAG, vectors));
  } else {
    operands.push_back(vectors);
  }
  const CompId less = m.add_computation(m.unique_computation_name("less"));
  Values scalars;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < operands.size(); ++i) {
    shapes.push_back(b.shape(operands[i]));
    for (int side = 0; side < 2; ++side)
      scalars.push_back(
          m.append_parameter(less, static_cast<int64_t>(2 * i) + side, Shape::scalar(b.type(operands[i]))));
  }
  Builder inner(m, less);
  m[less].root = inner.compare(scalars[0], Direction::LT, scalars[1], CompareType::TOTALORDER);
  auto* attrs = m.make<SortAttrs>();
  attrs->dimension = 2;
  attrs->stable = true;
  const CompId called[] = {less};
  const InstrId sorted = b.op(Op::SORT, Shape::tuple(shapes), operands, attrs, called);
  const InstrId columns = complex ? b.binary(Op::COMPLEX, b.get(sorted, 1), b.get(sorted, 2)) : b.get(sorted, 1);
  return {columns, part(b, b.get(sorted, 0), 1, 0, 1)};
}

/// Returns the Hermitian matrices of which `a` holds one triangle.
InstrId hermitian(Builder& b, InstrId a, bool lower) {
  Formula f(b);
  const InstrId given = b.compare(f.number(a, 1), lower ? Direction::GT : Direction::LT, f.number(a, 2));
  const InstrId diagonal = b.convert(f.real(a), b.type(a));
  return f.select(given, a, f.select(f.on_diagonal(a), diagonal, adjoint(b, a)));
}

/// Expands the eigendecomposition of Hermitian matrices: eigenvectors in columns, and ascending eigenvalues. The text
/// of the custom call lists: lower triangle or not, sorted or not, maximum number of sweeps, tolerance.
InstrId eigh(const ExpandInput& in) {
  Builder& b = in.b;
  if (in.instr.operands.size() != 1 || !in.shape().is_tuple() || in.shape().elements().size() != 2)
    return InstrId::None;
  if (!are_matrices(in.operand_shape(0))) return InstrId::None;
  const Batch batch(in.operand_shape(0));
  const int64_t n = batch.rows, even = n + n % 2;
  if (batch.columns != n) return InstrId::None;
  Formula f(b);
  InstrId a = hermitian(b, as_batch(in, 0), !in.as<CustomCallAttrs>().config.starts_with('0'));
  InstrId scale = f.largest(f.largest(b.abs(a), 1), 2);
  scale = f.select(f.compare(scale, Direction::GT, 0), scale, 1);
  a = f.div(a, b.convert(scale, b.type(a)));
  const InstrId zero = b.scalar(b.type(a), 0);
  const InstrId padded = b.pad_dim(b.pad_dim(a, zero, 1, 0, even - n), zero, 2, 0, even - n);
  const InstrId eye = b.convert(f.on_diagonal(padded), b.type(a));
  const Values done = diagonalized(b, padded, eye);
  const InstrId vectors = refined(b, padded, done[1], eye);
  const Values exact = rayleigh_quotients(b, a, part(b, part(b, vectors, 1, 0, n), 2, 0, n));
  const Values sorted = sorted_columns(b, exact[0], f.mul(exact[1], scale));
  const InstrId results[] = {as_declared(in, sorted[0], in.shape().element(0)),
                             as_declared(in, sorted[1], in.shape().element(1))};
  return b.tuple(results);
}

struct Target {
  std::string_view name;
  Expander expand;
};
constexpr Target kTargets[] = {{"Qr", &qr}, {"ProductOfElementaryHouseholderReflectors", &reflectors}, {"Eigh", &eigh}};

InstrId custom_call(const ExpandInput& in) {
  std::vector<const Shape*> operands;
  for (size_t i = 0; i < in.instr.operands.size(); ++i) operands.push_back(&in.operand_shape(i));
  // A call with that name but other operands or results is a different routine.
  if (!check_library_call(in.as<CustomCallAttrs>().target, operands, in.shape()).ok()) return InstrId::None;
  for (const Target& target : kTargets)
    if (in.as<CustomCallAttrs>().target == target.name) return target.expand(in);
  return InstrId::None;
}

constexpr Expansion kTable[] = {{Op::CUSTOM_CALL, &custom_call}};

}  // namespace

Expected<bool> expand_factorizations(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
