// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "conformance/oracle/bounds.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// Computes the exact result of a program that consists of one dot, one convolution, or one sum over dimensions or windows, whose
/// operands are parameters of a float or complex type. Returns nullopt for other programs. `magnitude` holds the sums of the terms'
/// magnitudes, from which bounds of errors are computed, separately for real and imaginary parts. `value` is not set. The
/// evaluator is not used, so that it can be checked against this.
std::optional<Reference> exact_sums(const hlo::Module& module, std::span<const hlo::Literal> inputs);

/// Computes a dot or convolution of integers, which wrap around. Returns nullopt for other ops and types.
std::optional<hlo::Literal> integer_products(const hlo::Instruction& op, const hlo::Literal& lhs,
                                             const hlo::Literal& rhs);

}  // namespace collet::conformance
