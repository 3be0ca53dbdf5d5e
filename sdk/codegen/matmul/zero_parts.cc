// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/matmul/zero_parts.h"

#include <collet/codegen/kernel_contraction.h>

#include <algorithm>

namespace collet::codegen {

void ZeroConditions::find() {
  if (l_.depth.size() < 2) return;
  const ExprId mask = zero_unless(l_.a.value);
  if (mask != kNoExpr) add(mask);
}

/// Returns a condition such that expression `t` is zero where the condition is false, or kNoExpr.
ExprId ZeroConditions::zero_unless(ExprId t) const {
  const Expr& e = l_.at(t);
  if (e.op == ExprOp::kLoad) return e.mask;
  if (e.op != ExprOp::kOp) return kNoExpr;
  if (e.opcode == COLLET_OP_CONVERT) return zero_unless(e.args[0]);
  return e.opcode == COLLET_OP_SELECT && is_zero_constant(l_.at(e.args[2])) ? e.args[0] : kNoExpr;
}

void ZeroConditions::add(ExprId t) {
  const Expr& e = l_.at(t);
  if (e.op == ExprOp::kOp && e.opcode == COLLET_OP_AND) {
    for (ExprId x : e.args) add(x);
  }
  if (e.op != ExprOp::kInRange || !e.index.terms.empty() || e.index.coefficient(l_.depth[0]) == 0) return;
  for (size_t l = 0; l < l_.kernel.loops.size(); ++l) {
    const bool used = l == l_.depth[0] || std::find(l_.rows.begin(), l_.rows.end(), l) != l_.rows.end();
    if (e.index.coefficient(l) != 0 && !used) return;
  }
  conditions_.push_back(&e);
}

int64_t ZeroConditions::rows_together() const {
  if (conditions_.empty()) return 0;
  int64_t together = 1;
  for (size_t i = l_.rows.size(); i-- > 0; together *= l_.size(l_.rows[i])) {
    for (const Expr* e : conditions_) {
      if (e->index.coefficient(l_.rows[i]) != 0) return together;
    }
  }
  return together;
}

std::pair<int64_t, int64_t> ZeroConditions::part_of(int64_t first, int64_t last) const {
  const int64_t steps = l_.size(l_.depth[0]);
  int64_t begin = 0;
  int64_t end = steps;
  for (const Expr* e : conditions_) {
    int64_t least = e->index.constant;
    int64_t most = e->index.constant;
    int64_t inside = 1;
    for (size_t i = l_.rows.size(); i-- > 0;) {
      const int64_t size = l_.size(l_.rows[i]);
      const int64_t c = e->index.coefficient(l_.rows[i]);
      const bool whole = last / inside - first / inside >= size || first / inside % size > last / inside % size;
      const int64_t from = whole ? 0 : first / inside % size;
      const int64_t to = whole ? size - 1 : last / inside % size;
      least += std::min(c * from, c * to);
      most += std::max(c * from, c * to);
      inside *= size;
    }
    const auto is_zero = [&](int64_t step) {
      const int64_t moved = e->index.coefficient(l_.depth[0]) * step;
      return most + moved < 0 || least + moved >= e->a;
    };
    while (begin + 1 < end && is_zero(begin)) ++begin;
    while (begin + 1 < end && is_zero(end - 1)) --end;
  }
  const int64_t inner = l_.extent(l_.depth) / steps;
  return {begin * inner, end * inner};
}

std::vector<std::pair<int64_t, int64_t>> parts_of_batches(const ZeroBorder& border, const Product& product) {
  const ProductOperand& a = product.a;
  const int64_t reach = (product.rows - 1) * a.row + a.run - 1;
  if (a.row < 0) return {};
  bool any = false;
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t place : offsets_of(a.batch, a.offset)) {
    const auto is_zero = [&](int64_t segment) {
      const int64_t from = place + a.segments[static_cast<size_t>(segment)];
      const int64_t to = from + reach;
      if (from < 0 || from / border.period != to / border.period) return false;
      return to % border.period / border.step < border.first ||
             from % border.period / border.step >= border.first + border.count;
    };
    int64_t begin = 0;
    auto end = static_cast<int64_t>(a.segments.size());
    while (begin + 1 < end && is_zero(begin)) ++begin;
    while (begin + 1 < end && is_zero(end - 1)) --end;
    any = any || end - begin < static_cast<int64_t>(a.segments.size());
    parts.emplace_back(begin, end);
  }
  if (!any) parts.clear();
  return parts;
}

KernelPlan finite_kernel(const Product& product, const BlockedProduct& blocked, ValueId b, ValueId finite) {
  const auto [least, most] = std::minmax_element(blocked.b_at.begin(), blocked.b_at.end());
  int64_t first = *least * blocked.b_matrix;
  int64_t end = (*most + 1) * blocked.b_matrix;
  if (!blocked.b_packed) {
    first = *least + blocked.b_offset;
    end = *most + blocked.b_offset + (blocked.depth - 1) * blocked.b_depth + blocked.columns;
  }
  KernelPlan plan;
  plan.buffers = {b, finite};
  plan.writes = {finite};
  Kernel& k = plan.kernel;
  k.loops = {{end - first}};
  k.buffers = 2;
  const auto add = [&](Expr e) {
    k.exprs.push_back(std::move(e));
    return static_cast<ExprId>(k.exprs.size() - 1);
  };
  const auto constant = [&](uint64_t bits) {
    Expr e;
    e.type = COLLET_TYPE_U32;
    e.bits = {bits, 0};
    return add(std::move(e));
  };
  const auto op = [&](uint32_t opcode, ExprId x, ExprId y) { return add(op_expr(opcode, COLLET_TYPE_U32, {x, y})); };
  Expr load;
  load.op = ExprOp::kLoad;
  load.type = COLLET_TYPE_U32;
  load.index = loop_index(0);
  load.index.constant = first;
  const ExprId bits = add(std::move(load));
  // All bits of the exponent are set in infinities and NaN, and only there.
  const ExprId all = constant(0x7f800000);
  ExprId exponent = op(COLLET_OP_AND, bits, all);
  if (product.packs == 2) {  // two factors of bf16
    const ExprId low = op(COLLET_OP_AND, bits, constant(0x7f80));
    exponent = op(COLLET_OP_MAXIMUM, exponent, op(COLLET_OP_MULTIPLY, low, constant(0x10000)));
  }
  k.reductions.push_back({COLLET_COMBINE_MAXIMUM, {exponent}, {kNoExpr}, {COLLET_TYPE_U32}, {}});
  Expr reduced;
  reduced.op = ExprOp::kReduced;
  reduced.type = COLLET_TYPE_U32;
  const ExprId largest = add(std::move(reduced));
  const ExprId is_less =
      add(op_expr(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {largest, all}, COLLET_DIRECTION_LT, COLLET_COMPARE_UNSIGNED));
  k.stores.push_back({1, is_less, {}, kNoExpr});
  return plan;
}

}  // namespace collet::codegen
