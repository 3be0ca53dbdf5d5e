// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "sdk/codegen/kernel/kernel.h"

/// \file
/// The vectors of a processor: which loop is computed in lanes, and how many.

namespace collet::codegen {

/// Inner loops are unrolled where their points, times the number of expressions, are at most so many.
inline constexpr int64_t kMostStraight = 400;

/// Chooses the loop to vectorise and its width for registers of `vector_bits`, not among loops before `first`.
void choose_lanes(Kernel& kernel, int vector_bits, size_t first = 0);

}  // namespace collet::codegen
