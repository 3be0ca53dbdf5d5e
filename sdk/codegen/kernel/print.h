// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// The kernel as text, see docs/code_generation.md. parse_kernel makes an equal kernel of it where verify_kernel accepts
/// the kernel; others are printed too, as far as possible.
std::string print_kernel(const Kernel& kernel);

/// One line of the kernel's text: expression `id`. For messages.
std::string print_expr(const Kernel& kernel, ExprId id);

}  // namespace collet::codegen
