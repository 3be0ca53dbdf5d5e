// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/merge_rows.h"

#include <collet/codegen/kernel_transform.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/lower/change_loops.h"

namespace collet::codegen {
namespace {

/// True if the elements that `index` has in the lanes of one vector are near each other when rows of `row` points are
/// merged.
bool is_near(const Index& index, size_t rows, size_t columns, int64_t row, int64_t lanes, const Target& target) {
  const int64_t touched = (lanes + row - 1) / row + 1;
  // Each column is then a piece of its own, and a vector is combined from one piece for each column.
  if (row <= target.tuning.merged_columns && std::abs(index.coefficient(rows)) * touched <= lanes) return true;
  const int64_t span =
      std::abs(index.coefficient(rows)) * (touched - 1) + std::abs(index.coefficient(columns)) * (row - 1) + 1;
  return span <= target.tuning.merged_load * lanes;
}

/// Returns for each expression whether a store depends on it.
std::vector<bool> find_used(const Kernel& k) {
  std::vector<bool> used(k.exprs.size(), false);
  const auto use = [&](ExprId t) {
    if (t != kNoExpr) used[static_cast<size_t>(t)] = true;
  };
  for (const Store& s : k.stores) {
    use(s.value);
    use(s.mask);
    for (const auto& term : s.index.terms) use(term.first);
  }
  for (size_t t = k.exprs.size(); t-- > 0;) {
    if (!used[t]) continue;
    for (ExprId a : k.exprs[t].args) use(a);
    use(k.exprs[t].mask);
    for (const auto& term : k.exprs[t].index.terms) use(term.first);
  }
  return used;
}

bool suits(const Kernel& k, int64_t lanes, const Target& target) {
  const size_t columns = k.loops.size() - 1;
  const size_t rows = columns - 1;
  const int64_t row = k.loops[columns].size;
  const uint64_t merged = uint64_t{1} << rows | uint64_t{1} << columns;
  const auto deps = loop_dependencies(k);
  const auto varies = [&](ExprId t) { return (deps[static_cast<size_t>(t)] & merged) != 0; };
  const std::vector<bool> used = find_used(k);
  for (size_t t = 0; t < k.exprs.size(); ++t) {
    const Expr& e = k.exprs[t];
    if (!used[t] || !varies(static_cast<ExprId>(t))) continue;
    if (e.op == ExprOp::kLookup || e.op == ExprOp::kWhile || e.op == ExprOp::kPart) return false;
    const bool is_index =
        e.op == ExprOp::kIndex || e.op == ExprOp::kDivide || e.op == ExprOp::kModulo || e.op == ExprOp::kStart;
    if (collet_type_kind(e.type) == COLLET_KIND_COMPLEX || (compute_bytes(e.type) > 4 && !is_index)) return false;
    if (e.op != ExprOp::kLoad) continue;
    if (e.mask != kNoExpr || !is_near(e.index, rows, columns, row, lanes, target)) return false;
    if (std::any_of(e.index.terms.begin(), e.index.terms.end(), [&](const auto& term) { return varies(term.first); }))
      return false;
  }
  return std::all_of(k.stores.begin(), k.stores.end(), [&](const Store& s) {
    return s.mask == kNoExpr && s.index.terms.empty() && s.index.coefficient(columns) == 1 &&
           s.index.coefficient(rows) == row;
  });
}

/// Makes the kernel for groups of rows, and the one for the rest. Returns false if that does not suit the kernel.
bool merged(const Graph& graph, KernelPlan& plan, int64_t lanes, const Target& target, KernelPlan& rest) {
  const Kernel& k = plan.kernel;
  if (k.loops.size() < 2) return false;
  const size_t columns = k.loops.size() - 1;
  const int64_t row = k.loops[columns].size;
  const int64_t count = k.loops[columns - 1].size;
  const int64_t used = (row + lanes - 1) / lanes * lanes;
  if (row < 2 || row >= 2 * lanes || row * 4 > used * 3) return false;
  int64_t together = lanes / std::gcd(row, lanes);  // rows of a group
  const int64_t exprs = together * row / lanes * static_cast<int64_t>(k.exprs.size());
  int64_t points = 1;
  for (const Loop& l : k.loops) points *= l.size;
  if (points < target.tuning.merged_points || count < 2 * together || exprs > target.tuning.merged_exprs ||
      !suits(k, lanes, target))
    return false;
  while (together * row < 4 * lanes && count >= 4 * together) together *= 2;
  Dims begin(k.loops.size(), 0);
  Dims sizes;
  for (const Loop& l : k.loops) sizes.push_back(l.size);
  const int64_t groups = count / together;
  if (count % together != 0) {
    begin[columns - 1] = groups * together;
    sizes[columns - 1] = count % together;
    rest = part_of(graph, plan, begin, sizes);
  }
  sizes[columns - 1] = groups;
  sizes[columns] = together * row;
  plan = with_loops(graph, plan, sizes, [&](KernelBuilder& builder) {
    std::vector<Index> loops;
    for (size_t l = 0; l + 1 < columns; ++l) loops.push_back(loop_index(l));
    Expr quotient;
    quotient.op = ExprOp::kDivide;
    quotient.type = COLLET_TYPE_S64;
    quotient.index = loop_index(columns);
    quotient.a = row;
    const Index number = builder.term(builder.emit(std::move(quotient)));  // of the row in its group
    loops.push_back(add_scaled(number, loop_index(columns - 1), together));
    loops.push_back(add_scaled(loop_index(columns), number, -row));
    return loops;
  });
  return true;
}

}  // namespace

bool merge_rows(const Graph& graph, KernelPlan& plan, const Target& target, KernelPlan& rest) {
  if (!is_plain(plan.kernel) || !plan.copies.empty()) return false;
  const int64_t lanes = target.vector_bits / 32;
  if (merged(graph, plan, lanes, target, rest)) return true;
  // Quotients by small numbers, as those of repeated elements, become short rows.
  KernelPlan split = plan;
  split_loops(split.kernel, 2, target.tuning.shared_iterations);
  collapse_loops(split.kernel);
  if (split.kernel.loops == plan.kernel.loops || !merged(graph, split, lanes, target, rest)) return false;
  plan = std::move(split);
  return true;
}

}  // namespace collet::codegen
