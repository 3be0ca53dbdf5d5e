// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/kernel/elementwise.h"

/// \file
/// Replaces the steps of a short loop in a launch plan by one function that holds the whole loop. The host then calls one
/// function per loop instead of interpreting the steps of each iteration.

namespace collet::codegen {
namespace {

/// Fits the vectors of a kernel to the loop that holds it. There, small arrays stay in registers if they are accessed
/// by whole vectors without masks, or by elements. Elsewhere the width of a vector does not matter to a short array.
void fit_lanes(Kernel& kernel) {
  if (kernel.lanes == 1) return;
  const auto deps = loop_dependencies(kernel);
  bool costly = false;  // whether vectors save the time of functions that take long
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    const Expr& e = kernel.exprs[k];
    const bool is_root = e.opcode == COLLET_OP_SQRT || e.opcode == COLLET_OP_RSQRT;
    const bool in_lanes = (deps[k] >> kernel.lane_loop & 1) != 0;
    costly = costly || (e.op == ExprOp::kOp && in_lanes && is_expensive(e.opcode) && !is_root);
  }
  Kernel scalar = kernel;
  scalar.lanes = 1;
  scalar.lane_loop = kernel.loops.size();
  if (!costly && is_tiny(scalar)) {
    clear_schedule(scalar);
    kernel = std::move(scalar);
    return;
  }
  const int64_t size = kernel.loops[kernel.lane_loop].size;
  if (kernel.scan || size >= kernel.lanes) return;
  kernel.lanes = std::max(static_cast<int>(std::bit_ceil(static_cast<uint64_t>(size))), 2);
}

/// Properties of the steps of a loop. `suits` is false if a step cannot be part of one sequential function.
struct Content {
  double cost_ns = 0;
  size_t kernels = 0;
  size_t expressions = 0;
  bool suits = true;
  std::set<FunctionId> functions;
  std::set<uint32_t> places;
};

class LoopJoiner {
 public:
  LoopJoiner(PlannedProgram& program, const Tuning& tuning) : program_(program), plan_(program.plan), tuning_(tuning) {}

  void run() {
    join(plan_.steps);
    drop_unused();
  }

 private:
  void join(StepList& steps) {
    for (Step& step : steps) {
      if (step.kind == StepKind::kWhile && join(step)) continue;
      for (StepList& children : step.children) join(children);
    }
  }

  bool join(Step& step) {
    Content content;
    look_at(step, content);
    if (!content.suits || content.cost_ns > tuning_.joined_ns || content.kernels > tuning_.joined_kernels ||
        content.expressions > tuning_.joined_exprs) {
      return false;
    }
    LoopSource source;
    source.loop = step;
    for (FunctionId id : content.functions) {
      Kernel& kernel = source.functions[id] = std::get<Kernel>(program_.sources[id].body);
      fit_lanes(kernel);
    }
    find_regions(content.places, source);
    step.children.clear();
    step.loop = static_cast<FunctionId>(plan_.functions.size());
    const std::string name = "loop" + std::to_string(step.loop);
    plan_.functions.push_back(name);
    program_.sources.push_back({name, std::move(source), false});
    return true;
  }

  void look_at(const Step& step, Content& content) const {
    for (uint32_t i = 0; i < step.places; ++i) content.places.insert(step.first_place + i);
    switch (step.kind) {
      case StepKind::kKernel:
        for (FunctionId id : {step.kernel.function, step.kernel.tail}) {
          if (id == kNoFunction) continue;
          const auto* const kernel = std::get_if<Kernel>(&program_.sources[id].body);
          content.suits = content.suits && kernel;
          if (!kernel) continue;
          content.functions.insert(id);
          ++content.kernels;
          content.expressions += kernel->exprs.size();
        }
        content.cost_ns += step.kernel.cost_ns;
        content.suits = content.suits && !step.kernel.parallel;
        break;
      case StepKind::kRoutine:
      case StepKind::kLibrary:
      case StepKind::kChoice:
      case StepKind::kHostValue:
      case StepKind::kCollective:
      case StepKind::kBlocks:
        content.suits = false;
        break;
      case StepKind::kCopy:
        content.cost_ns += static_cast<double>(step.bytes) / 32;
        break;
      case StepKind::kWhile:
      case StepKind::kConditional:
        break;
    }
    for (const StepList& children : step.children) {
      for (const Step& child : children) look_at(child, content);
    }
  }

  /// Groups places whose memory overlaps into regions, so that the generated loop knows which accesses may alias.
  void find_regions(const std::set<uint32_t>& places, LoopSource& source) const {
    std::vector<uint32_t> sorted(places.begin(), places.end());
    const auto at = [this](uint32_t i) { return plan_.places[i]; };
    std::sort(sorted.begin(), sorted.end(), [&](uint32_t i, uint32_t k) {
      return std::pair(at(i).slot, at(i).offset) < std::pair(at(k).slot, at(k).offset);
    });
    for (uint32_t i : sorted) {
      const Place p = at(i);
      auto& regions = source.regions;
      if (regions.empty() || regions.back().slot != p.slot || regions.back().end <= p.offset) {
        const bool written = p.slot >= plan_.arguments && p.slot <= workspace_slot(plan_);
        regions.push_back({p.slot, p.offset, p.offset, written});
      }
      regions.back().end = std::max(regions.back().end, p.offset + p.bytes);
      source.region_offsets[i] = {static_cast<uint32_t>(regions.size() - 1), p.offset - regions.back().begin};
    }
  }

  void drop_unused() {
    std::vector<FunctionId> number(plan_.functions.size(), kNoFunction);
    std::map<std::string, FunctionId> named;
    for (size_t i = 0; i < number.size(); ++i) named[plan_.functions[i]] = static_cast<FunctionId>(i);
    each_function([&](FunctionId& id) {
      if (id == kNoFunction) return;
      number[id] = 0;
      const auto* const product = std::get_if<BlockedProduct>(&program_.sources[id].body);
      if (!product) return;
      for (const std::string& name : product->functions()) number[named.at(name)] = 0;
    });
    std::vector<std::string> names;
    std::vector<FunctionSource> sources;
    for (size_t i = 0; i < number.size(); ++i) {
      if (number[i] == kNoFunction) continue;
      number[i] = static_cast<FunctionId>(names.size());
      names.push_back(std::move(plan_.functions[i]));
      sources.push_back(std::move(program_.sources[i]));
    }
    each_function([&](FunctionId& id) {
      if (id != kNoFunction) id = number[id];
    });
    plan_.functions = std::move(names);
    program_.sources = std::move(sources);
  }

  /// Calls `visit` for each number of a function in the plan.
  template <typename Visit>
  void each_function(const Visit& visit) {
    each_function(plan_.steps, visit);
    for (RoutineCall& call : plan_.routines) visit(call.compare);
  }

  template <typename Visit>
  void each_function(StepList& steps, const Visit& visit) {
    for (Step& step : steps) {
      visit(step.kernel.function);
      visit(step.kernel.tail);
      visit(step.loop);
      for (StepList& children : step.children) each_function(children, visit);
    }
  }

  PlannedProgram& program_;
  LaunchPlan& plan_;
  const Tuning& tuning_;
};

}  // namespace

void join_loops(PlannedProgram& program, const Tuning& tuning) {
  LoopJoiner(program, tuning).run();
}

}  // namespace collet::codegen
