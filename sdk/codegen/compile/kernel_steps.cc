// SPDX-License-Identifier: Apache-2.0
// The steps of the pipelines from a lowered kernel to a step of the launch plan.
#include <collet/codegen/kernel_transform.h>

#include <algorithm>
#include <utility>

#include "sdk/codegen/compile/pipeline.h"
#include "sdk/codegen/lower/change_loops.h"
#include "sdk/codegen/lower/merge_rows.h"
#include "sdk/codegen/lower/split_edges.h"
#include "sdk/codegen/schedule/grid.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/pack_factor.h"
#include "sdk/codegen/schedule/pack_value.h"
#include "sdk/codegen/schedule/split_reduction.h"
#include "sdk/codegen/schedule/unroll_and_jam.h"

namespace collet::codegen {
namespace {

/// Changes a kernel. Returns kChanged if it differs then; the kernels are compared only if `records` is true, because only the
/// artifacts tell the difference.
template <typename Change>
PipelineOutcome change(Kernel& kernel, bool records, const Change& apply) {
  if (!records) {
    apply(kernel);
    return PipelineOutcome::kUnchanged;
  }
  const Kernel before = kernel;
  apply(kernel);
  return before == kernel ? PipelineOutcome::kUnchanged : PipelineOutcome::kChanged;
}

}  // namespace

using Outcome = PipelineOutcome;
using Work = PipelineWork;

MakeValue Compiler::maker() {
  return [this](uint32_t element, Dims dims) { return temporary(element, std::move(dims)); };
}

Outcome Compiler::split_at_edges_step(Work& w) {
  std::vector<KernelPlan> at_edges;
  if (!w.plan.has_edges || !split_at_edges(graph_, w.plan, near_points(), target_.tuning, at_edges))
    return Outcome::kUnchanged;
  for (size_t i = 0; i < at_edges.size(); ++i) add_kernel(at_edges[i], w.drafts, i > 0);
  return Outcome::kReplaced;
}

Outcome Compiler::split_at_periods_step(Work& w) {
  Outcome outcome = Outcome::kUnchanged;
  while (split_at_periods(graph_, w.plan, target_.tuning)) outcome = Outcome::kChanged;
  return outcome;
}

Outcome Compiler::move_as_integers_step(Work& w) {
  return change(w.plan.kernel, options_.keep_artifacts, [&](Kernel& k) {
    move_as_integers(k, options_.form != CodeForm::kSource && options_.form != CodeForm::kOpenCl);
  });
}

Outcome Compiler::group_updates_step(Work& w) {
  UpdateSchedule updates;
  if (!choose_updates(w.plan.kernel, updates)) return Outcome::kUnchanged;
  add_grouped_updates(w.plan, updates, w.drafts);
  return Outcome::kReplaced;
}

Outcome Compiler::split_quotients_step(Work& w) {
  return change(w.plan.kernel, options_.keep_artifacts,
                [this](Kernel& k) { split_loops(k, target_.tuning.shortest_part, target_.tuning.shared_iterations); });
}

Outcome Compiler::collapse_loops_step(Work& w) {
  // The iterations of a sequential kernel of a grid are not distributed, and its loops count updates.
  if (!pipeline_.has_lanes && w.plan.kernel.sequential) return Outcome::kUnchanged;
  return change(w.plan.kernel, options_.keep_artifacts, [](Kernel& k) { collapse_loops(k); });
}

Outcome Compiler::unroll_and_jam_step(Work& w) {
  KernelPlan pack;
  std::vector<KernelPlan> jammed;
  if (!unroll_and_jam(w.plan, target_, maker(), pack, jammed)) return Outcome::kUnchanged;
  if (!pack.writes.empty()) add_kernel(pack, w.drafts);
  for (KernelPlan& one : jammed) add_kernel(one, w.drafts);
  return Outcome::kReplaced;
}

Outcome Compiler::pack_strided_step(Work& w) {
  KernelPlan pack;
  if (!pack_strided(w.plan, target_, maker(), pack)) return Outcome::kUnchanged;
  add_preparation(pack, w.drafts);
  add_kernel(w.plan, w.drafts);
  return Outcome::kReplaced;
}

Outcome Compiler::pack_factor_step(Work& w) {
  KernelPlan pack;
  if (!pack_factor(w.plan, target_.grid, maker(), pack)) return Outcome::kUnchanged;
  add_kernel(pack, w.drafts);
  add_kernel(w.plan, w.drafts);
  return Outcome::kReplaced;
}

Outcome Compiler::split_reduction_step(Work& w) {
  KernelPlan parts;
  KernelPlan rest;
  if (!split_reduction(w.plan, target_, SplitLimits{true}, maker(), parts, rest)) return Outcome::kUnchanged;
  add_parts(parts, rest, w.drafts);
  return Outcome::kReplaced;
}

Outcome Compiler::split_grid_reduction_step(Work& w) {
  KernelPlan parts;
  KernelPlan rest;
  const SplitLimits limits = split_limits(w.plan.kernel, target_.grid);
  if (!split_reduction(w.plan, target_, limits, maker(), parts, rest)) return Outcome::kUnchanged;
  add_kernel(parts, w.drafts);
  add_kernel(rest, w.drafts);
  return Outcome::kReplaced;
}

Outcome Compiler::merge_rows_step(Work& w) {
  w.has_merged_rows = merge_rows(graph_, w.plan, target_, w.rest);
  return w.has_merged_rows ? Outcome::kChanged : Outcome::kUnchanged;
}

Outcome Compiler::split_squares_step(Work& w) {
  if (w.has_merged_rows || !w.plan.copies.empty()) return Outcome::kUnchanged;
  KernelPlan& k = w.plan;
  const std::optional<LoopPart> whole = uneven_squares(k.kernel, target_);
  if (!whole) return Outcome::kUnchanged;
  Dims begin(k.kernel.loops.size(), 0);
  Dims sizes;
  for (const Loop& l : k.kernel.loops) sizes.push_back(l.size);
  begin[whole->loop] = whole->size;
  sizes[whole->loop] -= whole->size;
  w.rest = part_of(graph_, k, begin, sizes);
  begin[whole->loop] = 0;
  sizes[whole->loop] = whole->size;
  k = part_of(graph_, k, begin, sizes);
  return Outcome::kChanged;
}

Outcome Compiler::widen_products_step(Work& w) {
  return widen_products(w.plan.kernel) ? Outcome::kChanged : Outcome::kUnchanged;
}

Outcome Compiler::compare_as_integers_step(Work& w) {
  return compare_as_integers(w.plan.kernel, target_.tuning.compared_row) ? Outcome::kChanged : Outcome::kUnchanged;
}

Outcome Compiler::choose_lanes_step(Work& w) {
  choose_lanes(w.plan.kernel, target_);
  return w.plan.kernel.lanes > 1 ? Outcome::kChanged : Outcome::kUnchanged;
}

Outcome Compiler::schedule_step(Work& w) {
  schedule(w.plan.kernel);
  return Outcome::kUnchanged;  // its rules have a log of their own
}

Outcome Compiler::launch_step(Work& w) {
  KernelPlan& k = w.plan;
  if (!w.has_time) ++time_;
  Draft d;
  d.step.kernel.function = function_of(k.kernel);
  add_buffers(k, d);
  for (ValueId v : k.buffers) plan_->traffic_bytes += bytes_of(v);
  for (const auto& pair : k.in_place) {
    if (reads_in_place(k, pair)) buffers_.allow(range(pair.first), range(pair.second), time_);
  }
  describe(k.kernel, d.step);
  ++plan_->kernels;
  w.drafts.push_back(std::move(d));
  if (!w.rest.kernel.loops.empty()) add_kernel(w.rest, w.drafts, true);
  return Outcome::kReplaced;
}

}  // namespace collet::codegen
