// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/kernel/passes.h"

#include <algorithm>

namespace collet::codegen {

KernelPasses::KernelPasses(const Kernel& kernel) : k_(kernel) {
  const std::vector<uint64_t> deps = loop_dependencies(k_);
  find_stages(deps);
  needed_.assign(static_cast<size_t>(last_stage_) + 1, std::vector<bool>(k_.exprs.size(), false));
  first_pass_.assign(k_.exprs.size(), -1);
  kept_.assign(k_.exprs.size(), false);
  for (const ExprId k : k_.kept) kept_[static_cast<size_t>(k)] = true;
  for (int pass = 0; pass <= last_stage_; ++pass) each_root(pass, [&](ExprId t) { need(pass, t); });
  for (size_t l = k_.outer; l-- > 0;) {
    const Loop& loop = k_.loops[l];
    if (loop.kind != LoopKind::kInterleave && loop.kind != LoopKind::kTranspose) continue;
    (side_unroll_ == 1 ? side_loop_ : row_loop_) = l;
    (side_unroll_ == 1 ? side_unroll_ : row_unroll_) = loop.kind == LoopKind::kTranspose ? k_.lanes : loop.factor;
  }
  if (!is_transposing()) return;
  for (size_t k = 0; k < k_.exprs.size(); ++k)
    transposed_.push_back(collet::codegen::is_transposed(k_, deps, k, side_loop_));
}

size_t KernelPasses::level_of_index(const Index& index) const {
  size_t level = 0;
  for (size_t l = 0; l < index.coefficients.size(); ++l) {
    if (index.coefficients[l] != 0) level = l + 1;
  }
  for (auto& t : index.terms) level = std::max(level, level_[static_cast<size_t>(t.first)]);
  return level;
}

int KernelPasses::stage_of_index(const Index& index) const {
  int stage = 0;
  for (auto& t : index.terms) stage = std::max(stage, stage_of(t.first));
  return stage;
}

void KernelPasses::find_stages(const std::vector<uint64_t>& deps) {
  reduction_stage_.assign(k_.reductions.size(), -1);
  level_.resize(k_.exprs.size());
  stage_.resize(k_.exprs.size());
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    level_[k] = deps[k] == 0 ? 0 : 64 - static_cast<size_t>(__builtin_clzll(deps[k]));
    const Expr& i = k_.exprs[k];
    int stage = std::max(stage_of_index(i.index), stage_of(i.mask));
    for (ExprId a : i.args) stage = std::max(stage, stage_of(a));
    if (i.op == ExprOp::kReduced) {
      auto r = static_cast<size_t>(i.b);
      if (reduction_stage_[r] < 0) {
        int s = stage_of(k_.reductions[r].condition);
        for (ExprId x : k_.reductions[r].inputs) s = std::max(s, stage_of(x));
        for (ExprId x : k_.reductions[r].inits) s = std::max(s, stage_of(x));
        reduction_stage_[r] = s;
      }
      stage = reduction_stage_[r] + 1;
      level_[k] = k_.outer;
    }
    stage_[k] = stage;
    last_stage_ = std::max(last_stage_, stage);
  }
}

void KernelPasses::each_root(int pass, const std::function<void(ExprId)>& visit) const {
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (reduction_stage_[r] != pass) continue;
    for (const ExprId x : k_.reductions[r].inputs) visit(x);
    visit(k_.reductions[r].condition);
  }
  for (const Store& s : k_.stores) {
    if (!is_inner(s) || pass_of(s) != pass) continue;
    visit(s.value);
    visit(s.mask);
    for (const auto& t : s.index.terms) visit(t.first);
  }
}

bool KernelPasses::is_inner(const Store& s) const {
  return std::max({level_of(s.value), level_of(s.mask), level_of_index(s.index)}) > k_.outer;
}

int KernelPasses::pass_of(const Store& s) const {
  return std::max({stage_of(s.value), stage_of(s.mask), stage_of_index(s.index)});
}

void KernelPasses::need(int pass, ExprId t) {
  if (t == kNoExpr || level_of(t) <= k_.outer) return;
  const auto k = static_cast<size_t>(t);
  auto& set = needed_[static_cast<size_t>(pass)];
  if (set[k]) return;
  set[k] = true;
  if (kept_[k] && first_pass_[k] >= 0 && first_pass_[k] < pass) return;
  if (first_pass_[k] < 0) first_pass_[k] = pass;
  const Expr& i = k_.exprs[k];
  for (ExprId a : i.args) need(pass, a);
  for (auto& term : i.index.terms) need(pass, term.first);
  need(pass, i.mask);
}

int KernelPasses::width(int pass) const {
  return k_.passes.empty() ? k_.lanes : k_.passes[static_cast<size_t>(pass)].lanes;
}

int KernelPasses::together(int pass) const {
  return k_.passes.empty() ? 1 : k_.passes[static_cast<size_t>(pass)].together;
}

int KernelPasses::largest_width() const {
  int most = k_.lanes;
  for (const PassSchedule& p : k_.passes) most = std::max(most, p.lanes);
  return most;
}

bool KernelPasses::is_straight() const {
  return k_.outer < k_.loops.size() && k_.loops[k_.outer].kind == LoopKind::kUnroll;
}

bool is_transposed(const Kernel& kernel, const std::vector<uint64_t>& deps, size_t k, size_t loop) {
  const Expr& e = kernel.exprs[k];
  if (e.op != ExprOp::kLoad || e.index.coefficient(loop) != 1) return false;
  if (e.mask != kNoExpr && (deps[static_cast<size_t>(e.mask)] >> loop & 1) != 0) return false;
  if (kernel.loops[loop].size < 2) return false;
  const int64_t apart = e.index.coefficient(kernel.lane_loop);
  if (apart >= -1 && apart <= 1) return false;
  if (collet_type_kind(e.type) == COLLET_KIND_COMPLEX) return false;
  const uint64_t both = uint64_t{1} << loop | uint64_t{1} << kernel.lane_loop;
  return std::none_of(e.index.terms.begin(), e.index.terms.end(),
                      [&](const auto& t) { return (deps[static_cast<size_t>(t.first)] & both) != 0; });
}

int interleaved_loops(const Kernel& kernel) {
  return static_cast<int>(std::count_if(kernel.loops.begin(),
                                        kernel.loops.begin() + static_cast<ptrdiff_t>(kernel.outer),
                                        [](const Loop& l) { return l.kind == LoopKind::kInterleave; }));
}

}  // namespace collet::codegen
