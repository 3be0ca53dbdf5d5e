// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/sized_rules.h"

namespace collet::hlo {
SizedResult SizedRules::broadcast() {
  Sizes out(static_cast<size_t>(instr_.shape.rank()), InstrId::None);
  const Dims map = instr_.as<BroadcastAttrs>().dimensions;
  for (size_t d = 0; d < map.size(); ++d) out[static_cast<size_t>(map[d])] = at(op_.sizes[0], d);
  return {same(), {out}};
}

SizedResult SizedRules::transpose() {
  Sizes out;
  for (int64_t d : instr_.as<DimensionsAttrs>().dimensions) out.push_back(at(op_.sizes[0], static_cast<size_t>(d)));
  return {same(), {out}};
}

// Sets the sizes of result dimensions that are operand dimensions, unchanged. Returns false if a dynamic dimension is
// not preserved.
bool SizedRules::keep_dimensions(const Shape& to, Sizes& out) const {
  const auto from = b_.dims(operands_[0]);
  int64_t before = 1;
  for (size_t i = 0; i < from.size(); before *= from[i++]) {
    if (at(op_.sizes[0], i) == InstrId::None) continue;
    int64_t prefix = 1;
    bool found = false;
    for (size_t j = 0; j < to.dims().size() && !found; prefix *= to.dims()[j++])
      if (prefix == before && to.dims()[j] == from[i] && to.is_dynamic(static_cast<int>(j)) &&
          out[j] == InstrId::None) {
        out[j] = op_.sizes[0][i];
        found = true;
      }
    if (!found) return false;
  }
  return true;
}

SizedResult SizedRules::reshape() {
  const Shape& to = instr_.shape;
  const InstrId x = operands_[0];
  const Shape fixed = at_bounds(to);
  Sizes out(static_cast<size_t>(to.rank()), InstrId::None);
  if (instr_.op == Op::DYNAMIC_RESHAPE) {
    for (size_t d = 0; d < out.size(); ++d) out[d] = b_.clamped_index(operands_[d + 1], to.dims()[d]);
  } else {
    if (keep_dimensions(to, out)) return {b_.reshape(x, fixed.dims()), {out}};
    std::fill(out.begin(), out.end(), InstrId::None);
    InstrId elements = number(1);
    for (size_t d = 0; d < rank(0); ++d) elements = b_.mul(elements, size(0, d));
    int64_t others = 1;
    size_t taker = out.size();
    for (size_t d = 0; d < out.size(); ++d) {
      if (to.is_dynamic(static_cast<int>(d)) && taker == out.size())
        taker = d;
      else
        others *= to.dims()[d];
    }
    if (taker < out.size() && others > 0)
      out[taker] = b_.min(b_.div(elements, number(others)), number(to.dims()[taker]));
  }
  return {move_together(x, fixed, out), {out}};
}

// Maps elements by their order: the n-th element in use goes to the n-th position in use.
InstrId SizedRules::move_together(InstrId x, const Shape& to, const Sizes& sizes) {
  if (b_.shape(x).element_count() == 0 || to.element_count() == 0) return b_.fill_int(to, 0);
  const Shape index = to.with_type(Type::S32);
  const auto everywhere = [&](InstrId scalar) { return b_.broadcast(scalar, to.dims(), {}); };
  InstrId linear = b_.fill_int(index, 0), stride = number(1);
  for (size_t d = sizes.size(); d-- > 0;) {
    linear = b_.add(linear, b_.mul(b_.iota(index, static_cast<int64_t>(d)), everywhere(stride)));
    stride = b_.mul(stride, sizes[d] == InstrId::None ? number(to.dims()[d]) : sizes[d]);
  }
  InstrId place = b_.fill_int(index, 0);
  int64_t step = 1;
  for (size_t d = rank(0); d-- > 0;) {
    const InstrId n = everywhere(b_.max(size(0, d), number(1)));
    place = b_.add(place, b_.mul(b_.binary(Op::REMAINDER, linear, n), b_.fill_int(index, step)));
    linear = b_.div(linear, n);
    step *= b_.dims(x)[d];
  }
  const InstrId flat = b_.reshape(x, {step});
  auto* attrs = b_.module().make<GatherAttrs>();
  attrs->collapsed_slice_dims = b_.module().dims({0});
  attrs->start_index_map = b_.module().dims({0});
  attrs->index_vector_dim = to.rank();
  attrs->slice_sizes = b_.module().dims({1});
  return b_.op(Op::GATHER, to, {flat, place}, attrs);
}

SizedResult SizedRules::slice() {
  const SliceRanges& s = instr_.as<SliceAttrs>().slice;
  Sizes out(rank(0), InstrId::None);
  for (size_t d = 0; d < out.size(); ++d) {
    if (at(op_.sizes[0], d) == InstrId::None) continue;
    const int64_t stride = s.stride.empty() ? 1 : s.stride[d];
    const InstrId length = b_.sub(b_.min(size(0, d), number(s.limit[d])), number(s.start[d]));
    out[d] = b_.max(b_.div(b_.add(length, number(stride - 1)), number(stride)), number(0));
  }
  return {same(), {out}};
}

// Returns start indices clamped so that `window` is inside the used part of operand 0.
Values SizedRules::clamped_starts(size_t first, const Values& window) {
  Values out;
  for (size_t d = 0; d < rank(0); ++d) {
    const InstrId last = b_.max(b_.sub(size(0, d), window[d]), number(0));
    out.push_back(b_.min(b_.clamped_index(operands_[first + d], b_.dims(operands_[0])[d]), last));
  }
  return out;
}

SizedResult SizedRules::dynamic_slice() {
  if (operands_.size() != rank(0) + 1) return fail("a dynamic dimension and a list of starts");
  Sizes out(rank(0), InstrId::None);
  const Dims sizes = instr_.as<DynamicSliceAttrs>().sizes;
  Values window;
  for (size_t d = 0; d < out.size(); ++d) {
    const bool is_whole = sizes[d] == b_.dims(operands_[0])[d];
    if (is_whole) out[d] = at(op_.sizes[0], d);
    window.push_back(is_whole ? size(0, d) : number(sizes[d]));
  }
  const Values starts = clamped_starts(1, window);
  std::copy(starts.begin(), starts.end(), operands_.begin() + 1);
  return {same(), {out}};
}

SizedResult SizedRules::dynamic_update_slice() {
  if (operands_.size() != rank(0) + 2) return fail("a dynamic dimension and a list of starts");
  const InstrId x = operands_[0], update = operands_[1];
  Values window;
  for (size_t d = 0; d < rank(0); ++d) window.push_back(size(1, d));
  const Values starts = clamped_starts(2, window);
  Sizes out = op_.sizes[0];
  out.resize(rank(0), InstrId::None);
  if (!any(op_.sizes[1])) return {b_.dynamic_update_slice(x, update, starts), {out}};
  // Padding after the array, so that a window whose update is not full need not be clamped differently; the padding is
  // sliced away again.
  const std::vector<int64_t> low(rank(0), 0), room(b_.dims(update).begin(), b_.dims(update).end());
  const InstrId wide = b_.pad(x, zero_of(x), low, room);
  const InstrId before = b_.dynamic_slice(wide, starts, room);
  const InstrId inside = inside_of(update, op_.sizes[1]);
  const InstrId changed = b_.dynamic_update_slice(wide, b_.select(inside, update, before), starts);
  const std::vector<int64_t> limit(b_.dims(x).begin(), b_.dims(x).end());
  return {b_.slice(changed, low, limit), {out}};
}

InstrId SizedRules::inside_of(InstrId x, const Sizes& sizes) {
  const InstrId yes = b_.fill_int(b_.shape(x).with_type(Type::PRED), 1);
  const InstrId no = b_.scalar_int(Type::PRED, 0);
  return mask_outside(b_, yes, sizes, no);
}

SizedResult SizedRules::concatenate() {
  const size_t along = dimension();
  Sizes out(rank(0), InstrId::None);
  bool early = false, dynamic = false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    for (size_t d = 0; d < out.size(); ++d)
      if (d != along) out[d] = smaller(out[d], at(op_.sizes[i], d));
    if (at(op_.sizes[i], along) == InstrId::None) continue;
    dynamic = true;
    early |= i + 1 < operands_.size();
  }
  InstrId value = same();
  if (!dynamic) return {value, {out}};
  // Writes the operands one after another; each overwrites the padding of the one before it.
  InstrId offset = number(0);
  Values starts(rank(0), number(0));
  for (size_t i = 0; i < operands_.size(); ++i) {
    starts[along] = offset;
    if (early) value = b_.dynamic_update_slice(value, operands_[i], starts);
    offset = b_.add(offset, size(i, along));
  }
  out[along] = offset;
  return {value, {out}};
}

SizedResult SizedRules::pad() {
  const Padding& p = instr_.as<PadAttrs>().padding;
  operands_[0] = mask_outside(b_, operands_[0], op_.sizes[0], operands_[1]);
  Sizes out(rank(0), InstrId::None);
  for (size_t d = 0; d < out.size(); ++d) {
    if (at(op_.sizes[0], d) == InstrId::None) continue;
    const int64_t holes = p.interior.empty() ? 0 : p.interior[d];
    const InstrId n = size(0, d);
    const InstrId spread = b_.add(n, b_.mul(b_.max(b_.sub(n, number(1)), number(0)), number(holes)));
    out[d] = b_.max(b_.add(spread, number(p.low[d] + p.high[d])), number(0));
  }
  return {same(), {out}};
}

SizedResult SizedRules::reverse() {
  const InstrId x = operands_[0];
  const Dims dims = instr_.as<DimensionsAttrs>().dimensions;
  InstrId value = same();
  Values starts(rank(0), number(0));
  std::vector<int64_t> low(rank(0), 0), room(rank(0), 0), limits(b_.dims(x).begin(), b_.dims(x).end());
  bool moved = false;
  for (size_t d = 0; d < rank(0); ++d) {
    if (at(op_.sizes[0], d) == InstrId::None || !contains(dims, static_cast<int64_t>(d))) continue;
    starts[d] = b_.sub(number(limits[d]), size(0, d));  // the slice starts after the reversed padding
    room[d] = limits[d];
    moved = true;
  }
  if (moved) value = b_.dynamic_slice(b_.pad(value, zero_of(x), low, room), starts, limits);
  return {value, {op_.sizes[0]}};
}

}  // namespace collet::hlo
