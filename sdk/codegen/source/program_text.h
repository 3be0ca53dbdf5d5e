// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/compile.h>

#include <string>

#include "sdk/codegen/compile/plan_program.h"

namespace collet::codegen {

/// Writes a planned program as one translation unit of C99 with one function of external linkage, `options.name`: see
/// CodeForm::kSource.
void write_program(const PlannedProgram& program, const CompileOptions& options, const Target& target,
                   std::string& out);

/// Writes kernels as a translation unit of C99 whose functions, KernelFunctions, have external linkage. For tests.
std::string write_kernels(const std::vector<std::pair<std::string, Kernel>>& kernels, const Target& target);

}  // namespace collet::codegen
