// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Rewrites transpose(dot(x, y)) into dot(y, x), if the transpose only swaps the dimensions of x and of y in the result,
// or reorders the batch dimensions. Gradients of products have this form. A product with further users stays, because
// it would otherwise be computed twice.

namespace collet::hlo {
namespace {

class Swapper {
 public:
  Swapper(Module& module, CompId c) : module_(module), users_(module, c), root_(module[c].root), rewriter_(module, c) {}

  Expected<bool> run() {
    for (InstrId id : rewriter_.instructions()) {
      const Instruction& instr = rewriter_.enter(id);
      const bool ordered = instr.extras && !instr.extras->control_predecessors.empty();
      const InstrId with = instr.op == Op::TRANSPOSE && !ordered ? swapped(instr) : InstrId::None;
      if (with == InstrId::None) {
        rewriter_.keep(id);
      } else {
        rewriter_.replace(id, with);
      }
    }
    const bool changed = rewriter_.finish();
    COLLET_TRY(rewriter_.builder().status());
    return changed;
  }

 private:
  // Returns the product whose result is that of the transpose, or None.
  InstrId swapped(const Instruction& transpose) {
    const InstrId id = transpose.operand(0);
    const Instruction& dot = module_[id];
    if (dot.op != Op::DOT || id == root_ || users_.users(id).size() != 1) return InstrId::None;
    if (dot.extras && !dot.extras->control_predecessors.empty()) return InstrId::None;
    const auto& attrs = dot.as<DotAttrs>();
    const auto order = transpose.as<DimensionsAttrs>().dimensions;
    const auto batch = static_cast<std::ptrdiff_t>(attrs.lhs_batch.size());
    const std::ptrdiff_t left =
        module_[dot.operand(0)].shape.rank() - batch - static_cast<std::ptrdiff_t>(attrs.lhs_contracting.size());
    // The dimensions of the result that are those of x and y must keep their order, or swap places as a whole.
    std::vector<int64_t> free(order.size() - static_cast<size_t>(batch));
    std::iota(free.begin(), free.end(), batch);
    const bool same = std::equal(free.begin(), free.end(), order.begin() + batch);
    std::rotate(free.begin(), free.begin() + left, free.end());
    if (!same && !std::equal(free.begin(), free.end(), order.begin() + batch)) return InstrId::None;
    if (std::any_of(order.begin(), order.begin() + batch, [&](int64_t d) { return d >= batch; })) return InstrId::None;
    DotAttrs out = attrs;
    std::vector<int64_t> lhs_batch;
    std::vector<int64_t> rhs_batch;
    for (std::ptrdiff_t i = 0; i < batch; ++i) {
      const auto d = static_cast<size_t>(order[static_cast<size_t>(i)]);
      lhs_batch.push_back(attrs.lhs_batch[d]);
      rhs_batch.push_back(attrs.rhs_batch[d]);
    }
    out.lhs_batch = module_.dims(lhs_batch);
    out.rhs_batch = module_.dims(rhs_batch);
    InstrId x = dot.operand(0);
    InstrId y = dot.operand(1);
    if (!same) {
      std::swap(x, y);
      std::swap(out.lhs_batch, out.rhs_batch);
      std::swap(out.lhs_contracting, out.rhs_contracting);
      std::vector<int64_t> precision(attrs.precision.begin(), attrs.precision.end());
      std::reverse(precision.begin(), precision.end());
      out.precision = module_.dims(precision);
    }
    Builder& b = rewriter_.builder();
    b.set_origin(&dot);
    return b.dot(x, y, out, dot.shape.type());
  }

  Module& module_;
  const UserMap users_;
  const InstrId root_;
  Rewriter rewriter_;
};

}  // namespace

Expected<bool> swap_dots(Module& module, PassContext&) {
  bool changed = false;
  for (CompId c : flow_computations(module)) {
    COLLET_ASSIGN(const bool did, Swapper(module, c).run());
    changed |= did;
  }
  return changed;
}

}  // namespace collet::hlo
