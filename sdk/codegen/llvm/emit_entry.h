// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include "sdk/codegen/compile/plan_program.h"

namespace collet::codegen {

/// Writes a launch plan as one function, see CodeForm::kOneFunction, and all that it calls as functions that only this
/// module sees. It uses no memory that is written but that of its slots.
/// UNIMPLEMENTED for a plan with routines: those are code of the launcher.
Status emit_entry(const PlannedProgram& program, const CompileOptions& options, llvm::Module& module,
                  const Target& target);

}  // namespace collet::codegen
