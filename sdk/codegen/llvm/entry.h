// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A whole program as one function, for code that runs without a launcher.

#include <string>

#include "sdk/codegen/compile/c_header.h"
#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/llvm/object_compiler.h"

namespace collet::codegen {

/// Object code that defines void options.name(char* const* slots), see emit_entry; no other symbol. UNIMPLEMENTED for a
/// program with routines.
Status compile_entry(const PlannedProgram& program, const EntryOptions& options, ObjectCompiler& compiler,
                     Artifacts* artifacts, std::string& object);

/// A static library with one object file.
Status make_archive(const std::string& object, const std::string& name, std::string& archive);

}  // namespace collet::codegen
