// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/split_reduction.h"
#include "sdk/codegen/kernel/choice.h"
#include "sdk/codegen/schedule/extract.h"
#include "sdk/codegen/schedule/lanes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace collet::codegen {
namespace {

/// Returns the bits of the operation's neutral element in this type. Returns false if there is none.
bool identity_of(uint32_t combine, uint32_t type, std::array<uint64_t, 2>& bits) {
  const bool f32 = type == COLLET_TYPE_F32;
  if (!f32 && type != COLLET_TYPE_F64) return false;
  double x = -0.0;
  switch (combine) {
    case COLLET_COMBINE_ADD:
      break;
    case COLLET_COMBINE_MULTIPLY:
      x = 1;
      break;
    case COLLET_COMBINE_MINIMUM:
      x = std::numeric_limits<double>::infinity();
      break;
    case COLLET_COMBINE_MAXIMUM:
      x = -std::numeric_limits<double>::infinity();
      break;
    default:
      return false;
  }
  bits = {f32 ? std::bit_cast<uint32_t>(static_cast<float>(x)) : std::bit_cast<uint64_t>(x), 0};
  return true;
}

int64_t product(const std::vector<Loop>& loops, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t l = first; l < last; ++l) n *= loops[l].size;
  return n;
}

class Splitter {
 public:
  Splitter(const KernelPlan& plan, const Target& target, const SplitLimits& limits, const MakeValue& make)
      : plan_(plan), k_(plan.kernel), target_(target), limits_(limits), make_(make) {}

  bool run(KernelPlan& parts, KernelPlan& rest) {
    if (!suits() || !choose()) return false;
    first(parts);
    second(rest);
    return true;
  }

 private:
  bool suits() {
    if (k_.reductions.empty() || k_.sequential || !k_.updates.empty() || !plan_.copies.empty()) return false;
    const std::vector<uint64_t> deps = loop_dependencies(k_);
    const uint64_t outer = (uint64_t{1} << k_.outer) - 1;
    for (const Store& s : k_.stores) {
      uint64_t d = deps[static_cast<size_t>(s.value)];
      for (auto& t : s.index.terms) d |= deps[static_cast<size_t>(t.first)];
      if (s.mask != kNoExpr || (d & ~outer) != 0) return false;
      for (size_t l = k_.outer; l < k_.loops.size(); ++l)  // a value of the row that is stored for all of its elements
        if (s.index.coefficient(l) != 0 && k_.loops[l].size > 1) return false;
    }
    std::vector<bool> reduced(k_.exprs.size(), false);
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const Expr& i = k_.exprs[k];
      bool r = i.op == ExprOp::kReduced || (i.mask != kNoExpr && reduced[static_cast<size_t>(i.mask)]);
      for (ExprId a : i.args) r = r || reduced[static_cast<size_t>(a)];
      for (auto& t : i.index.terms) r = r || reduced[static_cast<size_t>(t.first)];
      reduced[k] = r;
    }
    return std::all_of(k_.reductions.begin(), k_.reductions.end(), [&](const Reduction& r) {
      if (r.condition != kNoExpr || !may_be_split(r)) return false;
      return std::none_of(r.inputs.begin(), r.inputs.end(), [&](ExprId x) { return reduced[static_cast<size_t>(x)]; });
    });
  }

  /// True if parts of a reduction may be computed separately. The accumulator of a part starts with the identity of a
  /// known combination; with a body, it starts with the part's first element.
  bool may_be_split(const Reduction& r) {
    std::array<uint64_t, 2> bits;
    if (r.combine != COLLET_COMBINE_OTHER) {
      has_float_product_ |= is_float_product(r);
      has_sums_ |= r.combine == COLLET_COMBINE_ADD || r.combine == COLLET_COMBINE_MULTIPLY;
      return identity_of(r.combine, r.types[0], bits);
    }
    if (!limits_.has_lanes || points() < target_.tuning.split_choices) return false;
    has_body_ = true;
    return is_associative_choice(r.body, r.types);
  }

  int64_t points() const { return product(k_.loops, 0, k_.loops.size()); }

  /// Chooses the loop that is split, and the number of parts.
  bool choose() {
    rows_ = product(k_.loops, 0, k_.outer);
    if (limits_.parts != 0 && !has_body_) {
      if (points() < target_.tuning.split_points) return false;
      parts_ = limits_.parts;
      for (loop_ = k_.outer; loop_ < k_.loops.size() && k_.loops[loop_].size % parts_ != 0;) ++loop_;
      return loop_ < k_.loops.size();
    }
    if (points() < (has_body_ ? target_.tuning.split_choices : target_.tuning.split_points)) return false;
    Kernel scheduled = k_;
    if (limits_.has_lanes) choose_lanes(scheduled, target_);
    const int64_t lanes = scheduled.lane_loop < k_.outer ? scheduled.lanes : 1;
    if (rows_ / lanes >= limits_.few_rows) return false;
    // The order of the loops must be kept for a body, and for products of floats.
    const size_t last = has_body_ || has_float_product_ ? k_.outer + 1 : k_.loops.size();
    for (size_t l = k_.outer; l < last; ++l) {
      const int64_t size = k_.loops[l].size;
      // A maximum or a choice may combine elements twice, so its parts may overlap; a sum or a product may not.
      const auto fits = [&](int64_t n) { return size % n == 0 || (!has_sums_ && size / n >= 4 * n); };
      int64_t parts = std::min(target_.tuning.most_parts, size / 2);
      // Parts of the vectorised loop should have several vectors.
      if (!has_body_ && l == scheduled.lane_loop)
        parts = std::min(parts, size / (target_.tuning.part_vectors * scheduled.lanes));
      while (parts >= target_.tuning.fewest_parts && !fits(parts)) --parts;
      if (parts > parts_) {
        parts_ = parts;
        loop_ = l;
      }
    }
    return parts_ >= target_.tuning.fewest_parts;
  }

  /// Returns the linear number of a row, if the loops over rows begin at loop `loop`.
  Index row(size_t loop) const {
    Index r;
    int64_t step = 1;
    for (size_t l = k_.outer; l-- > 0;) {
      r = add_scaled(r, loop_index(loop + l), step);
      step *= k_.loops[l].size;
    }
    return r;
  }

  /// Builds the kernel that reduces each part; loop 0 counts the parts.
  void first(KernelPlan& out) {
    Kernel& k = out.kernel;
    const int64_t step = k_.loops[loop_].size / parts_;
    const int64_t length = k_.loops[loop_].size - (parts_ - 1) * step;
    k.loops = k_.loops;
    k.loops[loop_].size = length;
    k.loops.insert(k.loops.begin(), {parts_});
    k.outer = k_.outer + 1;
    const auto part = [&](const Index& old) {
      Index r = old;
      r.coefficients.insert(r.coefficients.begin(), old.coefficient(loop_) * step);
      return r;
    };
    Extract extract(plan_, out,
                    // Adding zero removes trailing zero coefficients.
                    [&](const Index& old) { return add_scaled(part(old), {}, 1); });
    Extract begin(plan_, out, [&](const Index& old) {
      Index r = part(old);
      if (r.coefficients.size() > k.outer) r.coefficients.resize(k.outer);
      return add_scaled(r, {}, 1);
    });
    for (size_t i = 0; i < k_.reductions.size(); ++i) {
      Reduction r = k_.reductions[i];
      for (size_t j = 0; j < r.types.size(); ++j) {
        Expr identity;
        identity.type = r.types[j];
        const bool known = identity_of(r.combine, r.types[j], identity.bits);
        r.inits[j] = known ? extract.add(identity) : begin.value(r.inputs[j]);
      }
      for (ExprId& x : r.inputs) x = extract.value(x);
      k.reductions.push_back(r);
      partial_.emplace_back();
      for (size_t j = 0; j < r.types.size(); ++j) {
        Expr result;
        result.op = ExprOp::kReduced;
        result.type = r.types[j];
        result.a = static_cast<int64_t>(j);
        result.b = static_cast<int64_t>(i);
        const ExprId value = extract.add(result);
        const ValueId partial = make_(r.types[j], {parts_, rows_});
        partial_.back().push_back(partial);
        out.writes.push_back(partial);
        k.stores.push_back({extract.buffer(partial), value, add_scaled(row(1), loop_index(0), rows_), kNoExpr});
      }
    }
  }

  /// Builds the kernel that combines the results of all parts and then computes what the original kernel did with the
  /// results.
  void second(KernelPlan& out) {
    Kernel& k = out.kernel;
    k.loops.assign(k_.loops.begin(), k_.loops.begin() + static_cast<int64_t>(k_.outer));
    k.loops.push_back({parts_});
    k.outer = k_.outer;
    Extract extract(plan_, out, [](const Index& old) { return old; });
    for (size_t i = 0; i < k_.reductions.size(); ++i) {
      Reduction r = k_.reductions[i];
      for (size_t j = 0; j < r.types.size(); ++j) {
        Expr load;
        load.op = ExprOp::kLoad;
        load.type = r.types[j];
        load.index = add_scaled(row(0), loop_index(k.outer), rows_);
        load.buffer = extract.buffer(partial_[i][j]);
        r.inputs[j] = extract.add(std::move(load));
        r.inits[j] = extract.value(r.inits[j]);
      }
      k.reductions.push_back(r);
    }
    for (Store s : k_.stores) {
      const ValueId target = plan_.buffers[s.buffer];
      s.value = extract.value(s.value);
      s.index = extract.index(s.index);
      s.buffer = extract.buffer(target);
      k.stores.push_back(s);
      out.writes.push_back(target);
    }
  }

  const KernelPlan& plan_;
  const Kernel& k_;
  const Target& target_;
  SplitLimits limits_;
  const MakeValue& make_;
  int64_t rows_ = 1;
  int64_t parts_ = 0;
  size_t loop_ = 0;
  bool has_body_ = false;
  bool has_float_product_ = false;
  bool has_sums_ = false;
  std::vector<std::vector<ValueId>> partial_;  ///< partial results by reduction and result
};

}  // namespace

bool split_reduction(const KernelPlan& plan, const Target& target, const SplitLimits& limits, const MakeValue& make,
                     KernelPlan& parts, KernelPlan& rest) {
  return Splitter(plan, target, limits, make).run(parts, rest);
}

}  // namespace collet::codegen
