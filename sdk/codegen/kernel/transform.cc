// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_transform.h>

#include <algorithm>

#include "sdk/codegen/base/element_type.h"

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

/// Replaces terms that are themselves kIndex expressions by the sums that they stand for.
void inline_indices(Kernel& kernel) {
  for_each_index(kernel, [&](Index& i) {
    Index sum = i;
    sum.terms.clear();
    for (const auto& [term, step] : i.terms) {
      const Expr& e = kernel.exprs[static_cast<size_t>(term)];
      if (e.op == ExprOp::kIndex) {
        sum = add_scaled(sum, e.index, step);
      } else {
        Index one;
        one.terms.emplace_back(term, 1);
        sum = add_scaled(sum, one, step);
      }
    }
    i = std::move(sum);
  });
}

/// Calls `visit` for each reference to an expression in the kernel.
template <typename Visit>
void for_each_use(Kernel& kernel, Visit visit) {
  const auto all = [&](std::vector<ExprId>& ids) {
    for (ExprId& id : ids) visit(id);
  };
  const auto reduction = [&](Reduction& r) {
    all(r.inputs);
    all(r.inits);
    visit(r.condition);
  };
  for (Expr& e : kernel.exprs) {
    all(e.args);
    visit(e.mask);
  }
  for_each_index(kernel, [&](Index& i) {
    for (auto& t : i.terms) visit(t.first);
  });
  for (Reduction& r : kernel.reductions) reduction(r);
  if (kernel.scan) reduction(kernel.scan->reduction);
  for (Store& s : kernel.stores) {
    visit(s.value);
    visit(s.mask);
  }
  for (Update& u : kernel.updates) {
    all(u.values);
    visit(u.mask);
  }
}

/// Removes kIndex expressions that nothing reads.
void drop_unused_indices(Kernel& kernel) {
  std::vector<bool> used(kernel.exprs.size(), false);
  for_each_use(kernel, [&](ExprId id) {
    if (id != kNoExpr) used[static_cast<size_t>(id)] = true;
  });
  std::vector<ExprId> number(kernel.exprs.size(), kNoExpr);
  std::vector<Expr> kept;
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    if (!used[k] && kernel.exprs[k].op == ExprOp::kIndex) continue;
    number[k] = static_cast<ExprId>(kept.size());
    kept.push_back(std::move(kernel.exprs[k]));
  }
  kernel.exprs = std::move(kept);
  for_each_use(kernel, [&](ExprId& id) {
    if (id != kNoExpr) id = number[static_cast<size_t>(id)];
  });
}

/// Replaces quotients and remainders by indices if every part of the dividend is either a multiple of the divisor or
/// less than it.
bool divide_indices(Kernel& kernel) {
  bool changed = false;
  for (Expr& e : kernel.exprs) {
    if ((e.op != ExprOp::kDivide && e.op != ExprOp::kModulo) || !e.index.terms.empty()) continue;
    Index whole;
    Index rest;
    split_index(e.index, e.a, whole, rest);
    int64_t least = rest.constant;
    int64_t most = rest.constant;
    for (size_t l = 0; l < rest.coefficients.size(); ++l) {
      const int64_t step = rest.coefficients[l];
      (step > 0 ? most : least) += step * std::max<int64_t>(kernel.loops[l].size - 1, 0);
    }
    if (least < 0 || most >= e.a) continue;
    e.index = std::move(e.op == ExprOp::kDivide ? whole : rest);
    e.op = ExprOp::kIndex;
    e.a = 0;
    changed = true;
  }
  return changed;
}

/// Returns the unsigned integer type as which an element of `type` is copied; 0 if it is copied in its own type.
uint32_t moved_as(uint32_t type, bool pairs) {
  if (type == COLLET_TYPE_C64) return pairs ? uint32_t{COLLET_TYPE_U64} : 0;
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

/// True if an expression only passes elements of the types in question on, or does not involve them.
bool only_moves(const Kernel& kernel, const Expr& e, bool pairs) {
  if (e.op == ExprOp::kLoad || e.op == ExprOp::kConstant) return true;
  if (e.op == ExprOp::kOp && e.opcode == COLLET_OP_SELECT) return true;
  if (moved_as(e.type, pairs) != 0) return false;
  return std::none_of(e.args.begin(), e.args.end(),
                      [&](ExprId a) { return moved_as(kernel.exprs[static_cast<size_t>(a)].type, pairs) != 0; });
}

}  // namespace

void move_as_integers(Kernel& kernel, bool pairs) {
  if (!kernel.reductions.empty() || kernel.scan || !kernel.updates.empty()) return;
  for (const Expr& e : kernel.exprs) {
    if (!only_moves(kernel, e, pairs)) return;
  }
  for (Expr& e : kernel.exprs) {
    if (const uint32_t type = moved_as(e.type, pairs); type != 0) e.type = type;
  }
}

bool compare_as_integers(Kernel& kernel, int64_t least) {
  if (kernel.reductions.size() != 1 || kernel.scan || !kernel.updates.empty()) return false;
  const Reduction& r = kernel.reductions[0];
  const bool largest = r.combine == COLLET_COMBINE_MAXIMUM;
  if (!largest && r.combine != COLLET_COMBINE_MINIMUM) return false;
  const uint32_t type = r.types[0];
  if ((type != COLLET_TYPE_F16 && type != COLLET_TYPE_BF16) || r.condition != kNoExpr) return false;
  const Expr& input = kernel.exprs[static_cast<size_t>(r.inputs[0])];
  if (input.op != ExprOp::kLoad || input.type != type || input.mask != kNoExpr) return false;
  if (inner_points(kernel) < least) return false;
  // Nothing else may depend on the inner loops.
  const auto deps = loop_dependencies(kernel);
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    const bool is_input = static_cast<ExprId>(k) == r.inputs[0];
    if (!is_input && kernel.exprs[k].op != ExprOp::kReduced && deps[k] >> kernel.outer != 0) return false;
  }
  size_t uses = 0;
  for_each_use(kernel, [&](ExprId id) { uses += id == r.inputs[0] ? 1 : 0; });
  if (uses != 1) return false;

  const uint64_t infinity = type == COLLET_TYPE_F16 ? 0x7c00 : 0x7f80;
  const uint64_t nan = type == COLLET_TYPE_F16 ? 0x7e00 : 0x7fc0;
  constexpr uint64_t kRest = 0x7fff;  // all bits but the sign
  std::vector<Expr> exprs;
  const auto add = [&](Expr e) {
    exprs.push_back(std::move(e));
    return static_cast<ExprId>(exprs.size() - 1);
  };
  const auto constant = [&](uint32_t of, uint64_t bits) {
    Expr e;
    e.type = of;
    e.bits = {bits & 0xffff, 0};
    return add(std::move(e));
  };
  const auto op = [&](uint32_t opcode, uint32_t of, std::vector<ExprId> args, int64_t direction = 0) {
    return add(op_expr(opcode, of, std::move(args), direction));
  };
  // Negative floats have the reverse order of their bits.
  const auto ordered = [&](ExprId bits) {
    const ExprId sign = op(COLLET_OP_SHIFT_RIGHT_ARITHMETIC, COLLET_TYPE_S16, {bits, constant(COLLET_TYPE_S16, 15)});
    const ExprId rest = op(COLLET_OP_AND, COLLET_TYPE_S16, {sign, constant(COLLET_TYPE_S16, kRest)});
    return op(COLLET_OP_XOR, COLLET_TYPE_S16, {bits, rest});
  };
  std::vector<ExprId> number(kernel.exprs.size(), kNoExpr);
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    Expr e = kernel.exprs[k];
    const auto renumber = [&](ExprId& id) {
      if (id != kNoExpr) id = number[static_cast<size_t>(id)];
    };
    for (ExprId& a : e.args) renumber(a);
    for (auto& t : e.index.terms) renumber(t.first);
    renumber(e.mask);
    if (static_cast<ExprId>(k) == r.inputs[0]) {
      e.type = COLLET_TYPE_S16;
      number[k] = ordered(add(std::move(e)));
    } else if (e.op == ExprOp::kReduced) {
      e.type = COLLET_TYPE_S16;
      const ExprId best = add(e);
      e.b = 1;
      const ExprId other = add(std::move(e));
      const auto beyond = [&](ExprId x, uint64_t limit, int64_t direction) {
        return op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {x, constant(COLLET_TYPE_S16, limit)}, direction);
      };
      const ExprId above = beyond(largest ? best : other, infinity, COLLET_DIRECTION_GT);
      const ExprId below = beyond(largest ? other : best, ~infinity, COLLET_DIRECTION_LT);
      const ExprId has_nan = op(COLLET_OP_OR, COLLET_TYPE_PRED, {above, below});
      ExprId x = op(COLLET_OP_BITCAST_CONVERT, type, {ordered(best)});
      if (r.inits[0] != kNoExpr) {
        const Expr& init = exprs[static_cast<size_t>(number[static_cast<size_t>(r.inits[0])])];
        const uint64_t identity = largest ? infinity | 0x8000 : infinity;
        if (init.op != ExprOp::kConstant || init.bits[0] != identity) {
          x = op(largest ? COLLET_OP_MAXIMUM : COLLET_OP_MINIMUM, type, {number[static_cast<size_t>(r.inits[0])], x});
        }
      }
      number[k] = op(COLLET_OP_SELECT, type, {has_nan, constant(type, nan), x});
    } else {
      number[k] = add(std::move(e));
    }
  }
  const auto renumber = [&](ExprId& id) {
    if (id != kNoExpr) id = number[static_cast<size_t>(id)];
  };
  for (Store& s : kernel.stores) {
    renumber(s.value);
    renumber(s.mask);
    for (auto& t : s.index.terms) renumber(t.first);
  }
  // If there is a NaN, the largest or the least integer is beyond the infinities.
  Reduction best;
  best.combine = r.combine;
  best.inputs = {number[static_cast<size_t>(r.inputs[0])]};
  best.inits = {kNoExpr};
  best.types = {COLLET_TYPE_S16};
  Reduction other = best;
  other.combine = largest ? COLLET_COMBINE_MINIMUM : COLLET_COMBINE_MAXIMUM;
  kernel.reductions = {std::move(best), std::move(other)};
  kernel.exprs = std::move(exprs);
  return true;
}

bool widen_products(Kernel& kernel) {
  // Two factors are multiplied in one order alone, so that no other product comes between.
  if (kernel.scan || inner_points(kernel) <= 2) return false;
  std::vector<uint32_t> types;  // by reduction: its product_type
  // By expression: the type of the product of which it is a factor.
  std::vector<uint32_t> factor_of(kernel.exprs.size(), 0);
  for (const Reduction& r : kernel.reductions) {
    types.push_back(product_type(r.combine, r.types[0]));
    for (const ExprId id : {r.inputs[0], r.inits[0]}) {
      if (types.back() != 0 && id != kNoExpr) factor_of[static_cast<size_t>(id)] = types.back();
    }
  }
  if (std::all_of(types.begin(), types.end(), [](uint32_t t) { return t == 0; })) return false;
  // A product is followed by its conversion back, which all its users read, and a factor by its conversion.
  const auto type_of_product = [&](const Expr& e) {
    return e.op == ExprOp::kReduced ? types[static_cast<size_t>(e.b)] : 0;
  };
  std::vector<ExprId> number;
  ExprId next = 0;
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    if (type_of_product(kernel.exprs[k]) != 0) ++next;
    number.push_back(next++);
    if (factor_of[k] != 0) ++next;
  }
  for_each_use(kernel, [&](ExprId& id) {
    if (id != kNoExpr) id = number[static_cast<size_t>(id)];
  });
  for (size_t r = 0; r < kernel.reductions.size(); ++r) {
    Reduction& reduction = kernel.reductions[r];
    if (types[r] == 0) continue;
    reduction.types = {types[r]};
    for (ExprId* id : {&reduction.inputs[0], &reduction.inits[0]}) {
      if (*id != kNoExpr) ++*id;
    }
  }
  std::vector<Expr> exprs;
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    Expr& e = kernel.exprs[k];
    const uint32_t narrow = e.type, wide = type_of_product(e);
    if (wide != 0) e.type = wide;
    exprs.push_back(std::move(e));
    if (wide != 0) exprs.push_back(op_expr(COLLET_OP_CONVERT, narrow, {number[k] - 1}));
    if (factor_of[k] != 0) exprs.push_back(op_expr(COLLET_OP_CONVERT, factor_of[k], {number[k]}));
  }
  kernel.exprs = std::move(exprs);
  return true;
}

void split_loop(Kernel& kernel, size_t loop, int64_t inside, bool inside_first) {
  const size_t at = inside_first ? loop : loop + 1;
  for_each_index(kernel, [&](Index& i) {
    if (loop >= i.coefficients.size()) return;
    const int64_t step = i.coefficients[loop];
    i.coefficients[loop] = step * inside;
    i.coefficients.insert(i.coefficients.begin() + static_cast<int64_t>(at), step);
    while (!i.coefficients.empty() && i.coefficients.back() == 0) i.coefficients.pop_back();
  });
  kernel.loops[loop].size /= inside;
  kernel.loops.insert(kernel.loops.begin() + static_cast<int64_t>(at), {inside});
  if (loop < kernel.outer) ++kernel.outer;
}

void split_loops(Kernel& kernel, int64_t least, int64_t shared) {
  constexpr size_t kMostLoops = 32;
  for (bool again = true; again;) {
    again = false;
    for (const Expr& e : kernel.exprs) {
      if (e.op != ExprOp::kDivide && e.op != ExprOp::kModulo) continue;
      const std::optional<size_t> loop = loop_of(e.index);
      if (!loop || (kernel.scan && *loop == kernel.outer) || kernel.loops.size() >= kMostLoops) continue;
      const size_t l = *loop;
      if (e.a < least || kernel.loops[l].size <= e.a || kernel.loops[l].size % e.a != 0) continue;
      // Threads share the iterations of the first loop, so it should not be short.
      const int64_t parts = kernel.loops[l].size / e.a;
      const bool few = l == 0 && kernel.outer > 0 && parts < shared && parts < e.a && !kernel.sequential;
      split_loop(kernel, l, e.a, few);
      again = true;
      break;
    }
    if (!again) break;
    while (divide_indices(kernel)) inline_indices(kernel);
    drop_unused_indices(kernel);
  }
}

size_t split_rows(Kernel& kernel, int64_t rows, int64_t block) {
  size_t count = 0;
  int64_t size = 1;
  while (count < kernel.outer && size < rows) size *= kernel.loops[count++].size;
  if (count == 0 || size != rows || kernel.loops[count - 1].size % block != 0) return 0;
  split_loop(kernel, count - 1, block);
  return count;
}

void merge_first_loops(Kernel& kernel, size_t count) {
  for (size_t l = count; l-- > 0 && count > 1;) {
    if (kernel.loops[l].size != 1) continue;
    erase_loop(kernel, l);
    --count;
  }
  if (count < 2) return;
  const auto is_affine = [&](const Index& i) {
    for (size_t l = 0; l + 1 < count; ++l) {
      if (i.coefficient(l) != i.coefficient(l + 1) * kernel.loops[l + 1].size) return false;
    }
    return true;
  };
  std::vector<bool> divides(count, false);  // by old loop: whether its variable is computed
  for_each_index(kernel, [&](const Index& i) {
    if (is_affine(i)) return;
    for (size_t l = 0; l < count; ++l) divides[l] = divides[l] || i.coefficient(l) != 0;
  });
  // The variable of loop l is floor(merged / inside) modulo its size, where `inside` is the product of the sizes of the
  // loops after it.
  std::vector<Expr> variables;
  std::vector<ExprId> variable(count, kNoExpr);
  int64_t inside = 1;
  for (size_t l = count; l-- > 0;) {
    const int64_t size = kernel.loops[l].size;
    if (divides[l]) {
      Expr e;
      e.type = COLLET_TYPE_S64;
      e.op = ExprOp::kDivide;
      e.index = loop_index(0);
      e.a = inside;
      if (inside > 1) variables.push_back(e);
      if (l > 0) {
        if (inside > 1) {
          e.index = {};
          e.index.terms = {{static_cast<ExprId>(variables.size() - 1), 1}};
        }
        e.op = ExprOp::kModulo;
        e.a = size;
        variables.push_back(e);
      }
      variable[l] = static_cast<ExprId>(variables.size() - 1);
    }
    inside *= size;
  }
  const auto shift = static_cast<ExprId>(variables.size());
  for_each_use(kernel, [&](ExprId& id) { id += id == kNoExpr ? 0 : shift; });
  for_each_index(kernel, [&](Index& i) {
    const bool affine = is_affine(i);
    if (!affine) {
      for (size_t l = count; l-- > 0;) {
        if (i.coefficient(l) != 0) i.terms.emplace_back(variable[l], i.coefficient(l));
      }
    }
    i.coefficients.resize(std::max(i.coefficients.size(), count), 0);
    i.coefficients.erase(i.coefficients.begin(), i.coefficients.begin() + static_cast<int64_t>(count) - 1);
    if (!affine) i.coefficients[0] = 0;
    while (!i.coefficients.empty() && i.coefficients.back() == 0) i.coefficients.pop_back();
  });
  kernel.exprs.insert(kernel.exprs.begin(), variables.begin(), variables.end());
  kernel.loops.erase(kernel.loops.begin(), kernel.loops.begin() + static_cast<int64_t>(count) - 1);
  kernel.loops[0].size = inside;
  kernel.outer -= count - 1;
}

void collapse_loops(Kernel& kernel, size_t first) {
  for (size_t l = kernel.loops.size(); l-- > first;) {
    const bool scanned = kernel.scan && l == kernel.outer;  // a loop of size 1 is kept if it is the loop of the scan
    if (kernel.loops[l].size == 1 && !scanned) erase_loop(kernel, l);
  }
  for (size_t l = kernel.loops.size(); l-- > first + 1;) {
    if (!can_merge(kernel, l - 1)) continue;
    kernel.loops[l].size *= kernel.loops[l - 1].size;
    erase_loop(kernel, l - 1);
  }
}

void reorder_loops(Kernel& kernel, const std::vector<size_t>& order) {
  for_each_index(kernel, [&](Index& i) {
    std::vector<int64_t> steps;
    for (size_t l : order) steps.push_back(i.coefficient(l));
    while (!steps.empty() && steps.back() == 0) steps.pop_back();
    i.coefficients = std::move(steps);
  });
  std::vector<Loop> loops;
  for (size_t l : order) loops.push_back(kernel.loops[l]);
  kernel.loops = std::move(loops);
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
