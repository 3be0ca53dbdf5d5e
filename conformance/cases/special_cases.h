// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "conformance/cases/case.h"
#include "hlo/ir/module.h"

/// \file
/// Cases of a given program's ops and groups with NaN and infinities among their inputs.

namespace collet::conformance {

/// Returns the cases with NaN and infinities, or with the suite's edge values, of an instruction. `unit` is its case with usual values,
/// whose inputs have the element types `types`; `stem` begins their names. Empty where right devices may differ for such values: where
/// the result depends on an order of comparisons, on the multiplication of padding, or on the formula of a pattern.
std::vector<Case> special_cases(const hlo::Module& module, const hlo::Instruction& instr, const Case& unit,
                                const std::vector<Type>& types, std::string_view stem);

}  // namespace collet::conformance
