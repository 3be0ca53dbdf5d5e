// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "conformance/oracle/bounds.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// Where the program is one dot, convolution, or sum over dimensions or windows, of parameters that are floats or complex: the exact
/// result, and the sum of magnitudes that its bound is about, of complex numbers by part. `value` is not set. The evaluator has no part
/// in it.
std::optional<Reference> exact_sums(const hlo::Module& module, std::span<const hlo::Literal> inputs);

/// A dot or convolution of integers.
std::optional<hlo::Literal> integer_products(const hlo::Instruction& op, const hlo::Literal& lhs,
                                             const hlo::Literal& rhs);

}  // namespace collet::conformance
