// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <string>
#include <string_view>

#include "hlo/base/status.h"
#include "sdk/runtime/executable.h"

/// \file
/// Serializes executables: a header with the hash of what follows, a signature if there is a key (SecretKey), the program as HLO text, the options of compilation, and the
/// compiled parts that backends provide, each under a hash of everything on which it depends.

namespace collet::runtime {

/// See collet_executable_serialize.
/// FAILED_PRECONDITION for a program with participants in other processes.
Expected<std::string> serialize(const Executable& executable);
/// See collet_executable_load. Options in `request` take precedence over those in the bytes.
Expected<Executable*> load(Client& client, std::string_view bytes, const collet_compile_request& request);

}  // namespace collet::runtime
