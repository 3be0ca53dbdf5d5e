// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "conformance/oracle/bounds.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// Computes the results of a program of several ops in exact arithmetic, and how far from them a device may be that rounds after each op as
/// docs/ops.md allows: the errors are carried from op to op. `flushes`: it takes denormals for zero. The evaluator has no part in it. Returns
/// nullopt where an op is unknown, where a result may overflow, and where an error may change a decision.
std::optional<std::vector<Reference>> bounded_answer(const hlo::Module& module, std::span<const hlo::Literal> inputs,
                                                     bool flushes);

}  // namespace collet::conformance
