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

/// Chooses the loop to vectorise and its width for registers of `vector_bits`, not among loops before `first`. Where loads
/// would be gathered, loops from `first` on may change places, so that transposing_loop gives one.
void choose_lanes(Kernel& kernel, int vector_bits, size_t first = 0);

/// The loop that a scheduled kernel walks in blocks of as many turns as there are lanes, because loads lie side by side along
/// it and apart along the lanes: such a load reads a square, row by row, and transposes it. It is the last loop, and not the
/// first. The number of loops where there is none.
size_t transposing_loop(const Kernel& kernel);

/// Whether a scheduled kernel folds columns that are too many for registers: it is best to walk row by row, with what is folded
/// so far in memory. Its only inner loop is that of the rows, the last outer one that of the columns, in lanes.
bool folds_rows(const Kernel& kernel);

/// Whether expression `k` is a load of such squares, of `loop` and the lanes.
bool is_transposed(const Kernel& kernel, const std::vector<uint64_t>& deps, size_t k, size_t loop);

}  // namespace collet::codegen
