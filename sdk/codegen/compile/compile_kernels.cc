// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_program.h>

#include <collet/codegen/kernel_text.h>
#include <collet/hash.h>

#include <string>
#include <utility>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/launch/print.h"

namespace collet::codegen {

Status compile_kernels(const collet_program* program, const Target& target, const CompileOptions& options,
                       KernelProgram& out) {
  if (target.has_grid() || target.threads != 1)
    return {COLLET_UNIMPLEMENTED, "kernels as data are made for one thread of a processor"};
  if (target.routines) return {COLLET_INVALID_ARGUMENT, "kernels as data call no routines of the host"};
  CompileOptions chosen = options;
  chosen.form = CodeForm::kKernels;
  PlannedProgram planned;
  const Status decided = plan_program(program, target, chosen, planned);
  out.artifacts = std::move(planned.stages);
  COLLET_CODEGEN_TRY(decided);
  out.kernels.clear();
  for (FunctionSource& source : planned.sources) {
    auto* const kernel = std::get_if<Kernel>(&source.body);
    if (!kernel) return {COLLET_INTERNAL, "'" + source.name + "' is no kernel of kernel IR"};
    out.kernels.push_back({std::move(source.name), std::move(source.ops), std::move(*kernel)});
  }
  out.plan = std::move(planned.plan);
  std::string text = print_launch_plan(out.plan);
  for (const PlannedKernel& one : out.kernels) text += print_kernel(one.kernel);
  out.fingerprint = collet_hash_bytes(0, text.data(), text.size());
  return {};
}

}  // namespace collet::codegen
