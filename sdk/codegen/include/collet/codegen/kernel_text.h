// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/codegen/status.h>

#include <string>
#include <string_view>

namespace collet::codegen {

/// Returns the kernel as text, see docs/code_generation.md. If verify_kernel accepts the kernel, parse_kernel of the
/// text gives an equal kernel; other kernels are printed as far as possible.
std::string print_kernel(const Kernel& kernel);

/// Returns the line of expression `id` in the kernel's text, for messages.
std::string print_expr(const Kernel& kernel, ExprId id);

/// Reads one kernel in the text form of print_kernel, see docs/code_generation.md. Accepts any bytes; on a syntax error
/// it returns INVALID_ARGUMENT with "line:column: " and what was expected there. It also checks that names are defined
/// before they are used. All other rules are checked by verify_kernel.
Status parse_kernel(std::string_view text, Kernel& out);

}  // namespace collet::codegen
