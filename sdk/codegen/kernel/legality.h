// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>

/// \file
/// Conditions of loops whose elements are taken in another order. The verifier refuses kernels that do not fulfil them, and the rules of
/// schedules ask before they apply.

namespace collet::codegen {

/// Says why the elements of a kernel's lanes may not be taken in any order (Kernel::unordered); null if they may. All of them must be
/// reduced by known combinations without a condition, and all loads must be of adjacent bf16 elements.
const char* refusal_of_any_order(const Kernel& kernel);

/// Says why the kernel may not reduce its rows in strips of its last outer loop (Loop::strip), each row in one pass; null if it may.
const char* refusal_of_strips(const Kernel& kernel);

}  // namespace collet::codegen
