// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case.h"
#include "hlo/ir/module.h"

/// \file
/// Cases of the ops of a given program: each is one instruction alone, with its types, shapes and attributes.

namespace collet::conformance {

/// Returns the text of a module whose entry is this instruction, or why it cannot stand alone. Operands become
/// parameters, in the order of their first use; constants of at most 64 elements stay constants. A tuple-shaped operand
/// becomes one parameter for each of its elements.
struct AloneOp {
  std::string text;
  std::vector<hlo::InstrId> parameters;  ///< the operand of each parameter
  std::string why_not;                   ///< not empty: there is no text
};
AloneOp stand_alone(const hlo::Module& module, hlo::InstrId id);

/// Returns the cases of an instruction with the suite's inputs and bounds. `program` becomes a part of the names:
/// op/type/program.instruction/values. Empty if stand_alone has no text, with its reason in `why_not`.
struct OpCases {
  std::vector<Case> cases;
  std::string why_not;
};
OpCases cases_of_op(const hlo::Module& module, hlo::InstrId id, std::string_view program);

/// Returns the op of a computation that combines its two parameters; INVALID if it does something else.
Op combiner_of(const hlo::Module& module, hlo::CompId id);
/// Returns the error bound of an instruction, by its op, its types and the number of terms that it adds up.
Bound bound_of_op(const hlo::Module& module, const hlo::Instruction& instr);
/// Returns an estimate of the seconds that exact arithmetic takes for the expected results.
double exact_seconds(const hlo::Module& module, const hlo::Instruction& instr);

}  // namespace collet::conformance
