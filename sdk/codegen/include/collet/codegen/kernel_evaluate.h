// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/codegen/status.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace collet::codegen {

struct EvaluateOptions {
  int64_t most_iterations = 1'000'000;  ///< limit of iterations of one kWhile
};

/// Runs the kernel on its buffers, point by point in the order of the loops. It is slow; it is the reference for every
/// schedule and emitter. The number of lanes has no effect. Each operation is rounded to its type, see
/// evaluate_element; a sum or product of floats over a reduction with a known combination is rounded once, at the end.
/// It returns INVALID_ARGUMENT if verify_kernel refuses the kernel or the number of buffers is wrong, and OUT_OF_RANGE,
/// with the expression and the point, for an access beyond its buffer or a kWhile that does not end. Stores before such
/// an error have been made.
Status evaluate_kernel(const Kernel& kernel, std::span<const std::span<std::byte>> buffers,
                       const EvaluateOptions& options = {});

}  // namespace collet::codegen
