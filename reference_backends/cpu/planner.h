// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <memory>
#include <string>
#include <vector>

#include "reference_backends/cpu/plan.h"
#include "sdk/codegen/graph.h"

namespace collet::cpu {

struct PlanOptions {
  bool fuse = true;
  int threads = 1;
  bool keep_artifacts = false;
  const std::vector<std::string>* objects = nullptr;  ///< null, or the code as it was made before from the same program
};

/// Compiles a program.
codegen::Status make_plan(const collet_program* program, codegen::Jit& jit, const PlanOptions& options,
                          std::unique_ptr<Plan>& out);

/// Why a node cannot be compiled; empty when it can. `expand` is set where the SDK's expansion would do.
std::string refusal(const codegen::Graph& graph, const codegen::Node& node, bool& expand);

}  // namespace collet::cpu
