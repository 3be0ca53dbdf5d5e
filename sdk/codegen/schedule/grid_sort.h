// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sorts rows on a machine with grids, by a bitonic network (K. E. Batcher, "Sorting networks and their applications",
/// 1968). Every comparison puts the element that comes first at the lower index, so a row of any length is sorted like
/// a longer row whose end is missing. Equal elements keep their order: an array with the elements' numbers is sorted
/// along with them, and decides between equal elements.

#include <collet/codegen/target.h>

#include <cstdint>
#include <vector>

#include "sdk/codegen/lower/routines.h"

namespace collet::codegen {

/// A block sorts segments of 2^kLogSegment elements by itself, in shared memory.
inline constexpr int kLogSegment = 10;

/// One kernel of a sort. Its buffers are the sorted arrays, followed by the array of the elements' numbers, which has
/// type s32 and the same shape.
struct GridSort {
  enum class Part : uint8_t {
    kSegments,  ///< writes the numbers, and sorts each segment of a row
    /// Compares the elements of each block of 2^p, the first with the last and so on inwards, then elements that are
    /// 2^(p - 2) apart, 2^(p - 3) and so on: `levels` steps in all. p is a parameter of the kernel.
    kMirror,
    kDistance,  ///< compares elements that are 2^p apart, then 2^(p - 1) and so on: `levels` steps in all
    kMerge,     ///< compares elements of a segment at distances from half a segment down to 1
  };
  Part part = Part::kSegments;
  Comparator comparator;
  int64_t rows = 1;
  int64_t length = 1;  ///< elements of a row
  /// Distance in elements from one element of a row to the next; rows whose numbers differ by less than this are
  /// interleaved in memory.
  int64_t step = 1;
  int log_length = 0;            ///< logarithm of `length`, rounded up
  int levels = 1;                ///< for kMirror and kDistance: a thread holds 2^levels elements in registers
  int log_segment = 0;           ///< logarithm of the elements that a block sorts by itself
  bool only_segments = false;    ///< true if only the segments are sorted, each by itself
  bool keeps_numbers = false;    ///< true if the sorted numbers are read afterwards
  bool shares_segments = false;  ///< true if the block sorts segments in shared memory
  uint32_t blocks = 1;
  uint32_t block_threads = 1;

  bool operator==(const GridSort&) const = default;
  auto operator<=>(const GridSort&) const = default;
};

/// True if a kernel of a sort compares elements of one segment only.
inline bool works_in_segments(GridSort::Part part) {
  return part == GridSort::Part::kSegments || part == GridSort::Part::kMerge;
}

/// A kernel of a sort and its integer parameter; -1 if it has none.
struct GridSortLaunch {
  GridSort::Part part;
  int64_t power = -1;
  int levels = 1;  ///< see GridSort
};

/// Returns a sort of `rows` rows; its `part` and `levels` are set for each launch. `step`: see GridSort.
GridSort schedule_sort(Comparator comparator, int64_t rows, int64_t length, int64_t step, const GridLimits& limits);

/// Returns the kernels that sort, in the order in which they must run.
std::vector<GridSortLaunch> launches_of_sort(const GridSort& sort);

}  // namespace collet::codegen
