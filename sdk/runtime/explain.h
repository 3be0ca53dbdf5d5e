// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sdk/runtime/executable.h"
#include "sdk/runtime/partition.h"

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

/// The ops in a fusion, in order, with `between` between them; without constants.
std::string ops_of_fusion(const hlo::Module& module, const hlo::Instruction& fusion, std::string_view between);

/// For people: what runs where, in which order, why, and what crosses.
std::string explain_text(const ExplainInput& input);
/// For machines.
std::string explain_json(const ExplainInput& input);
/// Counts ops, bytes and kernels into core.facts.
void count_facts(const ExplainInput& input, collet_executable_facts& facts);

}  // namespace collet::runtime
