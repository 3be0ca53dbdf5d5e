// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "hlo/ops/rules.h"
#include "hlo/passes/expand/expand.h"
#include "hlo/passes/expand/regions.h"

// Rewrites long reductions and prefix scans by a body that rounds, such as logaddexp. One step after the other, the error grows
// with the length; in a tree it grows with the logarithm, and the steps of a level are independent of each other. Neighbours
// are combined with neighbours, in the order of the elements, so the body need not be commutative. It is taken to be
// associative but for rounding, as expand_window takes it. The initial value is combined once, on the left.
//
// - A reduction is a tree until few elements are left, which one reduction combines. A level combines some neighbours.
// - A scan of n elements is a scan of the n / 2 pairs of neighbours, which gives every second result; one step more gives the
//   others. Few elements are scanned by one reduce-window. Some 2 n steps are useful, as in Blelloch's scan (Prefix sums
//   and their applications, 1990).
//
// Sums, products and other known combinations stay: devices compute them with bounds of their own.

namespace collet::hlo {
namespace {

using Values = std::vector<InstrId>;

/// Reductions and scans of so many elements, or fewer, stay as they are: their errors are a few units in the last place.
constexpr int64_t kShort = 64;
/// The tree of a reduction stops when so many elements remain, and one reduction combines these.
constexpr int64_t kFew = 16;
/// A level of a reduction adds so many instructions at most, unless a single step has more.
constexpr int64_t kMostInstructions = 192;
constexpr int64_t kMostTogether = 8;

bool is_rounded(Type type) {
  const Kind kind = type_info(type).kind;
  return kind == Kind::Float || kind == Kind::Complex;
}

/// True if the result may be a number that no operand holds, but for its sign.
bool computes(const Module& module, const Instruction& instr) {
  switch (instr.op) {
    case Op::SELECT:
    case Op::MAXIMUM:
    case Op::MINIMUM:
    case Op::CLAMP:
    case Op::NEGATE:
    case Op::CONVERT:
    case Op::BITCAST_CONVERT:
    case Op::REAL:
    case Op::IMAG:
    case Op::COMPLEX:
      return false;
    case Op::ABS:
      return type_info(module[instr.operand(0)].shape.type()).kind == Kind::Complex;
    default:
      return true;
  }
}

struct Body {
  int64_t ops = 0;
  bool rounds = false;
};

/// Returns what a body of so many values is; nullopt if it is not elementwise, or its results have other types than its
/// arguments.
std::optional<Body> body_of(const Module& module, CompId computation, size_t count) {
  Body out;
  const Computation& c = module[computation];
  const Shape& result = module[c.root].shape;
  if (c.parameters.size() != 2 * count) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const Shape& type = result.is_tuple() ? result.element(i) : result;
    if (module[c.parameters[i]].shape != type || module[c.parameters[count + i]].shape != type) return std::nullopt;
  }
  for (InstrId id : c.order) {
    const Instruction& instr = module[id];
    if (instr.op == Op::PARAMETER || instr.op == Op::CONSTANT || instr.op == Op::TUPLE) continue;
    if (!is_elementwise(instr.op) || instr.op == Op::MAP || instr.shape.rank() != 0) return std::nullopt;
    ++out.ops;
    out.rounds |= computes(module, instr) && is_rounded(instr.shape.type());
  }
  return out;
}

class Tree {
 public:
  Tree(Builder& b, const Instruction& instr)
      : b_(b), instr_(instr), body_(instr.called[0]), count_(instr.operands.size() / 2) {}

  InstrId reduction() {
    Values values(instr_.operands.begin(), instr_.operands.begin() + static_cast<ptrdiff_t>(count_));
    // Reduced dimensions beside each other are one.
    const auto& reduced = instr_.as<DimensionsAttrs>().dimensions;
    Ints dims;
    Ints which;
    for (int d = 0; d < b_.rank(values[0]); ++d) {
      const int64_t size = b_.shape(values[0]).dim(d);
      const bool is_reduced = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
      const auto last = static_cast<int64_t>(dims.size()) - 1;
      if (is_reduced && !which.empty() && which.back() == last) {
        dims.back() *= size;
        continue;
      }
      if (is_reduced) which.push_back(last + 1);
      dims.push_back(size);
    }
    for (InstrId& v : values) v = b_.reshape(v, dims);
    const int64_t together =
        std::clamp<int64_t>(kMostInstructions / body_of(b_.module(), body_, count_)->ops, 2, kMostTogether);
    for (auto at = which.rbegin(); at != which.rend(); ++at) {
      while (length(values, *at) > 1 && elements(values, which) > kFew) level(values, *at, together);
    }
    Values operands = values;
    for (size_t i = 0; i < count_; ++i) operands.push_back(instr_.operand(count_ + i));
    auto* attrs = b_.module().make<DimensionsAttrs>();
    attrs->dimensions = b_.module().dims(which);
    return b_.op(Op::REDUCE, instr_.shape, operands, attrs, instr_.called);
  }

  InstrId scan(int64_t d, bool reverse) {
    Values values(instr_.operands.begin(), instr_.operands.begin() + static_cast<ptrdiff_t>(count_));
    scan(values, d, reverse);
    Values out;
    for (size_t i = 0; i < count_; ++i) out.push_back(b_.broadcast(instr_.operand(count_ + i), b_.dims(values[i]), {}));
    combine(out, values);
    return instr_.shape.is_tuple() ? b_.tuple(out) : out[0];
  }

 private:
  int64_t length(const Values& values, int64_t d) const { return b_.shape(values[0]).dim(static_cast<int>(d)); }

  int64_t elements(const Values& values, const Ints& which) const {
    int64_t out = 1;
    for (int64_t d : which) out *= length(values, d);
    return out;
  }

  /// Combines `left` with `right` into `left`.
  void combine(Values& left, const Values& right) {
    auto out = inline_combination(b_, body_, left, right, false);
    if (!out) return not_inlined();
    left = std::move(*out);
  }

  void not_inlined() {
    if (b_.status().ok()) b_.fail(internal_error("a body that is elementwise could not be inlined"));
  }

  InstrId position(InstrId like, int64_t d) { return b_.iota(Shape::array(Type::S32, b_.dims(like)), d); }

  void choose(InstrId where, Values& on_true, const Values& on_false) {
    for (size_t i = 0; i < on_true.size(); ++i) on_true[i] = b_.select(where, on_true[i], on_false[i]);
  }

  /// Pads dimension `d` with elements that no result depends on.
  void pad(Values& values, int64_t d, int64_t low, int64_t high) {
    for (InstrId& v : values) v = b_.pad_dim(v, b_.scalar(b_.type(v), 0), d, low, high);
  }

  /// Combines `together` neighbours along dimension `d`.
  void level(Values& values, int64_t d, int64_t together) {
    const int64_t n = length(values, d);
    together = std::min(together, n);
    const int64_t m = (n + together - 1) / together;
    const int64_t in_last = n - (m - 1) * together;
    std::vector<Values> parts;
    for (int64_t k = 0; k < together; ++k) {
      Values part = values;
      for (InstrId& v : part) v = b_.slice_dim(v, d, k, n, together);
      pad(part, d, 0, m - length(part, d));
      parts.push_back(std::move(part));
    }
    // Each value combines `span` elements of a block. Those from in_last on are missing in the last block.
    for (int64_t span = 1; parts.size() > 1; span *= 2) {
      std::vector<Values> next;
      for (size_t k = 0; k < parts.size(); k += 2) {
        Values part = parts[k];
        if (k + 1 < parts.size()) {
          combine(part, parts[k + 1]);
          if (static_cast<int64_t>(k + 1) * span >= in_last) {
            const InstrId at = position(part[0], d);
            choose(b_.compare(at, Direction::LT, b_.like_int(at, m - 1)), part, parts[k]);
          }
        }
        next.push_back(std::move(part));
      }
      parts = std::move(next);
    }
    values = std::move(parts[0]);
  }

  /// Scans along dimension `d`, from the other end if `reverse`, without an initial value.
  void scan(Values& values, int64_t d, bool reverse) {
    const int64_t n = length(values, d);
    if (n <= kShort) return short_scan(values, d, reverse);
    const int64_t odd = n % 2;
    const int64_t m = (n + odd) / 2;
    pad(values, d, reverse ? odd : 0, reverse ? 0 : odd);
    Values pairs = values;
    Values second = values;
    for (InstrId& v : pairs) v = b_.slice_dim(v, d, 0, 2 * m, 2);
    for (InstrId& v : second) v = b_.slice_dim(v, d, 1, 2 * m, 2);
    combine(pairs, second);
    scan(pairs, d, reverse);
    // One result of each pair is that of the scan of pairs. The other one combines an element with the pairs beside it.
    Values beside = pairs;
    for (InstrId& v : beside) v = reverse ? b_.slice_dim(v, d, 1, m) : b_.slice_dim(v, d, 0, m - 1);
    pad(beside, d, reverse ? 0 : 1, reverse ? 1 : 0);
    Ints apart = to_ints(b_.dims(values[0]));
    apart[static_cast<size_t>(d)] = m;
    Ints mapping;
    for (int64_t e = 0; e < static_cast<int64_t>(apart.size()); ++e) mapping.push_back(e <= d ? e : e + 1);
    apart.insert(apart.begin() + d + 1, 2);
    for (Values* v : {&pairs, &beside}) {
      for (InstrId& x : *v) x = b_.broadcast(x, apart, mapping);
    }
    for (InstrId& v : values) v = b_.reshape(v, apart);
    Values out = reverse ? values : beside;
    combine(out, reverse ? beside : values);
    const InstrId at = position(out[0], d);
    choose(b_.compare(at, Direction::NE, b_.like_int(at, reverse ? m - 1 : 0)), out, values);
    const InstrId half = position(out[0], d + 1);
    choose(b_.compare(half, Direction::EQ, b_.like_int(half, reverse ? 1 : 0)), out, pairs);
    Ints joined = to_ints(b_.dims(values[0]));
    joined.erase(joined.begin() + d + 1);
    joined[static_cast<size_t>(d)] = 2 * m;
    for (InstrId& v : out) v = b_.slice_dim(b_.reshape(v, joined), d, reverse ? odd : 0, reverse ? 2 * m : n);
    values = std::move(out);
  }

  /// Scans few elements by a reduce-window. Predicates beside the values say which of them exist, since the body may have no
  /// identity.
  void short_scan(Values& values, int64_t d, bool reverse) {
    const int64_t n = length(values, d);
    Module& m = b_.module();
    Values operands = values;
    operands.push_back(b_.fill_int(b_.shape(values[0]).with_type(Type::PRED), 1));
    std::vector<Shape> shapes;
    for (InstrId v : operands) shapes.push_back(b_.shape(v));
    for (InstrId v : values) operands.push_back(b_.scalar(b_.type(v), 0));
    operands.push_back(b_.scalar_int(Type::PRED, 0));
    auto* attrs = m.make<WindowAttrs>();
    const auto rank = static_cast<size_t>(b_.rank(values[0]));
    Ints size(rank, 1), low(rank, 0), high(rank, 0);
    size[static_cast<size_t>(d)] = n;
    (reverse ? high : low)[static_cast<size_t>(d)] = n - 1;
    attrs->window.size = m.dims(size);
    attrs->window.padding_low = m.dims(low);
    attrs->window.padding_high = m.dims(high);
    const CompId called[] = {existing_only(values)};
    const InstrId all = b_.op(Op::REDUCE_WINDOW, Shape::tuple(shapes), operands, attrs, called);
    for (size_t i = 0; i < count_; ++i) values[i] = b_.get(all, static_cast<int64_t>(i));
  }

  /// Returns the body for values that exist where a predicate is true.
  CompId existing_only(const Values& values) {
    Module& m = b_.module();
    const CompId id = m.add_computation(m.unique_computation_name(std::string(m[body_].name) + ".existing"));
    Values held, next;
    for (Values* side : {&held, &next}) {
      const auto first = static_cast<int64_t>(side == &held ? 0 : count_ + 1);
      for (size_t i = 0; i <= count_; ++i) {
        const Shape type = Shape::scalar(i == count_ ? Type::PRED : b_.type(values[i]));
        side->push_back(m.append_parameter(id, first + static_cast<int64_t>(i), type));
      }
    }
    Builder inner(m, id);
    const auto out = inline_combination(inner, body_, held, next, true);
    if (!out) return not_inlined(), body_;
    m[id].root = inner.tuple(*out);
    if (!inner.status().ok()) b_.fail(inner.status());
    return id;
  }

  Builder& b_;
  const Instruction& instr_;
  const CompId body_;
  const size_t count_;
};

/// A scan along a dimension, from the end if `reverse`.
struct ScanOf {
  int64_t dim = 0;
  bool reverse = false;
};

/// Returns the scan that a reduce-window of an array with dimensions `dims` is, if it is one.
std::optional<ScanOf> scan_of(const Window& w, std::span<const int64_t> dims) {
  std::optional<ScanOf> out;
  for (size_t d = 0; d < w.rank(); ++d) {
    const bool is_plain = w.stride_at(d) == 1 && w.base_dilation_at(d) == 1 && w.window_dilation_at(d) == 1;
    const int64_t size = w.size[d], low = w.low_at(d), high = w.high_at(d), n = dims[d];
    if (!is_plain) return std::nullopt;
    if (size == 1 && low == 0 && high == 0) continue;
    const bool is_forward = low >= n - 1 && size == low + 1 && high == 0;
    const bool is_backward = low == 0 && size >= n && high == size - 1;
    if (out || w.reversed_at(d) || !(is_forward || is_backward)) return std::nullopt;
    out = ScanOf{static_cast<int64_t>(d), !is_forward};
  }
  return out;
}

bool wanted(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  if ((instr.op != Op::REDUCE && instr.op != Op::REDUCE_WINDOW) || instr.operands.empty()) return false;
  const Shape& shape = module[instr.operand(0)].shape;
  for (InstrId o : instr.operands)
    if (module[o].shape.has_dynamic()) return false;
  if (!shape.is_array() || shape.element_count() == 0) return false;
  int64_t length = 1;
  if (instr.op == Op::REDUCE) {
    for (int64_t d : instr.as<DimensionsAttrs>().dimensions) length *= shape.dim(static_cast<int>(d));
  } else if (const auto scan = scan_of(instr.as<WindowAttrs>().window, shape.dims())) {
    length = shape.dim(static_cast<int>(scan->dim));
  }
  const size_t count = instr.operands.size() / 2;
  if (length <= kShort || combines_each_alone(module, instr.called[0])) return false;
  for (size_t i = 0; i < count; ++i) {
    const Shape& held = module[module[instr.called[0]].parameters[i]].shape;
    if (module[instr.operand(i)].shape.type() != held.type()) return false;
  }
  const auto body = body_of(module, instr.called[0], count);
  return body && body->rounds;
}

}  // namespace

Expected<bool> reduce_as_trees(Module& module, PassContext&) {
  COLLET_ASSIGN(const bool changed, rewrite_wanted(
                                        module, [&](InstrId id) { return wanted(module, id); },
                                        [](Builder& b, const Instruction& instr) {
                                          Tree tree(b, instr);
                                          if (instr.op == Op::REDUCE) return tree.reduction();
                                          const Instruction& operand = b.module()[instr.operand(0)];
                                          const auto scan =
                                              *scan_of(instr.as<WindowAttrs>().window, operand.shape.dims());
                                          return tree.scan(scan.dim, scan.reverse);
                                        }));
  if (changed) order_computations(module);
  return changed;
}

}  // namespace collet::hlo
