// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "hlo/passes/sized_rules.h"

namespace collet::hlo {
namespace {

// If the computation is one binary op with a known neutral element on its two parameters, returns that op.
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

}  // namespace

// Returns the neutral element of the combiner, to which padding is set.
InstrId SizedRules::neutral(CompId combiner, InstrId init) {
  const auto op = combine_of(b_.module(), combiner);
  return op ? b_.constant(b_.identity(*op, b_.type(init))) : init;
}

void SizedRules::mask_arrays() {
  for (size_t i = 0; i < arrays(); ++i)
    operands_[i] = mask_outside(b_, operands_[i], op_.sizes[i], neutral(instr_.called[0], operands_[arrays() + i]));
}

SizedResult SizedRules::reduce() {
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

SizedResult SizedRules::reduce_window() {
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

SizedResult SizedRules::dot() {
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
  // Masks both operands: an undefined element may be NaN, and NaN times zero is not zero.
  Sizes left(rank(0), InstrId::None), right(rank(1), InstrId::None);
  for (size_t i = 0; i < a.lhs_contracting.size(); ++i) {
    const auto l = static_cast<size_t>(a.lhs_contracting[i]), r = static_cast<size_t>(a.rhs_contracting[i]);
    left[l] = right[r] = smaller(at(op_.sizes[0], l), at(op_.sizes[1], r));
  }
  operands_[0] = mask_outside(b_, operands_[0], left, zero_of(operands_[0]));
  operands_[1] = mask_outside(b_, operands_[1], right, zero_of(operands_[1]));
  return {same(), {out}};
}

// Adds an operand that says which elements are padding; the comparator sorts padding after all other elements.
SizedResult SizedRules::sort() {
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
  return {first_of(all, n), std::vector<Sizes>(n, out)};
}

// Returns the first `n` elements of a tuple; the element itself if there is one.
InstrId SizedRules::first_of(InstrId tuple, size_t n) {
  if (n == 1) return b_.get(tuple, 0);
  Values parts;
  for (size_t i = 0; i < n; ++i) parts.push_back(b_.get(tuple, static_cast<int64_t>(i)));
  return b_.tuple(parts);
}

CompId SizedRules::padding_last(CompId comparator, size_t keys) {
  Module& m = b_.module();
  const CompId out = clone_computation(m, comparator, "padding_last");
  const auto first = static_cast<int64_t>(2 * keys);
  const Shape flag = Shape::scalar(Type::PRED);
  const InstrId left = m.append_parameter(out, first, flag), right = m.append_parameter(out, first + 1, flag);
  Builder c(m, out);
  m[out].root = c.select(right, c.and_(left, m[out].root), left);
  return out;
}

SizedResult SizedRules::gather() {
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
  // The starts are clamped so that slices are inside the used part.
  if (any(op_.sizes[0]) && g.start_index_map.size() > 0) {
    Values last;
    int64_t largest = 0;
    for (const int64_t d : g.start_index_map) {
      const auto k = static_cast<size_t>(d);
      const int64_t bound = b_.dims(operands_[0])[k];
      const InstrId window = g.slice_sizes[k] == bound ? size(0, k) : number(g.slice_sizes[k]);
      last.push_back(b_.max(b_.sub(size(0, k), window), number(0)));
      largest = std::max(largest, bound);
    }
    const InstrId starts = b_.clamped_index(operands_[1], largest);
    const std::vector<int64_t> dims(b_.dims(starts).begin(), b_.dims(starts).end());
    operands_[1] = b_.min(starts, b_.along_dimension(last, dims, g.index_vector_dim));
  }
  return {same(), {out}};
}

SizedResult SizedRules::scatter() {
  const ScatterAttrs& s = instr_.as<ScatterAttrs>();
  const size_t n = (operands_.size() - 1) / 2;
  // Updates that are not in use get indices outside of the array, so that they are dropped.
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
  const std::vector<Sizes> sizes(op_.sizes.begin(), op_.sizes.begin() + static_cast<ptrdiff_t>(n));
  if (window) {
    const auto op = n == 1 ? combine_of(b_.module(), instr_.called[0]) : std::nullopt;
    if (!op) return {scatter_inside(n, inside_of(operands_[n + 1], update)), sizes};
    const InstrId nothing = b_.constant(b_.identity(*op, b_.type(operands_[2])));
    operands_[2] = mask_outside(b_, operands_[2], update, nothing);
  }
  return {same(), sizes};
}

// Adds an operand and update pair of predicates that says which elements of the update windows are in use; the others
// leave the operand unchanged.
InstrId SizedRules::scatter_inside(size_t n, InstrId inside) {
  const InstrId flags = b_.fill_int(b_.shape(operands_[0]).with_type(Type::PRED), 0);
  Values all(operands_.begin(), operands_.begin() + static_cast<ptrdiff_t>(n));
  all.push_back(flags);
  all.insert(all.end(), operands_.begin() + static_cast<ptrdiff_t>(n), operands_.end());
  all.push_back(inside);
  std::vector<Shape> shapes;
  for (size_t i = 0; i <= n; ++i) shapes.push_back(b_.shape(all[i]));
  if (!b_.status().ok()) return InstrId::None;

  Module& m = b_.module();
  const CompId combine = m.add_computation(m.unique_computation_name("combine_inside"));
  Builder c(m, combine);
  Values parameters, given;
  for (size_t i = 0; i < 2 * (n + 1); ++i)
    parameters.push_back(
        m.append_parameter(combine, static_cast<int64_t>(i), Shape::scalar(shapes[i % (n + 1)].type())));
  for (size_t i = 0; i < parameters.size(); ++i)
    if (i % (n + 1) != n) given.push_back(parameters[i]);
  const InstrId combined = inline_computation(c, instr_.called[0], given);
  Values results;
  for (size_t i = 0; i < n; ++i)
    results.push_back(
        c.select(parameters.back(), n == 1 ? combined : c.get(combined, static_cast<int64_t>(i)), parameters[i]));
  results.push_back(parameters[n]);
  m[combine].root = c.tuple(results);
  if (!c.status().ok()) return b_.fail(c.status());
  return first_of(b_.op(Op::SCATTER, Shape::tuple(shapes), all, instr_.attrs, std::span(&combine, 1)), n);
}

// Handles XLA's two custom calls PadToStatic and SliceToDynamic, which split a dynamic array into a static array and
// its sizes, and join them.
SizedResult SizedRules::custom_call() {
  const std::string_view target = instr_.as<CustomCallAttrs>().target;
  if (target == "SliceToDynamic" && operands_.size() == rank(0) + 1) {
    Sizes out;
    for (size_t d = 0; d < rank(0); ++d) out.push_back(b_.clamped_index(operands_[d + 1], b_.dims(operands_[0])[d]));
    return {operands_[0], {out}};
  }
  if (target == "PadToStatic" && operands_.size() == 1) {
    Values all{mask_outside(b_, operands_[0], op_.sizes[0], zero_of(operands_[0]))};
    for (size_t d = 0; d < rank(0); ++d) all.push_back(size(0, d));
    return {b_.tuple(all), std::vector<Sizes>(all.size())};
  }
  return fail("a dynamic dimension");
}

}  // namespace collet::hlo
