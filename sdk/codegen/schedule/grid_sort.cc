// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_sort.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace collet::codegen {
namespace {

constexpr int64_t kLeastThreads = 128;
constexpr int64_t kBlocksPerProcessor = 16;
constexpr int kMostLevels = 3;  ///< a thread holds eight elements

}  // namespace

GridSort schedule_sort(Comparator comparator, int64_t rows, int64_t length, int64_t step, const GridLimits& limits) {
  GridSort out;
  out.comparator = std::move(comparator);
  out.rows = rows;
  out.length = length;
  out.step = step;
  out.log_length = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(length - 1))));
  out.log_segment = std::min(out.log_length, kLogSegment);
  const int64_t pairs_of_segment = int64_t{1} << (out.log_segment - 1);
  out.block_threads = static_cast<uint32_t>(std::max(pairs_of_segment, kLeastThreads));
  int64_t element_bytes = static_cast<int64_t>(collet_type_bytes(COLLET_TYPE_S32));
  for (uint32_t type : out.comparator.types) element_bytes += static_cast<int64_t>(collet_type_bytes(type));
  out.shares_segments = 2 * int64_t{out.block_threads} * element_bytes <= limits.shared_bytes;
  const int64_t pairs = rows << (out.log_length - 1);
  const int64_t most = kBlocksPerProcessor * limits.processors;
  out.blocks = static_cast<uint32_t>(std::clamp<int64_t>((pairs + out.block_threads - 1) / out.block_threads, 1, most));
  return out;
}

std::vector<GridSortLaunch> launches_of_sort(const GridSort& sort) {
  std::vector<GridSortLaunch> out{{GridSort::Part::kSegments}};
  for (int length = sort.log_segment + 1; length <= sort.log_length && !sort.only_segments; ++length) {
    int levels = std::min(kMostLevels, length - sort.log_segment);
    out.push_back({GridSort::Part::kMirror, length, levels});
    for (int distance = length - levels - 1; distance >= sort.log_segment; distance -= levels) {
      levels = std::min(kMostLevels, distance - sort.log_segment + 1);
      out.push_back({GridSort::Part::kDistance, distance, levels});
    }
    out.push_back({GridSort::Part::kMerge});
  }
  return out;
}

}  // namespace collet::codegen
