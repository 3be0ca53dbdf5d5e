// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/compile.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/codegen/compile/plan_program.h"

namespace collet::codegen {

/// Writes the kernels of a planned program as a program of OpenCL C, see CodeForm::kOpenCl, and changes its launch plan accordingly.
/// Returns UNIMPLEMENTED if a kernel has more arrays than may be passed to one.
Status write_opencl(PlannedProgram& program, const Target& target, std::string& out);

/// Writes kernels, each a Kernel or a GridKernel, as a program of OpenCL C. A kernel has one memory and an offset; `offsets` are those of its
/// buffers from there. A Kernel is for groups of one work-item. For tests.
std::string write_opencl_kernels(const std::vector<FunctionSource>& kernels,
                                 const std::vector<std::vector<uint64_t>>& offsets, const Target& target);

}  // namespace collet::codegen
