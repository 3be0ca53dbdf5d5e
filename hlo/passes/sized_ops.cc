// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/sized_ops.h"

#include <algorithm>
#include <optional>

#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

using Values = std::vector<InstrId>;

bool contains(std::span<const int64_t> list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool any(const Sizes& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](InstrId s) { return s != InstrId::None; });
}

InstrId at(const Sizes& sizes, size_t d) {
  return sizes.empty() ? InstrId::None : sizes[d];
}

// The op of a computation that is one op on its two parameters, and leaves everything as it is with a known value.
std::optional<Op> combine_of(const Module& m, CompId c) {
  const Instruction& root = m[m[c].root];
  if (m[c].parameters.size() != 2 || root.operands.size() != 2) return std::nullopt;
  const InstrId a = m[c].parameters[0], b = m[c].parameters[1];
  if (!(root.operand(0) == a && root.operand(1) == b) && !(root.operand(0) == b && root.operand(1) == a))
    return std::nullopt;
  switch (root.op) {
    case Op::ADD:
    case Op::MULTIPLY:
    case Op::MAXIMUM:
    case Op::MINIMUM:
    case Op::AND:
    case Op::OR:
    case Op::XOR:
      return root.op;
    default:
      return std::nullopt;
  }
}

class Rules {
 public:
  Rules(Builder& b, const SizedOp& op) : b_(b), op_(op), instr_(op.instr) {
    operands_.assign(instr_.operands.begin(), instr_.operands.end());
  }

  SizedResult run() {
    switch (instr_.op) {
      case Op::GET_DIMENSION_SIZE:
        return {size(0, dimension()), {{}}};
      case Op::SET_DIMENSION_SIZE:
        return set_size();
      case Op::BROADCAST:
        return broadcast();
      case Op::TRANSPOSE:
        return transpose();
      case Op::RESHAPE:
      case Op::DYNAMIC_RESHAPE:
        return reshape();
      case Op::SLICE:
        return slice();
      case Op::DYNAMIC_SLICE:
        return dynamic_slice();
      case Op::DYNAMIC_UPDATE_SLICE:
        return dynamic_update_slice();
      case Op::CONCATENATE:
        return concatenate();
      case Op::PAD:
        return pad();
      case Op::REVERSE:
        return reverse();
      case Op::REDUCE:
        return reduce();
      case Op::REDUCE_WINDOW:
        return reduce_window();
      case Op::DOT:
        return dot();
      case Op::SORT:
        return sort();
      case Op::GATHER:
        return gather();
      case Op::SCATTER:
        return scatter();
      case Op::IOTA:
        return {same(), {{}}};
      case Op::CUSTOM_CALL:
        return custom_call();
      default:
        break;
    }
    const bool alone = !instr_.shape.is_tuple() && !operands_.empty();
    if (is_elementwise(instr_.op) || instr_.op == Op::COPY || (instr_.op == Op::ALL_REDUCE && alone) ||
        (instr_.op == Op::COLLECTIVE_PERMUTE && alone))
      return elementwise();
    return fail("a dynamic dimension");
  }

 private:
  size_t dimension() const { return static_cast<size_t>(instr_.as<DimensionAttrs>().dimension); }
  InstrId size(size_t operand, size_t d) { return size_or_bound(b_, operands_[operand], op_.sizes[operand], d); }
  InstrId number(int64_t value) { return b_.scalar_int(Type::S32, value); }
  size_t rank(size_t operand) const { return static_cast<size_t>(b_.rank(operands_[operand])); }
  // The op as it stands, on the padded operands.
  InstrId same() { return b_.op(instr_.op, at_bounds(instr_.shape), operands_, instr_.attrs, instr_.called.span()); }
  InstrId zero(InstrId x) { return b_.scalar_int(b_.type(x), 0); }
  InstrId zero_of(InstrId x) { return b_.fill(Shape::scalar(b_.type(x)), 0); }
  InstrId clamp(InstrId x, InstrId low, InstrId high) { return b_.max(b_.min(x, high), low); }

  SizedResult fail(const std::string& what) {
    b_.fail(unimplemented("'" + std::string(instr_.name) + "': " + std::string(op_info(instr_.op).text) + " with " +
                          what + " (" + instr_.shape.to_string() + ") is not supported"));
    return {};
  }

  // What fits in both.
  InstrId smaller(InstrId a, InstrId c) {
    if (a == InstrId::None || a == c) return c;
    return c == InstrId::None ? a : b_.min(a, c);
  }

  SizedResult elementwise() {
    Sizes out(static_cast<size_t>(instr_.shape.rank()), InstrId::None);
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (rank(i) != out.size()) {
        if (any(op_.sizes[i])) return fail("a dynamic dimension that it changes");
        continue;
      }
      for (size_t d = 0; d < out.size(); ++d) out[d] = smaller(out[d], at(op_.sizes[i], d));
    }
    return {same(), {out}};
  }

  SizedResult set_size() {
    const size_t d = dimension();
    Sizes out = op_.sizes[0];
    out.resize(rank(0), InstrId::None);
    const InstrId wanted = b_.convert(operands_[1], Type::S32);
    out[d] = clamp(wanted, number(0), number(b_.dims(operands_[0])[d]));
    return {operands_[0], {out}};
  }

  SizedResult broadcast() {
    Sizes out(static_cast<size_t>(instr_.shape.rank()), InstrId::None);
    const Dims map = instr_.as<BroadcastAttrs>().dimensions;
    for (size_t d = 0; d < map.size(); ++d) out[static_cast<size_t>(map[d])] = at(op_.sizes[0], d);
    return {same(), {out}};
  }

  SizedResult transpose() {
    Sizes out;
    for (int64_t d : instr_.as<DimensionsAttrs>().dimensions) out.push_back(at(op_.sizes[0], static_cast<size_t>(d)));
    return {same(), {out}};
  }

  // Dimensions of the result that are dimensions of the operand, unchanged. False where a dynamic one is not.
  bool keep_dimensions(const Shape& to, Sizes& out) const {
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

  SizedResult reshape() {
    const Shape& to = instr_.shape;
    const InstrId x = operands_[0];
    const Shape fixed = at_bounds(to);
    Sizes out(static_cast<size_t>(to.rank()), InstrId::None);
    if (instr_.op == Op::DYNAMIC_RESHAPE) {
      for (size_t d = 0; d < out.size(); ++d)
        out[d] = clamp(b_.convert(operands_[d + 1], Type::S32), number(0), number(to.dims()[d]));
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

  // Element by element: the n-th of those in use goes to the n-th place in use.
  InstrId move_together(InstrId x, const Shape& to, const Sizes& sizes) {
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

  SizedResult slice() {
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

  // Starts that keep `window` inside what is in use of operand 0.
  Values clamped_starts(size_t first, const Values& window) {
    Values out;
    for (size_t d = 0; d < rank(0); ++d) {
      const InstrId start = operands_[first + d];
      const InstrId last = b_.max(b_.sub(size(0, d), window[d]), number(0));
      out.push_back(clamp(b_.convert(start, Type::S32), number(0), last));
    }
    return out;
  }

  SizedResult dynamic_slice() {
    if (operands_.size() != rank(0) + 1) return fail("a dynamic dimension and a list of starts");
    Sizes out(rank(0), InstrId::None);
    const Dims sizes = instr_.as<DynamicSliceAttrs>().sizes;
    for (size_t d = 0; d < out.size(); ++d)
      if (sizes[d] == b_.dims(operands_[0])[d]) out[d] = at(op_.sizes[0], d);
    return {same(), {out}};
  }

  SizedResult dynamic_update_slice() {
    if (operands_.size() != rank(0) + 2) return fail("a dynamic dimension and a list of starts");
    const InstrId x = operands_[0], update = operands_[1];
    Values window;
    for (size_t d = 0; d < rank(0); ++d) window.push_back(size(1, d));
    const Values starts = clamped_starts(2, window);
    Sizes out = op_.sizes[0];
    out.resize(rank(0), InstrId::None);
    if (!any(op_.sizes[1])) return {b_.dynamic_update_slice(x, update, starts), {out}};
    // Room behind the array, so that a window that is not full need not move; outside of it nothing changes.
    const std::vector<int64_t> low(rank(0), 0), room(b_.dims(update).begin(), b_.dims(update).end());
    const InstrId wide = b_.pad(x, zero_of(x), low, room);
    const InstrId before = b_.dynamic_slice(wide, starts, room);
    const InstrId inside = inside_of(update, op_.sizes[1]);
    const InstrId changed = b_.dynamic_update_slice(wide, b_.select(inside, update, before), starts);
    const std::vector<int64_t> limit(b_.dims(x).begin(), b_.dims(x).end());
    return {b_.slice(changed, low, limit), {out}};
  }

  InstrId inside_of(InstrId x, const Sizes& sizes) {
    const InstrId yes = b_.fill_int(b_.shape(x).with_type(Type::PRED), 1);
    const InstrId no = b_.scalar_int(Type::PRED, 0);
    return mask_outside(b_, yes, sizes, no);
  }

  SizedResult concatenate() {
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
    // One after another, each over the padding of the one before it.
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

  SizedResult pad() {
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

  SizedResult reverse() {
    const InstrId x = operands_[0];
    const Dims dims = instr_.as<DimensionsAttrs>().dimensions;
    InstrId value = same();
    Values starts(rank(0), number(0));
    std::vector<int64_t> low(rank(0), 0), room(rank(0), 0), limits(b_.dims(x).begin(), b_.dims(x).end());
    bool moved = false;
    for (size_t d = 0; d < rank(0); ++d) {
      if (at(op_.sizes[0], d) == InstrId::None || !contains(dims, static_cast<int64_t>(d))) continue;
      starts[d] = b_.sub(number(limits[d]), size(0, d));  // what was in front of the padding is behind it now
      room[d] = limits[d];
      moved = true;
    }
    if (moved) value = b_.dynamic_slice(b_.pad(value, zero_of(x), low, room), starts, limits);
    return {value, {op_.sizes[0]}};
  }

  // What padding is set to so that combining it changes nothing.
  InstrId neutral(CompId combiner, InstrId init) {
    const auto op = combine_of(b_.module(), combiner);
    return op ? b_.constant(b_.identity(*op, b_.type(init))) : init;
  }

  size_t arrays() const { return operands_.size() / 2; }
  void mask_arrays() {
    for (size_t i = 0; i < arrays(); ++i)
      operands_[i] = mask_outside(b_, operands_[i], op_.sizes[i], neutral(instr_.called[0], operands_[arrays() + i]));
  }

  SizedResult reduce() {
    const Dims dims = instr_.as<DimensionsAttrs>().dimensions;
    Sizes out;
    for (size_t d = 0; d < rank(0); ++d) {
      if (contains(dims, static_cast<int64_t>(d))) continue;
      out.push_back(InstrId::None);
      for (size_t i = 0; i < arrays(); ++i) out.back() = smaller(out.back(), at(op_.sizes[i], d));
    }
    mask_arrays();
    return {same(), std::vector<Sizes>(arrays(), out)};
  }

  SizedResult reduce_window() {
    const Window& w = instr_.as<WindowAttrs>().window;
    Sizes out(rank(0), InstrId::None);
    for (size_t d = 0; d < out.size(); ++d) {
      if (at(op_.sizes[0], d) == InstrId::None) continue;
      const InstrId n = size(0, d);
      const InstrId spread =
          b_.max(b_.add(b_.mul(b_.sub(n, number(1)), number(w.base_dilation_at(d))), number(1)), number(0));
      const int64_t reach = (w.size[d] - 1) * w.window_dilation_at(d) + 1;
      const InstrId room = b_.sub(b_.add(spread, number(w.low_at(d) + w.high_at(d))), number(reach));
      out[d] = b_.max(b_.div(b_.add(room, number(w.stride_at(d))), number(w.stride_at(d))), number(0));
    }
    mask_arrays();
    return {same(), std::vector<Sizes>(arrays(), out)};
  }

  SizedResult dot() {
    const DotAttrs& a = instr_.as<DotAttrs>();
    Sizes out;
    for (size_t i = 0; i < a.lhs_batch.size(); ++i)
      out.push_back(smaller(at(op_.sizes[0], static_cast<size_t>(a.lhs_batch[i])),
                            at(op_.sizes[1], static_cast<size_t>(a.rhs_batch[i]))));
    const auto free = [&](size_t operand, Dims batch, Dims contracting) {
      for (size_t d = 0; d < rank(operand); ++d)
        if (!contains(batch, static_cast<int64_t>(d)) && !contains(contracting, static_cast<int64_t>(d)))
          out.push_back(at(op_.sizes[operand], d));
    };
    free(0, a.lhs_batch, a.lhs_contracting);
    free(1, a.rhs_batch, a.rhs_contracting);
    // Both sides: what is undefined may be NaN, which times zero is not zero.
    Sizes left(rank(0), InstrId::None), right(rank(1), InstrId::None);
    for (size_t i = 0; i < a.lhs_contracting.size(); ++i) {
      const auto l = static_cast<size_t>(a.lhs_contracting[i]), r = static_cast<size_t>(a.rhs_contracting[i]);
      left[l] = right[r] = smaller(at(op_.sizes[0], l), at(op_.sizes[1], r));
    }
    operands_[0] = mask_outside(b_, operands_[0], left, zero_of(operands_[0]));
    operands_[1] = mask_outside(b_, operands_[1], right, zero_of(operands_[1]));
    return {same(), {out}};
  }

  // A last operand says what is padding; the comparator puts that behind everything else.
  SizedResult sort() {
    const auto along = static_cast<size_t>(instr_.as<SortAttrs>().dimension);
    Sizes out(rank(0), InstrId::None);
    for (const Sizes& s : op_.sizes)
      for (size_t d = 0; d < out.size(); ++d) out[d] = smaller(out[d], at(s, d));
    const size_t n = operands_.size();
    if (out[along] == InstrId::None) return {same(), std::vector<Sizes>(n, out)};
    Sizes only(rank(0), InstrId::None);
    only[along] = out[along];
    operands_.push_back(inside_of(operands_[0], only));
    std::vector<Shape> shapes;
    for (InstrId o : operands_) shapes.push_back(b_.shape(o));
    const CompId called[] = {padding_last(instr_.called[0], n)};
    const InstrId all = b_.op(Op::SORT, Shape::tuple(shapes), operands_, instr_.attrs, called);
    return {n == 1 ? b_.get(all, 0) : all, std::vector<Sizes>(n, out)};
  }

  CompId padding_last(CompId comparator, size_t keys) {
    Module& m = b_.module();
    const CompId out = clone_computation(m, comparator, "padding_last");
    const auto first = static_cast<int64_t>(2 * keys);
    const Shape flag = Shape::scalar(Type::PRED);
    const InstrId left = m.append_parameter(out, first, flag), right = m.append_parameter(out, first + 1, flag);
    Builder c(m, out);
    m[out].root = c.select(right, c.and_(left, m[out].root), left);
    return out;
  }

  SizedResult gather() {
    const GatherAttrs& g = instr_.as<GatherAttrs>();
    Sizes out(static_cast<size_t>(instr_.shape.rank()), InstrId::None);
    size_t index = 0, source = 0;
    for (size_t d = 0; d < out.size(); ++d) {
      if (contains(g.offset_dims, static_cast<int64_t>(d))) {
        while (contains(g.collapsed_slice_dims, static_cast<int64_t>(source)) ||
               contains(g.operand_batching_dims, static_cast<int64_t>(source)))
          ++source;
        if (g.slice_sizes[source] == b_.dims(operands_[0])[source]) out[d] = at(op_.sizes[0], source);
        ++source;
        continue;
      }
      if (static_cast<int64_t>(index) == g.index_vector_dim) ++index;
      out[d] = at(op_.sizes[1], index++);
    }
    return {same(), {out}};
  }

  SizedResult scatter() {
    const ScatterAttrs& s = instr_.as<ScatterAttrs>();
    const size_t n = (operands_.size() - 1) / 2;
    // Indices outside of every array: their updates are dropped.
    Sizes indices = op_.sizes[n];
    indices.resize(rank(n), InstrId::None);
    bool window = false;
    size_t index = 0;
    const Sizes& update = op_.sizes[n + 1];
    for (size_t d = 0; d < rank(n + 1); ++d) {
      if (contains(s.update_window_dims, static_cast<int64_t>(d))) {
        window |= at(update, d) != InstrId::None;
        continue;
      }
      if (static_cast<int64_t>(index) == s.index_vector_dim) ++index;
      indices[index] = smaller(indices[index], at(update, d));
      ++index;
    }
    if (any(indices)) {
      if (type_info(b_.type(operands_[n])).bits < 32) operands_[n] = b_.convert(operands_[n], Type::S32);
      const InstrId far = b_.constant(b_.identity(Op::MINIMUM, b_.type(operands_[n])));
      operands_[n] = mask_outside(b_, operands_[n], indices, far);
    }
    if (window) {
      const auto op = n == 1 ? combine_of(b_.module(), instr_.called[0]) : std::nullopt;
      if (!op) return fail("windows of dynamic size");
      const InstrId nothing = b_.constant(b_.identity(*op, b_.type(operands_[2])));
      operands_[2] = mask_outside(b_, operands_[2], update, nothing);
    }
    return {same(), std::vector<Sizes>(op_.sizes.begin(), op_.sizes.begin() + static_cast<ptrdiff_t>(n))};
  }

  // XLA's two: an array and the sizes of its dimensions, taken apart and put together.
  SizedResult custom_call() {
    const std::string_view target = instr_.as<CustomCallAttrs>().target;
    if (target == "SliceToDynamic" && operands_.size() == rank(0) + 1) {
      Sizes out;
      for (size_t d = 0; d < rank(0); ++d)
        out.push_back(clamp(b_.convert(operands_[d + 1], Type::S32), number(0), number(b_.dims(operands_[0])[d])));
      return {operands_[0], {out}};
    }
    if (target == "PadToStatic" && operands_.size() == 1) {
      Values all{mask_outside(b_, operands_[0], op_.sizes[0], zero_of(operands_[0]))};
      for (size_t d = 0; d < rank(0); ++d) all.push_back(size(0, d));
      return {b_.tuple(all), std::vector<Sizes>(all.size())};
    }
    return fail("a dynamic dimension");
  }

  Builder& b_;
  const SizedOp& op_;
  const Instruction& instr_;
  Values operands_;
};

}  // namespace

Shape at_bounds(const Shape& shape) {
  if (!shape.is_tuple()) return shape.has_dynamic() ? shape.to_static() : shape;
  std::vector<Shape> elements;
  for (const Shape& element : shape.elements()) elements.push_back(at_bounds(element));
  return Shape::tuple(std::move(elements));
}

InstrId size_or_bound(Builder& b, InstrId x, const Sizes& sizes, size_t d) {
  return at(sizes, d) != InstrId::None ? sizes[d] : b.scalar_int(Type::S32, b.dims(x)[d]);
}

InstrId mask_outside(Builder& b, InstrId x, const Sizes& sizes, InstrId pad) {
  if (!any(sizes) || !b.status().ok()) return x;
  const std::vector<int64_t> dims(b.dims(x).begin(), b.dims(x).end());
  const InstrId padding = b.broadcast(pad, dims, {});
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == InstrId::None) continue;
    const InstrId place = b.iota(Shape::array(Type::S32, dims), static_cast<int64_t>(d));
    x = b.select(b.compare(place, Direction::LT, b.broadcast(sizes[d], dims, {})), x, padding);
  }
  return x;
}

SizedResult build_sized(Builder& b, const SizedOp& op) {
  return Rules(b, op).run();
}

}  // namespace collet::hlo
