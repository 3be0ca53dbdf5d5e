// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// OK for a kernel that schedules, emitters and the evaluator may take as it is; else INVALID_ARGUMENT with the expression,
/// fold or store that breaks a rule, and the rule. What is checked: numbers of buffers, loops, expressions and folds;
/// expressions are defined before they are used; types of operands; fields that an expression does not use are empty;
/// values of inner loops are used outside through folds alone; the rules of scans, of updates, and of lanes. Bounds of
/// accesses are checked where nothing but loops decides them and nobody knows a buffer's size: no index is negative.
Status verify_kernel(const Kernel& kernel);

}  // namespace collet::codegen
