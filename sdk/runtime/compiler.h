// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include "hlo/base/status.h"
#include "sdk/runtime/executable.h"
#include "sdk/runtime/module.h"
#include "sdk/runtime/program_compiler.h"

namespace collet::runtime {

/// The way from a module to an executable: verify, passes, ask, legalise, partition, compile. What is in `parts` is loaded
/// instead of compiled; it may be null.
Expected<Executable*> compile(Client& client, ProgramModule& module, const collet_compile_request& request,
                              const CompiledParts* parts = nullptr);

/// What each participant does, as text or bytes of a format: the source, or the tiles where that is for whole arrays.
Expected<std::string> program_of(const Executable& executable, uint32_t format);

}  // namespace collet::runtime
