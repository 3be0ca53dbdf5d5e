// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "conformance/oracle/bounds.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// Exact sums. `sum` has `exact`, `rest` and `magnitude` (the sum of the finite terms' magnitudes), for complex numbers
/// separately for each part.
struct ExactSums {
  Reference sum;
  std::vector<int64_t> terms;  ///< by element: the number of its terms, including the initial value
};

/// Computes the exact result of a dot, a convolution, or of an op that adds: a reduction, a window reduction, a scatter or a select-and-scatter.
/// The result is of a float or complex type. Returns nullopt for other ops. The operands may be wider than the op's own, as long as they have
/// their dimensions. The evaluator is not used, so that it can be checked against this.
std::optional<ExactSums> exact_sums(const hlo::Module& module, const hlo::Instruction& op,
                                    std::span<const hlo::Literal* const> operands);

/// Computes a reduction that multiplies floats or complex numbers, with the allowed errors. Returns nullopt for other ops, and if an order
/// of the factors may overflow, or have partial products that are denormal.
std::optional<Reference> exact_products(const hlo::Module& module, const hlo::Instruction& op,
                                        std::span<const hlo::Literal* const> operands);

/// Computes a dot or convolution of integers, which wrap around. Returns nullopt for other ops and types.
std::optional<hlo::Literal> integer_products(const hlo::Instruction& op, const hlo::Literal& lhs,
                                             const hlo::Literal& rhs);

}  // namespace collet::conformance
