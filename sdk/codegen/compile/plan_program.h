// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/compile/function_source.h"
#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/launch/launch_plan.h"
#include "sdk/codegen/schedule/target.h"

namespace collet::codegen {

struct CompileOptions {
  bool fuse = true;          ///< false: one kernel for each op
  bool keep_stages = false;  ///< fill PlannedProgram::stages
  bool verify =
      false;  ///< each kernel, after lowering and after scheduling: INTERNAL where one breaks a rule; for tests
};

/// A program as launches, and the sources of the functions that they call.
struct PlannedProgram {
  LaunchPlan plan;
  std::vector<FunctionSource> sources;  ///< one for each of plan.functions
  /// File names and contents of what the program went through: graph, fusion groups, kernels, launch plan.
  std::vector<std::pair<std::string, std::string>> stages;
};

/// Decides what runs in one kernel, in which order, in which memory. Makes no code.
Status plan_program(const collet_program* program, const Target& target, const CompileOptions& options,
                    PlannedProgram& out);

}  // namespace collet::codegen
