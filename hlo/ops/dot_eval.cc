// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/product.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

/// One operand of a product, with its dimensions sorted by role.
struct Side {
  Ints batch, contracting, free, group;
  int64_t size(const Shape& shape, const Ints& dims) const {
    int64_t n = 1;
    for (int64_t d : dims) n *= shape.dim(static_cast<int>(d));
    return n;
  }
};

Side make_side(const Shape& shape, Dims batch, Dims contracting, Dims group = {}) {
  Side side;
  side.batch.assign(batch.begin(), batch.end());
  side.contracting.assign(contracting.begin(), contracting.end());
  side.group.assign(group.begin(), group.end());
  const auto has = [](const Ints& list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); };
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (!has(side.batch, d) && !has(side.contracting, d) && !has(side.group, d)) side.free.push_back(d);
  return side;
}

Ints join(std::initializer_list<const Ints*> lists) {
  Ints out;
  for (const Ints* list : lists) out.insert(out.end(), list->begin(), list->end());
  return out;
}

Expected<Literal> multiply(const EvalInput& in, const Side& left, const Side& right, WideArray a, WideArray b) {
  const Shape& ls = in.operand(0).shape();
  const Shape& rs = in.operand(1).shape();
  const Shape& shape = in.instr.shape;
  COLLET_TRY(check_size(shape));
  const int64_t batch = left.size(ls, left.batch), m = left.size(ls, left.free), k = left.size(ls, left.contracting),
                n = right.size(rs, right.free);
  if (shape.element_count() != batch * m * n) return invalid_argument("the shape of the product does not fit");
  const Product product(in.operand(0).type(), in.operand(1).type(), shape.type(), batch * m * n * k, k,
                        in.context.other_choices());
  a = widen_to(std::move(a), product.wide(), in.operand(0).type());
  b = widen_to(std::move(b), product.wide(), in.operand(1).type());
  WideArray sums(product.wide(), batch * m * n);
  const int64_t cost = batch * m * n * k / 4;
  if (batch != 1)
    parallel(in.context, batch, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) product.add(m, n, k, a, i * m * k, b, i * k * n, sums, i * m * n);
    });
  else
    parallel(in.context, m, cost,
             [&](int64_t begin, int64_t end) { product.add(end - begin, n, k, a, begin * k, b, 0, sums, begin * n); });
  return unpack(product.finish(std::move(sums)), shape);
}

template <typename Attrs>
void make_sides(const EvalInput& in, const Attrs& attrs, Side& left, Side& right) {
  left = make_side(in.operand(0).shape(), attrs.lhs_batch, attrs.lhs_contracting);
  right = make_side(in.operand(1).shape(), attrs.rhs_batch, attrs.rhs_contracting);
}

Expected<Literal> evaluate_plain(const EvalInput& in) {
  Side left, right;
  make_sides(in, in.instr.as<DotAttrs>(), left, right);
  return multiply(in, left, right, pack(in.operand(0), join({&left.batch, &left.free, &left.contracting})),
                  pack(in.operand(1), join({&right.batch, &right.contracting, &right.free})));
}

/// Multiplies `values` by a scale per block: each scale applies to dim / scale-dim consecutive elements of a dimension.
Status apply_scale(const Literal& scale, const Shape& shape, WideArray& values) {
  const auto rank = static_cast<size_t>(shape.rank());
  if (scale.shape().rank() != shape.rank() && !scale.shape().is_scalar())
    return invalid_argument("a scale of scaled-dot has another rank than its operand");
  const WideArray scales = pack(scale);
  const Ints strides = row_major_strides(scale.shape().dims());
  Ints index(rank, 0);
  for (IndexIterator it(shape.dims(), {}); !it.done(); it.next()) {
    int64_t at = 0, position = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t size = shape.dim(static_cast<int>(d));
      position = position * size + it.index()[d];
      if (!scale.shape().is_scalar()) {
        const int64_t scale_size = scale.shape().dim(static_cast<int>(d));
        if (scale_size == 0 || size % scale_size) return invalid_argument("a scale does not divide its operand");
        at += it.index()[d] / (size / scale_size) * strides[d];
      }
    }
    *static_cast<double*>(values.at(position)) *= *static_cast<const double*>(scales.at(at));
  }
  return ok_status();
}

WideArray permuted(WideArray values, const Shape& shape, const Ints& order) {
  const Literal whole = Literal::borrow(shape.with_type(Type::F64).without_layout(), values.at(0));
  return pack(whole, order);
}

Expected<Literal> evaluate_scaled(const EvalInput& in) {
  Side left, right;
  make_sides(in, in.instr.as<DotAttrs>(), left, right);
  for (const Literal& operand : in.operands)
    if (!is_float(operand.type())) return unimplemented("scaled-dot of values that are no floats");
  WideArray a = pack(in.operand(0)), b = pack(in.operand(1));
  COLLET_TRY(apply_scale(in.operand(2), in.operand(0).shape(), a));
  COLLET_TRY(apply_scale(in.operand(3), in.operand(1).shape(), b));
  return multiply(in, left, right,
                  permuted(std::move(a), in.operand(0).shape(), join({&left.batch, &left.free, &left.contracting})),
                  permuted(std::move(b), in.operand(1).shape(), join({&right.batch, &right.contracting, &right.free})));
}

/// Returns the end offsets of the groups in list `list` of the group sizes. Sizes of rank 1 are one list for all.
Ints group_ends(const Literal& sizes, int64_t list) {
  const int64_t rank = sizes.shape().rank(), groups = rank ? sizes.shape().dim(rank - 1) : 1;
  Ints ends;
  int64_t end = 0;
  for (int64_t g = 0; g < groups; ++g)
    ends.push_back(end += std::max<int64_t>(0, sizes.as_int((rank > 1 ? list : 0) * groups + g)));
  return ends;
}

struct RaggedCall {
  const EvalInput& in;
  Side left, right;
  int64_t batch, m, n, k, groups;
  // Size of the ragged dimension, and the product of the sizes of later dimensions with the same role.
  int64_t ragged_size, ragged_inner;

  /// Returns the group of each of the `count` positions of batch `b` along the dimensions with the ragged one's role. There is a
  /// list of group sizes for each batch and each index of the dimensions before the ragged one.
  Ints groups_of(int64_t b, int64_t count) const {
    const int64_t run = ragged_size * ragged_inner, outer = count / run;
    Ints out, ends;
    for (int64_t position = 0; position < count; ++position) {
      if (position % run == 0) ends = group_ends(in.operand(2), b * outer + position / run);
      const int64_t r = position / ragged_inner % ragged_size;
      out.push_back(std::upper_bound(ends.begin(), ends.end(), r) - ends.begin());
    }
    return out;
  }
};

/// The ragged dimension is a free dimension of lhs: each group of rows has its own rhs; rows after the last group give
/// zeros.
void ragged_rows(const RaggedCall& c, const Product& product, WideArray& a, WideArray& b, WideArray& sums) {
  const size_t row_bytes = static_cast<size_t>(c.k) * lane_bytes(a.wide());
  const size_t out_bytes = static_cast<size_t>(c.n) * lane_bytes(a.wide());
  for (int64_t i = 0; i < c.batch; ++i) {
    const Ints group = c.groups_of(i, c.m);
    for (int64_t g = 0; g < c.groups; ++g) {
      Ints rows;
      for (int64_t row = 0; row < c.m; ++row)
        if (group[static_cast<size_t>(row)] == g) rows.push_back(row);
      const auto count = static_cast<int64_t>(rows.size());
      WideArray picked(a.wide(), count * c.k), part(a.wide(), count * c.n);
      for (int64_t r = 0; r < count; ++r)
        std::memcpy(picked.at(r * c.k), a.at((i * c.m + rows[static_cast<size_t>(r)]) * c.k), row_bytes);
      product.add(count, c.n, c.k, picked, 0, b, (i * c.groups + g) * c.k * c.n, part, 0);
      for (int64_t r = 0; r < count; ++r)
        std::memcpy(sums.at((i * c.m + rows[static_cast<size_t>(r)]) * c.n), part.at(r * c.n), out_bytes);
    }
  }
}

/// The ragged dimension is contracted: each group of contracted positions gives a product of its own.
void ragged_sums(const RaggedCall& c, const Product& product, WideArray& a, WideArray& b, WideArray& sums) {
  const size_t element = lane_bytes(a.wide());
  for (int64_t i = 0; i < c.batch; ++i) {
    const Ints group = c.groups_of(i, c.k);
    for (int64_t g = 0; g < c.groups; ++g) {
      // Zeros in one operand alone would not do: what the other has at other groups' positions may be NaN.
      Ints positions;
      for (int64_t p = 0; p < c.k; ++p)
        if (group[static_cast<size_t>(p)] == g) positions.push_back(p);
      const auto depth = static_cast<int64_t>(positions.size());
      WideArray left(a.wide(), c.m * depth), right(b.wide(), depth * c.n);
      for (int64_t at = 0; at < depth; ++at) {
        const int64_t p = positions[static_cast<size_t>(at)];
        for (int64_t row = 0; row < c.m; ++row)
          std::memcpy(left.at(row * depth + at), a.at((i * c.m + row) * c.k + p), element);
        std::memcpy(right.at(at * c.n), b.at((i * c.k + p) * c.n), static_cast<size_t>(c.n) * element);
      }
      product.add(c.m, c.n, depth, left, 0, right, 0, sums, (g * c.batch + i) * c.m * c.n);
    }
  }
}

Expected<Literal> evaluate_ragged(const EvalInput& in) {
  const auto& attrs = in.instr.as<RaggedDotAttrs>();
  const Shape& ls = in.operand(0).shape();
  const Shape& rs = in.operand(1).shape();
  if (attrs.lhs_ragged.size() != 1) return invalid_argument("ragged-dot needs one ragged dimension");
  COLLET_TRY(check_size(in.instr.shape));
  const int64_t ragged = attrs.lhs_ragged[0];
  RaggedCall c{in,
               make_side(ls, attrs.lhs_batch, attrs.lhs_contracting),
               make_side(rs, attrs.rhs_batch, attrs.rhs_contracting, attrs.rhs_group),
               0,
               0,
               0,
               0,
               1,
               1,
               1};
  c.batch = c.left.size(ls, c.left.batch);
  c.m = c.left.size(ls, c.left.free);
  c.k = c.left.size(ls, c.left.contracting);
  c.n = c.right.size(rs, c.right.free);
  c.ragged_size = std::max<int64_t>(1, ls.dim(static_cast<int>(ragged)));
  const Shape& sizes = in.operand(2).shape();
  c.groups = sizes.rank() ? sizes.dim(sizes.rank() - 1) : 1;
  const auto inner_of = [&](const Ints& dims) {
    int64_t inner = 1;
    const auto at = std::find(dims.begin(), dims.end(), ragged);
    if (at == dims.end()) return int64_t{0};
    for (auto d = at + 1; d != dims.end(); ++d) inner *= ls.dim(static_cast<int>(*d));
    return std::max<int64_t>(inner, 1);
  };
  const int64_t row_inner = inner_of(c.left.free), sum_inner = inner_of(c.left.contracting);
  const Product product(in.operand(0).type(), in.operand(1).type(), in.instr.shape.type(), c.batch * c.m * c.n * c.k,
                        c.k, in.context.other_choices());
  WideArray a = widen_to(pack(in.operand(0), join({&c.left.batch, &c.left.free, &c.left.contracting})), product.wide(),
                         in.operand(0).type());
  WideArray b =
      widen_to(pack(in.operand(1), join({&c.right.batch, &c.right.group, &c.right.contracting, &c.right.free})),
               product.wide(), in.operand(1).type());
  WideArray sums(product.wide(), in.instr.shape.element_count());
  if (row_inner) {
    if (b.count() != c.batch * c.groups * c.k * c.n || sums.count() != c.batch * c.m * c.n)
      return invalid_argument("the shapes of ragged-dot do not fit");
    c.ragged_inner = row_inner;
    ragged_rows(c, product, a, b, sums);
  } else if (sum_inner) {
    if (sums.count() != c.groups * c.batch * c.m * c.n) return invalid_argument("the shapes of ragged-dot do not fit");
    c.ragged_inner = sum_inner;
    ragged_sums(c, product, a, b, sums);
  } else {
    return multiply(in, c.left, c.right, std::move(a), std::move(b));
  }
  return unpack(product.finish(std::move(sums)), in.instr.shape);
}

}  // namespace

Expected<Literal> evaluate_dot(const EvalInput& in) {
  switch (in.instr.op) {
    case Op::DOT:
      return evaluate_plain(in);
    case Op::SCALED_DOT:
      return evaluate_scaled(in);
    default:
      return evaluate_ragged(in);
  }
}

}  // namespace collet::hlo
