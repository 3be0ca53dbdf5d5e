// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/codegen/target.h>

#include <cstddef>
#include <cstdint>
#include <optional>

/// \file
/// Vectorisation for processors: chooses which loop is computed in lanes, and how many lanes there are.

namespace collet::codegen {

/// Chooses the loop to vectorise, and its width. To avoid gathers, loops may be reordered, so that
/// transposing_loop returns one. Loop 0 of a kernel that is run in parts stays as it is.
void choose_lanes(Kernel& kernel, const Target& target);

/// The first `size` iterations of a loop.
struct LoopPart {
  size_t loop;
  int64_t size;
};

/// If choose_lanes would transpose loads in squares along a loop whose size is not a multiple of a square's side,
/// returns that loop with the largest such multiple. With these iterations alone, squares whose results are adjacent in
/// memory can be computed one after the other.
std::optional<LoopPart> uneven_squares(const Kernel& kernel, const Target& target);

/// Returns the loop along which loads are transposed; the number of loops if there is none. Such loads have unit stride along
/// this loop, but not along the lanes. The loop is run in blocks of as many iterations as there are lanes: a load reads the square
/// of a block by rows and transposes it in registers. It is the last loop, and not the first.
size_t transposing_loop(const Kernel& kernel);

/// True if a scheduled kernel reduces the rows of a matrix with more columns than registers can hold. It is then
/// computed row by row, with the accumulators in memory. Its only inner loop runs over the rows; its last outer loop
/// runs over the columns, in lanes.
bool reduces_rows(const Kernel& kernel, const Target& target);

/// True if a store of a scheduled kernel writes whole aligned vectors of an array that is larger than all caches, and
/// that the kernel does not read: nothing is gained if the elements go through the caches. Buffers are taken to begin at
/// multiples of a vector.
bool bypasses_caches(const Kernel& kernel, const Store& store, const Target& target);

}  // namespace collet::codegen
