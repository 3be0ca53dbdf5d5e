// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/compile.h>

#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/compile/function_source.h"
#include "sdk/codegen/graph/graph.h"

namespace collet::codegen {

/// A program as launches, and the sources of the functions that they call.
struct PlannedProgram {
  LaunchPlan plan;
  std::vector<FunctionSource> sources;  ///< one for each of plan.functions
  /// File names and contents of what the program went through: graph, fusion groups, kernels, launch plan.
  Artifacts stages;
};

/// Decides what runs in one kernel, in which order, in which memory. Makes no code.
Status plan_program(const collet_program* program, const Target& target, const CompileOptions& options,
                    PlannedProgram& out);

/// Makes one function of each loop whose iterations are so short that interpreting their steps would cost more than what they do.
void join_loops(PlannedProgram& program);

}  // namespace collet::codegen
