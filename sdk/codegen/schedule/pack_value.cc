// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/pack_value.h"

#include <algorithm>

#include "sdk/codegen/schedule/extract.h"
#include "sdk/codegen/schedule/lanes.h"

namespace collet::codegen {

void pack_value(KernelPlan& plan, ExprId value, const std::vector<size_t>& loops, int64_t padding,
                const MakeValue& make, KernelPlan& pack) {
  Kernel& k = plan.kernel;
  Expr load;
  load.op = ExprOp::kLoad;
  load.type = k.exprs[static_cast<size_t>(value)].type;
  Index to;
  Dims dims;
  int64_t step = 1;
  pack.kernel.loops.resize(loops.size());
  pack.kernel.outer = loops.size();
  for (size_t i = loops.size(); i-- > 0;) {
    const int64_t size = k.loops[loops[i]].size;
    pack.kernel.loops[i].size = size;
    load.index = add_scaled(load.index, loop_index(loops[i]), step);
    to = add_scaled(to, loop_index(i), step);
    dims.insert(dims.begin(), i + 1 == loops.size() ? size + padding : size);
    step *= dims.front();
  }
  Extract extract(plan, pack, [&](const Index& old) {
    Index r;
    r.constant = old.constant;
    r.terms = old.terms;
    for (size_t i = 0; i < loops.size(); ++i) r = add_scaled(r, loop_index(i), old.coefficient(loops[i]));
    return r;
  });
  const ExprId copy = extract.value(value);
  const ValueId packed = make(load.type, dims);
  pack.writes = {packed};
  pack.kernel.stores.push_back({extract.buffer(packed), copy, to, kNoExpr});
  load.buffer = k.buffers++;
  plan.buffers.push_back(packed);
  k.exprs[static_cast<size_t>(value)] = std::move(load);
}

namespace {

/// Returns the last loop over results on which load `t` depends, if load `t` is a factor of a sum of complex products
/// that reads its elements in order, as the other factor does; the number of loops otherwise. With this loop in the
/// lanes, the parts of a complex number are in separate lanes already, and each number of the other factor is loaded
/// once for all lanes.
size_t loop_of_factor(const Kernel& k, size_t t, const Kernel& scheduled) {
  const size_t none = k.loops.size();
  const Expr& e = k.exprs[t];
  if (k.outer + 1 != none || scheduled.lane_loop != k.outer || k.reductions.size() != 1) return none;
  const Reduction& r = k.reductions[0];
  if (r.combine != COLLET_COMBINE_ADD || r.condition != kNoExpr || e.index.coefficient(k.outer) != 1) return none;
  if (collet_type_kind(r.types[0]) != COLLET_KIND_COMPLEX || e.type != r.types[0]) return none;
  for (size_t l = k.outer; l-- > 0;) {
    if (e.index.coefficient(l) == 0) continue;
    const bool shared = std::any_of(k.exprs.begin(), k.exprs.end(), [&](const Expr& other) {
      return other.op == ExprOp::kLoad && other.type == e.type && other.index.coefficient(k.outer) != 0 &&
             other.index.coefficient(l) == 0;
    });
    const bool stored =
        std::all_of(k.stores.begin(), k.stores.end(), [&](const Store& s) { return s.index.coefficient(l) == 1; });
    return shared && stored && k.loops[l].size >= scheduled.lanes ? l : none;
  }
  return none;
}

}  // namespace

bool pack_strided(KernelPlan& plan, const Target& target, const MakeValue& make, KernelPlan& pack) {
  const Kernel& k = plan.kernel;
  if (k.reductions.empty() || k.sequential || k.scan || !k.updates.empty() || !plan.copies.empty()) return false;
  Kernel scheduled = k;
  choose_lanes(scheduled, target);
  if (scheduled.lanes == 1) return false;
  const bool outside = scheduled.lane_loop < k.outer;
  int64_t points = 1;
  for (const Loop& l : k.loops) points *= l.size;
  for (size_t t = 0; t < k.exprs.size(); ++t) {
    const Expr& e = k.exprs[t];
    if (e.op != ExprOp::kLoad || e.mask != kNoExpr || !e.index.terms.empty()) continue;
    const size_t lane_loop = outside ? scheduled.lane_loop : loop_of_factor(k, t, scheduled);
    if (lane_loop == k.loops.size()) continue;
    const int64_t apart = e.index.coefficient(lane_loop);
    if (apart >= -1 && apart <= 1) continue;
    std::vector<size_t> loops;
    int64_t elements = k.loops[lane_loop].size;
    for (size_t l = 0; l < k.loops.size(); ++l) {
      if (l == lane_loop || e.index.coefficient(l) == 0) continue;
      loops.push_back(l);
      elements *= k.loops[l].size;
    }
    if (elements > (outside ? target.tuning.packed_elements : target.tuning.packed_factor) ||
        points / elements < target.tuning.packed_reads)
      continue;
    loops.push_back(lane_loop);
    pack_value(plan, static_cast<ExprId>(t), loops, 0, make, pack);
    return true;
  }
  return false;
}

}  // namespace collet::codegen
