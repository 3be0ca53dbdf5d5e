// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <optional>

#include "hlo/base/float_format.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/refine_gamma.h"
#include "hlo/passes/rewriter.h"

// Rewrites computations in which an intermediate value loses what the result needs.
//
// - exp(|x|) * y, where exp(|x|) overflows and the product need not: Bessel functions are computed from scaled ones so.
//   It becomes exp(min(|x|, m)) * y * exp(max(|x| - m, 0)), where m is the largest integer whose exponential is finite.
//   The last factor is 1 for |x| <= m, where the result keeps its bits. Where y is 0 the result is 0 up to |x| = 2 m, and not infinity times 0.
// - log(c * (k - y)) with c * k = 1, where y may be small: the logarithm of a distribution function is computed so. It
//   becomes log1p(-c * y). The difference, or sum, may be one of several values between which selects choose. Then the
//   logarithm of the others, with k in place of this one, is added, which is 0 where this one is chosen. A difference
//   with further users stays, because a program may correct for its rounding (log(u) * x / (u - 1) with u = 1 + x).
// - select(|t| < |s| * c, s, s + t * a + t * b), where |s| * c underflows to 0: a series that ends at a negligible term.
//   Where t is 0, a and b may be infinite. |t| <= |s| * c ends the series there.
// - lgamma and digamma near their zeros: see refine_gamma.h.

namespace collet::hlo {
namespace {

// The most selects between a logarithm and the differences that it may be taken of.
constexpr int kMostSelects = 8;

class Refiner {
 public:
  Refiner(Module& module, CompId c) : module_(module), users_(module, c), root_(module[c].root), rewriter_(module, c) {}

  Expected<bool> run() {
    for (InstrId id : rewriter_.instructions()) {
      const Instruction& instr = rewriter_.enter(id);
      const bool ordered = instr.extras && !instr.extras->control_predecessors.empty();
      if (!is_float(instr.shape.type()) || type_info(instr.shape.type()).bits < 16 || ordered) {
        rewriter_.keep(id);
      } else if (instr.op == Op::ADD || instr.op == Op::SUBTRACT) {
        // What replaces the sum chooses between it and another value.
        rewriter_.keep(id);
        if (!is_refined_gamma(id)) rewriter_.replace(id, refine_gamma(rewriter_.builder(), id));
      } else if (const InstrId with = refined(instr); with != InstrId::None) {
        rewriter_.replace(id, with);
      } else {
        rewriter_.keep(id);
      }
    }
    const bool changed = rewriter_.finish();
    COLLET_TRY(rewriter_.builder().status());
    return changed;
  }

 private:
  /// A value that is `kept` where `rest` is 0, and `kept` + `rest` with c * `kept` = 1 elsewhere.
  struct Split {
    InstrId kept, rest;
  };

  InstrId refined(const Instruction& instr) {
    switch (instr.op) {
      case Op::MULTIPLY:
        return product(instr);
      case Op::LOG:
        return logarithm(instr);
      case Op::SELECT:
        return series(instr);
      default:
        return InstrId::None;
    }
  }

  /// True if refine_gamma made the only user of this sum.
  bool is_refined_gamma(InstrId id) const {
    const auto users = users_.users(id);
    if (users.size() != 1 || module_[users[0]].op != Op::SELECT || module_[users[0]].operand(2) != id) return false;
    const Instruction& near = module_[module_[users[0]].operand(0)];
    const Literal* end = near.op == Op::COMPARE ? splat_value(module_, near.operand(1)) : nullptr;
    return end && (end->as_double(0) == kEndOfLgammaSeries || end->as_double(0) == kEndOfDigammaSeries);
  }

  InstrId product(const Instruction& instr) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Instruction& e = module_[instr.operand(i)];
      if (e.op != Op::EXPONENTIAL || module_[e.operand(0)].op != Op::ABS) continue;
      Builder& b = rewriter_.builder();
      const InstrId magnitude = e.operand(0);
      const FloatFormat format = float_format(static_cast<uint32_t>(instr.shape.type()));
      const double most = std::floor((format.bias + 1) * std::log(2.0));
      const InstrId bounded = b.unary(Op::EXPONENTIAL, b.min(magnitude, b.like(magnitude, most)));
      const InstrId beyond = b.max(b.sub(magnitude, b.like(magnitude, most)), b.like(magnitude, 0));
      const InstrId y = instr.operand(1 - i);
      return b.mul(i == 0 ? b.mul(bounded, y) : b.mul(y, bounded), b.unary(Op::EXPONENTIAL, beyond));
    }
    return InstrId::None;
  }

  InstrId logarithm(const Instruction& instr) {
    Builder& b = rewriter_.builder();
    InstrId value = instr.operand(0);
    double factor = 1;
    if (const Instruction& x = module_[value]; x.op == Op::MULTIPLY) {
      for (const size_t i : {size_t{0}, size_t{1}}) {
        const Literal* c = splat_value(module_, x.operand(i));
        if (!c) continue;
        factor = c->as_double(0);
        value = x.operand(1 - i);
        break;
      }
    }
    const auto scaled = [&](InstrId x) { return factor == 1 ? x : b.mul(x, b.like(x, factor)); };
    if (!has_difference(value, factor, kMostSelects)) return InstrId::None;
    const bool chosen = module_[value].op == Op::SELECT;
    const Split parts = split(value, factor, kMostSelects);
    const InstrId near_one = b.unary(Op::LOG_PLUS_ONE, scaled(parts.rest));
    return chosen ? b.add(b.unary(Op::LOG, scaled(parts.kept)), near_one) : near_one;
  }

  /// If `id` is k + y or k - y with factor * k = 1, returns the position of y.
  std::optional<size_t> small_operand(InstrId id, double factor) const {
    const Instruction& x = module_[id];
    if ((x.op != Op::ADD && x.op != Op::SUBTRACT) || users_.users(id).size() != 1 || id == root_) return std::nullopt;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Literal* k = splat_value(module_, x.operand(i));
      if (!k) continue;
      const double sign = x.op == Op::SUBTRACT && i == 1 ? -1 : 1;
      if (sign * k->as_double(0) * factor == 1) return 1 - i;
    }
    return std::nullopt;
  }

  bool has_difference(InstrId id, double factor, int most) const {
    const Instruction& x = module_[id];
    if (x.op != Op::SELECT) return small_operand(id, factor).has_value();
    return most > 0 &&
           (has_difference(x.operand(1), factor, most - 1) || has_difference(x.operand(2), factor, most - 1));
  }

  Split split(InstrId id, double factor, int most) {
    Builder& b = rewriter_.builder();
    if (!has_difference(id, factor, most)) return {id, b.like(id, 0)};
    const Instruction x = module_[id];
    if (x.op == Op::SELECT) {
      const Split on_true = split(x.operand(1), factor, most - 1);
      const Split on_false = split(x.operand(2), factor, most - 1);
      return {b.select(x.operand(0), on_true.kept, on_false.kept), b.select(x.operand(0), on_true.rest, on_false.rest)};
    }
    const size_t small = *small_operand(id, factor);
    const InstrId y = x.operand(small);
    return {b.like(id, 1 / factor), x.op == Op::SUBTRACT && small == 1 ? b.neg(y) : y};
  }

  InstrId series(const Instruction& instr) {
    const InstrId sum = instr.operand(1);
    const Instruction& less = module_[instr.operand(0)];
    if (less.op != Op::COMPARE || less.as<CompareAttrs>().direction != Direction::LT) return InstrId::None;
    const Instruction &last = module_[less.operand(0)], &least = module_[less.operand(1)];
    if (last.op != Op::ABS || least.op != Op::MULTIPLY) return InstrId::None;
    const InstrId term = last.operand(0);
    const auto is_negligible = [&](InstrId magnitude, InstrId factor) {
      const Literal* c = splat_value(module_, factor);
      const Instruction& x = module_[magnitude];
      if (!c || x.op != Op::ABS || x.operand(0) != sum) return false;
      const double smallest = instr.shape.type() == Type::F64
                                  ? std::numeric_limits<double>::denorm_min()
                                  : static_cast<double>(std::numeric_limits<float>::denorm_min());
      return c->as_double(0) >= 0 && c->as_double(0) <= smallest;
    };
    if (!is_negligible(least.operand(0), least.operand(1)) && !is_negligible(least.operand(1), least.operand(0)))
      return InstrId::None;
    const Instruction& more = module_[instr.operand(2)];
    if (more.op != Op::ADD || !has_factor(more.operand(1), term)) return InstrId::None;
    const Instruction& most = module_[more.operand(0)];
    if (most.op != Op::ADD || most.operand(0) != sum || !has_factor(most.operand(1), term)) return InstrId::None;
    Builder& b = rewriter_.builder();
    return b.select(b.compare(less.operand(0), Direction::LE, less.operand(1)), sum, instr.operand(2));
  }

  /// True if `id` is a product or a quotient with `factor` above.
  bool has_factor(InstrId id, InstrId factor) const {
    constexpr int kMostFactors = 8;
    for (int i = 0; i < kMostFactors && id != factor; ++i) {
      const Instruction& x = module_[id];
      if (x.op != Op::MULTIPLY && x.op != Op::DIVIDE) return false;
      id = x.op == Op::MULTIPLY && x.operand(1) == factor ? factor : x.operand(0);
    }
    return id == factor;
  }

  Module& module_;
  const UserMap users_;
  const InstrId root_;
  Rewriter rewriter_;
};

}  // namespace

Expected<bool> refine_functions(Module& module, PassContext&) {
  bool changed = false;
  for (CompId c : flow_computations(module)) {
    COLLET_ASSIGN(const bool did, Refiner(module, c).run());
    changed |= did;
  }
  return changed;
}

}  // namespace collet::hlo
