// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "hlo/ops/library_calls.h"
#include "hlo/passes/expand/expand.h"
#include "hlo/passes/expand/regions.h"

namespace collet::hlo {
namespace {

using Values = std::vector<InstrId>;
constexpr int64_t kLongest = int64_t{1} << 22;

// A bitonic sorting network over the last dimension, whose size is padded to a power of two: log2(n) (log2(n) + 1) / 2
// rounds, each of which compares two halves. An operand is added that holds the original position of each element. It
// makes the order total and the sort stable; elements whose position is past the end are padding, and are sorted last.
class Network {
 public:
  Network(const ExpandInput& in, int64_t rows, int64_t length, int64_t padded)
      : in_(in), b_(in.b), rows_(rows), length_(length), padded_(padded) {}

  bool run(Values& columns) {
    Values all = columns;
    for (InstrId& c : all) c = b_.pad_dim(c, b_.scalar(b_.type(c), 0), 1, 0, padded_ - length_);
    all.push_back(b_.iota(Shape::array(Type::S32, {rows_, padded_}), 1));
    for (int64_t block = 2; block <= padded_; block *= 2)
      for (int64_t distance = block / 2; distance >= 1; distance /= 2)
        if (!round(all, block, distance)) return false;
    all.pop_back();
    for (size_t i = 0; i < columns.size(); ++i) columns[i] = b_.slice_dim(all[i], 1, 0, length_);
    return true;
  }

 private:
  bool round(Values& all, int64_t block, int64_t distance) {
    const int64_t pairs = padded_ / (2 * distance);
    Values low, high;
    for (InstrId c : all) {
      const InstrId split = b_.reshape(c, {rows_, pairs, 2, distance});
      low.push_back(b_.slice_dim(split, 2, 0, 1));
      high.push_back(b_.slice_dim(split, 2, 1, 2));
    }
    const auto before = less(low, high);
    if (!before) return false;
    // Every other block is sorted in descending order.
    const InstrId number = b_.iota(Shape::array(Type::S32, {rows_, pairs, 1, distance}), 1);
    const int64_t per_block = block / (2 * distance);
    const InstrId down =
        b_.compare(b_.and_(number, b_.like_int(number, per_block)), Direction::NE, b_.like_int(number, 0));
    const InstrId in_order = b_.xor_(*before, down);
    for (size_t i = 0; i < all.size(); ++i) {
      const InstrId halves[] = {b_.select(in_order, low[i], high[i]), b_.select(in_order, high[i], low[i])};
      all[i] = b_.reshape(b_.concatenate(halves, 2), {rows_, padded_});
    }
    return true;
  }

  std::optional<InstrId> less(const Values& a, const Values& c) {
    Values forward, backward;
    for (size_t i = 0; i + 1 < a.size(); ++i) {
      forward.push_back(a[i]);
      forward.push_back(c[i]);
      backward.push_back(c[i]);
      backward.push_back(a[i]);
    }
    const auto ac = inline_elementwise(b_, in_.instr.called[0], forward);
    const auto ca = inline_elementwise(b_, in_.instr.called[0], backward);
    if (!ac || !ca) return std::nullopt;
    const InstrId place_a = a.back(), place_c = c.back();
    const InstrId earlier = b_.compare(place_a, Direction::LT, place_c);
    InstrId out = b_.or_((*ac)[0], b_.and_(b_.not_((*ca)[0]), earlier));
    if (padded_ != length_) {
      const InstrId end = b_.like_int(place_a, length_);
      const InstrId a_in = b_.compare(place_a, Direction::LT, end), c_in = b_.compare(place_c, Direction::LT, end);
      out = b_.select(b_.and_(a_in, c_in), out, b_.or_(a_in, b_.and_(b_.not_(c_in), earlier)));
    }
    return out;
  }

  const ExpandInput& in_;
  Builder& b_;
  int64_t rows_, length_, padded_;
};

InstrId sort(const ExpandInput& in) {
  Builder& b = in.b;
  const Shape& shape = in.operand_shape(0);
  const int64_t dim = in.as<SortAttrs>().dimension;
  if (shape.has_dynamic() || shape.element_count() == 0) return InstrId::None;
  const int64_t length = shape.dim(static_cast<int>(dim));
  if (length > kLongest) return InstrId::None;
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
  const int64_t rows = shape.element_count() / length;
  Ints order = counting(shape.rank());
  order.erase(order.begin() + dim);
  order.push_back(dim);
  Ints moved;
  for (int64_t d : order) moved.push_back(shape.dim(static_cast<int>(d)));
  Values columns;
  for (InstrId o : in.instr.operands) columns.push_back(b.reshape(b.transpose(o, order), {rows, length}));
  if (!Network(in, rows, length, padded).run(columns)) return InstrId::None;
  for (InstrId& c : columns) c = b.transpose(b.reshape(c, moved), inverse_permutation(order));
  return in.shape().is_tuple() ? b.tuple(columns) : columns[0];
}

// Sorts values and their indices by total order, stably, and returns the first k of both.
InstrId topk(const ExpandInput& in) {
  Builder& b = in.b;
  Module& m = in.module;
  const Shape& shape = in.operand_shape(0);
  const auto& attrs = in.as<TopKAttrs>();
  if (shape.has_dynamic() || shape.element_count() == 0 || is_complex(shape.type())) return InstrId::None;
  const int last = shape.rank() - 1;
  const Type index = in.shape().element(1).type();
  const InstrId columns[] = {in.operand(0), b.iota(shape.with_type(index), last)};

  const CompId comparator = m.add_computation(m.unique_computation_name("comparator"));
  Builder inner(m, comparator);
  const InstrId x = m.append_parameter(comparator, 0, Shape::scalar(shape.type()));
  const InstrId y = m.append_parameter(comparator, 1, Shape::scalar(shape.type()));
  m.append_parameter(comparator, 2, Shape::scalar(index));
  m.append_parameter(comparator, 3, Shape::scalar(index));
  m[comparator].root = inner.compare(x, attrs.smallest ? Direction::LT : Direction::GT, y,
                                     is_float(shape.type()) ? CompareType::TOTALORDER : CompareType::DEFAULT);
  auto* sorted = m.make<SortAttrs>();
  sorted->dimension = last;
  sorted->stable = true;
  const CompId called[] = {comparator};
  const InstrId result = b.op(Op::SORT, Shape::tuple({shape, shape.with_type(index)}), columns, sorted, called);
  const InstrId heads[] = {b.slice_dim(b.get(result, 0), last, 0, attrs.k),
                           b.slice_dim(b.get(result, 1), last, 0, attrs.k)};
  return b.tuple(heads);
}

// Rewrites the custom call of frontends that returns the largest elements and their indices as a topk.
InstrId topk_call(const ExpandInput& in) {
  constexpr std::string_view kTarget = "TopK";
  if (in.as<CustomCallAttrs>().target != kTarget || in.instr.operands.size() != 1) return InstrId::None;
  const Shape* const operands[] = {&in.operand_shape(0)};
  // A call with that name but other operands or results is a different routine.
  if (!check_library_call(kTarget, operands, in.shape()).ok()) return InstrId::None;
  auto* attrs = in.module.make<TopKAttrs>();
  attrs->k = in.shape().element(0).dims().back();
  const InstrId from[] = {in.operand(0)};
  return in.b.op(Op::TOPK, in.shape().without_layout(), from, attrs);
}

constexpr Expansion kTable[] = {{Op::SORT, &sort}, {Op::TOPK, &topk}, {Op::CUSTOM_CALL, &topk_call}};

}  // namespace

Expected<bool> expand_sort(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
