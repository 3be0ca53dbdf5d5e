// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include "hlo/base/status.h"
#include "sdk/runtime/module.h"
#include "sdk/runtime/plan/program_compiler.h"
#include "sdk/runtime/run/executable.h"

namespace collet::runtime {

/// Compiles a module to an executable: verifies, runs passes, asks the backend, legalizes, partitions into clusters,
/// and compiles these. Programs in `parts` are loaded instead of compiled; it may be null.
Expected<Executable*> compile(Client& client, ProgramModule& module, const collet_compile_request& request,
                              const CompiledParts* parts = nullptr);

/// Returns the program of each participant, as text or bytes of a format: the source or, if that is for whole arrays, the tiles.
Expected<std::string> program_of(const Executable& executable, uint32_t format);

}  // namespace collet::runtime
