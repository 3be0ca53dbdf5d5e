// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/unroll_and_jam.h"

#include <algorithm>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/schedule/extract.h"
#include "sdk/codegen/schedule/pack_value.h"

namespace collet::codegen {
namespace {

bool has(uint64_t set, size_t loop) {
  return (set >> loop & 1) != 0;
}

/// The parts of a kernel that suits the schedule: its short loop and its two factors.
struct Shape {
  size_t loop = 0;
  size_t rows = 0;          ///< the longest loop over long rows
  ExprId shared = kNoExpr;  ///< the factor of the long rows, which does not depend on the short loop
  ExprId own = kNoExpr;     ///< the factor of the few rows, which does not depend on loop `rows`
};

/// Returns the loop along the rows.
size_t row_loop(const Kernel& k) {
  return k.loops.size() - 1;
}

/// Returns the number of points that a row has in all inner loops.
int64_t row_points(const Kernel& k) {
  int64_t points = 1;
  for (size_t l = k.outer; l < k.loops.size(); ++l) points *= k.loops[l].size;
  return points;
}

bool has_inner(const Kernel& k, uint64_t set) {
  return (set >> k.outer) != 0;
}

/// For each expression, whether all its loads have unit stride along the loop of the rows.
std::vector<bool> contiguous(const Kernel& k, const std::vector<uint64_t>& deps) {
  const size_t row = row_loop(k);
  std::vector<bool> is(k.exprs.size());
  for (size_t t = 0; t < k.exprs.size(); ++t) {
    const Expr& e = k.exprs[t];
    if (e.op == ExprOp::kOp) {
      is[t] = std::all_of(e.args.begin(), e.args.end(), [&](ExprId a) { return is[static_cast<size_t>(a)]; });
    } else {
      is[t] = e.op == ExprOp::kLoad && e.mask == kNoExpr && e.index.terms.empty() && e.index.coefficient(row) == 1;
    }
    is[t] = is[t] || !has(deps[t], row);
  }
  return is;
}

bool find_shape(const Kernel& k, const Target& target, Shape& out) {
  if (k.outer >= k.loops.size() || row_points(k) < target.tuning.jammed_row) return false;
  if (k.outer + 1 < k.loops.size() && k.loops.back().size < target.tuning.jammed_part) return false;
  if (k.reductions.size() != 1 || k.stores.size() != 1 || k.scan || !k.updates.empty() || k.sequential) return false;
  const Reduction& r = k.reductions[0];
  if (r.combine == COLLET_COMBINE_OTHER || r.inputs.size() != 1 || r.condition != kNoExpr) return false;
  if (collet_type_kind(r.types[0]) == COLLET_KIND_COMPLEX || k.stores[0].mask != kNoExpr) return false;
  const Expr& product = k.exprs[static_cast<size_t>(r.inputs[0])];
  if (product.op != ExprOp::kOp || product.args.size() != 2) return false;
  const std::vector<uint64_t> deps = loop_dependencies(k);
  if (std::any_of(k.stores[0].index.terms.begin(), k.stores[0].index.terms.end(),
                  [&](const auto& t) { return has_inner(k, deps[static_cast<size_t>(t.first)]); }))
    return false;
  const std::vector<bool> side_by_side = contiguous(k, deps);
  for (const bool swapped : {false, true}) {
    const ExprId shared = product.args[swapped ? 1 : 0];
    const ExprId own = product.args[swapped ? 0 : 1];
    const uint64_t of_shared = deps[static_cast<size_t>(shared)];
    const uint64_t of_own = deps[static_cast<size_t>(own)];
    if (!has(of_shared, row_loop(k)) || !has(of_own, row_loop(k)) || !side_by_side[static_cast<size_t>(shared)])
      continue;
    size_t rows = k.outer;
    for (size_t l = 0; l < k.outer; ++l) {
      if (!has(of_shared, l) || has(of_own, l)) continue;
      if (rows == k.outer || k.loops[l].size > k.loops[rows].size) rows = l;
    }
    if (rows == k.outer || k.loops[rows].size < target.tuning.jammed_long_rows) continue;
    int64_t few = 1;  // rows of the factor `own` for each matrix of long rows
    for (size_t l = 0; l < k.outer; ++l) few *= has(of_own, l) && !has(of_shared, l) ? k.loops[l].size : 1;
    for (size_t l = 0; l < k.outer; ++l) {
      const int64_t size = k.loops[l].size;
      if (size != few) continue;
      const int64_t most =
          side_by_side[static_cast<size_t>(own)] ? target.tuning.jammed_rows : target.tuning.jammed_packed_rows;
      if (size < 2 || size > most || has(of_shared, l) || !has(of_own, l)) continue;
      out = {l, rows, shared, own};
      return true;
    }
  }
  return false;
}

/// True if rows that are `step` elements apart map to the same sets of the first-level cache and so evict each other.
bool clash(int64_t step, uint32_t type, const Target& target) {
  return step * compute_bytes(type) % (target.cache_way / 2) == 0;
}

/// True if the few rows are read in place instead of packed: they are contiguous and do not evict each other from the
/// first-level cache.
bool is_read_in_place(const Kernel& k, const std::vector<uint64_t>& deps, const Shape& shape, const Target& target) {
  if (!contiguous(k, deps)[static_cast<size_t>(shape.own)]) return false;
  const Expr& e = k.exprs[static_cast<size_t>(shape.own)];
  return e.op == ExprOp::kLoad && (k.loops[shape.loop].size <= target.tuning.clashing_rows ||
                                   !clash(e.index.coefficient(shape.loop), e.type, target));
}

/// Writes value `own` of `plan` to memory row by row, and reads it from there in `plan`.
void pack_rows(KernelPlan& plan, ExprId own, uint64_t loops, const Target& target, const MakeValue& make,
               KernelPlan& pack) {
  const Kernel& k = plan.kernel;
  const uint32_t type = k.exprs[static_cast<size_t>(own)].type;
  std::vector<size_t> order;
  for (size_t l = 0; l < k.loops.size(); ++l) {
    if (has(loops, l)) order.push_back(l);
  }
  const bool pads = k.outer + 1 == k.loops.size() && clash(k.loops[k.outer].size, type, target);
  pack_value(plan, own, order, pads ? target.cache_line / compute_bytes(type) : 0, make, pack);
}

/// Makes the kernel for rows [begin, begin + count * each) of `from`, with `each` rows per iteration.
KernelPlan some_rows(const KernelPlan& from, const Shape& shape, int64_t begin, int64_t count, int64_t each) {
  KernelPlan out;
  const Kernel& k = from.kernel;
  int64_t row = 0, iteration = 0;
  Extract extract(from, out, [&](const Index& old) {
    Index r = old;
    r.constant += old.coefficient(shape.rows) * (begin + row) + old.coefficient(shape.loop) * iteration;
    if (shape.rows < r.coefficients.size()) r.coefficients[shape.rows] *= each;
    if (shape.loop < r.coefficients.size()) r.coefficients[shape.loop] = 0;
    return add_scaled(r, {}, 1);  // adding zero removes trailing zero coefficients
  });
  const auto each_copy = [&](const auto& visit) {
    int64_t number = 0;
    for (row = 0; row < each; ++row) {
      for (iteration = 0; iteration < k.loops[shape.loop].size; ++iteration) {
        extract.forget();
        visit(number++);
      }
    }
  };
  out.kernel.loops = k.loops;
  out.kernel.loops[shape.loop].size = 1;
  out.kernel.loops[shape.rows].size = count;
  out.kernel.outer = k.outer;
  each_copy([&](int64_t) {
    Reduction r = k.reductions[0];
    r.inputs[0] = extract.value(r.inputs[0]);
    r.inits[0] = extract.value(r.inits[0]);
    out.kernel.reductions.push_back(r);
  });
  each_copy([&](int64_t number) {
    for (size_t e = 0; e < k.exprs.size(); ++e) {
      if (k.exprs[e].op != ExprOp::kReduced) continue;
      Expr reduced = k.exprs[e];
      reduced.b = number;
      extract.replace(static_cast<ExprId>(e), extract.add(std::move(reduced)));
    }
    Store s = k.stores[0];
    s.value = extract.value(s.value);
    s.index = extract.index(s.index);
    s.buffer = extract.buffer(from.buffers[s.buffer]);
    out.kernel.stores.push_back(s);
  });
  out.writes = from.writes;
  return out;
}

}  // namespace

bool can_unroll_and_jam(const Kernel& kernel, const Target& target) {
  Shape shape;
  return find_shape(kernel, target, shape);
}

bool unroll_and_jam(const KernelPlan& plan, const Target& target, const MakeValue& make, KernelPlan& pack,
                    std::vector<KernelPlan>& out) {
  Shape shape;
  if (!find_shape(plan.kernel, target, shape)) return false;
  KernelPlan from = plan;
  const std::vector<uint64_t> deps = loop_dependencies(plan.kernel);
  if (!is_read_in_place(plan.kernel, deps, shape, target))
    pack_rows(from, shape.own, deps[static_cast<size_t>(shape.own)], target, make, pack);
  const int64_t rows = plan.kernel.loops[shape.rows].size;
  const int64_t accumulators = target.vector_registers * 3 / 4;  // the others hold operands
  const int64_t each =
      std::clamp<int64_t>(accumulators / plan.kernel.loops[shape.loop].size, 1, target.tuning.prefetched_streams);
  const int64_t whole = rows / each;
  out.push_back(some_rows(from, shape, 0, whole, each));
  if (whole * each < rows) out.push_back(some_rows(from, shape, whole * each, rows - whole * each, 1));
  return true;
}

}  // namespace collet::codegen
