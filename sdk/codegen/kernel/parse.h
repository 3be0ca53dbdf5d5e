// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include <string_view>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// Reads one kernel in the text form of print_kernel, see docs/code_generation.md. Any bytes may be given; what is not
/// understood is INVALID_ARGUMENT with "line:column: " and what was expected there. The syntax is checked, and that names
/// are defined before they are used; what else a kernel must be is verify_kernel's affair.
Status parse_kernel(std::string_view text, Kernel& out);

}  // namespace collet::codegen
