// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include "sdk/codegen/compile/plan_program.h"

namespace collet::codegen {

/// Writes a launch plan as one function, void name(char* const* slots), and all that it calls as functions that only this
/// module sees. `slots` has the address of each argument, each result and the workspace. The function uses no other memory
/// that is written, calls nothing but functions of C's mathematical library, memcpy and memset, and runs on one thread.
/// UNIMPLEMENTED for a plan with routines: those are code of the launcher.
Status emit_entry(const PlannedProgram& program, const CompileOptions& options, llvm::Module& module,
                  const Target& target);

}  // namespace collet::codegen
