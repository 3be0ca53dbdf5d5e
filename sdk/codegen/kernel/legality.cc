// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/legality.h"

#include <algorithm>
#include <vector>

#include "sdk/codegen/kernel/passes.h"

namespace collet::codegen {

const char* refusal_of_any_order(const Kernel& k) {
  const KernelPasses passes(k);
  if (!passes.lanes_inside() || k.reductions.empty() || k.scan || !k.updates.empty())
    return "lanes are not all reduced";
  if (k.scalable) return "vectors are scalable";
  const auto is_known = [](const Reduction& r) { return r.combine != COLLET_COMBINE_OTHER && r.condition == kNoExpr; };
  if (!std::all_of(k.reductions.begin(), k.reductions.end(), is_known)) return "a reduction has a body or a condition";
  if (std::any_of(k.reductions.begin(), k.reductions.end(), is_float_product))
    return "factors are multiplied in their order";
  if (std::any_of(k.stores.begin(), k.stores.end(), [&](const Store& s) { return passes.is_inner(s); }))
    return "there are stores in the inner loops";
  const auto deps = loop_dependencies(k);
  for (size_t i = 0; i < k.exprs.size(); ++i) {
    const Expr& e = k.exprs[i];
    if (e.op == ExprOp::kReduced || (deps[i] >> k.lane_loop & 1) == 0) continue;
    const bool loads = e.op == ExprOp::kLoad && e.type == COLLET_TYPE_BF16 && e.mask == kNoExpr &&
                       e.index.terms.empty() && e.index.coefficient(k.lane_loop) == 1;
    if (!loads && e.op != ExprOp::kOp) return "not all loads are of neighbours in bf16";
  }
  return passes.last() != 1 ? "there are several passes" : nullptr;
}

const char* refusal_of_strips(const Kernel& kernel) {
  if (kernel.reductions.empty() || kernel.scan || !kernel.updates.empty() || kernel.sequential)
    return "rows are not reduced";
  if (kernel.outer == 0 || kernel.outer + 1 != kernel.loops.size() || kernel.lane_loop + 1 != kernel.outer ||
      kernel.lanes == 1)
    return "the last outer loop is not in lanes, or there are several inner loops";
  const bool known = std::all_of(kernel.reductions.begin(), kernel.reductions.end(), [](const Reduction& r) {
    return r.combine != COLLET_COMBINE_OTHER && r.condition == kNoExpr &&
           collet_type_kind(r.types[0]) != COLLET_KIND_COMPLEX && collet_type_kind(r.types[0]) != COLLET_KIND_PRED;
  });
  if (!known) return "a reduction has a body or a condition, or is of complex numbers or pred";
  const auto deps = loop_dependencies(kernel);
  const uint64_t inner = uint64_t{1} << kernel.outer;
  std::vector<bool> reduced(kernel.exprs.size(), false);
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    const Expr& e = kernel.exprs[k];
    bool r = e.op == ExprOp::kReduced || (e.mask != kNoExpr && reduced[static_cast<size_t>(e.mask)]);
    for (ExprId a : e.args) r = r || reduced[static_cast<size_t>(a)];
    for (const auto& t : e.index.terms) r = r || reduced[static_cast<size_t>(t.first)];
    reduced[k] = r;
    if (r && e.op != ExprOp::kReduced && (deps[k] & inner) != 0) return "there are several passes";
    const bool apart = e.op == ExprOp::kLoad && (deps[k] & inner) != 0 && e.index.coefficient(kernel.lane_loop) != 0 &&
                       e.index.coefficient(kernel.lane_loop) != 1;
    if (apart) return "not all loads are of neighbours of a row";
  }
  const auto in_rows = [&](ExprId t) { return t != kNoExpr && (deps[static_cast<size_t>(t)] & inner) != 0; };
  const bool stores = std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) {
    return in_rows(s.value) || in_rows(s.mask) || s.index.coefficient(kernel.outer) != 0 ||
           std::any_of(s.index.terms.begin(), s.index.terms.end(), [&](const auto& t) { return in_rows(t.first); });
  });
  return stores ? "there are stores in the inner loop" : nullptr;
}

}  // namespace collet::codegen
