// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/neighbours.h"

#include <algorithm>
#include <set>

#include "sdk/codegen/kernel/passes.h"
#include "sdk/codegen/schedule/actions.h"
#include "sdk/codegen/schedule/processor.h"

namespace collet::codegen {
namespace {

/// Collects the schedules near that of a kernel.
class Neighbours {
 public:
  Neighbours(const Kernel& kernel, const Target& target) : k_(kernel), target_(target) {
    seen_.insert(print_actions(kernel));
  }

  std::vector<std::string> run() {
    leave_out_rules();
    change_lanes();
    change_loops();
    change_passes();
    change_kept_values();
    change_stores();
    return std::move(found_);
  }

 private:
  /// Adds the schedule of a changed kernel, if it is legal and new.
  void add(Kernel changed) {
    const PassSchedule usual{changed.lanes, 1};
    if (std::count(changed.passes.begin(), changed.passes.end(), usual) == std::ssize(changed.passes))
      changed.passes.clear();
    std::string actions = print_actions(changed);
    if (!seen_.insert(actions).second) return;
    Kernel applied = k_;
    if (apply_actions(actions, applied).ok()) found_.push_back(std::move(actions));
  }

  void leave_out_rules() {
    for (size_t i = 0; const char* const rule = schedule_rule(i); ++i) {
      Kernel changed = k_;
      schedule_for(changed, target_, {rule});
      add(changed);
    }
  }

  /// Other lanes, with what the rules make of them.
  void change_lanes() {
    const auto with = [&](size_t loop, int lanes) {
      Kernel changed = k_;
      changed.lane_loop = lanes == 1 ? changed.loops.size() : loop;
      changed.lanes = lanes;
      schedule_for(changed, target_);
      add(std::move(changed));
    };
    const int usual = k_.lanes > 1 ? k_.lanes : target_.vector_bits / 32;
    for (size_t l = 0; l < k_.loops.size(); ++l) {
      if (k_.loops[l].size < 2) continue;
      for (const int lanes : {usual, usual / 2, usual * 2, usual * 4, usual / 4}) {
        if (lanes > 1) with(l, lanes);
      }
    }
    with(0, 1);
  }

  void change_loops() {
    for (size_t l = 0; l < k_.loops.size(); ++l) {
      const Loop& loop = k_.loops[l];
      for (const int factor : {1, 2, 3, 4, 6, 8, 16}) {
        if (loop.kind != LoopKind::kSerial && loop.kind != LoopKind::kInterleave) continue;
        Kernel changed = k_;
        changed.loops[l].kind = factor == 1 ? LoopKind::kSerial : LoopKind::kInterleave;
        changed.loops[l].factor = factor;
        add(changed);
      }
      for (const int64_t strip : {loop.strip / 4, loop.strip / 2, loop.strip * 2, loop.strip * 4}) {
        if (strip < k_.lanes) continue;
        Kernel changed = k_;
        changed.loops[l].strip = strip / k_.lanes * k_.lanes;
        add(changed);
      }
    }
    if (k_.outer == k_.loops.size()) return;
    const bool is_unrolled = k_.loops[k_.outer].kind == LoopKind::kUnroll;
    if (!is_unrolled && inner_points(k_) > target_.tuning.searched_points) return;
    Kernel changed = k_;
    for (size_t l = k_.outer; l < k_.loops.size(); ++l)
      changed.loops[l].kind = is_unrolled ? LoopKind::kSerial : LoopKind::kUnroll;
    add(changed);
  }

  void change_passes() {
    const auto count = static_cast<size_t>(KernelPasses(k_).last()) + 1;
    for (size_t p = 0; p < count; ++p) {
      Kernel usual = k_;
      if (usual.passes.empty()) usual.passes.assign(count, {k_.lanes, 1});
      for (const int times : {1, 2, 4, 8}) {
        Kernel changed = usual;
        changed.passes[p].lanes = k_.lanes * times;
        add(changed);
      }
      for (const int together : {1, 2, 4, 8}) {
        Kernel changed = usual;
        changed.passes[p].together = together;
        add(changed);
      }
    }
  }

  void change_kept_values() {
    for (size_t i = 0; i < k_.kept.size(); ++i) {
      Kernel changed = k_;
      changed.kept.erase(changed.kept.begin() + static_cast<ptrdiff_t>(i));
      add(changed);
    }
  }

  void change_stores() {
    for (size_t i = 0; i < k_.stores.size(); ++i) {
      if (!k_.stores[i].bypasses_caches) continue;
      Kernel changed = k_;
      changed.stores[i].bypasses_caches = false;
      add(changed);
    }
  }

  const Kernel& k_;
  const Target& target_;
  std::set<std::string> seen_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> neighbour_schedules(const Kernel& kernel, const Target& target) {
  return Neighbours(kernel, target).run();
}

}  // namespace collet::codegen
