// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <string>
#include <string_view>

#include "hlo/base/status.h"
#include "sdk/runtime/executable.h"

/// \file
/// Executables as bytes: a head with a checksum, the program as HLO text, how it was compiled, and the compiled parts that
/// backends hand out, each under a key of all that it depends on.

namespace collet::runtime {

/// See collet_executable_serialize.
std::string serialize(const Executable& executable);
/// See collet_executable_load. What `request` says counts before what the bytes say.
Expected<Executable*> load(Client& client, std::string_view bytes, const collet_compile_request& request);

}  // namespace collet::runtime
