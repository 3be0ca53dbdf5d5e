// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_contraction.h>

#include <vector>

#include "sdk/codegen/kernel/loop_sets.h"

namespace collet::codegen {
namespace {

const Expr& at(const Kernel& kernel, ExprId e) {
  return kernel.exprs[static_cast<size_t>(e)];
}

}  // namespace

std::optional<Contraction> find_contraction(const Kernel& kernel) {
  constexpr size_t kMostLoops = 64;  // bits of a set
  if (kernel.reductions.size() != 1 || kernel.scan || kernel.sequential || !kernel.updates.empty()) return std::nullopt;
  const Reduction& sum = kernel.reductions[0];
  if (sum.combine != COLLET_COMBINE_ADD || sum.condition != kNoExpr || sum.inputs.size() != 1) return std::nullopt;
  const Expr& product = at(kernel, sum.inputs[0]);
  const bool is_product = product.op == ExprOp::kOp && product.opcode == COLLET_OP_MULTIPLY;
  if (!is_product || product.type != sum.types[0] || kernel.loops.size() > kMostLoops) return std::nullopt;
  const std::vector<uint64_t> dependencies = loop_dependencies(kernel);
  const uint64_t outer = outer_loops(kernel);
  Contraction out;
  out.sum = &sum;
  out.a = product.args[0];
  out.b = product.args[1];
  out.of_a = dependencies[static_cast<size_t>(out.a)];
  out.of_b = dependencies[static_cast<size_t>(out.b)];
  out.rows = outer & out.of_a & ~out.of_b;
  out.columns = outer & out.of_b & ~out.of_a;
  out.batch = outer & ~out.rows & ~out.columns;
  out.depth = inner_loops(kernel);
  out.from_zero = sum.inits[0] == kNoExpr || is_zero_constant(at(kernel, sum.inits[0]));
  return out;
}

bool is_zero_constant(const Expr& e) {
  return e.op == ExprOp::kConstant && e.bits[0] == 0 && e.bits[1] == 0;
}

ExprId before_conversion(const Kernel& kernel, ExprId e, uint32_t type) {
  const Expr& expr = at(kernel, e);
  const bool converts = expr.op == ExprOp::kOp && expr.opcode == COLLET_OP_CONVERT && expr.type == type;
  return converts ? expr.args[0] : e;
}

const Expr* plain_load(const Kernel& kernel, ExprId e) {
  const Expr& expr = at(kernel, e);
  return expr.op == ExprOp::kLoad && expr.mask == kNoExpr && expr.index.terms.empty() ? &expr : nullptr;
}

bool stores_sum(const Kernel& kernel) {
  if (kernel.stores.size() != 1) return false;
  const Store& store = kernel.stores[0];
  const ExprId value = before_conversion(kernel, store.value, at(kernel, store.value).type);
  return store.mask == kNoExpr && store.index.terms.empty() && at(kernel, value).op == ExprOp::kReduced;
}

}  // namespace collet::codegen
