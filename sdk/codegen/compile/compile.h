// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <memory>
#include <string>
#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/launch/launch_plan.h"
#include "sdk/codegen/llvm/jit.h"

namespace collet::codegen {

struct CompileOptions {
  bool fuse = true;
  int threads = 1;
  bool keep_artifacts = false;
  const std::vector<std::string>* objects = nullptr;  ///< null, or the code as it was made before from the same program
};

/// Compiles a program.
Status compile_program(const collet_program* program, Jit& jit, const CompileOptions& options,
                       std::unique_ptr<LaunchPlan>& out);

/// Why a node cannot be compiled; empty when it can. `expand` is set where the SDK's expansion would do.
std::string refusal(const Graph& graph, const Node& node, bool& expand);

}  // namespace collet::codegen
