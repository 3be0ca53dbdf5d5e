// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// Returns the kernel as text, see docs/code_generation.md. If verify_kernel accepts the kernel, parse_kernel of the
/// text gives an equal kernel; other kernels are printed as far as possible.
std::string print_kernel(const Kernel& kernel);

/// Returns the line of expression `id` in the kernel's text, for messages.
std::string print_expr(const Kernel& kernel, ExprId id);

}  // namespace collet::codegen
