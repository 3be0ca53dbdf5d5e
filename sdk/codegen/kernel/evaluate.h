// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

struct EvaluateOptions {
  int64_t most_turns = 1'000'000;  ///< of one while
};

/// Runs the kernel on its buffers, point by point in the order of the loops: slow, and what every schedule and emitter must
/// agree with. Lanes do not matter. Each operation is rounded to its type as evaluate_element says; sums and products of
/// floats that are folded by a known combination are rounded once, at the end. INVALID_ARGUMENT where verify_kernel
/// refuses the kernel or there are other buffers than it names; OUT_OF_RANGE, with the expression and the point, for an
/// access beyond its buffer or a while that does not end. Buffers are written up to there.
Status evaluate_kernel(const Kernel& kernel, std::span<const std::span<std::byte>> buffers,
                       const EvaluateOptions& options = {});

}  // namespace collet::codegen
