// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/constraint.h"
#include "hlo/passes/expand/expand.h"

namespace collet::hlo {
namespace {

constexpr int64_t kMostGroups = 256;

class Ragged {
 public:
  explicit Ragged(const ExpandInput& in)
      : in_(in), b_(in.b), attrs_(in.as<RaggedDotAttrs>()), ragged_(attrs_.lhs_ragged[0]) {}

  InstrId run() {
    const Shape& sizes = in_.operand_shape(2);
    const int64_t groups = sizes.rank() ? sizes.dim(sizes.rank() - 1) : 1;
    if (contains(attrs_.lhs_batch, ragged_)) return b_.dot(in_.operand(0), in_.operand(1), plain(), in_.type());
    if (groups > kMostGroups || in_.shape().element_count() == 0) return InstrId::None;
    make_bounds(groups);
    return contains(attrs_.lhs_contracting, ragged_) ? sums(groups) : rows(groups);
  }

 private:
  DotAttrs plain() const {
    DotAttrs out;
    out.lhs_batch = attrs_.lhs_batch;
    out.lhs_contracting = attrs_.lhs_contracting;
    out.rhs_batch = attrs_.rhs_batch;
    out.rhs_contracting = attrs_.rhs_contracting;
    out.precision = attrs_.precision;
    out.algorithm = attrs_.algorithm;
    return out;
  }

  // Computes the begin and end of each group along the ragged dimension.
  void make_bounds(int64_t groups) {
    const InstrId sizes = b_.convert(in_.operand(2), Type::S64);
    const int last = b_.rank(sizes) - 1;
    Ints dims = to_ints(b_.dims(sizes));
    dims.push_back(groups);
    // ends[..., g] = sum over h <= g of sizes[..., h]
    const Shape square = Shape::array(Type::S64, dims);
    const InstrId spread = b_.broadcast(sizes, dims, counting(last + 1));
    const InstrId counts = b_.compare(b_.iota(square, last), Direction::LE, b_.iota(square, last + 1));
    ends_ = b_.reduce(b_.select(counts, spread, b_.fill_int(square, 0)), Ints{last}, Op::ADD);
    starts_ = b_.sub(ends_, sizes);
  }

  // Returns which elements of an array of `dims` are in group `g` along `dim`. prefix[i] is the dimension of the array
  // to which dimension i of the bounds corresponds.
  InstrId mask(int64_t g, std::span<const int64_t> dims, int64_t dim, std::span<const int64_t> prefix) {
    const Shape shape = Shape::array(Type::S64, dims);
    const InstrId at = b_.iota(shape, dim);
    const auto bound = [&](InstrId all) {
      const int last = b_.rank(all) - 1;
      const InstrId one = b_.slice_dim(all, last, g, g + 1);
      Ints rest = to_ints(b_.dims(one));
      rest.pop_back();
      return b_.broadcast(b_.reshape(one, rest), dims, prefix);
    };
    return b_.and_(b_.compare(at, Direction::GE, bound(starts_)), b_.compare(at, Direction::LT, bound(ends_)));
  }

  // Returns the dimensions of lhs to which the dimensions of the group bounds correspond.
  Ints lhs_prefix() const {
    Ints out;
    if (in_.operand_shape(2).rank() <= 1) return out;
    for (int64_t d : attrs_.lhs_batch) out.push_back(d);
    if (contains(attrs_.lhs_contracting, ragged_)) {
      for (int64_t d : attrs_.lhs_contracting) {
        if (d == ragged_) break;
        out.push_back(d);
      }
      return out;
    }
    for (int64_t d : lhs_free()) {
      if (d == ragged_) break;
      out.push_back(d);
    }
    return out;
  }
  Ints lhs_free() const {
    Ints out;
    for (int64_t d = 0; d < in_.operand_shape(0).rank(); ++d)
      if (!contains(attrs_.lhs_batch, d) && !contains(attrs_.lhs_contracting, d)) out.push_back(d);
    return out;
  }

  // The ragged dimension is a free dimension of lhs: each group of rows is multiplied with its own rhs, and rows after
  // the last group give zeros.
  InstrId rows(int64_t groups) {
    const int64_t group_dim = attrs_.rhs_group[0];
    DotAttrs dot = plain();
    const auto without_group = [&](Dims list) {
      Ints out;
      for (int64_t d : list) out.push_back(d - (d > group_dim));
      return in_.module.dims(out);
    };
    dot.rhs_batch = without_group(dot.rhs_batch);
    dot.rhs_contracting = without_group(dot.rhs_contracting);
    // Maps each dimension of lhs to one of the result: batch dimensions come first, then free ones.
    Ints where(static_cast<size_t>(in_.operand_shape(0).rank()), -1);
    int64_t next = 0;
    for (int64_t d : attrs_.lhs_batch) where[static_cast<size_t>(d)] = next++;
    for (int64_t d : lhs_free()) where[static_cast<size_t>(d)] = next++;
    Ints prefix;
    for (int64_t d : lhs_prefix()) prefix.push_back(where[static_cast<size_t>(d)]);
    InstrId result = b_.fill(in_.shape(), 0);
    for (int64_t g = 0; g < groups; ++g) {
      InstrId rhs = b_.slice_dim(in_.operand(1), group_dim, g, g + 1);
      Ints dims = to_ints(b_.dims(rhs));
      dims.erase(dims.begin() + group_dim);
      rhs = b_.reshape(rhs, dims);
      const InstrId here = mask(g, in_.shape().dims(), where[static_cast<size_t>(ragged_)], prefix);
      result = b_.select(here, b_.dot(in_.operand(0), rhs, dot, in_.type()), result);
    }
    return result;
  }

  // The ragged dimension is contracted: each group of contracted positions gives a product of its own. Zeros stand for the positions of
  // other groups, in both operands, because either may have NaN there.
  InstrId sums(int64_t groups) {
    std::vector<InstrId> parts;
    const auto rhs_of = [&](int64_t d) {
      for (size_t i = 0; i < attrs_.lhs_batch.size(); ++i)
        if (attrs_.lhs_batch[i] == d) return attrs_.rhs_batch[i];
      const auto at = std::find(attrs_.lhs_contracting.begin(), attrs_.lhs_contracting.end(), d);
      return attrs_.rhs_contracting[static_cast<size_t>(at - attrs_.lhs_contracting.begin())];
    };
    Ints rhs_prefix;
    for (int64_t d : lhs_prefix()) rhs_prefix.push_back(rhs_of(d));
    Ints dims = to_ints(in_.shape().dims());
    dims[0] = 1;
    for (int64_t g = 0; g < groups; ++g) {
      const InstrId here = mask(g, in_.operand_shape(0).dims(), ragged_, lhs_prefix());
      const InstrId lhs = b_.select(here, in_.operand(0), b_.like(in_.operand(0), 0));
      const InstrId there = mask(g, in_.operand_shape(1).dims(), rhs_of(ragged_), rhs_prefix);
      const InstrId rhs = b_.select(there, in_.operand(1), b_.like(in_.operand(1), 0));
      parts.push_back(b_.reshape(b_.dot(lhs, rhs, plain(), in_.type()), dims));
    }
    return b_.concatenate(parts, 0);
  }

  const ExpandInput& in_;
  Builder& b_;
  const RaggedDotAttrs& attrs_;
  int64_t ragged_;
  InstrId starts_ = InstrId::None, ends_ = InstrId::None;
};

InstrId ragged_dot(const ExpandInput& in) {
  if (in.as<RaggedDotAttrs>().lhs_ragged.size() != 1 || in.operand_shape(0).has_dynamic()) return InstrId::None;
  return Ragged(in).run();
}

// Returns an operand times its scale; each element of the scale applies to one block of the operand.
InstrId scaled(const ExpandInput& in, size_t i, Type wide) {
  Builder& b = in.b;
  const InstrId x = b.convert(in.operand(i), wide), scale = b.convert(in.operand(i + 2), wide);
  const Ints dims = to_ints(b.dims(x));
  if (b.rank(scale) == 0) return b.mul(x, b.broadcast(scale, dims, {}));
  if (b.rank(scale) != b.rank(x)) return x;
  Ints blocks, mapping;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t parts = b.shape(scale).dim(static_cast<int>(d));
    if (parts <= 0 || dims[d] % parts != 0) return x;
    blocks.push_back(parts);
    blocks.push_back(dims[d] / parts);
    mapping.push_back(static_cast<int64_t>(2 * d));
  }
  return b.mul(x, b.reshape(b.broadcast(scale, blocks, mapping), dims));
}

InstrId scaled_dot(const ExpandInput& in) {
  if (in.operand_shape(0).has_dynamic()) return InstrId::None;
  const Type wide = in.type() == Type::F64 ? Type::F64 : Type::F32;
  return in.b.convert(in.b.dot(scaled(in, 0, wide), scaled(in, 1, wide), in.as<DotAttrs>(), wide), in.type());
}

constexpr Expansion kTable[] = {{Op::RAGGED_DOT, &ragged_dot}, {Op::SCALED_DOT, &scaled_dot}};

}  // namespace

Expected<bool> expand_dot(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
