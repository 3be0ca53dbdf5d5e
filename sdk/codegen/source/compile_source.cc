// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/compile.h>

#include <algorithm>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/source/program_text.h"

namespace collet::codegen {

Status compile_source(const collet_program* program, const Target& target, const CompileOptions& options,
                      CompiledProgram& out) {
  if (target.has_grid() || target.threads != 1)
    return {COLLET_UNIMPLEMENTED, "source text is made for one thread of a processor"};
  PlannedProgram planned;
  const Status decided = plan_program(program, target, options, planned);
  out.artifacts = std::move(planned.stages);
  COLLET_CODEGEN_TRY(decided);
  const auto& names = planned.plan.functions;
  if (std::find(names.begin(), names.end(), options.name) != names.end())
    return {COLLET_INVALID_ARGUMENT, "'" + options.name + "' is the name of a kernel"};
  write_program(planned, options, target, out.object);
  if (options.keep_artifacts) out.artifacts.emplace_back("program.c", out.object);
  out.plan = std::move(planned.plan);
  return {};
}

}  // namespace collet::codegen
