// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_transform.h>

#include <algorithm>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/matmul/matmul.h"

namespace collet::codegen {
namespace {

/// Finds which loops of a kernel run over the dimensions of the product. Dimensions of size 1 need no loop. Returns
/// false if the shapes differ.
bool match_loops(const Kernel& kernel, const Dims& dims, std::vector<size_t>& loop_of) {
  loop_of.assign(dims.size(), SIZE_MAX);
  size_t l = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    while (l < kernel.loops.size() && kernel.loops[l].size == 1) ++l;
    if (l == kernel.loops.size() || kernel.loops[l].size != dims[d]) return false;
    loop_of[d] = l++;
  }
  return std::all_of(kernel.loops.begin() + static_cast<int64_t>(l), kernel.loops.end(),
                     [](const Loop& loop) { return loop.size == 1; });
}

/// Returns the loops of some dimensions, without those of size 1.
std::vector<size_t> loops_of(const std::vector<size_t>& group, const std::vector<size_t>& loop_of) {
  std::vector<size_t> r;
  for (size_t d : group) {
    if (loop_of[d] != SIZE_MAX) r.push_back(loop_of[d]);
  }
  return r;
}

}  // namespace

bool make_epilogue(const KernelPlan& plan, const Product& product, Epilogue& out) {
  std::vector<size_t> loop_of;
  if (!match_loops(plan.kernel, product.dims, loop_of)) return false;
  std::vector<std::vector<size_t>> groups;
  for (size_t d : product.batch_loops) groups.push_back(loops_of({d}, loop_of));
  groups.push_back(loops_of(product.row_loops, loop_of));
  groups.push_back(loops_of(product.column_loops, loop_of));
  const Store store = plan.kernel.stores[0];
  const auto found = std::find(plan.buffers.begin(), plan.buffers.end(), product.result);
  if (found == plan.buffers.end()) return false;
  const uint32_t type = plan.kernel.exprs[static_cast<size_t>(store.value)].type;
  if (collet_type_kind(type) == COLLET_KIND_COMPLEX || collet_type_bytes(type) != collet_type_bytes(product.type)) {
    return false;
  }
  out.kernel = plan.kernel;
  out.kernel.stores.clear();
  if (!regroup_loops(out.kernel, groups)) return false;
  // The calls pass the position of the tile, so the loops' sizes do not matter, and products of other sizes can share
  // the epilogue.
  constexpr int64_t kAnySize = int64_t{1} << 40;
  for (Loop& l : out.kernel.loops) l.size = kAnySize;
  out.kernel.lane_loop = out.kernel.loops.size() - 1;
  out.product = static_cast<uint32_t>(found - plan.buffers.begin());
  for (Expr& i : out.kernel.exprs) {
    if (i.op == ExprOp::kLoad && i.buffer == out.product) i.index = {};
  }
  out.value = store.value;
  out.buffers = plan.buffers;
  out.target = plan.buffers[store.buffer];
  return true;
}

bool fits_registers(const Epilogue& epilogue, const Product& product, const Tuning& tuning) {
  // Loading memory that a partial vector has just written is slow.
  const bool partial = product.columns % product.lanes != 0 && product.columns <= 4 * product.panel();
  if ((product.depth > tuning.shallow_depth && !partial) || epilogue.kernel.exprs.size() > tuning.light_epilogue)
    return false;
  return std::none_of(epilogue.kernel.exprs.begin(), epilogue.kernel.exprs.end(), [](const Expr& i) {
    return i.op == ExprOp::kOp && (is_expensive(i.opcode) || i.opcode == COLLET_OP_DIVIDE);
  });
}

bool append_epilogue(const KernelPlan& plan, ValueId result, const Dims& dims, KernelPlan& product) {
  Kernel& k = product.kernel;
  if (k.stores.size() != 1 || k.stores[0].mask != kNoExpr || !k.updates.empty() || k.outer != dims.size()) return false;
  if (product.writes != std::vector<ValueId>{result}) return false;
  // The program's own operations are not contracted, but sums of products may be; one kernel cannot have both.
  const auto contracts = [](const Reduction& r) { return r.contract && compute_bytes(r.types[0]) > 4; };
  if (std::any_of(k.reductions.begin(), k.reductions.end(), contracts)) return false;
  std::vector<size_t> loop_of;
  if (!match_loops(plan.kernel, dims, loop_of)) return false;
  std::vector<std::vector<size_t>> groups;
  for (size_t d = 0; d < dims.size(); ++d) groups.push_back(loops_of({d}, loop_of));
  Kernel after = plan.kernel;
  if (!regroup_loops(after, groups)) return false;
  const ValueId target = plan.buffers[after.stores[0].buffer];
  const uint32_t slot = k.stores[0].buffer;
  product.buffers[slot] = target;
  product.writes = {target};
  // An operand of the epilogue may be overwritten as before, unless the product reads it too, since it does so at other
  // positions.
  product.in_place.clear();
  for (const auto& [from, to] : plan.in_place) {
    const bool is_factor = std::find(product.buffers.begin(), product.buffers.end(), from) != product.buffers.end();
    if (to == target && from != result && !is_factor) product.in_place.emplace_back(from, to);
  }
  std::vector<uint32_t> buffer;
  for (ValueId v : plan.buffers) {
    const auto known = std::find(product.buffers.begin(), product.buffers.end(), v);
    buffer.push_back(static_cast<uint32_t>(known - product.buffers.begin()));
    if (known == product.buffers.end() && v != result) product.buffers.push_back(v);
  }
  k.buffers = static_cast<uint32_t>(product.buffers.size());
  std::vector<ExprId> moved;
  auto at = [&](ExprId t) { return t == kNoExpr ? kNoExpr : moved[static_cast<size_t>(t)]; };
  for (Expr i : after.exprs) {
    if (i.op == ExprOp::kLoad && plan.buffers[i.buffer] == result) {
      moved.push_back(k.stores[0].value);
      continue;
    }
    for (ExprId& a : i.args) a = at(a);
    for (auto& term : i.index.terms) term.first = at(term.first);
    i.mask = at(i.mask);
    if (i.op == ExprOp::kLoad) i.buffer = buffer[i.buffer];
    moved.push_back(static_cast<ExprId>(k.exprs.size()));
    k.exprs.push_back(std::move(i));
  }
  k.stores[0].value = at(after.stores[0].value);
  return true;
}

}  // namespace collet::codegen
