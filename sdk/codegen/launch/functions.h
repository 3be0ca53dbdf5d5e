// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The signatures of compiled functions.

#include <cstdint>

namespace collet::codegen {

/// A compiled kernel: the addresses of its buffers, and the range of loop 0 that this call walks. A sequential kernel
/// must be given the whole range; one without loops ignores it. Parts begin at multiples of KernelCall::grain.
using KernelFunction = void (*)(char* const* buffers, int64_t begin, int64_t end);

/// A comparator: whether element i of the buffers comes before element j.
using CompareFunction = uint8_t (*)(char* const* buffers, int64_t i, int64_t j);

/// A loop of the launch plan: the addresses of the slots, as LaunchPlan has them.
using LoopFunction = void (*)(char* const* slots);

/// One call of a micro-kernel: c[rows, columns] (+)= a[rows, depth] * b[depth, columns]. Steps are in elements: a's between rows (or steps
/// of the depth), b's between steps of the depth, c's between rows.
struct Tile {
  const char* a;
  const char* b;
  char* c;
  int64_t depth;
  int64_t a_step;
  int64_t b_step;
  int64_t c_step;
  int64_t tail;  ///< lanes of the last vector that count, where it is masked
  int64_t accumulate;
  const char* start;       ///< where it starts: a row to which the first part of the depth is added
  int64_t segments;        ///< where segmented: how many, and where in a each begins
  const int64_t* offsets;  ///< in elements
  // For an epilogue:
  int64_t rows;
  char* d;  ///< what becomes of c, in the same places
  char* const* buffers;
  const int64_t* position;  ///< the batch: one number for each of its loops
  int64_t row;
  int64_t column;
};
using MicroFunction = void (*)(const Tile*);

/// Buffers that the packing of an operand may touch, the packed memory among them.
constexpr uint32_t kMostPackBuffers = 64;

}  // namespace collet::codegen
