// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Signatures of the functions that the code generator compiles.

#include <cstdint>

namespace collet::codegen {

/// A compiled kernel, or a matrix product: the addresses of its buffers, and the range of loop 0, or of the jobs, that this call runs. A
/// sequential kernel must be called with the whole range; a kernel without loops ignores it. Parts begin at multiples of
/// KernelCall::grain. `worker` is the number of the thread that calls, from 0 on; it selects the scratch memory of a product.
using KernelFunction = void (*)(char* const* buffers, int64_t begin, int64_t end, int32_t worker);

/// A comparator: returns whether element i of the buffers comes before element j.
using CompareFunction = uint8_t (*)(char* const* buffers, int64_t i, int64_t j);

/// A loop of the launch plan. `slots` are the addresses of the plan's slots, in the order that LaunchPlan defines.
using LoopFunction = void (*)(char* const* slots);

/// The operands of one call of a micro-kernel, which computes c[rows, columns] (+)= a[rows, depth] * b[depth, columns].
/// Steps are distances in elements: for a between rows (or between steps of the depth), for b between steps of the
/// depth, for c between rows.
struct Tile {
  const char* a;
  const char* b;
  char* c;
  int64_t depth;
  int64_t a_step;
  int64_t b_step;
  int64_t c_step;
  int64_t tail;  ///< number of valid lanes in the last vector, for a masked micro-kernel
  int64_t accumulate;
  /// First row of the next panel of b, and the distance of its rows in elements: the micro-kernel fetches them into the cache.
  const char* ahead;
  int64_t ahead_step;
  const char* start;  ///< initial values of the columns or of the rows, to which the first block of the depth is added
  int64_t segments;   ///< for a depth in segments: their number
  const int64_t* offsets;  ///< offset in a of each segment, in elements
  /// For factors of bf16: `checked_steps` steps from `checked_b` on, of the panel of b, have no smaller magnitude than
  /// `least_b`. The micro-kernel sets them; they hold until `checked_steps` is set to 0, when a panel is changed.
  int64_t checked_steps;
  const char* checked_b;
  int64_t least_b;
  // Used where groups of depth blocks are added to totals:
  char* total;         ///< the totals of the tile
  int64_t total_step;  ///< distance of the rows of totals, in elements
  int64_t is_first;    ///< 1 if no group has been added to the totals: they are 0
  int64_t is_last;     ///< 1 if c, in place of the totals, gets the sum of both
  // Used by an epilogue, the first also with totals:
  int64_t rows;  ///< of the tile
  char* d;       ///< where the epilogue stores its results, at the same positions as in c
  char* const* buffers;
  const int64_t* position;  ///< index of the batch in each of the batch loops
  int64_t row;
  int64_t column;
};
using MicroFunction = void (*)(Tile*);

/// Most places of a step of a kBlocks.
constexpr uint32_t kMostBlockPlaces = 64;

/// Most buffers that the packing of an operand may access, including the packed memory.
constexpr uint32_t kMostPackBuffers = 64;

}  // namespace collet::codegen
