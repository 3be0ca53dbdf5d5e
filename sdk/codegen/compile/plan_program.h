// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/compile.h>

#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/compile/function_source.h"
#include "sdk/codegen/graph/graph.h"

namespace collet::codegen {

/// An array among LaunchPlan::constants.
struct ConstantArray {
  uint64_t offset = 0;  ///< in bytes, a multiple of 64
  ArrayType type;
};

/// A launch plan and the sources of the functions that it calls.
struct PlannedProgram {
  LaunchPlan plan;
  std::vector<ConstantArray> constants;  ///< by offset
  std::vector<FunctionSource> sources;   ///< one for each of plan.functions
  /// File names and contents of the printed stages of compilation: graph, fusion groups, kernels, launch plan.
  Artifacts stages;
};

/// Decides which ops form one kernel, in which order kernels run, and in which memory. Does not generate code.
Status plan_program(const collet_program* program, const Target& target, const CompileOptions& options,
                    PlannedProgram& out);

/// Replaces each loop whose iterations are so short that interpreting their steps would cost more than running them by
/// one function.
void join_loops(PlannedProgram& program, const Tuning& tuning);

}  // namespace collet::codegen
