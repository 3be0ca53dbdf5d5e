// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/compile.h>

#include <llvm/Object/ArchiveWriter.h>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/llvm/emit_entry.h"
#include "sdk/codegen/llvm/object_compiler.h"

namespace collet::codegen {

Status compile(const collet_program* program, const Target& target, const CompileOptions& options,
               CompiledProgram& out) {
  const bool is_text = options.form == CodeForm::kLlvm;
  const bool is_one = is_text || options.form == CodeForm::kOneFunction;
  if (target.has_grid() && is_one)
    return {COLLET_UNIMPLEMENTED, "a program for grids of threads is launched from the host: it is no single function"};
  if (options.form == CodeForm::kSource) return compile_source(program, target, options, out);
  PlannedProgram planned;
  const Status decided = plan_program(program, target, options, planned);
  out.artifacts = std::move(planned.stages);
  COLLET_CODEGEN_TRY(decided);
  std::unique_ptr<ObjectCompiler> compiler;
  COLLET_CODEGEN_TRY(ObjectCompiler::create(target, compiler));
  Status emitted;
  const auto fill = [&](llvm::Module& module) {
    if (is_one) {
      emitted = emit_entry(planned, options, module, target);
    } else {
      for (const FunctionSource& source : planned.sources) emit_function(source, module, target);
    }
  };
  const Status compiled =
      is_text ? compiler->print(options.name, fill, options.llvm_version, out.object)
              : compiler->compile(options.name, fill, options.keep_artifacts ? &out.artifacts : nullptr, out.object);
  if (is_text && options.keep_artifacts) out.artifacts.emplace_back(options.name + ".ll", out.object);
  COLLET_CODEGEN_TRY(emitted);
  COLLET_CODEGEN_TRY(compiled);
  out.plan = std::move(planned.plan);
  return {};
}

Status make_archive(const std::string& object, const std::string& name, std::string& archive) {
  const llvm::MemoryBufferRef member(object, name);
  std::vector<llvm::NewArchiveMember> members;
  members.emplace_back(member);
  auto written = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, true, false);
  if (!written) return {COLLET_INTERNAL, "LLVM: " + llvm::toString(written.takeError())};
  archive.assign((*written)->getBufferStart(), (*written)->getBufferSize());
  return {};
}

}  // namespace collet::codegen
