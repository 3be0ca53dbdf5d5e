// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <string>
#include <string_view>

#include "hlo/base/status.h"
#include "sdk/runtime/run/executable.h"

/// \file
/// Serializes executables: a header with the hash of what follows, a signature if there is a key (SecretKey), the program as HLO text, the options of compilation, and the
/// compiled parts that backends provide, each under a hash of everything on which it depends.

namespace collet::runtime {

/// See collet_executable_serialize. The bytes have the parts of this process; another one that loads them compiles its own.
Expected<std::string> serialize(const Executable& executable);
/// See collet_executable_load. Options in `request` take precedence over those in the bytes. FAILED_PRECONDITION names the participant of a
/// program over several processes that would run in another process than before.
Expected<Executable*> load(Client& client, std::string_view bytes, const collet_compile_request& request);

}  // namespace collet::runtime
