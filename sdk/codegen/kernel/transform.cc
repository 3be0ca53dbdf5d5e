// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/transform.h"

#include <algorithm>

namespace collet::codegen {
namespace {

/// Calls `visit` for every index expression of the kernel.
template <typename KernelType, typename Visit>
void for_each_index(KernelType& kernel, Visit visit) {
  for (auto& i : kernel.exprs) {
    if (i.op == ExprOp::kLoad || i.op == ExprOp::kIndex || i.op == ExprOp::kDivide || i.op == ExprOp::kModulo ||
        i.op == ExprOp::kInRange || i.op == ExprOp::kLookup) {
      visit(i.index);
    }
  }
  for (auto& s : kernel.stores) visit(s.index);
  for (auto& u : kernel.updates) visit(u.index);
}

bool can_merge(const Kernel& kernel, size_t loop) {
  if ((loop < kernel.outer) != (loop + 1 < kernel.outer)) return false;
  bool ok = true;
  for_each_index(kernel, [&](const Index& i) {
    ok = ok && i.coefficient(loop) == i.coefficient(loop + 1) * kernel.loops[loop + 1].size;
  });
  return ok;
}

void erase_loop(Kernel& kernel, size_t loop) {
  for_each_index(kernel, [&](Index& i) {
    if (loop < i.coefficients.size()) i.coefficients.erase(i.coefficients.begin() + static_cast<int64_t>(loop));
    while (!i.coefficients.empty() && i.coefficients.back() == 0) i.coefficients.pop_back();
  });
  kernel.loops.erase(kernel.loops.begin() + static_cast<int64_t>(loop));
  if (loop < kernel.outer) --kernel.outer;
}

/// The integer that an element of `type` is moved as; 0 where it stays what it is.
uint32_t moved_as(uint32_t type) {
  if (type == COLLET_TYPE_C64) return COLLET_TYPE_U64;
  if (!is_narrow_float(type)) return 0;
  switch (type_bits(type)) {
    case 16:
      return COLLET_TYPE_U16;
    case 8:
      return COLLET_TYPE_U8;
    default:
      return 0;
  }
}

/// Whether an expression passes elements of such types on, or has none.
bool only_moves(const Kernel& kernel, const Expr& e) {
  if (e.op == ExprOp::kLoad || e.op == ExprOp::kConstant) return true;
  if (e.op == ExprOp::kOp && e.opcode == COLLET_OP_SELECT) return true;
  if (moved_as(e.type) != 0) return false;
  return std::none_of(e.args.begin(), e.args.end(),
                      [&](ExprId a) { return moved_as(kernel.exprs[static_cast<size_t>(a)].type) != 0; });
}

}  // namespace

void move_as_integers(Kernel& kernel) {
  if (!kernel.reductions.empty() || kernel.scan || !kernel.updates.empty()) return;
  for (const Expr& e : kernel.exprs) {
    if (!only_moves(kernel, e)) return;
  }
  for (Expr& e : kernel.exprs) {
    if (const uint32_t type = moved_as(e.type); type != 0) e.type = type;
  }
}

void collapse_loops(Kernel& kernel, size_t first) {
  for (size_t l = kernel.loops.size(); l-- > first;) {
    const bool scanned = kernel.scan && l == kernel.outer;  // has no meaning without its loop
    if (kernel.loops[l].size == 1 && !scanned) erase_loop(kernel, l);
  }
  for (size_t l = kernel.loops.size(); l-- > first + 1;) {
    if (!can_merge(kernel, l - 1)) continue;
    kernel.loops[l].size *= kernel.loops[l - 1].size;
    erase_loop(kernel, l - 1);
  }
}

bool regroup_loops(Kernel& kernel, const std::vector<std::vector<size_t>>& groups) {
  bool ok = true;
  std::vector<Loop> loops;
  for (const auto& group : groups) {
    int64_t size = 1;
    for (size_t l : group) size *= kernel.loops[l].size;
    loops.push_back({size});
  }
  for_each_index(kernel, [&](Index& i) {
    Index r = i;
    r.coefficients.assign(groups.size(), 0);
    for (size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].empty()) continue;
      const int64_t step = i.coefficient(groups[g].back());
      int64_t inside = 1;
      for (size_t k = groups[g].size(); k-- > 0;) {
        ok = ok && i.coefficient(groups[g][k]) == step * inside;
        inside *= kernel.loops[groups[g][k]].size;
      }
      r.coefficients[g] = step;
    }
    while (!r.coefficients.empty() && r.coefficients.back() == 0) r.coefficients.pop_back();
    i = r;
  });
  kernel.loops = loops;
  kernel.outer = loops.size();
  return ok;
}

}  // namespace collet::codegen
