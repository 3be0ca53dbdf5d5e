// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include <string_view>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// Reads one kernel in the text form of print_kernel, see docs/code_generation.md. Accepts any bytes; on a syntax error
/// it returns INVALID_ARGUMENT with "line:column: " and what was expected there. It also checks that names are defined
/// before they are used. All other rules are checked by verify_kernel.
Status parse_kernel(std::string_view text, Kernel& out);

}  // namespace collet::codegen
