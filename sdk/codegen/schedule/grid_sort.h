// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a machine with grids sorts rows: by a bitonic network (K. E. Batcher, "Sorting networks and their applications", 1968) in which
/// every comparison puts the element that comes first at the lower place, so that a row of any length is one whose end is missing. Equal
/// elements keep their order: an array of the elements' numbers is sorted with them, and decides.

#include <collet/codegen/target.h>

#include <cstdint>
#include <vector>

#include "sdk/codegen/lower/routines.h"

namespace collet::codegen {

/// A block sorts segments of 2^kLogSegment elements without help.
inline constexpr int kLogSegment = 10;

/// A kernel of a sort. Its buffers are the sorted arrays, then that of numbers, of type s32 and the same shape.
struct GridSort {
  enum class Part : uint8_t {
    kSegments,  ///< writes the numbers, and sorts each segment of a row
    kMirror,  ///< compares the elements of each block of 2^p, from its two ends inwards; p is a parameter of the kernel
    kDistance,  ///< compares elements that lie 2^p apart
    kMerge,     ///< compares elements of a segment, at all its distances from the longest down
  };
  Part part = Part::kSegments;
  Comparator comparator;
  int64_t rows = 1;
  int64_t length = 1;  ///< of a row
  int64_t step =
      1;  ///< elements from one of a row to the next, in memory; rows whose numbers differ by less lie side by side
  int log_length = 0;            ///< of the least power of two that is no less
  int log_segment = 0;           ///< elements that a block sorts without help
  bool only_segments = false;    ///< each segment is sorted, and no more
  bool keeps_numbers = false;    ///< somebody reads the sorted numbers afterwards
  bool shares_segments = false;  ///< the block has them in shared memory meanwhile
  uint32_t blocks = 1;
  uint32_t block_threads = 1;

  bool operator==(const GridSort&) const = default;
  auto operator<=>(const GridSort&) const = default;
};

/// Whether a kernel of a sort compares elements of one segment only.
inline bool works_in_segments(GridSort::Part part) {
  return part == GridSort::Part::kSegments || part == GridSort::Part::kMerge;
}

/// A kernel of a sort and its parameter behind the buffers, -1: none.
struct GridSortLaunch {
  GridSort::Part part;
  int64_t power = -1;
};

/// A sort of `rows` rows, all but for its parts. `step`: see GridSort.
GridSort schedule_sort(Comparator comparator, int64_t rows, int64_t length, int64_t step, const GridLimits& limits);

/// The kernels that sort, one after the other.
std::vector<GridSortLaunch> launches_of_sort(const GridSort& sort);

}  // namespace collet::codegen
