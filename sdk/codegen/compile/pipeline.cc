// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/compile/pipeline.h"

namespace collet::codegen {
namespace {

/// The scans that are cut into blocks on a grid, where a block of threads scans a row, or a part of it.
constexpr LongScans kScansOfGrids{.most_rows = 256,
                                  .least_length = 16384,
                                  .least_block = 2048,
                                  .fewest_blocks = 4,
                                  .most_blocks = 1024,
                                  .contiguous_rows_only = true};

NodeLimits limits_of_processors(const Target& target) {
  return {target.masks, true, true, {}, target.tuning};
}

NodeLimits limits_of_grids(const Target& target) {
  NodeLimits limits;
  limits.scans = kScansOfGrids;
  limits.tuning = target.tuning;
  limits.tuning.product_filters = 4;
  return limits;
}

}  // namespace

/// The tables; the compiler lets this class name its functions.
struct Pipelines {
  // Processors.

  static constexpr Pipeline::GroupStep kGroupsOfProcessors[] = {
      // The scores of an attention stay in a cache if its products run for some rows at a time.
      {"row_blocks", true, &Compiler::find_row_blocks},
  };

  static constexpr Pipeline::KernelStep kKernelsOfProcessors[] = {
      // Within an operand of a concatenation nothing has to be tested.
      {"split_at_edges", &Compiler::split_at_edges_step},
      // Divisions by the size of a loop become loops.
      {"split_at_periods", &Compiler::split_at_periods_step},
      // What is only copied need not be converted.
      {"move_as_integers", &Compiler::move_as_integers_step},
      {"split_quotients", &Compiler::split_quotients_step},
      // Fewer loops have longer rows.
      {"collapse_loops", &Compiler::collapse_loops_step},
      // A product of few rows reads the other factor once for all of them.
      {"unroll_and_jam", &Compiler::unroll_and_jam_step},
      // Elements that are far apart are read once, into a row.
      {"pack_strided", &Compiler::pack_strided_step},
      // Each step of a product loses digits, which the type of many factors does not have.
      {"widen_products", &Compiler::widen_products_step},
      // Threads share a long reduction.
      {"split_reduction", &Compiler::split_reduction_step},
      // Short rows fill vectors together.
      {"merge_rows", &Compiler::merge_rows_step},
      // Whole squares are transposed without tests.
      {"split_squares", &Compiler::split_squares_step},
      // Vectors of integers of 16 bits have twice as many lanes as those of f32.
      {"compare_as_integers", &Compiler::compare_as_integers_step},
      {"choose_lanes", &Compiler::choose_lanes_step},
      {"schedule", &Compiler::schedule_step},
      {"launch", &Compiler::launch_step},
  };

  static constexpr Pipeline kProcessor{.machine = "processor",
                                       .group_steps = kGroupsOfProcessors,
                                       .node_steps = {},
                                       .kernel_steps = kKernelsOfProcessors,
                                       .describe = &Compiler::describe_call,
                                       .node_limits = limits_of_processors,
                                       .splits_edges = true,
                                       .has_micro_kernels = true,
                                       .has_blocks_of_rows = true,
                                       .has_lanes = true,
                                       .counts_on_host = false,
                                       .has_routines = true};

  // Processors whose kernels the host starts one by one. It counts the iterations of a loop where their number is known, and does not
  // wait for the condition.
  static constexpr Pipeline kStartedProcessor = [] {
    Pipeline pipeline = kProcessor;
    pipeline.machine = "processor, started by a host";
    pipeline.counts_on_host = true;
    return pipeline;
  }();

  // Processors whose kernels another compiler takes: without micro-kernels and blocks of rows, which are no kernels.
  static constexpr Pipeline kNeutralProcessor = [] {
    Pipeline pipeline = kStartedProcessor;
    pipeline.machine = "neutral processor";
    pipeline.group_steps = {};
    pipeline.has_micro_kernels = false;
    pipeline.has_blocks_of_rows = false;
    return pipeline;
  }();

  // Grids.

  static constexpr Pipeline::GroupStep kGroupsOfGrids[] = {
      // An attention is one kernel, which keeps the scores in registers.
      {"attentions", true, &Compiler::find_attentions},
      // A sort makes the numbers of the elements itself.
      {"unread_numbers", false, &Compiler::find_unread_numbers},
  };

  static constexpr Pipeline::NodeStep kNodesOfGrids[] = {
      {"host_value", &Compiler::take_host_value},
      {"collective", &Compiler::take_collective},
      // A loop over scalars runs on the device, so that the host need not wait for it.
      {"scalar_loop", &Compiler::take_scalar_loop},
  };

  static constexpr Pipeline::KernelStep kKernelsOfGrids[] = {
      {"split_at_edges", &Compiler::split_at_edges_step},
      {"move_as_integers", &Compiler::move_as_integers_step},
      // Updates of one element are added by one block. This needs the separate loops, to see which of them never update
      // the same element.
      {"group_updates", &Compiler::group_updates_step},
      {"collapse_loops", &Compiler::collapse_loops_step},
      // A factor that is computed for each tile again is computed once.
      {"pack_factor", &Compiler::pack_factor_step},
      // Blocks share a long reduction.
      {"split_reduction", &Compiler::split_grid_reduction_step},
      {"launch", &Compiler::launch_step},
  };

  static constexpr Pipeline kGrid{.machine = "grid",
                                  .group_steps = kGroupsOfGrids,
                                  .node_steps = kNodesOfGrids,
                                  .kernel_steps = kKernelsOfGrids,
                                  .describe = &Compiler::describe_grid,
                                  .node_limits = limits_of_grids,
                                  .splits_edges = false,
                                  .has_micro_kernels = false,
                                  .has_blocks_of_rows = false,
                                  .has_lanes = false,
                                  .counts_on_host = true,
                                  .has_routines = false};

  // Grids of which only processors and local memory are known.

  static constexpr Pipeline::KernelStep kKernelsOfNeutralGrids[] = {
      {"split_at_edges", &Compiler::split_at_edges_step},        {"move_as_integers", &Compiler::move_as_integers_step},
      {"collapse_loops", &Compiler::collapse_loops_step},        {"pack_factor", &Compiler::pack_factor_step},
      {"split_reduction", &Compiler::split_grid_reduction_step}, {"launch", &Compiler::launch_step},
  };

  static constexpr Pipeline kNeutralGrid{.machine = "neutral grid",
                                         .group_steps = {},
                                         .node_steps = kNodesOfGrids,
                                         .kernel_steps = kKernelsOfNeutralGrids,
                                         .describe = &Compiler::describe_grid,
                                         .node_limits = limits_of_grids,
                                         .splits_edges = false,
                                         .has_micro_kernels = false,
                                         .has_blocks_of_rows = false,
                                         .has_lanes = false,
                                         .counts_on_host = true,
                                         .has_routines = false};
};

const Pipeline& pipeline_for(const Target& target, CodeForm form) {
  if (form == CodeForm::kKernels && !target.has_grid()) return Pipelines::kNeutralProcessor;
  if (!target.has_grid()) return form == CodeForm::kOpenCl ? Pipelines::kStartedProcessor : Pipelines::kProcessor;
  return target.grid.neutral ? Pipelines::kNeutralGrid : Pipelines::kGrid;
}

}  // namespace collet::codegen
