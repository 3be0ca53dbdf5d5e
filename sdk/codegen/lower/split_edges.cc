// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/split_edges.h"

#include <algorithm>

#include "sdk/codegen/lower/change_loops.h"

namespace collet::codegen {
namespace {

/// Adds the positions at which a test changes along a loop. Tests of another form than 0 <= loop variable + constant < a
/// have no edges and remain in the kernels of the parts.
void add_edges(const Kernel& kernel, const Expr& test, Edges& edges) {
  Index variable = test.index;
  variable.constant = 0;
  const std::optional<size_t> loop = loop_of(variable);
  if (!loop) return;
  for (const int64_t edge : {-test.index.constant, test.a - test.index.constant}) {
    if (edge > 0 && edge < kernel.loops[*loop].size) edges[*loop].insert(edge);
  }
}

}  // namespace

bool edges_pay(const Dims& loops, const Edges& edges, int64_t near_points, const Tuning& tuning) {
  int64_t parts = 1;
  int64_t points = 1;
  bool any = false;
  for (size_t l = 0; l < loops.size(); ++l) {
    if (edges[l].size() >= static_cast<size_t>(tuning.edge_parts)) return false;
    parts *= static_cast<int64_t>(edges[l].size()) + 1;
    points *= loops[l];
    any = any || !edges[l].empty();
    if (parts > tuning.edge_parts) return false;
  }
  if (!any || points < tuning.edge_points) return false;
  const std::set<int64_t>& innermost = edges.back();
  if (innermost.empty()) return true;
  int64_t before = 0;
  int64_t used = 0;
  int64_t narrowest = loops.back();
  const auto segment = [&](int64_t end) {
    used += assumed_vectors(end - before);
    narrowest = std::min(narrowest, end - before);
    before = end;
  };
  for (const int64_t edge : innermost) segment(edge);
  segment(loops.back());
  // The columns of a narrow part are far apart in memory. They share cache lines with the part beside them.
  if (narrowest < tuning.edge_columns && points > near_points) return false;
  return 2 * used <= 3 * assumed_vectors(loops.back());
}

bool split_at_edges(const Graph& graph, const KernelPlan& plan, int64_t near_points, const Tuning& tuning,
                    std::vector<KernelPlan>& parts) {
  const Kernel& kernel = plan.kernel;
  if (!is_plain(kernel) || kernel.loops.empty() || !plan.copies.empty()) return false;
  Edges edges(kernel.loops.size());
  for (const Expr& e : kernel.exprs) {
    if (e.op == ExprOp::kInRange) add_edges(kernel, e, edges);
  }
  Dims loops;
  for (const Loop& l : kernel.loops) loops.push_back(l.size);
  if (!edges_pay(loops, edges, near_points, tuning)) return false;
  for (size_t l = 0; l < loops.size(); ++l) edges[l].insert(loops[l]);
  Dims begin(loops.size(), 0);
  Dims size(loops.size(), 0);
  const auto split = [&](const auto& self, size_t l) -> void {
    if (l == loops.size()) {
      KernelPlan part = part_of(graph, plan, begin, size);
      if (!part.kernel.stores.empty()) parts.push_back(std::move(part));
      return;
    }
    begin[l] = 0;
    for (const int64_t end : edges[l]) {
      size[l] = end - begin[l];
      self(self, l + 1);
      begin[l] = end;
    }
  };
  split(split, 0);
  return true;
}

bool split_at_periods(const Graph& graph, KernelPlan& plan, const Tuning& tuning) {
  const Kernel& kernel = plan.kernel;
  if (!is_plain(kernel)) return false;
  for (const Expr& e : kernel.exprs) {
    const bool divides = e.op == ExprOp::kDivide || e.op == ExprOp::kModulo;
    if (!divides || e.index.terms.size() != 1 || e.index.terms[0].second != 1) continue;
    const Expr& inner = kernel.exprs[static_cast<size_t>(e.index.terms[0].first)];
    if (inner.op != ExprOp::kDivide || e.index != Index{{}, 0, e.index.terms}) continue;
    const std::optional<size_t> divided = loop_of(inner.index);
    if (!divided) continue;
    const size_t l = *divided;
    const int64_t size = kernel.loops[l].size;
    const int64_t period = inner.a * e.a;
    if (period < tuning.shortest_part || period >= size || size % period != 0) continue;
    if (l == 0 && size / period < tuning.shared_iterations) continue;  // threads share the iterations of the first loop
    Dims sizes;
    for (size_t m = 0; m < kernel.loops.size(); ++m) {
      if (m == l) sizes.push_back(size / period);
      sizes.push_back(m == l ? period : kernel.loops[m].size);
    }
    plan = with_loops(graph, plan, sizes, [&](KernelBuilder&) {
      std::vector<Index> loops;
      for (size_t m = 0; m < sizes.size(); ++m) {
        loops.push_back(loop_index(m));
        if (m == l) {
          loops.back() = add_scaled(loop_index(m + 1), loop_index(m), period);
          ++m;
        }
      }
      return loops;
    });
    return true;
  }
  return false;
}

}  // namespace collet::codegen
