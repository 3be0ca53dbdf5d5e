// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <memory>

#include "hlo/base/status.h"
#include "sdk/runtime/executable.h"
#include "sdk/runtime/module.h"

namespace collet::runtime {

/// The way from a module to an executable: verify, passes, ask, legalise, partition, compile.
Expected<Executable*> compile(Client& client, const ProgramModule& module, const collet_compile_request& request);

}  // namespace collet::runtime
