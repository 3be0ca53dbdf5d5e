// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <optional>

#include "hlo/ops/windows.h"
#include "hlo/passes/expand/expand.h"
#include "hlo/passes/expand/regions.h"

namespace collet::hlo {
namespace {

using Values = std::vector<InstrId>;
constexpr int64_t kMostTaps = 1024;  // most taps of a select-and-scatter, each of which adds a few instructions

using WindowDims = std::vector<WindowDim>;

/// Returns the window of `in` without the taps and the padding that no output needs: for none of the `places` outputs of
/// each dimension do they meet an element. Returns nullopt if no tap is left.
std::optional<WindowDims> least_window(const ExpandInput& in, std::span<const int64_t> places) {
  const Window& w = in.as<WindowAttrs>().window;
  WindowDims out;
  for (size_t d = 0; d < w.rank(); ++d) {
    out.push_back(least_window(window_dim(w, d), in.operand_shape(0).dims()[d], places[d]));
    if (out.back().size == 0) return std::nullopt;
  }
  return out;
}

// ---- reduce-window ----

/// Reduces one dimension at a time: combining is associative and commutative, so a window in several dimensions is a window of windows.
/// The initial value is combined once with the result of each window. Padding and the holes of dilation hold the
/// combiner's identity; if the combiner has no known identity, an additional predicate says which elements count.
class WindowReduction {
 public:
  WindowReduction(const ExpandInput& in, size_t count) : in_(in), b_(in.b), count_(count) {}

  bool run(Values& values, const WindowDims& window) {
    choose_filling(window, values);
    for (size_t d = 0; d < window.size(); ++d)
      if (!fold(values, window[d], static_cast<int64_t>(d))) return false;
    return combine_initial(values);
  }

 private:
  // Chooses the values that padding and dilation insert.
  void choose_filling(const WindowDims& window, Values& values) {
    bool holes = false;
    for (const WindowDim& w : window) holes |= w.low > 0 || w.high > 0 || w.base_dilation > 1;
    const Module& module = in_.module;
    const Computation& body = module[in_.instr.called[0]];
    const Op op = module[body.root].op;
    bool known = count_ == 1 && body.order.size() == 3;
    known &= op == Op::ADD || op == Op::MULTIPLY || op == Op::MAXIMUM || op == Op::MINIMUM || op == Op::AND ||
             op == Op::OR || op == Op::XOR;
    const Type type = in_.operand_shape(0).type();
    known = known && module[body.root].shape.type() == type && module[body.root].operands.size() == 2 &&
            module[body.root].operand(0) != module[body.root].operand(1);
    masked_ = holes && !known;
    for (size_t i = 0; i < count_; ++i)
      filling_.push_back(holes && known ? b_.constant(b_.identity(op, type)) : in_.operand(count_ + i));
    if (masked_) values.push_back(b_.fill_int(b_.shape(values[0]).with_type(Type::PRED), 1));
  }

  bool combine_initial(Values& values) {
    Values first;
    for (size_t i = 0; i < count_; ++i) first.push_back(b_.broadcast(in_.operand(count_ + i), b_.dims(values[i]), {}));
    if (masked_) first.push_back(b_.fill_int(b_.shape(values[0]).with_type(Type::PRED), 1));
    if (!combine(first, values)) return false;
    if (masked_) first.pop_back();
    values = std::move(first);
    return true;
  }

  bool fold(Values& values, const WindowDim& w, int64_t dim) {
    const int64_t size = w.size, stride = w.stride, step = w.window_dilation;
    for (size_t i = 0; i < count_; ++i)
      values[i] = b_.pad_dim(values[i], filling_[i], dim, w.low, w.high, w.base_dilation - 1);
    if (masked_)
      values[count_] =
          b_.pad_dim(values[count_], b_.scalar_int(Type::PRED, 0), dim, w.low, w.high, w.base_dilation - 1);
    const int64_t padded = b_.shape(values[0]).dim(static_cast<int>(dim));
    const int64_t places = padded - (size - 1) * step;  // number of positions of the window
    if (size == 1) return take(values, dim, 0, places, stride), true;
    const int64_t levels = std::bit_width(static_cast<uint64_t>(size));
    // Few taps are combined one by one, at the stride. For many taps the width of the windows is doubled again and
    // again.
    if (size <= 2 * levels * stride) {
      Values sum;
      for (int64_t k = 0; k < size; ++k) {
        Values tap = values;
        take(tap, dim, k * step, k * step + places, stride);
        if (k == 0)
          sum = tap;
        else if (!combine(sum, tap))
          return false;
      }
      values = sum;
      return true;
    }
    Values power = values, sum;  // power: results of windows of `width` taps; sum: of the `done` taps combined so far
    int64_t width = 1, done = 0;
    for (int64_t rest = size; rest; rest >>= 1) {
      if (rest & 1) {
        Values part = power;
        take(part, dim, done * step, length(power, dim), 1);
        if (done == 0) {
          sum = part;
        } else {
          const int64_t n = std::min(length(sum, dim), length(part, dim));
          take(sum, dim, 0, n, 1);
          take(part, dim, 0, n, 1);
          if (!combine(sum, part)) return false;
        }
        done += width;
      }
      if (rest > 1) {
        Values right = power;
        const int64_t n = length(power, dim) - width * step;
        take(right, dim, width * step, width * step + n, 1);
        take(power, dim, 0, n, 1);
        if (!combine(power, right)) return false;
        width *= 2;
      }
    }
    take(sum, dim, 0, places, stride);
    values = sum;
    return true;
  }

  int64_t length(const Values& values, int64_t dim) const { return b_.shape(values[0]).dim(static_cast<int>(dim)); }
  void take(Values& values, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
    for (InstrId& v : values) v = b_.slice_dim(v, dim, start, limit, stride);
  }
  bool combine(Values& sum, const Values& more) {
    auto out = inline_combination(b_, in_.instr.called[0], sum, more, masked_);
    if (!out) return false;
    sum = std::move(*out);
    return true;
  }

  const ExpandInput& in_;
  Builder& b_;
  size_t count_;
  Values filling_;
  bool masked_ = false;  // values[count_] is the predicate
};

InstrId reduce_window(const ExpandInput& in) {
  const size_t count = in.instr.operands.size() / 2;
  const Shape& first = in.shape().is_tuple() ? in.shape().element(0) : in.shape();
  if (in.operand_shape(0).has_dynamic()) return InstrId::None;
  const auto window = first.element_count() == 0 ? std::nullopt : least_window(in, first.dims());
  if (!window) {
    Values none;
    for (size_t i = 0; i < count; ++i) none.push_back(in.b.broadcast(in.operand(count + i), first.dims(), {}));
    return in.shape().is_tuple() ? in.b.tuple(none) : none[0];
  }
  for (const WindowDim& w : *window)
    if (w.reversed && w.size > 1) return InstrId::None;
  Values values(in.instr.operands.begin(), in.instr.operands.begin() + static_cast<ptrdiff_t>(count));
  if (!WindowReduction(in, count).run(values, *window)) return InstrId::None;
  return in.shape().is_tuple() ? in.b.tuple(values) : values[0];
}

// ---- select-and-scatter ----

/// The taps of the windows; each tap is a strided slice of the padded operand.
struct Taps {
  Builder& b;
  const WindowDims& w;
  Ints places;  // number of windows per dimension
  Ints strides = {};
  int64_t count = 1;

  Taps(Builder& builder, const WindowDims& window, std::span<const int64_t> windows)
      : b(builder), w(window), places(to_ints(windows)) {
    for (const WindowDim& dim : w) {
      strides.push_back(dim.stride);
      if (__builtin_mul_overflow(count, dim.size, &count)) count = INT64_MAX;
    }
  }
  Ints offset(int64_t tap) const {
    Ints out(w.size());
    for (size_t d = w.size(); d-- > 0;) {
      out[d] = tap % w[d].size;
      tap /= w[d].size;
    }
    return out;
  }
  InstrId at(InstrId padded, int64_t tap) const {
    Ints start = offset(tap), limit(start.size());
    for (size_t d = 0; d < start.size(); ++d) limit[d] = start[d] + (places[d] - 1) * strides[d] + 1;
    return b.slice(padded, start, limit, strides);
  }
  // The reverse of reading a tap: puts the value of each window at the position of its tap, and `fill` elsewhere; the
  // result has the size of the padded operand.
  InstrId put(InstrId values, InstrId fill, int64_t tap, std::span<const int64_t> padded) const {
    Ints low = offset(tap), high(low.size()), interior(low.size());
    for (size_t d = 0; d < low.size(); ++d) {
      interior[d] = strides[d] - 1;
      high[d] = padded[d] - low[d] - ((places[d] - 1) * strides[d] + 1);
    }
    return b.pad(values, fill, low, high, interior);
  }
};

InstrId select_and_scatter(const ExpandInput& in) {
  Builder& b = in.b;
  const InstrId operand = in.operand(0), source = in.operand(1), init = in.operand(2);
  if (in.operand_shape(0).has_dynamic()) return InstrId::None;
  const Shape& places = in.operand_shape(1);
  const auto window = places.element_count() == 0 ? std::nullopt : least_window(in, places.dims());
  if (!window) return b.broadcast(init, in.shape().dims(), {});
  for (const WindowDim& w : *window)
    if (w.base_dilation != 1 || w.window_dilation != 1 || (w.reversed && w.size > 1)) return InstrId::None;
  const Taps taps(b, *window, places.dims());
  if (taps.count > kMostTaps) return InstrId::None;
  Ints low, high;
  for (const WindowDim& w : *window) {
    low.push_back(w.low);
    high.push_back(w.high);
  }
  const Type type = in.operand_shape(0).type();
  const InstrId padded = b.pad(operand, b.scalar(type, 0), low, high);
  const Ints padded_dims = to_ints(b.dims(padded));
  // Padding is never selected: the mask is false there.
  const Shape all = Shape::array(Type::PRED, in.operand_shape(0).dims());
  const InstrId real = b.pad(b.fill_int(all, 1), b.scalar_int(Type::PRED, 0), low, high);

  InstrId held = taps.at(padded, 0), seen = taps.at(real, 0);
  InstrId chosen = b.fill_int(b.shape(held).with_type(Type::S32), 0);
  for (int64_t t = 1; t < taps.count; ++t) {
    const InstrId value = taps.at(padded, t), valid = taps.at(real, t);
    const InstrId both[] = {held, value};
    auto keeps = inline_elementwise(b, in.instr.called[0], both);
    if (!keeps) return InstrId::None;
    const InstrId replace = b.and_(valid, b.not_(b.and_(seen, keeps->at(0))));
    held = b.select(replace, value, held);
    chosen = b.select(replace, b.like_int(chosen, t), chosen);
    seen = b.or_(seen, valid);
  }
  InstrId result = b.broadcast(init, padded_dims, {});
  for (int64_t t = 0; t < taps.count; ++t) {
    const InstrId here = b.and_(seen, b.compare(chosen, Direction::EQ, b.like_int(chosen, t)));
    const InstrId hit = taps.put(here, b.scalar_int(Type::PRED, 0), t, padded_dims);
    const InstrId both[] = {result, taps.put(source, init, t, padded_dims)};
    auto sum = inline_elementwise(b, in.instr.called[1], both);
    if (!sum) return InstrId::None;
    result = b.select(hit, sum->at(0), result);
  }
  Ints limit = low;
  for (size_t d = 0; d < low.size(); ++d) limit[d] += in.operand_shape(0).dim(static_cast<int>(d));
  if (std::any_of(low.begin(), low.end(), [](int64_t v) { return v < 0; }) ||
      std::any_of(high.begin(), high.end(), [](int64_t v) { return v < 0; })) {
    for (int64_t& v : low) v = -v;
    for (int64_t& v : high) v = -v;
    return b.pad(result, init, low, high);
  }
  return b.slice(result, low, limit);
}

constexpr Expansion kTable[] = {{Op::REDUCE_WINDOW, &reduce_window}, {Op::SELECT_AND_SCATTER, &select_and_scatter}};

}  // namespace

Expected<bool> expand_window(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
