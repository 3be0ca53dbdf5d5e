// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/used_range.h"

#include <collet/attributes.h>

#include <algorithm>
#include <optional>

#include "sdk/codegen/base/floor_quotient.h"

namespace collet::codegen {
namespace {

LoopRange intersection(LoopRange a, LoopRange b) {
  return {std::max(a.first, b.first), std::min(a.end, b.end)};
}

/// Returns the smallest range that has all values of both.
LoopRange hull(LoopRange a, LoopRange b) {
  if (a.first >= a.end) return b;
  if (b.first >= b.end) return a;
  return {std::min(a.first, b.first), std::max(a.end, b.end)};
}

class RangeFinder {
 public:
  RangeFinder(const Kernel& kernel, size_t loop, const std::vector<LoopRange>& ranges,
              const std::vector<std::optional<Sequence>>& sequences)
      : k_(kernel), loop_(loop), ranges_(ranges), sequences_(sequences) {}

  LoopRange run(uint32_t buffer) {
    LoopRange used;
    std::vector<bool> depends(k_.exprs.size(), false);
    const auto any = [&](ExprId id) { return id != kNoExpr && depends[static_cast<size_t>(id)]; };
    const auto any_of = [&](const std::vector<ExprId>& ids) { return std::any_of(ids.begin(), ids.end(), any); };
    const auto any_term = [&](const Index& i) {
      return std::any_of(i.terms.begin(), i.terms.end(), [&](const auto& t) { return any(t.first); });
    };
    for (size_t i = 0; i < k_.exprs.size(); ++i) {
      const Expr& e = k_.exprs[i];
      if (e.op == ExprOp::kOp && e.opcode == COLLET_OP_SELECT && !any(e.args[0])) {
        for (const bool second : {false, true}) {
          if (any(e.args[second ? 2 : 1])) used = hull(used, where(e.args[0], !second));
        }
        continue;
      }
      depends[i] = (e.op == ExprOp::kLoad && e.buffer == buffer) || any_of(e.args) || any(e.mask) || any_term(e.index);
    }
    const auto reads = [&](const Reduction& r) { return any_of(r.inputs) || any_of(r.inits) || any(r.condition); };
    const bool elsewhere =
        k_.scan || !k_.updates.empty() || std::any_of(k_.reductions.begin(), k_.reductions.end(), reads) ||
        std::any_of(k_.stores.begin(), k_.stores.end(),
                    [&](const Store& s) { return any(s.value) || any(s.mask) || any_term(s.index); });
    return elsewhere ? ranges_[loop_] : used;
  }

  std::optional<ElsewhereConstant> constant(ExprId expr) {
    std::vector<std::optional<ElsewhereConstant>> known(static_cast<size_t>(expr) + 1);
    for (size_t i = 0; i < known.size(); ++i) known[i] = constant_of(k_.exprs[i], known);
    return known.back();
  }

 private:
  std::optional<ElsewhereConstant> constant_of(const Expr& e,
                                               const std::vector<std::optional<ElsewhereConstant>>& known) const {
    const auto of = [&](size_t i) -> const std::optional<ElsewhereConstant>& {
      return known[static_cast<size_t>(e.args[i])];
    };
    if (e.op == ExprOp::kConstant) return ElsewhereConstant{{}, e.bits};
    if (e.op != ExprOp::kOp) return std::nullopt;
    if (e.opcode == COLLET_OP_SELECT) {
      const LoopRange chosen[] = {where(e.args[0], true), where(e.args[0], false)};
      std::optional<ElsewhereConstant> out;
      for (const size_t side : {1, 0}) {
        // The select is this side's constant unless it chooses the other side, or this side differs from its constant.
        if (!of(side + 1)) continue;
        const bool is_same = of(2 - side) && of(2 - side)->value == of(side + 1)->value;
        LoopRange range = chosen[1 - side];
        if (is_same) range = intersection(range, of(2 - side)->range);
        range = hull(range, intersection(chosen[side], of(side + 1)->range));
        if (!out || range.end - range.first < out->range.end - out->range.first) out = {range, of(side + 1)->value};
      }
      return out;
    }
    ElsewhereConstant out;
    std::vector<uint32_t> types;
    std::vector<Element> values;
    for (size_t i = 0; i < e.args.size(); ++i) {
      if (!of(i)) return std::nullopt;
      out.range = hull(out.range, of(i)->range);
      types.push_back(at(e.args[i]).type);
      values.push_back(of(i)->value);
    }
    if (!evaluate_element({e.opcode, e.type, types, values, e.a, e.b}, out.value)) return std::nullopt;
    return out;
  }

  const Expr& at(ExprId id) const { return k_.exprs[static_cast<size_t>(id)]; }

  /// Returns a range outside of which the pred `id` never equals `value`.
  LoopRange where(ExprId id, bool value) const {
    const LoopRange all = ranges_[loop_];
    const Expr& e = at(id);
    if (e.op == ExprOp::kConstant) return ((e.bits[0] & 1) != 0) == value ? all : LoopRange{};
    if (e.op != ExprOp::kOp) return all;
    switch (e.opcode) {
      case COLLET_OP_NOT:
        return where(e.args[0], !value);
      case COLLET_OP_AND:
      case COLLET_OP_OR: {
        const LoopRange a = where(e.args[0], value);
        const LoopRange b = where(e.args[1], value);
        return (e.opcode == COLLET_OP_AND) == value ? intersection(a, b) : hull(a, b);
      }
      case COLLET_OP_COMPARE:
        return where_compared(e, value);
      default:
        return all;
    }
  }

  LoopRange where_compared(const Expr& e, bool value) const {
    const LoopRange all = ranges_[loop_];
    const std::optional<Index> x = affine(e.args[0]);
    const std::optional<Index> y = affine(e.args[1]);
    if (!x || !y) return all;
    const Index d = add_scaled(*x, *y, -1);
    const auto at_least = [&](int64_t sign, int64_t least) {
      Index scaled = add_scaled({}, d, sign);
      scaled.constant -= least;
      return where_not_negative(scaled);
    };
    switch (static_cast<uint32_t>(e.a)) {
      case COLLET_DIRECTION_GE:
        return value ? at_least(1, 0) : at_least(-1, 1);
      case COLLET_DIRECTION_GT:
        return value ? at_least(1, 1) : at_least(-1, 0);
      case COLLET_DIRECTION_LE:
        return value ? at_least(-1, 0) : at_least(1, 1);
      case COLLET_DIRECTION_LT:
        return value ? at_least(-1, 1) : at_least(1, 0);
      case COLLET_DIRECTION_EQ:
        return value ? intersection(at_least(1, 0), at_least(-1, 0)) : all;
      case COLLET_DIRECTION_NE:
        return value ? all : intersection(at_least(1, 0), at_least(-1, 0));
      default:
        return all;
    }
  }

  /// Returns the range in which `d` is 0 or more for some values of the other loops.
  LoopRange where_not_negative(const Index& d) const {
    const LoopRange all = ranges_[loop_];
    int64_t most = d.constant;
    for (size_t l = 0; l < k_.loops.size(); ++l) {
      const int64_t step = d.coefficient(l);
      if (l != loop_) most += step * (step > 0 ? ranges_[l].end - 1 : ranges_[l].first);
    }
    const int64_t step = d.coefficient(loop_);
    if (step == 0) return most >= 0 ? all : LoopRange{};
    // step * i >= -most
    if (step > 0) return intersection(all, {-floor_quotient(most, step), all.end});
    return intersection(all, {all.first, floor_quotient(most, -step) + 1});
  }

  /// Returns an integer expression as an affine index if it is one and no intermediate value overflows.
  std::optional<Index> affine(ExprId id) const {
    const Expr& e = at(id);
    if (e.op == ExprOp::kIndex) return fits(e.index, COLLET_TYPE_S64);
    if (e.type != COLLET_TYPE_S32 && e.type != COLLET_TYPE_S64) return std::nullopt;
    if (e.op == ExprOp::kLoad) {
      const bool known = e.buffer < sequences_.size() && sequences_[e.buffer] && e.mask == kNoExpr;
      if (!known || !e.index.terms.empty()) return std::nullopt;
      Index i;
      i.constant = sequences_[e.buffer]->first;
      return fits(add_scaled(i, e.index, sequences_[e.buffer]->step), e.type);
    }
    if (e.op == ExprOp::kConstant) {
      Index i;
      i.constant = e.type == COLLET_TYPE_S32 ? static_cast<int32_t>(e.bits[0]) : static_cast<int64_t>(e.bits[0]);
      return fits(i, e.type);
    }
    if (e.op != ExprOp::kOp) return std::nullopt;
    if (e.opcode == COLLET_OP_CONVERT) {
      const std::optional<Index> from = affine(e.args[0]);
      return from ? fits(*from, e.type) : std::nullopt;
    }
    if (e.opcode != COLLET_OP_ADD && e.opcode != COLLET_OP_SUBTRACT) return std::nullopt;
    const std::optional<Index> x = affine(e.args[0]);
    const std::optional<Index> y = affine(e.args[1]);
    if (!x || !y) return std::nullopt;
    return fits(add_scaled(*x, *y, e.opcode == COLLET_OP_ADD ? 1 : -1), e.type);
  }

  /// Returns the index if its values fit into `type`, and are so small that sums of a few of them cannot overflow s64.
  std::optional<Index> fits(const Index& i, uint32_t type) const {
    constexpr int64_t kLarge = int64_t{1} << 40;
    const int64_t limit = type == COLLET_TYPE_S32 ? INT32_MAX : kLarge;
    if (!i.terms.empty() || i.constant > limit || i.constant < -limit) return std::nullopt;
    int64_t least = i.constant;
    int64_t most = i.constant;
    for (size_t l = 0; l < k_.loops.size(); ++l) {
      const int64_t step = i.coefficient(l);
      if (step > kLarge >> 20 || step < -(kLarge >> 20) || k_.loops[l].size > kLarge >> 20) return std::nullopt;
      (step > 0 ? most : least) += step * (k_.loops[l].size - 1);
    }
    if (least < -limit || most > limit) return std::nullopt;
    return i;
  }

  const Kernel& k_;
  const size_t loop_;
  const std::vector<LoopRange>& ranges_;
  const std::vector<std::optional<Sequence>>& sequences_;
};

}  // namespace

LoopRange used_range(const Kernel& kernel, uint32_t buffer, size_t loop, const std::vector<LoopRange>& ranges,
                     const std::vector<std::optional<Sequence>>& sequences) {
  return RangeFinder(kernel, loop, ranges, sequences).run(buffer);
}

std::optional<ElsewhereConstant> elsewhere_constant(const Kernel& kernel, ExprId expr, size_t loop,
                                                    const std::vector<LoopRange>& ranges) {
  return RangeFinder(kernel, loop, ranges, {}).constant(expr);
}

}  // namespace collet::codegen
