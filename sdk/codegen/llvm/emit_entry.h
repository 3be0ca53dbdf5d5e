// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include "sdk/codegen/compile/plan_program.h"

namespace collet::codegen {

/// Emits a launch plan as one function, see CodeForm::kOneFunction, with all functions that it calls as internal
/// functions of the module. It writes only to the memory of its slots. Returns UNIMPLEMENTED for a plan with routines,
/// which are functions of the process that interprets the plan.
Status emit_entry(const PlannedProgram& program, const CompileOptions& options, llvm::Module& module,
                  const Target& target);

}  // namespace collet::codegen
