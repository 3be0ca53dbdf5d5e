// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "conformance/oracle/bounds.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// Computes the results of a program of several ops in exact arithmetic, and bounds on the error of a device that
/// rounds after each op as docs/ops.md allows; errors are propagated from op to op. `flushes`: the device treats
/// denormals as zero. The evaluator is not used. Returns nullopt if an op is unknown, if a result may overflow, and if
/// an error may change a decision.
std::optional<std::vector<Reference>> bounded_answer(const hlo::Module& module, std::span<const hlo::Literal> inputs,
                                                     bool flushes);

}  // namespace collet::conformance
