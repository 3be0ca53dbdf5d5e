// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/compile.h>

#include <algorithm>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/source/opencl_text.h"
#include "sdk/codegen/source/program_text.h"

namespace collet::codegen {

Status compile_source(const collet_program* program, const Target& target, const CompileOptions& options,
                      CompiledProgram& out) {
  const bool is_opencl = options.form == CodeForm::kOpenCl;
  if (is_opencl && target.has_grid() && !target.grid.neutral)
    return {COLLET_UNIMPLEMENTED, "OpenCL C is made for neutral grids, see grid_machine, and for processors"};
  if (is_opencl && target.routines)
    return {COLLET_INVALID_ARGUMENT, "a program of OpenCL C calls no routines of the host"};
  if (!is_opencl && (target.has_grid() || target.threads != 1))
    return {COLLET_UNIMPLEMENTED, "source text is made for one thread of a processor"};
  PlannedProgram planned;
  const Status decided = plan_program(program, target, options, planned);
  out.artifacts = std::move(planned.stages);
  COLLET_CODEGEN_TRY(decided);
  if (is_opencl) {
    COLLET_CODEGEN_TRY(write_opencl(planned, target, out.object));
    if (options.keep_artifacts) out.artifacts.emplace_back("program.cl", out.object);
    out.plan = std::move(planned.plan);
    return {};
  }
  const auto& names = planned.plan.functions;
  if (std::find(names.begin(), names.end(), options.name) != names.end())
    return {COLLET_INVALID_ARGUMENT, "'" + options.name + "' is the name of a kernel"};
  write_program(planned, options, target, out.object);
  if (options.keep_artifacts) out.artifacts.emplace_back("program.c", out.object);
  out.plan = std::move(planned.plan);
  return {};
}

}  // namespace collet::codegen
