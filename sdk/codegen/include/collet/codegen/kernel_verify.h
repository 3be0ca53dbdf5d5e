// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/codegen/status.h>

#include <cstdint>

namespace collet::codegen {

/// Most bytes of a kernel's arrays on the stack, which hold kept rows or the accumulators of a strip: callers promise 256 KiB.
inline constexpr int64_t kMostStackBytes = 128 << 10;

/// Checks the rules on which schedules, emitters and the evaluator rely. Returns INVALID_ARGUMENT with the rule that is broken and
/// the expression, reduction or store that breaks it. The rules are: numbers of buffers, loops, expressions and reductions are in
/// range; expressions are defined before they are used; operands have the right types; fields that an expression does not use are
/// empty; values of inner loops are used outside of them only through reductions; scans, updates and lanes have the form that
/// kernel.h describes; and an index that depends on loops alone, without mask or condition, is never negative. Upper bounds are
/// not checked, since the kernel does not have the sizes of its buffers.
Status verify_kernel(const Kernel& kernel);

}  // namespace collet::codegen
