// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/split_reduction.h"
#include "sdk/codegen/schedule/extract.h"
#include "sdk/codegen/schedule/lanes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace collet::codegen {
namespace {

constexpr int64_t kLeastPoints = int64_t{1} << 16;
constexpr int64_t kMostParts = 64;
constexpr int64_t kFewestParts = 16;

/// What leaves a result of this type and operation as it is.
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
  Splitter(const KernelPlan& plan, const SplitLimits& limits, const MakeValue& make)
      : plan_(plan), k_(plan.kernel), limits_(limits), make_(make) {}

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
    }
    std::vector<bool> reduced(k_.exprs.size(), false);
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const Expr& i = k_.exprs[k];
      bool r = i.op == ExprOp::kReduced || (i.mask != kNoExpr && reduced[static_cast<size_t>(i.mask)]);
      for (ExprId a : i.args) r = r || reduced[static_cast<size_t>(a)];
      for (auto& t : i.index.terms) r = r || reduced[static_cast<size_t>(t.first)];
      reduced[k] = r;
    }
    std::array<uint64_t, 2> bits;
    for (const Reduction& r : k_.reductions) {
      if (r.inputs.size() != 1 || r.condition != kNoExpr || !identity_of(r.combine, r.types[0], bits)) return false;
      if (reduced[static_cast<size_t>(r.inputs[0])]) return false;
    }
    return true;
  }

  /// The loop that is split, and in how many parts.
  bool choose() {
    rows_ = product(k_.loops, 0, k_.outer);
    if (rows_ * product(k_.loops, k_.outer, k_.loops.size()) < kLeastPoints) return false;
    Kernel scheduled = k_;
    if (limits_.vector_bits != 0) choose_lanes(scheduled, limits_.vector_bits);
    const int64_t lanes = scheduled.lane_loop < k_.outer ? scheduled.lanes : 1;
    if (rows_ / lanes >= limits_.few_rows) return false;
    for (size_t l = k_.outer; l < k_.loops.size(); ++l) {
      const int64_t size = k_.loops[l].size;
      int64_t parts = std::min(kMostParts, size / 2);
      while (parts >= kFewestParts && size % parts != 0) --parts;
      if (parts > parts_) {
        parts_ = parts;
        loop_ = l;
      }
    }
    return parts_ >= kFewestParts;
  }

  /// The number of a row, where the loops of rows begin at `loop`.
  Index row(size_t loop) const {
    Index r;
    int64_t step = 1;
    for (size_t l = k_.outer; l-- > 0;) {
      r = add_scaled(r, loop_index(loop + l), step);
      step *= k_.loops[l].size;
    }
    return r;
  }

  /// Part by part: loop 0 is the part.
  void first(KernelPlan& out) {
    Kernel& k = out.kernel;
    const int64_t length = k_.loops[loop_].size / parts_;
    k.loops = k_.loops;
    k.loops[loop_].size = length;
    k.loops.insert(k.loops.begin(), {parts_});
    k.outer = k_.outer + 1;
    Extract extract(plan_, out, [&](const Index& old) {
      Index r = old;
      r.coefficients.insert(r.coefficients.begin(), old.coefficient(loop_) * length);
      return add_scaled(r, {}, 1);  // without zeros at the end
    });
    for (size_t i = 0; i < k_.reductions.size(); ++i) {
      Reduction r = k_.reductions[i];
      r.inputs[0] = extract.value(r.inputs[0]);
      Expr identity;
      identity.type = r.types[0];
      identity_of(r.combine, r.types[0], identity.bits);
      r.inits[0] = extract.add(identity);
      k.reductions.push_back(r);
      Expr result;
      result.op = ExprOp::kReduced;
      result.type = r.types[0];
      result.b = static_cast<int64_t>(i);
      const ExprId value = extract.add(result);
      partial_.push_back(make_(r.types[0], {parts_, rows_}));
      out.writes.push_back(partial_.back());
      k.stores.push_back({extract.buffer(partial_.back()), value, add_scaled(row(1), loop_index(0), rows_), kNoExpr});
    }
  }

  /// All parts' results, and what was done with the whole ones.
  void second(KernelPlan& out) {
    Kernel& k = out.kernel;
    k.loops.assign(k_.loops.begin(), k_.loops.begin() + static_cast<int64_t>(k_.outer));
    k.loops.push_back({parts_});
    k.outer = k_.outer;
    Extract extract(plan_, out, [](const Index& old) { return old; });
    for (size_t i = 0; i < k_.reductions.size(); ++i) {
      Reduction r = k_.reductions[i];
      Expr load;
      load.op = ExprOp::kLoad;
      load.type = r.types[0];
      load.index = add_scaled(row(0), loop_index(k.outer), rows_);
      load.buffer = extract.buffer(partial_[i]);
      r.inputs[0] = extract.add(std::move(load));
      r.inits[0] = extract.value(r.inits[0]);
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
  SplitLimits limits_;
  const MakeValue& make_;
  int64_t rows_ = 1;
  int64_t parts_ = 0;
  size_t loop_ = 0;
  std::vector<ValueId> partial_;
};

}  // namespace

bool split_reduction(const KernelPlan& plan, const SplitLimits& limits, const MakeValue& make, KernelPlan& parts,
                     KernelPlan& rest) {
  return Splitter(plan, limits, make).run(parts, rest);
}

}  // namespace collet::codegen
