// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_program.h>

#include <collet/codegen/kernel_text.h>
#include <collet/hash.h>

#include <string>
#include <utility>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/launch/print.h"

namespace collet::codegen {

namespace {

KernelGrid grid_of(const Kernel& kernel, const GridSchedule& schedule) {
  KernelGrid out;
  out.parallel = schedule.parallel;
  out.blocks = schedule.blocks;
  out.block_threads = schedule.block_threads;
  // A scan, and a reduction whose order counts, is run by one thread.
  if (schedule.form == GridSchedule::Form::kRows && !schedule.in_order && !kernel.scan) {
    out.form = KernelGrid::Form::kRows;
    out.group = schedule.group;
  }
  if (schedule.form == GridSchedule::Form::kTiles) {
    const TileSchedule& t = schedule.tiles;
    out.form = KernelGrid::Form::kTiles;
    const auto factor = [](const TileOperand& o) {
      return KernelGrid::Factor{o.value, o.loops, o.depth_loops, o.by_depth};
    };
    out.product = {factor(t.a),       factor(t.b),          t.batch, t.shape.rows, t.shape.columns,
                   t.shape.part_rows, t.shape.part_columns, t.round};
    out.parallel = t.a.loops | t.b.loops | t.batch;
  }
  return out;
}

std::string print_loops(uint64_t loops) {
  std::string out;
  for (int l = 0; l < 64; ++l)
    if ((loops >> l & 1) != 0) out += (out.empty() ? "" : ", ") + std::to_string(l);
  return out;
}

}  // namespace

std::string print_grid(const KernelGrid& grid) {
  const std::string end = std::to_string(grid.blocks) + " blocks of " + std::to_string(grid.block_threads) + " threads";
  const std::string loops = grid.parallel == 0 ? "in order, " : "of loops " + print_loops(grid.parallel) + ", ";
  switch (grid.form) {
    case KernelGrid::Form::kRows:
      return "rows " + loops + std::to_string(grid.group) + " threads each, " + end;
    case KernelGrid::Form::kTiles: {
      const KernelGrid::Product& p = grid.product;
      return "tiles " + std::to_string(p.rows) + " x " + std::to_string(p.columns) + " " + loops +
             std::to_string(p.thread_rows) + " x " + std::to_string(p.thread_columns) + " of a thread, rounds of " +
             std::to_string(p.round) + ", " + end;
    }
    case KernelGrid::Form::kPoints:
      break;
  }
  return "points " + loops + end;
}

Status compile_kernels(const collet_program* program, const Target& target, const CompileOptions& options,
                       KernelProgram& out) {
  if (target.has_grid() ? !target.grid.neutral : target.threads != 1)
    return {COLLET_UNIMPLEMENTED,
            "kernels as data are made for one thread of a processor, and for neutral grids, see grid_machine"};
  if (target.routines || target.sort_kernels)
    return {COLLET_INVALID_ARGUMENT, "kernels as data call no routines of the host: sorts are expanded"};
  CompileOptions chosen = options;
  chosen.form = CodeForm::kKernels;
  PlannedProgram planned;
  const Status decided = plan_program(program, target, chosen, planned);
  out.artifacts = std::move(planned.stages);
  COLLET_CODEGEN_TRY(decided);
  out.kernels.clear();
  for (FunctionSource& source : planned.sources) {
    if (auto* const kernel = std::get_if<Kernel>(&source.body)) {
      out.kernels.push_back({std::move(source.name), std::move(source.ops), std::move(*kernel), std::nullopt});
      continue;
    }
    auto* const on_grid = std::get_if<GridKernel>(&source.body);
    if (!on_grid) return {COLLET_INTERNAL, "'" + source.name + "' is no kernel of kernel IR"};
    const KernelGrid grid = grid_of(on_grid->kernel, on_grid->schedule);
    out.kernels.push_back({std::move(source.name), std::move(source.ops), std::move(on_grid->kernel), grid});
  }
  out.plan = std::move(planned.plan);
  std::string text = print_launch_plan(out.plan);
  for (const PlannedKernel& one : out.kernels)
    text += print_kernel(one.kernel) + (one.grid ? print_grid(*one.grid) + "\n" : "");
  out.fingerprint = collet_hash_bytes(0, text.data(), text.size());
  return {};
}

}  // namespace collet::codegen
