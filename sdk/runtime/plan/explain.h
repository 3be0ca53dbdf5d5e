// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sdk/runtime/plan/partition.h"
#include "sdk/runtime/run/executable.h"

namespace collet::runtime {

/// The data from which a plan is described.
struct ExplainInput {
  const hlo::Module& module;
  const Partition& partition;
  const Lowered& lowered;
  const ExecutableCore& core;
  std::string backend, fallback;
  std::string device_kind;
};

/// Returns the names of the ops in a fusion, in order, separated by `between`. Constants are left out.
std::string ops_of_fusion(const hlo::Module& module, const hlo::Instruction& fusion, std::string_view between);

/// Returns a text that describes which op runs where, in which order and why, and which values are copied between
/// device and fallback.
std::string explain_text(const ExplainInput& input);
/// Returns the same as JSON.
std::string explain_json(const ExplainInput& input);
/// Counts ops, bytes and kernels into core.facts.
void count_facts(const ExplainInput& input, collet_executable_facts& facts);

}  // namespace collet::runtime
