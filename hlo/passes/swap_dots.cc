// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Rewrites transpose(dot(x, y)) into dot(y, x), if the transpose only swaps the dimensions of x and of y in the result,
// or reorders the batch dimensions. Gradients of products have this form. If the transpose reorders other dimensions
// too, and makes the last dimension of x the innermost one, it is rewritten into transpose(dot(y, x)), which moves whole
// rows; attention with the heads beside the features has this form. A product with further users stays, because it
// would otherwise be computed twice.

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
    const bool swapped = std::equal(free.begin(), free.end(), order.begin() + batch);
    if (std::any_of(order.begin(), order.begin() + batch, [&](int64_t d) { return d >= batch; }) ||
        (!same && !swapped)) {
      const bool moves_rows = left > 0 && order.back() == batch + left - 1;
      return moves_rows ? with_rows(dot, {order.begin(), order.end()}, batch, left) : InstrId::None;
    }
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
    if (!same) return exchange(dot, out);
    Builder& b = rewriter_.builder();
    b.set_origin(&dot);
    return b.dot(dot.operand(0), dot.operand(1), out, dot.shape.type());
  }

  // Returns the product of the operands in exchanged order. `attrs` are those of the order that they have now.
  InstrId exchange(const Instruction& dot, DotAttrs attrs) {
    std::swap(attrs.lhs_batch, attrs.rhs_batch);
    std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
    std::vector<int64_t> precision(attrs.precision.begin(), attrs.precision.end());
    std::reverse(precision.begin(), precision.end());
    attrs.precision = module_.dims(precision);
    Builder& b = rewriter_.builder();
    b.set_origin(&dot);
    return b.dot(dot.operand(1), dot.operand(0), attrs, dot.shape.type());
  }

  // Returns the transpose, with `order`, of a product, computed from the exchanged product. The dimensions of the
  // product are `batch` ones of the batch, `left` ones of x, and those of y.
  InstrId with_rows(const Instruction& dot, std::vector<int64_t> order, std::ptrdiff_t batch, std::ptrdiff_t left) {
    const auto right = static_cast<std::ptrdiff_t>(order.size()) - batch - left;
    for (int64_t& d : order) {
      if (d >= batch) d += d < batch + left ? right : -left;
    }
    const InstrId product = exchange(dot, dot.as<DotAttrs>());
    return rewriter_.builder().transpose(product, order);
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
